"""Home: the tasks to choose from, and what this machine holds."""

from __future__ import annotations

import streamlit as st

from review_ui import frame, identity, theme
from review_ui.catalog import TaskRow, filtered
from review_ui.markup import Markup, tag
from review_ui.reviewing import home_view

ALL_SPECIALTIES = "All specialties"
ALL_WORKFLOWS = "All workflows"
PAGE = 20


def counted(n: int, one: str, many: str = "") -> str:
    """ "1 task", "3 tasks"."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def chips_of(row: TaskRow) -> Markup:
    """What state the package is in: only what is known."""
    if row.fault:
        return theme.chip("Cannot be read", "red", "error")
    if row.draft:
        return theme.chip("Draft", "gray", "edit_note")
    return theme.chip(f"Version {row.version}", "plain")


def cells(row: TaskRow) -> Markup:
    """One row of the list."""
    if row.fault:
        return tag(
            "div",
            tag("div", tag("div", row.id, cls="h3"), tag("div", row.fault, cls="sm mute")),
            tag("div", chips_of(row)),
            cls="task-row",
        )
    minutes = f"about {row.minutes} min" if row.minutes else "not stated"
    return tag(
        "div",
        tag(
            "div",
            tag("div", row.title, cls="h3"),
            tag("div", f"{row.specialty} · {row.workflow} · ", tag("span", row.id, cls="nowrap"), cls="sm mute"),
        ),
        tag("div", chips_of(row)),
        tag(
            "div",
            tag("span", f"{row.checkpoints}"),
            tag("span", " checkpoints", cls="narrow-only"),
            tag("span", f" · {row.critical} critical", cls="sm mute") if row.critical else None,
        ),
        tag("div", f"{row.resources:,}", tag("span", " resources", cls="narrow-only"), cls="num"),
        tag("div", minutes, cls="sm mute"),
        cls="task-row",
    )


def home() -> None:
    """Draw the page: a person's worklist first, then the tasks to read and run."""
    who = identity.current().person
    if who is not None:
        home_view.draw(who)
    catalog(personal=who is not None)


def catalog(*, personal: bool) -> None:
    """Every task that can be read and run; below a worklist under a heading of its own."""
    every = frame.rows()
    readable = [row for row in every if not row.fault]
    broken = len(every) - len(readable)
    groups = len({row.group for row in readable})
    drafts = sum(row.draft for row in readable)
    said = [f"{groups} of 8 specialty groups"] if readable else []
    if drafts:
        said.append(f"{counted(drafts, 'is a draft', 'are drafts')}")
    if broken:
        said.append(f"{counted(broken, 'cannot be read', 'cannot be read')}")
    if personal:
        frame.show(theme.section("Tasks to read and run", f"{counted(len(every), 'task')}"))
    else:
        frame.show(
            tag(
                "header",
                tag(
                    "div",
                    tag("h1", f"{counted(len(every), 'task')} to read and run", cls="h1"),
                    tag("p", " · ".join(said) or "No task was found.", cls="lead"),
                ),
                identity.identity_chips(identity.current()),
                cls="head",
            )
        )
    if not personal:
        identity.chooser()
    search, specialty, workflow = st.columns([2, 1, 1])
    words = search.text_input(
        "Search title, specialty or task id",
        placeholder="Search title, specialty or task id",
        label_visibility="collapsed",
        icon=":material/search:",
        key="q",
        bind="query-params",
        live=True,
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
        frame.show(
            tag(
                "div",
                tag("span", f"Task · {len(shown)} of {len(every)}"),
                tag("span", "State"),
                tag("span", "Checkpoints"),
                tag("span", "Resources", cls="num"),
                tag("span", "Time"),
                cls="task-row heading",
            )
        )
    pages = max(1, -(-len(shown) // PAGE))
    given = frame.asked("page")
    at = min(pages, max(1, int(given) if given.isdecimal() else 1))
    for row in shown[(at - 1) * PAGE : at * PAGE]:
        with st.container(horizontal=True, wrap=False, vertical_alignment="center", key=f"row-{row.id}"):
            frame.show(cells(row))
            if st.button("Open", key=f"open-{row.id}", disabled=bool(row.fault), width=88):
                frame.go("task.py", {"id": row.id})
    frame.pager(at, pages)
    if not shown:
        frame.show(tag("p", "No task fits. Clear the search or choose all specialties and workflows.", cls="empty"))


home()
