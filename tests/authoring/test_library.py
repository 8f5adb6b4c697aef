"""Bundled tasks come into the repository once, and newer ones only over what nobody has touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from authoring.library import checked_out, open_store, take_over
from tasks.errors import UsageError
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


def test_a_version_is_laid_out_once_as_a_folder_that_loads_as_the_same_task(
    workspace: Workspace, suite: FolderSource
) -> None:
    store = open_store(workspace, suite=suite)
    with store.at() as view:
        folder = checked_out(view, TINY_ID, workspace.packages)
        kept = view.files(TINY_ID)
        before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
        assert checked_out(view, TINY_ID, workspace.packages) == folder
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    laid = FolderSource(folder.parent).load(folder.name)
    shipped = suite.load(TINY_ID)
    assert (laid.agent_digest, laid.grade_digest) == (shipped.agent_digest, shipped.grade_digest)
    assert set(laid.files) == {path for path in kept if not path.startswith("reviews/")}

    changes = {f"{TINY_ID}/instruction.md": kept["instruction.md"] + b"\nMore.\n"}
    store.submit(lambda view: [Submission(Identity("A", "a@x"), "Change", changes)])
    with store.at() as view:
        later = checked_out(view, TINY_ID, workspace.packages)
    assert later != folder
    assert FolderSource(folder.parent).load(TINY_ID).agent_digest == shipped.agent_digest
    assert not [path for path in workspace.packages.iterdir() if path.name.startswith(".")]


def test_a_task_that_is_not_there_is_not_laid_out(workspace: Workspace, suite: FolderSource) -> None:
    with open_store(workspace, suite=suite).at() as view:
        for id in ("", "no-such-task"):
            with pytest.raises(UsageError):
                checked_out(view, id, workspace.packages)
    assert not workspace.packages.exists()
