"""A model's draft as its reader sees it: what applies now, and places in words."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from review_ui.chartview import ChartView
from review_ui.reviewing import draft_view
from tasks.package import FolderSource


def test_whether_edits_apply_is_looked_at_again_once_another_change_was_rejected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[frozenset[str]] = []
    monkeypatch.setattr(draft_view, "compose", lambda *_, rejected, **__: seen.append(rejected))
    monkeypatch.setattr(draft_view, "weakening", lambda *_: {})
    one: Any = SimpleNamespace(kept=(1,), model_dump_json=lambda: '{"draft": "of this test"}')
    standing = SimpleNamespace(task_id="t-1", files={})
    desk = SimpleNamespace(store=SimpleNamespace(path="somewhere"))
    for rejected in (frozenset[str](), frozenset({"a" * 64}), frozenset({"a" * 64})):
        at: Any = SimpleNamespace(at=standing, desk=desk, me="lead", state=SimpleNamespace(rejected=rejected))
        assert draft_view._composes(at, one) == ("", {})
    assert seen == [frozenset(), frozenset({"a" * 64})]


def test_a_place_of_the_chart_is_said_in_its_own_words(packages: ModuleType, tmp_path: Any) -> None:
    packages.write(tmp_path)
    task = FolderSource(tmp_path).load("nephrology-small")
    assert task.meta.context is not None
    chart = ChartView(task.chart, task.meta.context.patient, task.meta.context.now)
    at: Any = SimpleNamespace(task=task, at=SimpleNamespace(chart=chart))
    said = draft_view.spoken(at, "chart/Observation.ndjson#k-1")
    assert said.startswith("Lab: Potassium")
    assert "k-1" not in said
    assert draft_view.spoken(at, "checkpoints.toml#cp1").startswith("Checkpoint 1: ")
    # What is not there (any more) is named as a change names it.
    assert draft_view.spoken(at, "chart/Observation.ndjson#gone") == "Result gone"
