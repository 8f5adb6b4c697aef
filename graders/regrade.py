"""Grading stored trials again: from the disk alone, with the same verdicts as live, appended and never rewritten."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from graders.evidence import Evidence
from graders.grade import NO_JUDGE, grade
from graders.judge import Judge
from graders.score import deciding_verdicts
from graders.version import VERSION
from tasks.declarations import Checkpoint
from tasks.errors import WorkbenchError
from tasks.package import Task, TaskSource
from tasks.stored import StoredTrial
from tasks.trials import OUTCOMES, TrialKey, Verdict


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


def regrade(
    trial: StoredTrial, task: Task, *, at: datetime | None = None, dry_run: bool = False, judge: Judge | None = None
) -> Regraded:
    """Grade a stored trial by the task's present checkpoints; append the verdicts that are new or changed.

    A verdict that comes out the same apart from its time is not appended again; a person's verdict stands above every
    grader's and is not touched. A verdict of the `judge` on the very same question stands and is not asked for again;
    so does, without a judge, every verdict that one gave. Raises EnvironmentFault where the verdicts cannot be written.
    """
    outcome = trial.outcome
    if outcome is None:
        return Regraded(trial.key, skipped="the trial is not finished")
    if not OUTCOMES[outcome.outcome].grade:
        return Regraded(trial.key, skipped=f"a trial that ended as {outcome.outcome} is not graded")
    if outcome.agent_digest != task.agent_digest:
        return Regraded(trial.key, skipped="the agent saw another version of the task; run it again")
    evidence = Evidence.from_trial(task, trial)
    # All digests, so that a change of the checkpoints is found and named; persons' verdicts are not ours to compare.
    graders_own = [verdict for verdict in trial.verdicts() if verdict.grader.kind != "person"]
    before = deciding_verdicts(task.checkpoints, graders_own)
    standing = {
        checkpoint.id: before[checkpoint.id]
        for checkpoint in task.checkpoints
        if checkpoint.id in before and _stands(before[checkpoint.id], checkpoint, evidence, judge)
    }
    asked = [checkpoint for checkpoint in task.checkpoints if checkpoint.id not in standing]
    given = {verdict.checkpoint: verdict for verdict in grade(evidence, asked, at, judge=judge)} | standing
    fresh = [given[checkpoint.id] for checkpoint in task.checkpoints]
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


def _stands(before: Verdict, checkpoint: Checkpoint, evidence: Evidence, judge: Judge | None) -> bool:
    """Whether a model's verdict need not be asked for again: the same question to the same judge, answered."""
    if before.judging is None or before.result == "error" or evidence.faults:
        return False
    if before.grade_digest != evidence.task.grade_digest or before.grader.version != VERSION:
        return False
    if judge is None:
        return True
    if checkpoint.grader != "judge":
        return False  # the truth is computed anew; what the model read comes from its cache
    try:
        return judge.key(checkpoint, evidence) == before.judging.key
    except WorkbenchError:
        return False


def lacks_judge(task: Task, verdicts: Iterable[Verdict]) -> bool:
    """Whether a checkpoint waits for a judge: one failed at it, or there was none when it was graded."""
    graders_own = [verdict for verdict in verdicts if verdict.grader.kind != "person"]
    waiting = deciding_verdicts(task.checkpoints, graders_own, task.grade_digest).values()
    return any(
        verdict.grader.kind in ("judge", "hybrid") and (verdict.result == "error" or NO_JUDGE in verdict.reason)
        for verdict in waiting
    )


def regrade_all(
    trials: Iterable[StoredTrial], source: TaskSource, *, dry_run: bool = False, judge: Judge | None = None
) -> list[Regraded]:
    """Regrade trials of several tasks; one whose task cannot be loaded is skipped with the reason."""
    loaded: dict[str, Task | str] = {}
    done = []
    for trial in trials:
        id = trial.key.task
        if id not in loaded:
            try:
                loaded[id] = source.load(id)
            except WorkbenchError as fault:
                loaded[id] = str(fault)
        task = loaded[id]
        done.append(
            Regraded(trial.key, skipped=f"the task cannot be loaded: {task}")
            if isinstance(task, str)
            else regrade(trial, task, dry_run=dry_run, judge=judge)
        )
    return done


def as_text(done: Sequence[Regraded], *, dry_run: bool = False) -> str:
    """What changed, a checkpoint at a time, then the counts. Verdicts that only restate a result are counted alone."""
    lines = []
    restated: Counter[str] = Counter()
    for one in done:
        name = f"{one.key.task} / {one.key.agent} / run {one.key.run}"
        if one.skipped:
            lines.append(f"{name}: skipped, {one.skipped}")
        for change in one.changes:
            if change.flips:
                before = change.before.result if change.before else "no verdict"
                lines += [f"{name}: {change.checkpoint} {before} -> {change.after.result} ({change.why})"]
                lines += [f"    {change.after.reason}"]
            else:
                restated[change.why] += 1
    lines += [f"{number} verdicts with the same result: {why}" for why, number in restated.items()]
    graded = [one for one in done if not one.skipped]
    verdicts = sum(len(one.verdicts) for one in graded)
    flips = sum(change.flips for one in graded for change in one.changes)
    verb = "would change" if dry_run else "changed"
    lines.append(f"{len(graded)} trials, {verdicts} verdicts; {flips} {verb}; {len(done) - len(graded)} skipped")
    return "\n".join(lines)


def as_json(done: Sequence[Regraded]) -> str:
    """The same for a script: trials with all verdicts and the changes."""
    return json.dumps(
        [
            {
                **one.key.model_dump(),
                "skipped": one.skipped,
                "verdicts": [verdict.model_dump(mode="json") for verdict in one.verdicts],
                "changes": [
                    {
                        "checkpoint": change.checkpoint,
                        "before": change.before.result if change.before else None,
                        "after": change.after.result,
                        "why": change.why,
                        "reason": change.after.reason,
                    }
                    for change in one.changes
                ],
            }
            for one in done
        ],
        ensure_ascii=False,
        indent=1,
    )


def same(before: Verdict | None, after: Verdict) -> bool:
    """Whether two verdicts are equal apart from their time, and from what a model's answer to one question cost."""
    if before is None or before.judging is None or after.judging is None:
        return before is not None and before.model_copy(update={"at": after.at}) == after
    if before.judging.key != after.judging.key:
        return False
    return before.model_copy(update={"at": after.at, "judging": after.judging}) == after


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
