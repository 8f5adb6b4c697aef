"""Playing a stored trial again: the model's answers as they were stored, against a fresh record, graded anew.

The answers are read from the raw exchange where it is kept, through the same code as live, else from the trajectory
(built-in agents). The record gives new resources the ids that they had, so that every result can be compared byte for
byte. Anything else than the same calls, results and verdicts means that the store, the tools or the graders changed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from providers.base import Message, ModelMessage, ToolSpec, Turn
from providers.exchange import EXCHANGE, exchanges
from runtime.resume import turn_of
from runtime.trial import Settings, run_trial
from tasks.errors import UsageError
from tasks.package import Task
from tasks.stored import StoredTrial
from tasks.trials import Outcome, Usage


@dataclass(frozen=True)
class Replayed:
    """`differences`: one line each, empty where the stored trial comes out again as it was. `source` is where the
    model's answers came from."""

    source: str
    turns: int
    calls: int
    verdicts: int
    differences: tuple[str, ...]


class StoredModel:
    """Gives a stored trial's turns again, by how many turns the conversation has."""

    has_price = True

    def __init__(self, name: str, turns: Sequence[Turn]) -> None:
        self.name = name
        self._turns = turns

    def turn(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Turn:
        """The next stored turn. Raises UsageError where the replay goes on longer than the trial did."""
        done = sum(isinstance(message, ModelMessage) for message in messages)
        if done >= len(self._turns):
            raise UsageError("the stored trial has no further turn.", where=self.name)
        return self._turns[done]

    def close(self) -> None:
        """Nothing is open."""


def stored_turns(trial: StoredTrial) -> tuple[str, list[Turn]]:
    """(source, turns) of a stored trial: from the raw exchange where every turn names its line, else the trajectory.

    Raises UsageError where the exchange cannot be read.
    """
    recorded = [turn_of(event.data) for event in trial.events() if event.type == "model"]
    path = trial.path / EXCHANGE
    if not recorded or not path.is_file() or not all(turn.exchange for turn in recorded):
        return "trajectory.jsonl", recorded
    wanted = {turn.exchange for turn in recorded}
    read = {one.number: one.turn() for one in exchanges(path) if one.number in wanted}
    if missing := wanted - read.keys():
        raise UsageError(f"the exchange has no line {min(missing)}.", where=str(path))
    # The price of a turn is not in the exchange; what was booked live is.
    return EXCHANGE, [
        replace(read[turn.exchange], waited=0.0, usage=_priced(read[turn.exchange], turn)) for turn in recorded
    ]


def _priced(read: Turn, recorded: Turn) -> Usage:
    return read.usage.model_copy(update={"cost": recorded.usage.cost})


def replay(trial: StoredTrial, task: Task, settings: Settings) -> Replayed:
    """Play `trial` again and compare. Raises UsageError for a trial that cannot be replayed."""
    ended = trial.outcome
    if ended is None:
        raise UsageError("the trial is not finished.", where=str(trial.path), remedy="Resume its batch first.")
    if ended.agent_digest != task.agent_digest:
        raise UsageError("the agent saw another version of the task.", where=task.id, remedy="Run it again.")
    source, turns = stored_turns(trial)
    ids = [write.reference.partition("/")[2] for write in trial.writes()]
    with tempfile.TemporaryDirectory(prefix="replay-") as folder:
        model = StoredModel(trial.key.agent, turns)
        now = run_trial(task, trial.key, Path(folder), settings, model=model, ids=ids)
        again = StoredTrial.of(Path(folder), trial.key)
        found = tuple(_differences(trial, again, ended.outcome, now.outcome))
        return Replayed(source, now.turns, now.calls, len(again.verdicts()), found)


def _differences(trial: StoredTrial, again: StoredTrial, before: Outcome, after: Outcome) -> Iterator[str]:
    if before is not after:
        yield f"outcome: {before}, now {after}"
    old, new = trial.calls(), again.calls()
    if len(old) != len(new):
        yield f"{len(old)} calls, now {len(new)}"
    for one, other in zip(old, new, strict=False):
        for name in ("call_id", "tool", "arguments", "result", "shown", "error", "request", "writes"):
            if getattr(one, name) != getattr(other, name):
                yield f"call {one.n} ({one.tool}): another {name}"
    for write, rewrite in zip(trial.writes(), again.writes(), strict=False):
        if write != rewrite:
            yield f"ledger entry {write.sequence}: another {write.reference.partition('/')[0]}"
    if trial.files() != again.files():
        yield "the files differ"
    turns = [[turn_of(event.data) for event in one.events() if event.type == "model"] for one in (trial, again)]
    for number, (was, now) in enumerate(zip(*turns, strict=False), start=1):
        for name in ("blocks", "calls", "usage", "stop", "text", "model"):
            if getattr(was, name) != getattr(now, name):
                yield f"turn {number}: another {name}"
    verdicts = {name: verdict for name, verdict in trial.latest_verdicts().items() if verdict.grader.kind != "person"}
    fresh = again.latest_verdicts()
    for name, verdict in verdicts.items():
        result = fresh[name].result if name in fresh else "none"
        if result != verdict.result:
            yield f"{name}: {verdict.result}, now {result}"
