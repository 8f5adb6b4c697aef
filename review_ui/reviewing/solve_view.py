"""Solve first: instruction and chart left, the own plan right, the lock in the bottom bar."""

from __future__ import annotations

import streamlit as st

from review_ui import chart_records, chart_sections, failure, frame, prose, theme
from review_ui.autosave import UNSETTLED, Area, Notebook, clock, held, memory, settle_all
from review_ui.autosave.choices import sheet, text
from review_ui.chartview import ChartView
from review_ui.markup import tag
from review_ui.reviewing import fields, forms, quoting
from review_ui.reviewing.sitting import Sitting, minted
from tasks.errors import WorkbenchError

#: The chart in the order in which it is read, or all of it.
READ, ENTRIES = "Overview", "Every entry"


def draw(at: Sitting) -> None:
    """Draw the step."""
    left, right = st.columns([1.9, 1], gap="medium")
    with left:
        chart(at)
    with right, st.container(border=True, key="plan"):
        plan(at)
    bar(at)


def question(at: Sitting) -> None:
    """The instruction as the agent reads it."""
    frame.show(theme.section("What the agent is asked", "the whole instruction"))
    frame.show(tag("div", prose.formatted(at.task.instruction), cls="question", data_source=quoting.PATH))


def chart(at: Sitting, *, pointing: bool = False) -> None:
    """The chart, in the order in which it is read. `pointing`: a finding can be about a row of it."""
    question(at)
    if at.task.meta.context is None:
        frame.show(frame.notice("No patient yet.", "This draft does not name its patient."))
        return
    view = at.at.chart
    chosen = st.segmented_control(
        "How to read the chart", [READ, ENTRIES], default=READ, required=True, key="reading", bind="query-params",
        label_visibility="collapsed",
    )  # fmt: skip
    if chosen == ENTRIES:
        entries(view, pointing=pointing)
        return
    others = "orders, reports, immunizations, social history and all else that the agent can look up"
    frame.show(tag("p", f"{ENTRIES} holds {others}.", cls="sm mute"))
    chart_sections.facts_strip(view)
    chart_sections.times(view, pointing)
    chart_sections.problems_and_gaps(view, pointing)
    chart_sections.labs(view, frame.asked("at"), pointing)
    chart_records.notes(view, pointing)


def entries(view: ChartView, *, pointing: bool) -> None:
    """All that the record holds and the agent can look up, by kind; one that is opened stands under its row."""

    def card(ref: str) -> None:
        with st.container(border=True, key="record"):
            chart_records.record_card(view, ref, "", pointing=pointing, raw=False)
            st.button("Close", icon=":material/close:", on_click=_close)

    chart_records.every_resource(view, raw=False, beneath=card)


def _close() -> None:
    st.query_params.pop("at", None)


def plan(at: Sitting) -> None:
    """The six short fields."""
    frame.show(
        tag(
            "div",
            tag("h2", "Your plan", cls="h2", id="your-plan"),
            tag("p", "Write what you would do before you see how it is graded.", cls="sm mute"),
        )
    )
    rows = [
        text(Area(f"plan.{key}", label, 2 if key in ("answer", "do_now") else 1, placeholder, required=True))
        for key, label, placeholder in forms.PLAN
    ]
    sheet(at.book, "plan", [*rows, fields.stacked("plan.confidence", "How sure are you?", forms.CONFIDENCE)])


def bar(at: Sitting) -> None:
    """What is missing, when it was saved, the lock."""
    missing = forms.plan_missing(at.book.values())
    if said := memory().said.get(at.book.key("")):
        with st.bottom:
            frame.show(frame.notice(*said))
    with st.bottom, st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        needed = "To lock, still needed: " + ", ".join(missing) if missing else "Complete."
        frame.show(
            tag(
                "div",
                tag("a", "To the plan", href="#your-plan", cls="sm narrow-only"),
                " ",
                tag("span", needed, cls="b sm", role="status"),
                tag("span", f" {saved_words(at.book)}", cls="sm mute"),
                tag("span", " · A locked plan cannot be edited; you can add a correction later.", cls="sm mute"),
            )
        )
        # Minted when the page is drawn: two clicks on one button are one lock.
        id = minted(f"plan-{at.me}-{at.at.task_id}-{at.state.round}")
        st.button(
            "Lock plan and open checklist", type="primary", icon=":material/lock:", disabled=bool(missing),
            key=f"lock-{id}", on_click=_lock, args=(at, id),
        )  # fmt: skip


@failure.guarded
def _lock(at: Sitting, id: str) -> None:
    book, (found, _) = at.book.again(), held()
    settle_all(book)
    found.hush(book)
    drafts = book.values()
    if found.unsettled(book, "plan."):
        found.say(book, *UNSETTLED)
        return
    if forms.plan_missing(drafts):
        return
    try:
        at.desk.lock_plan(at.at.task_id, forms.plan_of(drafts), review_id=id)
    except WorkbenchError as error:
        found.say(book, "The plan is not locked. Everything that you wrote is kept.", str(error))


def saved_words(book: Notebook) -> str:
    """ "Saved 14:03 · 31 active min"."""
    kept = book.all()
    minutes = book.db.active_minutes(book.person, book.task, book.round)
    newest = max((draft.saved_at for draft in kept.values()), default=None)
    parts = [f"Saved {clock(newest)}" if newest else "", f"{minutes} active min" if minutes else ""]
    return " · ".join(part for part in parts if part)
