"""Conformance, reads and writes: what is stored, what is refused, and what the ledger knows."""

from __future__ import annotations

import gzip
import json
import pickle
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from runtime import ehr
from tasks.errors import EnvironmentFault, UsageError
from tasks.fhir.chart import Chart
from tasks.fhir.resources import parse_json

if TYPE_CHECKING:
    from conftest import Client

Body = dict[str, Any]


# -- reads


def test_a_resource_is_served_with_the_characters_it_was_written_with(client: Client) -> None:
    morning = client.send("GET", "Observation/k-morning")
    assert b'"value":5.00,' in morning.body
    assert b'"value":0.0,' in client.send("GET", "Observation/k-late").body
    assert morning.header("content-type") == "application/fhir+json;charset=UTF-8"
    assert b'"value":5.00,' in client.send("GET", "Observation?_id=k-morning").body


def test_a_resource_that_is_not_there_is_404(client: Client) -> None:
    client.refused("Patient/nope", status=404)
    client.refused("Patient/no%20id%2Fat%20all", status=404)
    client.refused("Practitioner/p1", status=404)


def test_an_unchanged_resource_is_not_sent_again(client: Client) -> None:
    first = client.send("GET", "Patient/p1")
    again = client.send("GET", "Patient/p1", headers={"If-None-Match": first.header("etag") or ""})
    assert (again.status, again.body) == (304, b"")
    assert client.send("GET", "Patient/p1", headers={"If-None-Match": 'W/"7"'}).status == 200


def test_head_gives_the_headers_alone(client: Client) -> None:
    head = client.send("HEAD", "Patient/p1")
    full = client.send("GET", "Patient/p1")
    assert (head.status, head.body) == (200, b"")
    assert head.header("content-length") == str(len(full.body))
    assert head.header("etag") == full.header("etag")
    assert client.send("HEAD", "Patient/nope").status == 404


def test_a_version_can_be_read_and_an_unknown_one_is_404(client: Client) -> None:
    assert client.send("GET", "Patient/p1/_history/1").body == client.send("GET", "Patient/p1").body
    client.refused("Patient/p1/_history/2", status=404)


def test_xml_is_refused_rather_than_answered_in_json(client: Client) -> None:
    assert client.send("GET", "Patient/p1?_format=xml").status == 406
    assert client.send("GET", "Patient/p1", headers={"Accept": "application/fhir+xml"}).status == 406
    for accept in ("*/*", "application/json", "text/html,application/xhtml+xml,*/*;q=0.1"):
        assert client.send("GET", "Patient/p1", headers={"Accept": accept}).status == 200


# -- creates


def test_a_create_answers_201_with_its_address_and_the_body_as_stored(client: Client, order: Body) -> None:
    answer = client.create({**order, "id": "mine", "meta": {"versionId": "9", "tag": [{"code": "kept"}]}})
    assert answer.status == 201
    body = json.loads(answer.body)
    assert body["id"] != "mine"
    assert body["meta"]["versionId"] == "1"
    assert body["meta"]["tag"] == [{"code": "kept"}]
    assert {key: value for key, value in body.items() if key not in ("id", "meta")} == order
    place = f"{client.base_url}/ServiceRequest/{body['id']}"
    assert answer.header("location") == f"{place}/_history/1"
    assert answer.header("etag") == 'W/"1"'
    assert client.send("GET", place).body == answer.body
    assert client.send("GET", f"{place}/_history/1").body == answer.body


def test_a_write_is_found_at_once_by_every_search_that_it_matches(client: Client, order: Body) -> None:
    searches = [
        "ServiceRequest?patient=p1",
        "ServiceRequest?subject=Patient/p1&status=active",
        "ServiceRequest?code=http://loinc.org|2823-3&_sort=-authored",
        "ServiceRequest?authored=2025-03-14",
        "ServiceRequest?requester=Practitioner/dr1&_summary=count",
        "ServiceRequest?_lastUpdated=ge2025-03-14",
    ]
    assert [client.search(query)["total"] for query in searches] == [0] * len(searches)
    assert client.create(order).status == 201
    assert [client.search(query)["total"] for query in searches] == [1] * len(searches)
    assert client.create(order).status == 201
    assert [client.search(query)["total"] for query in searches] == [2] * len(searches)


def test_decimals_and_text_of_a_write_are_stored_as_sent(client: Client) -> None:
    sent = (
        '{"resourceType":"Observation","status":"final","code":{"text":"Å \\"quoted\\"\\n🙂"},'
        '"subject":{"reference":"Patient/p1"},"valueQuantity":{"value":0.10}}'
    )
    answer = client.send("POST", "Observation", sent)
    assert answer.status == 201
    stored = parse_json(answer.body)
    assert b'"value":0.10' in answer.body
    assert stored["code"]["text"] == 'Å "quoted"\n🙂'


