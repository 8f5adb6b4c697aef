"""Whether a change moves a value across a line: its range, what a checkpoint names, a GFR category."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from authoring.quantities import Quantity, quantity_at
from authoring.thresholds import crossings, derived, gfr_category, thresholds
from tasks.declarations import Checkpoint

CODES = {
    "potassium": ("2823-3", "mmol/L"), "creatinine": ("2160-0", "mg/dL"), "eGFR": ("98979-8", "mL/min/1.73m2"),
    "platelets": ("777-3", "10*9/L"), "WBC": ("6690-2", "10*3/uL"), "temperature": ("8310-5", "Cel"),
    "weight": ("29463-7", "kg"), "heart rate": ("8867-4", "/min"), "ferritin": ("2276-4", "ng/mL"),
}  # fmt: skip


def value(name: str, number: str, low: str = "", high: str = "", unit: str = "") -> Quantity:
    limits = {side: {"value": Decimal(limit)} for side, limit in (("low", low), ("high", high)) if limit}
    body = {
        "resourceType": "Observation",
        "code": {"coding": [{"system": "http://loinc.org", "code": CODES[name][0]}]},
        "valueQuantity": {"value": Decimal(number), "unit": unit or CODES[name][1]},
        **({"referenceRange": [limits]} if limits else {}),
    }
    found = quantity_at(body, "/valueQuantity")
    assert found is not None
    return found


def checkpoint(section: str = "", **more: Any) -> Checkpoint:
    said: dict[str, Any] = {
        "id": "cp6", "title": "Started", "capability": "action_execution", "criticality": "required",
        "reachable": ["paper"], "grader": "code",
        "order": {"type": "ServiceRequest", "accept": [{"test": "potassium"}]},
    }  # fmt: skip
    if section:
        said["source"] = [{"org": "FDA label", "year": 2025, "section": section}]
    return Checkpoint.model_validate(said | more)


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("potassium above 5.0 does not start", "potassium", ["potassium above 5.0"]),
        ("K 5.5 mEq/L or higher", "potassium", ["potassium at or above 5.5 mEq/L"]),
        ("if potassium rises to above 6.0, send in", "potassium", ["potassium above 6.0"]),
        ("potassium is 5.0 or less", "potassium", ["potassium at or below 5.0"]),
        ("stop if potassium <3.5 or >5.5 mmol/L", "potassium", ["potassium below 3.5", "potassium above 5.5 mmol/L"]),
        ("potassium >5.5 or creatinine >2", "potassium", ["potassium above 5.5"]),
        ("eGFR 25 to <60 starts at 10 mg", "eGFR", ["eGFR below 60", "eGFR at or above 25"]),
        ("age ≥ 80, weight ≤ 60 kg, creatinine ≥ 1.5 mg/dL", "creatinine", ["creatinine at or above 1.5 mg/dL"]),
        # Nothing of this is said about the quantity, so nothing is guessed.
        ("withhold above 5.5", "potassium", []),
        ("creatinine clearance below 30", "creatinine", []),
        ("creatinine 1.72 and age at least 80", "creatinine", []),
        ("potassium rechecked at least 4 weeks after", "potassium", []),
        ("potassium checked within <=1 wk", "potassium", []),
        ("potassium chloride 20 mEq or more", "potassium", []),
    ],
)
def test_a_threshold_is_read_only_where_the_quantity_is_named(text: str, name: str, found: list[str]) -> None:
    assert [one.words for one in thresholds([checkpoint(text)], value(name, "5.6"))] == found


def test_a_trigger_and_a_title_name_thresholds_too() -> None:
    row = {"test": "potassium", "trigger": "potassium > 5.5", "act": "stop finerenone"}
    made = checkpoint(title="Potassium below 5.0 found", order={"type": "ServiceRequest", "accept": [row]})
    assert [one.words for one in thresholds([made], value("potassium", "5.6"))] == [
        "potassium below 5.0",
        "potassium above 5.5",
    ]


def lines(old: Quantity | None, new: Quantity | None, *checkpoints: Checkpoint) -> list[tuple[str, str, bool]]:
    return [(one.what, one.answer, one.crossed) for one in crossings(old, new, checkpoints, {"cp6": "Checkpoint 6"})]


def test_a_change_inside_the_range_crosses_nothing() -> None:
    found = lines(value("potassium", "4.1", "3.5", "5.1"), value("potassium", "4.9", "3.5", "5.1"))
    assert found == [("Reference range", "no, still within", False)]


def test_a_change_out_of_the_range_crosses_it() -> None:
    found = lines(value("potassium", "4.9", "3.5", "5.1"), value("potassium", "5.6", "3.5", "5.1"))
    assert found == [("Reference range", "yes: from within to above the range", True)]


def test_a_changed_range_is_judged_by_each_side_s_own() -> None:
    (one,) = crossings(value("potassium", "5.2", "3.5", "5.1"), value("potassium", "5.2", "3.5", "5.5"), [], {})
    assert (one.what, one.crossed) == ("Reference range, now 3.5 to 5.5 mmol/L", True)


def test_a_change_across_a_checkpoint_s_threshold_says_which() -> None:
    made = checkpoint("potassium above 5.0 does not start")
    assert lines(value("potassium", "5.2"), value("potassium", "4.8"), made) == [
        ("Checkpoint 6: potassium above 5.0", "yes", True)
    ]
    assert lines(value("potassium", "5.0"), value("potassium", "4.8"), made) == [
        ("Checkpoint 6: potassium above 5.0", "no", False)
    ]


def test_a_threshold_without_a_unit_says_in_which_it_was_read() -> None:
    made = checkpoint("creatinine above 1.5")
    old, new = value("creatinine", "120", unit="umol/L"), value("creatinine", "150", unit="umol/L")
    # 1.5 mg/dL = 132.6 umol/L.
    assert lines(old, new, made) == [("Checkpoint 6: creatinine above 1.5 (read as mg/dL)", "yes", True)]


def test_a_threshold_in_the_other_unit_is_converted() -> None:
    made = checkpoint("creatinine above 133 µmol/L")
    (found,) = lines(value("creatinine", "1.4"), value("creatinine", "1.6"), made)
    assert found == ("Checkpoint 6: creatinine above 133 µmol/L", "yes", True)


@pytest.mark.parametrize(
    ("text", "name", "unit", "old", "new", "what", "answer"),
    [
        # 38 is °C and 100.4 is °F, whatever the chart is in; 38 °C = 100.4 °F.
        ("temperature above 38", "temperature", "[degF]", "100.2", "101.5", " (read as °C)", "yes"),
        ("temperature above 38", "temperature", "Cel", "37.9", "38.6", " (read as °C)", "yes"),
        ("temperature above 100.4", "temperature", "Cel", "37.9", "38.6", " (read as °F)", "yes"),
        ("temperature above 100.4", "temperature", "[degF]", "99.1", "100.2", " (read as °F)", "no"),
        ("temperature above 38 °C", "temperature", "[degF]", "100.2", "101.5", "", "yes"),
        ("temperature above 38 °C", "temperature", "Cel", "37.9", "38.6", "", "yes"),
        # 50 kg = 110 lb; 50 lb is no weight of an adult, but nothing says so.
        ("weight below 50", "weight", "kg", "52", "48", " (read as kg)", "yes"),
        ("weight below 50", "weight", "[lb_av]", "120", "105", "", "cannot be told: in kg or lb is not said"),
        ("weight below 110 lb", "weight", "kg", "52", "48", "", "yes"),
        ("platelets below 50,000", "platelets", "10*9/L", "62", "45", " (read as /µL)", "yes"),
        ("platelets below 50,000", "platelets", "10*9/L", "62", "55", " (read as /µL)", "no"),
        ("platelets below 50", "platelets", "10*9/L", "62", "45", " (read as 10⁹/L)", "yes"),
        ("platelets below 50", "platelets", "/uL", "62000", "45000", " (read as 10⁹/L)", "yes"),
        ("platelets below 50,000/µL", "platelets", "10*9/L", "62", "45", "", "yes"),
        ("platelets < 50 x 10^9/L", "platelets", "10*3/uL", "62", "45", "", "yes"),
        ("platelets < 50 × 10⁹/L", "platelets", "/uL", "62000", "45000", "", "yes"),
        ("WBC above 11 K/µL", "WBC", "10*3/uL", "10.1", "12.4", "", "yes"),
        ("eGFR below 50 mL/min", "eGFR", "mL/min/1.73m2", "52", "47", "", "yes"),
        ("heart rate above 100/min", "heart rate", "/min", "96", "104", "", "yes"),
        ("creatinine above 130", "creatinine", "mg/dL", "1.4", "1.6", " (read as µmol/L)", "yes"),
        ("ferritin below 30", "ferritin", "ng/mL", "34", "28", " (read as ng/mL)", "yes"),
        ("potassium above 5.0", "potassium", "mg/dL", "18", "21", "", "cannot be told"),
    ],
)
def test_a_limit_in_the_wording_of_the_united_states_is_read_or_left_open(
    text: str, name: str, unit: str, old: str, new: str, what: str, answer: str
) -> None:
    (found,) = lines(value(name, old, unit=unit), value(name, new, unit=unit), checkpoint(text))
    assert found[0].endswith(")") == bool(what)
    assert found[0].endswith(what)
    assert found[1:] == (answer, answer == "yes")


def test_a_comparator_leaves_the_answer_open() -> None:
    open_ = replace(value("potassium", "5.2", "3.5", "5.5"), comparator="<")
    found = lines(open_, value("potassium", "5.9", "3.5", "5.5"), checkpoint("potassium above 5.0"))
    assert [(answer, crossed) for _, answer, crossed in found] == [("cannot be told", False)] * 2


def test_without_range_and_threshold_there_is_no_line() -> None:
    assert lines(value("potassium", "4.9"), value("potassium", "5.6"), checkpoint()) == []
    assert lines(None, None, checkpoint()) == []


@pytest.mark.parametrize(
    ("egfr", "category"),
    [("90", "G1"), ("89.9", "G2"), ("60", "G2"), ("59", "G3a"), ("45", "G3a"), ("44", "G3b"), ("30", "G3b"),
     ("29", "G4"), ("15", "G4"), ("14.9", "G5"), ("0", "G5")],
)  # fmt: skip
def test_gfr_categories_begin_at_their_lower_limit(egfr: str, category: str) -> None:
    assert gfr_category(Decimal(egfr)) == category


@pytest.mark.parametrize(
    ("name", "before", "after", "section", "answer", "crossed"),
    [
        ("eGFR, CKD-EPI 2021", "42 mL/min/1.73 m²", "39 mL/min/1.73 m²", "", "no threshold named; still G3b", False),
        ("eGFR, CKD-EPI 2021", "46 mL/min/1.73 m²", "39 mL/min/1.73 m²", "", "yes: G3a to G3b", True),
        ("eGFR, CKD-EPI 2021", "29 mL/min/1.73 m²", "24 mL/min/1.73 m²", "eGFR 25 to <60 starts at 10 mg",
         "yes: Checkpoint 6: eGFR at or above 25 no longer met", True),
        ("eGFR, CKD-EPI 2021", "52 mL/min/1.73 m²", "47 mL/min/1.73 m²", "eGFR below 50 mL/min",
         "yes: Checkpoint 6: eGFR below 50 mL/min now met", True),
        ("eGFR, CKD-EPI 2021", "58 mL/min/1.73 m²", "52 mL/min/1.73 m²", "eGFR below 50 mL/min",
         "no: no threshold crossed; still G3a", False),
        ("CrCl, Cockcroft-Gault", "38 mL/min", "36 mL/min", "", "no threshold named", False),
        ("CrCl, Cockcroft-Gault", "38 mL/min", "36 mL/min", "CrCl below 30", "no: no threshold crossed", False),
        ("CrCl, Cockcroft-Gault", "31 mL/min", "29 mL/min", "creatinine clearance below 30 mL/min",
         "yes: Checkpoint 6: CrCl below 30 mL/min now met", True),
        ("eGFR, CKD-EPI 2021", "not recorded", "39 mL/min/1.73 m²", "", "", False),
        ("Weight", "80 kg", "70 kg", "weight below 75 kg", "yes: Checkpoint 6: weight below 75 kg now met", True),
        ("BP, pulse", "148/84, 70", "168/84, 70", "systolic above 160",
         "yes: Checkpoint 6: systolic pressure above 160 now met", True),
        ("Allergies", "none listed", "penicillin", "", "", False),
    ],
)  # fmt: skip
def test_what_follows_says_whether_it_decides_otherwise(
    name: str, before: str, after: str, section: str, answer: str, crossed: bool
) -> None:
    found = derived(name, before, after, [checkpoint(section)], {"cp6": "Checkpoint 6"})
    assert (found.what, found.before, found.after) == (name, before, after)
    assert (found.answer, found.crossed) == (answer, crossed)


@given(st.decimals(min_value="1", max_value="9", places=1), st.decimals(min_value="1", max_value="9", places=1))
def test_a_threshold_is_crossed_exactly_where_the_sides_differ(old: Decimal, new: Decimal) -> None:
    (found,) = lines(
        value("potassium", str(old)), value("potassium", str(new)), checkpoint("potassium at or above 5.0")
    )
    assert found[2] == ((old >= 5) != (new >= 5))
