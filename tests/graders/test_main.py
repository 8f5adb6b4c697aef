"""python -m graders at the shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graders.__main__ import app
from tasks.package import Task
from tasks.stored import Batch
from tasks.trials import Outcome
from tasks.workspace import Workspace
from tests.graders.trials import apixaban, stored
from tests.tasks.packages import REPLY

run = CliRunner().invoke


def test_regrade_then_report_by_name(tiny_task: Task, tiny_package: Path, workspace: Workspace) -> None:
    stored(workspace.runs, tiny_task, files={"reply.md": REPLY})
    stored(workspace.runs, tiny_task, run=2, outcome=Outcome.environment_error)
    tasks = ["--suite", str(tiny_package.parent)]
    first = run(app, ["regrade", "b1", *tasks])
    assert first.exit_code == 0, first.output
    assert "cp1 no verdict -> fail (not graded before)" in first.output
    assert "1 trials, 3 verdicts; 3 changed; 1 skipped" in first.output
    assert "0 changed" in run(app, ["regrade", "b1", *tasks]).output
    shown = run(app, ["report", "b1", *tasks])
    assert shown.exit_code == 0, shown.output
    assert "pass rate = passed / graded" in shown.output
    (cell,) = json.loads(run(app, ["report", "b1", "--json", *tasks]).output)
    assert (cell["attempted"], cell["graded"], cell["invalid"], cell["passed"]) == (2, 1, 1, 0)
    csv = run(app, ["report", str(workspace.runs / "b1"), "--csv", *tasks]).output.splitlines()
    assert csv[0].startswith("task,agent,draft,attempted")
    assert len(csv) == 2


@pytest.mark.parametrize("folder", [True, False])
def test_one_trial_is_regraded_by_folder_or_name(
    tiny_task: Task, tiny_package: Path, workspace: Workspace, folder: bool
) -> None:
    trial = stored(workspace.runs, tiny_task, agent="anthropic/claude-x")
    stored(workspace.runs, tiny_task, agent="anthropic/claude-x", run=2)
    name = str(trial.path) if folder else f"b1/{tiny_task.id}/anthropic/claude-x/1"
    shown = run(app, ["regrade", name, "--json", "--suite", str(tiny_package.parent)])
    assert shown.exit_code == 0, shown.output
    (one,) = json.loads(shown.output)
    assert (one["agent"], one["run"], len(one["verdicts"])) == ("anthropic/claude-x", 1, 3)


def test_a_trial_of_a_task_that_is_not_there_is_skipped(tiny_task: Task, workspace: Workspace, tmp_path: Path) -> None:
    stored(workspace.runs, tiny_task)
    (tmp_path / "none").mkdir()
    shown = run(app, ["regrade", "b1", "--suite", str(tmp_path / "none")])
    assert (shown.exit_code, "skipped, the task cannot be loaded" in shown.output) == (0, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "nothing"],
        ["regrade", "nothing"],
        ["regrade", "b1/x/y/1"],
        ["report", "b1", "--json", "--csv"],
        ["tables", "nothing"],
        ["match", "nothing.toml", "nothing.ndjson"],
        ["nothing"],
    ],
)
def test_what_is_not_there_is_a_usage_error_with_one_message(
    arguments: list[str], tiny_task: Task, workspace: Workspace
) -> None:
    stored(workspace.runs, tiny_task)
    shown = run(app, arguments)
    assert shown.exit_code == 2
    assert "Traceback" not in shown.output
    assert shown.output.strip()


def test_tables_are_listed_and_shown_with_their_sources() -> None:
    listed = run(app, ["tables"])
    assert listed.exit_code == 0
    assert "ingredients" in listed.output
    assert "[" in run(app, ["tables", "routes"]).output
    assert "routes" in json.loads(run(app, ["tables", "routes", "--json"]).output)


def test_without_a_suite_the_tasks_are_where_the_plan_found_them(
    tiny_task: Task, tiny_package: Path, workspace: Workspace
) -> None:
    stored(workspace.runs, tiny_task)
    Batch(workspace.runs / "b1").add_plan({"kind": "planned", "task": tiny_task.id, "folder": str(tiny_package)})
    assert "3 verdicts; 3 changed; 0 skipped" in run(app, ["regrade", "b1"]).output
    (cell,) = json.loads(run(app, ["report", "b1", "--json"]).output)
    assert cell["notes"] == ""


def test_a_batch_without_a_plan_leaves_its_trials_ungraded_with_the_reason(
    tiny_task: Task, workspace: Workspace
) -> None:
    stored(workspace.runs, tiny_task)
    (cell,) = json.loads(run(app, ["report", "b1", "--json"]).output)
    assert (cell["ungraded"], "cannot be loaded" in cell["notes"]) == (1, True)


# ---- match ----------------------------------------------------------------------------------------------------------

CHECKPOINT = """[context]
patient = "Patient/p-7001"
practitioner = "Practitioner/d-20"
now = 2025-03-14T08:30:00-05:00
authority = "orders"