def test_prefer_decides_what_comes_back(client: Client, order: Body) -> None:
    sent = json.dumps(order)
    minimal = client.send("POST", "ServiceRequest", sent, {"Prefer": "return=minimal"})
    assert (minimal.status, minimal.body) == (201, b"")
    assert minimal.header("location")
    outcome = client.send("POST", "ServiceRequest", sent, {"Prefer": "return=OperationOutcome"})
    assert json.loads(outcome.body)["resourceType"] == "OperationOutcome"
    assert client.search("ServiceRequest?_summary=count")["total"] == 2


def _put(body: Body, path: str, value: Any) -> Body:
    *way, last = path.split(".")
    node = body
    for step in way:
        node = node[step]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return body


@pytest.mark.parametrize(
    ("path", "value", "status", "named"),
    [
        ("urgency", "now", 400, "urgency"),
        ("code.codingg", [], 400, "codingg"),
        ("status", "notacode", 400, "status"),
        ("status", 5, 400, "status"),
        ("status", None, 400, "status"),
        ("subject", None, 400, "subject"),
        ("intent", ["order"], 400, "intent"),
        ("code", "2823-3", 400, "code"),
        ("note", {"text": "x"}, 400, "note"),
        ("authoredOn", "yesterday", 400, "authoredOn"),
        ("occurrenceDateTime", "2025-02-30", 400, "occurrence"),
        ("subject", {"reference": "Practitioner/dr1"}, 400, "subject"),
        ("requester", {"reference": "Observation/k-late"}, 400, "requester"),
        ("requester", {"reference": "garbage"}, 400, "requester"),
        ("subject", {"reference": "Patient/unknown"}, 422, "subject"),
        ("subject", {"reference": "http://elsewhere.example/fhir/Patient/p1"}, 422, "subject"),
        ("subject", {"display": "Maja"}, 422, "subject"),
        ("subject", {"identifier": {"value": "MRN001"}}, 422, "subject"),
        ("performer", [{"reference": "Patient/unknown"}], 422, "performer[0]"),
        ("meta", "x", 400, "meta"),
    ],
)
def test_a_create_that_is_not_right_is_refused_by_element_and_leaves_nothing(
    client: Client, session: ehr.Session, order: Body, path: str, value: Any, status: int, named: str
) -> None:
    answer = client.create(_put(order, path, value))
    assert answer.status == status, answer.body
    said = json.loads(answer.body)
    assert said["resourceType"] == "OperationOutcome"
    assert any(named in issue["diagnostics"] for issue in said["issue"])
    assert client.search("ServiceRequest?_summary=count")["total"] == 0
    assert session.ledger == ()


def test_an_appointment_without_a_time_is_taken_and_one_for_nobody_here_is_not(client: Client) -> None:
    booked: Body = {
        "resourceType": "Appointment",
        "status": "booked",
        "participant": [{"actor": {"reference": "Patient/p1"}, "status": "accepted"}],
    }
    assert client.create(booked).status == 201
    booked["participant"][0]["actor"]["reference"] = "Patient/unknown"
    assert client.create(booked).status == 422


def test_a_reference_to_what_is_not_the_patient_may_lead_nowhere_and_is_searchable(client: Client, order: Body) -> None:
    assert client.create(_put(order, "requester.reference", "Practitioner/elsewhere")).status == 201
    assert client.search("ServiceRequest?requester=Practitioner/elsewhere")["total"] == 1


def test_this_servers_own_address_in_a_reference_is_local(client: Client, order: Body) -> None:
    answer = client.create(_put(order, "subject.reference", f"{client.base_url}/Patient/p1"))
    assert answer.status == 201
    assert json.loads(answer.body)["subject"]["reference"] == "Patient/p1"


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ("", "application/fhir+json", 400),
        ("{", "application/fhir+json", 400),
        ("[]", "application/fhir+json", 400),
        ("null", "application/fhir+json", 400),
        ('{"status":"active","status":"draft"}', "application/fhir+json", 400),
        ('{"resourceType":"ServiceRequest","status":NaN}', "application/fhir+json", 400),
        ('{"status":"active"}', "application/fhir+json", 400),
        ('{"resourceType":"Nonsense"}', "application/fhir+json", 400),
        (b'{"resourceType":"\xff"}', "application/fhir+json", 400),
        ("[" * 100_000, "application/fhir+json", 400),
        ("<ServiceRequest/>", "application/fhir+xml", 415),
        ("{}", "text/plain", 415),
    ],
)
def test_a_body_that_is_no_resource_is_refused(client: Client, body: bytes | str, kind: str, status: int) -> None:
    answer = client.send("POST", "ServiceRequest", body, {"Content-Type": kind})
    assert answer.status == status, answer.body
    assert json.loads(answer.body)["resourceType"] == "OperationOutcome"


