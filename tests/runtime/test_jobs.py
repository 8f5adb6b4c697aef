"""Background jobs: they outlive whoever started them, and a page can always tell where they stand."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime import jobs
from tasks.errors import UsageError
from tasks.progress import read
from tasks.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
#: A command of ours in small: tells progress, then does what its first argument says.
COMMAND = """
import os, signal, sys, threading
from pathlib import Path
from tasks.errors import EnvironmentFault
from tasks.progress import to_job
from tasks.workspace import Workspace

what, job = sys.argv[1], sys.argv[sys.argv.index("--job") + 1]
progress = to_job(Workspace.find().jobs / job)
progress.begin("counting", 2)
progress.step("one", "finished")
if what == "end":
    progress.step("two", "finished")
    progress.end("all counted")
elif what == "fail":
    progress.fail("the disk is full.")
    sys.exit(3)
elif what == "crash":
    sys.exit("nothing can be read there.")
elif what == "break":
    raise KeyError("Mr. Somebody, born 1964")
elif what == "die":
    print("Mr. Somebody, born 1964", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
elif what == "thread":
    at_work = threading.Thread(target=lambda: {}["Mr. Somebody, born 1964"])
    at_work.start()
    at_work.join()
    sys.exit("nothing can be read there.")
else:
    Path(Workspace.find().jobs / job / "waiting").touch()
    signal.pause()
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "counting.py").write_text(COMMAND, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "code"))
    return Workspace(tmp_path / "workspace")


def until(condition: Callable[[], bool]) -> None:
    """Wait for another process, which says nothing when it is there."""
    waiting = threading.Event()
    for _ in range(600):
        if condition():
            return
        waiting.wait(0.05)
    raise AssertionError("it did not come to be")


def finished(workspace: Workspace, job: jobs.Job) -> jobs.Status:
    until(lambda: not jobs.is_alive(workspace, job.id))
    return jobs.status(workspace, job)


def waiting(workspace: Workspace) -> jobs.Job:
    job = jobs.start(workspace, ["counting", "wait"], about={"batch": "b"})
    until(lambda: (workspace.jobs / job.id / "waiting").exists())
    return job


def test_a_job_that_ends_says_so_with_its_last_line(workspace: Workspace) -> None:
    status = finished(workspace, jobs.start(workspace, ["counting", "end"]))
    assert status.state == "ended"
    assert status.last is not None
    assert (status.last.done, status.last.total, status.last.tally) == (2, 2, {"finished": 2})


@pytest.mark.parametrize(("what", "message"), [("fail", "the disk is full."), ("crash", "nothing can be read there.")])
def test_a_job_that_fails_gives_the_one_message_of_its_command(workspace: Workspace, what: str, message: str) -> None:
    status = finished(workspace, jobs.start(workspace, ["counting", what]))
    assert (status.state, status.message) == ("failed", message)


@pytest.mark.parametrize("what", ["break", "die", "thread"])
def test_a_job_that_breaks_quotes_no_chart_in_its_message(workspace: Workspace, what: str) -> None:
    job = jobs.start(workspace, ["counting", what])
    status = finished(workspace, job)
    assert status.state == "failed"
    assert "Somebody" not in status.message
    log = (workspace.jobs / job.id / "log").read_text("utf-8")
    if what == "die":
        assert status.message == "It ended without saying why."
        return
    assert "Somebody" not in log
    (mark,) = re.findall(r"error ([0-9a-f]{8}): KeyError: ", log)
    assert "counting.py:" in log
    if what == "break":
        assert f"Error {mark}." in status.message


def test_a_running_job_is_seen_as_running_and_can_be_stopped_once(workspace: Workspace) -> None:
    job = waiting(workspace)
    assert jobs.status(workspace, job).state == "running"
    assert jobs.stop(workspace, job.id)
    until(lambda: not jobs.is_alive(workspace, job.id))
    assert jobs.status(workspace, jobs.find(workspace, job.id)).state == "stopped"
    assert not jobs.stop(workspace, job.id)


def test_a_killed_job_is_known_as_lost_and_its_lines_stay(workspace: Workspace) -> None:
    job = waiting(workspace)
    assert job.pid is not None
    os.kill(job.pid, signal.SIGKILL)
    status = finished(workspace, job)
    assert status.state == "lost"
    assert [line.kind for line in read(workspace.jobs / job.id)] == ["began", "step"]


def test_a_job_outlives_the_server_that_started_it_and_another_one_finds_it(workspace: Workspace) -> None:
    server = (
        "from pathlib import Path; from runtime import jobs; from tasks.workspace import Workspace; import sys;"
        "print(jobs.start(Workspace(Path(sys.argv[1])), ['counting', 'wait'], about={'batch': 'b'}).id)"
    )
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{os.environ['PYTHONPATH']}"}
    done = subprocess.run(
        [sys.executable, "-c", server, str(workspace.path)], env=environment, capture_output=True, text=True, check=True
    )
    job = jobs.find(workspace, done.stdout.strip())
    until(lambda: (workspace.jobs / job.id / "waiting").exists())
    assert jobs.status(workspace, job).state == "running"
    assert [one.id for one in jobs.jobs(workspace, about={"batch": "b"})] == [job.id]
    assert jobs.stop(workspace, job.id)
    until(lambda: not jobs.is_alive(workspace, job.id))


def test_two_starts_with_one_key_start_one_job_even_at_once(workspace: Workspace) -> None:
    found: list[jobs.Job] = []

    def start() -> None:
        found.append(jobs.start(workspace, ["counting", "end"], key="abc123"))

    assert not jobs.known(workspace, "abc123")
    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {job.id for job in found} == {"abc123"}
    assert len({job.pid for job in found}) == 1
    assert jobs.known(workspace, "abc123")
    finished(workspace, found[0])
    assert [line.kind for line in read(workspace.jobs / "abc123")].count("began") == 1


def test_an_unknown_job_and_a_key_that_leaves_the_folder_are_refused(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="no such job"):
        jobs.find(workspace, "nothing")
    with pytest.raises(UsageError, match="letters and digits"):
        jobs.start(workspace, ["counting", "end"], key="../../x")


def test_a_workspace_without_jobs_has_none_and_is_not_written_to(workspace: Workspace) -> None:
    assert jobs.jobs(workspace) == []
    assert not workspace.path.exists()
