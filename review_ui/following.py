"""A background job told on a page while it runs; the page is drawn again when it ends."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from review_ui import frame
from review_ui.markup import tag
from runtime import jobs
from runtime.jobs import Status


def latest(about: Mapping[str, str]) -> Status | None:
    """The newest job that works on this; None where there was none."""
    found = jobs.jobs(frame.workspace(), about=about)
    return jobs.status(frame.workspace(), found[0]) if found else None


def follow(about: Mapping[str, str], doing: str) -> bool:
    """Whether a job about this runs now. Shows its progress, or the message of one that failed."""
    status = latest(about)
    if status is None:
        return False
    if status.state == "running":
        frame.part(_line, every=1.0)(about, doing)
        return True
    if status.message:
        frame.show(tag("p", status.message, cls="sm warn", role="alert"))
    return False


def _line(about: Mapping[str, str], doing: str) -> None:
    status = latest(about)
    if status is None or status.state != "running":
        st.rerun()
    last = status.last
    count = f", {last.done:,} of {last.total:,}" if last and last.total else ""
    frame.show(tag("p", f"{doing}{count} …", cls="sm mute", role="status"))
