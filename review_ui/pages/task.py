"""Task: the chart that the agent reads, what it is asked, and what it is graded on."""

from __future__ import annotations

import streamlit as st

from graders.words import words_in
from review_ui import chart_records, chart_sections, checkpoints, frame, library, prose, reference_plans, theme
from review_ui.chartview import ChartView
from review_ui.library import Held
from review_ui.markup import Markup, tag
from review_ui.reviewing.worklist import STAGES, where
from review_ui.sight import sight
from tasks.declarations import Checkpoint
from tasks.package import Task

AUTHORITY = {"orders": "Acts by: orders", "pends": "Acts by: pended orders", "recommends": "Acts by: recommendation"}
CHART, CHECKPOINTS, RECORD, PLANS = "Chart", "Checkpoints", "Every resource", "Reference plans"


def clock(task: Task) -> str:
    """The task's clock: "12 Mar 2026, 09:30"; "" for a draft without one."""
    context = task.meta.context
    if context is None or context.now is None:
        return ""
    return f"{context.now:%-d %b %Y, %H:%M}"


def header(held: Held) -> None:
    """Title and facts, which version this is, and the door to its review."""
    task, meta = held.task, held.task.meta
    authority = meta.context.authority if meta.context else None
    state = [theme.chip("Draft", "gray", "edit_note")] if task.is_draft else []
    if held.at:
        state.append(theme.chip("As it was released", "green", "verified"))
    elif held.state is not None:
        state.append(theme.chip(*STAGES[held.state.stage]))
    if meta.data_class != "open":
        state.append(theme.chip(f"Data class {meta.data_class}", "orange", "lock"))
    if meta.split == "held_out":
        state.append(theme.chip("Held out", "gray", "visibility_off"))
    with st.container(horizontal=True, vertical_alignment="center", key="crumbs"):
        st.page_link(
            frame.path("tasks.py"), label="All tasks", icon=":material/arrow_back:", query_params=frame.chosen()
        )
        if held.state is not None:
            st.page_link(
                frame.path(where(held.state.stage)), label="Its review", icon=":material/rate_review:",
                query_params={"id": task.id, **frame.chosen()},
            )  # fmt: skip
    frame.header(
        meta.title,
        frame.facts(
            theme.chip(meta.specialty),
            theme.chip(meta.workflow),
            *([theme.chip(AUTHORITY[authority], "plain", "edit_document")] if authority else []),
            *([theme.chip(clock(task), "plain", "schedule")] if clock(task) else []),
            theme.chip(f"Version {meta.version}", "plain", "tag"),
            *([theme.chip(f"About {meta.estimated_minutes} min")] if meta.estimated_minutes else []),
        ),
        right=theme.chips(*state) if state else None,
    )


def question(task: Task, quote: str = "", *, wide: bool = False) -> None:
    """The instruction, as the agent reads it."""
    frame.show(theme.section("What the agent is asked", "the whole instruction; nothing else of the task reaches it"))
    words = prose.formatted(task.instruction, prose.find(task.instruction, quote))
    frame.show(tag("div", words, cls="question wide" if wide else "question"))


def place(task: Task, entry: str, words: str) -> Markup:
    """The link from a fact that a checkpoint rests on to its place in the chart or the instruction."""
    ref, _, quote = entry.partition("#")
    quote = quote.strip().strip('"')
    view = CHECKPOINTS if ref == "instruction" else RECORD
    return tag("a", words, href=frame.link("task", id=task.id, view=view, at=ref, quote=quote, **at_version()))


def at_version() -> dict[str, str]:
    """The version that the address asks for, for links that stay at it."""
    asked = frame.asked("v")
    return {"v": asked} if asked else {}


def in_words(task: Task, checkpoint: Checkpoint, number: int) -> Markup:
    """One checkpoint in plain words."""
    words = words_in(task, checkpoint)
    links = [place(task, entry, fact) for entry, fact in zip(checkpoint.rests_on, words.rests_on, strict=True)]
    return checkpoints.card(number, checkpoint, words, links)


def grading(task: Task) -> None:
    """The checkpoints in plain words; the declaration and code folded."""
    critical = sum(checkpoint.criticality == "critical" for checkpoint in task.checkpoints)
    frame.show(theme.section("Checkpoints", f"{len(task.checkpoints)}, {critical} critical"))
    if not task.checkpoints:
        frame.show(tag("p", "This draft has no checkpoints yet.", cls="empty"))
    toml = task.files["checkpoints.toml"].decode("utf-8") if "checkpoints.toml" in task.files else ""
    for number, checkpoint in enumerate(task.checkpoints, start=1):
        frame.show(in_words(task, checkpoint, number))
        with st.expander("How it is written", key=f"written-{checkpoint.id}", type="compact"):
            frame.show(theme.written(checkpoints.declaration(toml, checkpoint.id)))
    if task.code:
        with st.expander("Code that the checkpoints name (checkpoints.py)"):
            frame.show(theme.written(task.code))


def chart(view: ChartView, task: Task) -> None:
    """The chart, in the order in which it is read."""
    question(task, wide=True)
    chart_sections.facts_strip(view)
    chart_sections.times(view)
    chart_sections.problems_and_gaps(view)
    chart_sections.labs(view, frame.asked("at"))
    chart_records.notes(view)


def _close() -> None:
    st.query_params.pop("at", None)
    st.query_params.pop("quote", None)


def record(view: ChartView) -> None:
    """One resource, if asked for, above the list of every resource."""
    at = frame.asked("at")
    if at and at != "instruction":
        with st.container(border=True, key="record"):
            chart_records.record_card(view, at, frame.asked("quote"))
            st.button("Close", icon=":material/close:", on_click=_close)
    chart_records.every_resource(view)


def choose_version(held: Held) -> None:
    """As it stands now, or a version that was released; the choice stands in the address."""
    if not held.releases:
        return
    choices = ["", *held.releases]
    now = held.task.meta.version if not held.at else None
    st.selectbox(
        "Version", choices, key="v", bind="query-params", label_visibility="collapsed", width=260,
        format_func=lambda version: f"Version {version}, released" if version
        else f"As it stands now{f', version {now}' if now else ''}",
    )  # fmt: skip


def page() -> None:
    """Draw the page."""
    seen = sight()
    # The choice below stands in the session before it stands in the address.
    held = library.hold(frame.asked("id"), seen, str(st.session_state.get("v", frame.asked("v")) or ""))
    task = held.task
    header(held)
    hidden = not seen.grading(task.id)
    if hidden:
        frame.show(
            frame.notice("Solve it first.", "How it is graded opens on the Review page, once your own plan is locked.")
        )
    views = [CHART, RECORD] if hidden else [CHART, CHECKPOINTS, RECORD, PLANS]
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        chosen = st.segmented_control(
            "What to show", views, default=CHART, required=True, key="view",
            bind="query-params", label_visibility="collapsed",
        )  # fmt: skip
        choose_version(held)
    if chosen == CHECKPOINTS:
        left, right = st.columns([1, 1.25], gap="large")
        with left:
            question(task, frame.asked("quote") if frame.asked("at") == "instruction" else "")
        with right:
            grading(task)
    elif chosen == PLANS:
        reference_plans.draw(task)
    elif task.meta.context is None:
        question(task)
        frame.show(
            frame.notice("No patient yet.", "This draft does not name its patient, so its chart cannot be shown.")
        )
    else:
        view = held.draw()
        if chosen == RECORD:
            record(view)
        else:
            chart(view, task)


page()
