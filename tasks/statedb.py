"""state.db: what is not yet, or never, part of a task's history. Drafts, sealed submissions, marks, active minutes.

SQLite in WAL mode with full synchronisation: a draft that was answered with "saved" survives a killed process. Every
call opens its own connection, so that threads and processes mix freely.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from tasks.errors import EnvironmentFault

#: Minutes without a sign of life after which time no longer counts as active.
IDLE_MINUTES = 5
_WAIT_SECONDS = 30.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS draft (
    person TEXT NOT NULL, task TEXT NOT NULL, round INTEGER NOT NULL, item TEXT NOT NULL,
    value TEXT NOT NULL, saved_at TEXT NOT NULL, revision INTEGER NOT NULL,
    PRIMARY KEY (person, task, round, item)
);
CREATE TABLE IF NOT EXISTS sealed (
    submission TEXT PRIMARY KEY, person TEXT NOT NULL, task TEXT NOT NULL, round INTEGER NOT NULL, kind TEXT NOT NULL,
    events TEXT NOT NULL, sealed_at TEXT NOT NULL, opened INTEGER NOT NULL DEFAULT 0,
    UNIQUE (person, task, round, kind)
);
CREATE TABLE IF NOT EXISTS seen (
    person TEXT NOT NULL, task TEXT NOT NULL, mark TEXT NOT NULL, at TEXT NOT NULL, PRIMARY KEY (person, task)
);
CREATE TABLE IF NOT EXISTS minute (
    person TEXT NOT NULL, task TEXT NOT NULL, round INTEGER NOT NULL, minute INTEGER NOT NULL,
    PRIMARY KEY (person, task, round, minute)
);
"""


@dataclass(frozen=True)
class Draft:
    """Something a person was writing. `revision` counts its savings, so that an older one never overwrites a newer."""

    item: str
    value: str
    saved_at: datetime
    revision: int


@dataclass(frozen=True)
class Sealed:
    """A stage-1 submission that nobody else may see yet: its events as the lines that will be appended."""

    submission: str
    person: str
    task: str
    round: int
    kind: str
    events: bytes
    sealed_at: datetime
    opened: bool


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Bring the file into WAL mode. For this alone SQLite does not wait: of several that open a new file at once, one
    may hear that it is locked."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as failure:
            if failure.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


