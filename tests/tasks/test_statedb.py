"""Drafts are never lost, sealed submissions never shown twice or dropped, minutes count work and not lunch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tasks.errors import EnvironmentFault
from tasks.statedb import Sealed, StateDb

ROOT = Path(__file__).resolve().parents[2]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def db(tmp_path: Path) -> StateDb:
    return StateDb(tmp_path / "state.db")


def sealed(person: str, submission: str = "s-1", kind: str = "review") -> Sealed:
    return Sealed(submission, person, "demo-task", 1, kind, b'{"a":1}\n', NOON, False)


def test_a_draft_comes_back_for_its_person_task_and_round_only(db: StateDb) -> None:
    text = "Hold if K > 5.5\r\n\u2028 naïve 💊"
    saved = db.save_draft("ann", "demo-task", 1, "plan.answer", text)
    assert (saved.value, saved.revision) == (text, 1)
    assert db.save_draft("ann", "demo-task", 1, "plan.answer", "shorter").revision == 2
    assert db.drafts("ann", "demo-task", 1)["plan.answer"].value == "shorter"
    assert db.drafts("ann", "demo-task", 2) == db.drafts("bob", "demo-task", 1) == {}
    assert [(task, round) for task, round, _ in db.tasks_with_drafts("ann")] == [("demo-task", 1)]


def test_drafts_come_in_the_order_in_which_they_were_saved(db: StateDb) -> None:
    for item in ("b", "c", "a", "b"):
        db.save_draft("ann", "demo-task", 1, item, item)
    assert list(db.drafts("ann", "demo-task", 1)) == ["c", "a", "b"]


def test_dropping_names_what_was_submitted(db: StateDb) -> None:
    for item in ("a", "b", "c"):
        db.save_draft("ann", "demo-task", 1, item, item)
    db.drop_drafts("ann", "demo-task", 1, ["a"])
    assert sorted(db.drafts("ann", "demo-task", 1)) == ["b", "c"]
    db.drop_drafts("ann", "demo-task", 1)
    assert db.drafts("ann", "demo-task", 1) == {}


def test_a_person_seals_once_and_the_first_stays(db: StateDb) -> None:
    assert db.seal(sealed("ann"))
    assert not db.seal(sealed("ann"))
    assert not db.seal(sealed("ann", "s-2"))
    assert db.seal(sealed("bob", "s-3"))
    assert [(s.person, s.opened) for s in db.sealed("demo-task")] == [("ann", False), ("bob", False)]
    db.mark_opened(["s-1"])
    assert [(s.person, s.opened) for s in db.sealed("demo-task", 1)] == [("ann", True), ("bob", False)]
    assert db.sealed("demo-task", 2) == []


def test_active_minutes_leave_idle_time_out(db: StateDb) -> None:
    for minute in (0, 1, 1, 4, 9, 60, 61):
        db.active("ann", "demo-task", 1, NOON + timedelta(minutes=minute))
    # 0 to 9 without a gap over 5 minutes: 10 minutes; 60 and 61: 2 more.
    assert db.active_minutes("ann", "demo-task", 1) == 12
    assert db.active_minutes("bob", "demo-task", 1) == 0


def test_marks_of_the_last_look(db: StateDb) -> None:
    assert db.seen("ann", "demo-task") is None
    db.mark_seen("ann", "demo-task", "abc")
    db.mark_seen("ann", "demo-task", "def")
    seen = db.seen("ann", "demo-task")
    assert seen is not None
    assert seen[0] == "def"


def test_many_writers_lose_nothing(db: StateDb) -> None:
    def write(worker: int) -> None:
        for n in range(20):
            db.save_draft(f"p{worker}", "demo-task", 1, f"item-{n}", "x" * 100)

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(db.drafts(f"p{worker}", "demo-task", 1)) for worker in range(6)] == [20] * 6


def test_many_that_open_a_new_file_at_once_all_get_in(tmp_path: Path) -> None:
    failed: list[Exception] = []

    def write(place: StateDb, worker: int, ready: threading.Barrier) -> None:
        ready.wait()
        try:
            place.save_draft(f"p{worker}", "t", 1, "item", "words")
        except EnvironmentFault as fault:
            failed.append(fault)

    # Without the wait for WAL mode one of sixteen such starts failed, measured with two cores.
    for n in range(40):
        place, ready = StateDb(tmp_path / f"{n}" / "state.db"), threading.Barrier(8)
        workers = [threading.Thread(target=write, args=(place, worker, ready)) for worker in range(8)]
        for one in workers:
            one.start()
        for one in workers:
            one.join()
    assert failed == []


def test_what_was_answered_saved_survives_a_kill(db: StateDb) -> None:
    code = (
        "import sys; from pathlib import Path; from tasks.statedb import StateDb\n"
        "db = StateDb(Path(sys.argv[1]))\n"
        "for n in range(10000):\n"
        "    db.save_draft('ann', 'demo-task', 1, 'text', 'word ' * n); print(n, flush=True)\n"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", code, str(db.path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert writer.stdout
    for _ in range(20):
        last = int(writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    rest, _ = writer.communicate()
    last = int(rest.split()[-1]) if rest.split() else last
    value = db.drafts("ann", "demo-task", 1)["text"].value
    assert value in ("word " * last, "word " * (last + 1))


def test_a_file_that_cannot_be_used_is_one_message(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"this is no database, " * 100)
    with pytest.raises(EnvironmentFault, match=r"state\.db cannot be used"):
        StateDb(path).save_draft("ann", "demo-task", 1, "a", "b")
