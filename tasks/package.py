"""A task package as an object: one folder of files, read strictly (design 4; docs/task-package.md has the format).

`load` reads everything but the chart's resources and stops at the first fault; `faults` (tasks.checking) reads all
and lists every fault with file and line. Nothing of a package is ever imported or run here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tasks import digests
from tasks.checking import contradictions, faults, missing_for_release, placed
from tasks.declarations import Checkpoint
from tasks.errors import EnvironmentFault, PackageError, UsageError
from tasks.folders import FolderFiles
from tasks.manifest import Context, Deliverable, Limits, Provenance, TaskMeta
from tasks.places import Fault
from tasks.plans import Action, Plan
from tasks.structure import REQUIRED, Parts, read

if TYPE_CHECKING:
    from tasks.fhir.chart import Chart

__all__ = [
    "SUITE", "Action", "Checkpoint", "Context", "Deliverable", "Fault", "FolderSource", "Limits", "Plan", "Provenance",
    "Task", "TaskMeta", "TaskSource", "faults", "load",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Task:
    """One task. To know whether two are the same, compare their digests."""

    id: str
    meta: TaskMeta
    instruction: str = field(repr=False)
    checkpoints: tuple[Checkpoint, ...] = field(repr=False)
    code: str | None = field(repr=False)
    plans: Mapping[str, Plan] = field(repr=False)
    examples: Mapping[str, bytes] = field(repr=False)
    files: Mapping[str, bytes] = field(repr=False)

    @cached_property
    def chart(self) -> Chart:
        """The chart, indexed when first asked for and kept in the workspace's cache. Raises ChartError."""
        from tasks.fhir.chart import Chart
        from tasks.workspace import Workspace

        return Chart.open(self.chart_files, cache=Workspace.find().cache)

    @property
    def chart_files(self) -> Mapping[str, bytes]:
        """The chart's files by name, e.g. {"Condition.ndjson": bytes}; read when asked for."""
        return Below(self.files, "chart/")

    @cached_property
    def agent_digest(self) -> str:
        """Equal = a stored trial may be graded again instead of run again."""
        return digests.agent_digest(self.files, self.meta)

    @cached_property
    def grade_digest(self) -> str:
        """Equal, with equal agent_digest and grader version = a stored verdict still holds."""
        return digests.grade_digest(self.files)

    @property
    def is_draft(self) -> bool:
        """Whether a release still needs something. A result on a draft is marked so."""
        return bool(self.missing_for_release())

    def missing_for_release(self) -> list[str]:
        """What a release still needs, one sentence each; reads no chart."""
        return missing_for_release(self.parts, self.files)

    @property
    def parts(self) -> Parts:
        """The parsed files, as the checks want them."""
        return Parts(self.meta, self.instruction, self.checkpoints, self.code, self.plans, self.examples)


@dataclass(frozen=True)
class Below(Mapping[str, bytes]):
    """The files of `whole` under a prefix, named from there; nothing is read before it is asked for."""

    whole: Mapping[str, bytes]
    prefix: str

    def __getitem__(self, name: str) -> bytes:
        return self.whole[self.prefix + name]

    def __iter__(self) -> Iterator[str]:
        return (path.removeprefix(self.prefix) for path in self.whole if path.startswith(self.prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def load(files: Mapping[str, bytes], *, where: str) -> Task:
    """The task in `files` ({path: bytes}). `where` names the folder in messages.

    Raises PackageError for the first fault of any file but the chart's, whose resources are read at `Task.chart` and
    checked by `faults`.
    """
    parts, found = read(files, where)
    if parts is not None and not found:
        found = placed(contradictions(parts, files), where)
    if found or parts is None:
        raise PackageError(found[0].message, where=found[0].place)
    kept = files if isinstance(files, FolderFiles) else dict(files)
    return Task(
        id=parts.meta.id,
        meta=parts.meta,
        instruction=parts.instruction,
        checkpoints=parts.checkpoints,
        code=parts.code,
        plans=parts.plans,
        examples=parts.examples,
        files=kept,
    )


class TaskSource(Protocol):
    """Where tasks come from: a directory, or the task repository at a commit."""

    def list(self) -> list[str]: ...

    def load(self, id: str, at: str | None = None) -> Task: ...


class FolderSource:
    """A directory of packages, one folder a task."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)

    def list(self) -> list[str]:
        """The ids, sorted: folders that hold a task.toml or an instruction.md, so that a package that lost one is seen.

        Reads no file. Raises EnvironmentFault where the folder cannot be read.
        """
        try:
            with os.scandir(self.root) as entries:
                return sorted(
                    entry.name
                    for entry in entries
                    if not entry.name.startswith((".", "__"))
                    and entry.is_dir()
                    and any((self.root / entry.name / name).is_file() for name in REQUIRED)
                )
        except OSError as error:
            raise EnvironmentFault(
                f"the folder of tasks cannot be read: {error.strerror}.", where=str(self.root), remedy="Check the path."
            ) from None

    def files(self, id: str) -> FolderFiles:
        """The task's files, listed now. Raises UsageError where there is no such task."""
        folder = self.root / id
        # An id that is not one folder's name must not reach another place on the disk.
        if id != folder.name or id in (".", "..") or not folder.is_dir():
            known = self.list()
            raise UsageError(
                f"there is no task '{id}' in {self.root}.",
                remedy=f"There are: {', '.join(known)}." if known else "The folder holds no task.",
            )
        return FolderFiles(folder)

    def load(self, id: str, at: str | None = None) -> Task:
        """The task as it stands on the disk. Raises UsageError (no such task, or `at`), PackageError."""
        if at is not None:
            raise UsageError("a folder has no history.", where=str(self.root), remedy="Leave `at` out.")
        return load(self.files(id), where=str(self.root / id))


#: The tasks that ship with the workbench.
SUITE = FolderSource(Path(__file__).resolve().parent / "suite")
