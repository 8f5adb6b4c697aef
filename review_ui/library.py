"""The tasks as they stand: at the head of the workspace's repository, or at a release; in the folder of bundled tasks
where there is no repository yet. What the pages list, show and run comes from here, so that it is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from authoring.library import checked_out
from review_ui import catalog, frame
from review_ui.catalog import TaskRow, fingerprint
from review_ui.chartview import ChartView
from review_ui.kept import kept
from review_ui.reviewing import sitting
from review_ui.sight import Sight
from tasks.errors import UsageError
from tasks.package import FolderSource, Task
from tasks.review.state import ReviewState
from tasks.store import View


@dataclass(frozen=True)
class Held:
    """One version of a task. `state`: its review at the head of the repository, None where it is in none yet; `at`: the
    release that this is, "" = as it stands now; `draw`: its chart at its clock, which raises UsageError without one."""

    task: Task
    state: ReviewState | None
    draw: Callable[[], ChartView]
    at: str = ""

    @property
    def releases(self) -> tuple[str, ...]:
        """The released versions, newest first."""
        return tuple(one.version for one in reversed(self.state.releases)) if self.state else ()


def in_repository() -> bool:
    """Whether tasks are read from the workspace's repository."""
    return frame.workspace().tasks_git.exists()


# ---- the folder of bundled tasks -------------------------------------------------------------------------------------


@kept(256)
def _from_folder(root: str, task_id: str, state: str) -> Task:
    return FolderSource(Path(root)).load(task_id)


@kept(2000)
def _folder_row(root: str, task_id: str, state: str) -> TaskRow:
    return catalog.read(FolderSource(Path(root)), task_id)


@kept(16)
def _folder_chart(root: str, task_id: str, state: str) -> ChartView:
    found = _from_folder(root, task_id, state)
    if found.meta.context is None:
        raise UsageError("this draft names no patient.", where=task_id)
    return ChartView(found.chart, found.meta.context.patient, found.meta.context.now)


def folder_task(folder: Path) -> Task:
    """The task in a folder, read once for as long as its files stay the same. Raises PackageError."""
    return _from_folder(str(folder.parent), folder.name, fingerprint(folder))


# ---- the repository --------------------------------------------------------------------------------------------------


class _Blobs(Mapping[str, bytes]):
    """The files of one task at a view, each read when it is asked for: a row of a list needs no chart."""

    def __init__(self, view: View, task_id: str) -> None:
        self._view = view
        prefix = f"{task_id}/"
        self._paths = {
            path[len(prefix) :]: blob
            for path, blob in view.paths(task_id).items()
            if not path.startswith(f"{prefix}reviews/")
        }

    def __getitem__(self, path: str) -> bytes:
        return self._view.blob(self._paths[path])

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


@kept(8000)
def _repository_row(task_id: str, package: str, _view: View) -> TaskRow:
    return catalog.written(task_id, _Blobs(_view, task_id))


def _listed(view: View) -> dict[str, str]:
    """{task: a hash of what its package is} at a view, of one listing for all."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path, blob in view.paths().items():
        task_id, _, rest = path.partition("/")
        if not rest.startswith("reviews/"):
            found.setdefault(task_id, []).append((rest, blob))
    return {task_id: sha256(repr(sorted(rows)).encode()).hexdigest() for task_id, rows in sorted(found.items())}


@contextmanager
def _release(state: ReviewState, version: str) -> Iterator[View]:
    """The repository as it was when this version was released. Raises UsageError where it never was."""
    tags = sitting.store().tags()
    tag = next((one.tag for one in reversed(state.releases) if one.version == version), "")
    if tag not in tags:
        raise UsageError("this version was never released.", remedy="Choose one on the Tasks page.")
    with sitting.store().at(tags[tag]) as view:
        yield view


# ---- what pages ask for ----------------------------------------------------------------------------------------------


def rows(sight: Sight) -> list[TaskRow]:
    """A row for every task that may be read."""
    if not in_repository():
        place = frame.source()
        found = [_folder_row(str(place.root), id, fingerprint(place.root / id)) for id in place.list()]
        return [row for row in found if row.fault or sight.reads(row.data_class)]
    states = {one.task_id: one.state for one in sitting.every()}
    made = []
    with sitting.store().at() as view:
        for id, package in _listed(view).items():
            row, state = _repository_row(id, package, view), states.get(id)
            if not sight.reads(row.data_class):
                continue
            releases = state.releases if state else ()
            made.append(
                replace(
                    row,
                    stage=state.stage if state else "",
                    release=releases[-1].version if releases else "",
                )
            )
    return made


def closed(sight: Sight) -> bool:
    """Whether there are tasks that this session may not read for their data class."""
    if in_repository():
        return any(not sight.reads(data_class) for data_class in sight.classes.values())
    place = frame.source()
    found = [_folder_row(str(place.root), id, fingerprint(place.root / id)) for id in place.list()]
    return any(not row.fault and not sight.reads(row.data_class) for row in found)


def hold(task_id: str, sight: Sight, version: str = "") -> Held:
    """A task: as it stands now, or a version that was released. Raises UsageError where there is none, NotAllowed."""
    if not in_repository():
        place = frame.source()
        if version or task_id not in place.list():
            raise UsageError("there is no task of that id.", remedy="Choose one on the Tasks page.")
        state = fingerprint(place.root / task_id)
        found = _from_folder(str(place.root), task_id, state)
        sight.require(found.meta.data_class)
        return Held(found, None, partial(_folder_chart, str(place.root), task_id, state))
    with sitting.store().at() as view:
        now = sitting.standing(task_id, view)
    # By the class that it has now, also where an older version had another.
    sight.require(now.meta.data_class)
    if not version:
        return Held(now.task, now.state, lambda: now.chart)
    with _release(now.state, version) as view:
        then = sitting.standing(task_id, view)
    sight.require(then.meta.data_class)
    return Held(then.task, now.state, lambda: then.chart, version)


def folders(ids: Iterable[str], *, released: bool = False) -> dict[str, Path]:
    """{task: a folder that a run can read}; an id that is not there, or was never released, is left out.

    Of the repository each is laid out once by its content, so that a batch names exactly what it ran.
    """
    wanted = list(dict.fromkeys(ids))
    if not in_repository():
        place = frame.source()
        known = set(place.list())
        return {} if released else {id: place.root / id for id in wanted if id in known}
    root = frame.workspace().packages
    if not released:
        with sitting.store().at() as view:
            known = {path.partition("/")[0] for path in view.paths()}
            return {id: checked_out(view, id, root) for id in wanted if id in known}
    made = {}
    states = {one.task_id: one.state for one in sitting.every()}
    for id in wanted:
        state = states.get(id)
        if state and state.releases:
            with _release(state, state.releases[-1].version) as view:
                made[id] = checked_out(view, id, root)
    return made
