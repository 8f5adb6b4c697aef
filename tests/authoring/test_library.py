"""Bundled tasks come into the repository once, and newer ones only over what nobody has touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from authoring.library import open_store, take_over
from tasks.package import FolderSource
from tasks.review.events import FILE, parse_events
from tasks.review.state import fold
from tasks.store import Identity, Submission
from tasks.workspace import Workspace
from tests.tasks.packages import TINY_ID, tiny_files, write


@pytest.fixture
def suite(tmp_path: Path) -> FolderSource:
    write(tiny_files(), tmp_path / "suite")
    return FolderSource(tmp_path / "suite")


def newer(suite: FolderSource) -> dict[str, bytes]:
    files = tiny_files()
    files["task.toml"] = files["task.toml"].replace(b"version = 1\ntitle", b"version = 2\ntitle")
    files["CHANGELOG.md"] += b"\n## 2\n\nNewer.\n"
    write(files, suite.root)
    return files


def test_an_untouched_task_is_updated_once_by_a_commit_of_the_workbench(
    workspace: Workspace, suite: FolderSource
) -> None:
    store = open_store(workspace, suite=suite)
    assert take_over(store, suite=suite).updated == ()
    files = newer(suite)
    assert take_over(store, suite=suite).updated == (TINY_ID,)
    assert take_over(store, suite=suite).updated == ()
    with store.at() as view:
        now = view.files(TINY_ID)
        state = fold(TINY_ID, parse_events(now[FILE]))
    assert {path: data for path, data in now.items() if path != FILE} == files
    assert state.makers == {"workbench"}
    assert store.history(limit=1)[0].subject == f"Update {TINY_ID} to bundled version 2"


def test_a_task_that_was_changed_here_is_only_listed(workspace: Workspace, suite: FolderSource) -> None:
    store = open_store(workspace, suite=suite)
    mine = Submission(Identity("Ann", "ann@example.org"), "Mine", {f"{TINY_ID}/instruction.md": b"# Mine\n"})
    store.submit(lambda view: [mine])
    newer(suite)
    found = take_over(store, suite=suite)
    assert (found.updated, found.kept) == ((), (TINY_ID,))
    with store.at() as view:
        assert view.read(f"{TINY_ID}/instruction.md") == b"# Mine\n"
