"""Every error that a user can meet, as one tree.

    WorkbenchError
    ├── PackageError        a task package is wrong            (exit 1)
    ├── ChartError          a FHIR chart cannot be read        (exit 1)
    ├── SearchError         a FHIR search is not valid         (HTTP 400)
    ├── DeclarationError    a checkpoint declaration is wrong  (exit 1)
    ├── UsageError          the command or call asks for what is not there (exit 2)
    ├── SettingsError       workbench.toml is wrong            (exit 2)
    ├── NotAllowed          the actor's roles do not cover the action (exit 2)
    ├── StoreError          the task repository refuses or cannot be reached (exit 3)
    └── EnvironmentFault    disk, server, kernel or Docker is not as needed (exit 3)

Each carries what is wrong, where, and what to do, and builds its own one-line message. None carries chart text:
`where` is a file, line, resource reference or key.
"""

from __future__ import annotations


class WorkbenchError(Exception):
    """What went wrong, where, and what to do about it.

    `what` and `remedy` are sentences without patient text; `where` is a place (file:line, reference, key), or "".
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        super().__init__(str(self))

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling, and errors cross process borders.
        return (_rebuild, (type(self), self.what, self.where, self.remedy))

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"{place}{self.what}{remedy}"


def _rebuild(kind: type[WorkbenchError], what: str, where: str, remedy: str) -> WorkbenchError:
    return kind(what, where=where, remedy=remedy)


class PackageError(WorkbenchError):
    """A task package, or one of its files, is not what the format asks for."""


class ChartError(WorkbenchError):
    """A chart cannot be read, or holds what is not valid FHIR R4."""


class SearchError(WorkbenchError):
    """A FHIR search names a parameter, modifier or value that does not exist; answered as HTTP 400."""


class DeclarationError(WorkbenchError):
    """A checkpoint declaration does not say anything that can be graded."""


class UsageError(WorkbenchError):
    """The command or call names something that is not there."""

    exit_code = 2


class SettingsError(WorkbenchError):
    """workbench.toml has a mistake."""

    exit_code = 2


class NotAllowed(WorkbenchError):
    """The acting person's roles do not allow the action."""

    exit_code = 2


class StoreError(WorkbenchError):
    """The task repository refuses a write, or cannot be reached."""

    exit_code = 3


class EnvironmentFault(WorkbenchError):
    """Something outside the workbench is not as needed: a disk, a server, the kernel, Docker."""

    exit_code = 3