[[checkpoint]]
id = "cp2"
title = "Apixaban at the full dose"
capability = "action_execution"
criticality = "critical"
reachable = ["paper"]
grader = "code"
order = {type = "MedicationRequest", accept = [{ingredient = "apixaban", dose = "5 mg", frequency = "BID", route = "oral"}]}
"""  # noqa: E501


@pytest.fixture
def declared(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint.toml"
    path.write_text(CHECKPOINT, "utf-8")
    return path


def orders(tmp_path: Path, *lines: str, end: str = "\n") -> Path:
    path = tmp_path / "orders.ndjson"
    path.write_bytes(end.join(lines).encode())
    return path


def test_match_says_what_matched_and_why_the_rest_did_not(declared: Path, tmp_path: Path) -> None:
    tenfold = apixaban(id="w-2", dosageInstruction=[{"text": "50 mg PO BID"}])
    right = orders(tmp_path, json.dumps(apixaban()))
    shown = run(app, ["match", str(declared), str(right), "--json"])
    assert shown.exit_code == 0, shown.output
    found = json.loads(shown.output)
    assert set(found) == {"result", "orders"}
    assert found["result"] == "pass"
    (order,) = found["orders"]
    assert (set(order), order["reference"], order["matched"]) == (
        {"reference", "matched", "reason"},
        "MedicationRequest/w-1",
        True,
    )
    wrong = orders(tmp_path, json.dumps(tenfold))
    shown = run(app, ["match", str(declared), str(wrong)])
    assert shown.exit_code == 1
    assert "not matched MedicationRequest/w-2" in shown.output


def test_match_takes_orders_without_ids_blank_lines_crlf_and_a_mark(declared: Path, tmp_path: Path) -> None:
    body = {key: value for key, value in apixaban().items() if key != "id"}
    path = orders(tmp_path, "\ufeff", "", json.dumps(body), "", end="\r\n")
    shown = run(app, ["match", str(declared), str(path), "--json"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.output)["orders"][0]["reference"] == "MedicationRequest/line-3"


def test_match_reads_the_chart_that_is_given(declared: Path, tmp_path: Path, tiny_package: Path) -> None:
    path = orders(tmp_path, json.dumps(apixaban()))
    shown = run(app, ["match", str(declared), str(path), "--chart", str(tiny_package / "chart")])
    assert shown.exit_code == 0, shown.output


@pytest.mark.parametrize(
    ("toml", "lines", "code", "said"),
    [
        (CHECKPOINT.replace("criticality", "critical"), ["{}"], 1, "unknown key"),
        (CHECKPOINT.replace("now = 2025-03-14T08:30:00-05:00\n", ""), [json.dumps(apixaban())], 1, "lacks now"),
        (CHECKPOINT + CHECKPOINT[CHECKPOINT.index("[[") :], [json.dumps(apixaban())], 1, "several"),
        (CHECKPOINT.replace('"apixaban"', '"apixabann"'), [json.dumps(apixaban())], 1, "apixabann"),
        ("not toml", ["{}"], 1, "not valid TOML"),
        (CHECKPOINT, ["{nothing"], 1, "orders.ndjson:1: not JSON"),
        (CHECKPOINT, ["3"], 1, "orders.ndjson:1"),
        (CHECKPOINT, [json.dumps(apixaban())] * 2, 1, "stands twice"),
    ],
)
def test_match_names_what_is_wrong_and_where(tmp_path: Path, toml: str, lines: list[str], code: int, said: str) -> None:
    declared = tmp_path / "checkpoint.toml"
    declared.write_text(toml, "utf-8")
    shown = run(app, ["match", str(declared), str(orders(tmp_path, *lines))])
    assert (shown.exit_code, "Traceback" in shown.output) == (code, False)
    assert said in shown.output


# ---- reports, calibration, the paper --------------------------------------------------------------------------------


def test_a_report_is_written_in_every_form(
    tiny_task: Task, tiny_package: Path, workspace: Workspace, tmp_path: Path
) -> None:
    stored(workspace.runs, tiny_task, apixaban(), files={"reply.md": REPLY})
    tasks = ["--suite", str(tiny_package.parent)]
    assert run(app, ["regrade", "b1", *tasks]).exit_code == 0
    shown = run(app, ["report", "b1", "--view", "agents", *tasks])
    assert shown.exit_code == 0, shown.output
    assert "pass_at_1" in shown.output
    page, data = tmp_path / "report.html", tmp_path / "figures.parquet"
    assert run(app, ["report", "b1", "--format", "html", "--out", str(page), *tasks]).exit_code == 0
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert (
        run(app, ["report", "b1", "--view", "figures", "--format", "parquet", "-o", str(data), *tasks]).exit_code == 0
    )
    assert data.read_bytes()[:4] == b"PAR1"
    refused = run(app, ["report", "b1", "--format", "parquet", *tasks])
    assert (refused.exit_code, "--out" in refused.output) == (2, True)
    lost = run(app, ["report", "b1", "--out", str(tmp_path / "no" / "where.csv"), *tasks])
    assert (lost.exit_code, "cannot be written" in lost.output) == (3, True)
    assert list(tmp_path.glob(".*.tmp")) == []


def test_the_papers_figures_are_rebuilt_and_a_mismatch_is_exit_1(tmp_path: Path) -> None:
    shown = run(app, ["reproduce-paper"])
    assert shown.exit_code == 0, shown.output
    assert "36 of 36 printed figures of 12 models" in shown.output
    rows = json.loads(run(app, ["reproduce-paper", "--json"]).output)
    assert len(rows) == 36
    from graders.paper import published

    raw = json.loads(published().model_dump_json())
    raw["models"][3]["pass_at_3"] = 43.0
    (tmp_path / "other.json").write_text(json.dumps(raw), "utf-8")
    wrong = run(app, ["reproduce-paper", "--data", str(tmp_path / "other.json")])
    assert (wrong.exit_code, "MISMATCH" in wrong.output) == (1, True)
    assert run(app, ["reproduce-paper", "--data", str(tmp_path / "absent.json")]).exit_code == 2


def test_calibrate_needs_something_and_a_judge(tiny_task: Task, tiny_package: Path, workspace: Workspace) -> None:
    assert run(app, ["calibrate"]).exit_code == 2
    tasks = ["--suite", str(tiny_package.parent)]
    none = run(app, ["calibrate", "--examples", tiny_task.id, *tasks])
    assert (none.exit_code, "no judge is configured" in none.output) == (2, True)
    stored(workspace.runs, tiny_task)
    empty = run(app, ["calibrate", "b1", *tasks])
    assert (empty.exit_code, "No checkpoint has been judged" in empty.output) == (0, True)
    assert json.loads(run(app, ["calibrate", "b1", "--json", *tasks]).output) == []
