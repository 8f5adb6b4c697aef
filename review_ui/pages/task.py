"""Task: what the agent is asked, what it is graded on, and what the answer may look like."""

from __future__ import annotations

import streamlit as st

from graders.words import plain_words
from review_ui import checkpoints, frame, prose, theme
from review_ui.markup import tag
from tasks.package import Task

AUTHORITY = {"orders": "Acts by: orders", "pends": "Acts by: pended orders", "recommends": "Acts by: recommendation"}
VIEWS = {"checkpoints": "Question and checkpoints", "plans": "Reference plans", "files": "Files"}


def clock(task: Task) -> str:
    """The task's clock: "12 Mar 2026, 09:30"; "" for a draft without one."""
    context = task.meta.context
    if context is None or context.now is None:
        return ""
    now = context.now
    return f"{now.day} {now:%b %Y, %H:%M}"


def header(task: Task) -> None:
    """Title and facts."""
    meta = task.meta
    authority = meta.context.authority if meta.context else None
    state = [theme.chip("Draft", "gray", "edit_note")] if task.is_draft else []
    if meta.data_class != "open":
        state.append(theme.chip(f"Data class {meta.data_class}", "orange", "lock"))
    if meta.split == "held_out":
        state.append(theme.chip("Held out", "gray", "visibility_off"))
    frame.header(
        meta.title,
        frame.facts(
            theme.chip(meta.specialty),
            theme.chip(meta.workflow),
            *([theme.chip(AUTHORITY[authority], "plain", "edit_document")] if authority else []),
            *([theme.chip(clock(task), "plain", "schedule")] if clock(task) else []),
            theme.chip(f"Version {meta.version}"),
            *([theme.chip(f"About {meta.estimated_minutes} min")] if meta.estimated_minutes else []),
        ),
        right=theme.chips(*state) if state else None,
    )


def question(task: Task) -> None:
    """The instruction, as the agent reads it."""
    frame.show(theme.section("What the agent is asked", "the whole instruction; nothing else of the task reaches it"))
    frame.show(prose.formatted(task.instruction))


def grading(task: Task) -> None:
    """The checkpoints in plain words; the declaration and code folded."""
    critical = sum(checkpoint.criticality == "critical" for checkpoint in task.checkpoints)
    frame.show(theme.section("Checkpoints", f"{len(task.checkpoints)}, {critical} critical"))
    if not task.checkpoints:
        frame.show(tag("p", "This draft has no checkpoints yet.", cls="empty"))
    toml = task.files["checkpoints.toml"].decode("utf-8") if "checkpoints.toml" in task.files else ""
    for number, checkpoint in enumerate(task.checkpoints, start=1):
        words = plain_words(
            checkpoint,
            authority=task.meta.context.authority if task.meta.context else None,
            code=task.code,
            records=task.chart,
        )
        frame.show(checkpoints.card(number, checkpoint, words, [tag("span", fact) for fact in words.rests_on]))
        with st.expander("How it is written", key=f"written-{checkpoint.id}", type="compact"):
            st.code(checkpoints.declaration(toml, checkpoint.id), language="toml", wrap_lines=True)
    if task.code:
        with st.expander("Code that the checkpoints name (checkpoints.py)"):
            st.code(task.code, language="python", wrap_lines=True)


def page() -> None:
    """Draw the page."""
    task = frame.task(frame.asked("id"))
    st.page_link(frame.path("home.py"), label="All tasks", icon=":material/arrow_back:")
    header(task)
    left, right = st.columns([1.1, 1], gap="large")
    with left:
        question(task)
    with right:
        grading(task)


page()
