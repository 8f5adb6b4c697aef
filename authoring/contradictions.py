"""Texts of a task that go on saying what a change takes away: a note with the old creatinine, a title, a plan.

A text contradicts where it names the same quantity and gives the old value and, in the same sentence, not the new one.
Values are compared as exactly as the text writes them, in either unit. A text that is older than the value cannot be
about it; one that may mean another result of the same size is said to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from functools import cached_property
from typing import Any

from authoring.quantities import (
    Number,
    Quantity,
    cased,
    converted,
    dose_amounts,
    drug_of,
    in_own_unit,
    named,
    numbers,
    quantity_at,
)
from graders.describe import concept
from graders.evidence import patients_of
from graders.orders.doses import Amount, same
from graders.orders.text import normal
from tasks.anchors import INSTRUCTION, texts
from tasks.fhir.chart import Records
from tasks.fhir.resources import Resource
from tasks.package import Task

#: Types whose text a person wrote; any other resource speaks for itself by its values.
WRITTEN = ("DocumentReference", "DiagnosticReport", "Composition", "ClinicalImpression", "Communication")
_DATED = ("date", "effectiveDateTime", "sent", "issued", "authoredOn", "recordedDate")
_KIND = {
    "DocumentReference": "Note", "Composition": "Note", "DiagnosticReport": "Report", "Communication": "Message",
    "ClinicalImpression": "Impression",
}  # fmt: skip
_NOT_STANDING = frozenset({"superseded", "entered-in-error"})
_SENTENCES = re.compile(r"(?<=[.!?;])\s+|\n+")
_ROUGH = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")
#: How far behind its name a value may stand, in characters.
_REACH = 80
#: Longer texts are cut: no note that a person wrote is.
_MOST = 200_000


@dataclass(frozen=True)
class Contradiction:
    """One text that still gives the old value.

    `ref`: "Type/id", "instruction", or a path of the package. `what`: "Note of 12 Mar 2026". `says`: the value as it
    stands there. `sentence`: where. `maybe`: what else it may mean, "" where nothing else has that value.
    """

    ref: str
    what: str
    says: str
    sentence: str
    maybe: str = ""


@dataclass(frozen=True)
class Text:
    """Something that a person wrote. `whose`: the patients whom it is about, none = everybody."""

    ref: str
    what: str
    words: str
    day: date | None = None
    whose: frozenset[str] = frozenset()


def contradictions(
    written: Iterable[Text], records: Records, old: bytes | None, new: bytes | None, pointers: Sequence[str]
) -> list[Contradiction]:
    """What still says the old values of a changed resource, its JSON line before and after, at these JSON pointers.

    `written`: the texts of the task (`texts_of`), in whose order the answers come. `records`: the chart.
    """
    if old is None:
        return []
    before = Resource.parse(old.decode()).body
    after = Resource.parse(new.decode()).body if new else {}
    looked = _searches(before, after, pointers)
    if not looked:
        return []
    day, ref = day_of(before), f"{before.get('resourceType')}/{before.get('id')}"
    whose = patients_of(before)
    found = []
    for text in written:
        if (
            text.ref == ref
            or (day and text.day and text.day < day)
            or (whose and text.whose and not whose & text.whose)
        ):
            continue
        for search in looked:
            if (said := search.in_text(text.words)) is not None:
                number, sentence = said
                maybe = search.elsewhere(records, ref, whose, text.day)
                found.append(Contradiction(text.ref, text.what, number, sentence, maybe))
                break
    return found


def texts_of(task: Task, records: Records) -> tuple[Text, ...]:
    """What people wrote in a task: the record's own texts, newest first; then title, instruction, reference plans."""
    standing = [
        (resource, day_of(resource.body))
        for kind in WRITTEN
        for resource in records.resources(kind)
        if resource.body.get("status") not in _NOT_STANDING
    ]
    out = []
    for resource, day in sorted(standing, key=lambda one: one[1] or date.min, reverse=True):
        what = _KIND[resource.type] + (f" of {spoken_day(day)}" if day else "")
        whose = frozenset(patients_of(resource.body))
        out.append(Text(resource.ref, what, "\n".join(texts(resource.body)), day, whose))
    out.append(Text("task.toml", "The title", task.meta.title))
    out.append(Text(INSTRUCTION, "The instruction", task.instruction))
    for name, plan in sorted(task.plans.items()):
        for path, data in sorted(plan.files.items()):
            if path.endswith((".md", ".txt")):
                words = data.decode("utf-8", errors="replace")
                out.append(Text(f"solution/{name}/{path}", f"Reference plan “{name}”", words))
    return tuple(out)


