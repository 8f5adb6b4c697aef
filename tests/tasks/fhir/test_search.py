"""Properties of the engine: paging, merging of writes, escapes, and agreement with a plain reading of the JSON."""

from __future__ import annotations

import json
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.errors import SearchError
from tasks.fhir.chart import Chart, Overlay, Records, every
from tasks.fhir.resources import Resource

IDS = st.from_regex(r"[A-Za-z0-9\-.]{1,5}", fullmatch=True)
SYSTEMS = st.sampled_from(["", "urn:a", "urn:b"])
CODES = st.sampled_from(["1", "2", "x,y", "a|b", "c$d", "e\\f", "Ä"])
DATES = st.sampled_from(
    ["", "2020", "2020-05", "2020-05-11", "2020-05-11T10:00:00Z", "2020-05-11T23:00:00-05:00", "2021-01-01"]
)
NUMBERS = st.sampled_from([None, -1, 0, 0.1, 5, 5.5, 1000])
SORTS = st.lists(
    st.sampled_from(["date", "-date", "code", "-code", "value-quantity", "-value-quantity", "_id", "-_id"]), max_size=3
)


@st.composite
def records(draw: st.DrawFn) -> list[Resource]:
    """Up to a dozen Observations with awkward codes, dates and ids."""
    made = []
    for ident in draw(st.lists(IDS, unique=True, min_size=1, max_size=12)):
        body: dict[str, Any] = {"resourceType": "Observation", "id": ident}
        coding = {"system": draw(SYSTEMS), "code": draw(CODES)}
        body["code"] = {"coding": [{key: value for key, value in coding.items() if value}]}
        if written := draw(DATES):
            body["effectiveDateTime"] = written
        if (value := draw(NUMBERS)) is not None:
            body["valueQuantity"] = {"value": value, "code": "mg"}
        made.append(Resource.parse(json.dumps(body)))
    return made


def chart_of(resources: list[Resource]) -> Chart:
    return Chart.open({"all.ndjson": "\n".join(resource.raw for resource in resources).encode()} if resources else {})


def ids(found: Records, params: list[tuple[str, str]], count: int) -> list[str]:
    """All matches over all pages of `count`."""
    asked = [*params, ("_count", str(count))]
    page = found.search("Observation", asked)
    seen = [resource.id for resource in page.rows]
    total = page.total
    while page.next is not None:
        page = found.search("Observation", asked, page_token=page.next)
        assert page.rows
        assert page.total == total
        seen += [resource.id for resource in page.rows]
    assert len(seen) == total
    return seen


def escaped(text: str) -> str:
    return "".join(f"\\{char}" if char in "\\,|$" else char for char in text)


@given(records(), SORTS, st.integers(1, 5), st.data())
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_a_record_split_into_chart_and_writes_is_searched_as_one(
    held: list[Resource], sort: list[str], count: int, data: st.DataObject
) -> None:
    parts = data.draw(st.lists(st.booleans(), min_size=len(held), max_size=len(held)))
    overlay = Overlay(chart_of([resource for resource, write in zip(held, parts, strict=True) if not write]))
    for resource, write in zip(held, parts, strict=True):
        if write:
            overlay.add(resource)
    params = [("_sort", ",".join([*sort, "_id"]))]
    if data.draw(st.booleans()):
        params.append(
            ("date", data.draw(st.sampled_from(["ge2020-05", "2020-05-11", "ne2020", "lt2020-05-12T00:00:00Z"])))
        )
    whole = ids(chart_of(held), params, 200)
    assert ids(overlay, params, count) == whole
    assert {resource.ref for resource in overlay.resources()} == {resource.ref for resource in held}


@given(records(), SYSTEMS, CODES)
@settings(deadline=None)
def test_the_four_token_forms_mean_what_they_say(held: list[Resource], system: str, code: str) -> None:
    chart = chart_of(held)

    def having(test: Any) -> list[str]:
        codings = ((resource.id, resource.body["code"]["coding"][0]) for resource in held)
        return sorted(ident for ident, coding in codings if test(coding.get("system", ""), coding.get("code", "")))

    def found(value: str, name: str = "code") -> list[str]:
        return sorted(ids(chart, [(name, value)], 200))

    value = escaped(code)
    assert found(value) == having(lambda s, c: c == code)
    assert found(f"{system}|{value}") == having(lambda s, c: (s, c) == (system, code))
    assert found(value, "code:not") == having(lambda s, c: c != code)
    if system:
        assert found(f"{system}|") == having(lambda s, c: s == system)
    assert found(f"{value},nothing") == found(value)


@given(records())
@settings(deadline=None)
def test_missing_and_not_missing_part_the_record(held: list[Resource]) -> None:
    chart = chart_of(held)
    for name in ("date", "value-quantity", "code", "subject", "value-string"):
        without, having = (set(ids(chart, [(f"{name}:missing", flag)], 200)) for flag in ("true", "false"))
        assert without | having == {resource.id for resource in held}
        assert not without & having


