"""The element check: valid resources pass in silence, and each kind of fault gives one issue at its place."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tasks.fhir import elements
from tasks.fhir.chart import Chart
from tasks.fhir.elements import Issue, check, primitive_fits, reference_type
from tasks.fhir.resources import parse_json

ORDER = parse_json(
    """{"resourceType":"MedicationRequest","id":"m","meta":{"lastUpdated":"2024-01-01T10:00:00.000Z"},
    "contained":[{"resourceType":"Medication","id":"in","code":{"text":"x"}}],
    "status":"active","intent":"order","_priority":{"extension":[{"url":"urn:x","valueString":"why"}]},
    "medicationReference":{"reference":"#in"},"subject":{"reference":"Patient/p"},"authoredOn":"2024-01-01",
    "dosageInstruction":[{"text":"one daily","timing":{"repeat":{"frequency":1,"period":1,"periodUnit":"d"}},
    "doseAndRate":[{"doseQuantity":{"value":5.00,"unit":"mg"}}]}],
    "dispenseRequest":{"numberOfRepeatsAllowed":0,"validityPeriod":{"start":"2024-01"}},
    "note":[{"text":"a note"}]}"""
)
CONDITION = parse_json(
    """{"resourceType":"Condition","id":"c","subject":{"reference":"https://ehr/fhir/Patient/p"},
    "clinicalStatus":{"coding":[{"system":"http://terminology.hl7.org/CodeSystem/condition-clinical","code":"active"}]},
    "onsetDateTime":"2020","evidence":[{"code":[{"text":"seen"}]}]}"""
)
REPORT = parse_json(
    """{"resourceType":"Observation","id":"o","status":"final","code":{"text":"bp"},
    "referenceRange":[{"low":{"value":1}}],"component":[{"code":{"text":"s"},"referenceRange":[{"text":"r"}]}]}"""
)


@pytest.mark.parametrize("body", [ORDER, CONDITION, REPORT])
def test_a_valid_resource_has_no_issue(body: dict[str, Any]) -> None:
    assert check(body) == []


def changed(body: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with the element at a dotted path set; None removes it."""
    made = copy.deepcopy(body)
    *holders, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    node: Any = made
    for step in holders:
        node = node[step]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return made


REFILLS = "MedicationRequest.dispenseRequest.numberOfRepeatsAllowed"
UNIT = "MedicationRequest.dosageInstruction[0].timing.repeat.periodUnit"

FAULTS: list[tuple[dict[str, Any], str, Any, str, str]] = [
    (ORDER, "resourceType", "Prescription", "resourceType", "structure"),
    (ORDER, "dose", "5 mg", "MedicationRequest.dose", "structure"),
    (ORDER, "dosageInstruction.0.dose", "5 mg", "MedicationRequest.dosageInstruction[0].dose", "structure"),
    (ORDER, "status", None, "MedicationRequest.status", "required"),
    (ORDER, "status", "ordered", "MedicationRequest.status", "code-invalid"),
    (ORDER, "status", ["active"], "MedicationRequest.status", "structure"),
    (ORDER, "status", 1, "MedicationRequest.status", "value"),
    (ORDER, "subject", None, "MedicationRequest.subject", "required"),
    (ORDER, "subject", "Patient/p", "MedicationRequest.subject", "structure"),
    (ORDER, "subject.reference", "Practitioner/x", "MedicationRequest.subject", "value"),
    (ORDER, "subject.reference", "garbage", "MedicationRequest.subject", "value"),
    (ORDER, "subject.reference", "", "MedicationRequest.subject.reference", "value"),
    (ORDER, "medicationReference.reference", "#out", "MedicationRequest.medicationReference", "value"),
    (ORDER, "medicationCodeableConcept", {"text": "x"}, "MedicationRequest.medication[x]", "structure"),
    (ORDER, "note", {"text": "a note"}, "MedicationRequest.note", "structure"),
    (ORDER, "note", [], "MedicationRequest.note", "structure"),
    (ORDER, "note.0", {}, "MedicationRequest.note[0]", "structure"),
    (ORDER, "note.0.text", "", "MedicationRequest.note[0].text", "value"),
    (ORDER, "authoredOn", "01/02/2024", "MedicationRequest.authoredOn", "value"),
    (ORDER, "authoredOn", "2024-01-01T10:00:00", "MedicationRequest.authoredOn", "value"),
    (ORDER, "_authoredOn", "x", "MedicationRequest._authoredOn", "structure"),
    (ORDER, "_subject", {"id": "x"}, "MedicationRequest._subject", "structure"),
    (ORDER, REFILLS.partition(".")[2], -1, REFILLS, "value"),
    (ORDER, REFILLS.partition(".")[2], True, REFILLS, "value"),
    (ORDER, "dosageInstruction.0.timing.repeat.periodUnit", "day", UNIT, "code-invalid"),
    (ORDER, "contained.0.strength", "5", "MedicationRequest.contained[0].strength", "structure"),
    (ORDER, "meta.lastUpdated", "2024-01-01", "MedicationRequest.meta.lastUpdated", "value"),
    (CONDITION, "clinicalStatus.coding.0.code", "on", "Condition.clinicalStatus", "code-invalid"),
    (CONDITION, "clinicalStatus", {"text": "active"}, "Condition.clinicalStatus", "code-invalid"),
    (CONDITION, "onsetString", "childhood", "Condition.onset[x]", "structure"),
    (CONDITION, "evidence.0.why", "x", "Condition.evidence[0].why", "structure"),
    (CONDITION, "extension", [{"valueString": "x"}], "Condition.extension[0].url", "required"),
    (REPORT, "component.0.referenceRange.0.min", 1, "Observation.component[0].referenceRange[0].min", "structure"),
]


