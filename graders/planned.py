"""Where a batch's tasks are: in the folders that its plan names, else in the bundled suite."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from tasks.errors import UsageError
from tasks.package import SUITE, FolderSource, Task, TaskSource
from tasks.stored import Batch


class PlannedSource:
    """The tasks of a batch as they stand now in the folders that they were planned from; a TaskSource.

    A folder that is gone (another machine, a moved checkout) gives way to the bundled task of the same id; whether it
    is still the same task is a matter of its digests.
    """

    def __init__(self, batch: Batch) -> None:
        self._folders = {line["task"]: Path(str(line["folder"])) for line in batch.planned() if line.get("folder")}

    def list(self) -> list[str]:
        """The ids, sorted."""
        return sorted(self._folders)

    def folder(self, id: str) -> Path:
        """The folder that the task is loaded from, whether it is there or not."""
        folder = self._folders.get(id)
        return SUITE.root / id if folder is None or not (folder / "task.toml").is_file() else folder

    def load(self, id: str, at: str | None = None) -> Task:
        """The task as it stands now. Raises UsageError where there is none, PackageError where it cannot be read."""
        folder = self._folders.get(id)
        if folder is None or not (folder / "task.toml").is_file():
            return SUITE.load(id, at)
        task = FolderSource(folder.parent).load(folder.name, at)
        if task.id != id:
            raise UsageError(
                f"the folder holds the task {task.id}.", where=str(folder), remedy="Name another with --suite."
            )
        return task


def folder_state(source: TaskSource, id: str) -> str | None:
    """A hash of every file's name, size, times and inode in the folder that a task is loaded from: as long as it is the
    same, so is the task, and nothing need be read. None where the task is not in a folder."""
    if isinstance(source, PlannedSource):
        root = source.folder(id)
    elif isinstance(source, FolderSource):
        root = source.root / id
    else:
        return None
    found: list[tuple[object, ...]] = []
    folders = [root]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(Path(entry.path))
                    else:
                        state = entry.stat(follow_symlinks=False)
                        found.append((entry.path, state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino))
        except OSError as error:
            found.append((str(root), error.errno))
    return hashlib.sha256(repr(sorted(found, key=repr)).encode()).hexdigest()
