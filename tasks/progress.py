"""Progress of a long command: a line at the shell, or JSON lines in a job's folder that a page reads (design 9).

A command reports to one `Progress`; where it goes is chosen once: `to_shell()` for a person, `to_job(folder)` for a
background job. Reading (`read`) tolerates a job that was killed in the middle of a line.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol, TextIO

from pydantic import AwareDatetime, Field, ValidationError

from tasks.stored import append_lines
from tasks.strict import Strict

FILE = "progress.jsonl"


class ProgressLine(Strict):
    """One thing that happened, with the tally as it stands after it."""

    at: AwareDatetime
    kind: Literal["began", "step", "note", "ended", "failed"]
    what: str = Field(description="the command in a few words, the unit that is done, or the note")
    state: str = Field(default="", description="how the unit ended, e.g. an outcome")
    done: int = Field(default=0, ge=0)
    total: int | None = Field(default=None, description="units in all; None = not known")
    tally: dict[str, int] = Field(default={}, description="state -> units that ended so")


class Sink(Protocol):
    """Where lines go."""

    def __call__(self, line: ProgressLine) -> None: ...


def _now() -> datetime:
    return datetime.now(UTC)


class Progress:
    """Counts the units of one command and tells a sink. Not shared between threads."""

    def __init__(self, sink: Sink, *, clock: Callable[[], datetime] = _now) -> None:
        self._sink = sink
        self._clock = clock
        self._done = 0
        self._total: int | None = None
        self._tally: Counter[str] = Counter()

    def begin(self, what: str, total: int | None = None) -> None:
        """Say what is being done, over how many units."""
        self._total = total
        self._tell("began", what)

    def step(self, what: str, state: str = "") -> None:
        """One unit is done, and how it ended."""
        self._done += 1
        if state:
            self._tally[state] += 1
        self._tell("step", what, state)

    def note(self, what: str) -> None:
        """Something worth telling that is no unit."""
        self._tell("note", what)

    def end(self, what: str) -> None:
        """All is done."""
        self._tell("ended", what)

    def fail(self, what: str) -> None:
        """It stops here; `what` is the message that the user is given."""
        self._tell("failed", what)

    def _tell(self, kind: Literal["began", "step", "note", "ended", "failed"], what: str, state: str = "") -> None:
        self._sink(
            ProgressLine(
                at=self._clock(),
                kind=kind,
                what=what,
                state=state,
                done=self._done,
                total=self._total,
                tally=dict(self._tally),
            )
        )


def to_job(folder: Path, *, clock: Callable[[], datetime] = _now) -> Progress:
    """Progress as JSON lines in the job's folder, each on the disk before the command goes on."""
    path = folder / FILE
    return Progress(lambda line: append_lines(path, [line.model_dump_json()]), clock=clock)


def read(folder: Path) -> list[ProgressLine]:
    """The lines of a job, in order; what is torn or is no line is left out. Empty where nothing was told yet."""
    try:
        rows = (folder / FILE).read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    found = []
    for row in rows:
        try:
            found.append(ProgressLine.model_validate_json(row))
        except ValidationError:
            continue
    return found


def to_shell(stream: TextIO | None = None, *, clock: Callable[[], datetime] = _now) -> Progress:
    """Progress for a person, on stderr: one line that is rewritten on a terminal, one line a unit elsewhere."""
    return Progress(_Shell(stream or sys.stderr), clock=clock)


class _Shell:
    """Draws `[####----] 12 of 40  pass 9, fail 3  cardiology-003 · oracle · run 1` and keeps notes above it."""

    WIDTH = 20

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._drawn = 0
        self._began: datetime | None = None

    def __call__(self, line: ProgressLine) -> None:
        self._began = self._began or line.at
        if line.kind == "step" and self._live:
            self._draw(self._bar(line))
            return
        self._wipe()
        self._stream.write(self._sentence(line) + "\n")
        self._stream.flush()

    def _sentence(self, line: ProgressLine) -> str:
        count = f"{line.done} of {line.total}" if line.total is not None else str(line.done)
        if line.kind == "began":
            return f"{line.what} ({line.total})" if line.total is not None else line.what
        if line.kind == "step":
            return f"{count}  {line.what}" + (f": {line.state}" if line.state else "")
        if line.kind == "ended":
            seconds = (line.at - self._began).total_seconds() if self._began else 0.0
            return f"{line.what} ({_duration(seconds)})"
        return line.what

    def _bar(self, line: ProgressLine) -> str:
        if line.total:
            filled = self.WIDTH * min(line.done, line.total) // line.total
            head = f"[{'#' * filled}{'-' * (self.WIDTH - filled)}] {line.done} of {line.total}"
        else:
            head = f"{line.done} done"
        tally = ", ".join(f"{state} {count}" for state, count in line.tally.items())
        return "  ".join(part for part in (head, tally, line.what) if part)

    def _draw(self, text: str) -> None:
        room = shutil.get_terminal_size().columns - 1
        text = text if len(text) <= room else text[: room - 1] + "…"
        self._stream.write("\r" + text.ljust(self._drawn))
        self._stream.flush()
        self._drawn = len(text)

    def _wipe(self) -> None:
        if self._drawn:
            self._stream.write("\r" + " " * self._drawn + "\r")
            self._drawn = 0


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
