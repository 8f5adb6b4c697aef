"""Scores: a second derivation of each, hand calculations, and what of a chart gives the items."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders import truths
from graders.evidence import Evidence
from graders.scores import cha2ds2_vasc, has_bled, meld_3
from tasks.errors import DeclarationError
from tasks.fhir.chart import Chart
from tasks.package import load
from tests.tasks.packages import TINY_ID, tiny_files

sexes = st.sampled_from(("female", "male"))
PLAIN = {
    "uncontrolled_hypertension": False, "abnormal_renal": False, "abnormal_liver": False, "stroke": False,
    "bleeding": False, "labile_inr": False, "drugs": False, "alcohol": False,
}  # fmt: skip


@given(st.integers(18, 110), sexes, st.tuples(*[st.booleans()] * 5))
def test_cha2ds2_vasc_as_a_weighted_table(age: int, sex: Any, items: tuple[bool, ...]) -> None:
    # Second derivation: the letters with their weights, summed as a table.
    failure, pressure, diabetes, stroke, vessel = items
    table = [
        ("C", failure, 1), ("H", pressure, 1), ("A2", age > 74, 2), ("D", diabetes, 1), ("S2", stroke, 2),
        ("V", vessel, 1), ("A", 64 < age < 75, 1), ("Sc", sex != "male", 1),
    ]  # fmt: skip
    expected = sum(weight for _, there, weight in table if there)
    assert cha2ds2_vasc(
        age, sex, heart_failure=failure, hypertension=pressure, diabetes=diabetes, stroke=stroke, vascular=vessel
    ) == expected  # fmt: skip
    assert 0 <= expected <= 9


def test_cha2ds2_vasc_by_hand() -> None:
    # A woman of 76 with hypertension and a stroke: 2 + 1 + 1 + 2 = 6. A man of 64 with nothing: 0.
    some = {"heart_failure": False, "hypertension": True, "diabetes": False, "stroke": True, "vascular": False}
    assert cha2ds2_vasc(76, "female", **some) == 6
    assert cha2ds2_vasc(64, "male", **dict.fromkeys(some, False)) == 0
    assert cha2ds2_vasc(75, "female", **dict.fromkeys(some, True)) == 9
    with pytest.raises(DeclarationError):
        cha2ds2_vasc(17, "male", **some)


@given(st.integers(18, 110), st.tuples(*[st.booleans()] * 8))
def test_has_bled_as_a_count(age: int, items: tuple[bool, ...]) -> None:
    expected = [*items, age >= 66].count(True)
    assert has_bled(age, **dict(zip(PLAIN, items, strict=True))) == expected


def test_has_bled_by_hand() -> None:
    # 70 years, aspirin, earlier stroke: E + D + S = 3. At 65 the age does not count yet.
    assert has_bled(70, **PLAIN | {"stroke": True, "drugs": True}) == 3
    assert has_bled(65, **PLAIN) == 0
    assert has_bled(90, **dict.fromkeys(PLAIN, True)) == 9


labs = (
    st.floats(0.2, 50), st.floats(110, 150), st.floats(0.8, 8), st.floats(0.4, 9), st.floats(1, 5),
)  # fmt: skip


@given(sexes, *labs)
def test_meld_3_in_si_units_and_factored(
    sex: Any, bilirubin: float, sodium: float, inr: float, creatinine: float, albumin: float
) -> None:
    # Second derivation: terms gathered by logarithm, bilirubin and creatinine in umol/L, albumin in g/L.
    b = max(17.1, bilirubin * 17.1) / 17.1
    c = min(3 * 88.4, max(88.4, creatinine * 88.4)) / 88.4
    a = min(35.0, max(15.0, albumin * 10)) / 10
    na = min(137.0, max(125.0, sodium))
    raw = (
        6 + (1.33 if sex == "female" else 0.0) + 0.82 * (137 - na) + 1.85 * (3.5 - a)
        + math.log(b) * (4.56 - 0.24 * (137 - na)) + 9.09 * math.log(max(1, inr))
        + math.log(c) * (11.14 - 1.83 * (3.5 - a))
    )  # fmt: skip
    found = meld_3(sex, bilirubin, sodium, inr, creatinine, albumin)
    assert abs(found - min(40.0, max(6.0, raw))) <= 0.5 + 1e-9
    assert 6 <= found <= 40


def test_meld_3_by_hand() -> None:
    # All at their floors: 6 for a man, 6 + 1.33 = 7.33 -> 7 for a woman.
    assert meld_3("male", 0.5, 140, 0.9, 0.6, 4.2) == 6
    assert meld_3("female", 0.5, 140, 0.9, 0.6, 4.2) == 7
    # A man, bilirubin 4, Na 130, INR 1.8, creatinine 1.5, albumin 2.5: 4.56 x 1.38629 = 6.3215; 0.82 x 7 = 5.74;
    # 0.24 x 7 x 1.38629 = 2.3290; 9.09 x 0.58779 = 5.3430; 11.14 x 0.40547 = 4.5169; 1.85; 1.83 x 0.40547 = 0.7420;
    # 6.3215 + 5.74 - 2.3290 + 5.3430 + 4.5169 + 1.85 - 0.7420 + 6 = 26.70 -> 27.
    assert meld_3("male", 4, 130, 1.8, 1.5, 2.5) == 27
    assert meld_3("female", 45, 120, 7, 8, 1.2) == 40


@pytest.mark.parametrize(
    "values", [(0, 140, 1, 1, 4), (1, 60, 1, 1, 4), (1, 140, 40, 1, 4), (1, 140, 1, 88, 4), (1, 140, 1, 1, 40)]
)
def test_values_of_another_unit_are_out_of_range_and_not_repeated(values: tuple[float, ...]) -> None:
    with pytest.raises(DeclarationError, match="the formula holds for") as caught:
        meld_3("male", *values)
    assert "88" not in str(caught.value)


# ---- items of a chart -----------------------------------------------------------------------------------------------


def condition(id: str, code: str | None, **keys: Any) -> dict[str, Any]:
    coding = [{"system": "http://hl7.org/fhir/sid/icd-10-cm", "code": code}] if code else []
    base = {
        "resourceType": "Condition",
        "id": id,
        "subject": {"reference": "Patient/p-7001"},
        "onsetDateTime": "2020-01-01",
    }
    return base | {"code": {"coding": coding, "text": "as coded"}} | keys


def lab(id: str, code: str, value: Any, unit: str, when: str = "2025-03-10") -> dict[str, Any]:
    return {
        "resourceType": "Observation", "id": id, "status": "final",
        "code": {"coding": [{"system": "http://loinc.org", "code": code}]},
        "subject": {"reference": "Patient/p-7001"}, "effectiveDateTime": when,
        "valueQuantity": {"value": value, "unit": unit, "code": unit},
    }  # fmt: skip


def drug(id: str, name: str, status: str = "active") -> dict[str, Any]:
    return {
        "resourceType": "MedicationRequest", "id": id, "status": status, "intent": "order",
        "medicationCodeableConcept": {"text": name}, "subject": {"reference": "Patient/p-7001"},
    }  # fmt: skip


def chart(*rows: dict[str, Any], birth: str = "1948-01-01", gender: str = "female") -> Evidence:
    bodies = [{"resourceType": "Patient", "id": "p-7001", "gender": gender, "birthDate": birth}, *rows]
    files: dict[str, bytes] = {}
    for body in bodies:
        name = f"{body['resourceType']}.ndjson"
        files[name] = files.get(name, b"") + json.dumps(body).encode() + b"\n"
    return Evidence(load(tiny_files(), where=TINY_ID), Chart.open(files))


def test_cha2ds2_vasc_of_a_chart() -> None:
    found = truths.compute(
        "cha2ds2_vasc",
        chart(
            condition("a", "I50.32"),
            condition("b", "I11.0"),
            condition("c", "Z86.73", clinicalStatus={"coding": [{"code": "resolved"}]}),
            condition("d", "E11.9", verificationStatus={"coding": [{"code": "refuted"}]}),
            condition("e", "I25.2", onsetDateTime="2025-06-01"),
            condition("f", "G45.4"),
            condition("g", "I25.10"),
        ),
    )
    # Woman of 77: 2 + 1; heart failure 1, hypertension by I11.0 1, stroke 2. Refuted, later, amnesia, plain CAD: 0.
    assert (found.value, found.unit) == (7, "points")
    assert {cite.ref for cite in found.cites if cite.kind == "resource"} == {
        "Patient/p-7001", "Condition/a", "Condition/b", "Condition/c",
    }  # fmt: skip


def test_a_condition_without_a_code_is_an_error_and_not_zero() -> None:
    with pytest.raises(DeclarationError, match="ICD-10-CM"):
        truths.compute("cha2ds2_vasc", chart(condition("a", None)))


BLED = (lab("cr", "2160-0", 1.0, "mg/dL"), lab("bp", "8480-6", 150, "mm[Hg]"))


@pytest.mark.parametrize(
    ("rows", "points"),
    [
        ((), 1),
        ((drug("m", "aspirin 81 mg tablet"),), 2),
        ((drug("m", "ibuprofen 400 mg", "stopped"),), 1),
        ((condition("a", "K70.30"), condition("b", "F10.20")), 3),
        ((condition("b", "F10.21"),), 1),
        ((lab("bp2", "8480-6", 172, "mm[Hg]", "2025-03-12"),), 2),
        ((lab("cr2", "2160-0", 2.27, "mg/dL", "2025-03-12"),), 2),
        ((lab("bi", "1975-2", 3.0, "mg/dL"), lab("al", "1742-6", 130, "U/L")), 2),
        ((lab("bi", "1975-2", 3.0, "mg/dL"), lab("al", "1742-6", 90, "U/L")), 1),
    ],
)
def test_has_bled_of_a_chart(rows: tuple[dict[str, Any], ...], points: int) -> None:
    assert truths.compute("has_bled", chart(*BLED, *rows)).value == points


def test_a_systolic_pressure_in_a_panel_counts() -> None:
    panel = {
        "resourceType": "Observation", "id": "p", "status": "final", "effectiveDateTime": "2025-03-13",
        "code": {"coding": [{"system": "http://loinc.org", "code": "85354-9"}]},
        "subject": {"reference": "Patient/p-7001"},
        "component": [
            {"code": {"coding": [{"system": "http://loinc.org", "code": "8480-6"}]}, "valueQuantity": {"value": 181}},
            {"code": {"coding": [{"system": "http://loinc.org", "code": "8462-4"}]}, "valueQuantity": {"value": 90}},
        ],
    }  # fmt: skip
    assert truths.latest_systolic(chart(*BLED, panel))[0] == 181


def test_what_a_chart_cannot_settle_is_an_error() -> None:
    with pytest.raises(DeclarationError, match="labile"):
        truths.compute("has_bled", chart(*BLED, drug("m", "warfarin 5 mg tablet")))
    drinks = lab("s", "11331-6", 1, "{drinks}") | {
        "category": [{"coding": [{"code": "social-history"}]}],
        "code": {"coding": [{"system": "http://loinc.org", "code": "11331-6"}], "text": "History of alcohol use"},
    }
    with pytest.raises(DeclarationError, match="alcohol"):
        truths.compute("has_bled", chart(*BLED, drinks))
    with pytest.raises(DeclarationError, match="systolic"):
        truths.compute("has_bled", chart(BLED[0]))


MELD = (
    lab("bi", "1975-2", 4, "mg/dL"), lab("na", "2951-2", 130, "mEq/L"), lab("inr", "6301-6", 1.8, ""),
    lab("cr", "2160-0", 1.5, "mg/dL"), lab("al", "1751-7", 2.5, "g/dL"),
)  # fmt: skip


def test_meld_of_a_chart() -> None:
    assert truths.compute("meld_3", chart(*MELD, gender="male")).value == 27
    si = lab("bi2", "1975-2", 68.4, "umol/L", "2025-03-11")
    assert truths.compute("meld_3", chart(*MELD, si, gender="male")).value == 27
    with pytest.raises(DeclarationError, match="week apart"):
        truths.compute("meld_3", chart(*MELD[:4], lab("al", "1751-7", 2.5, "g/dL", "2025-02-10")))
    with pytest.raises(DeclarationError, match="dialysis"):
        truths.compute("meld_3", chart(*MELD, condition("d", "Z99.2")))
