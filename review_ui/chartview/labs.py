"""Laboratory values and vital signs as series against their ranges, in conventional or SI units.

A series is one analyte: creatinine in mg/dL and in µmol/L, under two LOINC codes, is one line. The conversion itself
is graders.lab_units; the codes and the two units in which each analyte is shown are graders.analytes. What cannot be
converted is shown in the unit it was written in, as a series of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from decimal import Decimal
from typing import Any, Literal

from graders.analytes import ANALYTES, Analyte, analyte_of, to_unit
from review_ui.chartview.elements import When, code_of, codings, concept, each, element, loincs, number, time_of
from tasks.fhir.resources import Resource

System = Literal["conventional", "SI"]
#: What counts as a result; a preliminary one may change, one entered in error never was.
RESULTED = frozenset({"final", "amended", "corrected", "preliminary"})


_ORDER = {analyte.name: place for place, analyte in enumerate(ANALYTES)}


@dataclass(frozen=True)
class Point:
    """One result. `value`, `low` and `high` are in `unit`; `written` is the result as it stands in the record."""

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

    @property
    def side(self) -> Literal["high", "low", "in", "unknown"]:
        """Where the value lies: by its own range, else by the flag that the laboratory set."""
        if self.value is not None and (self.low is not None or self.high is not None):
            if self.high is not None and self.value > self.high:
                return "high"
            if self.low is not None and self.value < self.low:
                return "low"
            return "in"
        if self.flag in {"H", "HH", "HU", "A+"}:
            return "high"
        if self.flag in {"L", "LL", "LU"}:
            return "low"
        return "in" if self.flag == "N" else "unknown"


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


def measurements(observations: Iterable[Resource], zone: tzinfo) -> list[Measurement]:
    """Every Observation, read once."""
    return [
        Measurement(
            resource,
            loincs(resource.body),
            frozenset(code for _, code, _ in codings(resource.body.get("category"))),
            point_of(resource, zone),
        )
        for resource in observations
    ]


@dataclass(frozen=True)
class Series:
    """The results of one analyte in one unit, oldest first. `shared`: whether the unit switch changes it."""

    name: str
    unit: str
    points: tuple[Point, ...]
    convertible: bool
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


def point_of(resource: Resource, zone: tzinfo) -> Point | None:
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
    ranges = next((r for r in each(body.get("referenceRange")) if "low" in r or "high" in r), None)
    return Point(
        ref=resource.ref,
        when=at,
        value=value,
        unit=unit,
        written=written,
        low=number(element(ranges, "low.value")) if ranges else None,
        high=number(element(ranges, "high.value")) if ranges else None,
        flag=next((code_of(flag) for flag in each(body.get("interpretation"))), ""),
        comparator=str(quantity.get("comparator") or "") if isinstance(quantity, dict) else "",
        status=status,
    )


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

    return replace(point, value=value, unit=unit, low=side(point.low), high=side(point.high))


def series(found: Iterable[Measurement], *, until: datetime | None, system: System) -> list[Series]:
    """The results at or before `until` as series, in the units of `system`, known analytes first, then by name."""
    groups: dict[tuple[str, str], tuple[Analyte | None, list[Point]]] = {}
    for one in found:
        point, codes = one.point, one.codes
        if point is None or (until is not None and point.when.start > until):
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
            convertible=analyte is not None and analyte.si != analyte.conventional,
            analyte=analyte,
        )
        for (key, unit), (analyte, points) in groups.items()
    ]
    return sorted(made, key=lambda one: (_ORDER.get(one.name, len(_ORDER)), one.name.casefold(), one.unit))
