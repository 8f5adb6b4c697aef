"""What happens when a page fails: an id on the page, the same id in the log, and no patient text in either."""

from __future__ import annotations

import logging
import secrets
import traceback
from pathlib import Path

from tasks.errors import WorkbenchError

log = logging.getLogger("review_ui")
_ROOT = Path(__file__).resolve().parent.parent


def record(error: BaseException) -> str:
    """Log the error under a fresh id and return the id.

    The log gets the kind of error and the lines of code it went through. The message is left out unless the error is
    one of ours, because the message of any other may quote the chart.
    """
    mark = secrets.token_hex(4)
    said = str(error) if isinstance(error, WorkbenchError) else "(message withheld: it may quote the chart)"
    frames = " < ".join(
        f"{_short(frame.filename)}:{frame.lineno} {frame.name}"
        for frame in reversed(traceback.extract_tb(error.__traceback__))
    )
    log.error("error %s: %s: %s | %s", mark, type(error).__name__, said, frames)
    return mark


def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else path.name
