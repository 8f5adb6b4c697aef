"""Run: choose tasks, agents, runs and limits; see what it will do; start it, watch it, stop it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import streamlit as st

from graders.facts import TrialFact
from graders.intervals import detectable_difference
from graders.report import TrialRow
from review_ui import failure, following, frame, identity, library, planning, runs, starting, stored_trials, theme
from review_ui.catalog import TaskRow
from review_ui.kept import kept
from review_ui.markup import Markup, join, tag
from review_ui.sight import Sight, sight
from runtime import jobs
from runtime.agents import BUILT_IN
from runtime.batch import settings_of
from runtime.jobs import Status
from tasks.errors import WorkbenchError
from tasks.package import Task
from tasks.stored import Batch, StoredTrial
from tasks.trials import OUTCOMES, Outcome

ALL_GROUPS = "All groups"
NOW, LAST = "As they stand now", "As released last"
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


def chosen_tasks(rows: list[TaskRow], *, last: bool) -> list[str]:
    """The ids of the tasks to run; each is offered with the version that would run."""
    groups = [ALL_GROUPS, *sorted({row.group for row in rows})]
    group = st.pills("Group", groups, default=ALL_GROUPS, required=True, key="group", label_visibility="collapsed")
    offered = [row.id for row in rows if group in (None, ALL_GROUPS) or row.group == group]
    versions = {row.id: row.release if last else f"{row.version}{', draft' if row.draft else ''}" for row in rows}
    return st.multiselect(
        "Tasks", offered, default=offered, key=f"tasks-{group}-{last}", placeholder="Choose tasks",
        format_func=lambda id: f"{id} · version {versions[id]}",
    )  # fmt: skip


@kept(20)
def _attempts(folder: str, state: Hashable) -> planning.Attempts:
    return planning.attempts_of(Batch(Path(folder)))


@kept(50)
def _work(
    folder: str, state: Hashable, digests: str, names: tuple[str, ...], each: int, judge: bool, broken: bool,
    _tasks: list[Task],
) -> planning.Work:  # fmt: skip
    there = _attempts(folder, state) if folder else {}
    return planning.work(_tasks, names, each, there, judge=judge, retry_broken=broken)


def earlier(agents: Iterable[str], seen: Sight) -> list[TrialFact]:
    """What these agents' stored trials came to, of every batch, as far as they may be seen."""
    wanted = set(agents)
    facts = [fact for batch in frame.batches() for fact in stored_trials.shown(batch, seen).facts]
    return [fact for fact in facts if fact.row.agent in wanted]


def planned(
    folders: Mapping[str, Path], agents: list[str], each: int, into: Batch | None, *, broken: bool = False
) -> planning.Work:
    """What every chosen trial needs, by what is stored in the batch it goes into. `broken`: run again what ended in an
    error too."""
    tasks = [library.folder_task(folder) for folder in folders.values()]
    digests = "".join(task.agent_digest + task.grade_digest for task in tasks)
    folder, state = (str(into.path), stored_trials.batch_state(into)) if into else ("", None)
    judge = bool(frame.workspace().settings.use.judge)
    return _work(folder, state, digests, tuple(agents), each, judge, broken, tasks)


