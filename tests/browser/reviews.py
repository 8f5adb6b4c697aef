"""A workspace with tasks under review, for the tests of the review pages: made through the desk, as a script would;
and what several of them do to a page or to a job."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from filelock import FileLock
from playwright.sync_api import Locator, expect

from authoring.desk import Desk
from authoring.library import open_store
from authoring.proposals import Proposal
from runtime import jobs
from runtime.batch import Item, run_batch
from runtime.executors import LocalExecutor
from runtime.trial import Settings
from tasks.package import FolderSource
from tasks.people import person
from tasks.review.checklist import checklist
from tasks.stored import Batch
from tasks.workspace import Workspace

ONE, TWO, LEAD, AUTHOR, JUDGE = "demo-reviewer-1", "demo-reviewer-2", "demo-lead", "demo-author", "demo-adjudicator"
PLAN = {
    "answer": "Repeat the potassium before any change.",
    "do_now": "Order a potassium today.",
    "if_then": "If above 6.0, send to the emergency department.",
    "must_not": "A second drug that raises potassium.",
    "follow_up": "Potassium in one week, primary care.",
    "confidence": "sure",
}
LABELS = {
    "answer": "Answer in one or two sentences",
    "do_now": "Do now",
    "if_then": "If-then",
    "must_not": "Must not be done",
    "follow_up": "Follow-up: test, window, who",
}


def desk(workspace: Workspace, who: str, suite: Path | None = None) -> Desk:
    """A person's desk; the repository is made of `suite` at first."""
    store = open_store(workspace, suite=FolderSource(suite)) if suite else open_store(workspace)
    return Desk(workspace, store, person(workspace.settings.people, who))


def opened(workspace: Workspace, task: str, suite: Path | None = None) -> Workspace:
    """The workspace with a round open for both reviewers."""
    lead = desk(workspace, LEAD, suite)
    for who in (ONE, TWO):
        lead.assign(task, who, "reviewer")
    lead.open_round(task)
    return workspace


def review(checkpoints: tuple[str, ...], verdict: str = "acceptable", **more: Any) -> dict[str, Any]:
    """A complete submission."""
    return {
        "verdicts": tuple({"dimension": one.id, "verdict": verdict} for one in checklist().dimensions),
        "ratings": tuple({"checkpoint": id, "rating": "essential"} for id in checkpoints),
        "confidence": "sure",
        **more,
    }


def judged(workspace: Workspace, task: str, **findings: tuple[dict[str, Any], ...]) -> None:
    """Both reviewers lock and submit; `findings` by person with - as _."""
    for who in (ONE, TWO):
        at = desk(workspace, who)
        with at.store.at() as view:
            ids = tuple(one.id for one in at.snapshot(view, task).task.checkpoints)
        at.lock_plan(task, PLAN)
        at.submit_review(task, review(ids, findings=findings.get(who.replace("-", "_"), ())))


def finding(id: str, text: str, dimension: str = "clinical_reasoning", **more: Any) -> dict[str, Any]:
    """A finding of a submission."""
    return {"id": id, "dimension": dimension, "weight": "should", "text": text, "anchor": {"kind": "task"}, **more}


def proposed(workspace: Workspace, task: str, edits: tuple[dict[str, Any], ...], made_by: str = "model/reviser") -> Any:
    """A model's proposal, put up by the author; the changes as they were prepared."""
    at = desk(workspace, AUTHOR)
    with at.store.at() as view:
        package = at.snapshot(view, task).package
    proposal = Proposal.model_validate(
        {"task": task, "package": package, "made_by": made_by, "by_hand": False, "at": datetime.now(UTC),
         "edits": edits}
    )  # fmt: skip
    _, prepared = at.propose(task, proposal)
    return prepared


def run(workspace: Workspace, items: list[Item]) -> None:
    """These trials, as the batch b-1 of the workspace."""
    with pytest.MonkeyPatch.context() as patched, LocalExecutor(2) as executor:
        patched.setenv("WORKBENCH_WORKSPACE", str(workspace.path))
        run_batch(Batch.create(workspace.runs, "b-1"), items, Settings(), executor)


# ---- jobs -----------------------------------------------------------------------------------------------------------


def job_of(workspace: Workspace, number: int = 1) -> jobs.Job:
    """The newest job, once so many have been started."""
    deadline = time.monotonic() + 60
    while len(found := jobs.jobs(workspace)) < number or found[0].pid is None:
        assert time.monotonic() < deadline, f"{len(found)} jobs, not {number}"
        time.sleep(0.02)
    return found[0]


@contextmanager
def held_up(workspace: Workspace, number: int = 1, *, counting: bool = False) -> Iterator[jobs.Job]:
    """The newest of so many jobs gets no further meanwhile: a job of seconds may end before a page is drawn.

    `counting`: not before it has said how far it is of how much.
    """
    job = job_of(workspace, number)
    assert job.pid is not None
    while counting and (at := jobs.status(workspace, job)).state == "running" and not (at.last and at.last.total):
        time.sleep(0.02)
    try:
        os.killpg(job.pid, signal.SIGSTOP)
        process, deadline = psutil.Process(job.pid), time.monotonic() + 10
        while process.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE) and time.monotonic() < deadline:
            time.sleep(0.01)
    except (ProcessLookupError, psutil.NoSuchProcess):
        pass
    assert jobs.status(workspace, job).state == "running", "it ended before it could be held"
    try:
        yield job
    finally:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGCONT)


def stopped(workspace: Workspace, job: jobs.Job) -> None:
    """Wait until somebody has asked this job to stop."""
    deadline = time.monotonic() + 60
    while jobs.find(workspace, job.id).stop_asked is None:
        assert time.monotonic() < deadline, "nobody has asked it to stop"
        time.sleep(0.02)


# ---- clicks ---------------------------------------------------------------------------------------------------------


@contextmanager
def unwritten(workspace: Workspace) -> Iterator[None]:
    """Nothing is written meanwhile: who writes to the repository or to state.db waits until this ends."""
    held = FileLock(str(workspace.tasks_git / "workbench.lock"))
    with held, closing(sqlite3.connect(workspace.state_db, timeout=30, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            db.execute("ROLLBACK")


def twice(seen: Any, button: Locator, workspace: Workspace | None = None, *, at_rest: bool = True) -> None:
    """Two clicks on one place, 450 ms apart: what a double click of a slow hand does.

    `workspace`: what the first does there is not done before the second has reached the same button. `at_rest`: not
    where the test has just typed, and the typing is to be on its way still.
    """
    page = seen.page
    expect(button).to_be_enabled()
    if at_rest:
        seen.settle()
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    assert box
    place = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
    with unwritten(workspace) if workspace else nullcontext():
        page.mouse.click(*place)
        page.wait_for_timeout(450)
        assert not workspace or button.evaluate("(it, [x, y]) => it.contains(document.elementFromPoint(x, y))", place)
        page.mouse.click(*place)
        # On its way to the server.
        page.wait_for_timeout(150)


def dealt_with(seen: Any) -> None:
    """Wait until the server has dealt with every click so far: with a click on the Guide, of the same session, too."""
    seen.settle()
    seen.page.get_by_test_id("stTopNavLink").filter(has_text="Guide").click(delay=60)
    expect(seen.page.get_by_text("A worked example").first).to_be_visible()
    seen.settle()
