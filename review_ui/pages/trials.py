"""Trials: every stored trial, to pick one and see what it did."""

from __future__ import annotations

import streamlit as st

from graders.report import TrialRow
from review_ui import frame, stored_trials, theme
from review_ui.markup import Markup, tag
from review_ui.results.narrow import to_regrade, to_run_again
from review_ui.sight import sight

PAGE = 25
ANY = "Any"
REGRADE, AGAIN = "regrade", "again"
RESULTS = {
    ANY: None, "Pass": "pass", "Fail": "fail", "Needs physician": "ungraded", "To regrade": REGRADE,
    "Run again": AGAIN, "No result": "",
}  # fmt: skip


def state_of(row: TrialRow) -> str:
    """The row's result; REGRADE or AGAIN where it has none only because checkpoints or task have changed since."""
    return REGRADE if to_regrade(row) else AGAIN if to_run_again(row) else row.result


def chip(row: TrialRow) -> Markup:
    """The row's state."""
    if row.result:
        return stored_trials.due_chip(row) or theme.verdict_chip(row.result)
    open_ = stored_trials.open_chip(stored_trials.of_row(row), row.outcome)
    return open_ or theme.chip("Not graded", "gray", "hourglass_empty")


def cells(row: TrialRow) -> Markup:
    """One row of the list."""
    return tag(
        "div",
        tag(
            "div",
            tag("div", row.task, cls="h3"),
            tag("div", f"{row.agent} · run {row.run} · {row.batch}", cls="sm mute"),
        ),
        tag("div", chip(row)),
        tag("div", row.outcome.value.replace("_", " "), cls="sm"),
        tag("div", frame.harm_chip(row.severe_harm_events)),
        tag(
            "div",
            f"attempt {row.attempt}" if row.attempt > 1 else "",
            row.note and tag("span", row.note),
            cls="sm mute",
        ),
        cls="trial-row",
    )


def page() -> None:
    """Draw the page."""
    seen = sight()
    found = {batch.name: stored_trials.shown(batch, seen) for batch in frame.batches()}
    every = [row for one in found.values() for row in one.rows]
    left_out = seen.left_out(pair for one in found.values() for pair in one.hidden)
    batches = [name for name, one in found.items() if one.facts]
    frame.show(
        tag(
            "header",
            tag(
                "div", tag("h1", "Trials", cls="h1"), tag("p", f"{len(every):,} stored, newest batch first", cls="lead")
            ),
            cls="head",
        )
    )
    if left_out:
        frame.show(left_out)
    if not every:
        words = "No other trial is stored." if left_out else "Nothing has been run in this workspace yet."
        frame.show(tag("p", words, cls="empty"))
        st.page_link(frame.path("run.py"), label="Run agents on tasks", icon=":material/play_circle:")
        return
    left, agents, batch_names, results = st.columns([2, 1, 1, 1])
    words = left.text_input(
        "Search a task", placeholder="Search a task", icon=":material/search:", key="q", bind="query-params", live="0s",
        label_visibility="collapsed",
    )  # fmt: skip
    agent = agents.selectbox(
        "Agent", [ANY, *sorted({row.agent for row in every})], key="by", bind="query-params",
        format_func=lambda name: "Any agent" if name == ANY else name, label_visibility="collapsed",
    )  # fmt: skip
    batch_name = batch_names.selectbox(
        "Batch", [ANY, *batches], key="from", bind="query-params",
        format_func=lambda name: "Any batch" if name == ANY else name, label_visibility="collapsed",
    )  # fmt: skip
    result = results.selectbox(
        "Result", list(RESULTS), key="result", bind="query-params",
        format_func=lambda name: "Any result" if name == ANY else name, label_visibility="collapsed",
    )  # fmt: skip
    shown = [
        row
        for row in every
        if (not words or words.casefold() in row.task.casefold())
        and (agent in (None, ANY) or row.agent == agent)
        and (batch_name in (None, ANY) or row.batch == batch_name)
        and (result in (None, ANY) or state_of(row) == RESULTS[result])
    ]
    at, pages = frame.paged(len(shown), PAGE)
    frame.show(
        tag(
            "p",
            f"{len(shown):,} found" + (f", page {at} of {pages}" if pages > 1 else ""),
            cls="sm mute",
            role="status",
        )
    )
    for row in shown[(at - 1) * PAGE : at * PAGE]:
        key = f"{row.batch}-{row.task}-{row.agent}-{row.run}"
        with st.container(horizontal=True, wrap=False, vertical_alignment="center", key=f"row-trial-{key}"):
            frame.show(cells(row))
            address = stored_trials.address(row.batch, row.task, row.agent, row.run)
            frame.door("trial.py", "Open", address, key=f"open-{key}", width=88)
    frame.pager(at, pages)


page()
