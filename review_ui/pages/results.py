"""Results: tasks and agents with their denominators, down to each trial."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from graders.report import Cell
from review_ui import frame, runs, theme
from review_ui.markup import Markup, join, tag, visible
from review_ui.runs import AgentLine
from runtime.agents import is_built_in

ALL_PASS, CRITICAL = "All required pass", "Critical pass"
VALID, STRICT = "Graded runs", "Strict: the rest = failed"
SHOWN = 40


def percent(part: int, whole: int) -> str:
    """ "66.7%", or a dash without a denominator."""
    return f"{100 * part / whole:.1f}%" if whole else "–"


def passed(line: AgentLine | Cell, definition: str) -> int:
    """Trials that passed by the chosen definition."""
    return line.critical_passed if definition == CRITICAL else line.passed


def denominator(line: AgentLine | Cell, base: str) -> int:
    """Trials that count by the chosen denominator."""
    return line.attempted if base == STRICT else line.graded


def agents_table(lines: list[AgentLine], definition: str, base: str) -> Markup:
    """A row an agent."""
    heads = ["Agent", "Rate", "", "Passed", "of", "Needs physician", "Invalid", "Severe harm", "Tasks"]
    rows = []
    for line in lines:
        good, whole = passed(line, definition), denominator(line, base)
        share = 100 * good / whole if whole else 0
        bar = tag("div", tag("div", "", style=f"width:{share:.1f}%"), cls="share", aria_hidden="true")
        rows.append(
            tag(
                "tr",
                tag("th", line.agent, scope="row"),
                tag("td", percent(good, whole), cls="num b"),
                tag("td", bar, cls="bar-cell"),
                tag("td", f"{good:,}", cls="num"),
                tag("td", f"{whole:,}", cls="num"),
                tag("td", f"{line.ungraded:,}", cls="num"),
                tag("td", f"{line.invalid:,}", cls="num"),
                tag("td", f"{line.severe_harm_events:,}", cls="num warn b" if line.severe_harm_events else "num"),
                tag("td", f"{line.tasks:,}", cls="num"),
            )
        )
    head = tag("tr", join(tag("th", name, scope="col", cls=None if not n else "num") for n, name in enumerate(heads)))
    return tag("table", tag("thead", head), tag("tbody", join(rows)), cls="grid figures")


def heat_map(cells: list[Cell], definition: str, base: str, batch: str) -> Markup:
    """Tasks by agents: how many runs passed; each cell leads to its trials."""
    agents = sorted({cell.agent for cell in cells})
    tasks = sorted({cell.task for cell in cells}, key=lambda task: (-_share(cells, task, definition, base), task))
    by_key = {(cell.task, cell.agent): cell for cell in cells}
    rows = []
    for task in tasks[:SHOWN]:
        made = []
        for agent in agents:
            cell = by_key.get((task, agent))
            if cell is None:
                made.append(tag("td", "–", cls="heat none"))
                continue
            good, whole = passed(cell, definition), denominator(cell, base)
            step = 0 if not good else 3 if good == whole else 2 if 2 * good >= whole else 1
            words = f"{good} of {whole}" if whole else "none graded"
            address = frame.link("trials", **{"from": batch, "by": agent, "q": task})
            made.append(
                tag("td", tag("a", words, href=address, title=f"Trials of {agent} on {task}"), cls=f"heat h{step}")
            )
        rows.append(tag("tr", tag("th", task, scope="row"), join(made)))
    head = tag("tr", tag("th", "Task", scope="col"), join(tag("th", agent, scope="col") for agent in agents))
    return tag("div", tag("table", tag("thead", head), tag("tbody", join(rows)), cls="grid heat-map"), cls="scroll-x")


def _share(cells: list[Cell], task: str, definition: str, base: str) -> float:
    mine = [cell for cell in cells if cell.task == task]
    whole = sum(denominator(cell, base) for cell in mine)
    return sum(passed(cell, definition) for cell in mine) / whole if whole else 0.0


def frame_of(cells: list[Cell]) -> pd.DataFrame:
    """A row a task and agent, as it is shown and exported."""
    return pd.DataFrame(
        [
            {
                "Task": visible(cell.task) + (" (draft)" if cell.draft else ""),
                "Agent": visible(cell.agent),
                "Attempted": cell.attempted,
                "Graded": cell.graded,
                "Needs physician": cell.ungraded,
                "Invalid": cell.invalid,
                "Not finished": cell.open,
                "Passed": cell.passed,
                "Passed, % of graded": round(100 * cell.pass_rate, 1) if cell.pass_rate is not None else None,
                "Passed, % of attempted": round(100 * cell.strict_rate, 1) if cell.strict_rate is not None else None,
                "Critical passed": cell.critical_passed,
                "Severe harm": cell.severe_harm_events,
                "Version": f"{cell.agent_digest[:8]}/{cell.grade_digest[:8]}" if cell.agent_digest else "",
                "Notes": visible(cell.notes),
            }
            for cell in cells
        ]
    )


def page() -> None:
    """Draw the page."""
    batches = frame.batches()
    if not batches:
        frame.show(tag("header", tag("h1", "Results", cls="h1"), cls="head"))
        frame.show(tag("p", "Nothing has been run in this workspace yet.", cls="empty"))
        st.page_link(frame.path("run.py"), label="Run agents on tasks", icon=":material/play_circle:")
        return
    names = [batch.name for batch in batches]
    heading, choice = st.columns([2.4, 1], vertical_alignment="bottom")
    name = choice.selectbox("Batch", names, key="batch", bind="query-params")
    batch = next(one for one in batches if one.name == name) if name in names else batches[0]
    every = runs.counted(frame.trial_rows(batch))
    cells, older = runs.current(every, batch)
    lines = runs.by_agent(cells)
    tasks = {cell.task for cell in cells}
    total = {
        key: sum(getattr(cell, key) for cell in cells) for key in ("attempted", "graded", "ungraded", "invalid", "open")
    }
    chips = [theme.chip(f"{total['attempted']:,} attempted"), theme.chip(f"{total['graded']:,} graded")]
    profiles = sorted({cell.profile for cell in cells if cell.profile})
    chips.insert(0, theme.chip(f"Profile: {', '.join(profiles)}" if profiles else "Profile unknown"))
    if total["ungraded"]:
        chips.append(theme.chip(f"{total['ungraded']:,} need a physician", "gray", "hourglass_empty"))
    if total["invalid"]:
        chips.append(theme.chip(f"{total['invalid']:,} invalid", "orange", "warning"))
    if total["open"]:
        chips.append(theme.chip(f"{total['open']:,} not finished", "blue", "progress_activity"))
    if any(cell.draft for cell in cells):
        chips.append(theme.chip("Draft tasks among them", "gray", "edit_note"))
    with heading:
        count = (
            f"{len(tasks)} task{'s' if len(tasks) != 1 else ''} × {len(lines)} agent{'s' if len(lines) != 1 else ''}"
        )
        frame.show(tag("header", tag("h1", f"Results: {batch.name}, {count}", cls="h1"), frame.facts(*chips)))
    if not cells:
        frame.show(tag("p", "This batch has no trial yet.", cls="empty"))
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        definition = st.segmented_control(
            "What passes", [ALL_PASS, CRITICAL], default=ALL_PASS, required=True, key="passes", bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
        base = st.segmented_control(
            "Out of what", [VALID, STRICT], default=VALID, required=True, key="of", bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
        if len(tasks) < 20:
            frame.show(tag("span", "Under 20 tasks: listed, not ranked.", cls="sm mute"))
    frame.show(theme.section("Agents", "runs that passed, counted; no estimate is made from them"))
    frame.show(agents_table(lines, definition or ALL_PASS, base or VALID))
    controls = [line for line in lines if is_built_in(line.agent)]
    if controls:
        told = ", ".join(f"{line.agent} {passed(line, ALL_PASS)} of {denominator(line, VALID)}" for line in controls)
        words = f"Controls: {told}. oracle must pass all; noop, shotgun and parrot must pass none."
        frame.show(tag("p", words, cls="sm mute"))
    frame.show(
        theme.section("Tasks by agents", f"runs passed; easiest first, {min(SHOWN, len(tasks))} of {len(tasks)} tasks")
    )
    frame.show(heat_map(cells, definition or ALL_PASS, base or VALID, batch.name))
    frame.show(theme.section("A row a task and agent", "graded + needs physician + invalid = attempted"))
    st.dataframe(frame_of(cells), hide_index=True, height="content" if len(cells) <= 20 else 600)
    if older:
        frame.show(
            theme.section("Earlier versions of these tasks", "not counted above: another version is another task")
        )
        st.dataframe(frame_of(older), hide_index=True)


page()
