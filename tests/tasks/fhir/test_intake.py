"""Foreign bundles and NDJSON in: references resolved, nothing lost in silence."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import ChartError, UsageError
from tasks.fhir.chart import Chart
from tasks.fhir.elements import check
from tasks.fhir.intake import Intake, as_chart_files, leads_to, read_records
from tasks.fhir.resources import references

Body = dict[str, Any]
PATIENT_URN = "urn:uuid:1b6a8e42-646c-4ce0-ab96-c7e781c5e2c7"
DOCTOR_URN = "urn:uuid:2b6a8e42-646c-4ce0-ab96-c7e781c5e2c7"


def patient(**more: Any) -> Body:
    return {"resourceType": "Patient", "id": "pat", "gender": "female", **more}


def condition(subject: str, **more: Any) -> Body:
    return {
        "resourceType": "Condition",
        "id": "con",
        "code": {"text": "x"},
        "subject": {"reference": subject},
        **more,
    }


def bundle(*entries: tuple[str, Body], kind: str = "transaction") -> Body:
    return {
        "resourceType": "Bundle",
        "type": kind,
        "entry": [{**({"fullUrl": url} if url else {}), "resource": body} for url, body in entries],
    }


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Intake]:
    """Writes the given files into a folder (a dict as JSON, a list as NDJSON) and reads it, or its only file."""

    def write(files: dict[str, Any], *, only: str = "", **options: bool) -> Intake:
        for name, content in files.items():
            if isinstance(content, list):
                data = "".join(f"{json.dumps(row)}\n" for row in content).encode()
            else:
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
            (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return read_records(tmp_path / only if only else tmp_path, **options)

    return write


def found(intake: Intake) -> dict[str, Body]:
    return {resource.ref: resource.body for resource in intake.resources}


@pytest.mark.parametrize("kind", ["transaction", "collection", "document", "searchset", "batch"])
@pytest.mark.parametrize("name", ["one.json", "one.json.gz"])
def test_a_bundle_of_any_type_is_read_with_its_urns_made_relative(
    read: Callable[..., Intake], kind: str, name: str
) -> None:
    intake = read({name: bundle((PATIENT_URN, patient()), ("", condition(PATIENT_URN)), kind=kind)}, only=name)
    assert found(intake)["Condition/con"]["subject"] == {"reference": "Patient/pat"}
    assert not intake.dropped
    assert not intake.dangling


def test_a_full_url_of_another_server_leads_to_its_resource(read: Callable[..., Intake]) -> None:
    url = "http://other.example/fhir/Patient/77"
    intake = read({"b.json": bundle((url, patient()), ("", condition(url)))})
    assert found(intake)["Condition/con"]["subject"]["reference"] == "Patient/pat"


def test_references_are_resolved_across_the_bundles_of_a_folder(read: Callable[..., Intake]) -> None:
    intake = read({"b.json": bundle(("", condition(PATIENT_URN))), "a.json.gz": bundle((PATIENT_URN, patient()))})
    assert found(intake)["Condition/con"]["subject"]["reference"] == "Patient/pat"


def test_a_urn_that_means_two_things_in_two_bundles_is_taken_from_its_own(read: Callable[..., Intake]) -> None:
    one, two = patient(), patient(id="other")
    intake = read(
        {
            "a.json": bundle((PATIENT_URN, one), ("", condition(PATIENT_URN, id="a"))),
            "b.json": bundle((PATIENT_URN, two), ("", condition(PATIENT_URN, id="b"))),
            "c.json": bundle(("", condition(PATIENT_URN, id="c"))),
        }
    )
    assert found(intake)["Condition/a"]["subject"]["reference"] == "Patient/pat"
    assert found(intake)["Condition/b"]["subject"]["reference"] == "Patient/other"
    assert intake.dangling == {"Condition.subject -> urn": 1}


def test_a_note_that_is_a_resource_of_its_own_is_followed(read: Callable[..., Intake]) -> None:
    def note(ident: str, url: str) -> Body:
        attachment = {"contentType": "text/plain", "url": url}
        return {
            "resourceType": "DocumentReference",
            "id": ident,
            "status": "current",
            "content": [{"attachment": attachment}],
        }

    text = {"resourceType": "Binary", "id": "t", "contentType": "text/plain", "data": "SGVsbG8="}
    rows = [note("d1", DOCTOR_URN), note("d2", "Binary/lost"), note("d3", "http://elsewhere.example/x")]
    intake = read({"b.json": bundle((DOCTOR_URN, text), *(("", row) for row in rows))})
    urls = [found(intake)[f"DocumentReference/d{n}"]["content"][0]["attachment"]["url"] for n in (1, 2, 3)]
    assert urls == ["Binary/t", "Binary/lost", "http://elsewhere.example/x"]
    assert intake.dangling == {"DocumentReference.content.attachment.url -> Binary": 1}


def test_a_reference_by_search_is_resolved_where_one_target_is_there(read: Callable[..., Intake]) -> None:
    doctor = {"resourceType": "Practitioner", "id": "dr", "identifier": [{"system": "urn:npi", "value": "99"}]}
    asked = [f"Practitioner?identifier={token}" for token in ("urn:npi|99", "urn:npi%7C99", "99", "urn:npi|0")]
    rows = [condition("Patient/pat", id=f"c{n}", asserter={"reference": ref}) for n, ref in enumerate(asked)]
    intake = read({"b.json": bundle(("", patient()), ("", doctor), *(("", row) for row in rows))})
    assert [found(intake)[f"Condition/c{n}"]["asserter"]["reference"] for n in range(3)] == ["Practitioner/dr"] * 3
    assert intake.dangling == {"Condition.asserter -> Practitioner by search": 1}
    assert intake.notes["reference by search, resolved"] == 3


def test_a_resource_without_an_id_gets_that_of_its_url_or_a_steady_one(read: Callable[..., Intake]) -> None:
    nameless = {key: value for key, value in patient().items() if key != "id"}
    files = {"b.json": bundle((PATIENT_URN, nameless), ("", {**nameless, "gender": "male"}))}
    first, second = read(files), read(files)
    assert [row.ref for row in first.resources] == [row.ref for row in second.resources]
    assert f"Patient/{PATIENT_URN.removeprefix('urn:uuid:')}" in found(first)
    assert len(first.resources) == 2
    assert first.notes.total() == 2


def test_what_is_not_valid_r4_is_dropped_and_counted_and_so_is_what_then_leads_nowhere(
    read: Callable[..., Intake],
) -> None:
    rows = [patient(nickname="Mia"), patient(id="p2"), condition("Patient/pat"), condition("Patient/p2", id="c2")]
    intake = read({"Mixed.ndjson": rows})
    assert sorted(found(intake)) == ["Condition/c2", "Condition/con", "Patient/p2"]
    assert intake.dropped == {"not valid R4: Patient.nickname (structure)": 1}
    assert intake.dangling == {"Condition.subject -> Patient": 1}
    assert "Mia" not in repr((intake.dropped, intake.dangling, intake.notes))


@pytest.mark.parametrize("depth", [60, 300, 480, 900, 5000])
def test_what_is_nested_too_deeply_is_dropped_and_the_rest_read(read: Callable[..., Intake], depth: int) -> None:
    deep = '{"url":"urn:x","extension":[' * depth + '{"url":"urn:x","valueString":"y"}' + "]}" * depth
    line = f'{{"resourceType":"Basic","id":"b","code":{{"text":"x"}},"extension":[{deep}]}}'
    intake = read({"x.ndjson": f"{line}\n{json.dumps(patient())}\n".encode()}, only_valid=False)
    assert list(found(intake)) == ["Patient/pat"]
    assert intake.dropped.total() == 1


def test_what_is_not_valid_can_be_kept(read: Callable[..., Intake]) -> None:
    assert "Patient/pat" in found(read({"P.ndjson": [patient(nickname="Mia")]}, only_valid=False))


def test_lines_that_are_no_resource_are_counted_and_the_others_read(read: Callable[..., Intake]) -> None:
    text = (
        "\ufeff"
        + json.dumps(patient())
        + "\r\n\r\n{broken\r\n[1]\r\n"
        + '{"resourceType":"Patient","id":"b","id":"c"}\n'
    )
    intake = read({"Patient.ndjson": text.encode()})
    assert list(found(intake)) == ["Patient/pat"]
    assert intake.dropped == {"the line is not JSON, or has a key twice": 2, "no resourceType": 1}


def test_entries_that_are_no_resource_are_counted(read: Callable[..., Intake]) -> None:
    made = bundle(("", patient()), ("", bundle()), ("", {"resourceType": "OperationOutcome"}))
    made["entry"] += [{"request": {"method": "DELETE", "url": "Patient/x"}}, 5]
    intake = read({"b.json": made})
    assert list(found(intake)) == ["Patient/pat"]
    assert intake.dropped.total() == 4


def test_the_same_record_twice_is_one_and_two_records_with_one_id_are_counted(read: Callable[..., Intake]) -> None:
    old = patient(meta={"lastUpdated": "2020-01-01T00:00:00Z"})
    new = patient(meta={"lastUpdated": "2021-01-01T00:00:00Z"}, birthDate="1990")
    intake = read({"a.ndjson": [new, old, old], "b.ndjson": [new]})
    assert found(intake)["Patient/pat"]["birthDate"] == "1990"
    assert intake.dropped == {"Patient: an id that another record has; the one updated last was kept": 2}
    assert intake.notes == {"Patient: the same record again": 1}


def test_what_is_not_touched_keeps_its_text_and_decimals_are_kept_everywhere(read: Callable[..., Intake]) -> None:
    line = '{"resourceType": "Observation", "id": "o",  "status":"final","code":{"text":"x"},"valueInteger":5,'
    line += '"component":[{"code":{"text":"y"},"valueQuantity":{"value":5.00}}]}'
    intake = read({"Observation.ndjson": f"{line}\n".encode()})
    assert intake.resources[0].raw == line
    intake = read(
        {"b.json": b'{"resourceType":"Bundle","type":"batch","entry":[{"resource":' + line.encode() + b"}]}"},
        only="b.json",
    )
    assert '"value":5.00' in intake.resources[0].raw


def test_empty_arrays_and_objects_are_removed_and_noted(read: Callable[..., Intake]) -> None:
    intake = read(
        {
            "P.ndjson": [
                patient(extension=[], name=[{"family": "A", "given": ["x", "y"], "_given": [{}, {"id": "k"}]}, {}])
            ]
        }
    )
    assert found(intake)["Patient/pat"]["name"] == [{"family": "A", "given": ["x", "y"], "_given": [None, {"id": "k"}]}]
    assert "extension" not in found(intake)["Patient/pat"]
    assert intake.notes.total() == 1


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("b.json", b"{"),
        ("b.json", b"[]"),
        ("b.json", b'{"resourceType":"Bundle","type":"batch","entry":{}}'),
        ("b.json", b"\xff\xfe"),
        ("P.ndjson", b"\xff\xfe"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused_by_name(
    read: Callable[..., Intake], name: str, data: bytes
) -> None:
    with pytest.raises(ChartError, match=name):
        read({name: data})


def test_a_cut_gzip_file_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(json.dumps(patient()).encode() * 50)
    for number, data in enumerate((whole[: len(whole) // 2], b"plain text", b"")):
        file = tmp_path / f"P{number}.ndjson.gz"
        file.write_bytes(data)
        if data:
            with pytest.raises(ChartError, match="gzip"):
                read_records(file)


def test_nothing_to_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    for path in (tmp_path, tmp_path / "absent", tmp_path / "notes.txt"):
        with pytest.raises(UsageError):
            read_records(path)


@given(st.text(max_size=80))
def test_any_text_can_be_asked_where_it_leads(text: str) -> None:
    leads = leads_to(text)
    assert leads is None or text.startswith(leads)


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("place", "kept", "dropped"),
    [("fhir-synthea", 5252, 28), ("fhir-clinosim", 12524, 112), ("fhir-pysynthea", 8727, 36)],
)
def test_real_exports_become_charts_of_valid_resources(shared_data: Path, place: str, kept: int, dropped: int) -> None:
    intake = read_records(shared_data / place)
    assert (len(intake.resources), intake.dropped.total()) == (kept, dropped)
    known = {row.ref for row in intake.resources}
    left = sum(
        1
        for row in intake.resources
        for _, target in references(row.body)
        if not target.startswith("#") and leads_to(target) not in known
    )
    assert left == intake.dangling.total()
    assert not any(check(row.body) for row in intake.resources[::50])
    chart = Chart.open(as_chart_files(intake.resources))
    assert len(chart) == kept
    assert len(chart.dangling()) == left
