"""A text that states a value which no result of the chart has is told so; what states no result is not."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from authoring.edits import AddResource, RemoveResource, ResourceEdit
from authoring.unfounded import Results, brought, results_of, unfounded
from tasks.fhir.chart import Chart
from tasks.fhir.resources import dump_json


def chart() -> Results:
    def lab(id: str, code: str, value: str, unit: str, day: str, **more: Any) -> str:
        body = {
            "resourceType": "Observation", "id": id, "status": "final",
            "code": {"coding": [{"system": "http://loinc.org", "code": code}]},
            "subject": {"reference": "Patient/p"}, "effectiveDateTime": day,
            "valueQuantity": {"value": Decimal(value), "unit": unit},
        }  # fmt: skip
        return dump_json(body | more)

    lines = [
        lab("c1", "2160-0", "1.40", "mg/dL", "2025-01-10"),
        lab("c2", "2160-0", "1.72", "mg/dL", "2025-03-10"),
        lab("c3", "2160-0", "2.70", "mg/dL", "2025-03-09", status="entered-in-error"),
        lab("k1", "2823-3", "5.6", "mmol/L", "2025-03-10"),
        lab("w1", "29463-7", "80", "kg", "2025-03-10"),
    ]
    return results_of(Chart.open({"Observation.ndjson": ("\n".join(lines) + "\n").encode()}))


def test_a_result_after_the_case_is_none_that_could_be_stated() -> None:
    body = {
        "resourceType": "Observation", "id": "c", "status": "final",
        "code": {"coding": [{"system": "http://loinc.org", "code": "2160-0"}]},
        "effectiveDateTime": "2025-04-01", "valueQuantity": {"value": Decimal("2.7"), "unit": "mg/dL"},
    }  # fmt: skip
    records = Chart.open({"Observation.ndjson": dump_json(body).encode() + b"\n"})
    assert list(results_of(records, date(2025, 4, 1))) == ["creatinine"]
    assert results_of(records, date(2025, 3, 31)) == {}


def told(after: str, before: str = "", **more: Any) -> list[tuple[str, str]]:
    return [(one.says, one.latest) for one in unfounded(before, after, chart(), **more)]


LATEST = "1.72 mg/dL on 10 Mar 2025"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Creatinine 2.7 today.", ["creatinine 2.7"]),
        ("His creatinine is 2.7 mg/dL, potassium 5.6.", ["creatinine 2.7 mg/dL"]),
        ("Creatinine 239 µmol/L.", ["creatinine 239 µmol/L"]),
        ("Serum creatinine: 2.7", ["creatinine 2.7"]),
        # Stated as the chart has it, rounded, or in the other unit.
        ("Creatinine 1.7. Creatinine 1.72 mg/dL. Creatinine 152 µmol/L. Creatinine was 1.4.", []),
        ("Weight 80 kg. Weight 176 lb.", []),
        # No result is stated.
        ("If creatinine is 2.7, stop.", []),
        ("Stop at creatinine above 2.7.", []),
        ("Target potassium 4.5.", []),
        ("Potassium 4.0 to 5.0 is wanted.", []),
        ("Potassium 20 mEq daily. Potassium checked 3 times.", []),
        ("The potassium of 9 March.", []),
        ("Creatinine clearance 38, eGFR 41, creatinine checked in 2 weeks.", []),
        ("Hemoglobin 9.1.", []),  # the chart has none to compare it with
    ],
)
def test_a_stated_value_is_held_against_the_results(text: str, says: list[str]) -> None:
    assert [one for one, _ in told(text)] == says


def test_the_latest_result_is_named() -> None:
    assert told("Creatinine 2.7.") == [("creatinine 2.7", LATEST)]


def test_only_what_a_change_brings_in_is_asked_about() -> None:
    old = "Creatinine 2.7 outside. He is well."
    assert told("Creatinine 2.7 outside. He is unwell.", old) == []
    assert told("Outside, the creatinine was 2.7. He is well.", old) == []
    assert told("Creatinine 2.7 outside. Potassium 4.4 now.", old) == [("potassium 4.4", "5.6 mmol/L on 10 Mar 2025")]


def test_what_another_text_says_or_another_change_brings_is_founded() -> None:
    assert told("Creatinine 2.7.", notes=["Discharged. Creatinine 2.7 on arrival."]) == []
    assert told("Creatinine 2.7.", notes=["Creatinine 2.75."]) != []
    assert told("Creatinine 2.7.", coming=[Decimal("2.70")]) == []


def test_the_numbers_that_changes_bring() -> None:
    path = "/valueQuantity/value"
    operations = (
        {"op": "test", "path": path, "value": Decimal("1.72")},
        {"op": "replace", "path": path, "value": Decimal("2.70")},
    )
    edits = [
        ResourceEdit(ref="Observation/c2", operations=operations),
        AddResource(resource={"resourceType": "Observation", "id": "n", "valueQuantity": {"value": 4}}),
        RemoveResource(ref="Observation/c1", was="x"),
    ]
    assert brought(edits) == {Decimal("2.7"), Decimal(4)}
