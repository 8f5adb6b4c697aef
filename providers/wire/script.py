"""What the wire server says, and where it misbehaves: a script per conversation, the same for every wire format.

A conversation is not kept by the server: which reply comes next follows from how many assistant messages the request
already carries, so that a retried, resumed or replayed request gets the same answer. Only faults are counted, per
conversation and turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pydantic import Field

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
