"""Calibration: how far a judge agrees with physicians, by kind of checkpoint; and a judge tried on example texts.

A physician judges one checkpoint of one stored trial at a time, blind to the judge and to whose trial it is (`queue`,
`give`); the verdict is appended to the trial, above every grader's. Agreement is never only pooled: a judge that reads
notes well may reason badly. Errors and "needs review" of the judge are no verdicts and are counted beside.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from graders.evidence import Evidence
from graders.intervals import Interval, rate_interval
from graders.judge import Judge
from tasks.declarations import Checkpoint, Rubric
from tasks.errors import UsageError, WorkbenchError
from tasks.package import Task, TaskSource
from tasks.people import Person
from tasks.review.agreement import cohen
from tasks.review.permissions import conflict, refuse_unverified, require
from tasks.stored import Batch, StoredTrial
from tasks.trials import OUTCOMES, Cite, ErrorKind, Grader, Verdict

if TYPE_CHECKING:
    import pandas as pd

Level = Literal["pass", "partial", "fail"]
#: Grader.version of a person's verdict: the rules that people follow have no version of the code.
BY_HAND = "by hand"


# ---- physicians' verdicts -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """One checkpoint of one trial to be judged, without the judge's verdict and without the agent's name.

    `trial` is for `give` alone; nothing of its path or key is to be shown.
    """

    trial: StoredTrial
    task: Task
    checkpoint: Checkpoint
    rubric: Rubric
    text: str | None


def queue(
    batches: Iterable[Batch], source_of: Callable[[Batch], TaskSource], person: Person, *, verified: bool = False
) -> list[Case]:
    """What this person can still judge: judge checkpoints of finished trials without a verdict of theirs, in an order
    that says nothing of agent, run or judge (by hash). Tasks that the person may not judge are left out.

    Raises NotAllowed where the person's roles do not cover grading by hand.
    """
    require(person, "grade_by_hand")
    found: list[tuple[str, Case]] = []
    for batch in batches:
        source = source_of(batch)
        loaded: dict[str, Task | None] = {}
        for trial in batch.trials():
            id = trial.key.task
            if id not in loaded:
                loaded[id] = _may_judge(source, id, person, verified=verified)
            task = loaded[id]
            if task is not None and _is_gradable(trial, task):
                found += [(_mixed(batch, trial, case.checkpoint.id), case) for case in _open(trial, task, person)]
    return [case for _, case in sorted(found, key=lambda one: one[0])]


def _may_judge(source: TaskSource, id: str, person: Person, *, verified: bool) -> Task | None:
    try:
        task = source.load(id)
        refuse_unverified(task.meta.data_class, verified=verified)
    except WorkbenchError:
        return None
    return None if conflict(person, id, makers=()) else task


def _is_gradable(trial: StoredTrial, task: Task) -> bool:
    outcome = trial.outcome
    return outcome is not None and OUTCOMES[outcome.outcome].grade and outcome.agent_digest == task.agent_digest


def _open(trial: StoredTrial, task: Task, person: Person) -> list[Case]:
    judged = {
        verdict.checkpoint
        for verdict in trial.verdicts()
        if verdict.grader.kind == "person" and verdict.grader.name == person.id
        and verdict.grade_digest == task.grade_digest
    }  # fmt: skip
    wanted = [one for one in task.checkpoints if one.grader == "judge" and one.rubric and one.id not in judged]
    if not wanted:
        return []
    evidence = Evidence(task=task, chart=task.chart, files=trial.files())
    return [Case(trial, task, one, one.rubric, evidence.text(one.file or "")) for one in wanted if one.rubric]


def _mixed(batch: Batch, trial: StoredTrial, checkpoint: str) -> str:
    return hashlib.sha256(f"{batch.name}\0{trial.key.model_dump_json()}\0{checkpoint}".encode()).hexdigest()


def give(
    trial: StoredTrial,
    task: Task,
    checkpoint: str,
    result: Literal["pass", "partial", "fail", "ungraded"],
    reason: str,
    person: Person,
    *,
    cause: ErrorKind | None = None,
    cites: Sequence[Cite] = (),
    at: datetime | None = None,
    verified: bool = False,
) -> Verdict:
    """Append a person's verdict on one checkpoint of a stored trial, with the reason; it stands above every grader's.

    Any checkpoint can be judged by a person. `cause`: the earliest cause of what went wrong. `ungraded`: cannot be
    judged. Raises NotAllowed, UsageError (no such checkpoint, no reason, a level that the rubric has not, a trial of
    another version of the task), EnvironmentFault where the disk refuses.
    """
    require(person, "grade_by_hand")
    refuse_unverified(task.meta.data_class, verified=verified)
    if why := conflict(person, task.id, makers=()):
        raise UsageError(f"{why}.", remedy="Somebody else has to judge it.")
    found = next((one for one in task.checkpoints if one.id == checkpoint), None)
    if found is None:
        known = ", ".join(one.id for one in task.checkpoints)
        raise UsageError(f"the task has no checkpoint {checkpoint[:20]!r}.", where=task.id, remedy=f"It has: {known}.")
    if not reason.strip():
        raise UsageError("a verdict needs a reason.", where=checkpoint, remedy="Say in a sentence why.")
    if result not in ("pass", "partial", "fail", "ungraded"):
        raise UsageError(f"{result[:20]!r} is no verdict.", remedy="Say pass, partial, fail or ungraded.")
    if result == "partial" and found.rubric is not None and found.rubric.partial is None:
        raise UsageError("this rubric has no level between pass and fail.", where=checkpoint)
    if not _is_gradable(trial, task):
        raise UsageError("the trial is not finished, or ran on another version of the task.", where=task.id)
    verdict = Verdict(
        checkpoint=checkpoint,
        result=result,
        reason=reason.strip(),
        cites=tuple(cites),
        grader=Grader(kind="person", name=person.id, version=BY_HAND),
        at=at or datetime.now(UTC),
        grade_digest=task.grade_digest,
        cause=cause,
    )
    trial.add_verdicts([verdict])
    return verdict


# ---- agreement ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """The same checkpoint of the same trial judged twice: by a judge (or a physician), and by a physician."""

    task: str
    kind: str
    first: str
    one: str
    other: str


@dataclass(frozen=True)
class Agreed:
    """Agreement on one kind of checkpoint ("all" pools them).

    `same`: the share of equal verdicts, with its interval over tasks; `kappa`: Cohen's, None where it is not defined.
    `too_kind`: of what the physician did not pass, the share that the judge passed; `too_hard`: of what the physician
    passed, the share that the judge did not pass. None without such a case. `silent`: errors and "needs review" of the
    judge beside a physician's verdict, which are in no share.
    """

    first: str
    kind: str
    pairs: int
    tasks: int
    same: float | None
    same_interval: Interval | None
    kappa: float | None
    too_kind: float | None
    too_kind_interval: Interval | None
    too_hard: float | None
    too_hard_interval: Interval | None
    silent: int


def kind_of(checkpoint: Checkpoint) -> str:
    """What agreement is told by: the kind of reasoning, else the capability."""
    return checkpoint.kind or checkpoint.capability


def pairs_of(trial: StoredTrial, task: Task) -> list[Pair]:
    """Judge against each physician, and physicians against each other ("physicians"), on one trial."""
    verdicts = [one for one in trial.verdicts() if one.grade_digest == task.grade_digest]
    found = []
    for checkpoint in task.checkpoints:
        mine = [one for one in verdicts if one.checkpoint == checkpoint.id]
        judged = [one for one in mine if one.grader.kind != "person" and one.judging is not None]
        people = {one.grader.name: one.result for one in mine if one.grader.kind == "person"}
        people = {name: result for name, result in people.items() if result in ("pass", "partial", "fail")}
        kind = kind_of(checkpoint)
        if judged and judged[-1].judging is not None:
            model = judged[-1].judging.model
            found += [Pair(task.id, kind, model, judged[-1].result, result) for result in people.values()]
        names = sorted(people)
        found += [
            Pair(task.id, kind, "physicians", people[one], people[other])
            for place, one in enumerate(names)
            for other in names[place + 1 :]
        ]
    return found


def agreement(pairs: Iterable[Pair]) -> list[Agreed]:
    """A row a judge and kind, then one over all kinds; judges by name, "physicians" among themselves last."""
    by_first: dict[str, list[Pair]] = {}
    for pair in pairs:
        by_first.setdefault(pair.first, []).append(pair)
    found = []
    for first in sorted(by_first, key=lambda name: (name == "physicians", name)):
        mine = by_first[first]
        for kind in sorted({pair.kind for pair in mine}):
            found.append(_agreed(first, kind, [pair for pair in mine if pair.kind == kind]))
        found.append(_agreed(first, "all", mine))
    return found


def _agreed(first: str, kind: str, pairs: Sequence[Pair]) -> Agreed:
    told = [pair for pair in pairs if pair.one in ("pass", "partial", "fail")]
    same, same_interval = _share(told, lambda pair: pair.one == pair.other)
    missed = [pair for pair in told if pair.other != "pass"]
    right = [pair for pair in told if pair.other == "pass"]
    kind_share, kind_interval = _share(missed, lambda pair: pair.one == "pass")
    hard_share, hard_interval = _share(right, lambda pair: pair.one != "pass")
    return Agreed(
        first=first,
        kind=kind,
        pairs=len(told),
        tasks=len({pair.task for pair in told}),
        same=same,
        same_interval=same_interval,
        kappa=cohen([{"first": pair.one, "second": pair.other} for pair in told]),
        too_kind=kind_share,
        too_kind_interval=kind_interval,
        too_hard=hard_share,
        too_hard_interval=hard_interval,
        silent=len(pairs) - len(told),
    )


def _share(pairs: Sequence[Pair], holds: Callable[[Pair], bool]) -> tuple[float | None, Interval | None]:
    if not pairs:
        return None, None
    wholes = Counter(pair.task for pair in pairs)
    parts = Counter(pair.task for pair in pairs if holds(pair))
    interval = rate_interval(
        [float(parts[task]) for task in wholes], [float(n) for n in wholes.values()], worth=float(len(pairs))
    )
    return sum(parts.values()) / len(pairs), interval


_COLUMNS = (
    "first", "kind", "pairs", "tasks", "same", "same_low", "same_high", "kappa", "too_kind", "too_kind_low",
    "too_kind_high", "too_hard", "too_hard_low", "too_hard_high", "silent",
)  # fmt: skip


def agreement_rows(found: Iterable[Agreed]) -> list[dict[str, Any]]:
    """The rows as plain values, for JSON and tables."""
    rows = []
    for one in found:
        row: dict[str, Any] = {"first": one.first, "kind": one.kind, "pairs": one.pairs, "tasks": one.tasks}
        for name in ("same", "too_kind", "too_hard"):
            interval: Interval | None = getattr(one, f"{name}_interval")
            row |= {
                name: getattr(one, name),
                f"{name}_low": interval.low if interval else None,
                f"{name}_high": interval.high if interval else None,
            }
        rows.append({key: (row | {"kappa": one.kappa, "silent": one.silent})[key] for key in _COLUMNS})
    return rows


def agreement_frame(found: Iterable[Agreed]) -> pd.DataFrame:
    """The rows as a DataFrame."""
    import pandas as pd

    return pd.DataFrame(agreement_rows(found), columns=list(_COLUMNS))


def agreement_text(found: Sequence[Agreed]) -> str:
    """The rows as text."""
    if not found:
        return "No checkpoint has been judged by a judge and a physician, or by two physicians."
    lines = [
        f"{'judge':<28} {'kind':<24} {'pairs':>5} {'tasks':>5}  {'same':<22} {'kappa':>6}  "
        f"{'passed what they did not':<25} not passed what they did"
    ]
    for one in found:
        kappa = "-" if one.kappa is None else f"{one.kappa:.2f}"
        lines.append(
            f"{one.first:<28} {one.kind:<24} {one.pairs:>5} {one.tasks:>5}  {_told(one.same, one.same_interval):<22} "
            f"{kappa:>6}  {_told(one.too_kind, one.too_kind_interval):<25} {_told(one.too_hard, one.too_hard_interval)}"
            + (f"   ({one.silent} without a verdict of the judge)" if one.silent else "")
        )
    lines += ["", "95% intervals over tasks. Under 30 pairs of a kind they warn rather than measure."]
    return "\n".join(lines)


def _told(value: float | None, interval: Interval | None) -> str:
    if value is None or interval is None:
        return "-"
    return f"{100 * value:.0f}% ({100 * interval.low:.0f} to {100 * interval.high:.0f})"


# ---- example texts --------------------------------------------------------------------------------------------------

_EXAMPLE = re.compile(
    r"^examples/(?P<checkpoint>cp[0-9]{1,2}[a-z]?)-(?P<level>pass|partial|fail)(?:-[^/]*)?\.(?:md|txt)$"
)


@dataclass(frozen=True)
class Tried:
    """One example text put to the judge: what it should be, what the judge said, and why."""

    task: str
    checkpoint: str
    path: str
    wanted: Level
    got: str
    reason: str

    @property
    def right(self) -> bool:
        """Whether the judge said what the example is an example of."""
        return self.got == self.wanted


def examples_of(task: Task, checkpoint: Checkpoint) -> list[tuple[str, Level, str]]:
    """(path, level, text) of a judge checkpoint's example texts: examples/<checkpoint>-<pass|partial|fail>[-…].md."""
    found: list[tuple[str, Level, str]] = []
    for path, data in sorted(task.examples.items()):
        match = _EXAMPLE.match(path)
        if match and match["checkpoint"] == checkpoint.id:
            found.append((path, match["level"], data.decode("utf-8", "replace")))  # type: ignore[arg-type]
    return found


