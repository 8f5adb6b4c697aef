"""What a page knows about who acts, carried to the job that acts for them.

A command acts as whoever --as says. Nobody checks that, so it is enough for open data only. A page with single sign-on
knows better: it starts its job with a voucher for this one errand. A voucher is a keyed hash; its key is made by the
server, readable by nobody else, and counts only while it belongs to whoever owns the workspace. No command makes a
voucher, and one that was read along is good for nothing else: the same errand twice is one submission.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import stat
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

from tasks.errors import EnvironmentFault
from tasks.workspace import Workspace

#: The job's environment variable that holds its voucher. A command line is read by everybody on the machine.
VARIABLE = "WORKBENCH_VOUCHER"
#: How long after it was made a voucher is taken: a job starts at once.
GOOD_FOR = timedelta(minutes=15)
_KEY = "vouching.key"


@dataclass(frozen=True)
class Errand:
    """What a job is sent to do: who, which command, on which task, as which submission, as which job."""

    person: str
    command: str
    task: str
    submission: str
    job: str


def vouch(workspace: Workspace, errand: Errand, *, now: datetime | None = None) -> str:
    """A voucher that the person of the errand was verified. Only a page calls it, which has verified them.

    Raises EnvironmentFault where no key can be kept that is this user's alone.
    """
    key = _key(workspace) or _made(workspace)
    if key is None:
        raise EnvironmentFault(
            "who acts cannot be carried to the job.",
            where=str(workspace.jobs / _KEY),
            remedy="The server has to own the workspace's folder; remove this file if it is somebody else's.",
        )
    issued = (now or datetime.now(UTC)).isoformat()
    return f"{issued} {_hash(key, errand, issued)}"


def taken() -> str:
    """The voucher that this process was started with, taken out of its environment: no child inherits it."""
    return os.environ.pop(VARIABLE, "")


def vouched(workspace: Workspace, errand: Errand, voucher: str, *, now: datetime | None = None) -> bool:
    """Whether the voucher says that the person of this errand was verified."""
    issued, _, given = voucher.partition(" ")
    key = _key(workspace) if given else None
    if key is None or not hmac.compare_digest(_hash(key, errand, issued).encode(), given.encode()):
        return False
    age = (now or datetime.now(UTC)) - datetime.fromisoformat(issued)
    return timedelta(0) <= age <= GOOD_FOR


def _hash(key: bytes, errand: Errand, issued: str) -> str:
    return hmac.new(key, json.dumps([*astuple(errand), issued]).encode(), sha256).hexdigest()


def _key(workspace: Workspace) -> bytes | None:
    """The key, if it is a plain file that its owner alone can read, and the owner is the workspace's."""
    try:
        descriptor = os.open(workspace.jobs / _KEY, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        mine = stat.S_ISREG(found.st_mode) and not found.st_mode & 0o077
        if not mine or found.st_uid != workspace.path.stat().st_uid:
            return None
        key = file.read(64)
    return key if len(key) == 32 else None


def _made(workspace: Workspace) -> bytes | None:
    """A key of this server's, made whole or not at all; another's that was there first counts."""
    workspace.jobs.mkdir(parents=True, exist_ok=True)
    path: Path = workspace.jobs / _KEY
    new = path.with_name(f"{_KEY}.{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(secrets.token_bytes(32))
        try:
            os.link(new, path)
        finally:
            new.unlink()
    except OSError:
        pass  # it is there already, or cannot be: what is read decides
    return _key(workspace)
