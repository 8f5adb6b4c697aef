"""What happens when a page, or what a button does, fails: an id on the page, the same id in the log, and no patient
text in either.

Streamlit runs a callback before the page. What one raises ends the run there: the page is not drawn, a box without an
id takes its place, and the log gets the error's message. So what a button does is `guarded`.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec

import streamlit as st

from tasks.errors import EnvironmentFault, WorkbenchError
from tasks.tracing import traced

P = ParamSpec("P")
log = logging.getLogger("review_ui")
_SLOT = "what-failed"
STAYS = (
    "Nothing that was saved is lost. Try again; if it fails again, give this number to whoever looks after the "
    "workbench: the log has the details under it."
)


@dataclass
class Failed:
    """What the last press of a button in this session could not do: an object of ours in the session, so that a
    callback changes it without giving way to a newer click. `page`: where it was told first; it goes with that page.
    """

    title: str = ""
    words: str = ""
    page: str = ""


def failed() -> Failed:
    """This session's, for the drawing of a page."""
    found = st.session_state.get(_SLOT)
    if not isinstance(found, Failed):
        found = st.session_state[_SLOT] = Failed()
    return found


def guarded(act: Callable[P, None]) -> Callable[P, None]:
    """What a button does, failing by itself: the next drawing of the page says so, with our words or an id."""

    @wraps(act)
    def does(*args: P.args, **kwargs: P.kwargs) -> None:
        found = st.session_state.to_dict().get(_SLOT)
        said = found if isinstance(found, Failed) else Failed()
        said.title = said.words = said.page = ""
        try:
            act(*args, **kwargs)
        except EnvironmentFault as error:
            said.title, said.words = f"That was not done. Error {record(error)}.", str(error)
        except WorkbenchError as error:
            said.title, said.words = "That was not done.", str(error)
        except Exception as error:  # noqa: BLE001 (the last line before a reader: an id, never the message)
            said.title, said.words = f"That was not done, or not whole. Error {record(error)}.", STAYS
        if said.title and said is not found:
            st.session_state[_SLOT] = said

    return does


class Withheld(logging.Filter):
    """What Streamlit logs of an error that got past every guard of ours: an id and the lines of code, no message."""

    def filter(self, record_: logging.LogRecord) -> bool:
        error = record_.exc_info[1] if record_.exc_info else None
        if error is not None:
            record_.msg, record_.args = f"{record_.getMessage()}: error {record(error)}", None
            record_.exc_info, record_.exc_text = None, None
        return True


def withhold() -> None:
    """Have Streamlit's log of uncaught errors withhold their messages. Called at every run; done once."""
    uncaught = logging.getLogger("streamlit.error_util")
    if not any(isinstance(one, Withheld) for one in uncaught.filters):
        uncaught.addFilter(Withheld())


def record(error: BaseException) -> str:
    """Log the error under a fresh id and return the id.

    The log gets the kind of error and the lines of code it went through. The message is left out unless the error is
    one of ours, because the message of any other may quote the chart.
    """
    mark = secrets.token_hex(4)
    log.error("error %s: %s", mark, traced(error))
    return mark
