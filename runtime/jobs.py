"""Background jobs: our own commands as subprocesses that outlive the page, the reload and the server (design 9).

    job = start(workspace, ["runtime", "run", "--all", "--agent", "noop", "--batch", "b"], about={"batch": "b"})
    status(workspace, job)        # running, ended, failed, stopped or lost, with the last progress line
    stop(workspace, job.id)       # as Ctrl-C: what runs ends between two steps

A job is a row of state.db and a folder jobs/<id>/ (progress.jsonl, log, lock). Whether it runs is told by a lock that
its process holds from birth: the open lock file is handed down, so no process id can be mistaken for another's, and a
killed job is known as lost at once. What it did is in its progress lines; pages only read.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from tasks.errors import EnvironmentFault, UsageError
from tasks.progress import ProgressLine, read
from tasks.statedb import StateDb
from tasks.workspace import VARIABLE, Workspace

State = Literal["running", "ended", "failed", "stopped", "lost"]

#: The folder that the packages stand in, so that a job finds them from wherever the server was started.
_ROOT = Path(__file__).resolve().parent.parent
#: In the job's folder: the exit code of its command, where it ended by itself.
EXIT = "exit"
_COLUMNS = "id, command, about, person, started_at, pid, stop_asked"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS job (
    id TEXT PRIMARY KEY, command TEXT NOT NULL, about TEXT NOT NULL, person TEXT NOT NULL, started_at TEXT NOT NULL,
    pid INTEGER, stop_asked TEXT
)
"""
#: Children of this process, kept so that one that ended is waited for and leaves no zombie.
_children: dict[str, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True)
class Job:
    """One job as it was started. `about` says what it works on, e.g. {"batch": "2026-03-14-a"}."""

    id: str
    command: tuple[str, ...]
    about: Mapping[str, str]
    person: str
    started_at: datetime
    pid: int | None
    stop_asked: datetime | None


@dataclass(frozen=True)
class Status:
    """Where a job stands. `last` is its latest progress line; `message` what it said when it failed."""

    job: Job
    state: State
    last: ProgressLine | None
    message: str


