"""One proposed change as a person decides on it: in clinical words, as a checked diff, with its consequence.

And statistics over a set of tasks: how far reviewers agreed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from authoring.applying import Consequence
from authoring.clinical import Raw, Row, checkpoint_change, consequence, field_table
from authoring.diffs import FileDiff, diff
from authoring.edits import Files, Package
from authoring.jsontext import EditError
from authoring.proposals import ProposedEdit, parse_proposal, path_in_package
from authoring.seat import Snapshot
from graders.describe import zone_of
from tasks.errors import UsageError, WorkbenchError
from tasks.package import Task, load
from tasks.review.agreement import MEASURES, Agreement, Item, agreement
from tasks.review.checklist import DIMENSIONS
from tasks.review.events import ChangeRef, Decided
from tasks.review.state import ReviewState
from tasks.structure import chart_type


@dataclass(frozen=True)
class ChangeView:
    """A change, what it does to the task as it stands, and what was decided on it.

    `sides`: the package without and with it, as far as they can be read. `read_with`: what it could only be read
    together with, "" where it can be read by itself. `unreadable`: why it cannot be read at all; its words and its
    consequence are unknown then, and the consequence says the most.
    """

    ref: ChangeRef
    status: str
    made_by: str
    rationale: str
    title: str
    rows: tuple[Row, ...]
    raw: tuple[Raw, ...]
    diffs: tuple[FileDiff, ...]
    consequence: Consequence
    decisions: Mapping[str, Decided]
    sides: tuple[Files, Files]
    read_with: Literal["", "group", "proposal"] = ""
    unreadable: str = ""


def change_view(at: Snapshot, change: str) -> ChangeView:
    """A change over the package as it stands; members of its group that it needs are applied before it.

    Raises UsageError where there is no such change, EditError where it no longer applies.
    """
    found = at.state.changes.get(change)
    if found is None:
        raise UsageError("there is no such change.", remedy="`authoring status` lists them.")
    path = path_in_package(found.proposal)
    proposal = parse_proposal(at.files.get(path, b""), where=f"{at.task_id}/{path}")
    refs = at.state.proposals[found.proposal].changes
    place = [ref.change for ref in refs].index(change)
    live = {one.ref.change for one in at.state.live_changes}
    others = [number for number, ref in enumerate(refs) if ref.change in live]
    view = edit_view(at.task_id, at.files, proposal.edits, refs, place, others)
    return replace(view, status=found.status, made_by=found.made_by, decisions=found.decisions)


def edit_view(
    task: str,
    files: Mapping[str, bytes],
    edits: Sequence[ProposedEdit],
    refs: Sequence[ChangeRef],
    place: int,
    others: Collection[int] = (),
) -> ChangeView:
    """The edit at `place` of a proposal, put up or not, over a package; members of its group that it needs are applied
    before it. Raises EditError where it does not apply.

    With it alone the package may not be readable: a checkpoint quotes words that another edit brings in. It is read
    with the members of its group then, or with those of the proposal that still stand (`others`).
    """
    proposed, ref = edits[place], refs[place]
    group = [n for n, one in enumerate(refs) if n == place or (ref.group and one.group == ref.group)]
    earlier = [n for n in group if n < place]
    start = before = Package(files)
    try:
        after = before.apply(proposed.edit)
    except EditError:
        before = _with(start, edits, earlier)
        after = before.apply(proposed.edit)
    old, new = before.files(), after.files()
    read = _read(task, start, (old, new), edits, place, group, others)
    title, rows, raw = _in_words(ref.unit, before, after, read.tasks)
    meaning = consequence(*read.tasks) if read.tasks else Consequence(agent=True, grade=True)
    return ChangeView(
        ref, "undecided", "", proposed.rationale, title, rows, raw, diff(old, new), meaning, {}, read.sides,
        read.together, read.fault,
    )  # fmt: skip


@dataclass(frozen=True)
class _Read:
    """The package without and with a change, read where that is possible."""

    sides: tuple[Files, Files]
    tasks: tuple[Task, Task] | None
    together: Literal["", "group", "proposal"] = ""
    fault: str = ""


def _read(
    task: str,
    start: Package,
    alone: tuple[Files, Files],
    edits: Sequence[ProposedEdit],
    place: int,
    group: Sequence[int],
    others: Collection[int],
) -> _Read:
    """By itself, else after the members of its group before it, else with all of them, else with `others` too."""
    try:
        return _Read(alone, _loaded(task, alone))
    except WorkbenchError as error:
        fault = str(error)
    earlier = [n for n in group if n < place]
    tries: list[tuple[Literal["group", "proposal"], list[int], list[int]]] = [
        ("group", earlier, [*earlier, place]),
        ("group", [], list(group)),
        ("proposal", [], sorted({*group, *others})),
    ]
    for together, without, with_ in tries:
        try:
            sides = _with(start, edits, without).files(), _with(start, edits, with_).files()
            return _Read(sides, _loaded(task, sides), together)
        except WorkbenchError:
            continue
    return _Read(alone, None, fault=fault)


def _loaded(task: str, sides: tuple[Files, Files]) -> tuple[Task, Task]:
    return load(sides[0], where=task), load(sides[1], where=task)


def _with(package: Package, edits: Sequence[ProposedEdit], places: Iterable[int]) -> Package:
    for number in places:
        package = package.apply(edits[number].edit)
    return package


def _in_words(
    unit: str, before: Package, after: Package, tasks: tuple[Task, Task] | None
) -> tuple[str, tuple[Row, ...], tuple[Raw, ...]]:
    path, _, inner = unit.partition("#")
    if inner and chart_type(path):
        table = field_table(before.unit(unit), after.unit(unit), zone_of(tasks[1]) if tasks else None)
        return table.title, table.rows, table.raw
    if path == "checkpoints.toml" and inner and tasks:
        try:
            told = checkpoint_change(*tasks, inner)
        except WorkbenchError:
            return "", (), ()
        return told.title, told.rows, told.raw
    if path == "task.toml" and inner:
        was, now = (package.unit(unit) for package in (before, after))
        texts = ["not there" if one is None else one.decode() for one in (was, now)]
        return "", (Row(inner, unit, texts[0], texts[1]),), ()
    return "", (), ()


def agreement_by_dimension(states: Sequence[ReviewState], measure: str = "alpha") -> dict[str, Agreement]:
    """How far the verdicts of a round agree, by dimension: an item is one task in one round.

    Raises UsageError for a measure that is none, and for kappa where more than two judged.
    """
    return {name: _agreement(measure, _verdicts(states, name)) for name in DIMENSIONS}


def agreement_by_checkpoint(states: Sequence[ReviewState], measure: str = "alpha") -> dict[str, Agreement]:
    """How far the ratings of checkpoints agree, by task: an item is one checkpoint in one round; "all" = all tasks."""
    by_task = {state.task: _ratings(state) for state in states}
    items = [item for found in by_task.values() for item in found]
    return {task: _agreement(measure, found) for task, found in by_task.items()} | {"all": _agreement(measure, items)}


def _agreement(measure: str, items: Sequence[Item]) -> Agreement:
    if measure not in MEASURES:
        raise UsageError(f"{measure!r} is no measure of agreement.", remedy=f"They are: {', '.join(MEASURES)}.")
    try:
        return agreement(measure, items)
    except ValueError as fault:
        raise UsageError(f"{fault}.") from None


def _verdicts(states: Sequence[ReviewState], dimension: str) -> list[Item]:
    items: dict[tuple[str, int], dict[str, str]] = {}
    for state in states:
        for (round, person), review in state.reviews.items():
            for verdict in review.submitted.verdicts if review.submitted else ():
                if verdict.dimension == dimension:
                    items.setdefault((state.task, round), {})[person] = verdict.verdict
    return list(items.values())


def _ratings(state: ReviewState) -> list[Item]:
    items: dict[tuple[int, str], dict[str, str]] = {}
    for (round, person), review in state.reviews.items():
        for rating in review.submitted.ratings if review.submitted else ():
            items.setdefault((round, rating.checkpoint), {})[person] = rating.rating
    return list(items.values())
