"""What a change of grading would do: old and new graders really run over stored trials and example orders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graders.evidence import Evidence
from graders.grade import grade
from review_ui.reviewing.examples import Example, examples
from review_ui.steps import order_lines
from tasks.errors import WorkbenchError
from tasks.package import Task
from tasks.stored import Batch, StoredTrial
from tasks.trials import OUTCOMES

#: Trials that are graded for one view; the newest come first.
MOST = 60


@dataclass(frozen=True)
class Flip:
    """One trial and one checkpoint, before and after. "absent" = there is no such checkpoint."""

    who: str
    ordered: str
    checkpoint: str
    before: str
    after: str

    @property
    def flips(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True)
class Effect:
    """`trials`: how many were graded by both. `skipped`: stored trials that the old task cannot grade either."""

    trials: int
    skipped: int
    rows: tuple[Flip, ...]
    examples: tuple[Flip, ...]

    def count(self, before: str, after: str) -> int:
        """Trials' checkpoints that go from one verdict to another; "" = any other than that one."""
        return sum(row.before == before and row.after == after for row in self.rows)

    @property
    def flipped(self) -> tuple[Flip, ...]:
        return tuple(row for row in self.rows if row.flips)


def stored(batches: Iterable[Batch], task: Task) -> tuple[list[StoredTrial], int]:
    """Trials of the task as it is now, newest batch first; and how many were left out because the agent saw another
    version, or because they are not graded at all."""
    found: list[StoredTrial] = []
    skipped = 0
    for batch in batches:
        for trial in batch.trials():
            if trial.key.task != task.id or trial.outcome is None:
                continue
            if trial.outcome.agent_digest == task.agent_digest and OUTCOMES[trial.outcome.outcome].grade:
                found.append(trial)
            else:
                skipped += 1
    return found[:MOST], skipped


def effect(before: Task, after: Task, changed: Sequence[str], trials: Sequence[StoredTrial], skipped: int) -> Effect:
    """Grade every trial by both tasks, on the checkpoints named (or all where none is)."""
    rows: list[Flip] = []
    for trial in trials:
        try:
            was, now = (_results(task, trial, changed) for task in (before, after))
        except WorkbenchError:
            skipped += 1
            continue
        words = "; ".join(line.what for line in order_lines(trial.writes())[:3]) or "nothing"
        who = f"{trial.key.agent}, run {trial.key.run}"
        rows += [
            Flip(who, words, id, was.get(id, "absent"), now.get(id, "absent")) for id in dict.fromkeys([*was, *now])
        ]
    rows.sort(key=lambda row: (not row.flips, row.who))
    return Effect(len({row.who for row in rows}), skipped, tuple(rows), _examples(before, after, changed))


def _results(task: Task, trial: StoredTrial, changed: Sequence[str]) -> dict[str, str]:
    wanted = [one for one in task.checkpoints if not changed or one.id in changed]
    return {v.checkpoint: v.result for v in grade(Evidence.from_trial(task, trial), wanted)}


def _examples(before: Task, after: Task, changed: Sequence[str]) -> tuple[Flip, ...]:
    """Example orders of the changed checkpoints whose verdict is not what it was."""
    out: list[Flip] = []
    for id in changed:
        old = next((one for one in before.checkpoints if one.id == id), None)
        new = next((one for one in after.checkpoints if one.id == id), None)
        if old is None or new is None:
            continue
        was: dict[str, Example] = {one.key: one for one in examples(before, old)}
        for one in examples(after, new):
            if one.key in was and was[one.key].result != one.result:
                out.append(Flip("Example order", f"{one.words} {one.detail}", id, was[one.key].result, one.result))
    return tuple(out)
