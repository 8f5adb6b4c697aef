"""Where a batch's tasks are: in the folders that its plan names, else in the bundled suite."""

from __future__ import annotations

from pathlib import Path

from tasks.errors import UsageError
from tasks.package import SUITE, FolderSource, Task
from tasks.stored import Batch


class PlannedSource:
    """The tasks of a batch as they stand now in the folders that they were planned from; a TaskSource.

    A folder that is gone (another machine, a moved checkout) gives way to the bundled task of the same id; whether it
    is still the same task is a matter of its digests.
    """

    def __init__(self, batch: Batch) -> None:
        planned = [line for line in batch.plan() if line.get("kind") == "planned"]
        self._folders = {str(line["task"]): Path(str(line["folder"])) for line in planned if line.get("folder")}

    def list(self) -> list[str]:
        """The ids, sorted."""
        return sorted(self._folders)

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