# ---- what is looked for ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Result:
    """A measured value that is no more."""

    old: Quantity
    new: Quantity | None

    @cached_property
    def _sizes(self) -> tuple[float, ...]:
        every = (converted(self.old.number, self.old, unit) for unit in _usual(self.old))
        return tuple(float(one) for one in every if one is not None)

    def in_text(self, text: str) -> tuple[str, str] | None:
        """(the number as written, its sentence) where the old value stands."""
        for sentence in _sentences(text, self._sizes):
            plain = normal(sentence)
            said = [(one, _written(plain, one)) for one in self._about(plain)]
            values = [(words, self._is(one.value, one.unit, one.places)) for one, words in said]
            if any(is_new for _, (_, is_new) in values):
                continue
            if stale := next((words for words, (is_old, _) in values if is_old), None):
                return stale, " ".join(sentence.split())
        return None

    def _about(self, plain: str) -> Iterator[Number]:
        """The numbers of a normalised sentence that stand behind this quantity's name and before another's."""
        names = named(plain)
        for one in numbers(plain, self.old):
            last = next((name for name in reversed(names) if name.end <= one.start), None)
            if last is not None and last.name == self.old.name and one.start - last.end <= _REACH:
                yield one

    def _is(self, value: Decimal, unit: str, places: int) -> tuple[bool, bool]:
        """Whether a written number is the old value, and whether it is the new one, as exactly as it is written."""
        units = [unit] if unit else _usual(self.old)
        matches = []
        for one in (self.old, self.new):
            matches.append(one is not None and any(_alike(value, each, places, one, self.old) for each in units))
        return matches[0] and not matches[1], matches[1]

    def elsewhere(self, records: Records, ref: str, whose: set[str], until: date | None) -> str:
        """Another result of the same quantity with the same value that the text may mean."""
        for resource in records.resources("Observation"):
            if resource.ref == ref or (whose and not whose & patients_of(resource.body)):
                continue
            other = quantity_at(resource.body, "/valueQuantity")
            day = day_of(resource.body)
            if other is None or other.name != self.old.name or (until and day and day > until):
                continue
            moved = in_own_unit(other.number, other.unit, self.old)
            if moved is not None and _near(moved, self.old.number):
                return f"the result of {spoken_day(day)}" if day else "another result"
        return ""


def sentences_of(text: str) -> list[str]:
    """The sentences and lines of a text."""
    return _SENTENCES.split(text[:_MOST])


def _sentences(text: str, sizes: Sequence[float]) -> Iterator[str]:
    """The sentences in which a number of one of these sizes stands; reading the others would take seconds."""
    for sentence in sentences_of(text):
        for match in _ROUGH.finditer(sentence):
            value = float(match[0].replace(",", ""))
            # A number may be rounded to two figures: 1.7 for 1.72, 5 for 5.0.
            if any(abs(value - size) <= 0.06 * abs(size) for size in sizes):
                yield sentence
                break


def _written(plain: str, one: Number) -> str:
    """The number as its text writes it, its unit with its capitals."""
    found = re.match(r"[\d.,]+", plain[one.start : one.end])
    return f"{found[0] if found else one.value} {cased(one.unit)}".strip()


def _usual(one: Quantity) -> list[str]:
    usual = [one.analyte.conventional, one.analyte.si] if one.analyte else []
    return list(dict.fromkeys([one.unit, *usual]))


def _near(one: Decimal, other: Decimal) -> bool:
    """Whether two numbers differ by no more than a conversion rounds."""
    return abs(one - other) <= abs(other) / 200


def _alike(value: Decimal, unit: str, places: int, one: Quantity, of: Quantity) -> bool:
    """Whether `value` in `unit`, written to so many decimal places, is this quantity."""
    here = in_own_unit(value, unit, of)
    if here is None:
        return False
    if unit.casefold() == one.unit.casefold():
        step = Decimal(1).scaleb(-places)
        exact = one.number == value
        # "6" says little of 5.6: a rounded number counts only where two figures of it are left.
        rounded = len(value.as_tuple().digits) >= 2 and one.number.quantize(step, ROUND_HALF_UP) == value
        return exact or rounded
    return len(value.as_tuple().digits) >= 2 and _near(here, one.number)


