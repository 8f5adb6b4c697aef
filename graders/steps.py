"""The first failed step of a trial: its earliest failed checkpoint in clinical order, and the tool call it hangs on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from graders.evidence import workspace_path
from graders.score import deciding_verdicts
from tasks.declarations import Checkpoint
from tasks.package import Task
from tasks.stored import StoredTrial
from tasks.taxonomy import CAPABILITIES
from tasks.toolnames import WRITE_FILE
from tasks.trials import CallCite, QuoteCite, ResourceCite, ToolCall, Verdict, Write


class Judged(Protocol):
    """A checkpoint with its result."""

    @property
    def capability(self) -> str: ...

    @property
    def place(self) -> int: ...

    @property
    def result(self) -> str: ...


One = TypeVar("One", bound=Judged)


def first_failed(checkpoints: Iterable[One]) -> One | None:
    """The earliest that is fail or partial: facts are retrieved, then weighed, then acted on, then written down; within
    one of these, by its place in the task. None where nothing failed."""
    failed = [one for one in checkpoints if one.result in ("fail", "partial")]
    return min(failed, key=clinical_order, default=None)


def clinical_order(one: Judged) -> tuple[int, int]:
    """Sorts checkpoints as a consult goes."""
    return CAPABILITIES.index(one.capability), one.place


@dataclass(frozen=True)
class Step:
    """`call`: the trial's tool call that the failure hangs on, None where it was never made. `why` says which."""

    checkpoint: Checkpoint
    verdict: Verdict
    call: ToolCall | None
    why: str


@dataclass(frozen=True)
class _Placed:
    checkpoint: Checkpoint
    verdict: Verdict
    place: int

    @property
    def capability(self) -> str:
        return self.checkpoint.capability

    @property
    def result(self) -> str:
        return self.verdict.result


def first_failed_step(trial: StoredTrial, task: Task) -> Step | None:
    """The first failed step of a stored trial, by the verdicts that count; None where nothing failed.

    Reads the trial's whole trajectory: for one trial on a page, not for a table of thousands.
    """
    deciding = deciding_verdicts(task.checkpoints, trial.verdicts(), task.grade_digest)
    found = first_failed(
        _Placed(checkpoint, deciding[checkpoint.id], place)
        for place, checkpoint in enumerate(task.checkpoints)
        if checkpoint.id in deciding
    )
    if found is None:
        return None
    call, why = call_of(found.verdict, trial.calls(), trial.writes())
    return Step(found.checkpoint, found.verdict, call, why)


def call_of(verdict: Verdict, calls: Sequence[ToolCall], writes: Sequence[Write]) -> tuple[ToolCall | None, str]:
    """The earliest call that the verdict's citations lead to: the call itself, the one that wrote the cited resource,
    or the one that wrote the cited file."""
    by_number = {call.n: call for call in calls}
    made_by = {write.reference: write.call for write in writes}
    found: list[tuple[int, str]] = []
    for cite in verdict.cites:
        if isinstance(cite, CallCite) and cite.n in by_number:
            found.append((cite.n, "the call that is cited"))
        elif isinstance(cite, ResourceCite) and (number := made_by.get(cite.ref)) in by_number and number is not None:
            found.append((number, f"the call that wrote {cite.ref}"))
        elif isinstance(cite, QuoteCite):
            numbers = [call.n for call in calls if call.tool == WRITE_FILE and _writes(call, cite.file)]
            found += [(numbers[-1], f"the call that wrote {cite.file}")] if numbers else []
    if not found:
        return None, "no call: what it asks for was never done"
    number, why = min(found)
    return by_number[number], why


def _writes(call: ToolCall, file: str) -> bool:
    path = call.arguments.get("file_path") if isinstance(call.arguments, dict) else None
    return isinstance(path, str) and workspace_path(path) == workspace_path(file)
