"""Clinical scores: as plain functions of their items, and the diagnoses of a chart that give the items.

An item that a coded chart cannot settle (a labile INR, alcohol told in words) is an error with a way out, never a
guess: the task then computes the score in checkpoints.py, with the same function.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from tasks.errors import DeclarationError
from tasks.trials import ResourceCite

if TYPE_CHECKING:
    from graders.evidence import Evidence

Sex = Literal["female", "male"]
_ICD_10_CM = "http://hl7.org/fhir/sid/icd-10-cm"

#: ICD-10-CM prefixes of the items (CMS ICD-10-CM 2026 tabular list). A longer prefix of EXCEPT takes away.
DIAGNOSES: dict[str, tuple[str, ...]] = {
    "heart failure": ("I50", "I11.0", "I13.0", "I13.2", "I42", "I09.81", "I25.5"),
    "hypertension": ("I10", "I11", "I12", "I13", "I15", "I16", "I1A"),
    "diabetes": ("E08", "E09", "E10", "E11", "E13"),
    "stroke, TIA or thromboembolism": ("I63", "I69.3", "Z86.73", "G45", "I74"),
    "vascular disease": ("I21", "I22", "I25.2", "I70", "I73.9"),
    "stroke": ("I60", "I61", "I62", "I63", "I69.0", "I69.1", "I69.2", "I69.3", "Z86.73"),
    "dialysis or kidney transplant": ("Z99.2", "Z94.0", "T86.1", "N18.6"),
    "cirrhosis": ("K74.3", "K74.4", "K74.5", "K74.6", "K70.3", "K71.7"),
    "bleeding": (
        "I60", "I61", "I62", "K92.0", "K92.1", "K92.2", "K62.5", "I85.01", "I85.11", "D62", "D50.0", "K25.0", "K25.2",
        "K25.4", "K25.6", "K26.0", "K26.2", "K26.4", "K26.6", "K27.0", "K27.2", "K27.4", "K27.6", "K28.0", "K28.2",
        "K28.4", "K28.6", "D50", "D51", "D52", "D53", "D55", "D56", "D57", "D58", "D59", "D60", "D61", "D63", "D64",
        "D65", "D66", "D67", "D68.0", "D68.1", "D68.2", "D68.3", "D68.4", "D69.1", "D69.3", "D69.4", "D69.5", "D69.6",
    ),
    "harmful alcohol use": ("F10.1", "F10.2"),
}  # fmt: skip
EXCEPT: dict[str, tuple[str, ...]] = {
    "stroke, TIA or thromboembolism": ("G45.4",),  # transient global amnesia
    "vascular disease": ("I70.1", "I70.8"),  # renal and other named arteries: not peripheral, not aortic
    "harmful alcohol use": ("F10.11", "F10.21"),  # in remission
}


# ---- the scores as functions of their items -------------------------------------------------------------------------


def within(what: str, value: float, low: float, high: float, unit: str) -> float:
    """The value, where the formula holds for it. DeclarationError with the range, and without the value."""
    if not low <= value <= high:
        raise DeclarationError(f"the formula holds for {what} of {low:g} to {high:g} {unit}".rstrip())
    return value


def cha2ds2_vasc(
    age: int, sex: Sex, *, heart_failure: bool, hypertension: bool, diabetes: bool, stroke: bool, vascular: bool
) -> int:
    """CHA2DS2-VASc, 0 to 9 points; age in whole years, 18 or older.

    Lip GYH et al., Chest 2010;137:263-72: heart failure or left ventricular dysfunction 1, hypertension 1, age 75 or
    older 2, diabetes 1, stroke, TIA or thromboembolism 2, vascular disease (prior myocardial infarction, peripheral
    artery disease, aortic plaque) 1, age 65 to 74 1, female sex 1.
    """
    within("an age", age, 18, 120, "years")
    points = int(heart_failure) + int(hypertension) + int(diabetes) + 2 * int(stroke) + int(vascular)
    return points + (2 if age >= 75 else 1 if age >= 65 else 0) + int(sex == "female")


def has_bled(
    age: int,
    *,
    uncontrolled_hypertension: bool,
    abnormal_renal: bool,
    abnormal_liver: bool,
    stroke: bool,
    bleeding: bool,
    labile_inr: bool,
    drugs: bool,
    alcohol: bool,
) -> int:
    """HAS-BLED, 0 to 9 points; age in whole years, 18 or older.

    Pisters R et al., Chest 2010;138:1093-100, one point each: systolic pressure above 160 mmHg; dialysis, transplant or
    creatinine of 200 umol/L (2.26 mg/dL) or more; cirrhosis, or bilirubin above twice with AST, ALT or ALP above three
    times the upper limit; stroke; bleeding history or predisposition (anaemia); labile INR; age above 65; antiplatelet
    drug or NSAID; alcohol (8 or more drinks a week).
    """
    within("an age", age, 18, 120, "years")
    items = (uncontrolled_hypertension, abnormal_renal, abnormal_liver, stroke, bleeding, labile_inr, drugs, alcohol)
    return sum(map(int, items)) + int(age > 65)


def meld_3(sex: Sex, bilirubin: float, sodium: float, inr: float, creatinine: float, albumin: float) -> int:
    """MELD 3.0, 6 to 40 points, of an adult; bilirubin and creatinine in mg/dL, sodium in mmol/L, albumin in g/dL.

    Kim WR et al., Gastroenterology 2021;161:1887-95; OPTN policy 9.1.D: 1.33 (if female) + 4.56 ln(bilirubin)
    + 0.82 (137 - Na) - 0.24 (137 - Na) ln(bilirubin) + 9.09 ln(INR) + 11.14 ln(creatinine) + 1.85 (3.5 - albumin)
    - 1.83 (3.5 - albumin) ln(creatinine) + 6, rounded. Bilirubin, INR and creatinine below 1.0 count as 1.0,
    creatinine above 3.0 as 3.0; sodium is held to 125 to 137, albumin to 1.5 to 3.5.
    """
    bili = math.log(max(1.0, within("a bilirubin", bilirubin, 0.01, 80, "mg/dL")))
    clot = math.log(max(1.0, within("an INR", inr, 0.5, 20, "")))
    crea = math.log(min(3.0, max(1.0, within("a creatinine", creatinine, 0.1, 25, "mg/dL"))))
    salt = 137 - min(137.0, max(125.0, within("a sodium", sodium, 90, 190, "mmol/L")))
    lack = 3.5 - min(3.5, max(1.5, within("an albumin", albumin, 0.3, 8, "g/dL")))
    score = 1.33 * (sex == "female") + 4.56 * bili + 0.82 * salt - 0.24 * salt * bili + 9.09 * clot
    score += 11.14 * crea + 1.85 * lack - 1.83 * lack * crea + 6
    return min(40, max(6, math.floor(score + 0.5)))


# ---- the items of a chart -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Held:
    """Whether the chart holds a diagnosis for an item, and the conditions that say so."""

    item: str
    cites: tuple[ResourceCite, ...]

    def __bool__(self) -> bool:
        return bool(self.cites)


def held(evidence: Evidence, now: datetime, *items: str) -> list[Held]:
    """The items of DIAGNOSES by the patient's conditions at the clock, resolved ones too: a score counts history.

    Refuted conditions, those entered in error and those merely suspected do not count. DeclarationError where a
    condition that would count has no ICD-10-CM code: it could be any of the items.
    """
    conditions = list(_conditions(evidence, now))
    return [Held(item, tuple(cite for code, cite in conditions if _is(item, code))) for item in items]


def _conditions(evidence: Evidence, now: datetime) -> Iterator[tuple[str, ResourceCite]]:
    for row in evidence.search_chart("Condition", ("patient", evidence.patient)):
        status = {code for _, code in _codings(row.body.get("verificationStatus"))}
        if status & {"refuted", "entered-in-error", "differential", "provisional", "unconfirmed"}:
            continue
        began = str(row.body.get("onsetDateTime") or row.body.get("recordedDate") or "")
        if began[:10] > now.date().isoformat():
            continue
        codes = [code for system, code in _codings(row.body.get("code")) if system == _ICD_10_CM]
        if not codes:
            raise DeclarationError(
                "a condition without an ICD-10-CM code could be an item of the score",
                where=row.ref,
                remedy="Code it, or compute the score in checkpoints.py.",
            )
        for code in codes:
            yield code, ResourceCite(ref=row.ref, path="Condition.code", value=code)


def _codings(concept: Any) -> list[tuple[str, str]]:
    codings: Sequence[Any] = (concept or {}).get("coding") or [] if isinstance(concept, dict) else []
    return [(str(one.get("system") or ""), str(one.get("code") or "")) for one in codings if isinstance(one, dict)]


@lru_cache(maxsize=4096)
def _is(item: str, code: str) -> bool:
    return code.startswith(DIAGNOSES[item]) and not code.startswith(EXCEPT.get(item, ("\0",)))


def active_drugs(evidence: Evidence) -> list[tuple[str, frozenset[str], ResourceCite]]:
    """(ingredient, its classes, where) of every active medication order of the chart. Unnamed drugs are left out."""
    from graders.orders import drugs

    found = []
    for row in evidence.search_chart("MedicationRequest", ("patient", evidence.patient), ("status", "active")):
        concept = row.body.get("medicationCodeableConcept") or {}
        names = [str(concept.get("text") or ""), *(str(c.get("display") or "") for c in concept.get("coding") or [])]
        for name in dict.fromkeys(filter(None, names)):
            cite = ResourceCite(ref=row.ref, path="MedicationRequest.medicationCodeableConcept", value=name)
            for mention in drugs.mentions(name):
                found += [(part, drugs.classes_of(part), cite) for part in mention.drug.components]
    return found