def plan_card(
    folders: Mapping[str, Path], agents: list[str], each: int, limits: list[str], slots: int, into: Batch | None,
    seen: Sight,
) -> None:  # fmt: skip
    """What it will do, and the button that does it."""
    tasks = list(folders)
    work = planned(folders, agents, each, into) if tasks and agents else planning.Work(0, 0, 0, 0, {})
    again = False
    if work.broken:
        words = f"Run again what ended in an error: {work.broken:,}"
        again = st.toggle(words, key=f"again-{into.name if into else ''}")
        work = planned(folders, agents, each, into, broken=True) if again else work
    known = earlier({*work.to_run, *work.to_judge}, seen) if work.to_run or work.to_judge else []
    configured = frame.workspace().settings
    paid = [agent for agent in agents if agent not in BUILT_IN]
    unpriced = {name for name, model in configured.models.items() if model.price is None}
    asked = sorted(unpriced.intersection(work.to_run))
    facts = [
        (f"Trials, {len(tasks):,} × {len(agents):,} × {each:,}", f"{work.total:,}"),
        ("Already stored, reused", f"{work.reuse - work.broken:,}"),
        *([("Ended in an error, left so", f"{work.broken:,}")] if work.broken else []),
        ("Regraded only", f"{work.regrade:,}"),
        ("To run", f"{work.run:,}"),
        ("Expected cost, agents", planning.money_words(planning.cost(work, known), asked) if paid else "nothing"),
    ]
    if judge := configured.use.judge:
        judging = planning.money_words(planning.judge_cost(work, known), sorted(unpriced & {judge}))
        facts.append(("Expected cost, judge", judging))
    facts.append(("Expected time", planning.time_words(planning.seconds(work, known, slots))))
    lines = [
        tag("div", tag("span", name, cls="mute"), tag("span", value, cls="b"), cls="pair") for name, value in facts
    ]
    notes = [difference(len(tasks), each)]
    if "oracle" in agents:
        notes.append("oracle runs once for each reference plan of a task.")
    if work.busy:
        notes.append(f"{work.busy:,} are being run by another process.")
    told = tag("div", join(tag("p", note, cls="sm") for note in notes), cls="notes") if tasks else None
    frame.show(tag("div", tag("p", "What this will do", cls="h3"), join(lines), told, cls="soft plan-card"))
    doing = work.run + work.regrade
    verb, count = ("Start", work.run) if work.run or not work.regrade else ("Regrade", work.regrade)
    words = f"{verb} {count:,} trial{'s' if count != 1 else ''}"
    # Folders, not ids: exactly the versions that this page has shown.
    command = ["runtime", "run", *(str(folder) for folder in folders.values()), "--runs", str(each), *limits]
    for agent in agents:
        command += ["--agent", agent]
    if again:
        command.append("--retry-broken")
    key = starting.key("run-key")
    name = into.name if into else ""
    st.button(
        words, key=f"start-{key}", type="primary", icon=":material/play_arrow:", disabled=not doing, width="stretch",
        on_click=_start, args=(tuple(command), name, key),
    )  # fmt: skip
    if _goes_on(_same(command, name)):
        frame.show(tag("p", "This is running now, below. It is not started twice.", cls="sm mute", role="status"))
    if not work.total:
        frame.show(tag("p", "Choose at least one task and one agent.", cls="sm mute"))
    elif not doing and work.broken:
        words = "Nothing is left to run but what ended in an error: mend the cause, then run that again."
        frame.show(tag("p", words, cls="sm mute"))
    elif not doing:
        frame.show(tag("p", "Everything of this is stored already and still holds.", cls="sm mute"))


def _same(command: Sequence[str], into: str) -> str:
    """What makes two runs one and the same: tasks, agents, runs, limits, and the batch where one is chosen."""
    return sha256("\0".join([*command, into]).encode()).hexdigest()[:16]


def _goes_on(same: str) -> bool:
    found = following.latest({"same": same})
    return found is not None and found.state == "running"


@failure.guarded
def _start(command: tuple[str, ...], into: str, key: str) -> None:
    # The second click of a double click may meet the button that is drawn after the first, whose key is another.
    if _goes_on(same := _same(command, into)):
        return
    name = into or runs.next_name(f"{datetime.now().astimezone():%Y-%m-%d}", _names())
    starting.begin((*command, "--batch", name), {"batch": name, "same": same}, key)
    # Last, as it gives way to a newer message: what it is for, the order of the list below, may be lost.
    st.query_params["batch"] = name


def difference(tasks: int, each: int) -> str:
    """What so many tasks can show."""
    points = 100 * detectable_difference(tasks)
    of = f"{each:,} run{'s' if each != 1 else ''} of {tasks:,} task{'s' if tasks != 1 else ''}"
    if points > 70:
        return f"{of}: too few to show a difference between two agents."
    return f"{of} can show a difference of about {points:.0f} points between two agents."


def _names() -> list[str]:
    started = [job.about.get("batch", "") for job in jobs.jobs(frame.workspace())]
    return [*started, *(batch.name for batch in frame.batches())]


