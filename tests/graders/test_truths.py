"""Truth functions: each formula by a second derivation and by hand, and what of the chart they take."""

from __future__ import annotations

import json
import math
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders import truths
from graders.evidence import Evidence
from graders.lab_units import convert
from tasks.declarations import BUILT_IN_TRUTHS
from tasks.errors import DeclarationError
from tasks.fhir.chart import Chart
from tasks.package import Task, load
from tests.tasks.packages import TINY_ID, tiny_files

ages = st.integers(min_value=18, max_value=100)
creatinines = st.floats(min_value=0.3, max_value=12)
sexes = st.sampled_from(("female", "male"))


# ---- formulas -------------------------------------------------------------------------------------------------------


@given(creatinines, ages, sexes)
def test_ckd_epi_2021_in_logarithms_and_in_umol(creatinine: float, age: int, sex: Any) -> None:
    # Second derivation: the equation as a sum of logarithms, written in SI units (k = 61.9 and 79.6 umol/L).
    umol = creatinine * 88.42
    ratio = math.log(umol / (0.7 * 88.42 if sex == "female" else 0.9 * 88.42))
    slope = (-0.241 if sex == "female" else -0.302) if ratio < 0 else -1.2
    expected = math.exp(
        math.log(142) + slope * ratio + age * math.log(0.9938) + (math.log(1.012) if sex == "female" else 0)
    )
    assert truths.ckd_epi_2021(creatinine, age, sex) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("creatinine", "age", "sex", "egfr"),
    [
        # By hand: at Scr = k both ratios are 1, so eGFR = 142 x 0.9938^50 x 1.012 = 142 x 0.73274 x 1.012.
        (0.7, 50, "female", 105.3),
        (0.9, 50, "male", 104.0),
        # By hand: 1.8/0.9 = 2; 2^-1.2 = 0.43528; 0.9938^57 = 0.70152; 142 x 0.43528 x 0.70152.
        (1.8, 57, "male", 43.4),
    ],
)
def test_ckd_epi_2021_by_hand(creatinine: float, age: int, sex: Any, egfr: float) -> None:
    assert truths.ckd_epi_2021(creatinine, age, sex) == pytest.approx(egfr, abs=0.06)


def test_ckd_epi_2021_is_for_adults() -> None:
    with pytest.raises(DeclarationError):
        truths.ckd_epi_2021(0.8, 17, "male")


@given(creatinines, ages, sexes, st.floats(min_value=35, max_value=200))
def test_cockcroft_gault_in_si_units(creatinine: float, age: int, sex: Any, weight: float) -> None:
    # Second derivation: the SI form, (140 - age) x weight x 1.23 (men) or 1.04 (women) / Scr in umol/L; its constants
    # are rounded to three figures.
    expected = (140 - age) * weight * (1.04 if sex == "female" else 1.23) / (creatinine * 88.4)
    assert truths.cockcroft_gault_clearance(creatinine, age, sex, weight) == pytest.approx(expected, rel=0.01)


def test_cockcroft_gault_by_hand() -> None:
    # (140 - 68) x 84 / (72 x 1.1) = 6048 / 79.2
    assert truths.cockcroft_gault_clearance(1.1, 68, "male", 84) == pytest.approx(76.36, abs=0.01)


@given(st.floats(min_value=5, max_value=16), st.floats(min_value=1, max_value=6))
def test_corrected_calcium_in_si_units(calcium: float, albumin: float) -> None:
    # Second derivation: calcium in mmol/L + 0.02 x (40 - albumin in g/L); 0.8 mg/dL is 0.19960 mmol/L a g/dL.
    expected = (calcium * 0.2495 + 0.01996 * (40 - albumin * 10)) / 0.2495
    assert truths.calcium_for_albumin(calcium, albumin) == pytest.approx(expected, rel=1e-6)


def test_corrected_calcium_by_hand() -> None:
    assert truths.calcium_for_albumin(8.0, 2.5) == pytest.approx(9.2)


@given(st.floats(min_value=35, max_value=250), st.floats(min_value=1.2, max_value=2.2))
def test_bmi_in_pounds_and_inches(weight: float, height: float) -> None:
    expected = weight / 0.45359237 / (height / 0.0254) ** 2 * 703.0696
    assert truths.body_mass_index(weight, height) == pytest.approx(expected, rel=1e-5)


