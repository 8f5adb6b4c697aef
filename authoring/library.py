"""The task repository of a workspace: made from the bundled tasks at first start, and kept up with newer ones."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from tasks.errors import EnvironmentFault, UsageError
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


def checked_out(view: View, id: str, root: Path) -> Path:
    """The task as it stands at the view, as a folder that a run can read: <root>/<content>/<id>.

    Named by its content, so that it is written once, never changed, and whole or not there. Reviews are left out.
    Raises UsageError where there is no such task, EnvironmentFault where it cannot be written.
    """
    prefix = f"{id}/reviews/"
    blobs = {path: blob for path, blob in view.paths(id).items() if not path.startswith(prefix)} if id else {}
    if not blobs:
        raise UsageError(f"there is no task '{id}'.")
    place = root / sha256(repr(sorted(blobs.items())).encode()).hexdigest()[:32]
    if (place / id).is_dir():
        return place / id
    try:
        root.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=".new-", dir=root))
        beside.chmod(0o755)
        try:
            for path, blob in blobs.items():
                file = beside / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(view.blob(blob))
            with suppress(OSError):  # somebody else was first, with the same bytes
                beside.rename(place)
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        if not (place / id).is_dir():
            raise OSError("it could not be moved into its place")
    except OSError as failure:
        raise EnvironmentFault(
            f"the task cannot be laid out for a run: {failure.strerror or failure}.", where=str(root)
        ) from None
    return place / id


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
