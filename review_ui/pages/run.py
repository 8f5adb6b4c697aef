"""Run: choose tasks, agents, runs and limits; see what it will do; start it, watch it, stop it."""

from __future__ import annotations

import secrets
from collections import Counter
from datetime import datetime

import streamlit as st

from graders.report import TrialRow
from review_ui import frame, runs, theme
from review_ui.catalog import TaskRow
from review_ui.markup import Markup, join, tag
from runtime import jobs
from runtime.agents import BUILT_IN
from runtime.jobs import Status
from tasks.errors import WorkbenchError
from tasks.stored import Batch, StoredTrial
from tasks.trials import OUTCOMES

ALL_GROUPS = "All groups"
STATES = {
    "running": ("Running", "blue", "progress_activity"),
    "ended": ("Done", "green", "check_circle"),
    "failed": ("Not complete", "orange", "warning"),
    "stopped": ("Stopped", "gray", "stop_circle"),
    "lost": ("Its process is gone", "orange", "error"),
}


def header() -> None:
    """Title and what a run is."""
    frame.show(
        tag(
            "header",
            tag(
                "div",
                tag("h1", "Run agents on tasks", cls="h1"),
                tag(
                    "p",
                    "Each run opens a fresh copy of the patient's record. Results are kept; nothing is overwritten.",
                    cls="lead",
                ),
            ),
            theme.chips(theme.chip("Open data only", "green", "lock_open")),
            cls="head",
        )
    )


def models() -> list[str]:
    """The models of workbench.toml that may see open data."""
    return sorted(frame.workspace().settings.models)


def chosen_tasks(rows: list[TaskRow]) -> list[str]:
    """The ids of the tasks to run."""
    groups = [ALL_GROUPS, *sorted({row.group for row in rows})]
    group = st.pills("Group", groups, default=ALL_GROUPS, required=True, key="group", label_visibility="collapsed")
    offered = [row.id for row in rows if group in (None, ALL_GROUPS) or row.group == group]
    return st.multiselect("Tasks", offered, default=offered, key=f"tasks-{group}", placeholder="Choose tasks")


def trials_of(rows: list[TaskRow], agents: list[str], each: int) -> int:
    """How many trials it comes to: oracle runs once for each reference plan of a task."""
    return sum(each * (max(1, row.plans) if agent == "oracle" else 1) for row in rows for agent in agents)


def plan_card(rows: list[TaskRow], agents: list[str], each: int, limits: list[str], unsafe: str) -> None:
    """What it will do, and the button that does it."""
    tasks = [row.id for row in rows]
    trials = trials_of(rows, agents, each)
    paid = [agent for agent in agents if agent not in BUILT_IN]
    facts = [
        ("Tasks", f"{len(tasks):,}"),
        ("Agents", f"{len(agents):,}"),
        ("Runs of each", f"{each:,}"),
        ("Trials to run", f"{trials:,}"),
        ("Expected cost", "nothing" if not paid else "unknown before the first run"),
    ]
    lines = [
        tag("div", tag("span", name, cls="mute"), tag("span", value, cls="b"), cls="pair") for name, value in facts
    ]
    frame.show(tag("div", tag("p", "What this will do", cls="h3"), join(lines), cls="soft plan-card"))
    if "oracle" in agents:
        frame.show(tag("p", "oracle runs once for each reference plan of a task.", cls="sm mute"))
    # The key is minted when the page is drawn and is part of the button's own: the second click of a double click
    # meets a button that is gone, and a repeated request a job that is there.
    key = st.session_state.setdefault("run-key", secrets.token_hex(8))
    ready = trials > 0 and not unsafe
    words = f"Start {trials:,} trials"
    if st.button(
        words, key=f"start-{key}", type="primary", icon=":material/play_arrow:", disabled=not ready, width="stretch"
    ):
        name = runs.next_name(f"{datetime.now().astimezone():%Y-%m-%d}", _names())
        command = ["runtime", "run", *tasks, "--suite", str(frame.source().root), "--batch", name, "--runs", str(each)]
        for agent in agents:
            command += ["--agent", agent]
        jobs.start(frame.workspace(), [*command, *limits], about={"batch": name}, key=key)
        st.session_state["run-key"] = secrets.token_hex(8)
        st.query_params["batch"] = name
        st.rerun()
    if not ready:
        frame.show(tag("p", unsafe or "Choose at least one task and one agent.", cls="sm mute"))


