"""Verify: a sound history holds, and each way of tampering with one is told."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import pytest

from authoring.audit import audit, timeline_csv
from authoring.desk import Desk
from authoring.library import open_store
from tasks.package import FolderSource
from tasks.people import person
from tasks.review.events import FILE, dump_events, parse_events
from tasks.store import Identity, Store, Submission, View
from tasks.workspace import Workspace

PLAN = {"answer": "a", "do_now": "b", "if_then": "c", "must_not": "d", "follow_up": "e", "confidence": "sure"}


@pytest.fixture
def desk(workspace: Workspace, tiny_package: Path) -> Desk:
    store = open_store(workspace, suite=FolderSource(tiny_package.parent))
    return Desk(workspace, store, person(workspace.settings.people, "demo-lead"))


@pytest.fixture
def task(desk: Desk, tiny_package: Path) -> str:
    id = tiny_package.name
    for who in ("demo-reviewer-1", "demo-reviewer-2"):
        desk.assign(id, who, "reviewer")
    desk.open_round(id)
    return id


def people(desk: Desk) -> dict[str, object]:
    return {one.id: one for one in desk.people}


def tamper(store: Store, task: str, change: str, author: Identity | None = None) -> None:
    """Write a commit past the desk, as nobody should."""

    def build(view: View) -> Sequence[Submission]:
        data = view.read(f"{task}/{FILE}") or b""
        events = parse_events(data)
        files: dict[str, bytes | None] = {}
        marks = {"Review-Id": events[-1].submission}
        if change == "edited":
            files[f"{task}/{FILE}"] = data.replace(b"demo-reviewer-1", b"demo-reviewer-9", 1)
        elif change == "silent":
            files[f"{task}/instruction.md"] = b"Something else entirely.\n"
        else:
            again = events[-1].model_copy(update={"id": "f" * 32, "submission": "s" * 32})
            files[f"{task}/{FILE}"] = data + dump_events([again])
            marks = {"Review-Id": "s" * 32}
        return [Submission(author or Identity("Demo lead", "demo-lead@workbench.invalid"), "x", files, marks)]

    store.submit(build)


def test_a_sound_history_holds(desk: Desk, task: str) -> None:
    found = audit(desk.store, task, people(desk))  # type: ignore[arg-type]
    assert found.faults == ()
    assert [entry.event.type for entry in found.entries] == ["imported", "assigned", "assigned", "round_opened"]
    assert found.commits == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("edited", "earlier events were edited or removed"),
        ("silent", "changed the task without an event"),
    ],
)
def test_tampering_is_told(desk: Desk, task: str, change: str, words: str) -> None:
    tamper(desk.store, task, change)
    faults = audit(desk.store, task, people(desk)).faults  # type: ignore[arg-type]
    assert any(words in str(fault) for fault in faults), faults


def test_an_event_committed_by_somebody_else_is_told(desk: Desk, task: str) -> None:
    tamper(desk.store, task, "appended", Identity("Somebody", "somebody@workbench.invalid"))
    faults = audit(desk.store, task, people(desk)).faults  # type: ignore[arg-type]
    assert any("is stored under the name of Somebody" in str(fault) for fault in faults), faults


def test_the_table_holds_every_event_and_no_formula(desk: Desk, task: str) -> None:
    desk.unassign(task, "demo-reviewer-1", "=cmd()")
    rows = list(csv.reader(io.StringIO(timeline_csv(audit(desk.store, task)))))
    assert len(rows) == 6
    assert not any(cell.startswith(("=", "+", "@")) for row in rows for cell in row)
