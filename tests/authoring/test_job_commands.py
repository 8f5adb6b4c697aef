"""Applying and gating as jobs: told check by check, once for one Review-Id, stopped without half a commit, and acting
for a verified person only with that person's voucher."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from authoring.__main__ import app
from authoring.commands.gate import LOOK
from authoring.commands.working import Work, working
from authoring.desk import Desk
from authoring.edits import TextEdit
from authoring.gate import count, run_gate
from authoring.gate.results import FILE, keep, kept_in
from authoring.vouching import VARIABLE, Errand, vouch
from runtime import jobs
from tasks.package import SUITE
from tasks.people import Person
from tasks.progress import read, to_job
from tasks.review import events as ev
from tasks.workspace import Workspace
from tests.authoring.rooms import AUTHOR, Room, ready_files
from tests.tasks.packages import TINY_ID, tiny_files

EDIT = TextEdit(path="instruction.md", find="Please decide", replace="Today, please decide")


class Verified(Room):
    """A room whose people are all verified."""

    def desk(self, who: Person) -> Desk:
        return Desk(self.workspace, self.store, who, verified=True)


@pytest.fixture
def room(workspace: Workspace) -> Room:
    """One accepted change waits to be applied."""
    made = Room(workspace, ready_files()).judged()
    made.decided(made.proposed(EDIT))
    return made


def until(condition: Callable[[], bool]) -> None:
    """Wait for another process, which says nothing when it is there."""
    waiting = threading.Event()
    for _ in range(1200):
        if condition():
            return
        waiting.wait(0.05)
    raise AssertionError("it never came")


def start(room: Room, command: str, id: str) -> jobs.Job:
    arguments = ["authoring", command, TINY_ID, "--as", "author", "--review-id", id]
    return jobs.start(room.workspace, arguments, about={"standing": TINY_ID}, person="author", key=id)


def ended(room: Room, job: jobs.Job) -> jobs.Status:
    until(lambda: jobs.status(room.workspace, job).state != "running")
    return jobs.status(room.workspace, jobs.find(room.workspace, job.id))


def version(room: Room) -> int:
    with room.store.at() as view:
        return room.desk(AUTHOR).snapshot(view, TINY_ID).meta.version


def test_applying_as_a_job_tells_each_check_and_is_one_commit_however_often_it_is_started(room: Room) -> None:
    id = ev.new_id()
    first, second = start(room, "apply", id), start(room, "apply", id)
    assert first.id == second.id
    status = ended(room, first)
    assert (status.state, status.message) == ("ended", "")
    lines = read(room.workspace.jobs / id)
    checks = [line for line in lines if line.kind == "step"]
    assert [line.done for line in checks] == list(range(1, len(checks) + 1))
    assert {line.total for line in checks} == {len(checks)}
    state = room.desk(AUTHOR).state(TINY_ID)
    assert (version(room), id in state.submissions, state.gate and state.gate.passed) == (2, True, True)
    head = room.store.head()
    words = ["apply", TINY_ID, "--as", "author", "--review-id", id]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert room.store.head() == head, "the same submission again is nothing new"


def test_the_gate_as_a_job_records_what_it_finds_once(room: Room) -> None:
    id = ev.new_id()
    assert ended(room, start(room, "gate", id)).state == "ended"
    state = room.desk(AUTHOR).state(TINY_ID)
    assert state.gate
    assert state.gate.submission == id
    head = room.store.head()
    assert CliRunner().invoke(app, ["gate", TINY_ID, "--as", "author", "--review-id", id, "--job", id]).exit_code == 0
    assert room.store.head() == head


def test_a_job_that_is_stopped_applies_nothing_and_says_so(room: Room) -> None:
    head = room.store.head()
    job = start(room, "apply", ev.new_id())
    assert jobs.stop(room.workspace, job.id)
    assert ended(room, job).state == "stopped"
    assert (room.store.head(), version(room)) == (head, 1)
    assert ended(room, start(room, "apply", ev.new_id())).state == "ended", "and it can be started anew"
    assert version(room) == 2


def test_a_stop_ends_the_gate_at_once_and_waits_while_something_is_written(workspace: Workspace) -> None:
    work = Work(lambda: to_job(workspace.path))
    with pytest.raises(KeyboardInterrupt), work.stoppable():
        signal_self(work)
    work = Work(lambda: to_job(workspace.path))
    signal_self(work)  # nothing happens: something is being written
    with pytest.raises(KeyboardInterrupt), work.stoppable():
        pytest.fail("it began")


def signal_self(work: Work) -> None:
    before = signal.signal(signal.SIGTERM, work.heard)
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_stop_during_the_commit_comes_too_late_and_the_job_has_ended(room: Room) -> None:
    mine = room.desk(AUTHOR)
    id = "a" * 32
    with working(mine, id, "Apply", "Stopped."):
        os.kill(os.getpid(), signal.SIGTERM)
        mine.state(TINY_ID)
    last = read(room.workspace.jobs / id)[-1]
    assert (last.kind, last.what) == ("ended", "Done; the stop came too late.")


def test_what_a_job_fails_on_is_its_message(room: Room) -> None:
    room.decided(room.proposed(TextEdit(path="instruction.md", find="Please", replace="You"), findings=()))
    status = ended(room, start(room, "apply", ev.new_id()))
    assert status.state == "failed"
    assert "nothing was applied" in status.message
    assert version(room) == 1


def test_on_other_data_than_open_a_job_acts_only_with_its_voucher(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ready_files()
    files["task.toml"] = files["task.toml"].replace(b'data_class = "open"', b'data_class = "dua"')
    room = Verified(workspace, files).judged()
    room.decided(room.proposed(EDIT))
    id, other = "b" * 32, "c" * 32
    words = ["apply", TINY_ID, "--as", "author", "--review-id", id, "--job", id]

    def tried(voucher: str) -> str:
        monkeypatch.setenv(VARIABLE, voucher)
        done = CliRunner().invoke(app, words)
        assert VARIABLE not in os.environ
        return done.output if done.exit_code else ""

    good = vouch(workspace, Errand("author", "apply", TINY_ID, id, id))
    assert "identities are not verified" in tried("")
    assert "identities are not verified" in tried(vouch(workspace, Errand("lead", "apply", TINY_ID, id, id)))
    assert "identities are not verified" in tried(vouch(workspace, Errand("author", "gate", TINY_ID, id, id)))
    assert "identities are not verified" in tried(vouch(workspace, Errand("author", "apply", TINY_ID, other, other)))
    assert version(room) == 1
    assert tried(good) == ""
    assert version(room) == 2


def test_every_check_as_a_job_that_only_looks_leaves_its_result_and_records_nothing(room: Room) -> None:
    head = room.store.head()
    words = ["authoring", "gate", TINY_ID, "--dry-run", "--as", "author"]
    job = jobs.start(room.workspace, words, about={"checks": TINY_ID}, person="author", key="d" * 32)
    assert ended(room, job).state == "ended"
    found = kept_in(room.workspace.jobs / job.id)
    assert found is not None
    with room.store.at() as view:
        files = room.desk(AUTHOR).snapshot(view, TINY_ID).files
    same = run_gate(files, task=TINY_ID)
    assert (found.package, found.version, found.checks) == (same.package, same.version, same.checks)
    assert [one.name for one in found.mutants] == [one.name for one in same.mutants]
    assert room.store.head() == head
    keep(room.workspace.jobs, same)
    assert kept_in(room.workspace.jobs) == replace(same, seconds=round(same.seconds, 2))
    steps = [line for line in read(room.workspace.jobs / job.id) if line.kind == "step"]
    assert len(steps) == len(found.checks)


@pytest.mark.parametrize("left", [b"", b"{", b"[]", b"{}", b'{"task": 1}', b"\xff"])
def test_a_result_that_cannot_be_read_is_none(workspace: Workspace, left: bytes) -> None:
    folder = workspace.path / "job"
    assert kept_in(folder) is None
    folder.mkdir(parents=True)
    (folder / FILE).write_bytes(left)
    assert kept_in(folder) is None


def test_on_other_data_than_open_a_job_looks_only_with_a_voucher_for_looking(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ready_files()
    files["task.toml"] = files["task.toml"].replace(b'data_class = "open"', b'data_class = "dua"')
    room = Verified(workspace, files)
    id = "e" * 32

    def tried(voucher: str) -> int:
        monkeypatch.setenv(VARIABLE, voucher)
        return CliRunner().invoke(app, ["gate", TINY_ID, "--dry-run", "--as", "author", "--job", id]).exit_code

    assert tried("") == 2
    assert tried(vouch(workspace, Errand("author", "gate", TINY_ID, "", id))) == 2
    assert kept_in(room.workspace.jobs / id) is None
    assert tried(vouch(workspace, Errand("author", LOOK, TINY_ID, "", id))) == 0
    assert kept_in(room.workspace.jobs / id) is not None


@pytest.mark.parametrize(
    ("id", "files"),
    [(SUITE.list()[0], SUITE.files(SUITE.list()[0])), (TINY_ID, ready_files()), (TINY_ID, tiny_files())],
)
def test_how_many_checks_there_will_be_is_known_before_they_run(id: str, files: Mapping[str, bytes]) -> None:
    assert count(files, task=id) == len(run_gate(files, task=id).checks)
