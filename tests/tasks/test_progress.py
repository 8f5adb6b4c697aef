"""Progress: at the shell for a person, as JSON lines for a page."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tasks.progress import FILE, Progress, read, to_job, to_shell


def ticking(seconds: float = 1.0) -> Callable[[], datetime]:
    """A clock that moves by so much at each look."""
    times = [datetime(2026, 11, 30, tzinfo=UTC)]

    def look() -> datetime:
        times.append(times[-1] + timedelta(seconds=seconds))
        return times[-1]

    return look


def reported(progress: Progress) -> None:
    progress.begin("Running 3 trials", 3)
    progress.step("tiny · oracle · run 1", "pass")
    progress.note("the provider answers slowly")
    progress.step("tiny · noop · run 1", "fail")
    progress.step("tiny · parrot · run 1", "fail")
    progress.end("3 trials finished")


def test_a_jobs_lines_are_read_back_with_the_tally(tmp_path: Path) -> None:
    reported(to_job(tmp_path))
    lines = read(tmp_path)
    assert [line.kind for line in lines] == ["began", "step", "note", "step", "step", "ended"]
    assert (lines[-1].done, lines[-1].total, lines[-1].tally) == (3, 3, {"pass": 1, "fail": 2})


def test_a_job_that_was_killed_in_mid_line_is_still_read(tmp_path: Path) -> None:
    reported(to_job(tmp_path))
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes()[:-10])
    assert [line.kind for line in read(tmp_path)] == ["began", "step", "note", "step", "step"]


def test_a_job_that_said_nothing_has_no_lines(tmp_path: Path) -> None:
    assert read(tmp_path) == []


def test_beside_a_terminal_each_unit_has_a_line() -> None:
    stream = io.StringIO()
    reported(to_shell(stream, clock=ticking()))
    assert stream.getvalue().split("\n") == [
        "Running 3 trials (3)",
        "1 of 3  tiny · oracle · run 1: pass",
        "the provider answers slowly",
        "2 of 3  tiny · noop · run 1: fail",
        "3 of 3  tiny · parrot · run 1: fail",
        "3 trials finished (5.0 s)",
        "",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_one_line_is_rewritten_and_notes_stay_above(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    stream = Terminal()
    reported(to_shell(stream, clock=ticking(100)))
    drawn = stream.getvalue()
    assert "\r[######--------------] 1 of 3  pass 1  tiny · oracle · run…" in drawn
    assert drawn.count("\n") == 3
    assert max(len(part) for part in drawn.replace("\r", "\n").split("\n")) <= 59
    assert drawn.endswith("3 trials finished (8 min 20 s)\n")