def test_a_packed_body_is_refused_as_such(client: Client, order: Body) -> None:
    packed = gzip.compress(json.dumps(order).encode())
    assert client.send("POST", "ServiceRequest", packed, {"Content-Encoding": "gzip"}).status == 415


@pytest.mark.parametrize(
    ("meta", "etag", "modified"),
    [
        ('{"versionId":"7","lastUpdated":"2024-05-01T10:00:00+02:00"}', 'W/"7"', "Wed, 01 May 2024 08:00:00 GMT"),
        ('{"lastUpdated":"0001-01-01T00:00:00+14:00"}', 'W/"1"', None),
        ('{"versionId":"1\\r\\nX-Y: z","lastUpdated":"soon"}', 'W/"1"', None),
        ('"wrong"', 'W/"1"', None),
        ("[]", 'W/"1"', None),
    ],
)
def test_the_headers_of_a_chart_that_is_served_as_it_is_are_always_right(
    connect: Callable[[str], Client], meta: str, etag: str, modified: str | None
) -> None:
    line = f'{{"resourceType":"Patient","id":"a","meta":{meta}}}'
    with ehr.open(Chart.open({"Patient.ndjson": f"{line}\n".encode()})) as session:
        answer = connect(session.base_url).send("GET", "Patient/a")
    assert (answer.status, answer.body) == (200, line.encode())
    assert (answer.header("etag"), answer.header("last-modified")) == (etag, modified)


def test_a_refusal_crosses_a_process_border_whole(session: ehr.Session, order: Body) -> None:
    with pytest.raises(ehr.EhrError) as refused:
        session.create({**order, "status": "notacode"})
    again = pickle.loads(pickle.dumps(refused.value))
    assert (str(again), again.status, again.outcome) == (str(refused.value), 400, refused.value.outcome)


@pytest.mark.parametrize("depth", [40, 60, 300, 480, 900, 5000])
def test_a_body_that_is_nested_too_deeply_is_refused_and_a_deep_one_is_not(
    client: Client, session: ehr.Session, depth: int
) -> None:
    inner = '{"url":"urn:x","valueString":"y"}'
    extension = '{"url":"urn:x","extension":[' * depth + inner + "]}" * depth
    body = f'{{"resourceType":"Basic","code":{{"text":"x"}},"extension":[{extension}]}}'
    assert client.send("POST", "Basic", body).status == (201 if depth == 40 else 400)
    assert len(session.ledger) == (1 if depth == 40 else 0)
    assert client.search("Basic")["total"] == len(session.ledger)


def test_a_body_of_another_type_than_the_address_is_refused(client: Client, order: Body) -> None:
    answer = client.send("POST", "Observation", json.dumps(order))
    assert answer.status == 400
    assert "ServiceRequest" in json.loads(answer.body)["issue"][0]["diagnostics"]


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("PUT", "Patient/p1"),
        ("PATCH", "Patient/p1"),
        ("DELETE", "Patient/p1"),
        ("DELETE", "Patient"),
        ("POST", "Patient/p1"),
        ("POST", ""),
        ("PUT", "metadata"),
    ],
)
def test_the_chart_itself_cannot_be_changed(client: Client, method: str, target: str) -> None:
    before = client.send("GET", "Patient/p1").body
    answer = client.send(method, target, "{}")
    assert answer.status == 405
    assert "GET" in (answer.header("allow") or "")
    assert json.loads(answer.body)["resourceType"] == "OperationOutcome"
    assert client.send("GET", "Patient/p1").body == before


def test_a_conditional_create_is_refused_and_not_carried_out_as_a_plain_one(client: Client, order: Body) -> None:
    answer = client.send("POST", "ServiceRequest", json.dumps(order), {"If-None-Exist": "identifier=x"})
    assert answer.status == 412
    assert client.search("ServiceRequest?_summary=count")["total"] == 0


# -- the ledger, and what sessions share


