"""Laboratory values and vital signs as series against their ranges, in conventional or SI units.

A series is one analyte: creatinine in mg/dL and in µmol/L, under two LOINC codes, is one line. The conversion itself
is graders.lab_units; here stand the codes and the two units in which each analyte is shown. What cannot be converted
is shown in the unit it was written in, as a series of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from graders.lab_units import convert
from review_ui.chartview.elements import When, code_of, codings, concept, each, element, loincs, number, time_of
from tasks.errors import DeclarationError
from tasks.fhir.resources import Resource

System = Literal["conventional", "SI"]
#: What counts as a result; a preliminary one may change, one entered in error never was.
RESULTED = frozenset({"final", "amended", "corrected", "preliminary"})


class Analyte(NamedTuple):
    """One analyte: its name, its LOINC codes (serum, plasma or blood), its two units, its name in the unit table."""

    name: str
    codes: tuple[str, ...]
    conventional: str
    si: str
    table: str = ""


#: Reported eGFR: CKD-EPI 2021, CKD-EPI 2009, MDRD and the codes without a named formula.
_EGFR = ("98979-8", "62238-1", "33914-3", "48642-3", "48643-1", "69405-9", "88293-6")
#: In the order in which the page shows them: kidney and electrolytes first. LOINC names checked against loinc.org's.
ANALYTES: tuple[Analyte, ...] = (
    Analyte("Creatinine", ("2160-0", "38483-4", "14682-9"), "mg/dL", "umol/L", "creatinine"),
    Analyte("eGFR, as reported", _EGFR, "mL/min/1.73m2", "mL/min/1.73m2"),
    Analyte("Urea nitrogen", ("3094-0", "6299-2"), "mg/dL", "mmol/L", "urea nitrogen"),
    Analyte("Potassium", ("2823-3", "6298-4"), "mmol/L", "mmol/L"),
    Analyte("Sodium", ("2951-2", "2947-0"), "mmol/L", "mmol/L"),
    Analyte("Bicarbonate", ("1963-8", "2028-9", "1959-6"), "mmol/L", "mmol/L"),
    Analyte("Chloride", ("2075-0", "2069-3"), "mmol/L", "mmol/L"),
    Analyte("Glucose", ("2345-7", "2339-0", "1558-6", "14749-6", "15074-8"), "mg/dL", "mmol/L", "glucose"),
    Analyte("HbA1c", ("4548-4", "17856-6", "59261-8"), "%", "mmol/mol", "hba1c"),
    Analyte("Urine albumin/creatinine", ("9318-7", "14959-1", "32294-1", "14958-3"), "mg/g", "mg/mmol"),
    Analyte("Calcium", ("17861-6", "2000-8"), "mg/dL", "mmol/L", "calcium"),
    Analyte("Albumin", ("1751-7",), "g/dL", "g/L"),
    Analyte("Phosphate", ("2777-1",), "mg/dL", "mg/dL"),
    Analyte("Hemoglobin", ("718-7", "20509-6"), "g/dL", "g/L"),
    Analyte("Platelets", ("777-3", "26515-7"), "10*9/L", "10*9/L"),
    Analyte("Leukocytes", ("6690-2", "26464-8"), "10*9/L", "10*9/L"),
    Analyte("ALT", ("1742-6",), "U/L", "U/L"),
    Analyte("AST", ("1920-8",), "U/L", "U/L"),
    Analyte("Bilirubin", ("1975-2", "14631-6"), "mg/dL", "umol/L", "bilirubin"),
    Analyte("INR", ("6301-6", "34714-6"), "", ""),
    Analyte("LDL cholesterol", ("13457-7", "18262-6", "2089-1"), "mg/dL", "mmol/L", "cholesterol"),
    Analyte("Cholesterol", ("2093-3", "14647-2"), "mg/dL", "mmol/L", "cholesterol"),
    Analyte("Triglycerides", ("2571-8", "14927-8"), "mg/dL", "mmol/L", "triglycerides"),
    Analyte("Uric acid", ("3084-1", "14933-6"), "mg/dL", "umol/L", "urate"),
    Analyte("25-OH vitamin D", ("1989-3", "62292-8", "14635-7"), "ng/mL", "nmol/L", "vitamin d"),
    Analyte("Cortisol", ("2143-6",), "ug/dL", "nmol/L", "cortisol"),
)  # fmt: skip
_BY_CODE = {code: analyte for analyte in ANALYTES for code in analyte.codes}
_ORDER = {analyte.name: place for place, analyte in enumerate(ANALYTES)}
#: 1 mg albumin per g creatinine = 0.1131 mg/mmol (creatinine 113.12 g/mol); the unit table does not hold the ratio.
_RATIO = Decimal("0.11312")
_EQUAL = {"meq/l": "mmol/L"}


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


def to_unit(value: Decimal, unit: str, wanted: str, analyte: Analyte | None) -> float | None:
    """`value` in `unit` as a number of `wanted`; None where no conversion is known."""
    if _plain(unit) == _plain(wanted):
        return float(value)
    if _plain(unit) == "mg/g" and wanted == "mg/mmol":
        return float(value * _RATIO)
    if _plain(unit) == "mg/mmol" and wanted == "mg/g":
        return float(value / _RATIO)
    try:
        return float(convert(value, unit, wanted, analyte.table if analyte else ""))
    except (DeclarationError, ArithmeticError):
        return None


def _plain(unit: str) -> str:
    key = "".join(unit.split()).replace("µ", "u").replace("μ", "u").casefold().replace("{creat}", "")
    return _EQUAL.get(key, key).casefold()


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
        analyte = next((_BY_CODE[code] for code in sorted(codes) if code in _BY_CODE), None)
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


def unit_words(unit: str) -> str:
    """A unit as it is printed: µmol/L, 10⁹/L, mL/min/1.73 m²."""
    printed = {"umol/L": "µmol/L", "10*9/L": "10⁹/L", "mL/min/1.73m2": "mL/min/1.73 m²", "ug/dL": "µg/dL"}
    return printed.get(unit, unit)
