"""Buttons that start a job: once, in their callback, before anything that a newer message could cut off.

A job's key is minted when the page is drawn and stands in the key of its button: the second click of a double click
meets the job that is there, and the button of the next drawing is another one. Who starts it is who the page was drawn
for.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import streamlit as st

from review_ui import failure, frame, identity
from review_ui.identity import Identity
from runtime import jobs
from tasks.errors import UsageError
from tasks.review.permissions import require

_STARTERS = "job-starters"
#: Commands that read what is stored and change nothing of it.
_READING = (("graders", "report"),)


def key(slot: str) -> str:
    """The key of the job that the button `slot` would start: the same until there is such a job."""
    kept = st.session_state.get(slot)
    if not isinstance(kept, str) or jobs.known(frame.workspace(), kept):
        kept = st.session_state[slot] = secrets.token_hex(8)
    starters: dict[str, Identity] = st.session_state.setdefault(_STARTERS, {})
    starters[kept] = identity.current()
    return kept


def begin(command: tuple[str, ...], about: Mapping[str, str], key: str) -> None:
    """Start the job of that key. For a callback: nothing in here gives way to a newer message.

    Raises NotAllowed for a person who may not run trials; where nobody is chosen, in local mode, there is nobody to
    ask, and only open data is run. Raises EnvironmentFault where it cannot be started.
    """
    who = st.session_state.to_dict().get(_STARTERS, {}).get(key)
    if who is None:
        raise UsageError("this button is from an earlier page.", remedy="Press it again.")
    if command[:2] not in _READING:
        _ask(who)
    jobs.start(frame.workspace(), command, about=about, person=who.id, key=key)


start = failure.guarded(begin)


@failure.guarded
def stop(id: str, who: Identity) -> None:
    """Stop the job, on behalf of who the page was drawn for."""
    _ask(who)
    jobs.stop(frame.workspace(), id)


def _ask(who: Identity) -> None:
    if who.person is not None:
        require(who.person, "run_trials")
