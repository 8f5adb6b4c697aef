"""Built-in truth functions: a value computed from the chart as it stands at the task's clock.

A checkpoint names one in `truth`: `egfr_ckd_epi_2021`, `cockcroft_gault`, `corrected_calcium`, `bmi`, `fib4`,
`age`, `cha2ds2_vasc`, `has_bled`, `meld_3`, or `latest:<code>` (also `latest:<system>|<code>`), the latest value of an
Observation by time. The formulas are plain functions of numbers, so that they can be checked by hand; each names its
source, its unit and the range that it holds for (those of scores in graders/scores.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Literal, NamedTuple

from graders.evidence import Evidence
from graders.lab_units import convert
from graders.scores import active_drugs, cha2ds2_vasc, has_bled, held, meld_3, within
from graders.verdicts import Truth
from tasks.declarations import LATEST
from tasks.errors import DeclarationError
from tasks.fhir.resources import Resource
from tasks.trials import ResourceCite

Sex = Literal["female", "male"]

#: What counts as a result. A registered or preliminary one may change; one entered in error never was.
_RESULTED = frozenset({"final", "amended", "corrected"})

#: LOINC codes by what is measured (serum or plasma and whole blood alike), and the analyte for unit conversion.
CODES: dict[str, tuple[str, ...]] = {
    "creatinine": ("2160-0", "14682-9", "38483-4"),
    "calcium": ("17861-6", "2000-8"),
    "albumin": ("1751-7",),
    "weight": ("29463-7", "3141-9"),
    "height": ("8302-2", "3137-7"),
    "AST": ("1920-8",),
    "ALT": ("1742-6",),
    "platelets": ("777-3", "26515-7"),
    "bilirubin": ("1975-2", "14631-6"),
    "sodium": ("2951-2", "2947-0"),
    "INR": ("6301-6", "34714-6"),
    "alkaline phosphatase": ("6768-6",),
}
#: Systolic pressure: on its own, or as a component of the panel.
_SYSTOLIC = "8480-6"
_PRESSURE_PANELS = ("85354-9", "55284-4")
#: Upper limits that HAS-BLED's liver item is told by: bilirubin 1.2 mg/dL; AST 40, ALT 40, ALP 120 U/L.
_LIVER_LIMITS = {"AST": 40.0, "ALT": 40.0, "alkaline phosphatase": 120.0}
_BILIRUBIN_LIMIT = 1.2
_ANALYTE_OF_CODE = {
    "2160-0": "creatinine",
    "14682-9": "creatinine",
    "38483-4": "creatinine",
    "17861-6": "calcium",
    "2000-8": "calcium",
    "2345-7": "glucose",
    "2339-0": "glucose",
    "1975-2": "bilirubin",
    "14631-6": "bilirubin",
    "3084-1": "urate",
    "1989-3": "vitamin d",
    "62292-8": "vitamin d",
    "4548-4": "hba1c",
    "17856-6": "hba1c",
    "59261-8": "hba1c",
    "2093-3": "cholesterol",
    "2571-8": "triglycerides",
    "3094-0": "urea nitrogen",
}


# ---- formulas -------------------------------------------------------------------------------------------------------


def ckd_epi_2021(creatinine: float, age: int, sex: Sex) -> float:
    """Estimated GFR in mL/min/1.73 m2 from serum creatinine in mg/dL, age in years (18 or older) and sex.

    Inker LA et al., N Engl J Med 2021;385:1737-49: 142 x min(Scr/k, 1)^a x max(Scr/k, 1)^-1.200 x 0.9938^age
    [x 1.012 if female]; k = 0.7 and a = -0.241 for women, 0.9 and -0.302 for men.
    """
    within("an age", age, 18, 120, "years")
    within("a creatinine", creatinine, 0.1, 25, "mg/dL")
    kappa, alpha, factor = (0.7, -0.241, 1.012) if sex == "female" else (0.9, -0.302, 1.0)
    ratio = creatinine / kappa
    return float(142 * min(ratio, 1) ** alpha * max(ratio, 1) ** -1.2 * 0.9938**age * factor)


def cockcroft_gault_clearance(creatinine: float, age: int, sex: Sex, weight: float) -> float:
    """Creatinine clearance in mL/min from serum creatinine in mg/dL, age in years, sex, actual body weight in kg.

    Cockcroft DW, Gault MH, Nephron 1976;16:31-41: (140 - age) x weight / (72 x Scr), x 0.85 if female. For adults.
    """
    within("an age", age, 18, 120, "years")
    within("a creatinine", creatinine, 0.1, 25, "mg/dL")
    within("a weight", weight, 20, 350, "kg")
    return (140 - age) * weight / (72 * creatinine) * (0.85 if sex == "female" else 1.0)


def calcium_for_albumin(calcium: float, albumin: float) -> float:
    """Albumin-corrected total calcium in mg/dL from calcium in mg/dL and albumin in g/dL.

    Payne RB et al., BMJ 1973;4:643-6, in its usual US form: calcium + 0.8 x (4.0 - albumin).
    """
    within("a calcium", calcium, 3, 25, "mg/dL")
    within("an albumin", albumin, 0.3, 8, "g/dL")
    return calcium + 0.8 * (4.0 - albumin)


def body_mass_index(weight: float, height: float) -> float:
    """kg/m2 from weight in kg and height in m (WHO Technical Report Series 894, 2000)."""
    return weight / height**2


def fibrosis_4(age: int, ast: float, alt: float, platelets: float) -> float:
    """FIB-4 from age in years, AST and ALT in U/L, platelets in 10^9/L.

    Sterling RK et al., Hepatology 2006;43:1317-25: age x AST / (platelets x sqrt(ALT)). Its cut-offs were found between
    35 and 65 years; the index itself is computed for every adult.
    """
    within("an age", age, 18, 120, "years")
    within("an AST", ast, 1, 20_000, "U/L")
    within("an ALT", alt, 1, 20_000, "U/L")
    within("platelets", platelets, 1, 2_000, "10^9/L")
    return float(age * ast / (platelets * alt**0.5))


# ---- values of the chart --------------------------------------------------------------------------------------------


class Measured(NamedTuple):
    """One measured value, with its unit as written, its analyte, and the resource."""

    value: Decimal
    unit: str
    analyte: str
    resource: Resource
    at: datetime

    def in_unit(self, unit: str) -> float:
        """The value as a number of `unit`."""
        return float(convert(self.value, self.unit, unit, self.analyte))

    @property
    def cite(self) -> ResourceCite:
        return ResourceCite(
            ref=self.resource.ref, path="Observation.valueQuantity", value=f"{self.value} {self.unit}".strip()
        )


def latest(evidence: Evidence, *codes: str) -> Measured:
    """The patient's latest resulted value with one of these codes (`code` or `system|code`) at or before the clock.

    DeclarationError where there is none, where the latest has no plain number, or two of the same time differ.
    """
    now = _clock(evidence)
    found: list[tuple[datetime, Resource]] = []
    for row in evidence.search_chart("Observation", ("patient", evidence.patient), ("code", ",".join(codes))):
        at = observed_at(row.body, now)
        if row.body.get("status") in _RESULTED and at is not None and at <= now:
            found.append((at, row))
    if not found:
        raise DeclarationError(f"the chart has no result with code {' or '.join(codes)} at the clock")
    newest = max(at for at, _ in found)
    rows = [row for at, row in found if at == newest]
    values = {(str(q.get("value")), str(q.get("unit"))) for q in (r.body.get("valueQuantity") or {} for r in rows)}
    quantity = rows[0].body.get("valueQuantity") or {}
    value = quantity.get("value")
    if len(values) > 1 or value is None or quantity.get("comparator"):
        raise DeclarationError(f"the latest result with code {' or '.join(codes)} is not one plain number")
    unit = str(quantity.get("code") or quantity.get("unit") or "")
    coded = [str(coding.get("code")) for coding in (rows[0].body.get("code") or {}).get("coding") or []]
    analyte = next((_ANALYTE_OF_CODE[code] for code in coded if code in _ANALYTE_OF_CODE), "")
    return Measured(Decimal(str(value)), unit, analyte, rows[0], newest)


def observed_at(body: dict[str, object], now: datetime) -> datetime | None:
    """When the observation was made: effective time, else issued. A date without a time is that day's start."""
    period = body.get("effectivePeriod")
    ends = [period.get("end"), period.get("start")] if isinstance(period, dict) else []
    for written in (body.get("effectiveDateTime"), body.get("effectiveInstant"), *ends, body.get("issued")):
        if isinstance(written, str):
            return _instant(written, now)
    return None


