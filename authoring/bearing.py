"""What a change of one resource bears on: second units, lines that decide, and texts that still say the old value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from authoring.contradictions import Contradiction, Text, contradictions
from authoring.quantities import Quantity, quantity_at, same_unit, second_unit
from authoring.thresholds import Line, crossings
from graders.analytes import unit_words
from graders.evidence import Evidence
from graders.hybrid import Expected, agent_value
from graders.lab_units import convert
from tasks.declarations import Checkpoint
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
    the new resource; `contradictions`: texts that still say the old value; `units`: units of the new resource whose
    code is another unit, (as written, as coded)."""

    values: Mapping[str, Value]
    lines: tuple[Line, ...] = ()
    unnamed: tuple[str, ...] = ()
    answers: tuple[Line, ...] = ()
    faults: tuple[str, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    units: tuple[tuple[str, str], ...] = ()


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
        if known is not None and not known.drug and not any(line.checkpoint for line in crossed):
            unnamed.append(known.name or "this value")
    # A range that changes alone may move the flag of its value, and nothing else.
    ranged = values_of(was, now, [one for one in _ranged(pointers) if one not in values])
    found += [line for one in ranged.values() for line in crossings(one.old, one.new, (), title)]
    body = Resource.parse(now.decode()).body if now else {}
    faults = tuple(f"{one.path}: {one.message}" for one in check(body)) if body else ()
    return Bearing(
        values,
        tuple(found),
        tuple(dict.fromkeys(unnamed)),
        tuple(_answers(before, after, chart, title)),
        faults,
        tuple(contradictions(written, chart, was, now, pointers)),
        tuple(dict.fromkeys(_other_units(body))),
    )


def _ranged(pointers: Sequence[str]) -> list[str]:
    """The values whose reference range stands at one of these pointers."""
    found = (re.match(r"(.*)/referenceRange(?:/|$)", one) for one in pointers)
    return list(dict.fromkeys(f"{one[1]}/valueQuantity" for one in found if one))


def _other_units(value: Any) -> Iterator[tuple[str, str]]:
    """(unit, code) of each quantity in a resource where the two are different units."""
    if isinstance(value, Mapping):
        unit, code = value.get("unit"), value.get("code")
        if isinstance(unit, str) and isinstance(code, str) and same_unit(unit, code) is False:
            yield unit, code
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for one in inner:
        yield from _other_units(one)


def _answers(before: Task, after: Task, chart: Records, title: Mapping[str, str]) -> list[Line]:
    """Right answers that checkpoints compute from the chart and that the change moves, as the grader compares them."""
    out = []
    for checkpoint in after.checkpoints:
        if checkpoint.truth is None:
            continue
        old, new = _expected(before, before.chart, checkpoint), _expected(after, chart, checkpoint)
        name = f"{title.get(checkpoint.id, checkpoint.id)}, right answer"
        if old is None or new is None:
            if old is not None or new is not None:
                said = [_with_unit(one, _plain(one.value)) if one else "cannot be computed" for one in (old, new)]
                answer = "yes: there is none any more" if old else "yes: there is one now"
                out.append(Line(name, said[0], said[1], answer, crossed=True, checkpoint=checkpoint.id))
            continue
        moved = _in_unit_of(old, new)
        if moved == new.value and old.unit == new.unit:
            continue
        out.append(_answer(checkpoint, old, new, moved, name))
    return out


def _answer(checkpoint: Checkpoint, old: Expected, new: Expected, moved: Decimal | None, name: str) -> Line:
    """Before and after, to as many places as show what is decided. `moved`: the old value in the unit of the new."""
    tolerance = Decimal(str(checkpoint.tolerance or 0))
    crossed = moved is None or abs(new.value - moved) > tolerance
    if moved is None:
        answer, said = "yes: another kind of unit is right", [_plain(one.value) for one in (old, new)]
    elif old.unit != new.unit and not crossed:
        # The value stays, not how the grader reads a number that is written without its unit.
        crossed, said = True, [_plain(one.value) for one in (old, new)]
        answer = f"yes: the same value, but a number without a unit is read as {unit_words(new.unit) or 'a plain one'}"
    else:
        within = f"its tolerance of {_plain(tolerance)}"
        answer = f"{'yes: beyond' if crossed else 'no, within'} {within}"
        if not tolerance:
            answer = "yes: another answer is right"
        places = _places(old.value if old.unit == new.unit else moved, new.value, tolerance)
        said = [f"{one.value:.{places}f}" for one in (old, new)]
    return Line(name, _with_unit(old, said[0]), _with_unit(new, said[1]), answer, crossed, checkpoint.id)


def _places(old: Decimal, new: Decimal, tolerance: Decimal) -> int:
    """The places of the tolerance, one at least for what is no whole number, and more where rounding would hide on
    which side of it two values lie."""
    whole = all(one == one.to_integral_value() for one in (old, new))
    fewest = max(0 if whole else 1, -int(tolerance.normalize().as_tuple().exponent))
    crossed = abs(new - old) > tolerance
    for places in range(fewest, fewest + 3):
        shown = [round(one, places) for one in (old, new)]
        if (abs(shown[1] - shown[0]) > tolerance) == crossed:
            return places
    return fewest + 3


def _with_unit(one: Expected, number: str) -> str:
    return f"{number} {unit_words(one.unit)}".strip()


def _plain(value: Decimal) -> str:
    """A number as it is, to four significant figures at most behind the point."""
    return f"{round(value, 4).normalize():f}"


def _in_unit_of(old: Expected, new: Expected) -> Decimal | None:
    """The old value in the unit of the new one; None where no conversion is known."""
    try:
        return convert(old.value, old.unit, new.unit, new.analyte)
    except WorkbenchError:
        return None


def _expected(task: Task, chart: Records, checkpoint: Checkpoint) -> Expected | None:
    """What the grader expects by a built-in truth, in the checkpoint's unit; None for code of the task's own, and where
    the chart does not give it."""
    try:
        found = agent_value(checkpoint, Evidence(task=task, chart=chart))
    except (WorkbenchError, ArithmeticError):
        return None
    return found if found.value.is_finite() else None
