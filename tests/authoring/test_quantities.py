"""A value is told in its second usual unit, or in none; a text's numbers are read as the quantity that they name."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from authoring.quantities import (
    Quantity,
    figures,
    in_own_unit,
    named,
    numbers,
    quantity_at,
    same_unit,
    second_unit,
    ucum,
)
from graders.analytes import ANALYTES
from graders.orders.text import normal


def result(code: str, value: str, unit: str, low: str = "", high: str = "", **more: Any) -> Quantity:
    """The quantity of a result with this LOINC code."""
    limits = {side: {"value": Decimal(limit)} for side, limit in (("low", low), ("high", high)) if limit}
    body = {
        "resourceType": "Observation",
        "code": {"coding": [{"system": "http://loinc.org", "code": code}]},
        "valueQuantity": {"value": Decimal(value), "unit": unit, **more},
        **({"referenceRange": [limits]} if limits else {}),
    }
    found = quantity_at(body, "/valueQuantity")
    assert found is not None
    return found


def dose(drug: str, value: str, unit: str) -> Quantity:
    """The quantity of an order's dose."""
    body = {
        "resourceType": "MedicationRequest",
        "medicationCodeableConcept": {"text": drug},
        "dosageInstruction": [{"doseAndRate": [{"doseQuantity": {"value": Decimal(value), "unit": unit}}]}],
    }
    found = quantity_at(body, "/dosageInstruction/0/doseAndRate/0/doseQuantity")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("code", "value", "unit", "said"),
    [
        # By hand: 1.72 x 88.4 = 152.0; 126 / 18.02 = 6.99; 1.1 x 17.1 = 18.8; 9.1 x 59.5 = 541.
        ("2160-0", "1.72", "mg/dL", "152 µmol/L"),
        ("2160-0", "0.7", "mg/dL", "62 µmol/L"),
        ("14682-9", "152", "umol/L", "1.72 mg/dL"),
        ("2345-7", "126", "mg/dL", "6.99 mmol/L"),
        ("4548-4", "7.1", "%", "54 mmol/mol"),
        ("1975-2", "1.1", "mg/dL", "19 µmol/L"),
        ("3084-1", "9.1", "mg/dL", "541 µmol/L"),
        ("718-7", "11.6", "g/dL", "116 g/L"),
        ("29463-7", "68", "kg", "150 lb"),
        ("29463-7", "150", "[lb_av]", "68.0 kg"),
        ("8302-2", "178", "cm", "70.1 in"),
        ("8310-5", "38.5", "Cel", "101.3 °F"),
        ("8310-5", "101.3", "[degF]", "38.5 °C"),
    ],
)
def test_a_result_has_its_second_usual_unit(code: str, value: str, unit: str, said: str) -> None:
    assert second_unit(result(code, value, unit)) == said


@pytest.mark.parametrize(
    ("code", "unit"),
    [("2823-3", "mmol/L"), ("777-3", "10*9/L"), ("99999-9", "mg/dL"), ("2160-0", "furlongs"), ("8480-6", "mmHg")],
)
def test_without_a_known_factor_or_a_usual_second_unit_none_is_told(code: str, unit: str) -> None:
    assert second_unit(result(code, "5.6", unit)) == ""


@pytest.mark.parametrize(
    ("drug", "value", "unit", "said"),
    [
        ("Levothyroxine 75 mcg tablet", "75", "mcg", "0.075 mg"),
        ("Levothyroxine", "0.075", "mg", "75 mcg"),
        ("Cholecalciferol", "2000", "[iU]", "50 mcg"),
        ("Potassium chloride", "20", "meq", "20 mmol"),
        ("Apixaban", "5", "mg", ""),
        ("A drug of no table", "20", "meq", ""),
        ("Losartan", "1", "tablet", ""),
    ],
)
def test_a_dose_has_a_second_unit_where_a_table_says_how(drug: str, value: str, unit: str, said: str) -> None:
    assert second_unit(dose(drug, value, unit)) == said


@given(st.sampled_from(ANALYTES), st.decimals(min_value="0.5", max_value="900", places=1))
def test_the_second_unit_leads_back_to_the_value(analyte: Any, value: Decimal) -> None:
    one = result(analyte.codes[0], str(value), analyte.conventional)
    said = second_unit(one)
    assert bool(said) == (analyte.conventional != analyte.si)
    if said:
        number, _, unit = said.partition(" ")
        back = in_own_unit(Decimal(number), unit, one)
        assert back is not None
        # Two figures are kept at least: half a unit of the second one, and the offset of HbA1c.
        assert abs(back - value) <= max(abs(value) * Decimal("0.06"), Decimal("0.06"))


