"""Applying the accepted changes, and the gate: each takes seconds to minutes, so each is a job of its own.

It outlives the page, a reload and the server; whoever opens Sign-off sees how far it is, and how it ended. Whether it
was done is what the task's events say, never what the job says of itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import streamlit as st

from review_ui import following, frame, theme
from review_ui.autosave import Notebook, clock
from review_ui.markup import Markup, tag
from review_ui.reviewing import acting, changes
from review_ui.reviewing.findings_view import titles
from review_ui.reviewing.sitting import Sitting
from runtime import jobs
from runtime.jobs import Status
from tasks.review import events as ev

DOING = {"apply": "Applying the accepted changes: check", "gate": "The gate: check"}
NOTHING = {"apply": "Nothing was applied.", "gate": "The gate did not end; nothing was recorded."}
#: How a message of ours names a change: its place, and how its id begins.
_CHANGE = re.compile(r"(\S+) \[([0-9a-f]{12})\]")


def about(at: Sitting) -> dict[str, str]:
    """What a job of these works on."""
    return {"standing": at.at.task_id}


def button(at: Sitting, command: str, label: str, *, icon: str, primary: bool = False, why: str = "") -> None:
    """The button that starts it; `why` it cannot be pressed. Its Review-Id is the job's id: two clicks are one job."""

    def does(book: Notebook, id: str) -> str:
        jobs.start(
            frame.workspace(),
            ["authoring", command, at.at.task_id, "--as", at.me, "--review-id", id],
            about={**about(at), "what": command}, person=at.me, key=id, environment=acting.voucher(at, command, id, id),
        )  # fmt: skip
        return ""

    so_far = len(jobs.jobs(frame.workspace(), about=about(at)))
    with st.container(horizontal=True, vertical_alignment="center"):
        acting.button(
            at, label, f"{command}#{at.at.head}-{so_far}", does, key=command, uses=(), icon=f":material/{icon}:",
            type="primary" if primary else "secondary", disabled=bool(why),
        )  # fmt: skip
        if why:
            frame.show(tag("span", why, cls="sm mute"))


def draw(at: Sitting, may_stop: Callable[[str], bool]) -> bool:
    """The newest job on this task, running or ended; whether it runs now. `may_stop`: by its command."""
    status = following.latest(about(at))
    if status is None:
        return False
    what = status.job.about["what"]
    if status.state == "running":
        with st.container(border=True, key="job"):
            frame.show(tag("p", f"Started {clock(status.job.started_at)} by {at.name(status.job.person)}. "
                           "This page may be closed meanwhile.", cls="sm mute"))  # fmt: skip
            following.watch(about(at), DOING[what], stop="Stop" if may_stop(what) else "")
        return True
    if not _overtaken(at, status):
        frame.show(_end(at, what, status))
    return False


def _overtaken(at: Sitting, status: Status) -> bool:
    """Whether something happened to the task since, so that how the job ended is history: see the audit trail."""
    return any(one.at > status.job.started_at and one.submission != status.job.id for one in at.at.events)


def _end(at: Sitting, what: str, status: Status) -> Markup:
    made = [one for one in at.at.events if one.submission == status.job.id]
    by = f"{at.name(status.job.person)}, {clock(status.job.started_at)}"
    for one in made:
        if isinstance(one, ev.Applied):
            n = len(one.changes)
            words = f"{n} change{'s' if n != 1 else ''} in one commit, and the gate passes on the result. By {by}."
            return _card(theme.chip(f"Version {one.version} is applied", "green", "check_circle"), words)
    for one in made:
        if isinstance(one, ev.GateRan):
            chip = (
                theme.chip("The gate passes", "green", "check_circle")
                if one.passed
                else theme.chip("The gate fails", "red", "cancel")
            )
            return _card(chip, f"{'; '.join(one.failures)} By {by}." if one.failures else f"By {by}.")
    said = {
        "stopped": "It was stopped.",
        "lost": "Its process is gone, with the machine perhaps. Start it again.",
        "ended": "It had been done before.",
    }
    return frame.notice(NOTHING[what], f"{said.get(status.state) or in_words(at, status.message)} Started by {by}.")


def _card(chip: Markup, words: str) -> Markup:
    return tag("div", chip, tag("p", words, cls="sm"), cls="card", role="status")


def in_words(at: Sitting, message: str) -> str:
    """A message with the places that it names in our words, instead of files and ids."""
    cps = titles(at.task)
    return _CHANGE.sub(lambda found: f"“{changes.place_words(found[1], cps)[0]}”", message)
