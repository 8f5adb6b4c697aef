"""Laboratory values and vital signs as series against their ranges, in conventional or SI units.

A series is one analyte: creatinine in mg/dL and in µmol/L, under two LOINC codes, is one line. The conversion itself
is graders.lab_units; the codes and the two units in which each analyte is shown are graders.analytes. What cannot be
converted is shown in the unit it was written in, as a series of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from decimal import Decimal
from typing import Any, Literal

from graders.analytes import ANALYTES, Analyte, analyte_of, to_unit
from review_ui.chartview.elements import (
    When,
    code_of,
    codings,
    concept,
    each,
    element,
    exact,
    loincs,
    number,
    plain_number,
    time_of,
)
from tasks.fhir.resources import Resource

System = Literal["conventional", "SI"]
Side = Literal["high", "low", "in", "unknown"]
#: What counts as a result; a preliminary one may change, one entered in error never was.
RESULTED = frozenset({"final", "amended", "corrected", "preliminary"})
#: HL7's codes of an interpretation: the side that it says, and in words.
_FLAGS: dict[str, tuple[Side, str]] = {
    "H": ("high", "high"), "HH": ("high", "critically high"), "HU": ("high", "significantly high"),
    "L": ("low", "low"), "LL": ("low", "critically low"), "LU": ("low", "significantly low"), "N": ("in", "normal"),
    "A": ("unknown", "abnormal"), "AA": ("unknown", "critically abnormal"),
}  # fmt: skip
#: Flags that say more than on which side of a range a value lies.
_TELLING = frozenset({"HH", "LL", "AA", "HU", "LU"})
#: Codes and words of appliesTo that mean a sex: SNOMED CT, HL7 administrative gender (v3 and FHIR).
_SEXES = {
    "248152002": "female", "248153007": "male", "f": "female", "m": "male", "female": "female", "male": "male",
    "women": "female", "men": "male", "woman": "female", "man": "male", "females": "female", "males": "male",
}  # fmt: skip
#: UCUM units of an age, in days.
_DAYS = {"a": 365.25, "y": 365.25, "mo": 30.4375, "m": 30.4375, "wk": 7.0, "w": 7.0, "d": 1.0, "h": 1 / 24}
#: Words of a range's type that make it no range of what is normal.
_NOT_NORMAL = re.compile(r"therap|treat|critical|panic|target|goal|alert|toxic")

_ORDER = {analyte.name: place for place, analyte in enumerate(ANALYTES)}


@dataclass(frozen=True)
class Person:
    """Whom a reference range is chosen for. `sex` is FHIR's gender, "" where it is not recorded."""

    sex: str = ""
    born: When | None = None


@dataclass(frozen=True)
class Point:
    """One result. `value`, `low` and `high` are in `unit`; `written` is the result as it stands in the record.

    `digits` is the number as it stands there, "" where `value` was converted.
    """

    ref: str
    when: When
    value: float | None
    unit: str
    written: str
    low: float | None = None
    high: float | None = None
    flag: str = ""
    comparator: str = ""
    status: str = "final"
    digits: str = ""

    @property
    def side(self) -> Side:
        """Where the value lies: by its own range, else by the flag that the laboratory set."""
        by_range = self._by_range()
        return by_range if by_range != "unknown" else self._flagged()

    def _by_range(self) -> Side:
        if self.value is None or (self.low is None and self.high is None):
            return "unknown"
        if self.comparator.startswith("<"):  # anywhere below: only a limit above tells
            if self.low is not None and self.value <= self.low:
                return "low"
            return "in" if self.low is None and self.high is not None and self.value <= self.high else "unknown"
        if self.comparator.startswith(">"):
            if self.high is not None and self.value >= self.high:
                return "high"
            return "in" if self.high is None and self.low is not None and self.value >= self.low else "unknown"
        if self.high is not None and self.value > self.high:
            return "high"
        return "low" if self.low is not None and self.value < self.low else "in"

    def _flagged(self) -> Side:
        return _FLAGS.get(self.flag, ("unknown", ""))[0]

    @property
    def remark(self) -> str:
        """What else has to be said with the value: not final yet; what the laboratory's flag says beyond the range, or
        against it."""
        said = ["preliminary"] if self.status == "preliminary" else []
        words, by_range = _FLAGS.get(self.flag, ("unknown", ""))[1], self._by_range()
        against = by_range not in ("high", "low") if self.flag == "A" else by_range not in ("unknown", self._flagged())
        if words and (against or self.flag in _TELLING):
            said.append(f"flagged {words} by the laboratory")
        return ", ".join(said)

    @property
    def shown(self) -> str:
        """The number with its comparator: as written, rounded only where it was converted; "" where there is none."""
        if self.value is None:
            return ""
        return f"{self.comparator}{self.digits or plain_number(self.value)}"

    def limit(self, value: float) -> str:
        """A limit of the range: as exact as written where the value was not converted."""
        return exact(value) if self.digits else plain_number(value)


