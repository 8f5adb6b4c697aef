"""The logic of the pages, driven without a browser."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from review_ui import catalog, failure, frame, library
from runtime.batch import Item, run_batch
from runtime.executors import LocalExecutor
from runtime.trial import Settings
from tasks.errors import ChartError
from tasks.package import FolderSource
from tasks.stored import Batch

ROOT = Path(__file__).resolve().parents[2]
Open = Callable[..., AppTest]


@pytest.fixture
def tasks(packages: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tasks"
    packages.write(folder)
    packages.write(
        folder, "cardiology-small", title="Palpitations", specialty="Cardiology", workflow="Diagnosis & Interpretation"
    )
    broken = packages.write(folder, "broken-task")
    (broken / "task.toml").write_text("title = ", "utf-8")
    source = FolderSource(folder)
    monkeypatch.setattr(frame, "source", lambda: source)
    return folder


@pytest.fixture
def opened(tasks: Path) -> Open:
    def app(page: str = "", **parameters: str) -> AppTest:
        test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        test.run()
        if page:
            test.switch_page(f"review_ui/pages/{page}")
            test.query_params.update(parameters)
            test.run()
        assert not test.exception
        return test

    return app


def said(test: AppTest) -> str:
    return "\n".join(
        str(element.value if hasattr(element, "value") else element.proto.body) for element in test.get("html")
    )


def test_tasks_lists_every_task_and_says_what_cannot_be_read(opened: Open) -> None:
    text = said(opened("tasks.py"))
    assert "3 tasks" in text
    assert "Potassium 5.6 on losartan" in text
    assert "Cannot be read" in text
    assert "task.toml:1" in text


def test_tasks_are_filtered_by_words_and_by_specialty(opened: Open) -> None:
    test = opened("tasks.py")
    test.text_input(key="q").set_value("palp").run()
    assert "Palpitations" in said(test)
    assert "losartan" not in said(test)
    test.text_input(key="q").set_value("").run()
    test.selectbox(key="specialty").select("Nephrology").run()
    assert "losartan" in said(test)
    assert "Palpitations" not in said(test)


def test_every_view_of_a_task_is_drawn(opened: Open) -> None:
    for view, words in [
        ("Chart", "45 mL/min/1.73 m²"),
        ("Checkpoints", "Passes with"),
        ("Every resource", "20 in the chart"),
        ("Reference plans", "no reference plan"),
    ]:
        assert words in said(opened("task.py", id="nephrology-small", view=view)), view


def test_a_task_that_does_not_exist_is_said_to_be_missing(opened: Open) -> None:
    assert "This is not here." in said(opened("task.py", id="nothing"))


def test_a_broken_chart_is_told_with_its_file_and_line(opened: Open, tasks: Path) -> None:
    chart = tasks / "nephrology-small" / "chart" / "Condition.ndjson"
    chart.write_text("{not json}\n", "utf-8")
    text = said(opened("task.py", id="nephrology-small"))
    assert "Condition.ndjson" in text
    assert "This page stopped. Error" in text


def test_an_unexpected_error_shows_an_id_that_is_in_the_log_and_no_patient_text(
    opened: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def breaks(*_: Any) -> None:
        raise KeyError("Mr. Somebody, born 1964")

    monkeypatch.setattr(library, "hold", breaks)
    with caplog.at_level(logging.ERROR):
        text = said(opened("task.py", id="nephrology-small"))
    assert "Somebody" not in text
    assert "Somebody" not in caplog.text
    mark = text.split("This page stopped. Error ")[1][:8]
    assert mark in caplog.text
    assert "KeyError" in caplog.text


def test_our_own_errors_keep_their_message_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        mark = failure.record(ChartError("the line is not JSON.", where="chart/Condition.ndjson:3"))
    assert mark in caplog.text
    assert "chart/Condition.ndjson:3" in caplog.text


def test_pages_without_runs_lead_to_run(opened: Open) -> None:
    for page in ("trials.py", "results.py"):
        assert "Nothing has been run" in said(opened(page))


@pytest.fixture
def batch(tasks: Path, workspace: Path) -> Batch:
    made = Batch.create(workspace / "runs", "b-1")
    source = FolderSource(tasks)
    items = [Item(source.load(id), "noop", 2, tasks / id) for id in ("nephrology-small", "cardiology-small")]
    with LocalExecutor(2) as executor:
        run_batch(made, items, Settings(), executor)
    return made


def test_a_stored_batch_is_shown_from_results_down_to_why_a_trial_failed(opened: Open, batch: Batch) -> None:
    results = said(opened("results.py"))
    assert "4 attempted" in results
    assert "0 of 2" in results
    trials = opened("trials.py")
    trials.text_input(key="q").set_value("nephrology").run()
    assert "2 found" in said(trials)
    trial = said(opened("trial.py", batch="b-1", task="nephrology-small", agent="noop", run="2"))
    assert "Run 2: failed, 2 of 2 checkpoints missed" in trial
    assert "Not done: " in trial
    assert "Potassium checked again" in trial
    assert "It wrote nothing into the record." in trial


def test_a_trial_whose_task_is_gone_can_still_be_read(opened: Open, batch: Batch, tasks: Path) -> None:
    shutil.rmtree(tasks / "nephrology-small")
    trial = said(opened("trial.py", batch="b-1", task="nephrology-small", agent="noop", run="1"))
    assert "The task of this trial cannot be read." in trial
    assert "Steps" in trial


@pytest.mark.parametrize(
    "parameters",
    [
        {"batch": "b-1", "task": "nephrology-small", "agent": "noop", "run": "9"},
        {"batch": "nothing", "task": "nephrology-small", "agent": "noop", "run": "1"},
        {"batch": "../..", "task": "../../x", "agent": "../y", "run": "1"},
        {},
    ],
)
def test_an_address_that_leads_to_no_trial_says_so(opened: Open, batch: Batch, parameters: dict[str, str]) -> None:
    assert "This is not here." in said(opened("trial.py", **parameters))


def test_the_chart_as_it_then_stood_is_drawn(opened: Open, batch: Batch) -> None:
    text = said(opened("trial.py", batch="b-1", task="nephrology-small", agent="noop", run="1", chart="1", step="1"))
    assert "Chart after step 1" in text
    assert "nothing written by then" in text


def test_run_says_what_it_will_do_and_offers_only_tasks_that_can_be_read(opened: Open) -> None:
    test = opened("run.py")
    assert test.multiselect[0].options == ["cardiology-small · version 1, draft", "nephrology-small · version 1, draft"]
    assert "Already stored, reused" in said(test)
    assert "too few to show a difference" in said(test)
    assert any(button.label == "Start 4 trials" for button in test.button)
    test.multiselect[0].set_value([]).run()
    start = next(button for button in test.button if button.label.startswith("Start"))
    assert start.disabled


def test_rows_are_filtered_by_every_word() -> None:
    rows = [catalog.TaskRow("a-task", title="Kidney and potassium"), catalog.TaskRow("b-task", title="Kidney")]
    assert [row.id for row in catalog.filtered(rows, search="kidney POTASSIUM")] == ["a-task"]
    assert len(catalog.filtered(rows, search=" ")) == 2


def test_settings_that_cannot_be_read_are_told_on_the_page(opened: Open, workspace: Path) -> None:
    opened()
    settings = workspace / "workbench.toml"
    settings.write_text(settings.read_text("utf-8") + "\n[nonsense]\n", "utf-8")
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    test.query_params["as"] = "demo-lead"
    test.run()
    assert not test.exception
    assert "nonsense: unknown key" in said(test)
    assert "This page stopped. Error" in said(test)
