"""What a grader change would do, on Decide in a real Chromium, with trials that were really run: flips first and bold,
counters, by what each trial ordered; edited code in the sandbox; deciding never waits for it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runtime import jobs
from tasks.package import SUITE
from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
TASK = "nephrology-finerenone-011"


def declared(place: int, key: str) -> Any:
    return tomllib.loads(SUITE.files(TASK)["checkpoints.toml"].decode())["checkpoint"][place][key]


def edits() -> tuple[dict[str, Any], ...]:
    """Tighter: another dose. Looser: another drug is forbidden. Code: the class is known by brand names alone."""
    order, forbidden = declared(5, "order"), declared(4, "must_not")
    tighter = {**order, "accept": [{**order["accept"][0], "dose": "20 mg"}]}
    code = {
        "kind": "text",
        "path": "checkpoints.py",
        "find": r"sglt[\s-]?2|gliflozin|jardiance",
        "replace": "jardiance",
    }
    return tuple(
        {"edit": edit, "rationale": why}
        for edit, why in (
            ({"kind": "checkpoint", "checkpoint": "cp6", "set": {"order": tighter}, "was": {"order": order}}, "Dose."),
            ({"kind": "checkpoint", "checkpoint": "cp5", "set": {"must_not": [{"ingredient": "digoxin"}]},
              "was": {"must_not": forbidden}}, "Drug."),
            (code, "Brands."),
        )
    )  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path, reviews: ModuleType) -> Workspace:
    made: Workspace = reviews.opened(Workspace(tmp_path / "workspace"), TASK)
    reviews.judged(made, TASK)
    reviews.proposed(made, TASK, edits())
    return made


@pytest.fixture
def app(serve: Callable[..., Any], workspace: Workspace, playwright: object) -> Iterator[str]:
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url


def run(workspace: Workspace) -> None:
    """One batch of the built-in agents, as at a shell."""
    agents = [word for agent in ("oracle:finerenone-first", "noop", "shotgun", "parrot") for word in ("--agent", agent)]
    command = [sys.executable, "-m", "runtime", "run", TASK, *agents, "--batch", "controls", "--jobs", "1"]
    environment = {**os.environ, "WORKBENCH_WORKSPACE": str(workspace.path)}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, timeout=300)


def go(page: Page, words: str) -> None:
    """The change whose row in the list says so."""
    row = page.locator("[class*='st-key-rail-']").filter(has_text=words).first
    if "st-key-rail-on-" not in (row.get_attribute("class") or ""):
        # The button lies over the whole row.
        row.get_by_role("button").click(delay=60)
    expect(page.locator("[class*='st-key-rail-on-']").filter(has_text=words)).to_be_visible()
    # The list's row of this change and the decision buttons, which are drawn last, carry the same id.
    page.wait_for_function(
        """() => {
          const id = (name) => [...document.querySelectorAll(`[class*="st-key-${name}"]`)]
            .map((one) => one.className.split(`st-key-${name}`)[1].slice(0, 16))[0];
          return id("rail-on-") && id("rail-on-") === id("do-approve-")
            && document.querySelectorAll("[data-stale=true]").length === 0;
        }"""
    )


def counters(page: Page) -> list[str]:
    """ "1 fail → pass", … once they stand."""
    expect(page.get_by_text("old and new graders really ran")).to_be_visible()
    said = page.locator(".counters .card").all_inner_texts()
    return [re.sub(r"arrow_\w+|drag_handle|swap_vert|\s+", " ", one).replace("  ", " ").strip() for one in said]


def test_flips_of_real_trials_stand_first_and_say_what_was_ordered(
    app: str, workspace: Workspace, look: Callable[..., Any]
) -> None:
    run(workspace)
    seen = look(app)
    page: Page = seen.page
    seen.open(f"/decide?id={TASK}&as=demo-reviewer-1")

    go(page, "Checkpoint 6")
    said = counters(page)
    assert [re.sub(r"\s+", " ", one) for one in said] == ["0 fail → pass", "2 pass → fail", "2 same verdict (2 fail)"]
    rows = page.locator(".effect table").first.locator("tbody tr")
    texts = rows.all_inner_texts()
    assert [("flips" in text) for text in texts] == [True, True, False, False]
    assert "finerenone 10 mg tablet" in texts[0]
    assert "its dose is 10 mg, not 20 mg" in texts[0]
    assert rows.nth(0).locator("td.b").inner_text() == "oracle:finerenone-first"
    assert rows.nth(2).locator("td.b").count() == 0
    expect(page.get_by_text("Now 1 trial would fail as a whole.")).to_be_visible()

    go(page, "Checkpoint 5")
    said = counters(page)
    assert [re.sub(r"\s+", " ", one) for one in said] == ["2 fail → pass", "0 pass → fail", "2 same verdict (2 pass)"]
    assert "empagliflozin" in page.locator(".effect table").first.inner_text()

    # Edited code runs, in the sandbox alone: it is not the code that was shipped.
    go(page, "Code that grades")
    said = counters(page)
    assert re.sub(r"\s+", " ", said[1]) == "1 pass → fail"
    row = page.locator(".effect table").first.locator("tbody tr").first
    assert "The note declines the SGLT2 inhibitor" in row.inner_text()
    # The same question is asked once, whoever asks it.
    asked = len(jobs.jobs(workspace))
    other = look(app)
    other.open(f"/decide?id={TASK}&as=demo-reviewer-2")
    go(other.page, "Checkpoint 6")
    counters(other.page)
    assert len(jobs.jobs(workspace)) == asked == 3
    assert [error for error in seen.errors if "404" not in error] == []


def test_without_a_trial_it_is_said_plainly_and_deciding_does_not_wait(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    seen = look(app)
    page: Page = seen.page
    seen.open(f"/decide?id={TASK}&as=demo-reviewer-1")
    # It is asked for once its change has stood for a moment.
    with reviews.held_up(workspace):
        expect(page.get_by_text("you can decide meanwhile")).to_be_visible()
        page.get_by_role("button", name="Approve").click(delay=60)
        expect(page.get_by_text("Change 2 of 3")).to_be_visible()
    go(page, "Checkpoint 6")
    expect(page.get_by_text("No trial of this task is stored yet.")).to_be_visible()
    # Example orders are judged all the same.
    expect(page.get_by_text("Example orders that would be judged otherwise")).to_be_visible()
