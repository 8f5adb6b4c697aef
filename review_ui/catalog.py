"""The tasks as a list to choose from: one row each, readable or not."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tasks.checking import missing_for_release
from tasks.errors import WorkbenchError
from tasks.package import FolderSource, Task, TaskMeta
from tasks.review.state import Stage
from tasks.structure import read as parsed


@dataclass(frozen=True)
class TaskRow:
    """What the list says about one task. `fault` is set, and the rest empty, where the package cannot be read.

    `stage`, `release`: where its review stands and what was released last, "" where it is in no repository yet.
    """

    id: str
    title: str = ""
    specialty: str = ""
    group: str = ""
    workflow: str = ""
    version: int = 0
    data_class: str = ""
    minutes: int | None = None
    authority: str = ""
    draft: bool = False
    fault: str = ""
    stage: Stage | Literal[""] = ""
    release: str = ""


def fingerprint(folder: Path) -> str:
    """A digest of (path, size, time of change) of every file of a package: another whenever it may have changed.

    One short text, because Streamlit hashes whatever a cached function is called with, element by element.
    """
    found = []
    stack = [str(folder)]
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    state = entry.stat(follow_symlinks=False)
                    found.append(f"{entry.path}\0{state.st_size}\0{state.st_mtime_ns}")
    return hashlib.blake2b("\n".join(sorted(found)).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def row(task: Task) -> TaskRow:
    """The row of a task that can be read."""
    return _row(task.meta, draft=task.is_draft)


def _row(meta: TaskMeta, *, draft: bool) -> TaskRow:
    return TaskRow(
        id=meta.id,
        title=meta.title,
        specialty=meta.specialty,
        group=meta.group,
        workflow=meta.workflow,
        version=meta.version,
        data_class=meta.data_class,
        minutes=meta.estimated_minutes,
        authority=(meta.context.authority or "") if meta.context else "",
        draft=draft,
    )


def written(task_id: str, files: Mapping[str, bytes]) -> TaskRow:
    """The row of a package's files; no chart is read for it. What is wrong with it where it cannot be read."""
    parts, faults = parsed(files, task_id)
    if parts is None:
        return TaskRow(id=task_id, fault=f"{faults[0].place}: {faults[0].message}" if faults else "it cannot be read")
    return _row(parts.meta, draft=bool(faults) or bool(missing_for_release(parts, files)))


def read(source: FolderSource, task_id: str) -> TaskRow:
    """The row of one task; what is wrong with it where it cannot be read."""
    try:
        return row(source.load(task_id))
    except WorkbenchError as error:
        return TaskRow(id=task_id, fault=str(error))


def filtered(
    rows: Iterable[TaskRow], *, search: str = "", specialty: str | None = None, workflow: str | None = None
) -> list[TaskRow]:
    """The rows that hold every word of `search` (in title, id, specialty or workflow) and the chosen specialty and
    workflow. A package that cannot be read is hidden only by a search that does not name it."""
    words = search.casefold().split()
    kept = []
    for each in rows:
        text = f"{each.title} {each.id} {each.specialty} {each.group} {each.workflow}".casefold()
        if not all(word in text for word in words):
            continue
        if not each.fault and specialty and each.specialty != specialty:
            continue
        if not each.fault and workflow and each.workflow != workflow:
            continue
        kept.append(each)
    return kept
