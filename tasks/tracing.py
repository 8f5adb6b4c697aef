"""An error as a log may keep it: its kind and the lines of code that it went through, and no patient text."""

from __future__ import annotations

import traceback
from pathlib import Path

from tasks.errors import WorkbenchError

_ROOT = Path(__file__).resolve().parent.parent


def traced(error: BaseException) -> str:
    """The error in one line. The message is left out unless the error is one of ours, because the message of any other
    may quote the chart."""
    said = str(error) if isinstance(error, WorkbenchError) else "(message withheld: it may quote the chart)"
    frames = " < ".join(
        f"{_short(frame.filename)}:{frame.lineno} {frame.name}"
        for frame in reversed(traceback.extract_tb(error.__traceback__))
    )
    return f"{type(error).__name__}: {said} | {frames}"


def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else path.name