def _instant(written: str, now: datetime) -> datetime | None:
    text = f"{written}-01-01" if len(written) == 4 else f"{written}-01" if len(written) == 7 else written
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=now.tzinfo or UTC)


def _clock(evidence: Evidence) -> datetime:
    if evidence.now is None:
        raise DeclarationError("the task has no clock", where="task.toml", remedy="Set now in [context].")
    return evidence.now


def _person(evidence: Evidence) -> Resource:
    person = evidence.chart.get(evidence.patient)
    if person is None:
        raise DeclarationError("the task's patient is not in the chart", where=evidence.patient)
    return person


def age_at(evidence: Evidence, when: datetime) -> tuple[int, ResourceCite]:
    """Whole years at `when`, by the patient's birth date."""
    person = _person(evidence)
    written = str(person.body.get("birthDate") or "")
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", written):
        raise DeclarationError("the patient's birth date is not a full date", where=person.ref)
    born = date.fromisoformat(written)
    day = when.date()
    years = day.year - born.year - ((day.month, day.day) < (born.month, born.day))
    return years, ResourceCite(ref=person.ref, path="Patient.birthDate", value=written)


def sex_of(evidence: Evidence) -> tuple[Sex, ResourceCite]:
    """The recorded gender, as the formulas' sex."""
    person = _person(evidence)
    gender = person.body.get("gender")
    if gender not in ("female", "male"):
        raise DeclarationError("the patient's gender is neither female nor male", where=person.ref)
    return gender, ResourceCite(ref=person.ref, path="Patient.gender", value=str(gender))


