"""What must hold for every order, not only for the corpus: unit equivalence, one-way frequencies, text as fields."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graders.orders import OrderContext, check_declaration, doses, frequencies, judge
from graders.orders.frequencies import Frequency
from tasks.declarations import Checkpoint
from tasks.fhir.chart import Chart
from tasks.fhir.resources import Resource

ROOT = Path(__file__).resolve().parents[3]
NOW = datetime.fromisoformat("2025-03-20T09:00:00-07:00")
CONTEXT = OrderContext("Patient/p-1", "Practitioner/d-1", NOW, "orders")
EMPTY = Chart.open({})

#: The machine is shared: a slow example is no fault of the order language.
UNHURRIED = settings(deadline=None)

TIMES = ["daily", "BID", "TID", "QID", "q6h", "q8h", "q12h", "q48h", "weekly", "twice weekly", "monthly"]
#: clock -> the count a day that it satisfies.
CLOCK = {"q12h": "BID", "q8h": "TID", "q6h": "QID"}


def checkpoint(**row: object) -> Checkpoint:
    return Checkpoint.model_validate_json(
        json.dumps(
            {
                "id": "cp1",
                "title": "t",
                "capability": "action_execution",
                "criticality": "required",
                "reachable": ["paper"],
                "grader": "code",
                "order": {"type": "MedicationRequest", "accept": [row]},
            }
        )
    )


def order(name: str, *, sig: str = "", value: str = "", unit: str = "") -> Resource:
    dosage: dict[str, object] = {}
    if sig:
        dosage["text"] = sig
    if value:
        dosage["doseAndRate"] = [{"doseQuantity": {"value": float(value), "unit": unit}}]
    return Resource.parse(
        json.dumps(
            {
                "resourceType": "MedicationRequest",
                "id": "o1",
                "status": "active",
                "intent": "order",
                "subject": {"reference": "Patient/p-1"},
                "medicationCodeableConcept": {"text": name},
                "dosageInstruction": [dosage] if dosage else [],
            }
        )
    )


def passes(cp: Checkpoint, *written: Resource) -> bool:
    return judge(cp, CONTEXT, written, EMPTY, {}).result == "pass"


amounts = st.decimals(min_value="0.05", max_value="900", places=2).filter(lambda n: n > 0)


@UNHURRIED
@given(amounts)
def test_an_amount_matches_itself_in_mg_mcg_and_g_and_never_with_the_unit_swapped(mg: Decimal) -> None:
    cp = checkpoint(ingredient="apixaban", dose=f"{mg} mg")
    assert passes(cp, order(f"apixaban {mg} mg daily"))
    assert passes(cp, order(f"apixaban {mg * 1000:f} mcg daily"))
    assert passes(cp, order(f"apixaban {mg / 1000:f} g daily"))
    assert not passes(cp, order(f"apixaban {mg} mcg daily"))
    assert not passes(cp, order(f"apixaban {mg} g daily"))
    assert not passes(cp, order(f"apixaban {mg * 10:f} mg daily"))


@UNHURRIED
@given(st.sampled_from(TIMES), st.sampled_from(TIMES))
def test_frequencies_are_ordered_one_way_from_the_clock_to_the_count(given_: str, wanted: str) -> None:
    held = passes(checkpoint(ingredient="apixaban", frequency=wanted), order(f"apixaban 5 mg {given_}"))
    assert held is (given_ == wanted or CLOCK.get(given_) == wanted)


@UNHURRIED
@given(st.integers(min_value=1, max_value=72))
def test_hours_and_days_are_one_scale(n: int) -> None:
    assert frequencies.read(f"every {n * 24} hours") == frequencies.read(f"every {n} days")
    read = frequencies.read(f"q{n}h")
    assert read is not None
    assert frequencies.satisfies(read[0], read[0])


@UNHURRIED
@given(amounts, st.sampled_from(["daily", "BID", "TID", "q8h", "weekly"]))
def test_what_is_said_in_the_text_counts_as_what_is_said_in_the_fields(mg: Decimal, times: str) -> None:
    cp = checkpoint(ingredient="lisinopril", dose=f"{mg} mg", frequency=times, route="oral")
    assert passes(cp, order(f"lisinopril {mg} mg PO {times}"))
    assert passes(cp, order("lisinopril", sig=f"{mg} mg by mouth {times}"))
    assert passes(cp, order("lisinopril", sig=f"PO {times}", value=str(mg), unit="mg"))
    assert not passes(cp, order(f"lisinopril {mg} mg PO {times}", value=str(mg * 10), unit="mg"))


@UNHURRIED
@given(amounts, amounts, amounts)
def test_a_range_matches_exactly_when_it_lies_inside(a: Decimal, b: Decimal, c: Decimal) -> None:
    low, high = min(a, b), max(a, b)
    cp = checkpoint(ingredient="lisinopril", dose=f"{low}-{high} mg")
    assert passes(cp, order(f"lisinopril {c} mg daily")) is (low <= c <= high)
    assert passes(cp, order(f"lisinopril {low}-{max(low, c)} mg daily")) is (max(low, c) <= high)


@UNHURRIED
@given(st.integers(min_value=1, max_value=9), st.sampled_from([Decimal("2.5"), Decimal(5), Decimal(10), Decimal(500)]))
def test_counted_tablets_are_their_mass(count: int, strength: Decimal) -> None:
    cp = checkpoint(ingredient="metformin", dose=f"{strength * count} mg")
    assert passes(cp, order(f"metformin {strength} mg tablet", sig=f"{count} tablets daily"))
    assert not passes(cp, order(f"metformin {strength} mg tablet", sig=f"{count + 1} tablets daily"))
    bare = order(f"metformin {strength} mg tablet", sig="daily", value=str(strength * count), unit="mg")
    assert passes(cp, bare) is (count <= 4), "a bare field is tablets up to four whole ones, else a contradiction"


@pytest.fixture(scope="module")
def registry() -> Any:
    """The units library of the rest of the project, as a second opinion."""
    return pytest.importorskip("pint").UnitRegistry()


@pytest.mark.parametrize(
    ("unit", "theirs", "base"),
    [
        ("mg", "mg", "mg"),
        ("mcg", "microgram", "mg"),
        ("g", "g", "mg"),
        ("kg", "kg", "mg"),
        ("ng", "ng", "mg"),
        ("L", "L", "mL"),
    ],
)
def test_units_agree_with_the_units_library(registry: Any, unit: str, theirs: str, base: str) -> None:
    ours = doses.read_amount(f"37.5 {unit}")
    assert ours is not None
    assert float(ours.low) == pytest.approx(registry.Quantity(37.5, theirs).to(base).magnitude)


def test_a_frequency_that_means_two_things_matches_nothing_not_even_itself() -> None:
    assert frequencies.read("biweekly") is None
    assert not frequencies.satisfies(Frequency("unreadable"), Frequency("unreadable"))


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"ingredient": "apixabann"}, "ingredient 'apixabann'"),
        ({"class": "blue pills"}, "class 'blue pills'"),
        ({"ingredient": "apixaban", "dose": "5"}, "dose '5'"),
        ({"ingredient": "apixaban", "dose": "five milligrammes or so"}, "dose"),
        ({"ingredient": "apixaban", "frequency": "now and then"}, "frequency 'now and then'"),
        ({"ingredient": "apixaban", "frequency": "biweekly"}, "frequency 'biweekly'"),
        ({"ingredient": "apixaban", "frequency": ["BID", "sometimes"]}, "frequency 'sometimes'"),
        ({"ingredient": "apixaban", "duration": "a while"}, "duration 'a while'"),
        ({"ingredient": "apixaban", "when": "10-5 d"}, "when '10-5 d'"),
        ({"ingredient": "apixaban", "daily": "lots"}, "daily 'lots'"),
        ({"ingredient": "apixaban", "max_daily": "3"}, "max_daily '3'"),
        ({"ingredient": "apixaban", "split": True}, "split"),
        ({"ingredient": "apixaban", "replaces": "the old one"}, "replaces 'the old one'"),
        ({"ingredient": "amoxicillin + clavulanate", "dose": "1 mg + 2 mg + 3 mg"}, "3 amounts"),
        ({"ingredient": "apixaban", "steps": [{"dose": "10", "frequency": "BID"}]}, "step 1: dose '10'"),
    ],
)
def test_a_row_that_cannot_be_read_is_named_with_its_place(row: dict[str, object], said: str) -> None:
    (fault,) = check_declaration(checkpoint(**row))
    assert "order.accept row 1" in fault
    assert said in fault


def test_the_order_language_imports_neither_pandas_nor_pint_nor_streamlit() -> None:
    code = "import sys, graders.orders; print([m for m in ('pandas', 'pint', 'streamlit') if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
