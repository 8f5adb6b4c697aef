"""What a change of one resource bears on: second units, lines that decide, and texts that still say the old value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from authoring.contradictions import Contradiction, Text, contradictions
from authoring.quantities import Quantity, quantity_at, second_unit
from authoring.thresholds import Line, crossings
from graders import truths
from graders.analytes import unit_words
from graders.evidence import Evidence
from tasks.errors import WorkbenchError
from tasks.fhir.chart import Overlay, Records
from tasks.fhir.elements import check
from tasks.fhir.resources import Resource
from tasks.package import Task


@dataclass(frozen=True)
class Value:
    """A changed quantity: the second units of both sides, "" where there is none, and where the new one lies."""

    old: Quantity | None
    new: Quantity | None

    @property
    def second(self) -> tuple[str, str]:
        """Old and new in the second usual unit."""
        return second_unit(self.old) if self.old else "", second_unit(self.new) if self.new else ""


@dataclass(frozen=True)
class Bearing:
    """`values` by JSON pointer; `lines`: what decides about them, crossed or not; `unnamed`: the quantities for which
    no checkpoint names a threshold; `answers`: right answers of checkpoints that move; `faults`: what R4 has against
    the new resource; `contradictions`: texts that still say the old value."""

    values: Mapping[str, Value]
    lines: tuple[Line, ...] = ()
    unnamed: tuple[str, ...] = ()
    answers: tuple[Line, ...] = ()
    faults: tuple[str, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()


def values_of(was: bytes | None, now: bytes | None, pointers: Sequence[str]) -> dict[str, Value]:
    """The quantities of a resource that changed, its JSON line before and after (None = not there), by pointer."""
    bodies = [Resource.parse(one.decode()).body if one else {} for one in (was, now)]
    sides = {pointer: [quantity_at(body, pointer) for body in bodies] for pointer in pointers}
    return {pointer: Value(old, new) for pointer, (old, new) in sides.items() if old or new}


def changed_chart(before: Task, after: Task, now: bytes | None) -> Records:
    """The chart after a change of one resource to the line `now`: the one before with it on top, which spares indexing
    it anew; for a resource that is taken out (None), the chart of the changed package."""
    if now is None:
        return after.chart
    overlay = Overlay(before.chart)
    overlay.add(Resource.parse(now.decode()))
    return overlay


def bearing(
    before: Task,
    after: Task,
    chart: Records,
    lines: tuple[bytes | None, bytes | None],
    pointers: Sequence[str],
    title: Mapping[str, str],
    written: Sequence[Text],
) -> Bearing:
    """What the change of one resource means, from the package without it to the one with it.

    `chart`: after the change (`changed_chart`). `lines`: the resource's JSON line before and after, None = not there.
    `pointers`: the fields that changed. `title`: names of checkpoints. `written`: `texts_of` the task.
    """
    was, now = lines
    values = values_of(was, now, pointers)
    found: list[Line] = []
    unnamed: list[str] = []
    for value in values.values():
        crossed = crossings(value.old, value.new, after.checkpoints, title)
        found += crossed
        known = value.new or value.old
        if known is not None and not any(line.checkpoint for line in crossed):
            unnamed.append(known.name or "this value")
    faults = tuple(f"{one.path}: {one.message}" for one in check(Resource.parse(now.decode()).body)) if now else ()
    return Bearing(
        values,
        tuple(found),
        tuple(dict.fromkeys(unnamed)),
        tuple(_answers(before, after, chart, title)),
        faults,
        tuple(contradictions(written, chart, was, now, pointers)),
    )


def _answers(before: Task, after: Task, chart: Records, title: Mapping[str, str]) -> list[Line]:
    """Right answers that checkpoints compute from the chart and that the change moves."""
    out = []
    for checkpoint in after.checkpoints:
        if checkpoint.truth is None:
            continue
        old, new = _truth(before, before.chart, checkpoint.truth), _truth(after, chart, checkpoint.truth)
        if old is None or new is None or old == new:
            continue
        tolerance = Decimal(str(checkpoint.tolerance or 0))
        crossed = abs(new - old) > tolerance
        within = f"its tolerance of {tolerance.normalize():f}" if tolerance else "no tolerance"
        answer = (
            f"{'yes: beyond' if crossed else 'no, within'} {within}" if tolerance else "yes: another answer is right"
        )
        unit = f" {unit_words(checkpoint.unit)}" if checkpoint.unit else ""
        said = [f"{one:.1f}{unit}" for one in (old, new)]
        name = f"{title.get(checkpoint.id, checkpoint.id)}, right answer"
        out.append(Line(name, said[0], said[1], answer, crossed, checkpoint.id))
    return out


def _truth(task: Task, chart: Records, name: str) -> Decimal | None:
    """A built-in truth over the task's chart; None for code of the task's own, and where the chart does not give it."""
    try:
        value = truths.compute(name, Evidence(task=task, chart=chart)).value
    except WorkbenchError:
        return None
    return Decimal(str(value)) if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else None