@pytest.mark.parametrize(("body", "path", "value", "place", "code"), FAULTS)
def test_a_fault_gives_one_issue_at_its_place(
    body: dict[str, Any], path: str, value: Any, place: str, code: str
) -> None:
    issues = check(changed(body, path, value))
    assert [(issue.path, issue.code) for issue in issues] == [(place, code)]
    assert issues[0].message


def test_every_fault_of_a_resource_is_told() -> None:
    body = changed(changed(changed(ORDER, "status", "x"), "intent", None), "dose", 1)
    assert {issue.code for issue in check(body)} == {"code-invalid", "required", "structure"}


def test_an_issue_quotes_nothing_from_the_record() -> None:
    for path, value in (
        ("status", "Jane Roe"),
        ("Jane Roe", 1),
        ("authoredOn", "Jane Roe"),
        ("subject.reference", "Jane"),
    ):
        made = copy.deepcopy(ORDER)
        if path == "subject.reference":
            made["subject"]["reference"] = value
        else:
            made[path] = value
        issues = check(made)
        assert issues
        assert "Jane" not in str(issues)


@pytest.mark.parametrize(
    ("kind", "fits", "not_fits"),
    [
        ("boolean", [True, False], ["true", 1, 0]),
        ("integer", [0, -5], [1.0, "1", True, 2**31, parse_json("5.0")]),
        ("positiveInt", [1], [0, -1]),
        ("decimal", [1, parse_json("5.00"), parse_json("1e3")], ["5", True, None]),
        ("date", ["2024", "2024-02", "2024-02-29"], ["2023-02-29", "2024-02-29T10:00:00Z", "24"]),
        (
            "dateTime",
            ["2024-02-29", "2024-02-29T10:00:00Z", "2024-02-29T10:00:00.1-05:00"],
            ["2024-02-29T10:00", "now"],
        ),
        ("instant", ["2024-02-29T10:00:00Z"], ["2024-02-29", "2024-02-29T10:00:00"]),
        ("time", ["10:00:00", "23:59:60"], ["24:00:00", "10:00"]),
        ("code", ["a b", "x-1"], [" a", "a ", "a  b", ""]),
        ("uri", ["urn:x", "http://a/b"], ["a b", ""]),
        ("oid", ["urn:oid:1.2.3"], ["1.2.3"]),
        ("uuid", ["urn:uuid:c757873d-ec9a-4326-a141-556f43239520"], ["urn:uuid:1"]),
        ("base64Binary", ["QUJD", "QUJ=", "QUJD\nQUJD"], ["QUJ", "Q!JD"]),
        ("string", ["a", "é\n"], ["", "  ", 5]),
    ],
)
def test_primitives_are_told_from_what_only_looks_like_them(kind: str, fits: list[Any], not_fits: list[Any]) -> None:
    assert [value for value in fits if not primitive_fits(kind, value)] == []
    assert [value for value in not_fits if primitive_fits(kind, value)] == []


@pytest.mark.parametrize(
    ("literal", "kind"),
    [
        ("Patient/p", "Patient"),
        ("Patient/p/_history/3", "Patient"),
        ("https://x/fhir/Patient/p", "Patient"),
        ("Patient", None),
        ("patient/p", None),
        ("Patients/p", None),
        ("urn:uuid:x", None),
        ("Patient/a b", None),
    ],
)
def test_a_reference_names_its_type(literal: str, kind: str | None) -> None:
    assert reference_type(literal) == kind


@pytest.mark.parametrize("body", [[], "x", None, {}, {"resourceType": []}])
def test_what_is_no_resource_is_one_issue(body: Any) -> None:
    assert [issue.code for issue in check(body)] == ["structure"]


def test_every_resource_type_can_be_checked() -> None:
    for kind in elements.resource_types():
        assert all(isinstance(issue, Issue) for issue in check({"resourceType": kind, "id": "x", "nothing": 1}))
    assert {"Observation", "Patient", "MedicationRequest"} <= elements.resource_types()
    assert not elements.resource_types() & {"Resource", "DomainResource", "Period"}


@pytest.mark.shared_data
def test_charts_that_hapi_took_have_no_issue_but_one_that_hapi_drops(shared_data: Path) -> None:
    for name in ("edge.ndjson", "synthea.ndjson.gz"):
        chart = Chart.open(shared_data / "hapi-answers" / name)
        assert [(resource.ref, issue) for resource in chart.resources() for issue in check(resource.body)] == []
