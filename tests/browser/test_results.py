"""Results down to a physician's own verdict, calibration and models, in a real Chromium."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import expect

from tasks.stored import Batch

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
ROOT = Path(__file__).resolve().parents[2]
JUDGED = """
[[checkpoint]]
id = "cp3"
title = "The note says what to do"
capability = "documentation"
criticality = "required"
reachable = ["paper"]
rests_on = ['instruction#"potassium"']
grader = "judge"
file = "/workspace/output/note.md"
rubric = {pass = "Says what to do and when.", partial = "Says what, not when.", fail = "Says neither."}
"""
MODEL = """
[model."openai/local-one"]
endpoint = "http://127.0.0.1:9/v1"
key_env = "WB_TEST_KEY"
data_class = "open"
"""


@dataclass(frozen=True)
class Place:
    """A server over one task with stored trials of noop and parrot, all graded but the judged checkpoint."""

    url: str
    tasks: Path
    workspace: Path

    def batch(self) -> Batch:
        return Batch.open(self.workspace / "runs", "b-1")


@pytest.fixture(scope="module")
def judged(
    serve: Callable[..., Any], packages: ModuleType, tmp_path_factory: pytest.TempPathFactory, playwright: object
) -> Iterator[Place]:
    tasks = tmp_path_factory.mktemp("tasks")
    workspace = tmp_path_factory.mktemp("ws") / "workspace"
    packages.write(tasks, checkpoints=packages.CHECKPOINTS + JUDGED)
    environment = {"WORKBENCH_WORKSPACE": str(workspace), "TASKS": str(tasks), "WB_TEST_KEY": "sk-never-shown"}
    command = [sys.executable, "-m", "runtime", "run", "--all", "--suite", str(tasks), "--batch", "b-1", "--runs", "2"]
    subprocess.run(
        [*command, "--agent", "noop", "--agent", "parrot"], check=True, cwd=ROOT, env=os.environ | environment,
        capture_output=True, timeout=300,
    )  # fmt: skip
    settings = workspace / "workbench.toml"
    settings.write_text(settings.read_text("utf-8") + MODEL, "utf-8")
    with serve(Path(__file__).with_name("hostile_app.py"), environment) as url:
        yield Place(url, tasks, workspace)


def hand_verdicts(place: Place) -> list[tuple[str, str, str]]:
    return [
        (one.checkpoint, one.result, one.reason)
        for trial in place.batch().trials()
        for one in trial.verdicts()
        if one.grader.kind == "person"
    ]


def test_results_name_every_convention_and_lead_to_the_trials(judged: Place, look: Callable[..., Any]) -> None:
    seen = look(judged.url)
    seen.open("/results?batch=b-1")
    page = seen.page
    expect(page.get_by_text("4 attempted")).to_be_visible()
    board = page.get_by_role("region", name="Leaderboard")
    for words in ("pass@1", "pass@2", "pass^2", "1 − C(n−c,2)/C(n,2)", "C(c,2)/C(n,2)"):
        expect(board).to_contain_text(words)
    page.get_by_text("Every convention and its formula").click()
    expect(page.get_by_text("(c/n)^2", exact=False).first).to_be_visible()
    page.get_by_role("radio", name="Compare two").click()
    expect(page.get_by_role("region", name="Two agents, task by task")).to_be_visible()
    page.reload()
    expect(page.get_by_role("region", name="Two agents, task by task")).to_be_visible()
    page.get_by_role("radio", name="Overview").click()
    page.locator(".heat-map a").first.click()
    expect(page.get_by_text("2 found")).to_be_visible()
    seen.settle()
    assert seen.outside == []


def test_notes_are_compared_with_records_by_a_job(judged: Place, look: Callable[..., Any]) -> None:
    seen = look(judged.url)
    seen.open("/results?batch=b-1")
    seen.page.get_by_role("button", name="Compare notes with records").click(delay=120)
    expect(seen.page.get_by_text("Recommended in note, not done")).to_be_visible(timeout=120_000)


def test_a_physician_judges_blind_and_the_verdict_is_read_back(
    judged: Place, look: Callable[..., Any], reviews: ModuleType
) -> None:
    seen = look(judged.url)
    seen.open("/calibrate?batch=b-1&as=demo-reviewer-1")
    page = seen.page
    expect(page.get_by_text("Says what to do and when.")).to_be_visible()
    # Neither the agent nor the judge's word is anywhere on the page, its source included.
    for word in ("parrot", "noop", "no judge"):
        assert word not in page.content().casefold(), word
    expect(page.get_by_role("button", name="Save verdict")).to_be_disabled()
    page.get_by_role("radio", name="Fail").click()
    page.get_by_role("textbox", name="Why").fill("It says neither what nor when.")
    page.get_by_role("textbox", name="Why").blur()
    expect(page.get_by_role("button", name="Save verdict")).to_be_enabled()
    # A double click gives one verdict.
    page.get_by_role("button", name="Save verdict").dblclick(delay=60)
    expect(page.get_by_role("status").filter(has_text="It says neither what nor when.")).to_be_visible()
    # The second click may be answered after the first has been read back.
    reviews.dealt_with(seen)
    assert hand_verdicts(judged).count(("cp3", "fail", "It says neither what nor when.")) == 1
    seen.open("/calibrate?batch=b-1&as=demo-reviewer-1")
    page.get_by_role("radio", name="Agreement").click()
    expect(page.get_by_text("No checkpoint has been judged by a judge and a physician")).to_be_visible()


def test_who_may_not_grade_is_told_so(judged: Place, look: Callable[..., Any]) -> None:
    seen = look(judged.url)
    seen.open("/calibrate?batch=b-1&as=demo-researcher")
    expect(seen.page.get_by_text("may not grade by hand")).to_be_visible()
    assert seen.page.get_by_role("button", name="Save verdict").count() == 0


def test_a_physician_disagrees_with_a_verdict_and_names_the_cause(judged: Place, look: Callable[..., Any]) -> None:
    seen = look(judged.url)
    seen.open("/trial?batch=b-1&task=nephrology-small&agent=noop&run=1&as=demo-reviewer-1")
    page = seen.page
    page.get_by_text("Disagree with a verdict").click()
    page.get_by_role("radio", name="Fail", exact=True).click()
    expect(page.get_by_text("Earliest cause of what went wrong")).to_be_visible()
    seen.settle()
    page.get_by_role("combobox", name=re.compile("Earliest cause")).click(delay=60)
    page.get_by_role("option", name="Not retrieved").click()
    page.get_by_role("textbox", name="Why").fill("It never looked at the potassium.")
    page.get_by_role("textbox", name="Why").blur()
    expect(page.get_by_role("button", name="Save verdict")).to_be_enabled()
    page.get_by_role("button", name="Save verdict").click(delay=120)
    expect(page.get_by_text("by hand (not retrieved)")).to_be_visible()
    assert ("cp1", "fail", "It never looked at the potassium.") in hand_verdicts(judged)


def test_a_model_is_checked_and_no_secret_is_shown(judged: Place, look: Callable[..., Any]) -> None:
    seen = look(judged.url)
    seen.open("/models")
    page = seen.page
    expect(page.get_by_text("openai/local-one").first).to_be_visible()
    page.get_by_role("button", name="Check").click(delay=120)
    expect(page.get_by_text("Cannot be used")).to_be_visible(timeout=120_000)
    seen.settle()
    assert "sk-never-shown" not in page.content()
    assert seen.outside == []


@pytest.mark.parametrize(
    "path",
    [
        "/results?batch=b-1",
        "/results?batch=b-1&view=Compare+two",
        "/results?batch=b-1&view=By+group+and+workflow",
        "/calibrate?batch=b-1&as=demo-reviewer-2",
        "/models",
        "/trial?batch=b-1&task=nephrology-small&agent=parrot&run=1",
        "/task?id=nephrology-small",
    ],
)
def test_axe_finds_nothing_serious_and_nothing_scrolls_sideways(
    judged: Place, one_by_one: Callable[[str, str], Any], path: str
) -> None:
    seen = one_by_one(judged.url, path)
    assert seen.faults() == []
    seen.fits(640)


def test_trials_of_an_older_version_are_regraded_from_the_page(judged: Place, look: Callable[..., Any]) -> None:
    """Last in this file: it changes the task."""
    toml = judged.tasks / "nephrology-small" / "checkpoints.toml"
    toml.write_text(toml.read_text("utf-8").replace("Potassium found", "Potassium was found"), "utf-8")
    seen = look(judged.url)
    seen.open("/results?batch=b-1")
    page = seen.page
    expect(page.get_by_text("4 trials were graded on an earlier version of the checkpoints.")).to_be_visible()
    assert page.get_by_text("need a physician").count() == 0
    page.get_by_role("button", name="Regrade 4").dblclick(delay=60)
    expect(page.get_by_text("0 of 2").first).to_be_visible(timeout=120_000)
    expect(page.get_by_text("graded on an earlier version")).to_have_count(0)
    assert all(
        any(one.checkpoint == "cp1" and one.grader.kind == "code" for one in trial.verdicts()[-3:])
        for trial in judged.batch().trials()
    )
