"""Charting: stable ids and numbers, FHIR as the pages describe it, nothing after the clock."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.casebook.charting import LOINC, Analyte, Code, Record
from tasks.errors import ChartError

NOW = datetime.fromisoformat("2026-03-12T09:30:00-05:00")
POTASSIUM = Analyte(Code("Potassium", "2823-3", LOINC), "mmol/L", "mmol/L", 1, 3.5, 5.1)


@pytest.fixture
def record() -> Record:
    made = Record("some-task", "Patient/p-1", NOW)
    made.add("Patient", "p-1", {"gender": "male"})
    return made


def only(record: Record, kind: str) -> dict[str, object]:
    (line,) = record.bundle()[f"chart/{kind}.ndjson"].decode().splitlines()
    body: dict[str, object] = json.loads(line)
    return body


def test_an_id_depends_on_task_type_and_key_alone(record: Record) -> None:
    other = Record("some-task", "Patient/p-2", NOW)
    assert record.id("Observation", "a key") == other.id("Observation", "a key")
    assert record.id("Observation", "a key") != record.id("Condition", "a key")
    assert record.id("Observation", "a key") != Record("other", "Patient/p-1", NOW).id("Observation", "a key")


def test_an_id_says_nothing_about_the_resource(record: Record) -> None:
    assert "ketoacidosis" not in record.id("DocumentReference", "ketoacidosis")


@given(key=st.text(max_size=40), spread=st.floats(0, 1e6))
def test_jitter_stays_inside_its_spread_and_repeats(key: str, spread: float) -> None:
    made = Record("some-task", "Patient/p-1", NOW)
    assert -spread <= made.jitter(key, spread) <= spread
    assert made.jitter(key, spread) == made.jitter(key, spread)


def test_a_result_keeps_its_decimals_and_gets_range_and_flag(record: Record) -> None:
    record.result("k", POTASSIUM, 5.6, "2026-03-05T17:12:00-06:00")
    line = record.bundle()["chart/Observation.ndjson"].decode()
    assert '"value":5.6' in line
    assert only(record, "Observation")["interpretation"] == [
        {
            "coding": [
                {
                    "system": "http://terminology.hl7.org/CodeSystem/v3-ObservationInterpretation",
                    "code": "H",
                    "display": "High",
                }
            ]
        }
    ]


def test_a_round_value_keeps_its_trailing_zero(record: Record) -> None:
    record.result("k", POTASSIUM, 5.0, "2026-03-05T17:12:00-06:00")
    assert '"value":5.0' in record.bundle()["chart/Observation.ndjson"].decode()


def test_two_resources_cannot_have_one_id(record: Record) -> None:
    record.result("k", POTASSIUM, 4.7, "2026-03-05T17:12:00-06:00")
    with pytest.raises(ChartError, match="same id"):
        record.result("k", POTASSIUM, 4.8, "2026-03-06T17:12:00-06:00")


@pytest.mark.parametrize("late", ["2026-03-12T09:31:00-05:00", "2026-03-12T14:31:00+00:00", "2026-03-13", "2027"])
def test_what_was_recorded_after_the_clock_is_refused(record: Record, late: str) -> None:
    record.result("k", POTASSIUM, 4.7, late)
    with pytest.raises(ChartError, match="after the task's clock") as raised:
        record.bundle()
    assert record.id("Observation", "k") in raised.value.where


@pytest.mark.parametrize(
    "at", ["2026-03-12T09:30:00-05:00", "2026-03-12T14:30:00+00:00", "2026-03-12", "2026-03", "2026"]
)
def test_what_was_recorded_by_the_clock_is_taken(record: Record, at: str) -> None:
    record.result("k", POTASSIUM, 4.7, at)
    assert "chart/Observation.ndjson" in record.bundle()


def test_lines_are_sorted_by_id_and_end_with_a_line_feed(record: Record) -> None:
    for number in range(20):
        record.result(f"k {number}", POTASSIUM, 4.0, "2026-03-05")
    data = record.bundle()["chart/Observation.ndjson"].decode()
    ids = [json.loads(line)["id"] for line in data.splitlines()]
    assert ids == sorted(ids)
    assert data.endswith("\n")
