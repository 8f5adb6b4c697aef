"""The task repository of a workspace: made from the bundled tasks at first start, and kept up with newer ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from tasks.package import SUITE, FolderSource, load
from tasks.review.events import FILE, Event, Imported, dump_events, new_id, package_hash, parse_events
from tasks.store import WORKBENCH, Store, Submission, View
from tasks.workspace import Workspace

#: Who wrote the bundled tasks; nobody of a workspace.
BUNDLED = "workbench"


@dataclass(frozen=True)
class TakenOver:
    """What became of newer bundled tasks: `updated` and `added` by a commit, `kept` because they were changed here."""

    updated: tuple[str, ...]
    added: tuple[str, ...]
    kept: tuple[str, ...]


def open_store(workspace: Workspace, *, suite: FolderSource = SUITE) -> Store:
    """The workspace's task repository, made from the bundled tasks where there is none yet."""
    if workspace.tasks_git.exists():
        return Store(workspace.tasks_git)
    return Store.create(workspace.tasks_git, [_import(id, suite) for id in suite.list()])


def take_over(store: Store, *, suite: FolderSource = SUITE) -> TakenOver:
    """Bring in bundled tasks that are newer than what the store was given: a task untouched there is updated by a
    commit, a changed one is only listed."""
    updated: list[str] = []
    added: list[str] = []
    kept: list[str] = []

    def build(view: View) -> Sequence[Submission]:
        for names in (updated, added, kept):
            names.clear()
        present = set(view.tasks())
        submissions = []
        for id in suite.list():
            if id not in present:
                added.append(id)
                submissions.append(_import(id, suite))
                continue
            shipped = package_hash(suite.files(id))
            events = _events(view, id)
            given = [event.package for event in events if isinstance(event, Imported)]
            if shipped in given:
                continue
            files = view.files(id)
            if given and package_hash(files) == given[-1]:
                updated.append(id)
                submissions.append(_update(id, suite, files, events))
            else:
                kept.append(id)
        return submissions

    store.submit(build)
    return TakenOver(tuple(updated), tuple(added), tuple(kept))


def _events(view: View, id: str) -> tuple[Event, ...]:
    return parse_events(view.read(f"{id}/{FILE}") or b"", where=f"{id}/{FILE}")


def _import(id: str, suite: FolderSource) -> Submission:
    files = dict(suite.files(id))
    title = load(files, where=id).meta.title
    event = _imported(id, files, 0)
    changes = {f"{id}/{path}": data for path, data in files.items()} | {f"{id}/{FILE}": dump_events([event])}
    return Submission(WORKBENCH, f"Import {id}: {title}", changes, _trailers(id, event))


def _update(id: str, suite: FolderSource, old: Mapping[str, bytes], events: Sequence[Event]) -> Submission:
    new = dict(suite.files(id))
    event = _imported(id, new, max((one.round for one in events), default=0))
    changes: dict[str, bytes | None] = {
        f"{id}/{path}": new.get(path)
        for path in old.keys() | new.keys()
        if not path.startswith("reviews/") and old.get(path) != new.get(path)
    }
    changes[f"{id}/{FILE}"] = old.get(FILE, b"") + dump_events([event])
    return Submission(WORKBENCH, f"Update {id} to bundled version {event.version}", changes, _trailers(id, event))


def _imported(id: str, files: Mapping[str, bytes], round: int) -> Imported:
    return Imported(
        submission=new_id(),
        task=id,
        actor="workbench",
        role="workbench",
        at=datetime.now(UTC),
        round=round,
        package=package_hash(files),
        version=str(load(files, where=id).meta.version),
        makers=(BUNDLED,),
    )


def _trailers(id: str, event: Event) -> dict[str, str]:
    return {"Task": id, "Review-Id": event.submission}
