"""What is taken from each FHIR type for the index, seen through searches of small resources."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tasks.fhir import values
from tasks.fhir.chart import Chart
from tasks.fhir.fhirpath import compiled

BODIES: list[dict[str, Any]] = [
    {
        "resourceType": "Patient",
        "id": "p",
        "meta": {"profile": ["http://x/StructureDefinition/us-core"], "tag": [{"system": "urn:t", "code": "test"}]},
        "name": [{"text": "Ana Luz", "family": "Núñez", "given": ["Ana", None], "suffix": ["Jr"]}],
        "telecom": [{"system": "phone", "value": "1"}, {"system": "email", "value": "a@x"}, {"value": "fax?"}],
        "address": [{"line": ["1 Rue"], "city": "Lyon", "postalCode": "69001", "use": "home"}],
        "active": True,
        "deceasedBoolean": False,
        "identifier": [{"value": "7", "type": {"text": "Medical record"}}],
        "communication": [{"language": {"coding": [{"system": "urn:ietf:bcp:47", "code": "fr"}]}}],
    },
    {"resourceType": "Patient", "id": "q", "deceasedBoolean": True},
    {
        "resourceType": "ServiceRequest",
        "id": "s",
        "occurrenceTiming": {
            "event": ["2023-07-01", "2023-07-09"],
            "repeat": {"boundsPeriod": {"start": "2023-06-01"}},
        },
        "instantiatesCanonical": ["http://x/ActivityDefinition/a|2"],
        "instantiatesUri": ["urn:proto:1"],
    },
    {"resourceType": "Condition", "id": "c", "onsetAge": {"value": 40, "code": "a"}},
    {"resourceType": "Condition", "id": "d", "onsetRange": {"low": {"value": 50, "code": "a"}, "high": {"value": 60}}},
    {"resourceType": "Invoice", "id": "i", "totalNet": {"value": 12.5, "currency": "EUR"}},
    {
        "resourceType": "RiskAssessment",
        "id": "r",
        "prediction": [{"probabilityDecimal": 0.25}, {"probabilityDecimal": 0.75}],
    },
    {"resourceType": "ValueSet", "id": "v", "url": "http://x/ValueSet/a/b"},
    {
        "resourceType": "DocumentReference",
        "id": "n",
        "relatesTo": [{"code": "replaces", "target": {"reference": "DocumentReference/old/_history/3"}}],
        "context": {"period": {"start": "2023-02", "end": "2023-03"}},
    },
    {"resourceType": "MolecularSequence", "id": "m", "type": "dna"},
    {"resourceType": "Location", "id": "l", "name": "North wing", "alias": ["Old mill"]},
    {
        "resourceType": "Observation",
        "id": "b",
        "valueBoolean": True,
        "valueString": "Élevé",
        "component": [{"valueRange": {"low": {"value": 1}}}, {"valueQuantity": {"value": 2, "code": "g"}}, 5, None],
        "code": "not a concept",
        "effectivePeriod": {"start": "nonsense"},
    },
]


@pytest.fixture(scope="module")
def chart() -> Chart:
    return Chart.open({"all.ndjson": "\n".join(json.dumps(body) for body in BODIES).encode()})


@pytest.mark.parametrize(
    ("kind", "name", "value", "ids"),
    [
        ("Patient", "_profile", "http://x/StructureDefinition/us-core", "p"),
        ("Patient", "_profile:below", "http://x/", "p"),
        ("Patient", "_profile", "http://x/", ""),
        ("Patient", "_tag", "urn:t|test", "p"),
        ("Patient", "name", "ana l", "p"),
        ("Patient", "name", "JR", "p"),
        ("Patient", "family", "nunez", "p"),
        ("Patient", "phone", "1", "p"),
        ("Patient", "phone", "a@x", ""),
        ("Patient", "telecom", "email|a@x", "p"),
        ("Patient", "telecom", "|fax?", "p"),
        ("Patient", "address", "69001", "p"),
        ("Patient", "address-use", "home", "p"),
        ("Patient", "active", "true", "p"),
        ("Patient", "deceased", "true", "q"),
        ("Patient", "deceased", "false", "p"),
        ("Patient", "identifier:text", "medical", "p"),
        ("Patient", "language", "fr", "p"),
        ("ServiceRequest", "occurrence", "ge2023-07-09", "s"),
        ("ServiceRequest", "occurrence", "lt2023-06-02", "s"),
        ("ServiceRequest", "occurrence", "2023-07", ""),
        ("ServiceRequest", "instantiates-canonical", "http://x/ActivityDefinition/a|2", "s"),
        ("ServiceRequest", "instantiates-uri", "urn:proto:1", "s"),
        ("Condition", "onset-age", "40||a", "c"),
        ("Condition", "onset-age", "gt55", "d"),
        ("Condition", "onset-age", "ge40||a", "c,d"),
        ("Invoice", "totalnet", "12.5|urn:iso:std:iso:4217|EUR", "i"),
        ("RiskAssessment", "probability", "gt0.7", "r"),
        ("RiskAssessment", "probability", "0.250", "r"),
        ("RiskAssessment", "probability", "gt0.8", ""),
        ("ValueSet", "url:above", "http://x/ValueSet/a/b/c", "v"),
        ("ValueSet", "url:below", "http://x/ValueSet/a", "v"),
        ("DocumentReference", "relatesto", "DocumentReference/old", "n"),
        ("DocumentReference", "relationship", "DocumentReference/old$replaces", "n"),
        ("DocumentReference", "relationship", "old$signs", ""),
        ("DocumentReference", "period", "2023", "n"),
        ("Location", "name", "old", "l"),
        ("Location", "name", "north", "l"),
        ("Observation", "value-string", "eleve", "b"),
        ("Observation", "component-value-quantity", "2||g", "b"),
        ("Observation", "date:missing", "true", "b"),
        ("Observation", "code:missing", "false", "b"),
    ],
)
def test_a_value_is_found_where_its_type_keeps_it(chart: Chart, kind: str, name: str, value: str, ids: str) -> None:
    page = chart.search(kind, [(name, value)])
    assert sorted(resource.id for resource in page.rows) == list(filter(None, ids.split(",")))


def test_a_choice_is_walked_by_type() -> None:
    (walk,) = compiled("(Observation.value as Quantity)", "Observation")
    assert [step.key for step in walk.steps] == ["valueQuantity"]
    assert walk.type == "Quantity"
    assert {walk.steps[0].key for walk in compiled("Observation.effective", "Observation")} == {
        "effectiveDateTime",
        "effectivePeriod",
        "effectiveTiming",
        "effectiveInstant",
    }


@pytest.mark.parametrize("subject", [5, [None], {"reference": 5}, "x", [[{"reference": "Patient/p"}]]])
def test_what_is_not_shaped_as_fhir_has_no_value(subject: Any) -> None:
    walks = compiled("Observation.subject.where(resolve() is Patient)", "Observation")
    assert [node for _, node in values.typed_nodes(walks, {"subject": subject})] == []


@pytest.mark.parametrize("written", ["1e999999", "1" + "0" * 400])
def test_a_number_beyond_every_float_compares_as_larger_than_all(written: str) -> None:
    line = f'{{"resourceType":"Observation","id":"o","valueQuantity":{{"value":{written}}}}}'
    chart = Chart.open({"Observation.ndjson": line.encode()})
    assert chart.search("Observation", [("value-quantity", "gt1e300")]).rows[0].raw == line
    assert chart.search("Observation", [("value-quantity", "lt1e300")]).total == 0
