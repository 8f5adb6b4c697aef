"""Solve first shows all that the agent can look up, in words, and nothing of how the task is graded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from streamlit.testing.v1 import AppTest

from authoring.desk import Desk
from authoring.library import open_store
from review_ui.reviewing import forms
from tasks.package import FolderSource
from tasks.people import person
from tasks.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
TASK, ME, OTHER = "nephrology-small", "demo-reviewer-1", "demo-reviewer-2"
ORDER = (
    '{"resourceType":"ServiceRequest","id":"s-1","status":"active","intent":"order","code":{"text":"Renal ultrasound"},'
    '"subject":{"reference":"Patient/p-1"},"authoredOn":"2025-06-20T09:00:00-05:00",'
    '"note":[{"text":"Left kidney first"}]}\n'
)
Said = Callable[[AppTest], str]


@pytest.fixture
def task(packages: ModuleType, tmp_path: Path, workspace: Path) -> FolderSource:
    """Under review, the plan of the first reviewer locked."""
    folder = packages.write(tmp_path / "suite")
    (folder / "chart" / "ServiceRequest.ndjson").write_text(ORDER, "utf-8")
    suite = FolderSource(tmp_path / "suite")
    place = Workspace(workspace)
    store = open_store(place, suite=suite)
    lead = Desk(place, store, person(place.settings.people, "demo-lead"))
    for who in (ME, OTHER):
        lead.assign(TASK, who, "reviewer")
    lead.open_round(TASK)
    plan = {key: "As said." for key, _, _ in forms.PLAN} | {"confidence": "sure"}
    Desk(place, store, person(place.settings.people, ME)).lock_plan(TASK, plan)
    return suite


def opened(who: str, **parameters: str) -> AppTest:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    test.query_params["as"] = who
    test.run()
    test.switch_page("review_ui/pages/review.py")
    test.query_params.update({"id": TASK, "as": who, **parameters})
    test.run()
    assert not test.exception
    return test


@pytest.mark.parametrize(("who", "where"), [(OTHER, {}), (ME, {"door": "Chart"})])
def test_each_entry_is_found_by_kind_and_opens_in_words(
    task: FolderSource, said: Said, who: str, where: dict[str, str]
) -> None:
    test = opened(who, **where)
    reading = next(one for one in test.button_group if "Every entry" in one.options)
    reading.set_value("Every entry").run()
    (kind,) = [one for one in test.selectbox if one.label == "Kind"]
    # Every type of the chart, called as a physician calls it.
    found = task.load(TASK).chart
    assert len(kind.options) == len({one.type for one in found.resources()})
    assert "Orders · 1" in kind.options
    kind.set_value("ServiceRequest").run()
    page = said(test)
    assert "Renal ultrasound" in page
    assert "Left kidney first" not in page
    next(one for one in test.button if one.label == "Open").click().run()
    page = said(test)
    assert "Left kidney first" in page
    for raw in ("ServiceRequest/s-1</span>", "resourceType"):
        assert raw not in page
    assert not any("JSON" in one.label for one in test.expander)
    # A finding can be about it once there are findings.
    assert ("Finding about Renal ultrasound" in page) == (who == ME)
    if who == OTHER:
        assert "Potassium found" not in page
        assert "checkpoint" not in page.split("</style>")[-1].casefold()