NAMES = st.text(st.characters(categories=("L", "Zs", "Pd", "Mn")), min_size=1, max_size=8)


def plain(text: str) -> str:
    kept = [char for char in unicodedata.normalize("NFD", text) if not 0x300 <= ord(char) <= 0x36F]
    return "".join(kept).upper()


@given(st.lists(NAMES, min_size=1, max_size=6), NAMES)
@settings(deadline=None)
def test_strings_are_found_by_prefix_by_part_and_exactly(families: list[str], asked: str) -> None:
    lines = [
        json.dumps({"resourceType": "Patient", "id": f"p{n}", "name": [{"family": family}]})
        for n, family in enumerate(families)
    ]
    chart = Chart.open({"Patient.ndjson": "\n".join(lines).encode()})

    def found(name: str) -> set[str]:
        return {resource.id for resource in chart.search("Patient", [(name, asked)]).rows}

    def having(test: Any) -> set[str]:
        return {f"p{n}" for n, family in enumerate(families) if test(family)}

    if not asked.strip():
        with pytest.raises(SearchError):
            found("family")
        return
    assert found("family:exact") == having(lambda family: family == asked)
    assert found("family") == having(lambda family: plain(family).startswith(plain(asked)))
    assert found("family:contains") == having(lambda family: plain(asked) in plain(family))


@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=12)), max_size=4))
@settings(deadline=None)
def test_no_request_breaks_the_engine(params: list[tuple[str, str]]) -> None:
    chart = chart_of([Resource.parse('{"resourceType":"Observation","id":"a","effectiveDateTime":"2020"}')])
    try:
        page = chart.search("Observation", params)
    except SearchError as error:
        assert error.what  # noqa: PT017
    else:
        assert page.total in (0, 1)


@given(
    st.sampled_from(
        ["code", "date", "subject", "value-quantity", "_id", "code-value-quantity", "_sort", "_include", "_count"]
    ),
    st.sampled_from(["", ":not", ":missing", ":text", ":exact", ":Patient", ":Patient.name", ".name", ":iterate"]),
    st.text(st.sampled_from("ab12.-|,$\\:/egtl Te*"), max_size=8),
)
@settings(deadline=None)
def test_no_value_of_a_known_parameter_breaks_the_engine(name: str, modifier: str, value: str) -> None:
    chart = chart_of([Resource.parse('{"resourceType":"Observation","id":"a","effectiveDateTime":"2020"}')])
    try:
        page = chart.search("Observation", [(name + modifier, value)])
    except SearchError as error:
        assert error.where  # noqa: PT017
    else:
        assert page.total in (0, 1)


def dated(ident: str, day: str) -> Resource:
    return Resource.parse(f'{{"resourceType":"Observation","id":"{ident}","effectiveDateTime":"{day}"}}')


def patient_days(count: int) -> list[Resource]:
    return [dated(f"o{n:03d}", f"2020-01-{n % 28 + 1:02d}") for n in range(count)]


def test_a_chain_of_pages_is_one_snapshot_whatever_is_written_meanwhile() -> None:
    overlay = Overlay(chart_of(patient_days(30)))
    params = [("_sort", "-date,_id"), ("_count", "7")]
    whole = ids(overlay, params, 7)
    page = overlay.search("Observation", params)
    seen = [resource.id for resource in page.rows]
    while page.next is not None:
        overlay.add(dated(f"new{len(seen)}", "2020-01-15"))
        page = overlay.search("Observation", params, page_token=page.next)
        assert page.total == 30
        seen += [resource.id for resource in page.rows]
    assert seen == whole
    assert overlay.search("Observation", params).total == 34


def test_a_page_shows_a_resource_as_it_is_now() -> None:
    overlay = Overlay(chart_of(patient_days(30)))
    page = overlay.search("Observation", [("_count", "20")])
    changed = Resource.parse('{"resourceType":"Observation","id":"o025","effectiveDateTime":"1999","status":"amended"}')
    overlay.add(changed)
    later = overlay.search("Observation", [], page_token=page.next)
    assert changed in later.rows
    assert later.total == 30


def test_next_is_there_only_where_a_row_follows() -> None:
    chart = chart_of(patient_days(10))
    assert chart.search("Observation", [("_count", "10")]).next is None
    assert chart.search("Observation", [("_count", "9")]).next is not None
    for params in ([("_count", "0")], [("_summary", "count")], [("_summary", "count"), ("_count", "3")]):
        page = chart.search("Observation", params)
        assert (page.rows, page.total, page.next) == ((), 10, None)
    assert chart.search("Observation", [("_offset", "500"), ("_count", "5")]).total == 10
    assert [r.id for r in chart.search("Observation", [("_offset", "2"), ("_count", "2")]).rows] == ["o002", "o003"]


