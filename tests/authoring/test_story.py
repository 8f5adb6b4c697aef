"""One task's whole review, told by the command line alone, and read back from git by a stranger."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.authoring.rooms import ready_files
from tests.tasks.packages import TINY_ID, write

ROOT = Path(__file__).resolve().parents[2]
ANN, BOB, JUDY, LEAD, AUTHOR = "demo-reviewer-1", "demo-reviewer-2", "demo-adjudicator", "demo-lead", "demo-author"

PLAN = """
answer = "Apixaban, full dose."
do_now = "Order apixaban 5 mg twice daily."
if_then = "Creatinine above 1.5 mg/dL: check the dose criteria again."
must_not = "No NSAID."
follow_up = "Creatinine in 3 months, primary care."
confidence = "sure"
"""


class Shell:
    """A shell in a workspace of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = os.environ | {
            "WORKBENCH_WORKSPACE": str(folder / "workspace"), "PYTHONPATH": str(ROOT), "HOME": str(folder),
        }  # fmt: skip

    def run(self, *arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "authoring", *arguments],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{arguments}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout if code == 0 else done.stderr + done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))

    def file(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text, "utf-8")
        return str(self.folder / name)

    def git(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(self.folder / "workspace" / "tasks.git"), *arguments],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip


def filled(template: str, finding: str = "", **verdicts: str) -> str:
    """The printed template, filled in as a person would."""
    out, dimension = [], ""
    for line in template.splitlines():
        if line.startswith("dimension"):
            dimension = line.split('"')[1]
        if line.startswith("verdict ="):
            line = f'verdict = "{verdicts.get(dimension, "acceptable")}"'
        if line.startswith("rating ="):
            line = 'rating = "essential"'
        if line.startswith("confidence ="):
            line = 'confidence = "sure"'
        out.append(line)
    tomllib.loads("\n".join(out))
    return "\n".join([*out, finding])


FINDING = """
[[findings]]
dimension = "instruction_clarity"
anchor = {kind = "text", path = "instruction.md", quote = "arrange the follow-up laboratory"}
weight = "should"
text = "Which laboratory, and when, is not said."
"""


