"""python -m tasks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tasks.__main__ import app
from tasks.package import SUITE
from tests.tasks.packages import TINY_ID


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_list_names_every_task_and_its_state(tiny_package: Path) -> None:
    result = run("list", "--tasks", tiny_package.parent)
    assert result.exit_code == 0
    assert TINY_ID in result.stdout
    assert "complete" in result.stdout
    rows = json.loads(run("list", "--tasks", tiny_package.parent, "--json").stdout)
    assert [(row["id"], row["group"], row["checkpoints"], row["draft"]) for row in rows] == [
        (TINY_ID, "Cardiology", 3, False),
    ]


def test_list_shows_the_rest_where_one_task_is_broken(tiny_package: Path) -> None:
    other = tiny_package.parent / "broken-task"
    other.mkdir()
    (other / "task.toml").write_text("id = ", "utf-8")
    (other / "instruction.md").write_text("# Later\n", "utf-8")
    result = run("list", "--tasks", tiny_package.parent)
    assert result.exit_code == 1
    assert TINY_ID in result.stdout
    assert f"{other}/task.toml:1: not valid TOML" in result.stderr


@pytest.mark.parametrize("lost", ["task.toml", "instruction.md"])
def test_a_package_that_lost_a_file_is_not_passed_over(tiny_package: Path, lost: str) -> None:
    (tiny_package / lost).unlink()
    assert run("list", "--tasks", tiny_package.parent).exit_code == 1
    result = run("validate", "--all", "--tasks", tiny_package.parent)
    assert result.exit_code == 1
    assert f"{tiny_package}/{lost}: the file is missing" in result.stdout


def test_list_parses_no_chart(tiny_package: Path) -> None:
    (tiny_package / "chart" / "Observation.ndjson").write_text("not json\n", "utf-8")
    assert run("list", "--tasks", tiny_package.parent).exit_code == 0
    assert run("show", TINY_ID, "--tasks", tiny_package.parent).exit_code == 0


def test_show_gives_facts_instruction_and_checkpoints(tiny_package: Path) -> None:
    shown = run("show", TINY_ID, "--tasks", tiny_package.parent).stdout
    for words in ("2025-03-14T08:30:00-05:00", "12 resources", "You answer an e-consult", "Apixaban at the full dose"):
        assert words in shown
    found = json.loads(run("show", TINY_ID, "--tasks", tiny_package.parent, "--json").stdout)
    assert found["resources"]["Observation"] == 4
    assert found["checkpoints"][1]["must_not"] == [{"class": "NSAID"}]
    assert found["plans"] == {"apixaban": 8}
    assert found["missing_for_release"] == []


def test_show_of_an_unknown_task_says_which_there_are(tiny_package: Path) -> None:
    result = run("show", "tiny-nothing", "--tasks", tiny_package.parent)
    assert result.exit_code == 2
    assert TINY_ID in result.stderr


@pytest.mark.parametrize("id", ["..", ".", "/etc", "../packages/" + TINY_ID, ""])
def test_an_id_never_leads_out_of_the_folder(tiny_package: Path, id: str) -> None:
    assert run("show", id, "--tasks", tiny_package.parent).exit_code == 2


def test_validate_says_nothing_is_wrong_or_where(tiny_package: Path) -> None:
    assert run("validate", tiny_package, "--release").stdout == "1 task checked: no faults.\n"
    (tiny_package / "stray.txt").write_text("x", "utf-8")
    result = run("validate", tiny_package)
    assert result.exit_code == 1
    assert result.stdout.split("\n")[0].startswith(f"{tiny_package}/stray.txt: the file does not belong")
    as_json = json.loads(run("validate", "--all", "--tasks", tiny_package.parent, "--json").stdout)
    assert [fault["place"] for fault in as_json[0]["faults"]] == [f"{tiny_package}/stray.txt"]


def test_validate_of_the_current_folder_knows_its_name(tiny_package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tiny_package)
    assert run("validate", ".").exit_code == 0


@pytest.mark.parametrize("arguments", [[], ["nowhere"], ["nowhere", "--all"], ["--colour"]])
def test_a_wrong_call_is_exit_2(arguments: list[str]) -> None:
    assert run("validate", *arguments).exit_code == 2


def test_a_folder_of_packages_is_told_apart_from_a_package(tiny_package: Path) -> None:
    result = run("validate", tiny_package.parent)
    assert result.exit_code == 2
    assert "--all" in result.stderr


def test_a_missing_source_is_exit_3(tmp_path: Path) -> None:
    assert run("list", "--tasks", tmp_path / "none").exit_code == 3


def test_coverage_keeps_what_is_empty(tiny_package: Path) -> None:
    found = json.loads(run("coverage", "--tasks", tiny_package.parent, "--json").stdout)
    assert found["cells"]["Cardiology"]["Medication Prescribing"] == 1
    assert found["cells"]["Endocrinology"]["Medication Prescribing"] == 0
    assert found["capabilities"] == {
        "data_retrieval": 1,
        "clinical_reasoning": 0,
        "action_execution": 1,
        "documentation": 1,
    }
    assert (found["critical"], found["safety"], found["authorities"]) == (1, 1, {"orders": 1})
    text = run("coverage", "--tasks", tiny_package.parent).stdout
    assert "Psychiatry, Neurology & Addiction" in text


def test_the_bundled_suite_is_right_and_complete() -> None:
    result = run("validate", "--all", "--release")
    assert result.exit_code == 0, result.stdout
    assert f"{len(SUITE.list())} task" in result.stdout


def test_the_module_runs_and_its_help_names_every_command() -> None:
    done = subprocess.run([sys.executable, "-m", "tasks", "--help"], capture_output=True, text=True, check=True)
    for command in ("list", "show", "validate", "coverage"):
        assert f"  {command} " in done.stdout
    assert done.stderr == ""
