"""Tasks: every task as it stands in the workspace, to read, to review, to run."""

from __future__ import annotations

import streamlit as st

from review_ui import frame, identity, library, sight, theme
from review_ui.catalog import TaskRow, filtered
from review_ui.markup import Markup, tag
from review_ui.reviewing.worklist import STAGES
from tasks.taxonomy import GROUPS
from tasks.wording import counted

ALL_SPECIALTIES = "All specialties"
ALL_WORKFLOWS = "All workflows"
PAGE = 20


def version_chips(row: TaskRow) -> Markup:
    """The version as it stands, and whether something is still missing for a release."""
    chips = [theme.chip(f"Version {row.version}", "plain")]
    if row.draft:
        chips.append(theme.chip("Draft", "gray", "edit_note"))
    if row.data_class != "open":
        chips.append(theme.chip(f"Data class {row.data_class}", "orange", "lock"))
    return theme.chips(*chips)


def stage_chip(row: TaskRow) -> Markup:
    """Where its review stands."""
    if not row.stage:
        return theme.chip("Not under review", "plain")
    return theme.chip(*STAGES[row.stage])


def released(row: TaskRow) -> Markup:
    """The version that was released last."""
    if not row.release:
        return tag("div", "never", tag("span", " released", cls="narrow-only"), cls="sm mute")
    newer = row.release != str(row.version)
    return tag(
        "div",
        tag("span", "released ", cls="narrow-only"),
        f"version {row.release}{', changed since' if newer else ''}",
        cls="sm",
    )


def cells(row: TaskRow) -> Markup:
    """One row of the list."""
    if row.fault:
        return tag(
            "div",
            tag("div", tag("div", row.id, cls="h3"), tag("div", row.fault, cls="sm mute")),
            tag("div", theme.chip("Cannot be read", "red", "error")),
            cls="task-row",
        )
    return tag(
        "div",
        tag(
            "div",
            tag("div", row.title, cls="h3"),
            tag("div", f"{row.specialty} · {row.workflow} · ", tag("span", row.id, cls="nowrap"), cls="sm mute"),
        ),
        version_chips(row),
        tag("div", stage_chip(row)),
        released(row),
        tag("div", f"about {row.minutes} min" if row.minutes else "not stated", cls="sm mute"),
        cls="task-row",
    )


def header(every: list[TaskRow]) -> None:
    """How many there are, and what of."""
    readable = [row for row in every if not row.fault]
    said = [f"{len({row.group for row in readable})} of {len(GROUPS)} specialty groups"] if readable else []
    for n, one, many in (
        (sum(row.stage == "released" for row in readable), "is released as it stands", "are released as they stand"),
        (sum(row.draft for row in readable), "is a draft", "are drafts"),
        (len(every) - len(readable), "cannot be read", "cannot be read"),
    ):
        if n:
            said.append(counted(n, one, many))
    frame.show(
        tag(
            "header",
            tag("div", tag("h1", counted(len(every), "task"), cls="h1"),
                tag("p", " · ".join(said) or "No task was found.", cls="lead")),
            identity.identity_chips(identity.current()),
            cls="head",
        )
    )  # fmt: skip


def page() -> None:
    """Draw the page."""
    seen = sight.sight()
    every = library.rows(seen)
    readable = [row for row in every if not row.fault]
    header(every)
    if library.closed(seen):
        frame.show(tag("p", seen.closed, cls="sm mute", role="note"))
    search, specialty, workflow = st.columns([2, 1, 1])
    # Each letter at once: what waits for a pause is sent after the click that ends the typing, and takes it away.
    words = search.text_input(
        "Search title, specialty or task id",
        placeholder="Search title, specialty or task id",
        label_visibility="collapsed",
        icon=":material/search:",
        key="q",
        bind="query-params",
        live="0s",
    )
    chosen_specialty = specialty.selectbox(
        "Specialty",
        [ALL_SPECIALTIES, *sorted({row.specialty for row in readable})],
        label_visibility="collapsed",
        key="specialty",
        bind="query-params",
    )
    chosen_workflow = workflow.selectbox(
        "Workflow",
        [ALL_WORKFLOWS, *sorted({row.workflow for row in readable})],
        label_visibility="collapsed",
        key="workflow",
        bind="query-params",
    )
    shown = filtered(
        every,
        search=words or "",
        specialty=None if chosen_specialty in (None, ALL_SPECIALTIES) else chosen_specialty,
        workflow=None if chosen_workflow in (None, ALL_WORKFLOWS) else chosen_workflow,
    )
    with st.container(horizontal=True, wrap=False, vertical_alignment="center", key="rowhead-tasks"):
        names = (f"Task · {len(shown)} of {len(every)}", "Version", "Review", "Released", "Time")
        frame.show(tag("div", *[tag("span", name) for name in names], cls="task-row heading"))
    at, pages = frame.paged(len(shown), PAGE)
    for row in shown[(at - 1) * PAGE : at * PAGE]:
        with st.container(horizontal=True, wrap=False, vertical_alignment="center", key=f"row-{row.id}"):
            frame.show(cells(row))
            frame.door("task.py", "Open", {"id": row.id}, key=f"open-{row.id}", width=88, shut=bool(row.fault))
    frame.pager(at, pages)
    if not shown:
        frame.show(tag("p", "No task fits. Clear the search or choose all specialties and workflows.", cls="empty"))


page()