@pytest.mark.timeout(900)
def test_the_story_of_a_task_from_its_first_folder_to_its_release(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    folder = write(ready_files(), tmp_path / "draft")

    # The author brings the task in; the lead asks two physicians.
    shell.run("propose", TINY_ID, "--from-dir", str(folder), "--as", AUTHOR)
    assert "is no reviewer" in shell.run("assign", TINY_ID, AUTHOR, "--as", LEAD, code=2)
    for person in (ANN, BOB):
        shell.run("assign", TINY_ID, person, "--as", LEAD)
    shell.run("assign", TINY_ID, JUDY, "--role", "adjudicator", "--as", LEAD)
    assert "may not assign" in shell.run("assign", TINY_ID, BOB, "--as", ANN, code=2)
    shell.run("open", TINY_ID, "--as", LEAD)

    # Round 1: both lock a plan and judge; nothing of the first is seen before the second is in.
    for person in (ANN, BOB):
        shell.run("lock", TINY_ID, "--from", shell.file("plan.toml", PLAN), "--as", person)
    template = shell.run("review", TINY_ID, "--template", "--as", ANN)
    assert "not filled in yet" in shell.run(
        "review", TINY_ID, "--from", shell.file("blank.toml", template), "--as", ANN, code=2
    )
    ann = filled(template, FINDING, instruction_clarity="needs change")
    shell.run("review", TINY_ID, "--from", shell.file("ann.toml", ann), "--as", ANN)
    assert shell.json("status", TINY_ID)["waiting_for_review"] == [BOB]
    assert shell.json("status", TINY_ID)["findings"] == []
    assert "Which laboratory" not in shell.git("log", "-p", "--all")
    shell.run("review", TINY_ID, "--from", shell.file("bob.toml", filled(template)), "--as", BOB)
    state = shell.json("status", TINY_ID)
    assert state["stage"] == "proposals"
    (finding,) = [one["finding"] for one in state["findings"]]

    # The author answers from a clone; one reviewer vetoes, the other approves.
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", str(tmp_path / "workspace" / "tasks.git"), str(clone)], check=True)
    path = clone / TINY_ID / "instruction.md"
    path.write_text(path.read_text().replace("follow-up laboratory", "creatinine in 3 months"))
    chart = clone / TINY_ID / "chart" / "Observation.ndjson"
    chart.write_text(chart.read_text().replace('"value":138', '"value":134'))
    shell.run("propose", TINY_ID, "--from-dir", str(clone / TINY_ID), "--finding", finding,
              "--rationale", "Says which laboratory", "--as", AUTHOR)  # fmt: skip
    shown = shell.json("show", TINY_ID)
    views = {one["unit"]: one for one in shown}
    assert len(shown) == 2
    assert set(views) == {"instruction.md", "chart/Observation.ndjson#o-pressure"}
    pressure, text = views["chart/Observation.ndjson#o-pressure"], views["instruction.md"]
    assert [(row["field"], row["old"], row["new"]) for row in pressure["rows"]] == [
        ("Value", "138 mm[Hg]", "134 mm[Hg]")
    ]
    assert text["consequence"] == "RERUN"
    shell.run("decide", TINY_ID, pressure["change"][:12], "veto", "--reason", "The pressure was measured as 138.",
              "--harm", "commission,mild,possible", "--as", ANN)  # fmt: skip
    shell.run("decide", TINY_ID, pressure["change"], "approve", "--as", BOB)
    for person in (ANN, BOB):
        shell.run("decide", TINY_ID, text["change"], "approve", "--as", person)
    assert {one["unit"]: one["status"] for one in shell.json("status", TINY_ID)["changes"]} == {
        "chart/Observation.ndjson#o-pressure": "blocked", "instruction.md": "accepted",
    }  # fmt: skip
    others = ("lift", TINY_ID, ANN, "--change", pressure["change"], "--reason", "x", "--owner-says", "agrees")
    assert "lifted by its owner" in shell.run(*others, "--as", BOB, code=2)

    # The adjudicator lifts the veto with the owner's answer, what is left is a split, and it is rejected.
    shell.run("lift", TINY_ID, ANN, "--change", pressure["change"], "--owner-says", "does not agree",
              "--reason", "To be settled.", "--as", JUDY)  # fmt: skip
    assert "not decided; waiting for the adjudicator" in shell.run("apply", TINY_ID, "--as", AUTHOR, code=2)
    shell.run("adjudicate", TINY_ID, pressure["change"], "reject", "--reason", "The source says 138.", "--as", JUDY)
    shell.run("apply", TINY_ID, "--as", AUTHOR)
    state = shell.json("status", TINY_ID)
    assert [one["end"] for one in state["findings"]] == ["resolved"]

    # A second round on the new bytes, then gate, signatures, release.
    assert "was rejected before" in shell.run(
        "propose", TINY_ID, "--from-dir", str(clone / TINY_ID), "--as", AUTHOR, code=1
    )
    shell.run("open", TINY_ID, "--as", LEAD)
    for person in (ANN, BOB):
        shell.run("lock", TINY_ID, "--from", shell.file("plan.toml", PLAN), "--as", person)
        shell.run("review", TINY_ID, "--from", shell.file("r2.toml", filled(template)), "--as", person)
    assert "n = 2" in shell.run("status", "--agreement")
    shell.run("gate", TINY_ID, "--as", LEAD)
    assert "not signed by" in shell.run("release", TINY_ID, "--as", LEAD, code=2)
    for person in (ANN, BOB):
        shell.run("signoff", TINY_ID, "--statement", "Fair and safe.", "--as", person)
    printed = shell.run("release", TINY_ID, "--as", LEAD)
    assert "Veto of demo-reviewer-1 lifted by demo-adjudicator (the owner does not agree)" in printed
    assert shell.json("status", TINY_ID)["stage"] == "released"

    # What git tells a stranger.
    log = [line.split("|") for line in shell.git("log", "--reverse", "--format=%an|%s", "--", TINY_ID).splitlines()]
    short = [(name, subject.removeprefix(f"{TINY_ID}: ")) for name, subject in log]
    assert short == [
        ("Demo author", "New task: Anticoagulant after warfarin was given up"),
        ("Demo lead", "Assign Demo reviewer 1 as reviewer"),
        ("Demo lead", "Assign Demo reviewer 2 as reviewer"),
        ("Demo lead", "Assign Demo adjudicator as adjudicator"),
        ("Demo lead", "Open a round of review"),
        ("Demo reviewer 1", "Lock own plan, round 1"),
        ("Demo reviewer 2", "Lock own plan, round 1"),
        ("Demo reviewer 1", "Submit review, round 1"),
        ("Demo reviewer 2", "Submit review, round 1"),
        ("Demo author", "Propose 2 changes by demo-author"),
        ("Demo reviewer 1", "Decide: 1 veto"),
        ("Demo reviewer 2", "Decide: 1 approve"),
        ("Demo reviewer 1", "Decide: 1 approve"),
        ("Demo reviewer 2", "Decide: 1 approve"),
        ("Demo adjudicator", "Lift the veto of demo-reviewer-1"),
        ("Demo adjudicator", "Adjudicate: reject"),
        ("Demo author", "Apply 1 change: version 2"),
        ("Demo lead", "Open a round of review"),
        ("Demo reviewer 1", "Lock own plan, round 2"),
        ("Demo reviewer 1", "Submit review, round 2"),
        ("Demo reviewer 2", "Lock own plan, round 2"),
        ("Demo reviewer 2", "Submit review, round 2"),
        ("Demo lead", "Gate passed"),
        ("Demo reviewer 1", "Sign off"),
        ("Demo reviewer 2", "Sign off"),
        ("Demo lead", "Release"),
    ]
    trailers = shell.git("log", "--format=%(trailers:key=Review-Id,valueonly)", "--", TINY_ID).split()
    assert len(trailers) == len(set(trailers)) == len(log)
    applied = shell.git("log", "-1", "--grep=Apply 1 change", "--format=%B")
    assert "run stored trials again" in applied
    assert "Verdict: RERUN" in applied
    assert text["change"] in applied
    assert shell.git("cat-file", "-t", f"release/{TINY_ID}/2").strip() == "tag"
    manifest = json.loads(shell.git("show", f"main:{TINY_ID}/reviews/releases/2.json"))
    assert [one["person"] for one in manifest["signed"]] == [ANN, BOB]
    assert "## 2" in shell.git("show", f"main:{TINY_ID}/CHANGELOG.md")
    shell.git("fsck", "--strict")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("status", "no-such-task"), 2, "there is no task"),
        (("assign", TINY_ID, "nobody", "--as", LEAD), 2, "nobody in workbench.toml"),
        (("open", TINY_ID, "--as", "nobody"), 2, "nobody in workbench.toml"),
        (("lock", TINY_ID, "--as", ANN), 2, "--template prints one"),
        (("propose", TINY_ID, "--from-dir", "nowhere", "--as", AUTHOR), 2, "no such folder"),
    ],
)
def test_a_mistake_at_the_shell_is_one_message(
    tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    assert words in Shell(tmp_path).run(*arguments, code=code)
