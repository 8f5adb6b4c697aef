"""Every check now, from the checklist of stage 1, in a real Chromium: a job of its own that no click and no reload
stops, told as it goes, whose result stands there for everybody; what is written meanwhile is kept."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from runtime import jobs
from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
TASK = "nephrology-finerenone-011"
RUN = "Run every check now and show what each found"
DOING = "Running every check, without a model"


@pytest.fixture
def workspace(tmp_path: Path, reviews: ModuleType) -> Workspace:
    """Both reviewers have locked their plans."""
    made: Workspace = reviews.opened(Workspace(tmp_path / "workspace"), TASK)
    for who in (reviews.ONE, reviews.TWO):
        reviews.desk(made, who).lock_plan(TASK, reviews.PLAN)
    return made


@pytest.fixture
def app(serve: Callable[..., Any], workspace: Workspace, playwright: object) -> Iterator[str]:
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url


def at(who: str) -> str:
    return f"/review?id={TASK}&as={who}&door=Gate"


def found(page: Page) -> None:
    """What every check found stands on the page."""
    expect(page.get_by_role("cell", name="Mutants are caught")).to_be_visible()
    expect(page.get_by_text(DOING)).to_have_count(0)
    expect(page.get_by_role("button", name=RUN)).to_have_count(0)


def test_two_clicks_run_the_checks_once_while_the_reviewer_goes_on_writing(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    seen, other = look(app), look(app)
    seen.open(at(reviews.ONE))
    page = seen.page
    # Written right before the click, which takes the field its focus: both arrive.
    words = page.get_by_role("textbox", name="What is wrong, and why")
    expect(words).to_be_visible()
    head = reviews.desk(workspace, reviews.ONE).store.head()
    words.press_sequentially("No time is given", delay=10)
    reviews.twice(seen, page.get_by_role("button", name=RUN), workspace, at_rest=False)
    with reviews.held_up(workspace, counting=True):
        expect(page.get_by_text(re.compile(rf"{DOING}, \d+ of \d+ …"))).to_be_visible()
        # It draws itself anew each second; that takes nothing from the field.
        words.press_sequentially(", and nobody is named to do it.", delay=60)
        page.get_by_role("radiogroup", name="Weight").get_by_role("radio", name="Should").click()
        # The other reviewer sees that it runs, and not who asked; only who asked may stop it.
        other.open(at(reviews.TWO))
        expect(other.page.get_by_text(DOING)).to_be_visible()
        assert other.page.get_by_role("button", name="Stop").count() == 0
        assert "Demo reviewer 1" not in other.page.locator(".st-key-checks-job").inner_text()
    for one in (seen, other):
        found(one.page)
    expect(words).to_have_value("No time is given, and nobody is named to do it.")
    field = page.locator(".wb-field").filter(has=page.get_by_text("What is wrong, and why", exact=True))
    expect(field.locator(".wb-state")).to_contain_text("Saved")
    desk = reviews.desk(workspace, reviews.ONE)
    drafts = desk.db.drafts(reviews.ONE, TASK, 1)
    writing = drafts["composer"].value
    assert drafts[f"new.{writing}.text"].value == "No time is given, and nobody is named to do it."
    assert drafts[f"new.{writing}.weight"].value == "should"
    assert len(jobs.jobs(workspace)) == 1
    assert desk.store.head() == head, "nothing is recorded"
    assert [error for one in (seen, other) for error in one.errors if "404" not in error] == []


def test_it_is_stopped_started_anew_and_outlives_the_page_and_the_server(
    serve: Callable[..., Any], workspace: Workspace, look: Callable[..., Any], reviews: ModuleType, playwright: object
) -> None:
    environment = {"WORKBENCH_WORKSPACE": str(workspace.path)}
    with ExitStack() as server:
        url = server.enter_context(serve(ROOT / "app.py", environment))
        seen = look(url)
        seen.open(at(reviews.ONE))
        seen.page.get_by_role("button", name=RUN).click(delay=60)
        with reviews.held_up(workspace) as job:
            seen.page.get_by_role("button", name="Stop").click(delay=60)
            reviews.stopped(workspace, job)
        expect(seen.page.get_by_text("It was stopped.")).to_be_visible()
        seen.page.get_by_role("button", name=RUN).click(delay=60)
        with reviews.held_up(workspace, 2) as job:
            expect(seen.page.get_by_text(DOING)).to_be_visible()
            # Another page right away: what was asked for goes on.
            seen.page.get_by_role("link", name="Trials").click()
            expect(seen.page.get_by_text("Nothing has been run")).to_be_visible()
            port = urllib.parse.urlsplit(url).port
            seen.page.close()
            server.close()
            assert jobs.status(workspace, job).state == "running", "the server is gone, the job is not"
    with serve(ROOT / "app.py", environment, port) as url:
        seen = look(url)
        seen.open(at(reviews.ONE))
        found(seen.page)
    assert len(jobs.jobs(workspace)) == 2