@dataclass(frozen=True, slots=True)
class Measurement:
    """An Observation read once: its LOINC codes, its categories, its result (None where it has none, or never was)."""

    resource: Resource
    codes: frozenset[str]
    kinds: frozenset[str]
    point: Point | None

    @property
    def resulted(self) -> bool:
        """Whether it is a result, and not one still registered or cancelled."""
        return self.point is not None and self.point.status in RESULTED


def measurements(observations: Iterable[Resource], zone: tzinfo, person: Person | None = None) -> list[Measurement]:
    """Every Observation, read once; its range is the one that holds for `person`."""
    return [
        Measurement(
            resource,
            loincs(resource.body),
            frozenset(code for _, code, _ in codings(resource.body.get("category"))),
            point_of(resource, zone, person),
        )
        for resource in observations
    ]


@dataclass(frozen=True)
class Series:
    """The results of one analyte in one unit, oldest first."""

    name: str
    unit: str
    points: tuple[Point, ...]
    analyte: Analyte | None = None

    @property
    def plotted(self) -> tuple[Point, ...]:
        """The points that have a number."""
        return tuple(point for point in self.points if point.value is not None)

    @property
    def latest(self) -> Point:
        """The last result."""
        return self.points[-1]


def is_kind(body: dict[str, Any], kind: str) -> bool:
    """Whether an Observation's category is `laboratory`, `vital-signs` or another of HL7's codes."""
    return any(code == kind for _, code, _ in codings(body.get("category")))


def point_of(resource: Resource, zone: tzinfo, person: Person | None = None) -> Point | None:
    """The result of an Observation as it is written; None where it has neither value nor time, or never was."""
    body = resource.body
    at = time_of(body, zone)
    status = str(body.get("status") or "")
    if at is None or status == "entered-in-error":
        return None
    quantity = body.get("valueQuantity")
    value = number(quantity.get("value")) if isinstance(quantity, dict) else number(body.get("valueInteger"))
    unit = str(quantity.get("unit") or quantity.get("code") or "") if isinstance(quantity, dict) else ""
    if isinstance(quantity, dict) and quantity.get("value") is not None:
        written = f"{quantity.get('comparator') or ''}{quantity['value']} {unit}".strip()
    else:
        written = concept(body.get("valueCodeableConcept")) or str(body.get("valueString") or "") or _parts(body)
    if not written and value is None:
        written = concept(body.get("dataAbsentReason")) or "no value"
    low, high = _limits(body, unit, at, person or Person())
    return Point(
        ref=resource.ref,
        when=at,
        value=value,
        unit=unit,
        written=written,
        low=low,
        high=high,
        flag=next((code_of(flag) for flag in each(body.get("interpretation"))), ""),
        comparator=str(quantity.get("comparator") or "") if isinstance(quantity, dict) else "",
        status=status,
        digits=_digits(quantity.get("value") if isinstance(quantity, dict) else body.get("valueInteger"), value),
    )


def _digits(written: Any, value: float | None) -> str:
    if value is None:
        return ""
    said = str(written)
    return exact(value) if "e" in said.casefold() else said


def _limits(body: dict[str, Any], unit: str, at: When, person: Person) -> tuple[float | None, float | None]:
    """The limits of the normal range that holds for the person, in the result's own unit.

    (None, None) where no range is given, where only ranges for others are, or where several that differ could hold. A
    limit in another unit is converted, and left out where that is not possible.
    """
    found: list[tuple[int, tuple[float | None, float | None]]] = []
    for one in each(body.get("referenceRange")):
        if ("low" in one or "high" in one) and (fits := _fits(one, at, person)) is not None:
            found.append((fits, (_limit(body, one.get("low"), unit), _limit(body, one.get("high"), unit))))
    best = max((fits for fits, _ in found), default=0)
    limits = list(dict.fromkeys(limits for fits, limits in found if fits == best))
    return limits[0] if len(limits) == 1 else (None, None)


