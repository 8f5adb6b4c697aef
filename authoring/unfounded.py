"""Values that a changed text brings in and no result of the chart has: "creatinine 2.7" where it was never 2.7.

Only what a new sentence states outright is looked at: the quantity, then its number. A condition, a goal, a limit or a
range states no result, and neither does a dose. A clearance or filtration rate may be computed, so that it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from authoring.contradictions import day_of, sentences_of, spoken_day
from authoring.edits import AddResource, Edit, ResourceEdit
from authoring.quantities import Number, Quantity, cased, in_own_unit, named, numbers, quantity_at, usual_units
from graders.analytes import unit_words
from graders.orders.text import normal
from tasks.fhir.chart import Records

_COMPUTED = ("eGFR", "CrCl", "age")
_NO_RESULT = frozenset({"entered-in-error", "cancelled"})
#: What makes a sentence one about no result.
_NOT_STATED = re.compile(
    r"\b(?:if|when|once|until|unless|should|would|could|may|goals?|targets?|aim|thresholds?|limits?|ranges?|normal|"
    r"baseline|expected|such as|e\.?g|less|more|greater|higher|lower|above|below|over|under|exceeds?|at least|"
    r"at most)\b|[<>]"
)
#: What may stand between a quantity and its result.
_BETWEEN = re.compile(
    r"(?:[\s,:(=]|\b(?:is|are|was|were|of|at|the|a|now|today|again|latest|last|current|level|value|result|serum|plasma|"
    r"blood|total|only|still|came back|has risen to|rose to|has fallen to|fell to)\b)*"
)
#: What makes a number behind it no result: a range, a grade ("3+"), a day.
_BEHIND = re.compile(
    r"\s*(?:-|to|or|and|/|x)\s*\d|\s*\+|\s*(?:-|or)\s*(?:more|less|higher|lower)|"
    r"\s*(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
)


@dataclass(frozen=True)
class Unfounded:
    """A value that no result has. `says`: as it is written, "creatinine 2.7 mg/dL"; `latest`: the chart's latest result
    of it, "1.72 mg/dL on 20 Jun 2025"."""

    says: str
    latest: str
    sentence: str


#: Results of the chart by what is measured, the latest first.
Results = Mapping[str, Sequence[tuple[Quantity, date | None]]]


def results_of(records: Records, until: date | None = None) -> Results:
    """Every result of a chart with one plain number, up to a day: what comes later nobody could have stated."""
    found: dict[str, list[tuple[Quantity, date | None]]] = {}
    for resource in records.resources("Observation"):
        if resource.body.get("status") in _NO_RESULT:
            continue
        day = day_of(resource.body)
        if until and day and day > until:
            continue
        parts = resource.body.get("component") or ()
        for pointer in ("/valueQuantity", *(f"/component/{n}/valueQuantity" for n in range(len(parts)))):
            one = quantity_at(resource.body, pointer)
            if one is not None and one.name and one.name not in _COMPUTED:
                found.setdefault(one.name, []).append((one, day))
    return {name: sorted(every, key=lambda one: one[1] or date.min, reverse=True) for name, every in found.items()}


def brought(edits: Iterable[Edit]) -> frozenset[Decimal]:
    """Every number that these edits would bring into the chart."""

    def numbers_in(value: Any) -> Iterator[Decimal]:
        if isinstance(value, int | Decimal) and not isinstance(value, bool):
            yield Decimal(value)
        inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        for one in inner:
            yield from numbers_in(one)

    found: set[Decimal] = set()
    for edit in edits:
        if isinstance(edit, AddResource):
            found.update(numbers_in(edit.resource))
        elif isinstance(edit, ResourceEdit):
            found.update(*(numbers_in(one.get("value")) for one in edit.operations if one.get("op") != "test"))
    return frozenset(found)


def unfounded(
    before: str, after: str, results: Results, notes: Sequence[str] = (), coming: Collection[Decimal] = ()
) -> list[Unfounded]:
    """What the new sentences of a text state and neither a result bears out nor another text of the record says.

    `coming`: numbers that other changes would bring into the chart; what they are is not asked.
    """
    old = [" ".join(one.split()) for one in sentences_of(before)]
    known = {(name, one.value) for sentence in old for name, one, _ in _stated(normal(sentence), results)}
    out = []
    for sentence in (" ".join(one.split()) for one in sentences_of(after)):
        if sentence in old:
            continue
        plain = normal(sentence)
        for name, one, words in _stated(plain, results):
            if (name, one.value) in known or one.value in coming:
                continue
            if not any(_is(one, result) for result, _ in results[name]) and not _noted(name, one, notes, results):
                latest, day = results[name][0]
                said = f"{latest.comparator}{latest.number} {unit_words(latest.unit)}".strip()
                out.append(Unfounded(words, said + (f" on {spoken_day(day)}" if day else ""), sentence))
    return list(dict.fromkeys(out))


def _stated(plain: str, results: Results) -> Iterator[tuple[str, Number, str]]:
    """(quantity, its number, both as they are written) for each result that a normalised sentence states."""
    if _NOT_STATED.search(plain):
        return
    names = named(plain)
    for place, name in enumerate(names):
        if name.drug or name.name not in results:
            continue
        end = names[place + 1].start if place + 1 < len(names) else len(plain)
        for one in numbers(plain, results[name.name][0][0]):
            if name.end <= one.start < end:
                if _BETWEEN.fullmatch(plain[name.end : one.start]) and not _BEHIND.match(plain, one.end):
                    written = re.match(r"[\d.,]*\d", plain[one.start : one.end])
                    number = written[0] if written else str(one.value)
                    yield name.name, one, f"{name.name} {number} {cased(one.unit)}".strip()
                break


def _noted(name: str, one: Number, notes: Sequence[str], results: Results) -> bool:
    """Whether another text states the same."""
    written = re.compile(rf"(?<![\d.]){re.escape(str(one.value))}(?![\d]|\.\d)")
    return any(
        (name, one.value) == (other, said.value)
        for text in notes
        if written.search(text)
        for sentence in sentences_of(text)
        if written.search(sentence)
        for other, said, _ in _stated(normal(sentence), results)
    )


def _is(one: Number, result: Quantity) -> bool:
    """Whether a number, as exactly as it is written and in any of its usual units, may be this result."""
    step = Decimal(1).scaleb(-one.places)
    for unit in [one.unit] if one.unit else [result.unit, *usual_units(result)]:
        moved = in_own_unit(one.value, unit, result)
        if moved is None:
            continue
        if abs(moved - result.number) <= abs(result.number) / 100:
            return True
        if unit.casefold() == result.unit.casefold() and result.number.quantize(step, ROUND_HALF_UP) == one.value:
            return True
    return False
