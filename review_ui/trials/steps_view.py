"""What the agent did step by step, and what it saw of each result."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC

import streamlit as st

from review_ui import chart_records, frame, steps, stored_trials, theme
from review_ui.markup import Markup, join, tag
from review_ui.steps import Entry, OrderLine, Step, Trajectory
from tasks.package import Task
from tasks.stored import StoredTrial
from tasks.trials import ToolCall

PAGE = 40
ALL, CUT, WRITES, EVIDENCE = "All", "Cut results", "Writes", "Evidence"


def step_chips(step: Step, writes: dict[int, OrderLine]) -> list[Markup]:
    """What is worth knowing of a step before it is opened."""
    made = []
    if step.error:
        made.append(theme.chip("refused", "red", "error"))
    if step.cut:
        made.append(theme.chip("cut", "orange", "content_cut"))
    for number in step.writes:
        line = writes.get(number)
        made.append(theme.chip(line.kind if line else "written", "blue", line.symbol if line else "edit_document"))
    if step.tool == "write_file" and not step.error:
        made.append(theme.chip("note", "blue", "description"))
    return made


def step_row(step: Step, writes: dict[int, OrderLine]) -> Markup:
    """One row."""
    found = "" if step.total is None else f"{step.total:,} found"
    return tag(
        "div",
        tag("span", f"{step.n}", cls="no"),
        tag("span", step.verb, cls="b"),
        tag("span", step.words, cls="mute"),
        tag("span", found, cls="sm mute nowrap"),
        tag("span", join(step_chips(step, writes)), cls="chips"),
        cls="trial-step",
        id=f"step-{step.n}",
    )


def _toggle_step(n: int) -> None:
    if frame.asked("step") == str(n):
        st.query_params.pop("step", None)
    else:
        st.query_params["step"] = str(n)


@frame.part
def draw(
    trial: StoredTrial, task: Task | None, told: Trajectory, lines: Sequence[OrderLine], evidence: frozenset[int]
) -> None:
    """The steps, a page at a time, the chosen one open."""
    path = trial.path / "trajectory.jsonl"
    with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute"):
        frame.show(theme.section("Steps", f"{len(told.steps):,} tool calls, {len(lines):,} written to the record"))
        chosen = st.segmented_control(
            "Which steps", [ALL, CUT, WRITES, EVIDENCE], default=ALL, required=True, key="which", bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
    kept = [
        step
        for step in told.steps
        if chosen in (None, ALL)
        or (chosen == CUT and step.cut)
        or (chosen == WRITES and step.writes)
        or (chosen == EVIDENCE and step.n in evidence)
    ]
    asked = frame.asked("step")
    wanted = int(asked) if asked.isdecimal() else 0
    place = next((at for at, step in enumerate(kept) if step.n == wanted), None)
    at, pages = frame.paged(len(kept), PAGE)
    if place is not None:
        at = place // PAGE + 1
    by_sequence = {line.write.sequence: line for line in lines}
    for step in kept[(at - 1) * PAGE : at * PAGE]:
        with st.container(horizontal=True, wrap=False, vertical_alignment="center", key=f"row-step-{step.n}"):
            frame.show(step_row(step, by_sequence))
            st.button(
                "Close" if step.n == wanted else "Open", key=f"step-{step.n}", type="tertiary",
                on_click=_toggle_step, args=(step.n,),
            )  # fmt: skip
        if step.n == wanted:
            call = steps.full(path, step)
            with st.container(key="open-step"):
                if call is None:
                    frame.show(tag("p", "This step cannot be read.", cls="empty"))
                else:
                    open_step(trial, task, call)
    if not kept:
        frame.show(tag("p", "No step of this kind." if told.steps else "It made no tool call.", cls="empty"))
    frame.pager(at, pages, drop=("step",))
    for ending in told.endings:
        frame.show(tag("p", theme.icon("stop_circle"), f" {ending.words}", cls="warn sm"))


def open_step(trial: StoredTrial, task: Task | None, call: ToolCall) -> None:
    """What the agent saw, where it was cut, the rest, and the request."""
    length = len(call.result)
    said = f"{call.shown:,} of {length:,} characters" if call.shown < length else f"all {length:,} characters"
    title = tag("span", f"What the agent saw, step {call.n}", cls="h3")
    frame.show(tag("div", title, tag("span", said, cls="sm mute"), cls="pair"))
    found: list[Entry] = []
    if task is not None and not call.writes:
        now = task.meta.context.now if task.meta.context else None
        found = steps.entries(call, task.chart, (now.tzinfo if now else None) or UTC)
    ways = [*(["In words"] if found else []), "As seen", "Full result", "Request as sent"]
    view = st.segmented_control(
        "How", ways, default=ways[0], required=True, key=f"how-{call.n}", label_visibility="collapsed"
    )
    if view == "In words":
        frame.show(entry_rows(found, length - call.shown))
    elif view == "Request as sent":
        arguments = call.arguments
        asked = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, indent=2)
        frame.show(tag("p", "Arguments as the agent gave them", cls="sm b"))
        frame.show(tag("div", asked[: chart_records.LONG], cls="mono saw"))
        if call.request:
            frame.show(tag("p", "FHIR request as sent", cls="sm b"))
            frame.show(tag("div", call.request[: chart_records.LONG], cls="mono saw"))
    elif view == "Full result":
        chart_records.long_text(readable(call.result), "", key=f"full-{call.n}")
    else:
        seen = call.seen
        frame.show(tag("div", excerpt(seen), cls="mono saw"))
        if call.shown < length:
            frame.show(cut_band(length - call.shown))
            frame.show(tag("div", excerpt(call.result[call.shown :]), cls="mono unseen"))
    frame.show(
        tag(
            "p",
            tag("a", "Chart as it stood after this step", href=stored_trials.link(trial, chart="1", step=str(call.n))),
            cls="sm",
        )
    )


def entry_rows(found: Sequence[Entry], missed: int) -> Markup:
    """The resources of a result as lines, with the cut where it fell."""
    made: list[Markup] = []
    banded = False
    for one in found[:300]:
        if one.seen != "whole" and not banded:
            banded = True
            made.append(cut_band(missed))
        made.append(
            tag(
                "div",
                tag("span", one.line.what, tag("span", f" {one.line.detail}", cls="sm mute")),
                tag("span", str(one.line.when or "no date"), cls="sm mute nowrap"),
                cls="pair entry" if one.seen == "whole" else "pair entry unseen",
            )
        )
    if missed > 0 and not banded:
        made.append(cut_band(missed))
    if len(found) > 300:
        made.append(tag("p", f"The first 300 of {len(found):,}.", cls="sm mute"))
    return tag("div", join(made), cls="entries")


def cut_band(missed: int) -> Markup:
    """Where the result was cut."""
    words = f" Cut here. The agent did not see the next {missed:,} characters."
    return tag("div", theme.icon("content_cut"), words, cls="cut-band")


def excerpt(text: str, most: int = 4_000) -> str:
    """The beginning and the end of a long text: enough to judge, quick to draw."""
    if len(text) <= most:
        return text
    return f"{text[: most * 3 // 4]}\n… {len(text) - most:,} characters between …\n{text[-most // 4 :]}"


def readable(result: str) -> str:
    """A JSON result with line breaks; anything else as it is."""
    try:
        return json.dumps(json.loads(result), ensure_ascii=False, indent=1)
    except ValueError:
        return result