def _fits(one: Mapping[str, Any], at: When, person: Person) -> int | None:
    """How closely a range fits the person: a matching sex and age count for it, a condition that nobody can check here
    ("fasting") against it; None for another sex, another age, or a range that is not the normal one (critical,
    therapeutic)."""
    kind = " ".join([*(code for _, code, _ in codings(one.get("type"))), concept(one.get("type"))]).casefold()
    if _NOT_NORMAL.search(kind):
        return None
    fits = 0 if not kind.strip() or "normal" in kind or "reference" in kind else -1
    for group in each(one.get("appliesTo")):
        said = {code.casefold() for _, code, _ in codings(group)} | set(concept(group).casefold().split())
        sexes = {_SEXES[word] for word in said if word in _SEXES}
        if not sexes:
            fits -= 1
        elif len(sexes) == 1 and person.sex in ("female", "male"):
            if person.sex not in sexes:
                return None
            fits += 2
        elif len(sexes) == 1:
            return None
    if isinstance(span := one.get("age"), Mapping):
        low, high = _age(span.get("low")), _age(span.get("high"))
        if person.born is None:
            return None
        days = (at.start - person.born.start).days
        if low is not None and days < low[0] * low[1]:
            return None
        if high is not None and days >= (high[0] + 1) * high[1]:
            return None
        # Of 0 to 18 and 18 to 120 years, the second holds for somebody of 18 and a half; 18 to 60 holds until 61.
        fits += 2 if high is None or days <= high[0] * high[1] else 1
    return fits


def _age(quantity: Any) -> tuple[float, float] | None:
    """(how many, days of one); None where nothing is stated. Years where no unit is known."""
    value = number(element(quantity, "value")) if isinstance(quantity, Mapping) else None
    if value is None:
        return None
    unit = str(quantity.get("code") or quantity.get("unit") or "")
    return value, _DAYS.get(unit) or _DAYS.get(unit[:1].casefold(), _DAYS["a"])


def _limit(body: dict[str, Any], quantity: Any, unit: str) -> float | None:
    value = number(element(quantity, "value")) if isinstance(quantity, Mapping) else None
    own = str(quantity.get("unit") or quantity.get("code") or "") if isinstance(quantity, Mapping) else ""
    if value is None or not own or not unit or own == unit:
        return value
    return to_unit(Decimal(repr(value)), own, unit, analyte_of(loincs(body)))


def _parts(body: dict[str, Any]) -> str:
    parts = []
    for part in each(body.get("component")):
        quantity = part.get("valueQuantity")
        if isinstance(quantity, dict) and quantity.get("value") is not None:
            parts.append(f"{concept(part.get('code'))} {quantity['value']} {quantity.get('unit') or ''}".strip())
        elif words := concept(part.get("valueCodeableConcept")):
            parts.append(f"{concept(part.get('code'))}: {words}")
    return ", ".join(parts)


def _converted(point: Point, unit: str, analyte: Analyte) -> Point | None:
    if point.value is None:
        return replace(point, unit=unit, low=None, high=None)
    value = to_unit(Decimal(repr(point.value)), point.unit, unit, analyte)
    if value is None:
        return None

    def side(limit: float | None) -> float | None:
        return None if limit is None else to_unit(Decimal(repr(limit)), point.unit, unit, analyte)

    digits = point.digits if value == point.value else ""
    return replace(point, value=value, unit=unit, low=side(point.low), high=side(point.high), digits=digits)


def series(found: Iterable[Measurement], *, until: datetime | None, system: System) -> list[Series]:
    """The results at or before `until` as series, in the units of `system`, known analytes first, then by name.

    What is no result (registered only, cancelled) is in none.
    """
    groups: dict[tuple[str, str], tuple[Analyte | None, list[Point]]] = {}
    for one in found:
        point, codes = one.point, one.codes
        if point is None or not one.resulted or (until is not None and point.when.start > until):
            continue
        analyte = analyte_of(codes)
        if analyte is not None:
            wanted = analyte.si if system == "SI" else analyte.conventional
            converted = _converted(point, wanted, analyte)
            if converted is not None:
                groups.setdefault((analyte.name, wanted), (analyte, []))[1].append(converted)
                continue
        name = analyte.name if analyte else concept(one.resource.body.get("code")) or "No name"
        # Without a known analyte the code tells series apart, and the unit: numbers of two units share no axis.
        key = f"{sorted(codes)[0] if codes else ''}|{name}"
        groups.setdefault((key, point.unit), (None, []))[1].append(point)
    made = [
        Series(
            name=analyte.name if analyte else key.split("|", 1)[1],
            unit=unit,
            points=tuple(sorted(points, key=lambda point: (point.when.start, point.ref))),
            analyte=analyte,
        )
        for (key, unit), (analyte, points) in groups.items()
    ]
    return sorted(made, key=lambda one: (_ORDER.get(one.name, len(_ORDER)), one.name.casefold(), one.unit))