def _names() -> list[str]:
    started = [job.about.get("batch", "") for job in jobs.jobs(frame.workspace())]
    return [*started, *(batch.name for batch in frame.batches())]


def settings() -> None:
    """The three choices left, what they come to right."""
    rows = [row for row in frame.rows() if not row.fault]
    left, right = st.columns([2, 1], gap="large")
    with left:
        frame.show(theme.section("1 · Tasks", f"{len(rows)} can be run"))
        tasks = chosen_tasks(rows)
        named = models()
        frame.show(theme.section("2 · Agents", "built-in, and those of workbench.toml"))
        agents = st.pills(
            "Agents", [*BUILT_IN, *named], selection_mode="multi", default=["oracle", "noop"], key="agents",
            label_visibility="collapsed",
        )  # fmt: skip
        frame.show(
            tag(
                "p",
                "oracle replays a reference plan and must pass; noop, shotgun and parrot must fail. They need no key.",
                cls="sm mute",
            )
        )
        frame.show(theme.section("3 · Runs and limits", "an empty limit = as in workbench.toml"))
        one, two, three, four = st.columns(4)
        each = one.number_input("Runs of each", 1, 100, 1, key="runs-of-each")
        turns = two.number_input("Turns at most", 1, 10_000, None, key="turns", placeholder="100")
        cost = three.number_input("USD a trial at most", 0.01, None, None, key="cost", placeholder="no limit")
        slots = four.number_input("At the same time", 1, 64, 2, key="slots")
        limits = ["--jobs", str(int(slots))]
        if turns:
            limits += ["--turns", str(int(turns))]
        if cost:
            limits += ["--cost", f"{cost:.4f}"]
    closed = [row.id for row in rows if row.id in tasks and row.data_class != "open"]
    unsafe = f"Local mode runs open data only; leave out {', '.join(closed)}." if closed else ""
    with right:
        plan_card([row for row in rows if row.id in tasks], list(agents or []), int(each), limits, unsafe)


# ---- what runs ------------------------------------------------------------------------------------------------------


def _stop(id: str) -> None:
    jobs.stop(frame.workspace(), id)


def _resume(name: str) -> None:
    jobs.start(frame.workspace(), ["runtime", "resume", name], about={"batch": name})


def bar(counts: Counter[str], total: int) -> Markup:
    """A segmented bar whose colors stand in the figures below it."""
    parts = [
        ("Passed", counts["pass"], "green"),
        ("Failed", counts["fail"], "gray-text"),
        ("Needs physician", counts["ungraded"], "blue-mark"),
        ("Invalid", counts["invalid"], "orange"),
    ]
    pieces = [
        tag("div", "", style=f"width:{100 * n / total if total else 0:.2f}%;background:var(--{role})")
        for _, n, role in parts
    ]
    done = sum(n for _, n, _ in parts)
    figures = [
        tag(
            "div",
            tag("div", "Done", cls="xs mute b"),
            tag("div", f"{done:,}", tag("span", f" of {total:,}", cls="sm mute"), cls="figure"),
        )
    ]
    figures += [
        tag(
            "div",
            tag("div", tag("i", cls="swatch", style=f"background:var(--{role})"), name, cls="xs mute b"),
            tag("div", f"{n:,}", cls="figure"),
        )
        for name, n, role in parts
    ]
    return tag(
        "div",
        tag("div", join(pieces), cls="segments", aria_hidden="true"),
        tag("div", join(figures), cls="figures-row"),
    )


def trial_state(trial: StoredTrial) -> tuple[str, Markup, str]:
    """(what it counts as, its chip, what happens now) of one trial."""
    outcome = trial.outcome
    if outcome is None:
        told = frame.trajectory(trial)
        last = told.steps[-1].verb if told.steps else "Reading the question"
        return ("running", theme.chip("Running", "blue", "progress_activity"), f"{last}, step {len(told.steps):,}")
    rule = OUTCOMES[outcome.outcome]
    words = outcome.outcome.value.replace("_", " ")
    if not rule.grade:
        return ("invalid", theme.chip("Invalid", "orange", "warning"), words)
    return ("graded", theme.chip("Graded", "gray", "check"), words)


