"""Buttons that start a job: once, in their callback, before anything that a newer message could cut off.

A job's key is minted when the page is drawn and stands in the key of its button: the second click of a double click
meets the job that is there, and the button of the next drawing is another one.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import streamlit as st

from review_ui import frame
from runtime import jobs


def key(slot: str) -> str:
    """The key of the job that the button `slot` would start: the same until there is such a job."""
    kept = st.session_state.get(slot)
    if not isinstance(kept, str) or jobs.known(frame.workspace(), kept):
        kept = st.session_state[slot] = secrets.token_hex(8)
    return kept


def start(command: tuple[str, ...], about: Mapping[str, str], key: str) -> None:
    """Start the job of that key. For a callback: nothing in here gives way to a newer message."""
    jobs.start(frame.workspace(), command, about=about, key=key)
