"""Searching the notes: what is drawn is the page, and the part, that the field says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from streamlit.testing.v1 import AppTest

Said = Callable[[AppTest], str]


def reader(folder: str) -> None:
    from datetime import UTC, datetime
    from pathlib import Path

    from review_ui import chart_records
    from review_ui.chartview import ChartView
    from tasks.fhir.chart import Chart

    chart_records.notes(ChartView(Chart.open(Path(folder)), "Patient/p-1", datetime(2026, 3, 5, 9, 30, tzinfo=UTC)))


@pytest.fixture
def notes(tmp_path: Path, packages: ModuleType) -> Callable[..., AppTest]:
    def made(texts: list[str]) -> AppTest:
        folder = tmp_path / "chart"
        folder.mkdir()
        rows = [packages.note(f"n-{n}", f"Note {n}", f"2025-01-{n + 1:02d}", text) for n, text in enumerate(texts)]
        (folder / "DocumentReference.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        (folder / "Patient.ndjson").write_text('{"resourceType":"Patient","id":"p-1"}\n', "utf-8")
        return AppTest.from_function(reader, args=(str(folder),), default_timeout=60).run()

    return made


def listed(test: AppTest) -> list[str]:
    return [button.key.removeprefix("read-DocumentReference/") for button in test.button]


def test_a_search_begins_at_its_first_page_wherever_the_list_stood(notes: Callable[..., AppTest]) -> None:
    test = notes(["potassium" if n < 12 else "sodium" for n in range(31)])
    test.number_input[0].set_value(4).run()
    assert listed(test) == [f"n-{n}" for n in range(6, -1, -1)]
    test.text_input(key="find").set_value("potassium").run()
    assert test.number_input[0].value == 1
    assert listed(test) == [f"n-{n}" for n in range(11, 3, -1)]
    test.number_input[0].set_value(2).run()
    assert listed(test) == [f"n-{n}" for n in range(3, -1, -1)]


def test_each_search_opens_a_long_note_at_its_own_first_hit(notes: Callable[..., AppTest], said: Said) -> None:
    filler = "word " * 5_000
    test = notes([f"{filler}apixaban {filler}potassium {filler}"])
    assert [field.value for field in test.number_input] == [1]
    for words, part in (("apixaban", 2), ("potassium", 3), ("apixaban", 2)):
        test.text_input(key="find").set_value(words).run()
        assert [field.value for field in test.number_input] == [part]
        assert f">{words}</mark>" in said(test)