@dataclass(frozen=True)
class _Dose:
    """An amount of a drug that the order no longer gives."""

    drug: tuple[str, ...]
    old: tuple[Amount, ...]
    new: tuple[Amount, ...]

    @cached_property
    def _sizes(self) -> tuple[float, ...]:
        # In milligrams, micrograms, grams; in units and mEq as they are.
        return tuple(float(one.low) * factor for one in self.old for factor in (1, 1000, 0.001, 40_000))

    def in_text(self, text: str) -> tuple[str, str] | None:
        """(the amount as written, its sentence) where an old amount stands."""
        for sentence in _sentences(text, self._sizes):
            plain = normal(sentence)
            mine = [(plain[start:end], one) for start, end, one in self._about(plain)]
            if any(same(one, other, self.drug) for _, one in mine for other in self.new):
                continue
            for words, one in mine:
                if any(same(one, other, self.drug) for other in self.old):
                    return words, " ".join(sentence.split())
        return None

    def _about(self, plain: str) -> Iterator[tuple[int, int, Amount]]:
        names = named(plain)
        for start, end, one in dose_amounts(plain):
            last = next((name for name in reversed(names) if name.end <= start), None)
            if last is not None and last.drug == self.drug and start - last.end <= _REACH:
                yield start, end, one

    def elsewhere(self, records: Records, ref: str, whose: set[str], until: date | None) -> str:
        """Another order of the same drug with the old amount."""
        for kind in ("MedicationRequest", "MedicationStatement"):
            for resource in records.resources(kind):
                if resource.ref == ref or (whose and not whose & patients_of(resource.body)):
                    continue
                day = day_of(resource.body)
                if (until and day and day > until) or drug_of(resource.body) != self.drug:
                    continue
                given = _amounts(resource.body)
                if any(same(one, other, self.drug) for one in given for other in self.old):
                    return f"the order of {spoken_day(day)}" if day else "another order"
        return ""


def _searches(before: Any, after: Any, pointers: Sequence[str]) -> list[_Result | _Dose]:
    out: list[_Result | _Dose] = []
    for pointer in pointers:
        old, new = quantity_at(before, pointer), quantity_at(after, pointer)
        if old is None or old.drug or not old.name:
            continue
        moved = in_own_unit(new.number, new.unit, old) if new else None
        if new is not None and moved is not None:
            if moved == old.number or (new.unit != old.unit and _near(moved, old.number)):
                continue
            new = replace(new, number=moved, unit=old.unit)
        out.append(_Result(old, new))
    drug = drug_of(before)
    if drug and pointers:
        was, now = _amounts(before), _amounts(after)
        gone = tuple(one for one in was if not any(same(one, other, drug) for other in now))
        if gone:
            out.append(_Dose(drug, gone, now))
    return out


def _amounts(body: Mapping[str, Any]) -> tuple[Amount, ...]:
    """Every strength and dose that an order of a drug writes, in its name, its directions, its quantities."""
    said = [concept(body.get("medicationCodeableConcept"))]
    for one in body.get("dosageInstruction") or body.get("dosage") or ():
        if not isinstance(one, Mapping):
            continue
        said.append(str(one.get("text") or ""))
        for rate in one.get("doseAndRate") or ():
            quantity = rate.get("doseQuantity") if isinstance(rate, Mapping) else None
            if isinstance(quantity, Mapping):
                said.append(f"{quantity.get('value')} {quantity.get('unit') or quantity.get('code') or ''}")
    return tuple(dict.fromkeys(one for text in said for _, _, one in dose_amounts(normal(text))))


def day_of(body: Mapping[str, Any]) -> date | None:
    """The day that a resource is of, by the first of its dates."""
    period = body.get("effectivePeriod") or body.get("period")
    written = [body.get(key) for key in _DATED]
    written += [period.get("start")] if isinstance(period, Mapping) else []
    for one in written:
        if isinstance(one, str):
            try:
                return date.fromisoformat(one[:10])
            except ValueError:
                continue
    return None


def spoken_day(day: date | None) -> str:
    """ "12 Mar 2026"."""
    return f"{day:%-d %b %Y}" if day else ""