def try_examples(task: Task, judge: Judge) -> list[Tried]:
    """Every example text of every judge checkpoint, put to the judge as an agent's deliverable would be."""
    found = []
    for checkpoint in task.checkpoints:
        if checkpoint.grader != "judge":
            continue
        for path, wanted, text in examples_of(task, checkpoint):
            evidence = Evidence(task=task, chart=task.chart, files={checkpoint.file or "": text})
            try:
                ruling = judge.rule(checkpoint, evidence)
            except WorkbenchError as fault:
                found.append(Tried(task.id, checkpoint.id, path, wanted, "error", str(fault)))
                continue
            found.append(Tried(task.id, checkpoint.id, path, wanted, ruling.result, ruling.reason))
    return found


def without_examples(task: Task) -> list[str]:
    """Judge checkpoints that lack an example text of one of their levels: such a judge has not been tried there."""
    lacking = []
    for checkpoint in task.checkpoints:
        if checkpoint.grader == "judge" and checkpoint.rubric is not None:
            levels = {"pass", "fail"} | ({"partial"} if checkpoint.rubric.partial else set())
            if missing := sorted(levels - {level for _, level, _ in examples_of(task, checkpoint)}):
                lacking.append(f"{task.id} {checkpoint.id}: no example text of {', '.join(missing)}")
    return lacking


def tried_text(tried: Sequence[Tried], lacking: Sequence[str]) -> str:
    """The trials of examples as text; what is wrong comes with the judge's reason."""
    lines = []
    for one in tried:
        lines.append(
            f"{'ok   ' if one.right else 'WRONG'}  {one.task} {one.checkpoint} {one.path}: "
            f"{one.wanted}, judge: {one.got}"
        )
        if not one.right:
            lines.append(f"       {one.reason}")
    lines += lacking
    right = sum(one.right for one in tried)
    lines.append(f"{right} of {len(tried)} example texts judged as they should be.")
    return "\n".join(lines)
