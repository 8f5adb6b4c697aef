"""`python -m authoring gate`: what it prints, its exit code, and that it records only for somebody."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from authoring.__main__ import app
from tests.tasks.packages import TINY_ID, tiny_files, write


def run(*words: str) -> tuple[int, str]:
    """(exit code, what was printed)."""
    done = CliRunner().invoke(app, ["gate", *words])
    return done.exit_code, done.output


def test_a_folder_is_gated_without_a_store_and_every_check_is_a_line(tiny_package: Path) -> None:
    code, said = run("--dir", str(tiny_package))
    assert code == 1, "its cp1 and cp3 quote no ask"
    assert said.startswith(TINY_ID)
    assert "  passed    Package is valid R4 and consistent" in said
    assert "  failed    Nothing is graded that is not asked: cp1" in said
    assert "  mutation score 100.0%" in said
    assert "FAILED in" in said


def test_survivors_are_printed_with_what_they_changed(tmp_path: Path) -> None:
    files = tiny_files()
    files["checkpoints.toml"] = files["checkpoints.toml"].replace(b'dose = "5 mg", ', b"")
    code, said = run("--dir", str(write(files, tmp_path)))
    assert code == 1
    assert "survived  apixaban: ten-fold dose: apixaban" in said


def test_json_is_one_document(tiny_package: Path) -> None:
    code, said = run("--dir", str(tiny_package.parent), "--json")
    (told,) = json.loads(said)
    assert (code, told["task"], told["passed"]) == (1, TINY_ID, False)


def test_what_is_not_one_thing_is_a_usage_error(tiny_package: Path) -> None:
    assert run()[0] == 2
    assert run(TINY_ID, "--all")[0] == 2
