"""The facts strip: who the patient is and how well the kidneys work, at the task's clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo
from decimal import Decimal

from graders.analytes import Analyte, to_unit
from graders.truths import CODES, Sex, ckd_epi_2021, cockcroft_gault_clearance
from review_ui.chartview.elements import codings, concept, each, element, number, plain_number, when
from review_ui.chartview.labs import Measurement, Point
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
    refs: tuple[str, ...] = ()
    known: bool = True


def missing(name: str, why: str = "") -> Fact:
    """A fact that the chart does not give."""
    return Fact(name, "not recorded", why, known=False)


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
    refs = (patient.ref,) if patient else ()
    who = ", ".join(filter(None, [str(age) if age is not None else "", str(sex or "")]))
    facts = [Fact("Age, sex", who, "at the clock", refs) if who else missing("Age, sex")]
    weight = latest(found, WEIGHT, "kg", now=now)
    if weight:
        facts.append(
            Fact("Weight", f"{plain_number(round(weight.value, 1))} kg", str(weight.point.when), (weight.point.ref,))
        )
    else:
        facts.append(missing("Weight"))
    creatinine = latest(found, CREATININE, "mg/dL", now=now, analyte="creatinine")
    if creatinine is None:
        facts += [missing("eGFR, CKD-EPI 2021", "no creatinine"), missing("CrCl, Cockcroft-Gault", "no creatinine")]
    else:
        basis = f"creatinine {creatinine.point.written}, {creatinine.point.when}"
        facts.append(_egfr(creatinine, age_at(patient, creatinine.point.when.start), sex, basis))
        facts.append(_clearance(creatinine, weight, age, sex, basis))
    facts.append(_pressure(found, now, zone))
    facts.append(_allergies(allergies))
    return facts


def _egfr(creatinine: Latest, age: int | None, sex: Sex | None, basis: str) -> Fact:
    name = "eGFR, CKD-EPI 2021"
    if age is None or sex is None or creatinine.value <= 0:
        return missing(name, "needs birth date, sex and creatinine")
    if age < 18:
        return missing(name, "holds from 18 years on")
    value = ckd_epi_2021(creatinine.value, age, sex)
    return Fact(name, f"{value:.0f} mL/min/1.73 m²", basis, (creatinine.point.ref,))


def _clearance(creatinine: Latest, weight: Latest | None, age: int | None, sex: Sex | None, basis: str) -> Fact:
    name = "CrCl, Cockcroft-Gault"
    if weight is None or age is None or sex is None or creatinine.value <= 0:
        return missing(name, "needs birth date, sex, weight and creatinine")
    if age < 18:
        return missing(name, "holds from 18 years on")
    value = cockcroft_gault_clearance(creatinine.value, age, sex, weight.value)
    return Fact(name, f"{value:.0f} mL/min", f"{basis}; actual weight", (creatinine.point.ref, weight.point.ref))


def _pressure(found: list[Measurement], now: datetime, zone: tzinfo) -> Fact:
    best: tuple[datetime, str, str] | None = None
    singles: dict[str, tuple[datetime, float, str]] = {}
    for one in found:
        codes, point, resource = one.codes, one.point, one.resource
        if not codes & (PRESSURE | {SYSTOLIC, DIASTOLIC, PULSE}) or not one.resulted or point is None:
            continue
        if point.when.start > now:
            continue
        if codes & PRESSURE:
            parts = {
                code: number(element(part, "valueQuantity.value"))
                for part in each(resource.body.get("component"))
                for _, code, _ in codings(part.get("code"))
            }
            high, low = parts.get(SYSTOLIC), parts.get(DIASTOLIC)
            if high is not None and low is not None and (best is None or point.when.start >= best[0]):
                best = (point.when.start, f"{high:.0f}/{low:.0f}", resource.ref)
        elif point.value is not None:
            for code in codes & {SYSTOLIC, DIASTOLIC, PULSE}:
                if code not in singles or point.when.start >= singles[code][0]:
                    singles[code] = (point.when.start, point.value, resource.ref)
    if SYSTOLIC in singles and DIASTOLIC in singles:
        high_at, low_at = singles[SYSTOLIC], singles[DIASTOLIC]
        if high_at[0] == low_at[0] and (best is None or high_at[0] > best[0]):
            best = (high_at[0], f"{high_at[1]:.0f}/{low_at[1]:.0f}", high_at[2])
    if best is None:
        return missing("BP, pulse")
    at = when(best[0].isoformat(), zone)
    pulse = singles.get(PULSE)
    beat = f", {pulse[1]:.0f}" if pulse else ""
    basis = f"{at} mmHg" if at else "mmHg"
    return Fact("BP, pulse" if pulse else "BP", f"{best[1]}{beat}", basis, (best[2], *([pulse[2]] if pulse else [])))


def _allergies(allergies: list[Resource]) -> Fact:
    standing = [
        resource
        for resource in allergies
        if not {"entered-in-error", "refuted"} & {c for _, c, _ in codings(resource.body.get("verificationStatus"))}
        and not {"inactive", "resolved"} & {c for _, c, _ in codings(resource.body.get("clinicalStatus"))}
    ]
    denied = [r for r in standing if NO_ALLERGY & {code for _, code, _ in codings(r.body.get("code"))}]
    named = [r for r in standing if r not in denied]
    if named:
        words = ", ".join(concept(r.body.get("code")) or "no name" for r in named)
        return Fact("Allergies", words, "as listed", tuple(r.ref for r in named))
    if denied:
        return Fact("Allergies", "none known", "recorded so", tuple(r.ref for r in denied))
    return Fact("Allergies", "none listed", "nobody recorded that there are none", known=False)
