"""Results: rates with every convention named, what they are rates of, and down to each trial."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from functools import partial
from pathlib import Path

import pandas as pd
import streamlit as st

from graders import frames
from graders.facts import Set, comparable
from graders.frames import Basis
from graders.report import NOT_GRADED, Cell
from graders.report import cells as report_cells
from review_ui import following, frame, starting, stored_trials, theme
from review_ui.kept import kept
from review_ui.markup import Markup, join, tag, visible
from review_ui.results import breakdown, leaderboard
from review_ui.results.breakdown import Cells
from review_ui.results.leaderboard import Line
from review_ui.results.narrow import ANY, narrowed, to_regrade
from review_ui.sight import sight
from review_ui.stored_trials import Shown
from runtime.agents import is_built_in
from tasks.stored import Batch
from tasks.taxonomy import CAPABILITIES

ALL_PASS, CRITICAL = "All required pass", "Critical pass"
GRADED, STRICT = "Graded runs", "Strict: the rest = failed"
OVERVIEW, PARTS, COMPARE, ROWS = "Overview", "By group and workflow", "Compare two", "Every task and agent"
SHOWN = 40
#: Agents beside which the heat map leaves room for something else.
WIDE = 6


# ---- what is computed, kept for as long as the trials stay the same --------------------------------------------------


@kept(60)
def _narrowed(folder: str, state: Hashable, group: str, workflow: str, capability: str, _whole: Set) -> Set:
    return narrowed(_whole, group=group, workflow=workflow, capability=capability)


@kept(20)
def _comparable(folder: str, state: Hashable, _shown: Shown) -> Set:
    return comparable(_shown.facts)


@kept(200)
def _lines(key: Hashable, k: int, basis: Basis, critical: bool, _found: Set) -> list[Line]:
    return leaderboard.lines(_found, k=k, basis=basis, critical=critical)


@kept(100)
def _cells(key: Hashable, basis: Basis, critical: bool, _found: Set) -> Cells:
    return breakdown.cells(_found, basis=basis, critical=critical)


@kept(200)
def _frame(key: Hashable, name: str, argument: str, _found: Set) -> pd.DataFrame:
    make = getattr(frames, name)
    made: pd.DataFrame = make(_found, argument) if argument else make(_found)
    return made


def gap_file(batch: Batch, state: Hashable) -> Path:
    """Where the comparison of notes with records is kept for the batch as it stands now."""
    mark = hashlib.sha256(f"{batch.path}\0{state!r}".encode()).hexdigest()[:32]
    return frame.workspace().cache / "gaps" / f"{mark}.csv"


# ---- parts of the page -----------------------------------------------------------------------------------------------


def header(batch: Batch, whole: Set, drawn: list[Line]) -> None:
    """Title and denominators."""
    profiles = sorted({fact.row.settings for fact in whole.facts if fact.row.settings})
    named = sorted({one.split('"profile": "', 1)[1].split('"', 1)[0] for one in profiles if '"profile": "' in one})
    chips = [theme.chip(f"Profile: {', '.join(named)}" if named else "Profile unknown"), *leaderboard.chips(drawn)]
    if whole.aside:
        chips.append(theme.chip(f"{whole.aside:,} of other versions set aside", "gray", "layers"))
    if any(fact.row.draft for fact in whole.facts):
        chips.append(theme.chip("Draft tasks among them", "gray", "edit_note"))
    tasks, agents = len(whole.tasks), len(whole.agents)
    count = f"{tasks} task{'s' if tasks != 1 else ''} × {agents} agent{'s' if agents != 1 else ''}"
    frame.show(tag("header", tag("h1", f"Results: {batch.name}, {count}", cls="h1"), frame.facts(*chips)))


def older_version(batch: Batch, shown: Shown) -> None:
    """Trials whose verdicts are of an earlier version of the checkpoints, or that have none: grading is what they
    need."""
    waiting = sum(to_regrade(row) for row in shown.rows)
    fresh = sum(to_regrade(row) and row.note == NOT_GRADED for row in shown.rows)
    about = {"regrade": batch.name}
    if following.follow(about, "Grading again") or not waiting:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        older = waiting - fresh
        each = [
            f"{older:,} trial{'s were' if older != 1 else ' was'} graded on an earlier version of the checkpoints."
            if older
            else "",
            f"{fresh:,} trial{'s have' if fresh != 1 else ' has'} not been graded yet." if fresh else "",
        ]
        words = " ".join(filter(None, each))
        told = "Nothing is run again and no verdict is lost: the stored trials are graded by the present checkpoints."
        frame.show(tag("div", tag("p", words, cls="h3"), tag("p", told, cls="sm mute"), role="status"))
        key = starting.key("regrade-key")
        command = ("graders", "regrade", batch.name)
        st.button(f"Regrade {waiting:,}", icon=":material/history:", key=f"regrade-{key}", on_click=starting.start,
                  args=(command, about, key))  # fmt: skip


def address(batch: Batch, task: str, agent: str) -> str:
    """The trials of a task and agent of this batch."""
    named = agent.split(" [", 1)[0]
    return frame.link("trials", **{"from": batch.name, "by": named, "q": task})


def answered(batch: Batch, drawn: list[Line]) -> Markup | None:
    """The names under which providers answered; None where each is the one that was asked for."""
    named = {one.agent.split(" [", 1)[0] for one in drawn if not one.control}
    told = {agent: names for agent, names in stored_trials.answered(batch).items() if agent in named}
    lines = [
        tag("p", f"{agent} answered as {', '.join(names)}.", cls="sm warn" if len(names) > 1 else "sm mute")
        for agent, names in told.items()
        if names != (agent.split("/", 1)[-1],)
    ]
    return tag("div", join(lines)) if lines else None


def board(batch: Batch, drawn: list[Line], k: int) -> None:
    """The leaderboard, its formulas, its denominators."""
    frame.show(
        theme.section("Leaderboard", "95% intervals over tasks (Korn and Graubard) · ± = standard deviation over runs")
    )
    frame.show(leaderboard.table(drawn, k))
    controls = [one for one in drawn if one.control]
    if controls:
        told = ", ".join(
            f"{one.agent} {leaderboard.percent(one.figures[0].value)}%" if one.graded else f"{one.agent} not graded"
            for one in controls
        )
        words = f"Controls: {told}. oracle must pass all; noop, shotgun and parrot must pass none."
        frame.show(tag("p", words, cls="sm mute"))
    if (names := answered(batch, drawn)) is not None:
        frame.show(names)
    frame.show(leaderboard.denominators(drawn))
    with st.expander("Every convention and its formula", key="conventions"):
        frame.show(leaderboard.formulas(k))
        frame.show(leaderboard.conventions(drawn, k))


def overview(batch: Batch, found: Set, key: Hashable, counted: Cells, state: Hashable) -> None:
    """Heat map left; why tasks fail and the output gap right."""
    narrow = len(found.agents) <= WIDE
    order = breakdown.easiest_first(counted)
    at, pages = frame.paged(len(order), SHOWN)
    shown = order[(at - 1) * SHOWN : at * SHOWN]
    to = partial(address, batch)
    left, right = st.columns([1.25, 1], gap="large") if narrow else (st.container(), st.container())
    with left:
        frame.show(
            theme.section(
                "Tasks passed", f"{len(shown)} of {len(order)} tasks, easiest first; pick a cell to open its trials"
            )
        )
        frame.show(breakdown.heat_map(counted, shown, found.agents, to))
        frame.pager(at, pages)
    why, gap = (right, right) if narrow else right.columns(2, gap="large")
    with why:
        frame.show(theme.section("Why tasks fail", "share of failed checkpoints, by capability"))
        shares = _frame(key, "failure_shares", "capability", found)
        if len(shares):
            frame.show(breakdown.failures(shares))
            with st.expander("As numbers, and by kind of reasoning", key="shares"):
                percents = ("share", "low", "high", "failed_rate")
                frame.show(breakdown.plain(shares, percents))
                kinds = _frame(key, "failure_shares", "kind", found)
                if len(kinds):
                    frame.show(breakdown.plain(kinds, percents))
        else:
            frame.show(tag("p", "No graded checkpoint here.", cls="empty"))
    with gap:
        output_gap(batch, found, state)
    first = _frame(key, "first_failures", "", found)
    if len(first):
        frame.show(
            theme.section("First failed step", "the earliest failed checkpoint in clinical order, commonest first")
        )
        frame.show(breakdown.first_steps(first, to))
    judges = _frame(key, "judges", "", found)
    if len(judges):
        frame.show(theme.section("Judge", "flip rate = votes besides the commonest, of all votes"))
        frame.show(breakdown.plain(judges, ("flip_rate",)))
    causes = _frame(key, "causes", "", found)
    if len(causes):
        frame.show(theme.section("Causes that physicians named", "the earliest cause of each failure"))
        frame.show(breakdown.plain(causes))


def output_gap(batch: Batch, found: Set, state: Hashable) -> None:
    """What notes recommend against what records hold; read from every stored trial, so a job does it once."""
    frame.show(theme.section("Output gap", "orders: what was written against what was done"))
    about = {"gaps": batch.name}
    if following.follow(about, "Comparing notes with records"):
        return
    path = gap_file(batch, state)
    if not path.is_file():
        told = "Reads the note and the record of every trial; some seconds for a hundred trials."
        frame.show(tag("p", told, cls="sm mute"))
        key = starting.key("gap-key")
        path.parent.mkdir(parents=True, exist_ok=True)
        command = ("graders", "report", batch.name, "--view", "gaps", "--format", "csv", "--out", str(path))
        st.button("Compare notes with records", icon=":material/difference:", key=f"gap-{key}", on_click=starting.start,
                  args=(command, about, key))  # fmt: skip
        return
    rows = pd.read_csv(path, keep_default_na=False)
    mine, read = breakdown.gaps_of(found, rows)
    frame.show(breakdown.gaps(mine, read))
    frame.show(
        tag("p", "What counts as done follows each task's authority: ordered, pended or recommended.", cls="sm mute")
    )
    if len(mine):
        with st.expander(f"Case by case, {len(mine):,}", key="gapcases"):
            shown = mine.head(200)
            frame.show(breakdown.plain(shown[["task", "agent", "run", "authority", "case", "title"]]))


def parts(found: Set, key: Hashable) -> None:
    """pass@1 by group and by workflow."""
    for part, title in (("group", "By group of specialties"), ("workflow", "By workflow")):
        frame.show(theme.section(title, "pass@1 = mean of c/n over the part's tasks; no ranking under 20 tasks"))
        frame.show(breakdown.parts(_frame(key, "by_part", part, found)))


def compare_two(batch: Batch, found: Set, counted: Cells) -> None:
    """Two agents over the tasks that both were run on, flips first."""
    agents = sorted(found.agents, key=lambda agent: (is_built_in(agent), agent))
    if len(agents) < 2:
        frame.show(tag("p", "There is only one agent to look at.", cls="empty"))
        return
    one, two = st.columns(2)
    first = one.selectbox("First agent", agents, index=0, key="first", bind="query-params")
    second = two.selectbox("Second agent", agents, index=1, key="second", bind="query-params")
    if first == second:
        frame.show(tag("p", "Choose two different agents.", cls="empty"))
        return
    told, rows = breakdown.paired(counted, first, second)
    frame.show(theme.section("Paired over the same tasks", f"{len(rows)} tasks that both have runs on"))
    if told is None:
        frame.show(tag("p", "No task has runs of both.", cls="empty"))
        return
    words = breakdown.comparison_words(told, first, second)
    frame.show(tag("div", tag("p", words[0], cls="h3"), *(tag("p", line, cls="sm") for line in words[1:]), cls="soft"))
    frame.show(breakdown.compared(rows, first, second, partial(address, batch)))


def frame_of(found: list[Cell]) -> pd.DataFrame:
    """A row a task and agent and version, as it is shown and exported."""
    return pd.DataFrame(
        [
            {
                "Task": visible(cell.task) + (" (draft)" if cell.draft else ""),
                "Agent": visible(cell.agent),
                "Attempted": cell.attempted,
                "Graded": cell.graded,
                "No result": cell.ungraded,
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
            for cell in found
        ]
    )


def every_row(found: Set) -> None:
    """Every task and agent and version of the chosen trials, older versions too."""
    frame.show(theme.section("A row a task, agent and version", "graded + no result + invalid = attempted"))
    made = frame_of(report_cells(fact.row for fact in found.facts))
    st.dataframe(made, hide_index=True, height="content" if len(made) <= 20 else 600)


def _csv(name: str, found: Set, k: int) -> str:
    made = frames.figures(found, k) if name == "figures" else getattr(frames, name)(found)
    return str(made.to_csv(index=False))


def export(batch: Batch, found: Set, k: int) -> None:
    """What a researcher takes along; the whole report is a command."""
    with st.popover("Export", icon=":material/download:"):
        for name, words in (("figures", "Every figure"), ("trials", "Every trial"), ("verdicts", "Every verdict")):
            st.download_button(
                f"{words}, CSV", partial(_csv, name, found, k), f"{batch.name}-{name}.csv", "text/csv",
                key=f"get-{name}", on_click="ignore", type="tertiary", icon=":material/table:",
            )  # fmt: skip
        frame.show(tag("p", "The whole report as one page without script:", cls="sm mute"))
        st.code(
            f"python -m graders report {batch.name} --format html --out report.html", language="bash", wrap_lines=True
        )


# ---- the page --------------------------------------------------------------------------------------------------------


def choices(whole: Set) -> tuple[str, str, str, int]:
    """(group, workflow, capability, k) as the reader chose them."""
    groups = sorted({fact.group for fact in whole.facts if fact.group})
    workflows = sorted({fact.workflow for fact in whole.facts if fact.workflow})
    runs = leaderboard.most_runs(whole)
    one, two, three, four = st.columns([1, 1, 1, 0.6])
    group = one.selectbox("Group", [ANY, *groups], key="in", bind="query-params")
    workflow = two.selectbox("Workflow", [ANY, *workflows], key="doing", bind="query-params")
    capability = three.selectbox(
        "Capability", [ANY, *CAPABILITIES], key="capability", bind="query-params",
        format_func=lambda name: breakdown.CAPABILITIES[name][0] if name in breakdown.CAPABILITIES else name,
    )  # fmt: skip
    ks = list(range(2, max(3, runs + 1))) if runs > 1 else [1]
    k = four.selectbox("k runs", ks, index=min(1, len(ks) - 1), key="k", bind="query-params")
    return group or ANY, workflow or ANY, capability or ANY, int(k or 1)


def empty(words: str, left_out: Markup | None = None) -> None:
    """Nothing to show yet, and where to go."""
    frame.show(tag("header", tag("h1", "Results", cls="h1"), cls="head"))
    if left_out:
        frame.show(left_out)
    frame.show(tag("p", words, cls="empty"))
    st.page_link(frame.path("run.py"), label="Run agents on tasks", icon=":material/play_circle:")


def tools(found: Set, batch: Batch, k: int) -> None:
    """Calibration and export."""
    frame.door("calibrate.py", "Calibrate the judge", {"batch": batch.name}, key="door-calibrate", width=210,
               icon=":material/balance:")  # fmt: skip
    export(batch, found, k)


def page() -> None:
    """Draw the page."""
    batches = frame.batches()
    if not batches:
        empty("Nothing has been run in this workspace yet.")
        return
    names = [batch.name for batch in batches]
    heading, choice = st.columns([2.4, 1], vertical_alignment="bottom")
    name = choice.selectbox("Batch", names, key="batch", bind="query-params")
    batch = next((one for one in batches if one.name == name), batches[0])
    stored = stored_trials.batch_state(batch)
    seen = sight()
    shown = stored_trials.shown(batch, seen, stored)
    # What is kept is kept for whoever may see the same tasks.
    state = (stored, shown.hidden)
    whole = _comparable(str(batch.path), state, shown)
    left_out = seen.left_out(shown.hidden)
    if not whole.facts:
        with heading:
            empty("This batch has no other trial." if left_out else "This batch has no trial yet.", left_out)
        return
    older_version(batch, shown)
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        view = st.segmented_control(
            "View", [OVERVIEW, PARTS, COMPARE, ROWS], default=OVERVIEW, required=True, key="view", bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
        aside = st.container(horizontal=True, width="content")
    group, workflow, capability, k = choices(whole)
    with st.container(horizontal=True, vertical_alignment="center"):
        definition = st.segmented_control(
            "What passes", [ALL_PASS, CRITICAL], default=ALL_PASS, required=True, key="passes", bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
        base = st.segmented_control(
            "Out of what", [GRADED, STRICT], default=GRADED, required=True, key="of", bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
        frame.show(difference(whole, group, workflow))
    found = _narrowed(str(batch.path), state, group, workflow, capability, whole)
    with aside:
        tools(found, batch, k)
    basis: Basis = "strict" if base == STRICT else "graded"
    critical = definition == CRITICAL
    key = (str(batch.path), state, group, workflow, capability)
    drawn = _lines(key, k, basis, critical, found)
    with heading:
        header(batch, whole, drawn)
        if left_out:
            frame.show(left_out)
    counted = _cells(key, basis, critical, found)
    if view == ROWS:
        # As they are narrowed, and no version set aside.
        every_row(narrowed(Set(shown.facts, 0), group=group, workflow=workflow, capability=capability))
    elif not drawn:
        frame.show(tag("p", "No trial fits these choices.", cls="empty"))
    elif view == COMPARE:
        compare_two(batch, found, counted)
    elif view == PARTS:
        parts(found, key)
    else:
        board(batch, drawn, k)
        overview(batch, found, key, counted, stored)


def difference(whole: Set, group: str, workflow: str) -> Markup:
    """What the chosen tasks can show."""
    tasks = len(narrowed(whole, group=group, workflow=workflow).tasks)
    return tag("span", leaderboard.difference_words(tasks), cls="sm mute")


page()
