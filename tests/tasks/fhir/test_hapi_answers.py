"""The search engine against what a real HAPI FHIR 8.8 answered: 3,200 searches over three charts, in process."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tasks.errors import SearchError
from tasks.fhir.chart import Chart, Overlay, Records
from tasks.fhir.resources import Resource


def asker(rows: ModuleType, records: Records) -> Any:
    """Asks the engine a request of the answer file, over all its pages."""

    def ask(request: str) -> Any:
        kind, params = rows.split(request)
        ids: list[str] = []
        included: set[str] = set()
        token = None
        for _ in range(rows.MOST_PAGES):
            try:
                page = records.search(kind, params, page_token=token)
            except SearchError:
                return rows.Answer(400)
            ids += [resource.ref for resource in page.rows]
            included |= {resource.ref for resource in page.included}
            token = page.next
            if token is None:
                break
        return rows.Answer(200, page.total, tuple(ids), frozenset(included))

    return ask


@pytest.mark.shared_data
@pytest.mark.parametrize(("chart", "asked"), [("edge", 1600), ("synthea", 700), ("clinosim", 900)])
def test_every_search_is_answered_as_hapi_or_r4_answers_it(
    shared_data: Path, hapi_rows: ModuleType, chart: str, asked: int
) -> None:
    assert len(hapi_rows.answers(shared_data, chart)) == asked
    records = Chart.open(hapi_rows.chart_files(shared_data, chart))
    assert hapi_rows.differences(shared_data, chart, asker(hapi_rows, records)) == []


@pytest.mark.shared_data
def test_a_chart_opened_from_its_cache_gives_the_same_answers(
    shared_data: Path, hapi_rows: ModuleType, tmp_path: Path
) -> None:
    files = hapi_rows.chart_files(shared_data, "edge")
    Chart.open(files, cache=tmp_path)
    records = Chart.open(files, cache=tmp_path)
    assert hapi_rows.differences(shared_data, "edge", asker(hapi_rows, records)) == []


@pytest.mark.shared_data
@pytest.mark.parametrize("part", [0, 1, 2])
def test_the_answers_are_the_same_however_the_record_is_split_into_chart_and_writes(
    shared_data: Path, hapi_rows: ModuleType, part: int
) -> None:
    """Every third resource arrives as a session's write; sorting, totals and includes must not change."""
    resources = list(Chart.open(hapi_rows.chart_files(shared_data, "edge")).resources())
    base = [resource for number, resource in enumerate(resources) if number % 3 != part]
    records = Overlay(Chart.open({"part.ndjson": "\n".join(resource.raw for resource in base).encode()}))
    for number, resource in enumerate(resources):
        if number % 3 == part:
            records.add(resource)
    assert hapi_rows.differences(shared_data, "edge", asker(hapi_rows, records)) == []


@pytest.mark.shared_data
def test_the_answers_are_the_same_when_a_session_rewrites_what_was_wrong(
    shared_data: Path, hapi_rows: ModuleType
) -> None:
    """The chart holds spoilt copies, and a write replaces each: no search may see the old one."""
    resources = list(Chart.open(hapi_rows.chart_files(shared_data, "edge")).resources())
    spoilt = []
    for number, resource in enumerate(resources):
        other = resources[(number + 1) % len(resources)]
        body = {**other.body, "id": resource.id} if other.type == resource.type else resource.body
        spoilt.append(Resource.from_body(body))
    records = Overlay(Chart.open({"spoilt.ndjson": "\n".join(resource.raw for resource in spoilt).encode()}))
    for resource in resources:
        records.add(resource)
    assert hapi_rows.differences(shared_data, "edge", asker(hapi_rows, records)) == []


def test_the_comparison_sees_a_wrong_status_total_row_order_and_include(hapi_rows: ModuleType) -> None:
    row = {"q": "Condition?_sort=_id", "status": 200, "total": 2, "ids": ["Condition/a", "Condition/b"]}
    row |= {"ordered": True, "more": False, "included": ["Patient/p"]}
    right = hapi_rows.Answer(200, 2, ("Condition/a", "Condition/b"), frozenset({"Patient/p"}))
    assert hapi_rows.difference(row, right) == ""
    for wrong in (
        right._replace(status=400),
        right._replace(total=3),
        right._replace(ids=("Condition/a", "Condition/c")),
        right._replace(ids=("Condition/b", "Condition/a")),
        right._replace(ids=("Condition/a", "Condition/b", "Condition/b")),
        right._replace(included=frozenset()),
    ):
        assert hapi_rows.difference(row, wrong)
    by_r4 = {**row, "r4_status": 200, "r4_ids": ["Condition/a"]}
    assert hapi_rows.difference(by_r4, right)
    assert hapi_rows.difference({**row, "r4_status": 400}, right)