def test_a_page_has_twenty_rows_unless_asked_and_two_hundred_at_most() -> None:
    chart = chart_of(patient_days(300))
    assert len(chart.search("Observation", []).rows) == 20
    assert len(chart.search("Observation", [("_count", "5000")]).rows) == 200
    assert [resource.id for resource in every(chart, "Observation")] == [f"o{n:03d}" for n in range(300)]


def test_the_same_search_of_the_same_record_gives_the_same_token() -> None:
    first, second = (Overlay(chart_of(patient_days(30))) for _ in range(2))
    assert first.search("Observation", []).next == second.search("Observation", []).next


@pytest.mark.parametrize("token", ["", "x", "0" * 32 + "-20-20", "../..", "é"])
def test_a_page_token_that_is_not_known_is_refused(token: str) -> None:
    chart = chart_of(patient_days(30))
    with pytest.raises(SearchError, match="page token"):
        chart.search("Observation", [], page_token=token)


def test_a_page_token_of_another_type_is_refused() -> None:
    chart = chart_of(patient_days(30))
    token = chart.search("Observation", []).next
    with pytest.raises(SearchError, match="page token"):
        chart.search("Condition", [], page_token=token)


def test_applied_lists_what_shaped_the_rows_and_nothing_else() -> None:
    chart = chart_of(patient_days(3))
    params = [("date", "2020-01-01"), ("_format", "json"), ("_total", "accurate"), ("_sort", "date")]
    assert chart.search("Observation", params).applied == (("date", "2020-01-01"), ("_sort", "date"))


def test_elements_keeps_what_is_asked_for_as_it_was_written_and_says_so() -> None:
    raw = (
        '{"resourceType":"Observation","id":"o","meta":{"versionId":"1"},"status":"final","_status":{"id":"s"},'
        '"valueQuantity":{"value":5.00},"note":[{"text":"secret"}]}'
    )
    page = chart_of([Resource.parse(raw)]).search("Observation", [("_elements", "valueQuantity,status")])
    (row,) = page.rows
    assert list(row.body) == ["resourceType", "id", "meta", "status", "_status", "valueQuantity"]
    assert row.body["meta"]["tag"][0]["code"] == "SUBSETTED"
    assert '"value":5.00' in row.raw


def test_a_write_replaces_the_chart_s_resource_everywhere() -> None:
    old = '{"resourceType":"Condition","id":"c","code":{"text":"old"},"subject":{"reference":"Patient/a"}}'
    new = '{"resourceType":"Condition","id":"c","code":{"text":"new"},"subject":{"reference":"Patient/b"}}'
    people = [f'{{"resourceType":"Patient","id":"{name}","name":[{{"family":"{name}"}}]}}' for name in "ab"]
    overlay = Overlay(chart_of([Resource.parse(text) for text in (old, *people)]))
    overlay.add(Resource.parse(new))
    assert overlay.search("Condition", []).total == 1
    assert overlay.search("Condition", [("code:text", "old")]).total == 0
    assert overlay.search("Condition", [("patient.name", "a")]).total == 0
    assert [r.raw for r in overlay.search("Condition", [("patient.name", "b")]).rows] == [new]
    assert overlay.search("Patient", [("_has:Condition:patient:code:text", "new")]).rows[0].id == "b"
    assert overlay.search("Patient", [("_has:Condition:patient:code:text", "old")]).total == 0
    assert overlay.search("Patient", [("_id", "a"), ("_revinclude", "Condition:patient")]).included == ()
    assert [r.raw for r in overlay.resources("Condition")] == [new]
    assert overlay.base.search("Condition", [("code:text", "old")]).total == 1


def test_writes_come_after_the_chart_in_an_unsorted_search() -> None:
    overlay = Overlay(chart_of(patient_days(2)))
    for ident in ("z", "a"):
        overlay.add(Resource.parse(f'{{"resourceType":"Observation","id":"{ident}"}}'))
    assert [resource.id for resource in overlay.search("Observation", []).rows] == ["o000", "o001", "z", "a"]


def test_many_threads_may_write_and_search_one_session() -> None:
    overlay = Overlay(chart_of(patient_days(40)))

    def work(worker: int) -> int:
        for number in range(20):
            overlay.add(dated(f"w{worker}-{number}", "2021-01-01"))
            page = overlay.search("Observation", [("date", "2021-01-01"), ("_sort", "-date"), ("_count", "200")])
            assert f"w{worker}-{number}" in {resource.id for resource in page.rows}
        return overlay.search("Observation", [("date", "ne2021-01-01")]).total

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [40] * 4
    assert overlay.search("Observation", []).total == 120


def test_a_type_outside_r4_in_a_chart_stops_no_search() -> None:
    chart = chart_of([*patient_days(1), Resource.parse('{"resourceType":"Unheard","id":"u"}')])
    assert chart.search("Observation", [("_revinclude", "*"), ("_include", "*")]).total == 1
    with pytest.raises(SearchError, match="no FHIR R4 resource type"):
        chart.search("Unheard", [])
