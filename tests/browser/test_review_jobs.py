"""Applying and the gate as jobs on Sign-off, in a real Chromium: told while they run, through a reload, a closed page
and a restart of the server; once however often pressed; stopped without half a commit."""

from __future__ import annotations

import re
import tomllib
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import expect

from runtime import jobs
from tasks.package import SUITE
from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
TASK = "nephrology-finerenone-011"


def accepted(reviews: ModuleType, folder: Path, edit: dict[str, Any]) -> Workspace:
    """One accepted change of the bundled task waits to be applied; its gate takes seconds."""
    made: Workspace = reviews.opened(Workspace(folder), TASK)
    reviews.judged(made, TASK)
    (ref,) = reviews.proposed(made, TASK, ({"edit": edit, "rationale": "It is asked today."},)).changes
    for who in (reviews.ONE, reviews.TWO):
        decision = {"change": ref.change, "base": ref.base, "result": ref.result, "decision": "approve"}
        reviews.desk(made, who).decide(TASK, [decision])
    return made


@pytest.fixture
def workspace(tmp_path: Path, reviews: ModuleType) -> Workspace:
    first = SUITE.load(TASK).instruction.split("\n")[0]
    edit = {"kind": "text", "path": "instruction.md", "find": first, "replace": f"{first} (today)"}
    return accepted(reviews, tmp_path / "workspace", edit)


@pytest.fixture
def app(serve: Callable[..., Any], workspace: Workspace, playwright: object) -> Iterator[str]:
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url


def at(who: str) -> str:
    return f"/signoff?id={TASK}&as={who}"


def applied(workspace: Workspace, reviews: ModuleType) -> list[str]:
    """The submissions that applied something."""
    desk = reviews.desk(workspace, reviews.LEAD)
    with desk.store.at() as view:
        return [one.submission for one in desk.snapshot(view, TASK).events if one.type == "applied"]


def test_two_clicks_apply_once_and_everybody_sees_how_far_it_is_and_how_it_ended(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    lead, other = look(app), look(app)
    other.open(at(reviews.TWO))
    lead.open(at(reviews.LEAD))
    reviews.twice(lead, lead.page.get_by_role("button", name="Apply 1 accepted change"), workspace)
    progress = lead.page.get_by_text(re.compile(r"Applying the accepted changes: check, \d+ of \d+ …"))
    with reviews.held_up(workspace, counting=True):
        expect(progress).to_be_visible()
        expect(lead.page.get_by_role("button", name="Apply 1 accepted change")).to_have_count(0)
        lead.page.reload()
        expect(progress).to_be_visible()
        # Another person's page, and one that may not stop it.
        other.open(at(reviews.TWO))
        expect(other.page.get_by_text("Applying the accepted changes: check")).to_be_visible()
        assert other.page.get_by_role("button", name="Stop").count() == 0
    for seen in (lead, other):
        expect(seen.page.get_by_text("Version 2 is applied")).to_be_visible()
    assert len(jobs.jobs(workspace)) == 1
    assert applied(workspace, reviews) == [jobs.jobs(workspace)[0].id]
    lead.page.reload()
    expect(lead.page.get_by_text("Version 2 is applied")).to_be_visible()
    assert [error for error in lead.errors if "404" not in error] == []


def test_it_goes_on_while_the_page_is_closed_and_the_server_starts_again(
    serve: Callable[..., Any], workspace: Workspace, look: Callable[..., Any], reviews: ModuleType, playwright: object
) -> None:
    environment = {"WORKBENCH_WORKSPACE": str(workspace.path)}
    with ExitStack() as server:
        url = server.enter_context(serve(ROOT / "app.py", environment))
        seen = look(url)
        seen.open(at(reviews.LEAD))
        seen.page.get_by_role("button", name="Apply 1 accepted change").click(delay=60)
        with reviews.held_up(workspace) as job:
            expect(seen.page.get_by_text("Applying the accepted changes: check")).to_be_visible()
            port = urllib.parse.urlsplit(url).port
            seen.page.close()
            server.close()
            assert jobs.status(workspace, job).state == "running", "the server is gone, the job is not"
    with serve(ROOT / "app.py", environment, port) as url:
        seen = look(url)
        seen.open(at(reviews.LEAD))
        expect(seen.page.get_by_text("Version 2 is applied")).to_be_visible()
    assert applied(workspace, reviews) == [job.id]


def test_a_stop_leaves_nothing_applied_and_it_can_be_pressed_anew(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    store = reviews.desk(workspace, reviews.LEAD).store
    head = store.head()
    seen = look(app)
    seen.open(at(reviews.LEAD))
    seen.page.get_by_role("button", name="Apply 1 accepted change").click(delay=60)
    with reviews.held_up(workspace) as job:
        seen.page.get_by_role("button", name="Stop").click(delay=60)
        reviews.stopped(workspace, job)
    expect(seen.page.get_by_text("It was stopped.")).to_be_visible()
    assert (store.head(), applied(workspace, reviews)) == (head, [])
    seen.page.get_by_role("button", name="Run the gate").click(delay=60)
    expect(seen.page.get_by_text("The gate passes").first).to_be_visible()
    expect(seen.page.get_by_text("It was stopped.")).to_have_count(0)
    seen.page.get_by_role("button", name="Apply 1 accepted change").click(delay=60)
    expect(seen.page.get_by_text("Version 2 is applied")).to_be_visible()
    assert len(applied(workspace, reviews)) == 1


def test_what_it_fails_on_is_said_in_our_words(
    serve: Callable[..., Any], tmp_path: Path, look: Callable[..., Any], reviews: ModuleType, playwright: object
) -> None:
    declared = tomllib.loads(SUITE.files(TASK)["checkpoints.toml"].decode())["checkpoint"][5]["order"]
    wrong = {**declared, "accept": [{**declared["accept"][0], "dose": "40 mg"}]}
    edit = {"kind": "checkpoint", "checkpoint": "cp6", "set": {"order": wrong}, "was": {"order": declared}}
    workspace = accepted(reviews, tmp_path / "workspace", edit)
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        seen = look(url)
        seen.open(at(reviews.LEAD))
        seen.page.get_by_role("button", name="Apply 1 accepted change").click(delay=60)
        expect(seen.page.get_by_text("Nothing was applied.", exact=True)).to_be_visible()
        said = seen.page.get_by_text("the gate fails on the result")
        expect(said).to_contain_text("Due to: “Checkpoint 6: Finerenone started at 10 mg once daily”")
        assert applied(workspace, reviews) == []
