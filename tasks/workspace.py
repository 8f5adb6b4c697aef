"""The workspace: one git-ignored folder with everything that is not code (design 3)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.errors import EnvironmentFault

if TYPE_CHECKING:
    from tasks.settings import Settings

VARIABLE = "WORKBENCH_WORKSPACE"


@dataclass(frozen=True)
class Workspace:
    """A workspace folder. Its parts are made when something is first put there; finding it writes nothing."""

    path: Path

    @classmethod
    def find(cls) -> Workspace:
        """The folder that WORKBENCH_WORKSPACE names, else ./workspace."""
        return cls(Path(os.environ.get(VARIABLE) or "workspace").absolute())

    @property
    def runs(self) -> Path:
        """Results of batches, append-only."""
        return self.path / "runs"

    @property
    def cache(self) -> Path:
        """What can be deleted at any time."""
        return self.path / "cache"

    @property
    def packages(self) -> Path:
        """Versions of tasks as they were run, a folder each, by content; the plans of batches name them."""
        return self.path / "packages"

    @property
    def jobs(self) -> Path:
        """Logs and progress of background jobs, a folder each."""
        return self.path / "jobs"

    @property
    def deid(self) -> Path:
        """De-identification projects."""
        return self.path / "deid"

    @property
    def state_db(self) -> Path:
        """SQLite: drafts, sealed submissions, jobs, last-seen marks."""
        return self.path / "state.db"

    @property
    def tasks_git(self) -> Path:
        """The bare repository of task packages."""
        return self.path / "tasks.git"

    @property
    def settings_file(self) -> Path:
        """workbench.toml."""
        return self.path / "workbench.toml"

    @property
    def settings(self) -> Settings:
        """What workbench.toml says; a first start writes it, with people for demonstration.

        Raises SettingsError for a mistake in it, EnvironmentFault where it cannot be read or written.
        """
        from tasks import settings
        from tasks.stored import write_whole

        if not self.settings_file.exists():
            self.make()
            write_whole(self.settings_file, settings.FIRST)
        return settings.read(self.settings_file)

    def make(self) -> None:
        """Make the folder. Raises EnvironmentFault where that cannot be done."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EnvironmentFault(
                f"the workspace cannot be made: {error.strerror}.",
                where=str(self.path),
                remedy=f"Name another folder with {VARIABLE}.",
            ) from None
