"""A background job told on a page while it runs; the page is drawn again when it ends."""

from __future__ import annotations

import time
from collections.abc import Mapping

import streamlit as st

from review_ui import failure, frame
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
        watch(about, doing)
        return True
    if status.message:
        frame.show(tag("p", status.message, cls="sm warn", role="alert"))
    return False


def watch(about: Mapping[str, str], doing: str, *, stop: str = "") -> None:
    """How far a job that runs is, drawn anew every second. `stop`: the words on the button that stops it."""
    st.session_state["following"] = time.monotonic()
    frame.part(_line, every=1.0)(about, doing, stop)


def _line(about: Mapping[str, str], doing: str, stop: str) -> None:
    status = latest(about)
    if status is None or status.state != "running":
        # Drawn with the page it never ends the page's own run: what stands below is still to come.
        if time.monotonic() - st.session_state.get("following", 0.0) > 0.5:
            st.rerun()
        return
    last = status.last
    if last and last.total:
        share = 100 * min(last.done, last.total) // last.total
        frame.show(tag("div", tag("div", style=f"width:{share}%"), cls="share"))
    count = f", {last.done:,} of {last.total:,}" if last and last.total else ""
    words = "Stopping" if status.job.stop_asked else f"{doing}{count}"
    frame.show(tag("p", f"{words} …", cls="sm mute", role="status"))
    if stop:
        st.button(
            stop, key=f"stop-{status.job.id}", icon=":material/stop:", on_click=_stop, args=(status.job.id,),
            disabled=status.job.stop_asked is not None,
        )  # fmt: skip


@failure.guarded
def _stop(id: str) -> None:
    jobs.stop(frame.workspace(), id)
