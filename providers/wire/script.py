"""What the wire server says, and where it misbehaves: a script per conversation, the same for every wire format.

A conversation is not kept by the server: which reply comes next follows from how many assistant messages the request
already carries, so that a retried, resumed or replayed request gets the same answer. Only faults are counted, per
conversation and turn.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pydantic import Field

from tasks.plans import Plan
from tasks.strict import Strict

FaultKind = Literal["status", "stream_error", "cut_stream", "slow", "garbled", "overflow"]


class Fault(Strict):
    """Something that goes wrong instead of the reply, `times` times, before the reply comes through.

    status        an HTTP error with `status` (429, 529, 500, ...), with `retry_after` seconds in the header if given
    stream_error  HTTP 200, some events, then an error event
    cut_stream    HTTP 200, some events, then the connection closes
    slow          the reply itself, with `delay` seconds between events
    garbled       HTTP 200 with a body that is not JSON
    overflow      HTTP 400: the prompt is longer than the context window
    """

    kind: FaultKind
    times: int = Field(default=1, ge=1)
    status: int = 529
    retry_after: float | None = None
    delay: float = 0.02


class ToolUse(Strict):
    """A tool call of the reply. `arguments` as text is sent as it is, valid JSON or not."""

    name: str
    arguments: dict[str, Any] | str = Field(default_factory=dict)
    id: str = ""


class Tokens(Strict):
    """Usage of one reply, by tier. Each face shows it in its provider's shape. Tokens are counts, not estimates."""

    uncached_input: int = 100
    cache_read: int = 0
    cache_write: int = 0
    output: int = 50
    reasoning: int = Field(default=0, description="part of output")


class Reply(Strict):
    """One assistant message."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ToolUse, ...] = ()
    stop: Literal["auto", "end", "tools", "length", "refusal", "overflow"] = "auto"
    tokens: Tokens = Tokens()
    faults: tuple[Fault, ...] = ()

    @property
    def stopped(self) -> str:
        """Why the message ended, with "auto" resolved."""
        if self.stop != "auto":
            return self.stop
        return "tools" if self.calls else "end"

    @property
    def is_cut_in_thinking(self) -> bool:
        """Whether the output limit came before the thinking was over: then it has no signature."""
        return self.stopped == "length" and bool(self.thinking) and not (self.text or self.calls)


@dataclass(frozen=True)
class ToolResult:
    """A tool result that the request carries back."""

    call_id: str
    text: str
    error: bool = False


@dataclass(frozen=True)
class Heard:
    """A request, told alike for every wire format."""

    face: Literal["anthropic", "openai"]
    model: str
    system: str
    first_user: str
    turn: int  # assistant messages so far
    calls: Sequence[tuple[str, str, str]]  # (id, name, arguments text) of every call so far, in order
    results: Mapping[str, ToolResult]
    tools: Sequence[str]
    forced_tool: str | None
    raw: Mapping[str, Any] = field(repr=False, default_factory=dict)


class Player(Protocol):
    """Anything that answers a request."""

    def reply(self, heard: Heard) -> Reply: ...


_DONE = Reply(text="Done.")


@dataclass(frozen=True)
class Script:
    """Replies in order. After the last one the model says that it is done."""

    replies: Sequence[Reply]
    after: Reply = _DONE

    def reply(self, heard: Heard) -> Reply:
        return self.replies[heard.turn] if heard.turn < len(self.replies) else self.after


_PLACEHOLDER = re.compile(r"\{\{(\w[\w-]*)\.reference\}\}")


@dataclass(frozen=True)
class PlanScript:
    """Plays a solution plan as a model would: one tool call a turn, references taken from earlier results.

    `actions` are the lines of solution/<plan>/actions.jsonl with every content_file already replaced by content.
    """

    actions: Sequence[Mapping[str, Any]]
    thinking: str = "Working through the record."

    @classmethod
    def of(cls, plan: Plan) -> PlanScript:
        """Plays this plan of a task package."""
        rows = []
        for action in plan.actions:
            arguments = dict(action.arguments)
            if arguments.pop("content_file", None) is not None:
                arguments["content"] = plan.content(action)
            rows.append({"tool": action.tool, "arguments": arguments, "save_as": action.save_as})
        return cls(rows)

    def reply(self, heard: Heard) -> Reply:
        if heard.turn >= len(self.actions):
            return Reply(text="The orders are placed and the note is written.")
        action = self.actions[heard.turn]
        arguments = _PLACEHOLDER.sub(lambda m: self._reference(m[1], heard), json.dumps(action["arguments"]))
        call = ToolUse(name=action["tool"], arguments=json.loads(arguments))
        return Reply(thinking=self.thinking, calls=(call,), tokens=Tokens(uncached_input=20 * (heard.turn + 1)))

    def _reference(self, name: str, heard: Heard) -> str:
        for action, (call_id, _, _) in zip(self.actions, heard.calls, strict=False):
            if action.get("save_as") == name and call_id in heard.results:
                stored = json.loads(heard.results[call_id].text)
                return f"{stored['resourceType']}/{stored['id']}"
        return f"unknown/{name}"


#: What `Faulty` plays: every failure that may pass, in each provider's clothes.
PASSING = (
    Fault(kind="status", status=429),
    Fault(kind="status", status=429, retry_after=2),
    Fault(kind="status", status=408),
    Fault(kind="status", status=500),
    Fault(kind="status", status=503, retry_after=1),
    Fault(kind="status", status=524),
    Fault(kind="status", status=529),
    Fault(kind="stream_error"),
    Fault(kind="cut_stream"),
    Fault(kind="garbled"),
    Fault(kind="slow", delay=0.001),
)


@dataclass(frozen=True)
class Faulty:
    """Another player's replies, behind faults at random: the same for the same seed, model and turn.

    `rate`: how likely a turn begins with a fault; another follows with the same likelihood, up to four.
    """

    player: Player
    seed: int = 0
    rate: float = 0.3
    faults: Sequence[Fault] = PASSING

    def reply(self, heard: Heard) -> Reply:
        draw = random.Random(f"{self.seed}/{heard.model}/{heard.turn}")  # noqa: S311 (a script, not a secret)
        played: list[Fault] = []
        while len(played) < 4 and draw.random() < self.rate:
            played.append(draw.choice(list(self.faults)))
        reply = self.player.reply(heard)
        return reply.model_copy(update={"faults": (*played, *reply.faults)})
