"""Who is who in a workspace, and who acts at a shell."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, StringConstraints

from tasks.errors import UsageError
from tasks.places import nearest, shown
from tasks.strict import Strict
from tasks.taxonomy import GROUPS, SPECIALTIES

#: A steward may see identified records; nobody else may.
Role = Literal["author", "reviewer", "pharmacist", "adjudicator", "lead", "researcher", "steward"]
ROLES: tuple[Role, ...] = get_args(Role)


def _known_specialty(name: str) -> str:
    if name not in SPECIALTIES:
        raise ValueError(f"{shown(name)} is not one of the 21 specialties.{nearest(name, SPECIALTIES)}")
    return name


def _address(email: str) -> str:
    name, at, host = email.partition("@")
    if not (name and at and host) or any(letter.isspace() for letter in email) or "@" in host:
        raise ValueError("not an e-mail address")
    return email


class Person(Strict):
    """One `[[person]]` of workbench.toml."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{1,39}$")]
    name: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    email: Annotated[str, AfterValidator(_address)]
    roles: tuple[Role, ...] = Field(min_length=1)
    specialties: tuple[Annotated[str, AfterValidator(_known_specialty)], ...] = ()
    conflicts: tuple[str, ...] = Field(default=(), description="ids of people and tasks that this person may not judge")
    demonstration: bool = Field(default=False, description="not a real person; written at first start")

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of specialties that this person covers, in the order of reports."""
        covered = {SPECIALTIES[specialty] for specialty in self.specialties}
        return tuple(group for group in GROUPS if group in covered)

    def has(self, role: Role) -> bool:
        """Whether the person holds this role."""
        return role in self.roles


def person(people: Iterable[Person], id: str) -> Person:
    """The person with this id. Raises UsageError, with the nearest id, where there is none."""
    known = {one.id: one for one in people}
    if id not in known:
        hint = nearest(id, known) or (f" There are: {', '.join(known)}." if known else " There is nobody.")
        raise UsageError(f"{shown(id)} is nobody in workbench.toml.", remedy=hint.strip())
    return known[id]


def acting(people: Iterable[Person], as_id: str | None = None, *, folder: Path | None = None) -> Person:
    """Who acts at a shell: `--as ID`, else whoever has git's user.email. The identity is not verified.

    `folder` is where git is asked (its own configuration counts); default the current one. Raises UsageError where
    that names nobody.
    """
    known = tuple(people)
    if as_id is not None:
        return person(known, as_id)
    email = git_email(folder)
    if not email:
        raise UsageError("nobody is named.", remedy="Say --as ID, or set git's user.email to yours in workbench.toml.")
    found = [one for one in known if one.email.casefold() == email.casefold()]
    if not found:
        raise UsageError(
            f"git's user.email {shown(email)} is nobody's in workbench.toml.",
            remedy="Say --as ID, or add a [[person]] with that e-mail.",
        )
    return found[0]


def git_email(folder: Path | None = None) -> str:
    """git's user.email as configured for the folder; "" where there is none, or no git."""
    git = shutil.which("git")
    if git is None:
        return ""
    asked = subprocess.run(
        [git, "config", "--get", "user.email"], cwd=folder, capture_output=True, text=True, check=False, timeout=10
    )
    return asked.stdout.strip()