@pytest.mark.parametrize(
    ("value", "comparator", "side"),
    [("3.4", "", "low"), ("3.5", "", "in"), ("5.1", "", "in"), ("5.2", "", "high"), ("5.1", ">", "high"),
     ("3.0", "<", "low"), ("4.0", "<", ""), ("6.0", "<", "")],
)  # fmt: skip
def test_a_value_lies_in_its_range_or_beside_it_or_that_is_open(value: str, comparator: str, side: str) -> None:
    more = {"comparator": comparator} if comparator else {}
    assert result("2823-3", value, "mmol/L", "3.5", "5.1", **more).side == side


def test_a_range_in_another_unit_is_converted_first() -> None:
    body = {
        "resourceType": "Observation",
        "code": {"coding": [{"system": "http://loinc.org", "code": "2160-0"}]},
        "valueQuantity": {"value": Decimal(130), "unit": "umol/L"},
        "referenceRange": [{"high": {"value": Decimal("1.3"), "unit": "mg/dL"}}],
    }
    found = quantity_at(body, "/valueQuantity")
    assert found is not None
    assert found.side == "high"


def test_a_component_is_measured_by_its_own_code() -> None:
    part = {"code": {"coding": [{"code": "8480-6"}]}, "valueQuantity": {"value": Decimal(148), "unit": "mmHg"}}
    body = {"resourceType": "Observation", "code": {"coding": [{"code": "85354-9"}]}, "component": [part]}
    found = quantity_at(body, "/component/0/valueQuantity")
    assert found is not None
    assert (found.name, found.number) == ("systolic pressure", 148)


@pytest.mark.parametrize("pointer", ["/valueString", "/code", "/component/3/valueQuantity", "/valueQuantity/value", ""])
def test_what_is_no_number_is_no_quantity(pointer: str) -> None:
    assert quantity_at({"resourceType": "Observation", "valueString": "5.6"}, pointer) is None


def test_a_creatinine_clearance_is_no_creatinine() -> None:
    assert [one.name for one in named(normal("Creatinine clearance 38, creatinine 1.72, eGFR 42"))] == [
        "CrCl", "creatinine", "eGFR",
    ]  # fmt: skip


def test_times_counts_and_foreign_units_are_no_results() -> None:
    potassium = result("2823-3", "5.6", "mmol/L")
    said = normal("Potassium 5.6 mmol/L, again in 2 weeks, 3 times, 20 mg, 4.8 mEq/L, 6/7, on 12/3/2025")
    assert [(one.value, one.unit) for one in numbers(said, potassium)] == [
        (Decimal("5.6"), "mmol/l"),
        (Decimal("4.8"), "meq/l"),
    ]


@given(st.decimals(min_value="0.01", max_value="9999", allow_nan=False), st.integers(2, 4))
def test_figures_keep_what_they_promise(value: Decimal, significant: int) -> None:
    shown = Decimal(figures(value, significant))
    assert abs(shown - value) <= abs(value) * Decimal(5).scaleb(-significant) or abs(shown - value) <= Decimal("0.5")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("lb", "[lb_av]", True), ("kg", "[lb_av]", False), ("°F", "Cel", False), ("°C", "Cel", True),
        ("µmol/L", "umol/L", True), ("mg/dL", "umol/L", False), ("K/uL", "10*3/uL", True), ("mcg", "ug", True),
        ("mg", "ug", False), ("mg", "{tbl}", False), ("mL/min/1.73m2", "mL/min/{1.73_m2}", True),
        ("mmHg", "mm[Hg]", None), ("days", "d", None), ("furlong", "kg", None), ("x 10⁹/L", "10*9/L", True),
    ],
)  # fmt: skip
def test_two_words_are_one_unit_or_another_or_that_is_not_known(one: str, other: str, same: bool | None) -> None:
    assert same_unit(one, other) is same


def test_every_code_is_its_own() -> None:
    for code in ("kg", "[lb_av]", "umol/L", "10*3/uL", "mL/min/{1.73_m2}", "Cel", "%"):
        assert ucum(code) == code
    assert ucum("µmol/L") == "umol/L"
    assert ucum("furlong") == ""


def test_where_unit_and_code_differ_the_code_is_the_unit_as_it_is_for_grading() -> None:
    def read(unit: str, code: str) -> str:
        body = {"resourceType": "Observation", "valueQuantity": {"value": Decimal(80), "unit": unit, "code": code}}
        found = quantity_at(body, "/valueQuantity")
        return found.unit if found else ""

    assert read("kg", "[lb_av]") == "[lb_av]"
    assert read("lb", "[lb_av]") == "lb"
    assert read("mmHg", "mm[Hg]") == "mmHg"
