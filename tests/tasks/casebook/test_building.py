"""The bundled packages are what their cases build, byte for byte, and building leaves no half-written package."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tasks
from tasks.casebook import building
from tasks.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]
SUITE = Path(tasks.__file__).resolve().parent / "suite"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tasks.casebook", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize("task", sorted(building.cases()))
def test_a_case_rebuilds_its_package_byte_for_byte(task: str, tmp_path: Path) -> None:
    building.write(building.build(task), tmp_path / task)
    built = {
        p.relative_to(tmp_path / task).as_posix(): p.read_bytes() for p in (tmp_path / task).rglob("*") if p.is_file()
    }
    shipped = {
        p.relative_to(SUITE / task).as_posix(): p.read_bytes()
        for p in (SUITE / task).rglob("*")
        if p.is_file() and "__pycache__" not in p.parts and "reviews" not in p.parts
    }
    assert built == shipped


@pytest.mark.parametrize("task", sorted(building.cases()))
def test_a_build_does_not_depend_on_hash_seed_zone_or_locale(task: str) -> None:
    script = (
        "import hashlib, sys\n"
        "from tasks.casebook.building import build\n"
        "whole = hashlib.sha256()\n"
        "for name, data in build(sys.argv[1]).items(): whole.update(name.encode() + b'\\0' + data)\n"
        "print(whole.hexdigest())"
    )
    here = hashlib.sha256()
    for name, data in building.build(task).items():
        here.update(name.encode() + b"\0" + data)
    environment = {**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Kolkata", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-c", script, task],
        cwd=ROOT, capture_output=True, text=True, env=environment, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == here.hexdigest()


def test_every_difference_is_named(tmp_path: Path) -> None:
    files = {"instruction.md": b"one\n", "chart/Patient.ndjson": b"{}\n"}
    building.write(files, tmp_path / "t")
    assert list(building.differences(files, tmp_path / "t")) == []
    (tmp_path / "t" / "instruction.md").write_bytes(b"two\n")
    (tmp_path / "t" / "chart" / "Patient.ndjson").unlink()
    (tmp_path / "t" / "stray.md").write_bytes(b"?\n")
    found = {(difference.path, difference.what) for difference in building.differences(files, tmp_path / "t")}
    assert found == {
        ("instruction.md", "differs"),
        ("chart/Patient.ndjson", "is missing"),
        ("stray.md", "is not built by the case"),
    }


def test_writing_replaces_the_package_and_keeps_its_reviews(tmp_path: Path) -> None:
    building.write({"old.md": b"old\n"}, tmp_path / "t")
    (tmp_path / "t" / "reviews").mkdir()
    (tmp_path / "t" / "reviews" / "events.ndjson").write_bytes(b"{}\n")
    building.write({"new.md": b"new\n"}, tmp_path / "t")
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()) == [
        "t/new.md",
        "t/reviews/events.ndjson",
    ]


def test_an_unknown_task_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no case for 'no-such-task'"):
        building.build("no-such-task")


def test_the_command_checks_writes_and_tells(tmp_path: Path) -> None:
    assert run("--check").returncode == 0
    missing = run("no-such-task")
    assert missing.returncode == 2
    assert "Traceback" not in missing.stderr
    task = sorted(building.cases())[0]
    assert run(task, "--out", str(tmp_path)).returncode == 0
    assert run(task, "--check", "--out", str(tmp_path)).returncode == 0
    (tmp_path / task / "instruction.md").write_text("changed\n")
    stale = run(task, "--check", "--out", str(tmp_path))
    assert stale.returncode == 1
    assert "instruction.md differs" in stale.stdout
