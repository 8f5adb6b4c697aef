"""Going on inside the conversation of an attempt that was killed, stopped, or given up by its provider.

A resumed trial is a new attempt that begins with the earlier one's events and ledger, line for line; the earlier one
stays as it is. The loop is then run over what is recorded (`Tape`) exactly as it was run live, so that messages,
budgets and loop stops come from one code, and goes on where the record ends:

    killed after                       the next attempt
    a turn of the model                carries out its calls, or ends
    a ledger entry                     answers that call from the ledger; the create is not sent again
    a tool call                        carries out the rest of the turn's calls, or asks the model
    a limit                            ends by that limit
    half a line                        leaves the line out: that step never came to be

Files are made again from the recorded write_file calls, so that a call whose event is missing has not been carried out.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from providers.base import ToolRequest, Turn
from providers.exchange import EXCHANGE
from runtime.ehr.session import RESTORING
from runtime.tools import tool_specs
from tasks.errors import WorkbenchError
from tasks.package import Task
from tasks.stored import StoredTrial
from tasks.taxonomy import Profile
from tasks.trials import Event, Outcome, ToolCall, Usage, Write

#: What an attempt may have ended as, to be gone on with; `running` = its process is gone.
CONTINUED = frozenset({Outcome.running, Outcome.cancelled, Outcome.provider_error, Outcome.environment_error})


class CannotContinue(WorkbenchError):
    """The record does not allow to go on inside the conversation; the trial starts anew instead."""


class Tape:
    """What the loop recorded, given back in order. Each method is None or False once the record is used up."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._left = deque(event for event in events if event.type in ("model", "tool", "limit"))

    def __bool__(self) -> bool:
        return bool(self._left)

    def turn(self) -> Turn | None:
        """The next turn of the model."""
        return turn_of(self._left.popleft().data) if self._left and self._left[0].type == "model" else None

    def call(self, request: ToolRequest) -> ToolCall | None:
        """What this call was answered. Raises CannotContinue where the record has another call in its place."""
        if not self._left or self._left[0].type != "tool":
            return None
        call = _tool_call(self._left.popleft())
        if (call.call_id, call.tool) != (request.id, request.name):
            raise CannotContinue(f"the record has call {call.n} where the turn asks for another")
        return call

    def limit(self) -> tuple[str, str] | None:
        """(limit, detail) of the limit that was recorded here."""
        if not self._left or self._left[0].type != "limit":
            return None
        data = self._left.popleft().data
        return str(data["limit"]), str(data.get("detail", ""))


@dataclass(frozen=True)
class Earlier:
    """What an attempt left. Seconds: `own` (without provider back-off and EHR) and `wall`, of all attempts before."""

    trial: StoredTrial
    state: Outcome
    detail: str
    events: tuple[Event, ...]
    writes: tuple[Write, ...]
    carried: dict[str, bytes]
    own_seconds: float
    wall_seconds: float

    @property
    def turns(self) -> int:
        return sum(event.type == "model" for event in self.events)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(_tool_call(event) for event in self.events if event.type == "tool")


def earlier(trial: StoredTrial, task: Task, *, profile: Profile, backend: str, prompt_sha256: str) -> Earlier:
    """What can be gone on with of an attempt. Raises CannotContinue, saying why not."""
    state, outcome = trial.state, trial.outcome
    if trial.alive:
        raise CannotContinue("its process still runs")
    if state not in CONTINUED:
        raise CannotContinue(f"it ended as {state}")
    events = trial.events()
    if events and events[-1].type == "error":
        events.pop()
    if [event.n for event in events] != list(range(1, len(events) + 1)):
        raise CannotContinue("its trajectory has gaps")
    if [event.type for event in events[:2]] != ["system", "user"]:
        raise CannotContinue("it had not begun")
    begun = events[0].data
    asked = {
        "prompt_sha256": prompt_sha256,
        "profile": profile,
        "tools": [spec.name for spec in tool_specs(profile)],
        "agent_digest": task.agent_digest,
    }
    for name, value in asked.items():
        if begun.get(name) != value:
            raise CannotContinue(f"it began with another {name}")
    if events[1].data.get("text") != task.instruction:
        raise CannotContinue("it began with another instruction")
    writes = trial.writes()
    _check(events, writes)
    if writes and backend not in RESTORING:
        raise CannotContinue(f"the backend {backend} cannot restore what was written")
    own, wall = _seconds(events)
    carried = {
        "trajectory.jsonl": _lines(trial, "trajectory.jsonl", Event.model_validate_json, len(events)),
        "ehr.ndjson": _lines(trial, "ehr.ndjson", Write.model_validate_json),
        EXCHANGE: _lines(trial, EXCHANGE, json.loads),
    }
    return Earlier(
        trial=trial,
        state=state,
        detail=outcome.detail if outcome else "its process ended before it did",
        events=tuple(events),
        writes=tuple(writes),
        carried={name: data for name, data in carried.items() if data},
        own_seconds=own,
        wall_seconds=wall,
    )


