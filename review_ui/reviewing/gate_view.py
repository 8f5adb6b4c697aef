"""The gate as a reviewer sees it in stage 1: what was recorded, and every check now, as a job that records nothing.

What it found is the same for everybody who looks at these bytes, so it is kept for all of them; who asked for it is
told to nobody, because reviewers of a round do not hear of each other.
"""

from __future__ import annotations

import streamlit as st

from authoring.commands.gate import LOOK
from authoring.gate.results import VERSION, GateResult, kept_in
from review_ui import following, frame, theme
from review_ui.autosave import Notebook
from review_ui.markup import Markup, join, tag
from review_ui.reviewing import acting, applying_view
from review_ui.reviewing.sitting import Sitting
from runtime import jobs
from runtime.jobs import Status

#: What is said of a job that left no result.
_ENDED = {
    "stopped": "It was stopped.",
    "lost": "Its process is gone, with the machine perhaps. Start it again.",
    "ended": "What it found cannot be read any more. Start it again.",
}
_STATES: dict[str, tuple[str, theme.Tone, str]] = {
    "passed": ("Passed", "green", "check_circle"),
    "failed": ("Failed", "red", "cancel"),
    "skipped": ("Skipped", "gray", "hourglass_empty"),
}


def about(at: Sitting) -> dict[str, str]:
    """What such a job works on: these very bytes."""
    return {"checks": at.at.task_id, "package": at.at.package}


def draw(at: Sitting) -> None:
    """What the last gate over these bytes found; each check, where somebody has run them."""
    frame.show(theme.section("Gate", "what is checked without a physician"))
    recorded(at)
    status = following.latest(about(at))
    if status is not None and status.state == "running":
        with st.container(border=True, key="checks-job"):
            frame.show(tag("p", "You may go on with the review, or close this page meanwhile.", cls="sm mute"))
            mine = status.job.person == at.me
            following.watch(about(at), "Running every check, without a model", stop="Stop" if mine else "")
        return
    found = kept_in(frame.workspace().jobs / status.job.id) if status is not None else None
    if found is not None and found.version == VERSION:
        checks(found)
        return
    if status is not None and found is None:
        frame.show(_nothing(at, status))
    button(at)


def recorded(at: Sitting) -> None:
    """What stands in the task's record of these bytes."""
    found = at.state.gate
    if found is None:
        frame.show(tag("p", "No gate is recorded for the task as it stands.", cls="empty"))
        return
    chip = theme.chip("Passed", "green", "check_circle") if found.passed else theme.chip("Failed", "red", "cancel")
    frame.show(tag("div", chip, tag("p", f"Version {found.gate}, {found.at.astimezone():%-d %b %Y, %H:%M}", cls="sm")))
    if found.failures:
        frame.show(tag("ul", join(tag("li", one) for one in found.failures), cls="list"))


def button(at: Sitting) -> None:
    """The button that runs every check; its id is the job's, so that two clicks are one job."""
    place = frame.workspace()

    def does(book: Notebook, id: str) -> str:
        status = following.latest(about(at))
        if status is None or status.state != "running":
            jobs.start(
                place, ["authoring", "gate", at.at.task_id, "--dry-run", "--as", at.me],
                about=about(at), person=at.me, key=id, environment=acting.voucher(at, LOOK, "", id),
            )  # fmt: skip
        return ""

    so_far = len(jobs.jobs(place, about=about(at)))
    acting.button(at, "Run every check now and show what each found", f"checks#{at.at.package}-{so_far}", does,
                  key="checks", uses=(), icon=":material/checklist:")  # fmt: skip
    frame.show(tag("p", "About ten seconds, without a model. Nothing is recorded.", cls="sm mute"))


def _nothing(at: Sitting, status: Status) -> Markup:
    said = _ENDED.get(status.state) or applying_view.in_words(at, status.message)
    return frame.notice("The checks did not come to an end.", said)


def checks(found: GateResult) -> None:
    """Each check with what it looked at: plans, mutants caught, harmless variants, survivors."""
    failed = sum(one.state == "failed" for one in found.checks)
    chip = theme.chip(f"{failed} of {len(found.checks)} checks fail" if failed else "No check fails",
                      "red" if failed else "green", "cancel" if failed else "check_circle")  # fmt: skip
    frame.show(
        tag(
            "div",
            chip,
            tag("span", f" {len(found.checks)} checks in {found.seconds:.0f} s", cls="sm mute"),
            role="status",
        )
    )
    rows = [
        tag(
            "tr",
            tag("td", one.name, cls="b"),
            tag("td", one.detail),
            tag("td", theme.chip(*_STATES[one.state]), cls="nowrap"),
        )
        for one in found.checks
    ]
    heads = [tag("th", name, scope="col") for name in ("Check", "What it found", "State")]
    frame.show(tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(rows)), cls="grid"))
