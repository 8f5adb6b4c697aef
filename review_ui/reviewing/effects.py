"""What a change of grading would do: old and new graders really run over stored trials and example orders.

Sixty trials take up to half a minute, so a page does not do it: it starts this module as a job and reads what it left,

    python -m review_ui.reviewing.effects TASK CHANGE --at COMMIT --job ID

jobs/<id>/effect.json. Code that was edited runs in the sandbox, as it does wherever it is not our own.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from authoring.views import ChangeView, change_view
from graders.evidence import Evidence
from graders.grade import grade
from graders.score import task_result
from review_ui.reviewing.examples import Example, examples
from review_ui.steps import OrderLine, order_lines
from tasks.declarations import BUILT_IN_TRUTHS, Checkpoint
from tasks.errors import WorkbenchError
from tasks.package import Task, load
from tasks.stored import Batch, StoredTrial, write_whole
from tasks.trials import OUTCOMES, ResourceCite, Verdict

#: Trials that are graded for one view; the newest come first.
MOST = 60
#: Orders of a trial that a row names.
_ORDERS = 3
FILE = "effect.json"
#: What a grader says before its reason, and its name for an example: neither tells a reader anything.
_BARE = re.compile(r"^no [a-z ]+ as it was asked: |\b[A-Z]\w+/example-\d+:? ")


@dataclass(frozen=True)
class Flip:
    """Trials of one agent that ordered the same and are judged the same, before and after.

    `checkpoint`: which judges; "" = all together, the trial as a whole. `runs`: how many. "absent" = there is no such
    checkpoint. `why`: the new grader's reason where it judges otherwise.
    """

    who: str
    ordered: str
    checkpoint: str
    before: str
    after: str
    why: str = ""
    runs: int = 1

    @property
    def flips(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True)
class Effect:
    """`trials`: how many were graded by both. `skipped`: stored trials that saw another version of the task, or that
    are not graded at all. `older`: how many more there are than the newest that were taken. `rows`: by checkpoint.
    `whole`: results of whole trials that would be other ones."""

    trials: int
    skipped: int
    older: int
    rows: tuple[Flip, ...]
    whole: tuple[Flip, ...]
    examples: tuple[Flip, ...]

    def count(self, before: str, after: str) -> int:
        """Verdicts on trials that go from one to another."""
        return sum(row.runs for row in self.rows if (row.before, row.after) == (before, after))

    @property
    def flipped(self) -> tuple[Flip, ...]:
        return tuple(row for row in self.rows if row.flips)


def dump(found: Effect) -> str:
    """As it is kept in the job's folder."""
    return json.dumps(asdict(found), ensure_ascii=False)


def parsed(text: str) -> Effect:
    """What was kept."""
    said = json.loads(text)
    rows, whole, shown = (tuple(Flip(**row) for row in said[name]) for name in ("rows", "whole", "examples"))
    return Effect(said["trials"], said["skipped"], said["older"], rows, whole, shown)


def packages(task_id: str, view: ChangeView) -> tuple[Task, Task]:
    """The task without and with a change. Raises PackageError where it cannot be loaded with it."""
    before, after = view.sides
    return load(before, where=task_id), load(after, where=task_id)


def touched(before: Task, after: Task, paths: Iterable[str]) -> tuple[str, ...]:
    """The checkpoints whose verdict may be another one: other declaration, other code behind it, other examples."""
    old = {one.id: one for one in before.checkpoints}
    new = {one.id: one for one in after.checkpoints}
    code = before.code != after.code
    changed = set(paths)
    return tuple(
        id
        for id in dict.fromkeys([*old, *new])
        if (one := new.get(id)) is None
        or one != old.get(id)
        or (code and _by_code(one))
        or changed & {*one.must_match, *one.must_not_match}
    )


def _by_code(checkpoint: Checkpoint) -> bool:
    """Whether a function of checkpoints.py judges it, or says the truth that it is measured by."""
    own_truth = checkpoint.truth is not None and checkpoint.truth not in BUILT_IN_TRUTHS
    return checkpoint.function is not None or own_truth


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
    return found, skipped