class StateDb:
    """The database file. Raises EnvironmentFault where it cannot be read or written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def connect(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection of its own; with `write` one transaction that takes effect whole or not at all."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=_WAIT_SECONDS, isolation_level=None)
        except (sqlite3.Error, OSError) as failure:
            raise self._fault(failure) from None
        try:
            _write_ahead(connection)
            connection.execute("PRAGMA synchronous=FULL")
            connection.executescript(_SCHEMA)
            if write:
                connection.execute("BEGIN IMMEDIATE")
            yield connection
            if write:
                connection.execute("COMMIT")
        except sqlite3.Error as failure:
            raise self._fault(failure) from None
        finally:
            # Closing without COMMIT rolls back.
            connection.close()

    def _fault(self, failure: Exception) -> EnvironmentFault:
        return EnvironmentFault(
            f"state.db cannot be used ({type(failure).__name__}).",
            where=str(self.path),
            remedy="Check the disk and its permissions; what was saved before is still there.",
        )

    # Drafts

    def save_draft(self, person: str, task: str, round: int, item: str, value: str) -> Draft:
        """Keep what a person is writing; the saved draft as it was read back."""
        with self.connect(write=True) as db:
            db.execute(
                "INSERT INTO draft VALUES (?,?,?,?,?,?,1) ON CONFLICT (person, task, round, item) DO UPDATE SET "
                "value = excluded.value, saved_at = excluded.saved_at, revision = revision + 1",
                (person, task, round, item, value, _now()),
            )
            row = db.execute(
                "SELECT item, value, saved_at, revision FROM draft WHERE person=? AND task=? AND round=? AND item=?",
                (person, task, round, item),
            ).fetchone()
        return _draft(row)

    def drafts(self, person: str, task: str, round: int) -> dict[str, Draft]:
        """{item: draft} of one person on one task in one round, in the order in which they were saved."""
        with self.connect() as db:
            rows = db.execute(
                "SELECT item, value, saved_at, revision FROM draft WHERE person=? AND task=? AND round=? "
                "ORDER BY saved_at, item",
                (person, task, round),
            ).fetchall()
        return {row[0]: _draft(row) for row in rows}

    def tasks_with_drafts(self, person: str) -> list[tuple[str, int, datetime]]:
        """(task, round, last saved) of everything that the person has begun, newest first."""
        with self.connect() as db:
            rows = db.execute(
                "SELECT task, round, MAX(saved_at) FROM draft WHERE person=? GROUP BY task, round ORDER BY 3 DESC",
                (person,),
            ).fetchall()
        return [(task, round, datetime.fromisoformat(at)) for task, round, at in rows]

    def drop_drafts(self, person: str, task: str, round: int, items: Sequence[str] | None = None) -> None:
        """Forget drafts, after what they held was submitted."""
        with self.connect(write=True) as db:
            if items is None:
                db.execute("DELETE FROM draft WHERE person=? AND task=? AND round=?", (person, task, round))
            for item in items or ():
                db.execute(
                    "DELETE FROM draft WHERE person=? AND task=? AND round=? AND item=?", (person, task, round, item)
                )

    # Sealed submissions

    def seal(self, sealed: Sealed) -> bool:
        """Keep a submission sealed. False where this person's submission of that kind is there already: it stays."""
        with self.connect(write=True) as db:
            done = db.execute(
                "INSERT OR IGNORE INTO sealed VALUES (?,?,?,?,?,?,?,0)",
                (
                    sealed.submission, sealed.person, sealed.task, sealed.round, sealed.kind,
                    sealed.events.decode(), sealed.sealed_at.isoformat(),
                ),
            )  # fmt: skip
            return done.rowcount == 1

    def sealed(self, task: str, round: int | None = None) -> list[Sealed]:
        """Sealed submissions of a task, in the order that they came; opened ones too."""
        with self.connect() as db:
            rows = db.execute(
                "SELECT submission, person, task, round, kind, events, sealed_at, opened FROM sealed "
                "WHERE task=? AND (? IS NULL OR round=?) ORDER BY sealed_at, submission",
                (task, round, round),
            ).fetchall()
        return [
            Sealed(s, person, task_, round_, kind, events.encode(), datetime.fromisoformat(at), bool(opened))
            for s, person, task_, round_, kind, events, at, opened in rows
        ]

    def unopened(self, task: str) -> bool:
        """Whether a sealed submission of this task is not in the repository yet, as far as is noted here."""
        with self.connect() as db:
            return db.execute("SELECT 1 FROM sealed WHERE task=? AND opened=0 LIMIT 1", (task,)).fetchone() is not None

    def mark_opened(self, submissions: Sequence[str]) -> None:
        """Note that these are in the repository now. They stay here as well: a lost judgement cannot be asked again."""
        with self.connect(write=True) as db:
            db.executemany("UPDATE sealed SET opened=1 WHERE submission=?", [(one,) for one in submissions])

    # Last seen, active minutes

    def mark_seen(self, person: str, task: str, mark: str) -> None:
        """Remember up to where (a commit, or "" for now) the person has looked at a task."""
        with self.connect(write=True) as db:
            db.execute(
                "INSERT INTO seen VALUES (?,?,?,?) ON CONFLICT (person, task) DO UPDATE SET mark=excluded.mark, "
                "at=excluded.at",
                (person, task, mark, _now()),
            )

    def seen(self, person: str, task: str) -> tuple[str, datetime] | None:
        """(mark, when) of the last look, or None."""
        with self.connect() as db:
            row = db.execute("SELECT mark, at FROM seen WHERE person=? AND task=?", (person, task)).fetchone()
        return (row[0], datetime.fromisoformat(row[1])) if row else None

    def active(self, person: str, task: str, round: int, at: datetime | None = None) -> None:
        """A sign of life: the person did something on the task in this minute."""
        minute = int((at or datetime.now(UTC)).timestamp() // 60)
        with self.connect(write=True) as db:
            db.execute("INSERT OR IGNORE INTO minute VALUES (?,?,?,?)", (person, task, round, minute))

    def active_minutes(self, person: str, task: str, round: int) -> int:
        """Minutes spent: each sign of life counts one, and so does a gap of up to IDLE_MINUTES to the next."""
        with self.connect() as db:
            rows = db.execute(
                "SELECT minute FROM minute WHERE person=? AND task=? AND round=? ORDER BY minute", (person, task, round)
            ).fetchall()
        minutes = [row[0] for row in rows]
        gaps = (later - earlier for earlier, later in pairwise(minutes))
        return sum(gap if gap <= IDLE_MINUTES else 1 for gap in gaps) + (1 if minutes else 0)


def _draft(row: tuple[str, str, str, int]) -> Draft:
    return Draft(row[0], row[1], datetime.fromisoformat(row[2]), row[3])


def _now() -> str:
    return datetime.now(UTC).isoformat()