def start(
    workspace: Workspace,
    arguments: Sequence[str],
    *,
    about: Mapping[str, str] | None = None,
    person: str = "",
    key: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Job:
    """Start `python -m <arguments> --job ID` and return at once.

    `key`: an id minted when a page was drawn; a second start with the same key returns the first job, so that a double
    click starts one. `environment`: variables for this process alone, kept nowhere. Raises UsageError for a key that is
    no id, EnvironmentFault where nothing can be started.
    """
    id = key or secrets.token_hex(8)
    if not id.isascii() or not id.isalnum() or len(id) > 32:
        raise UsageError("a job's key is letters and digits, at most 32.", where="jobs")
    command = (*arguments, "--job", id)
    now = datetime.now(UTC)
    with _table(workspace, write=True) as db:
        row = (id, json.dumps(command), json.dumps(dict(about or {})), person, now.isoformat(), None, None)
        if db.execute("INSERT OR IGNORE INTO job VALUES (?,?,?,?,?,?,?)", row).rowcount == 0:
            return _job(db.execute(f"SELECT {_COLUMNS} FROM job WHERE id=?", (id,)).fetchone())  # noqa: S608
        # Inside the transaction: a second start with this key waits here, and then finds the job with its process.
        pid = _spawn(workspace, id, command, environment or {})
        db.execute("UPDATE job SET pid=? WHERE id=?", (pid, id))
    return Job(id, command, dict(about or {}), person, now, pid, None)


def _spawn(workspace: Workspace, id: str, command: Sequence[str], more: Mapping[str, str]) -> int:
    folder = workspace.jobs / id
    environment = {**os.environ, **more} | {
        VARIABLE: str(workspace.path),
        "PYTHONPATH": os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with (folder / "log").open("ab") as log:
                child = subprocess.Popen(
                    [sys.executable, "-m", "runtime.job_process", *command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    pass_fds=(lock,),
                    # Ctrl-C at the server's shell must not reach the job.
                    start_new_session=True,
                )
        finally:
            os.close(lock)
    except OSError as error:
        raise EnvironmentFault(
            f"the job cannot be started: {error.strerror}.", where=str(folder), remedy="Check the disk and its limits."
        ) from None
    _children[id] = child
    return child.pid


def known(workspace: Workspace, id: str) -> bool:
    """Whether a job of that id was started."""
    with _table(workspace) as db:
        return db.execute("SELECT 1 FROM job WHERE id=?", (id,)).fetchone() is not None


def find(workspace: Workspace, id: str) -> Job:
    """The job of that id. Raises UsageError where there is none."""
    with _table(workspace) as db:
        row = db.execute(f"SELECT {_COLUMNS} FROM job WHERE id=?", (id,)).fetchone()  # noqa: S608
    if row is None:
        raise UsageError("there is no such job.", where=id[:40], remedy="Look at the list of jobs.")
    return _job(row)


def jobs(workspace: Workspace, *, about: Mapping[str, str] | None = None) -> list[Job]:
    """The jobs, newest first; with `about`, those that work on it."""
    if not workspace.state_db.exists():
        return []
    with _table(workspace) as db:
        rows = db.execute(f"SELECT {_COLUMNS} FROM job ORDER BY started_at DESC, id").fetchall()  # noqa: S608
    found = [_job(row) for row in rows]
    wanted = dict(about or {})
    return [job for job in found if all(job.about.get(name) == value for name, value in wanted.items())]


def status(workspace: Workspace, job: Job) -> Status:
    """Where the job stands now, read from its lock and its progress lines."""
    folder = workspace.jobs / job.id
    alive = is_alive(workspace, job.id)
    lines = read(folder)
    last = lines[-1] if lines else None
    state: State
    if alive:
        state = "running"
    elif last is not None and last.kind == "ended":
        state = "ended"
    elif job.stop_asked is not None:
        state = "stopped"
    else:
        state = "failed" if last is not None and last.kind == "failed" else "failed" if _log(folder) else "lost"
    message = ""
    if state == "failed":
        message = last.what if last is not None and last.kind == "failed" else _said(folder)
    return Status(job, state, last, message)


def is_alive(workspace: Workspace, id: str) -> bool:
    """Whether the job's process still holds its lock."""
    child = _children.get(id)
    if child is not None and child.poll() is not None:
        _children.pop(id, None)
    try:
        descriptor = os.open(workspace.jobs / id / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def stop(workspace: Workspace, id: str) -> bool:
    """Ask the job to stop, as Ctrl-C does. False where it does not run. Asking twice asks once."""
    job = find(workspace, id)
    if job.pid is None or not is_alive(workspace, id):
        return False
    with _table(workspace, write=True) as db:
        first = db.execute(
            "UPDATE job SET stop_asked=? WHERE id=? AND stop_asked IS NULL", (datetime.now(UTC).isoformat(), id)
        ).rowcount
    if first:
        with suppress(ProcessLookupError):
            os.kill(job.pid, signal.SIGTERM)
    return True


def _said(folder: Path) -> str:
    """The one message of a command that ended by itself. What another one left in its log is nobody's message, and may
    quote the chart."""
    try:
        ended = (folder / EXIT).read_text("ascii").strip() in ("1", "2", "3")
    except OSError:
        ended = False
    return _log(folder) if ended else "It ended without saying why."


def _log(folder: Path) -> str:
    """The last line that the command said, which is its one message; "" for none."""
    try:
        with (folder / "log").open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - 4096))
            lines = log.read().decode("utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""


@contextmanager
def _table(workspace: Workspace, *, write: bool = False) -> Iterator[sqlite3.Connection]:
    with StateDb(workspace.state_db).connect(write=write) as db:
        db.execute(_SCHEMA)
        yield db


def _job(row: tuple[str, str, str, str, str, int | None, str | None]) -> Job:
    id, command, about, person, started_at, pid, stop_asked = row
    return Job(
        id=id,
        command=tuple(json.loads(command)),
        about=json.loads(about),
        person=person,
        started_at=datetime.fromisoformat(started_at),
        pid=pid,
        stop_asked=datetime.fromisoformat(stop_asked) if stop_asked else None,
    )