def effect(
    before: Task,
    after: Task,
    changed: Sequence[str],
    trials: Sequence[StoredTrial],
    skipped: int = 0,
    tell: Callable[[str], None] = lambda what: None,
) -> Effect:
    """Grade the newest trials by both tasks, on the checkpoints named. `tell` hears of each trial as it is done."""
    rows: list[Flip] = []
    taken = trials[:MOST] if changed else []
    graded = 0
    for trial in taken:
        try:
            rows += _of(before, after, changed, trial)
            graded += 1
        except WorkbenchError:
            skipped += 1
        tell(f"{trial.key.agent}, run {trial.key.run}")
    single = _grouped([row for row in rows if row.checkpoint])
    whole = _grouped([row for row in rows if not row.checkpoint and row.flips])
    return Effect(graded, skipped, len(trials) - len(taken), single, whole, _examples(before, after, changed))


def _of(before: Task, after: Task, changed: Sequence[str], trial: StoredTrial) -> list[Flip]:
    evidence = Evidence.from_trial(before, trial)
    was = _verdicts(before, evidence, changed)
    now = _verdicts(after, replace(evidence, task=after), changed)
    lines = order_lines(evidence.created)
    out = []
    for id in changed:
        old, new = was.get(id), now.get(id)
        ordered = _ordered(lines, [one for one in (old, new) if one])
        results = [one.result if one else "absent" for one in (old, new)]
        why = _in_words(new.reason, lines) if new and results[0] != results[1] else ""
        out.append(Flip(trial.key.agent, ordered, id, results[0], results[1], why))
    # What a person gave by hand, and every checkpoint that is not touched, count as they stand.
    given = trial.verdicts()
    ends = [task_result(task.checkpoints, [*given, *some.values()]) for task, some in ((before, was), (after, now))]
    out.append(Flip(trial.key.agent, _ordered(lines, ()), "", ends[0].result, ends[1].result, ends[1].reason))
    return out


def _verdicts(task: Task, evidence: Evidence, changed: Sequence[str]) -> dict[str, Verdict]:
    wanted = [one for one in task.checkpoints if one.id in changed]
    return {one.checkpoint: one for one in grade(evidence, wanted)}


def _ordered(lines: Sequence[OrderLine], verdicts: Sequence[Verdict]) -> str:
    """What it ordered, in words: what the verdicts rest on first."""
    cited = {cite.ref for verdict in verdicts for cite in verdict.cites if isinstance(cite, ResourceCite)}
    shown = sorted(lines, key=lambda line: line.write.reference not in cited)
    words = "; ".join(line.what for line in shown[:_ORDERS])
    more = len(lines) - _ORDERS
    return f"{words}; and {more} more" if more > 0 else words or "nothing"


def _in_words(reason: str, lines: Sequence[OrderLine] = ()) -> str:
    """A reason that names what the trial wrote by what it orders, not by its id."""
    for line in lines:
        reason = reason.replace(line.write.reference, line.what)
    return _BARE.sub("", reason)


def _grouped(rows: Sequence[Flip]) -> tuple[Flip, ...]:
    """Runs that came to the same stand in one row; flips first."""
    found: dict[Flip, int] = {}
    for row in rows:
        found[row] = found.get(row, 0) + 1
    every = [replace(row, runs=runs) for row, runs in found.items()]
    return tuple(sorted(every, key=lambda row: (not row.flips, row.who)))


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
                words = f"{one.words} ({one.detail})" if one.detail else one.words
                out.append(Flip("Example order", words, id, was[one.key].result, one.result, _in_words(one.reason)))
    return tuple(out)


# ---- the job --------------------------------------------------------------------------------------------------------


def main() -> None:
    """Work an effect out and leave it in the job's folder."""
    from authoring.library import open_store
    from authoring.seat import Snapshot
    from review_ui.runs import known
    from tasks.progress import to_job
    from tasks.workspace import Workspace

    parser = argparse.ArgumentParser(prog="python -m review_ui.reviewing.effects")
    parser.add_argument("task")
    parser.add_argument("change")
    parser.add_argument("--at", required=True)
    parser.add_argument("--job", required=True)
    given = parser.parse_args()
    workspace = Workspace.find()
    folder: Path = workspace.jobs / given.job
    progress = to_job(folder)
    try:
        with open_store(workspace).at(given.at) as view:
            at = Snapshot(given.task, view)
            shown = change_view(at, given.change)
            before, after = packages(given.task, shown)
        trials, skipped = stored(known(workspace.runs), before)
        changed = touched(before, after, [diff.path for diff in shown.diffs])
        progress.begin("Old and new graders", min(len(trials), MOST))
        found = effect(before, after, changed, trials, skipped, tell=progress.step)
    except WorkbenchError as fault:
        progress.fail(str(fault))
        raise SystemExit(fault.exit_code) from None
    write_whole(folder / FILE, dump(found))
    progress.end("Done")


if __name__ == "__main__":
    main()