def test_bmi_by_hand() -> None:
    assert truths.body_mass_index(81, 1.8) == pytest.approx(25.0)


@given(
    ages,
    st.floats(min_value=5, max_value=900),
    st.floats(min_value=5, max_value=900),
    st.floats(min_value=20, max_value=600),
)
def test_fib4_in_logarithms(age: int, ast: float, alt: float, platelets: float) -> None:
    expected = math.exp(math.log(age) + math.log(ast) - math.log(platelets) - math.log(alt) / 2)
    assert truths.fibrosis_4(age, ast, alt, platelets) == pytest.approx(expected, rel=1e-9)


def test_fib4_by_hand() -> None:
    # 60 x 80 / (150 x sqrt(64)) = 4800 / 1200
    assert truths.fibrosis_4(60, 80, 64, 150) == pytest.approx(4.0)


# ---- units ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "unit", "wanted", "analyte", "result"),
    [
        ("1", "mg/dL", "umol/L", "creatinine", "88.4"),
        ("1", "mg/dL", "mmol/L", "calcium", "0.2495"),
        ("18", "mg/dL", "mmol/L", "glucose", "1.0"),
        ("1", "mg/dL", "µmol/L", "bilirubin", "17.1"),
        ("1", "mg/dL", "umol/L", "urate", "59.5"),
        ("1", "ug/dL", "nmol/L", "cortisol", "27.6"),
        ("1", "ng/mL", "nmol/L", "vitamin d", "2.5"),
        ("53", "mmol/mol", "%", "hba1c", "7.0"),
        ("4.0", "g/dL", "g/L", "", "40"),
        ("1", "[lb_av]", "kg", "", "0.45359"),
        ("70", "[in_i]", "m", "", "1.778"),
        ("150", "K/uL", "10*9/L", "", "150"),
    ],
)
def test_conversions_of_the_printed_table(value: str, unit: str, wanted: str, analyte: str, result: str) -> None:
    assert float(convert(Decimal(value), unit, wanted, analyte)) == pytest.approx(float(result), rel=2e-3)


@pytest.mark.parametrize(
    ("unit", "wanted", "analyte"), [("mg/dL", "mmol/L", ""), ("mg", "mL/min", ""), ("kg", "m", "")]
)
def test_what_cannot_be_converted_is_refused(unit: str, wanted: str, analyte: str) -> None:
    with pytest.raises(DeclarationError):
        convert(Decimal(1), unit, wanted, analyte)


@given(
    st.decimals(min_value="0.01", max_value="999", places=2), st.sampled_from(sorted(truths._ANALYTE_OF_CODE.values()))
)
def test_there_and_back_again_is_the_same(value: Decimal, analyte: str) -> None:
    here, there = ("%", "mmol/mol") if analyte == "hba1c" else ("mg/dL", "mmol/L")
    back = convert(convert(value, here, there, analyte), there, here, analyte)
    assert float(back) == pytest.approx(float(value), rel=1e-9)


# ---- values of the chart --------------------------------------------------------------------------------------------


def lab(id: str, value: Any, when: str, *, code: str = "2160-0", unit: str = "mg/dL", **keys: Any) -> dict[str, Any]:
    return {
        "resourceType": "Observation",
        "id": id,
        "status": "final",
        "code": {"coding": [{"system": "http://loinc.org", "code": code}]},
        "subject": {"reference": "Patient/p-7001"},
        "effectiveDateTime": when,
        "valueQuantity": {"value": value, "unit": unit, "code": unit, "system": "http://unitsofmeasure.org"},
    } | keys


def evidence(*labs: dict[str, Any], birth: str = "1956-08-02", gender: str = "male") -> Evidence:
    patient = {"resourceType": "Patient", "id": "p-7001", "gender": gender, "birthDate": birth}
    chart = Chart.open(
        {
            "Patient.ndjson": json.dumps(patient).encode() + b"\n",
            "Observation.ndjson": b"".join(json.dumps(one).encode() + b"\n" for one in labs),
        }
        if labs
        else {"Patient.ndjson": json.dumps(patient).encode() + b"\n"}
    )
    return Evidence(tiny(), chart)


def tiny() -> Task:
    return load(tiny_files(), where=TINY_ID)


