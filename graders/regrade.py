"""Grading stored trials again: from the disk alone, with the same verdicts as live, appended and never rewritten."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from graders.evidence import Evidence
from graders.grade import grade
from graders.score import deciding_verdicts
from tasks.stored import StoredTrial
from tasks.trials import OUTCOMES, TrialKey, Verdict

if TYPE_CHECKING:
    from tasks.package import Task


@dataclass(frozen=True)
class Change:
    """One checkpoint whose verdict is no longer what it was, and why."""

    checkpoint: str
    before: Verdict | None
    after: Verdict
    why: str

    @property
    def flips(self) -> bool:
        """Whether the result changed, and not only its reason or citations."""
        return self.before is None or self.before.result != self.after.result


@dataclass(frozen=True)
class Regraded:
    """What grading one trial again came to. `skipped`: why it was not graded, "" where it was."""

    key: TrialKey
    verdicts: tuple[Verdict, ...] = ()
    changes: tuple[Change, ...] = ()
    skipped: str = ""


def regrade(trial: StoredTrial, task: Task, *, at: datetime | None = None, dry_run: bool = False) -> Regraded:
    """Grade a stored trial by the task's present checkpoints; append the verdicts that are new or changed.

    A verdict that comes out the same apart from its time is not appended again; a person's verdict stands above every
    grader's and is not touched. Raises EnvironmentFault where the verdicts cannot be written.
    """
    outcome = trial.outcome
    if outcome is None:
        return Regraded(trial.key, skipped="the trial is not finished")
    if not OUTCOMES[outcome.outcome].grade:
        return Regraded(trial.key, skipped=f"a trial that ended as {outcome.outcome} is not graded")
    if outcome.agent_digest != task.agent_digest:
        return Regraded(trial.key, skipped="the agent saw another version of the task; run it again")
    fresh = grade(Evidence.from_trial(task, trial), at=at)
    # All digests, so that a change of the checkpoints is found and named; persons' verdicts are not ours to compare.
    graders_own = [verdict for verdict in trial.verdicts() if verdict.grader.kind != "person"]
    before = deciding_verdicts(task.checkpoints, graders_own)
    changes = tuple(
        Change(
            verdict.checkpoint, before.get(verdict.checkpoint), verdict, _why(before.get(verdict.checkpoint), verdict)
        )
        for verdict in fresh
        if not same(before.get(verdict.checkpoint), verdict)
    )
    if not dry_run:
        trial.add_verdicts(change.after for change in changes)
    return Regraded(trial.key, tuple(fresh), changes)


def same(before: Verdict | None, after: Verdict) -> bool:
    """Whether two verdicts are equal apart from their time."""
    return before is not None and before.model_copy(update={"at": after.at}) == after


def _why(before: Verdict | None, after: Verdict) -> str:
    if before is None:
        return "not graded before"
    if before.grade_digest != after.grade_digest:
        return "the checkpoints have changed"
    if before.grader.version != after.grader.version:
        return f"grader version {before.grader.version} became {after.grader.version}"
    if before.result == "error" or after.result == "error":
        return "the record or the grader failed in one of the two"
    return "the grader gives another answer under the same version"