# ---- the registry ---------------------------------------------------------------------------------------------------


def _age(evidence: Evidence) -> Truth:
    years, cite = age_at(evidence, _clock(evidence))
    return Truth(years, "years", (cite,), "age at the clock")


def _egfr(evidence: Evidence) -> Truth:
    creatinine = latest(evidence, *CODES["creatinine"])
    age, born = age_at(evidence, creatinine.at)
    sex, gender = sex_of(evidence)
    value = ckd_epi_2021(creatinine.in_unit("mg/dL"), age, sex)
    return Truth(value, "mL/min/1.73m2", (creatinine.cite, born, gender), "CKD-EPI 2021, latest creatinine")


def _clearance(evidence: Evidence) -> Truth:
    creatinine = latest(evidence, *CODES["creatinine"])
    weight = latest(evidence, *CODES["weight"])
    age, born = age_at(evidence, _clock(evidence))
    sex, gender = sex_of(evidence)
    value = cockcroft_gault_clearance(creatinine.in_unit("mg/dL"), age, sex, weight.in_unit("kg"))
    return Truth(value, "mL/min", (creatinine.cite, weight.cite, born, gender), "Cockcroft-Gault, actual weight")


def _corrected_calcium(evidence: Evidence) -> Truth:
    calcium, albumin = latest(evidence, *CODES["calcium"]), latest(evidence, *CODES["albumin"])
    if abs(calcium.at - albumin.at) > timedelta(days=7):
        raise DeclarationError("the latest calcium and albumin are more than a week apart")
    value = calcium_for_albumin(calcium.in_unit("mg/dL"), albumin.in_unit("g/dL"))
    return Truth(value, "mg/dL", (calcium.cite, albumin.cite), "calcium corrected for albumin")


def _bmi(evidence: Evidence) -> Truth:
    weight, height = latest(evidence, *CODES["weight"]), latest(evidence, *CODES["height"])
    return Truth(body_mass_index(weight.in_unit("kg"), height.in_unit("m")), "kg/m2", (weight.cite, height.cite), "BMI")


def _fib4(evidence: Evidence) -> Truth:
    ast, alt = latest(evidence, *CODES["AST"]), latest(evidence, *CODES["ALT"])
    platelets = latest(evidence, *CODES["platelets"])
    age, born = age_at(evidence, _clock(evidence))
    value = fibrosis_4(age, ast.in_unit("U/L"), alt.in_unit("U/L"), platelets.in_unit("10*9/L"))
    return Truth(value, "", (ast.cite, alt.cite, platelets.cite, born), "FIB-4")


