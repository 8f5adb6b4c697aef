"""Conformance, searches: each kind of fault of a FHIR server, over every backend, as a client over HTTP sees it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from runtime import ehr
from runtime.tools import TOOLS
from tasks.fhir.chart import Chart

if TYPE_CHECKING:
    from conftest import Client


def matches(bundle: dict[str, Any], mode: str = "match") -> list[str]:
    return [entry["resource"]["id"] for entry in bundle.get("entry", []) if entry["search"]["mode"] == mode]


def link(bundle: dict[str, Any], relation: str) -> str | None:
    return next((item["url"] for item in bundle.get("link", []) if item["relation"] == relation), None)


# -- parameters


@pytest.mark.parametrize("query", ["Observation?foo=bar", "Observation?patient=p1&foo=bar", "Observation?PATIENT=p1"])
def test_an_unknown_parameter_is_refused_by_name_with_the_valid_ones(client: Client, query: str) -> None:
    said = client.refused(query)
    assert "foo" in said or "PATIENT" in said
    assert "value-quantity" in said


def test_lenient_handling_does_not_make_a_filter_optional(client: Client) -> None:
    answer = client.send("GET", "Observation?foo=bar", headers={"Prefer": "handling=lenient"})
    assert answer.status == 400


@pytest.mark.parametrize(
    "query",
    [
        "Observation?patient=",
        "Observation?code=",
        "Observation?code=a,,b",
        "Observation?code=|",
        "Patient?name:foo=bar",
        "Observation?_sort=bogus",
        "Observation?_count=-1",
        "Observation?_count=abc",
        "Observation?date=last%20week",
        "Observation?date=2024-13-45",
        "Observation?value-quantity=much",
    ],
)
def test_a_filter_that_cannot_be_applied_is_refused_and_never_ignored(client: Client, query: str) -> None:
    client.refused(query)


def test_the_self_link_lists_what_was_applied_and_nothing_else(client: Client) -> None:
    found = client.search("Observation?patient=p1&code=2823-3&_format=json&_pretty=true")
    query = parse_qsl(urlsplit(link(found, "self") or "").query)
    assert ("patient", "p1") in query
    assert ("code", "2823-3") in query
    assert not {name for name, _ in query} & {"_format", "_pretty"}


def test_every_search_parameter_of_every_tool_is_known_to_the_server(client: Client) -> None:
    tried = 0
    for tool in TOOLS:
        kind = getattr(tool, "resource_type", None)
        if kind is None or tool.writes:
            continue
        for name in tool.model_fields:
            if name in ("count", "page_limit") or name in getattr(tool, "vendor_only", ()):
                continue
            parameter = name.replace("_", "-")
            value = "2024-01-15" if "date" in name or name.startswith("authored") else "Patient/p1"
            answer = client.send("GET", f"{kind}?{parameter}={value}")
            assert answer.status == 200, (kind, parameter, answer.body[:200])
            tried += 1
    assert tried > 40


@pytest.mark.parametrize(
    "query",
    [
        "Observation?subject=Patient/p1&code=http://loinc.org|2823-3&_sort=-date&_count=100",
        "Condition?subject=Patient/p1&_count=100",
        "MedicationRequest?subject=Patient/p1&authoredon=ge2024-01-01",
        "ServiceRequest?subject=Patient/p1&authored=ge2024-01-01",
        "Condition?subject=Patient/p1&recorded-date=ge2024-01-01",
        "Procedure?subject=Patient/p1&date=ge2024-01-01",
    ],
)
def test_every_query_that_a_legacy_grader_sends_is_answered(client: Client, query: str) -> None:
    assert client.search(query)["resourceType"] == "Bundle"


# -- tokens


@pytest.mark.parametrize("bar", ["|", "%7C", "%7c"])
@pytest.mark.parametrize(
    ("code", "ids"),
    [
        ("2823-3", {"k-morning", "k-late", "k-year", "k-local", "k-else"}),
        ("http://loinc.org{}2823-3", {"k-morning", "k-late", "k-year"}),
        ("{}2823-3", {"k-local"}),
        ("urn:local{}", {"k-else"}),
        ("http://loinc.org{}2823-3,urn:local{}2823-3", {"k-morning", "k-late", "k-year", "k-else"}),
    ],
)
def test_the_four_forms_of_a_token_with_a_raw_and_an_encoded_bar(
    client: Client, code: str, ids: set[str], bar: str
) -> None:
    assert set(client.ids(f"Observation?code={code.replace('{}', bar)}")) == ids


def test_a_comma_is_or_and_a_repeated_parameter_is_and(client: Client) -> None:
    assert client.search("Observation?code=2823-3,29463-7&_summary=count")["total"] == 50
    assert client.search("Observation?code=2823-3&code=29463-7&_summary=count")["total"] == 0
    assert client.search("Observation?code=2823-3%2C29463-7&_summary=count")["total"] == 50


def test_token_modifiers(client: Client) -> None:
    assert set(client.ids("Observation?code:text=potassium")) == {"k-morning", "k-late", "k-year", "k-local"}
    assert set(client.ids("Condition?clinical-status:not=active")) == {"c2"}
    assert set(client.ids("Condition?clinical-status:missing=true")) == {"c2"}


def test_a_token_is_case_sensitive_and_a_string_is_a_prefix_without_case_and_accents(client: Client) -> None:
    assert client.ids("Patient?gender=FEMALE") == []
    assert client.ids("Patient?family=akesson") == ["p1"]
    assert client.ids("Patient?family=lind") == []
    assert client.ids("Patient?family:contains=lind") == ["p1"]
    assert client.ids("Patient?family:exact=%C3%A5kesson-lind") == []
    assert client.ids("Patient?family:exact=%C3%85kesson-Lind") == ["p1"]


# -- dates


@pytest.mark.parametrize(
    ("date", "ids"),
    [
        ("2024-01-15", {"k-morning", "k-late"}),
        ("2024-01-16", set()),
        ("2024-01", {"k-morning", "k-late"}),
        ("2023", {"k-year"}),
        ("2023-06", set()),
        ("ge2024-01-15", {"k-morning", "k-late", "k-local"}),
        ("gt2024-01-15", {"k-local"}),
        ("lt2024", {"k-year"}),
        ("le2023", {"k-year"}),
        ("ge2024", {"k-morning", "k-late", "k-local"}),
        ("sa2024-01-15", {"k-local"}),
        ("eb2024-01-15", {"k-year"}),
        ("ne2024-01-15", {"k-year", "k-local"}),
        ("2024-01-15T13:30:00Z", {"k-morning"}),
        ("ge2024-01-16T00:00:00Z", {"k-late", "k-local"}),
    ],
)
def test_dates_compare_by_precision_and_days_by_the_resources_own_clock(
    client: Client, date: str, ids: set[str]
) -> None:
    assert set(client.ids(f"Observation?patient=p1&code=2823-3&date={date}")) == ids


def test_an_open_period_has_no_end(client: Client) -> None:
    assert client.ids("Encounter?patient=p1&date=ge2030-01-01") == ["e-open"]


def test_two_bounds_of_a_date_hold_together(client: Client) -> None:
    assert set(client.ids("Observation?code=2823-3&date=ge2024-01-01&date=le2024-04-30")) == {"k-morning", "k-late"}


# -- references


def test_patient_and_subject_in_every_form_give_the_same_rows(client: Client) -> None:
    base = client.base_url
    forms = [f"{name}={value}p1" for name in ("patient", "subject") for value in ("", "Patient/", f"{base}/Patient/")]
    answers = {form: sorted(client.ids(f"Condition?{form}")) for form in [*forms, "subject:Patient=p1"]}
    assert set(map(tuple, answers.values())) == {("c1", "c2")}


def test_a_reference_that_leads_nowhere_is_searchable(client: Client) -> None:
    assert client.ids("Observation?patient=moved-away") == ["orphan"]


def test_a_numeric_id_is_kept(client: Client) -> None:
    assert client.send("GET", "Patient/12345").status == 200
    assert client.ids("Observation?patient=12345") == ["k-else"]


def test_includes_come_on_top_of_the_rows(client: Client) -> None:
    found = client.search("Observation?_id=k-morning&_include=Observation:subject&_include=Observation:encounter")
    assert matches(found) == ["k-morning"]
    assert sorted(matches(found, "include")) == ["e1", "p1"]
    assert found["total"] == 1


# -- pages and totals


def test_pages_neither_repeat_nor_lose_a_row_and_next_only_stands_where_a_row_follows(client: Client) -> None:
    url: str | None = "Observation?code=29463-7&_sort=-date&_count=15"
    seen: list[str] = []
    pages = 0
    while url is not None:
        page = client.search(url)
        assert page["total"] == 45
        seen += matches(page)
        url = link(page, "next")
        pages += 1
    assert pages == 3
    assert len(seen) == len(set(seen)) == 45


def test_a_page_chain_is_one_snapshot_though_rows_are_written_between(client: Client) -> None:
    first = client.search("Observation?code=29463-7&_count=40&_sort=_id")
    new = {
        "resourceType": "Observation",
        "status": "final",
        "code": {"coding": [{"system": "http://loinc.org", "code": "29463-7"}]},
        "subject": {"reference": "Patient/p1"},
    }
    assert client.create(new).status == 201
    second = client.search(link(first, "next") or "")
    assert len(matches(second)) == 5
    assert second["total"] == 45
    assert link(second, "next") is None
    assert link(second, "previous") == link(first, "self")
    assert client.search("Observation?code=29463-7&_summary=count")["total"] == 46


def test_a_page_link_that_never_was_has_expired(client: Client) -> None:
    assert client.send("GET", "?_getpages=00000000-0000-0000-0000-000000000000").status == 410


@pytest.mark.parametrize("alone", ["_count=0", "_summary=count"])
def test_the_total_alone(client: Client, alone: str) -> None:
    found = client.search(f"Observation?code=29463-7&{alone}")
    assert found == {"resourceType": "Bundle", "type": "searchset", "total": 45}


def test_a_page_has_20_rows_and_at_most_200(client: Client) -> None:
    found = client.search("Observation?code=29463-7")
    assert (len(matches(found)), found["total"]) == (20, 45)
    assert len(client.ids("Observation?_count=1000")) == 51


def test_no_match_is_a_bundle_without_entries(client: Client) -> None:
    found = client.search("Observation?code=0000-0")
    assert found["total"] == 0
    assert "entry" not in found


def test_sorting_is_by_instant_with_missing_values_last(client: Client) -> None:
    assert client.ids("Observation?code=2823-3&patient=p1&_sort=date") == ["k-year", "k-morning", "k-late", "k-local"]
    assert client.ids("Condition?_sort=-onset-date") == ["c1", "c2"]
    assert client.ids("Condition?_sort=onset-date") == ["c1", "c2"]


# -- how a search can be sent


def test_a_search_by_form_a_search_address_and_a_query_give_the_same_rows(client: Client) -> None:
    wanted = client.ids("Observation?code=http://loinc.org|2823-3")
    assert matches(json.loads(client.form("Observation", ("code", "http://loinc.org|2823-3")).body)) == wanted
    assert client.ids("Observation/_search?code=http://loinc.org|2823-3") == wanted
    assert client.send("POST", "Observation/_search", "{}", {"Content-Type": "application/json"}).status == 415


def test_an_address_that_is_not_text_is_refused(client: Client) -> None:
    client.refused("Patient?name=%FF")


@pytest.mark.parametrize(
    "query", ["Patients?name=x", "Foo", "Observation/$lastn?patient=p1", "Patient/p1/Observation", "_history"]
)
def test_what_is_not_offered_is_404(client: Client, query: str) -> None:
    client.refused(query, status=404)


def test_the_base_url_alone_is_no_search(client: Client) -> None:
    client.refused("?_type=Patient")
    client.refused("Patient/p1?foo=1")


def test_in_process_and_http_give_the_same_bytes(client: Client, session: ehr.Session) -> None:
    for target in (
        "Observation?code=29463-7&_count=10&_sort=date",
        "Observation?foo=bar",
        "Patient/p1",
        "Patient/nope",
        "metadata",
        "Observation?code=http://loinc.org%7C2823-3&_include=Observation:subject",
    ):
        inside, outside = session.request("GET", target), client.send("GET", target)
        assert (inside.status, inside.body) == (outside.status, outside.body)
        for name, value in inside.headers:
            assert outside.header(name) == value


def test_python_and_rest_find_the_same(session: ehr.Session) -> None:
    page = session.search("Observation", [("code", "29463-7"), ("_count", "30"), ("_sort", "_id")])
    assert (len(page.rows), page.total) == (30, 45)
    rest = session.search("Observation", [("code", "29463-7"), ("_count", "30"), ("_sort", "_id")], page.next)
    assert [row.id for row in (*page.rows, *rest.rows)] == [f"w-{n:02}" for n in range(45)]
    assert rest.next is None
    with pytest.raises(ehr.EhrError) as refused:
        session.search("Observation", [("foo", "bar")])
    assert refused.value.status == 400
    assert "foo" in refused.value.outcome["issue"][0]["diagnostics"]


def test_metadata_lists_what_works_and_every_listed_parameter_does(client: Client) -> None:
    said = client.search("metadata")
    assert said["fhirVersion"] == "4.0.1"
    listed = {row["type"]: row for row in said["rest"][0]["resource"]}
    codes = {interaction["code"] for row in listed.values() for interaction in row["interaction"]}
    assert codes == {"read", "vread", "create", "search-type"}
    for type in ("Observation", "MedicationRequest", "Patient"):
        values = {"date": "2024", "quantity": "5", "number": "5", "uri": "urn:x", "composite": "a$2024"}
        for parameter in listed[type]["searchParam"]:
            value = values.get(parameter["type"], "x")
            answer = client.send("GET", f"{type}?{parameter['name']}={value}&_summary=count")
            assert answer.status == 200, (type, parameter, answer.body[:200])


def test_a_link_of_an_answer_can_be_sent_back_in_process(session: ehr.Session) -> None:
    first = json.loads(session.request("GET", "Observation?code=29463-7&_sort=_id&_count=40").body)
    following = link(first, "next")
    assert following is not None
    assert len(matches(json.loads(session.request("GET", following).body))) == 5


def test_the_order_in_which_a_chart_was_written_changes_no_answer(chart_files: dict[str, bytes]) -> None:
    turned = {
        name: b"".join(line + b"\n" for line in reversed(data.splitlines()))
        for name, data in sorted(chart_files.items(), reverse=True)
    }
    asked = (
        "Observation?patient=moved-away",
        "Observation?code=2823-3&_sort=-date",
        "Condition?subject.family=akesson",
    )
    with ehr.open(Chart.open(chart_files)) as one, ehr.open(Chart.open(turned)) as other:
        for query in asked:
            answers = [json.loads(session.request("GET", query).body) for session in (one, other)]
            assert matches(answers[0]) == matches(answers[1]) != []


def test_two_sessions_of_one_chart_answer_at_their_own_addresses(
    chart: Chart, connect: Callable[[str], Client]
) -> None:
    with ehr.open(chart) as one, ehr.open(chart) as other:
        assert one.base_url != other.base_url
        assert urlsplit(one.base_url).port == urlsplit(other.base_url).port
        assert urlsplit(one.base_url).hostname == "127.0.0.1"