def test_the_ledger_holds_every_write_as_stored(session: ehr.Session, client: Client, order: Body) -> None:
    first = session.create(order, call=3)
    second = json.loads(client.create(order).body)
    with pytest.raises(ehr.EhrError):
        session.create({**order, "status": "notacode"}, call=4)
    entries = session.ledger
    assert [(entry.sequence, entry.call, entry.version) for entry in entries] == [(1, 3, 1), (2, None, 1)]
    assert entries[0].reference == first.ref
    assert entries[1].reference == f"ServiceRequest/{second['id']}"
    for entry in entries:
        assert client.send("GET", entry.reference).body == entry.resource.encode()


def test_a_write_is_stamped_with_the_simulated_clock(session: ehr.Session, order: Body) -> None:
    stamps = [session.create(order).body["meta"]["lastUpdated"] for _ in range(2)]
    assert stamps == ["2025-03-14T09:30:01.000Z", "2025-03-14T09:30:02.000Z"]


def test_without_a_simulated_clock_the_wall_clock_stamps(chart: Chart, order: Body) -> None:
    before = datetime.now(UTC)
    with ehr.open(chart) as session:
        stamp = datetime.fromisoformat(session.create(order).body["meta"]["lastUpdated"])
    assert abs((stamp - before).total_seconds()) < 60


def test_python_and_rest_store_the_same_bytes(session: ehr.Session, order: Body) -> None:
    def without_id(text: str) -> str:
        return re.sub(r'"id":"[^"]+"|"lastUpdated":"[^"]+"', "", text)

    made = session.create(order)
    answer = session.request("POST", "ServiceRequest", json.dumps(order))
    assert without_id(made.raw) == without_id(answer.body.decode())


def test_what_the_caller_does_to_the_body_afterwards_changes_nothing(session: ehr.Session, order: Body) -> None:
    made = session.create(order)
    order["status"] = "revoked"
    assert session.read(made.ref).body["status"] == "active"


@pytest.mark.parametrize("value", [float("nan"), object(), {1: 2}])
def test_what_json_cannot_say_is_refused(session: ehr.Session, order: Body, value: object) -> None:
    with pytest.raises(ehr.EhrError) as refused:
        session.create({**order, "note": [{"text": value}]})
    assert refused.value.status == 400


def test_sessions_never_see_each_others_writes_and_leave_the_chart_as_it_was(
    chart: Chart, connect: Callable[[str], Client], order: Body
) -> None:
    size, digest = len(chart), chart.digest
    with ehr.open(chart) as one, ehr.open(chart) as other:
        mine, yours = connect(one.base_url), connect(other.base_url)
        made = json.loads(mine.create(order).body)["id"]
        assert mine.search("ServiceRequest?_summary=count")["total"] == 1
        assert yours.search("ServiceRequest?_summary=count")["total"] == 0
        assert yours.send("GET", f"ServiceRequest/{made}").status == 404
        page = mine.send("GET", "Observation?code=29463-7&_count=2")
        following = next(item["url"] for item in json.loads(page.body)["link"] if item["relation"] == "next")
        assert yours.send("GET", following.split("/fhir")[1]).status == 410
        mine.close()
        yours.close()
    assert (len(chart), chart.digest) == (size, digest)
    assert list(chart.resources("ServiceRequest")) == []


def test_records_see_the_writes_and_outlive_the_session(session: ehr.Session, order: Body) -> None:
    made = session.create(order)
    session.close()
    session.close()
    assert session.records.get(made.ref) == made
    assert session.records.search("ServiceRequest", [("patient", "p1")]).total == 1
    assert len(session.ledger) == 1


def test_a_closed_session_is_an_environment_fault_and_never_an_empty_answer(
    chart: Chart, connect: Callable[[str], Client], order: Body
) -> None:
    session = ehr.open(chart)
    client = connect(session.base_url)
    assert client.send("GET", "Patient/p1").status == 200
    session.close()
    assert client.send("GET", "Patient/p1").status == 404
    assert client.create(order).status == 404
    client.close()
    for call in (
        lambda: session.search("Patient", []),
        lambda: session.read("Patient/p1"),
        lambda: session.create(order),
        lambda: session.request("GET", "Patient/p1"),
        lambda: session.base_url,
    ):
        with pytest.raises(EnvironmentFault, match="closed"):
            call()


def test_a_backend_that_does_not_exist_is_refused_with_those_that_do(chart: Chart) -> None:
    with pytest.raises(UsageError, match="embedded"):
        ehr.open(chart, backend="oracle")
    with pytest.raises(UsageError, match="time zone"):
        ehr.open(chart, now=datetime(2025, 1, 1))  # noqa: DTZ001