def _cha2ds2_vasc(evidence: Evidence) -> Truth:
    now = _clock(evidence)
    age, born = age_at(evidence, now)
    sex, gender = sex_of(evidence)
    items = ("heart failure", "hypertension", "diabetes", "stroke, TIA or thromboembolism", "vascular disease")
    failure, pressure, sugar, stroke, vessels = found = held(evidence, now, *items)
    points = cha2ds2_vasc(
        age, sex, heart_failure=bool(failure), hypertension=bool(pressure), diabetes=bool(sugar), stroke=bool(stroke),
        vascular=bool(vessels),
    )  # fmt: skip
    cites = (born, gender, *(cite for item in found for cite in item.cites))
    return Truth(
        points, "points", cites, f"CHA2DS2-VASc ({', '.join(item.item for item in found if item) or 'age, sex'})"
    )


def _has_bled(evidence: Evidence) -> Truth:
    now = _clock(evidence)
    age, born = age_at(evidence, now)
    renal, cirrhosis, stroke, bleeding, alcohol = found = held(
        evidence, now, "dialysis or kidney transplant", "cirrhosis", "stroke", "bleeding", "harmful alcohol use"
    )
    _refuse_untold_alcohol(evidence, alcohol=bool(alcohol))
    medicines = active_drugs(evidence)
    if any(ingredient == "warfarin" for ingredient, *_ in medicines):
        raise DeclarationError(
            "under warfarin the chart does not settle whether the INR is labile",
            remedy="Compute the score in checkpoints.py with graders.scores.has_bled.",
        )
    creatinine = latest(evidence, *CODES["creatinine"])
    pressure, measured = latest_systolic(evidence)
    liver, sources = _liver_injury(evidence)
    prone = [cite for _, classes, cite in medicines if classes & {"antiplatelet", "NSAID"}]
    points = has_bled(
        age,
        uncontrolled_hypertension=pressure > 160,
        abnormal_renal=bool(renal) or creatinine.in_unit("umol/L") >= 200,
        abnormal_liver=bool(cirrhosis) or liver,
        stroke=bool(stroke),
        bleeding=bool(bleeding),
        labile_inr=False,
        drugs=bool(prone),
        alcohol=bool(alcohol),
    )
    cites = (born, measured, creatinine.cite, *sources, *prone, *(cite for item in found for cite in item.cites))
    return Truth(points, "points", tuple(dict.fromkeys(cites)), "HAS-BLED")


def _refuse_untold_alcohol(evidence: Evidence, *, alcohol: bool) -> None:
    if alcohol:
        return
    for row in evidence.search_chart("Observation", ("patient", evidence.patient), ("category", "social-history")):
        named = str(row.body.get("code") or "").casefold()
        if "alcohol" in named or "drinks" in named:
            raise DeclarationError(
                "alcohol use stands in the social history, which no rule settles",
                where=row.ref,
                remedy="Compute the score in checkpoints.py with graders.scores.has_bled.",
            )


def latest_systolic(evidence: Evidence) -> tuple[float, ResourceCite]:
    """The latest systolic pressure in mmHg at or before the clock, measured alone or in a panel."""
    now = _clock(evidence)
    found: list[tuple[datetime, float, ResourceCite]] = []
    codes = ",".join((_SYSTOLIC, *_PRESSURE_PANELS))
    for row in evidence.search_chart("Observation", ("patient", evidence.patient), ("code", codes)):
        at = observed_at(row.body, now)
        if row.body.get("status") not in _RESULTED or at is None or at > now:
            continue
        for path, part in (
            ("Observation", row.body),
            *(("Observation.component", c) for c in row.body.get("component") or ()),
        ):
            coded = {str(one.get("code")) for one in (part.get("code") or {}).get("coding") or ()}
            value = (part.get("valueQuantity") or {}).get("value")
            if _SYSTOLIC in coded and value is not None:
                found.append(
                    (at, float(value), ResourceCite(ref=row.ref, path=f"{path}.valueQuantity", value=str(value)))
                )
    if not found:
        raise DeclarationError("the chart has no systolic pressure at the clock")
    newest = max(at for at, *_ in found)
    values = {value for at, value, _ in found if at == newest}
    if len(values) > 1:
        raise DeclarationError("two systolic pressures of the same time differ")
    return next((value, cite) for at, value, cite in found if at == newest)


