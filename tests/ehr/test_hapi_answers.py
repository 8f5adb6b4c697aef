"""Every search that a real HAPI answered, sent to an embedded session over HTTP: status, rows, order, totals."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runtime import ehr
from tasks.fhir.chart import Chart

if TYPE_CHECKING:
    from conftest import Client

pytestmark = pytest.mark.shared_data


def asked(client: Client, query: str, rows: Any) -> Any:
    """What the server said to `query` over all its pages."""
    answer = client.send("GET", query)
    if answer.status != 200:
        assert json.loads(answer.body)["resourceType"] == "OperationOutcome"
        return rows.Answer(answer.status)
    bundle = json.loads(answer.body)
    total = bundle["total"]
    found: list[str] = []
    included: set[str] = set()
    for _ in range(rows.MOST_PAGES):
        for entry in bundle.get("entry", []):
            reference = entry["fullUrl"].removeprefix(f"{client.base_url}/")
            assert reference == f"{entry['resource']['resourceType']}/{entry['resource']['id']}"
            if entry["search"]["mode"] == "match":
                found.append(reference)
            else:
                included.add(reference)
        following = next((item["url"] for item in bundle.get("link", []) if item["relation"] == "next"), None)
        if following is None:
            break
        bundle = client.search(following)
        assert bundle["total"] == total
        assert bundle["entry"], "a next link with nothing behind it"
    return rows.Answer(200, total, tuple(found), frozenset(included))


@pytest.mark.parametrize("name", ["edge", "synthea", "clinosim"])
def test_a_session_over_http_answers_as_hapi_does_and_as_r4_where_hapi_departs(
    name: str, shared_data: Path, hapi_rows: Any, connect: Callable[[str], Client], tmp_path: Path
) -> None:
    chart = Chart.open(hapi_rows.chart_files(shared_data, name), cache=tmp_path)
    with ehr.open(chart) as session:
        client = connect(session.base_url)
        different = hapi_rows.differences(shared_data, name, lambda query: asked(client, query, hapi_rows))
        client.close()
    assert different == []