def trial_link(batch: str, row: TrialRow) -> str:
    """The address of a row's trial."""
    return frame.link("trial", **frame.trial_address(batch, row.task, row.agent, row.run))


def batch_of(name: str) -> Batch | None:
    """The batch of a job; None before its folder is there."""
    try:
        return Batch.open(frame.workspace().runs, name)
    except WorkbenchError:
        return None


def live(status: Status) -> None:
    """One job: state, bar, table of its trials."""
    name = status.job.about.get("batch", "")
    word, tone, symbol = STATES[status.state]
    batch = batch_of(name)
    rows = frame.trial_rows(batch) if batch else []
    attempts = {(t.key.task, t.key.agent, t.key.run): t for t in (batch.trials() if batch else [])}
    counts = Counter("invalid" if row.counts_as == "invalid" else row.result for row in rows)
    planned = status.last.total if status.last and status.last.total else len(rows)
    started = status.job.started_at.astimezone()
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute", key=f"job-{status.job.id}"
    ):
        frame.show(
            tag(
                "div",
                tag("span", f"Batch {name} ", cls="h2"),
                theme.chip(word, tone, symbol),  # type: ignore[arg-type]
                tag("span", f" started {started:%-d %b %Y, %H:%M}", cls="sm mute"),
                role="status",
            )
        )
        with st.container(horizontal=True, width="content"):
            if status.state == "running":
                asked = status.job.stop_asked is not None
                st.button(
                    "Stopping" if asked else "Stop",
                    icon=":material/stop:",
                    key=f"stop-{status.job.id}",
                    disabled=asked,
                    on_click=_stop,
                    args=(status.job.id,),
                )
            elif status.state in ("stopped", "failed", "lost") and batch is not None:
                st.button(
                    "Resume",
                    icon=":material/play_arrow:",
                    key=f"resume-{status.job.id}",
                    on_click=_resume,
                    args=(name,),
                )
            if batch is not None and st.button(
                "Results", icon=":material/leaderboard:", key=f"results-{status.job.id}"
            ):
                frame.go("results.py", {"batch": name})
    if status.message:
        frame.show(tag("p", status.message, cls="sm warn"))
    frame.show(bar(counts, planned))
    made = []
    for row in rows[:200]:
        trial = attempts.get((row.task, row.agent, row.run))
        if trial is None:
            continue
        kind, chip, now = trial_state(trial)
        if kind == "graded" and row.result:
            chip = theme.result_chip(row.result, "")
        made.append(
            tag(
                "tr",
                tag(
                    "td",
                    tag(
                        "a",
                        row.task,
                        href=trial_link(name, row),
                    ),
                ),
                tag("td", row.agent),
                tag("td", str(row.run), cls="num"),
                tag("td", chip),
                tag("td", now, cls="mute"),
            )
        )
    if made:
        heads = [tag("th", head, scope="col") for head in ("Task", "Agent", "Run", "State", "Now, or outcome")]
        frame.show(tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(made)), cls="grid"))
    if len(rows) > 200:
        frame.show(tag("p", f"The first 200 of {len(rows):,}; all of them stand under Trials.", cls="sm mute"))


def shown_jobs() -> list[Status]:
    """The job of the address's batch, else the newest; and whatever else runs."""
    place = frame.workspace()
    every = [jobs.status(place, job) for job in jobs.jobs(place)[:20]]
    wanted = frame.asked("batch")
    first = [one for one in every if wanted and one.job.about.get("batch") == wanted][:1] or every[:1]
    return [*first, *(one for one in every if one.state == "running" and one not in first)]


def watch() -> None:
    """What runs, or ran last."""
    found = shown_jobs()
    if not found:
        return
    frame.show(theme.section("Running, and last run"))
    for one in found:
        live(one)


def page() -> None:
    """Draw the page."""
    header()
    settings()
    running = any(one.state == "running" for one in shown_jobs())
    was = st.session_state.get("was-running")
    st.session_state["was-running"] = running
    frame.part(watch, every=1.5 if running or was else None)()


page()