def _liver_injury(evidence: Evidence) -> tuple[bool, tuple[ResourceCite, ...]]:
    """Bilirubin above twice with AST, ALT or ALP above three times the limit; not measured counts as not shown."""
    bilirubin = _measured(evidence, "bilirubin")
    if bilirubin is None or bilirubin.in_unit("mg/dL") <= 2 * _BILIRUBIN_LIMIT:
        return False, () if bilirubin is None else (bilirubin.cite,)
    enzymes = [(_measured(evidence, name), limit) for name, limit in _LIVER_LIMITS.items()]
    high = [one.cite for one, limit in enzymes if one is not None and one.in_unit("U/L") > 3 * limit]
    return bool(high), (bilirubin.cite, *high)


def _measured(evidence: Evidence, name: str) -> Measured | None:
    found = evidence.search_chart("Observation", ("patient", evidence.patient), ("code", ",".join(CODES[name])))
    return latest(evidence, *CODES[name]) if found else None


def _meld_3(evidence: Evidence) -> Truth:
    names_ = ("bilirubin", "sodium", "INR", "creatinine", "albumin")
    bilirubin, sodium, inr, creatinine, albumin = labs = [latest(evidence, *CODES[name]) for name in names_]
    if max(one.at for one in labs) - min(one.at for one in labs) > timedelta(days=7):
        raise DeclarationError("the latest values for MELD are more than a week apart")
    if held(evidence, _clock(evidence), "dialysis or kidney transplant")[0]:
        raise DeclarationError(
            "under dialysis MELD counts creatinine as 3.0 only by its dates",
            remedy="Compute the score in checkpoints.py with graders.scores.meld_3.",
        )
    sex, gender = sex_of(evidence)
    years, born = age_at(evidence, _clock(evidence))
    within("an age", years, 18, 120, "years")
    points = meld_3(
        sex,
        bilirubin.in_unit("mg/dL"),
        # Sodium has one charge: 1 mEq is 1 mmol, which holds for no table of units but for this.
        float(sodium.value) if sodium.unit.casefold() in ("meq/l", "mmol/l") else sodium.in_unit("mmol/L"),
        float(inr.value),
        creatinine.in_unit("mg/dL"),
        albumin.in_unit("g/dL"),
    )
    return Truth(points, "points", (*(one.cite for one in labs), gender, born), "MELD 3.0")


#: Truth name -> (how it reads in plain words, the function). `latest:<code>` stands beside these.
TRUTHS: dict[str, tuple[str, Callable[[Evidence], Truth]]] = {
    "age": ("the patient's age", _age),
    "egfr_ckd_epi_2021": ("the eGFR by CKD-EPI 2021 from the latest creatinine", _egfr),
    "cockcroft_gault": ("the creatinine clearance by Cockcroft-Gault with actual weight", _clearance),
    "corrected_calcium": ("the calcium corrected for albumin", _corrected_calcium),
    "bmi": ("the body mass index", _bmi),
    "fib4": ("the FIB-4 index", _fib4),
    "cha2ds2_vasc": ("the CHA2DS2-VASc score from the coded diagnoses", _cha2ds2_vasc),
    "has_bled": ("the HAS-BLED score from coded diagnoses, active drugs, blood pressure and laboratory", _has_bled),
    "meld_3": ("the MELD 3.0 score from the latest laboratory", _meld_3),
}


def compute(name: str, evidence: Evidence) -> Truth:
    """The built-in truth of this name. DeclarationError where there is none, or the chart does not give it."""
    if name.startswith(LATEST):
        measured = latest(evidence, *filter(None, name.removeprefix(LATEST).split(",")))
        return Truth(measured.value, measured.unit, (measured.cite,), "latest value in the chart")
    if name not in TRUTHS:
        raise DeclarationError(
            f"there is no truth function {name!r}",
            remedy=f"Built in are {', '.join(names())}; others stand in checkpoints.py.",
        )
    return TRUTHS[name][1](evidence)


def analyte_of(name: str) -> str:
    """The analyte whose SI factor converts this truth's unit, "" where none does."""
    if name == "corrected_calcium":
        return "calcium"
    code = name.removeprefix(LATEST).split(",")[0].split("|")[-1] if name.startswith(LATEST) else ""
    return _ANALYTE_OF_CODE.get(code, "")


def names() -> Iterator[str]:
    """Every built-in truth, as a declaration writes it."""
    yield from TRUTHS
    yield f"{LATEST}<code>"