def turn_of(data: dict[str, Any]) -> Turn:
    """The turn that a `model` event holds."""
    return Turn(
        blocks=tuple(data["blocks"]),
        calls=tuple(ToolRequest(call["id"], call["name"], call["arguments"]) for call in data["calls"]),
        usage=Usage.model_validate(data["usage"]),
        stop=data["stop"],
        text=data.get("text", ""),
        model=data.get("model", ""),
        waited=data.get("waited", 0.0),
        sent=data.get("sent") or {},
        exchange=data.get("exchange", 0),
    )


def _tool_call(event: Event) -> ToolCall:
    return ToolCall.model_validate_json(json.dumps(event.data))


def _check(events: Sequence[Event], writes: Sequence[Write]) -> None:
    """Turns, their calls in order, and the ledger must fit together; only the last turn may be unanswered."""
    waiting: list[tuple[str, str]] = []
    calls = 0
    answered: set[int] = set()
    try:
        for event in events[2:]:
            if event.type == "model":
                if waiting:
                    raise CannotContinue("a turn follows calls that have no answer")
                turn = turn_of(event.data)
                waiting = [] if turn.stop == "length" else [(call.id, call.name) for call in turn.calls]
            elif event.type == "tool":
                call = _tool_call(event)
                calls += 1
                if not waiting or waiting.pop(0) != (call.call_id, call.tool) or call.n != calls:
                    raise CannotContinue("a call is answered that no turn asked for")
                answered.update(call.writes)
    except (KeyError, TypeError, ValidationError):
        raise CannotContinue("an event cannot be read") from None
    # A kill can come between a ledger entry and its call's event: that one call's entry, and no other, may be over.
    over = {write.sequence for write in writes if write.call == calls + 1 and waiting}
    if [write.sequence for write in writes] != list(range(1, len(writes) + 1)):
        raise CannotContinue("its ledger has gaps")
    if {write.sequence for write in writes} - over != answered:
        raise CannotContinue("its ledger and its calls differ")


def _lines(trial: StoredTrial, name: str, reads: Callable[[bytes], object], count: int | None = None) -> bytes:
    """The first `count` (None: all) whole lines that `reads` accepts, byte for byte."""
    try:
        data = (trial.path / name).read_bytes()
    except FileNotFoundError:
        return b""
    kept = []
    for line in data.split(b"\n")[:-1]:
        try:
            reads(line)
        except ValueError:
            continue
        kept.append(line + b"\n")
    return b"".join(kept[:count])


def _seconds(events: Sequence[Event]) -> tuple[float, float]:
    """(own, wall) seconds of the attempts so far. The time between two of them belongs to neither."""
    own = wall = 0.0
    for stretch in _stretches(events):
        lasted = max(0.0, (stretch[-1].at - stretch[0].at).total_seconds())
        waited = sum(float(event.data.get("waited") or 0.0) for event in stretch if event.type == "model")
        waited += sum(
            float(event.data.get("seconds") or 0.0)
            for event in stretch
            if event.type == "tool" and event.data.get("request")
        )
        own += max(0.0, lasted - waited)
        wall += lasted
    return own, wall


def _stretches(events: Sequence[Event]) -> Iterator[list[Event]]:
    current: list[Event] = []
    for event in events:
        if event.type == "resumed" and current:
            yield current
            current = []
        current.append(event)
    if current:
        yield current
