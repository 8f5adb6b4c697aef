"""What the pages list, show and run is the same version: the repository's head, or a release of it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from streamlit.testing.v1 import AppTest

from authoring.library import open_store
from review_ui import frame, library
from review_ui.sight import Sight, sight
from runtime import jobs
from tasks.errors import NotAllowed, UsageError
from tasks.package import FolderSource
from tasks.people import Person
from tasks.review import events as ev
from tasks.store import Identity, Store, Submission
from tasks.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
ID = "nephrology-small"
OPEN = Sight(verified=False)
READER = Sight(True, Person(id="ann", name="Ann", email="ann@example.org", roles=("reviewer",)))


@pytest.fixture
def store(packages: ModuleType, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A repository of two tasks, one of data class dua; the folder of tasks beside it holds what is no longer so."""
    folder = tmp_path / "tasks"
    packages.write(folder, ID)
    closed = packages.write(folder, "cardiology-closed", title="Closed", specialty="Cardiology") / "task.toml"
    closed.write_text(closed.read_text("utf-8").replace('data_class = "open"', 'data_class = "dua"'), "utf-8")
    monkeypatch.setattr(frame, "source", lambda: FolderSource(folder))
    return open_store(Workspace(workspace), suite=FolderSource(folder))


def changed(store: Store, version: int, title: str, *more: ev.Event) -> str:
    """The task at another version, with events beside it; the commit."""
    with store.at() as view:
        files = view.files(ID)
    old = tomllib.loads(files["task.toml"].decode())
    text = files["task.toml"].decode().replace(f"\nversion = {old['version']}\n", f"\nversion = {version}\n")
    text = text.replace(old["title"], title)
    lines = files[ev.FILE] + ev.dump_events(more)
    changes = {f"{ID}/task.toml": text.encode(), f"{ID}/{ev.FILE}": lines}
    return store.submit(lambda view: [Submission(Identity("A", "a@x"), f"Version {version}", changes)])[-1]


def released(store: Store) -> None:
    """Version 2 released, version 3 since."""
    from datetime import UTC, datetime

    hash_ = "0" * 64
    event = ev.Released(
        submission=ev.new_id(), task=ID, actor="demo-lead", role="lead", at=datetime.now(UTC), round=1,
        package=hash_, version="2", tag=f"release/{ID}/2", manifest=hash_,
    )  # fmt: skip
    commit = changed(store, 2, "Potassium, as it was released", event)
    store.tag(f"release/{ID}/2", commit, "Version 2", by=Identity("L", "l@x"))
    changed(store, 3, "Potassium, changed since")


def test_without_a_repository_the_folder_of_tasks_is_shown_and_none_is_made(
    packages: ModuleType, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages.write(tmp_path / "tasks", ID)
    monkeypatch.setattr(frame, "source", lambda: FolderSource(tmp_path / "tasks"))
    assert [row.id for row in library.rows(sight())] == [ID]
    assert library.hold(ID, sight()).state is None
    assert library.folders([ID, "nothing"]) == {ID: tmp_path / "tasks" / ID}
    assert not (workspace / "tasks.git").exists()


def test_rows_are_of_the_head_with_stage_and_release(store: Store) -> None:
    released(store)
    rows = {row.id: row for row in library.rows(sight())}
    assert list(rows) == [ID]
    row = rows[ID]
    assert (row.title, row.version, row.release, row.stage) == ("Potassium, changed since", 3, "2", "unassigned")
    assert row.draft
    assert {one.id for one in library.rows(READER)} == {ID, "cardiology-closed"}


def test_a_task_is_held_as_it_stands_or_as_it_was_released(store: Store) -> None:
    released(store)
    now = library.hold(ID, OPEN)
    assert (now.task.meta.title, now.releases) == ("Potassium, changed since", ("2",))
    then = library.hold(ID, OPEN, "2")
    assert (then.task.meta.title, then.at) == ("Potassium, as it was released", "2")
    assert then.draw().now is not None
    for version in ("1", "3", "../x"):
        with pytest.raises(UsageError):
            library.hold(ID, OPEN, version)
    with pytest.raises(UsageError):
        library.hold("../tasks", OPEN)
    with pytest.raises(NotAllowed) as refused:
        library.hold("cardiology-closed", OPEN)
    assert "Closed" not in str(refused.value)
    assert library.hold("cardiology-closed", READER).task.meta.title == "Closed"


def test_what_is_run_is_what_was_shown(store: Store) -> None:
    released(store)
    now = library.folders([ID])[ID]
    then = library.folders([ID], released=True)[ID]
    assert now != then
    assert library.folder_task(now).agent_digest == library.hold(ID, OPEN).task.agent_digest
    assert library.folder_task(then).meta.title == "Potassium, as it was released"
    # Another version later leaves the folder of this one as it is.
    changed(store, 4, "Potassium, later")
    assert library.folder_task(now).meta.version == 3
    assert library.folders([ID])[ID] not in (now, then)
    assert library.folders(["cardiology-closed"], released=True) == {}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that a page would have started."""
    commands: list[list[str]] = []
    monkeypatch.setattr(jobs, "start", lambda place, command, **_: commands.append(list(command)))
    return commands


def pressed(test: AppTest, begins: str) -> None:
    next(button for button in test.button if button.label.startswith(begins)).click().run()


def test_run_says_which_versions_it_runs_and_starts_exactly_these(store: Store, started: list[list[str]]) -> None:
    released(store)
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    test.run()
    test.switch_page("review_ui/pages/run.py").run()
    assert test.multiselect[0].options == [f"{ID} · version 3, draft"]
    pressed(test, "Start")
    test.segmented_control(key="which-version").set_value("As released last").run()
    assert test.multiselect[0].options == [f"{ID} · version 2"]
    pressed(test, "Start")
    ran = [library.folder_task(Path(command[2])).meta.version for command in started]
    assert ran == [3, 2]


def test_the_task_page_offers_the_released_version(store: Store, said: Callable[[AppTest], str]) -> None:
    released(store)
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    test.run()
    test.switch_page("review_ui/pages/task.py")
    test.query_params["id"] = ID
    test.run()
    assert not test.exception
    assert "Potassium, changed since" in said(test)
    test.selectbox(key="v").select("2").run()
    assert "Potassium, as it was released" in said(test)
    assert "As it was released" in said(test)