def test_the_latest_value_is_by_time_not_by_place_and_never_after_the_clock() -> None:
    found = truths.compute(
        "latest:2160-0",
        evidence(
            lab("b", 1.4, "2025-03-10T08:00:00-05:00"),
            lab("a", 1.1, "2024-01-01"),
            lab("c", 9.9, "2025-03-14T08:31:00-05:00"),
            lab("d", 8.8, "2025-03-12", status="entered-in-error"),
            lab("e", 7.7, "2025-03-12", code="2161-8"),
        ),
    )
    assert (str(found.value), found.unit, found.cites[0].ref) == ("1.4", "mg/dL", "Observation/b")  # type: ignore[union-attr]


def test_an_offset_decides_between_two_values() -> None:
    # 23:30-05:00 on the 9th is later than 03:00Z on the 10th.
    later, earlier = lab("x", 1.2, "2025-03-09T23:30:00-05:00"), lab("y", 1.3, "2025-03-10T03:00:00Z")
    assert truths.latest(evidence(later, earlier), "2160-0").resource.id == "x"


@pytest.mark.parametrize(
    "labs",
    [
        [],
        [lab("a", 1.1, "2025-03-10"), lab("b", 1.9, "2025-03-10")],
        [lab("a", 1.1, "2025-03-10") | {"valueQuantity": {"value": 0.2, "comparator": "<", "unit": "mg/dL"}}],
        [lab("a", 1.1, "2025-03-10") | {"valueQuantity": {"unit": "mg/dL"}}],
    ],
    ids=["none", "two of one time", "a bound", "no number"],
)
def test_a_chart_that_gives_no_plain_number_is_an_error_not_a_guess(labs: list[dict[str, Any]]) -> None:
    with pytest.raises(DeclarationError):
        truths.compute("egfr_ckd_epi_2021", evidence(*labs))


def test_another_patients_value_is_never_taken() -> None:
    other = lab("b", 5.0, "2025-03-13") | {"subject": {"reference": "Patient/p-7002"}}
    assert truths.latest(evidence(lab("a", 1.1, "2025-03-10"), other), "2160-0").resource.id == "a"


def test_egfr_takes_creatinine_in_either_unit_and_the_age_at_the_draw() -> None:
    conventional = truths.compute("egfr_ckd_epi_2021", evidence(lab("a", 1.0, "2024-08-01")))
    si = truths.compute("egfr_ckd_epi_2021", evidence(lab("a", 88.4, "2024-08-01", unit="umol/L")))
    assert float(conventional.value) == pytest.approx(truths.ckd_epi_2021(1.0, 67, "male"))
    assert float(si.value) == pytest.approx(float(conventional.value))
    assert [cite.ref for cite in conventional.cites] == ["Observation/a", "Patient/p-7001", "Patient/p-7001"]  # type: ignore[union-attr]


def test_clearance_takes_pounds() -> None:
    weight = lab("w", 185.19, "2025-03-01", code="29463-7", unit="[lb_av]")
    found = truths.compute("cockcroft_gault", evidence(lab("a", 1.1, "2025-03-01"), weight))
    assert float(found.value) == pytest.approx(76.36, abs=0.02)


@pytest.mark.parametrize(("gender", "birth"), [("unknown", "1956-08-02"), ("male", "1956")])
def test_an_unknown_sex_or_birth_date_is_an_error(gender: str, birth: str) -> None:
    with pytest.raises(DeclarationError):
        truths.compute("egfr_ckd_epi_2021", evidence(lab("a", 1.0, "2024-08-01"), gender=gender, birth=birth))


def test_the_birthday_itself_counts() -> None:
    now = datetime.fromisoformat("2025-08-02T00:00:00-05:00")
    assert truths.age_at(evidence(), now)[0] == 69
    assert truths.age_at(evidence(), datetime.fromisoformat("2025-08-01T23:59:00-05:00"))[0] == 68


def test_an_unknown_truth_names_those_there_are() -> None:
    with pytest.raises(DeclarationError, match="egfr_ckd_epi_2021"):
        truths.compute("frax", evidence())


def test_a_package_may_name_exactly_the_truths_that_are_computed_here() -> None:
    assert set(truths.TRUTHS) == set(BUILT_IN_TRUTHS)
