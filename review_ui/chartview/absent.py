"""What the chart does not contain, computed from its coded entries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from graders.analytes import ANALYTES
from review_ui.chartview.elements import concept
from review_ui.chartview.facts import HEIGHT, WEIGHT, age_at, sex_of
from review_ui.chartview.labs import Measurement
from tasks.fhir.resources import Resource

_ECG = frozenset({"11524-6", "34534-8", "8601-7", "8625-6", "8634-8", "8636-3"})
_SMOKING = frozenset({"72166-2", "11366-2", "8663-7", "39240-7"})
_ALCOHOL = frozenset({"11331-6", "74013-4", "11287-0", "75626-2", "68518-0"})
_PREGNANCY = frozenset({"82810-3", "2106-3", "2118-8", "21198-7", "19080-1", "11449-6"})
#: The ratio (mass, molar, 24 h), not the concentration of albumin alone (14957-5).
_RACR = frozenset({"9318-7", "14959-1", "32294-1", "14958-3", "30000-4", "13705-9"})


@dataclass(frozen=True)
class Absent:
    """Something that the chart does not hold, and how that is known."""

    what: str
    found: str


def _codes(name: str) -> frozenset[str]:
    return next(frozenset(analyte.codes) for analyte in ANALYTES if analyte.name == name)


def absent(
    patient: Resource | None, types: Iterable[str], results: Iterable[Measurement], *, now: datetime
) -> list[Absent]:
    """What is not there at the clock (`types` are). A laboratory value counts as missing where none is younger than a
    year."""
    present = set(types)
    measured: set[str] = set()
    habits: set[str] = set()
    recent: set[str] = set()
    for one in results:
        if one.point is None or not one.resulted or one.point.when.start > now:
            continue
        measured |= one.codes
        if "social-history" in one.kinds:
            habits.add(concept(one.resource.body.get("code")).casefold())
        if one.point.when.start >= now - timedelta(days=365):
            recent |= one.codes
    found = []

    def kind(name: str, what: str) -> None:
        if name not in present:
            found.append(Absent(what, "no entry"))

    def value(codes: frozenset[str], what: str, within_a_year: bool = False) -> None:
        if within_a_year and codes & measured and not codes & recent:
            found.append(Absent(f"{what} in the last 12 months", "older results only"))
        elif not codes & measured:
            found.append(Absent(what, "never measured or asked, as a coded entry"))

    kind("AllergyIntolerance", "Allergies, or that there are none")
    if sex_of(patient) == "female" and patient is not None and 12 <= (age_at(patient, now) or 0) <= 55:
        value(_PREGNANCY, "Pregnancy test or status", within_a_year=True)
    value(WEIGHT, "Weight", within_a_year=True)
    value(HEIGHT, "Height")
    value(_codes("Creatinine"), "Creatinine", within_a_year=True)
    value(_codes("Potassium"), "Potassium", within_a_year=True)
    value(_codes("Hemoglobin"), "Hemoglobin", within_a_year=True)
    value(_codes("ALT"), "Liver enzymes (ALT)", within_a_year=True)
    value(_RACR, "Urine albumin/creatinine", within_a_year=True)
    value(_ECG, "ECG as a measured result")
    # Habits are often written down without a code.
    if not any("smok" in habit or "tobacco" in habit for habit in habits):
        value(_SMOKING, "Smoking status")
    if not any("alcohol" in habit for habit in habits):
        value(_ALCOHOL, "Alcohol use")
    kind("MedicationDispense", "Pharmacy fill history")
    kind("MedicationStatement", "What the patient says is taken, as a list")
    kind("Immunization", "Immunizations")
    kind("FamilyMemberHistory", "Family history, coded")
    kind("ImagingStudy", "Imaging studies, as such")
    kind("Consent", "Consent or advance directive")
    return found