def settings() -> None:
    """The three choices left, what they come to right."""
    seen = sight()
    every = [row for row in library.rows(seen) if not row.fault]
    closed = [row for row in every if row.data_class != "open"]
    # Runs start without a person who answers for them; what is not open is run at the shell, under its agreement.
    rows = [row for row in every if row.data_class == "open"]
    released = [row for row in rows if row.release]
    left, right = st.columns([2, 1], gap="large")
    with left:
        frame.show(theme.section("1 · Tasks", f"{len(rows)} can be run"))
        last = False
        if released:
            which = st.segmented_control(
                "Which version", [NOW, LAST], default=NOW, required=True, key="which-version",
                label_visibility="collapsed",
            )  # fmt: skip
            last = which == LAST
        tasks = chosen_tasks(released if last else rows, last=last)
        if closed:
            words = f"Not offered: {len(closed)} whose data class is not open. They are run at the shell."
            frame.show(tag("p", words, cls="sm mute"))
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
        st.page_link(frame.path("models.py"), label="Models: which work, cost, clearance", icon=":material/hub:")
        frame.show(theme.section("3 · Runs and limits", "an empty limit = as in workbench.toml"))
        one, two, three, four = st.columns(4)
        each = one.number_input("Runs of each", 1, 1000, 1, key="runs-of-each")
        slots = four.number_input("At the same time", 1, 64, 2, key="slots")
        found = {batch.name: batch for batch in frame.batches()}
        into = st.selectbox(
            "Into", ["", *found], key="into", format_func=lambda name: f"Batch {name}" if name else "A new batch",
            help="In an older batch only what is not there, or no longer holds, is run, with that batch's limits.",
        )  # fmt: skip
        older = settings_of(found[into]) if into in found else None
        bounds = older.limits if older else frame.workspace().settings.limits
        # Trials of one batch share their limits: those of an older one stand there to be read.
        name = f"-{into}" if older else ""
        turns = two.number_input(
            "Turns at most", 1, 10_000, None, key=f"turns{name}", disabled=older is not None,
            placeholder=f"{bounds.turns:,}" if bounds.turns else "no limit",
        )  # fmt: skip
        cost = three.number_input(
            "USD a trial at most", 0.01, None, None, key=f"cost{name}", disabled=older is not None,
            placeholder=f"{bounds.cost:,.2f}" if bounds.cost else "no limit",
        )  # fmt: skip
        limits = ["--jobs", str(int(slots))]
        if turns:
            limits += ["--turns", str(int(turns))]
        if cost:
            limits += ["--cost", f"{cost:.4f}"]
    with right:
        plan_card(
            library.folders(tasks, released=last), list(agents or []), int(each), limits, int(slots),
            found.get(into or ""), seen,
        )  # fmt: skip


# ---- what runs ------------------------------------------------------------------------------------------------------


def bar(counts: Counter[str], total: int) -> Markup:
    """A segmented bar whose colors stand in the figures below it."""
    parts = [
        ("Passed", counts["pass"], "green"),
        ("Failed", counts["fail"], "gray-text"),
        ("Needs physician", counts["ungraded"], "blue-mark"),
        *([("To regrade or run again", counts["regrade"], "orange-mark")] if counts["regrade"] else []),
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
    state = trial.state
    open_ = stored_trials.open_chip(trial, state)
    if open_ is None and state is Outcome.running:
        state = trial.state  # it has just ended
    if open_ is not None and state is Outcome.running:
        told = stored_trials.trajectory(trial)
        last = told.steps[-1].verb if told.steps else "Reading the question"
        return ("open", open_, f"{last}, step {len(told.steps):,}")
    words = state.value.replace("_", " ")
    if open_ is not None:
        return ("open", open_, words)
    if OUTCOMES[state].counts_as == "invalid":
        return ("invalid", theme.chip("Invalid", "orange", "warning"), words)
    return ("graded", theme.chip("Graded", "gray", "check"), words)


def trial_link(batch: str, row: TrialRow) -> str:
    """The address of a row's trial."""
    return frame.link("trial", **stored_trials.address(batch, row.task, row.agent, row.run))


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
    seen = sight()
    shown = stored_trials.shown(batch, seen) if batch else None
    rows = shown.rows if shown else []
    attempts = {(t.key.task, t.key.agent, t.key.run): t for t in (batch.trials() if batch else [])}
    counts = Counter(map(planning.counted_as, rows))
    told = status.last.total if status.last and status.last.total else 0
    total = planning.total_of(batch, rows, {task for task, _ in shown.hidden}, told) if batch and shown else told
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
                    on_click=starting.stop,
                    args=(status.job.id, identity.current()),
                )
            elif status.state in ("stopped", "failed", "lost") and batch is not None:
                st.button(
                    "Resume",
                    icon=":material/play_arrow:",
                    key=f"resume-{status.job.id}",
                    on_click=starting.start,
                    args=(("runtime", "resume", name), {"batch": name}, starting.key(f"resume-{status.job.id}-key")),
                )
            if batch is not None:
                frame.door("results.py", "Results", {"batch": name}, key=f"door-results-{status.job.id}", width=130,
                           icon=":material/leaderboard:")  # fmt: skip
    if status.message:
        frame.show(tag("p", status.message, cls="sm warn"))
    left_out = seen.left_out(shown.hidden) if shown else None
    if left_out:
        frame.show(left_out)
    frame.show(bar(counts, total))
    made = []
    for row in rows[:200]:
        trial = attempts.get((row.task, row.agent, row.run))
        if trial is None:
            continue
        kind, chip, now = trial_state(trial)
        if kind == "graded" and row.result:
            chip = stored_trials.due_chip(row) or theme.verdict_chip(row.result)
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
    batches = [job for job in jobs.jobs(place) if job.about.get("batch")]
    every = [jobs.status(place, job) for job in batches[:20]]
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
