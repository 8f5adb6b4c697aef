"""The agent loop: a model, the tools, and what stops it.

One turn = one model response; tool calls are counted apart. Every event is recorded (on disk, by the recorder) before
the next step begins; a resumed trial goes through its recorded steps first (runtime/resume.py). Calls of one turn are
carried out in order and answered in one message. Nothing of a truncated turn is carried out. A call is carried out
once: whatever comes back is its answer.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from providers.base import (
    Message,
    Model,
    ModelConfigError,
    ModelMessage,
    ProviderFault,
    SystemMessage,
    ToolRequest,
    ToolResult,
    ToolResults,
    Turn,
    UserMessage,
    check_pairing,
)
from providers.pricing import add
from runtime.resume import Earlier, Tape
from runtime.tools import Toolbox, text_shown
from tasks.errors import EnvironmentFault
from tasks.fhir.resources import dump_json
from tasks.manifest import Limits
from tasks.stored import EventType
from tasks.taxonomy import Profile
from tasks.trials import Outcome, ToolCall, Usage

#: Model responses after which a trial ends, where the task sets no limit of its own.
MAX_TURNS = 100

#: The loop stops of profile `paper` (field/physicianbench.md): how often is too often.
SAME_ERRORS = 5
SAME_CALLS = 5
SAME_BATCHES, BATCH_WINDOW = 5, 10
STEPS_WITHOUT_NEWS = 15

SYSTEM_PROMPT = """\
You are a clinical assistant working in a hospital's electronic health record.
You reach the record, a FHIR R4 server, only through the tools you are given; you can also write files with them.
Read what bears on the question before you decide: problems, results, medications, notes.
Rely on what you found in the record and on sound medical knowledge; never invent a finding, a date or a value.
Where the request calls for orders, appointments or messages, make them with the tools that create them.
Write every document that is asked for with write_file, to the path that is named.
Be complete: each part of the request needs its answer.
When everything is done, finish with a short summary and no further tool call."""

TRUNCATED = (
    "Your last answer was cut off at the output limit, so none of its tool calls was carried out. "
    "Go on in smaller steps: fewer calls at once, or a long document in several parts with mode a."
)

#: Puts one event on disk before it returns: (type, data).
Record = Callable[[EventType, dict[str, Any]], None]


def prompt_hash(system: str = SYSTEM_PROMPT) -> str:
    """SHA-256 of the system prompt, for the plan and the trajectory."""
    return hashlib.sha256(system.encode()).hexdigest()


@dataclass(frozen=True)
class AgentRun:
    """How a run of the loop ended. `waited`: seconds of this process spent on provider back-off and the EHR; all else
    is of the whole trial, the attempts before this one included."""

    outcome: Outcome
    detail: str
    turns: int
    calls: int
    usage: Usage
    waited: float
    flags: tuple[str, ...]
    models: tuple[str, ...] = ()
    """The names that the provider answered with, in order of first sight."""


class _Ended(Exception):  # the normal way out of the loop
    def __init__(self, outcome: Outcome, detail: str = "", *, is_recorded: bool = False) -> None:
        self.outcome = outcome
        self.detail = detail
        self.is_recorded = is_recorded


@dataclass
class LoopGuard:
    """The four loop stops. Each method says why the loop must stop now, or ""."""

    _error: tuple[str, int] = ("", 0)
    _call: tuple[str, int] = ("", 0)
    _batches: deque[tuple[str, ...]] = field(default_factory=lambda: deque(maxlen=BATCH_WINDOW))
    _known: set[str] = field(default_factory=set)
    _stale: int = 0

    def after_call(self, call: ToolCall) -> str:
        """Same error, or same call, too often in a row."""
        pair = _pair(call.tool, call.arguments)
        self._call = (pair, self._call[1] + 1 if self._call[0] == pair else 1)
        if self._call[1] >= SAME_CALLS:
            return f"same_calls: {call.tool} was called {SAME_CALLS} times in a row with the same arguments"
        return self.after_error(call.result if call.error else "")

    def after_error(self, text: str) -> str:
        """`text` is the error, "" for a call that went well."""
        self._error = (text, self._error[1] + 1 if text and self._error[0] == text else int(bool(text)))
        if self._error[1] >= SAME_ERRORS:
            return f"same_errors: the same error came back {SAME_ERRORS} times in a row"
        return ""

    def after_step(self, calls: Sequence[ToolCall]) -> str:
        """Same batch too often, or nothing new for too long."""
        batch = tuple(_pair(call.tool, call.arguments) for call in calls)
        self._stale = 0 if set(batch) - self._known else self._stale + 1
        self._known.update(batch)
        if batch:
            self._batches.append(batch)
            if self._batches.count(batch) >= SAME_BATCHES:
                return f"same_batch: the same calls came {SAME_BATCHES} times within {BATCH_WINDOW} steps"
        if self._stale >= STEPS_WITHOUT_NEWS:
            return f"nothing_new: {STEPS_WITHOUT_NEWS} steps without a new tool call"
        return ""


def _pair(tool: str, arguments: dict[str, Any] | str) -> str:
    if isinstance(arguments, str):
        return f"{tool} {arguments}"
    return f"{tool} {dump_json({key: arguments[key] for key in sorted(arguments)})}"


def run_agent(
    model: Model,
    toolbox: Toolbox,
    *,
    instruction: str,
    record: Record,
    limits: Limits | None = None,
    profile: Profile = "paper",
    system: str = SYSTEM_PROMPT,
    cancelled: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.monotonic,
    task_digest: str = "",
    earlier: Earlier | None = None,
) -> AgentRun:
    """Run `model` until it is done or something stops it. Never raises for what an outcome can say.

    `limits`: None = 100 turns and nothing else. `cancelled` is asked between any two steps. `task_digest` (the task's
    agent_digest) is recorded. `earlier`: the attempt to go on from; session and files of `toolbox` are as it left them.
    """
    loop = _Loop(model, toolbox, record, limits or Limits(), cancelled, clock, earlier)
    return loop.run(system, instruction, profile, task_digest)


class _Loop:
    def __init__(
        self,
        model: Model,
        toolbox: Toolbox,
        record: Record,
        limits: Limits,
        cancelled: Callable[[], bool],
        clock: Callable[[], float],
        earlier: Earlier | None,
    ) -> None:
        self.earlier = earlier
        self.tape = Tape(earlier.events if earlier else ())
        self.model = model
        self.toolbox = toolbox
        self.record = record
        self.limits = limits
        self.cancelled = cancelled
        self.clock = clock
        self.guard = LoopGuard()
        self.specs = toolbox.specs
        self.messages: list[Message] = []
        self.turns = 0
        self.calls = 0
        self.truncated = 0
        self.uncounted = 0
        self.usage = Usage(cost=0.0)
        self.waited = 0.0
        self.models: list[str] = []

    def run(self, system: str, instruction: str, profile: Profile, task_digest: str) -> AgentRun:
        self.began = self.clock() - (self.earlier.own_seconds if self.earlier else 0.0)
        try:
            if self.earlier:
                self._record_resumed(self.earlier)
            else:
                begun: dict[str, Any] = {"text": system, "profile": profile, "prompt_sha256": prompt_hash(system)}
                begun |= {"tools": [spec.name for spec in self.specs], "agent_digest": task_digest}
                self.record("system", begun)
                self.record("user", {"text": instruction})
            self.messages = [SystemMessage(system), UserMessage(instruction)]
            if self.limits.cost is not None and not self.model.has_price:
                raise _Ended(
                    Outcome.config_error, f"a cost limit is set, and the price of {self.model.name} is unknown"
                )
            while True:
                self._step()
        except _Ended as end:
            if end.is_recorded:
                pass
            elif end.outcome in _LIMITS:
                self.record("limit", {"limit": end.outcome.value, "detail": end.detail})
            elif end.outcome is not Outcome.finished:
                self.record("error", {"outcome": end.outcome.value, "detail": end.detail})
            return AgentRun(
                outcome=end.outcome,
                detail=end.detail,
                turns=self.turns,
                calls=self.calls,
                usage=self.usage,
                waited=self.waited,
                flags=self._flags(end.outcome),
                models=tuple(self.models),
            )

    def _record_resumed(self, earlier: Earlier) -> None:
        told: dict[str, Any] = {
            "attempt": earlier.trial.key.attempt,
            "ended": earlier.state.value,
            "detail": earlier.detail,
        }
        told |= {"turns": earlier.turns, "calls": len(earlier.calls), "writes": len(earlier.writes)}
        self.record("resumed", told | {"own_seconds": round(earlier.own_seconds, 3)})

    def _end_if_recorded(self) -> None:
        """End by the limit that the record ends with."""
        if limit := self.tape.limit():
            raise _Ended(Outcome(limit[0]), limit[1], is_recorded=True)

    def _flags(self, outcome: Outcome) -> tuple[str, ...]:
        flags = []
        if self.calls == 0 and self.turns and outcome in {Outcome.finished, *_LIMITS}:
            flags.append("no tool calls")
        if self.uncounted:
            flags.append(f"{self.uncounted} turns without reported tokens")
        if self.truncated:
            flags.append(f"{self.truncated} truncated turns")
        return tuple(flags)

    def _step(self) -> None:
        self._end_if_recorded()
        self._check_budgets()
        turn = self._ask()
        if turn.stop == "refused":
            raise _Ended(Outcome.refused, "the model refused to answer")
        if turn.stop == "overflow":
            raise _Ended(Outcome.context_overflow, "the conversation no longer fits into the model's context")
        self.messages.append(ModelMessage(turn))
        if turn.stop == "length":
            self._answer_truncated(turn)
        elif not turn.calls:
            raise _Ended(Outcome.finished)
        else:
            self._carry_out(turn)

    def _ask(self) -> Turn:
        check_pairing(self.messages)
        recorded = self.tape.turn()
        turn = recorded or self._asked()
        self.turns += 1
        self.usage = add(self.usage, turn.usage)
        self.uncounted += (turn.sent or {}).get("usage") == "not reported"
        if turn.model and turn.model not in self.models:
            self.models.append(turn.model)
        if recorded:
            return turn
        self.waited += turn.waited
        self.record(
            "model",
            {
                "turn": self.turns,
                "text": turn.text,
                "blocks": list(turn.blocks),
                "calls": [{"id": call.id, "name": call.name, "arguments": call.arguments_text} for call in turn.calls],
                "usage": turn.usage.model_dump(),
                "stop": turn.stop,
                "model": turn.model,
                "waited": turn.waited,
                "sent": turn.sent or {},
            }
            | ({"exchange": turn.exchange} if turn.exchange else {}),
        )
        return turn

    def _asked(self) -> Turn:
        try:
            return self.model.turn(self.messages, self.specs)
        except ProviderFault as fault:
            raise _Ended(Outcome.provider_error, str(fault)) from None
        except ModelConfigError as fault:
            raise _Ended(Outcome.config_error, str(fault)) from None

    def _answer_truncated(self, turn: Turn) -> None:
        self.truncated += 1
        if not self.tape.limit():
            told = {"limit": "output_limit", "detail": "the turn was cut; none of its calls was carried out"}
            self.record("limit", told)
        if turn.calls:
            refused = dump_json({"error": "Not carried out: the answer was cut off at the output limit."})
            self.messages.append(
                ToolResults(tuple(ToolResult(call.id, refused, True) for call in turn.calls), note=TRUNCATED)
            )
        else:
            self.messages.append(UserMessage(TRUNCATED))
        self._stop_if(self.guard.after_error(TRUNCATED) or self.guard.after_step(()))

    def _carry_out(self, turn: Turn) -> None:
        done: list[ToolCall] = []
        results: list[ToolResult] = []
        for request in turn.calls:
            self._end_if_recorded()
            if done:
                self._check_cancelled()
                self._check_seconds()
            call, text = self._call(request)
            done.append(call)
            results.append(ToolResult(call.call_id, text, call.error))
            self._stop_if(self.guard.after_call(call))
        self.messages.append(ToolResults(tuple(results)))
        self._stop_if(self.guard.after_step(done))

    def _call(self, request: ToolRequest) -> tuple[ToolCall, str]:
        self.calls += 1
        if recorded := self.tape.call(request):
            return recorded, text_shown(recorded)
        began = self.clock()
        try:
            answered = self.toolbox.answer(request, number=self.calls, turn=self.turns)
        except EnvironmentFault as fault:
            raise _Ended(Outcome.environment_error, str(fault)) from None
        if answered.call.request:
            self.waited += self.clock() - began
        self.record("tool", answered.call.model_dump())
        return answered.call, answered.text

    def _stop_if(self, reason: str) -> None:
        if reason:
            self._end_if_recorded()
            raise _Ended(Outcome.loop_stopped, reason)

    def _check_cancelled(self) -> None:
        if self.cancelled():
            raise _Ended(Outcome.cancelled, "stopped on request")

    def _check_seconds(self) -> None:
        if self.tape:
            return  # the time of recorded steps was spent, and checked, when they were live
        limit = self.limits.seconds
        if limit is not None and self.clock() - self.began - self.waited >= limit:
            raise _Ended(Outcome.time_limit, f"{limit:g} seconds are used up")

    def _check_budgets(self) -> None:
        self._check_cancelled()
        turns = self.limits.turns if self.limits.turns is not None else MAX_TURNS
        if self.turns >= turns:
            raise _Ended(Outcome.turn_limit, f"{turns} turns are used up")
        if self.limits.tokens is not None and self.uncounted:
            raise _Ended(Outcome.config_error, f"a token limit is set, and {self.model.name} reports no tokens")
        used = total_tokens(self.usage)
        if self.limits.tokens is not None and used >= self.limits.tokens:
            raise _Ended(Outcome.token_limit, f"{used} tokens are used, {self.limits.tokens} were allowed")
        if self.limits.cost is not None:
            if self.usage.cost is None:
                raise _Ended(Outcome.config_error, "a cost limit is set, and the cost of a turn is unknown")
            if self.usage.cost >= self.limits.cost:
                raise _Ended(
                    Outcome.cost_limit, f"USD {self.usage.cost:.4f} are spent, {self.limits.cost:g} were allowed"
                )
        self._check_seconds()


_LIMITS = frozenset(
    {Outcome.turn_limit, Outcome.token_limit, Outcome.time_limit, Outcome.cost_limit, Outcome.loop_stopped}
)


def total_tokens(usage: Usage) -> int:
    """Input and output of every tier; reasoning tokens are part of the output."""
    return usage.uncached_input + usage.cache_read + usage.cache_write + usage.output
