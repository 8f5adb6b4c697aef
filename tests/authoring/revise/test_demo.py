"""The demonstration, as somebody runs it who has just cloned the repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TASK = "gout-allopurinol-demo"


def demo(folder: Path, *arguments: str, code: int = 0) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environment |= {"PYTHONPATH": str(ROOT), "HOME": str(folder)}
    environment.pop("WORKBENCH_WORKSPACE", None)
    done = subprocess.run(
        [sys.executable, "-m", "authoring", "demo", "--workspace", str(folder / "scratch"), *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stderr


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(folder / "scratch" / "tasks.git"), *arguments], capture_output=True, text=True, check=True
    ).stdout


def test_the_demonstration_plays_one_whole_loop_and_its_log_tells_it(tmp_path: Path) -> None:
    printed = demo(tmp_path)
    for words in (
        "the model is a script and no model",
        "does not stand in the file",  # the bad edit, as it went back
        "Answer 2: 5 of 5 edits hold",
        "WEAKENS A SAFETY CHECKPOINT",
        "checkpoints.toml#cp5: blocked",
        "left out, rejected before: checkpoints.toml#cp5",
        f"Tag release/{TASK}/3",
    ):
        assert words in printed, words
    log = git(tmp_path, "log", "--reverse", "--format=%an|%s", "--", TASK).splitlines()
    told = [line.replace(f"{TASK}: ", "") for line in log]
    story = (
        "Demo author|New task: Frequent gout with stage 4 kidney disease: start a urate-lowering drug",
        "Demo reviewer 1|Submit review, round 1",
        "Demo reviewer 2|Submit review, round 1",
        "Demo author|Propose 5 changes by anthropic/scripted-reviser",
        "Demo reviewer 1|Decide: 4 approve, 1 veto",
        "Demo reviewer 2|Decide: 2 reject, 3 approve",
        "Demo adjudicator|Lift the veto of demo-reviewer-1",
        "Demo adjudicator|Adjudicate: approve",
        "Demo adjudicator|Adjudicate: reject",
        "Demo author|Apply 4 changes: version 2",
        "Demo reviewer 1|Submit review, round 2",
        "Demo author|Propose 1 change by anthropic/scripted-reviser",
        "Demo author|Apply 1 change: version 3",
        "Demo reviewer 1|Sign off",
        "Demo reviewer 2|Sign off",
        "Demo lead|Release",
    )
    places = [told.index(line) for line in story]
    assert places == sorted(places)
    # Every commit of the task was shown.
    for hash in git(tmp_path, "log", "--format=%h", "--abbrev=8", "--", TASK).split():
        assert hash in printed
    released = git(tmp_path, "show", f"release/{TASK}/3:{TASK}/checkpoints.toml")
    assert 'dose = "50 mg"' in released
    assert 'when = "2-6 wk"' in released
    assert "300 mg" not in released
    proposals = git(tmp_path, "ls-tree", "-r", "--name-only", "main", f"{TASK}/reviews/proposals").split()
    (first,) = [
        found for name in proposals
        if len((found := json.loads(git(tmp_path, "show", f"main:{name}")))["edits"]) == 5
    ]  # fmt: skip
    assert (first["by_hand"], first["model"]["repairs"], len(first["unaddressed"])) == (False, 1, 1)
    exchange = tmp_path / "scratch" / "jobs" / first["model"]["job"] / "exchange.jsonl"
    assert len(exchange.read_text("utf-8").splitlines()) == 2
    git(tmp_path, "fsck", "--strict")
    # A folder that holds something is never played over.
    assert "not empty" in demo(tmp_path, code=2)
