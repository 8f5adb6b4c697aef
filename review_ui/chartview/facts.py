"""The facts strip: who the patient is and how well the kidneys work, at the task's clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from decimal import Decimal
from typing import Any

from graders.analytes import Analyte, to_unit, unit_words
from graders.truths import CODES, Sex, ckd_epi_2021, cockcroft_gault_clearance
from review_ui.chartview.elements import (
    When,
    codings,
    concept,
    each,
    element,
    exact,
    number,
    plain_number,
    time_of,
    when,
)
from review_ui.chartview.labs import Measurement, Point
from tasks.errors import DeclarationError
from tasks.fhir.resources import Resource

CREATININE = frozenset({*CODES["creatinine"], "14682-9"})
WEIGHT = frozenset(CODES["weight"])
HEIGHT = frozenset(CODES["height"])
PRESSURE = frozenset({"85354-9", "55284-4"})
SYSTOLIC, DIASTOLIC, PULSE = "8480-6", "8462-4", "8867-4"
#: SNOMED CT: no known allergy, of any kind, to drugs, to food, to the environment.
NO_ALLERGY = frozenset({"716186003", "409137002", "428607008", "429625007"})


@dataclass(frozen=True)
class Fact:
    """One cell: what, how much, and from what. `value` is "not recorded" where the chart does not have it."""

    name: str
    value: str
    basis: str = ""
    known: bool = True


def missing(name: str, why: str = "") -> Fact:
    """A fact that the chart does not give."""
    return Fact(name, "not recorded", why, known=False)


def beyond(name: str, basis: str, error: DeclarationError) -> Fact:
    """A fact that cannot be computed from what the chart gives: `basis`, and the range that the formula holds for."""
    return Fact(name, "not computed", f"{basis}: {error.what}", known=False)


def age_at(patient: Resource | None, now: datetime) -> int | None:
    """Whole years at `now`; None without a full birth date."""
    born = when(patient.body.get("birthDate"), now.tzinfo) if patient and now.tzinfo else None
    if born is None or born.precision not in {"day", "minute"}:
        return None
    return now.year - born.start.year - ((now.month, now.day) < (born.start.month, born.start.day))


def sex_of(patient: Resource | None) -> Sex | None:
    """The recorded gender where the formulas know it."""
    gender = patient.body.get("gender") if patient else None
    return gender if gender in ("female", "male") else None


@dataclass(frozen=True)
class Latest:
    """The latest resulted value of one kind at or before the clock, in one unit."""

    point: Point
    value: float
    resource: Resource


def latest(
    found: list[Measurement], codes: frozenset[str], unit: str, *, now: datetime, analyte: str = ""
) -> Latest | None:
    """The latest number with one of the LOINC codes, in `unit`; None where there is none that converts."""
    best: Latest | None = None
    for one in found:
        point = one.point
        if not one.codes & codes or not one.resulted or point is None:
            continue
        if point.value is None or point.comparator or point.when.start > now:
            continue
        value = to_unit(Decimal(repr(point.value)), point.unit, unit, Analyte("", (), unit, unit, analyte))
        if value is None:
            continue
        if best is None or (point.when.start, point.ref) > (best.point.when.start, best.point.ref):
            best = Latest(point, value, one.resource)
    return best


def strip(
    patient: Resource | None, found: list[Measurement], allergies: list[Resource], *, now: datetime, zone: tzinfo
) -> list[Fact]:
    """Age and sex, weight, creatinine, eGFR (2021), clearance, pressure and pulse, allergies, all at `now`."""
    age, sex = age_at(patient, now), sex_of(patient)
    who = ", ".join(filter(None, [str(age) if age is not None else "", str(sex or "")]))
    facts = [Fact("Age, sex", who, "at the clock") if who else missing("Age, sex")]
    weight = latest(found, WEIGHT, "kg", now=now)
    if weight:
        facts.append(Fact("Weight", f"{plain_number(round(weight.value, 1))} kg", str(weight.point.when)))
    else:
        facts.append(missing("Weight"))
    creatinine = latest(found, CREATININE, "mg/dL", now=now, analyte="creatinine")
    if creatinine is None:
        facts += [missing("eGFR, CKD-EPI 2021", "no creatinine"), missing("CrCl, Cockcroft-Gault", "no creatinine")]
    else:
        point = creatinine.point
        measured = f"creatinine {point.digits} {unit_words(point.unit)}, {point.when}"
        basis = ", ".join(filter(None, [measured, point.remark]))
        facts.append(_egfr(creatinine, age_at(patient, point.when.start), sex, basis))
        facts.append(_clearance(creatinine, weight, age, sex, basis))
    facts.append(_pressure(found, now))
    facts.append(_allergies(allergies, now, zone))
    return facts


def _egfr(creatinine: Latest, age: int | None, sex: Sex | None, basis: str) -> Fact:
    name = "eGFR, CKD-EPI 2021"
    if age is None or sex is None or creatinine.value <= 0:
        return missing(name, "needs birth date, sex and creatinine")
    if age < 18:
        return missing(name, "holds from 18 years on")
    try:
        value = ckd_epi_2021(creatinine.value, age, sex)
    except DeclarationError as error:
        return beyond(name, basis, error)
    return Fact(name, f"{value:.0f} mL/min/1.73 m²", basis)


def _clearance(creatinine: Latest, weight: Latest | None, age: int | None, sex: Sex | None, basis: str) -> Fact:
    name = "CrCl, Cockcroft-Gault"
    if weight is None or age is None or sex is None or creatinine.value <= 0:
        return missing(name, "needs birth date, sex, weight and creatinine")
    if age < 18:
        return missing(name, "holds from 18 years on")
    basis = f"{basis}; actual weight {plain_number(round(weight.value, 1))} kg"
    try:
        value = cockcroft_gault_clearance(creatinine.value, age, sex, weight.value)
    except DeclarationError as error:
        return beyond(name, basis, error)
    return Fact(name, f"{value:.0f} mL/min", basis)


_PRINTED = {"mm[Hg]": "mmHg", **dict.fromkeys(("{beats}/min", "beats/minute", "beats/min", "bpm"), "/min")}


@dataclass(frozen=True)
class _Reading:
    """A measured pressure or pulse, as it is written."""

    when: When
    value: str
    unit: str

    def __str__(self) -> str:
        unit = _PRINTED.get(self.unit, self.unit)
        return f"{self.value}{'' if unit.startswith('/') else ' '}{unit}".strip()


def _reading(at: When, quantity: Any) -> _Reading | None:
    value = number(element(quantity, "value")) if isinstance(quantity, Mapping) else None
    if value is None:
        return None
    return _Reading(at, exact(value), str(quantity.get("unit") or quantity.get("code") or ""))


def _pressure(found: list[Measurement], now: datetime) -> Fact:
    """The latest pressure, and the latest pulse with a date of its own where it is not of the same day."""
    best: _Reading | None = None
    singles: dict[str, _Reading] = {}
    for one in found:
        codes, point, body = one.codes, one.point, one.resource.body
        if not codes & (PRESSURE | {SYSTOLIC, DIASTOLIC, PULSE}) or not one.resulted or point is None:
            continue
        if point.when.start > now:
            continue
        parts = {code: body.get("valueQuantity") for code in codes & {SYSTOLIC, DIASTOLIC, PULSE}}
        if codes & PRESSURE:
            parts = {
                code: part.get("valueQuantity")
                for part in each(body.get("component"))
                for _, code, _ in codings(part.get("code"))
            }
        read = {code: made for code, part in parts.items() if (made := _reading(point.when, part)) is not None}
        if codes & PRESSURE:
            both = _both(read.get(SYSTOLIC), read.get(DIASTOLIC))
            best = both if both and (best is None or both.when.start >= best.when.start) else best
            read = {code: made for code, made in read.items() if code == PULSE}
        for code, made in read.items():
            if code not in singles or made.when.start >= singles[code].when.start:
                singles[code] = made
    alone = _both(singles.get(SYSTOLIC), singles.get(DIASTOLIC))
    if alone and (best is None or alone.when.start > best.when.start):
        best = alone
    pulse = singles.get(PULSE)
    if best is None:
        return Fact("BP, pulse", f"pulse {pulse}", f"{pulse.when}; BP not recorded") if pulse else missing("BP, pulse")
    if pulse is None:
        return Fact("BP, pulse", str(best), f"{best.when}; pulse not recorded")
    same = best.when.start.date() == pulse.when.start.date()
    basis = str(best.when) if same else f"BP {best.when}; pulse {pulse.when}"
    return Fact("BP, pulse", f"{best}, pulse {pulse}", basis)


def _both(high: _Reading | None, low: _Reading | None) -> _Reading | None:
    """Systolic and diastolic of one moment as one reading."""
    if high is None or low is None or high.when.start != low.when.start or high.unit != low.unit:
        return None
    return _Reading(high.when, f"{high.value}/{low.value}", high.unit)


def standing(allergies: list[Resource], *, now: datetime, zone: tzinfo) -> list[Resource]:
    """The allergies that are recorded at the clock and neither refuted, wrong nor over."""
    return [
        resource
        for resource in allergies
        if not {"entered-in-error", "refuted"} & {c for _, c, _ in codings(resource.body.get("verificationStatus"))}
        and not {"inactive", "resolved"} & {c for _, c, _ in codings(resource.body.get("clinicalStatus"))}
        and ((at := time_of(resource.body, zone)) is None or at.start <= now)
    ]


def reaction_words(body: Mapping[str, Any]) -> str:
    """What it did and how bad that was: "rash in childhood, mild; high risk, unconfirmed"."""
    said = []
    for reaction in each(body.get("reaction")):
        what = ", ".join(filter(None, (concept(one) for one in each(reaction.get("manifestation")))))
        described = reaction.get("description")
        words = [what, described if isinstance(described, str) and described.casefold() != what.casefold() else ""]
        severity = reaction.get("severity")
        said.append(", ".join(filter(None, [*words, severity if isinstance(severity, str) else ""])))
    risk = {"high": "high risk", "low": "low risk"}.get(str(body.get("criticality")), "")
    doubt = {c for _, c, _ in codings(body.get("verificationStatus"))} & {"unconfirmed", "presumed"}
    kind = "intolerance" if body.get("type") == "intolerance" else ""
    return "; ".join(filter(None, [*said, ", ".join(filter(None, [kind, risk, *sorted(doubt)]))]))


def _allergies(allergies: list[Resource], now: datetime, zone: tzinfo) -> Fact:
    listed = standing(allergies, now=now, zone=zone)
    denied = [r for r in listed if NO_ALLERGY & {code for _, code, _ in codings(r.body.get("code"))}]
    named = [r for r in listed if r not in denied]
    if named:
        names = [(concept(r.body.get("code")) or "no name", r.body) for r in named]
        told = [f"{name}: {words}" for name, body in names if (words := reaction_words(body))]
        value = ", ".join(name + (" (high risk)" if body.get("criticality") == "high" else "") for name, body in names)
        return Fact("Allergies", value, " · ".join(told) or "as listed")
    if denied:
        return Fact("Allergies", "none known", "recorded so")
    return Fact("Allergies", "none listed", "nobody recorded that there are none", known=False)
