"""Trial: each step in plain words, what the agent saw, what it ordered, and why each checkpoint came out as it did."""

from __future__ import annotations

import streamlit as st

from review_ui import chart_records, chart_sections, frame, prose, steps, stored_trials, theme
from review_ui.markup import Markup, join, tag
from review_ui.sight import Sight, sight
from review_ui.steps import Trajectory
from review_ui.trials import outcome_view, steps_view
from review_ui.trials.standing import Standing, standing
from tasks.errors import UsageError, WorkbenchError
from tasks.package import Task
from tasks.stored import Batch, StoredTrial
from tasks.trials import CallCite, Outcome, TrialOutcome

OUTCOMES = {
    Outcome.finished: "Finished by itself",
    Outcome.turn_limit: "Stopped at the turn limit",
    Outcome.token_limit: "Stopped at the token limit",
    Outcome.time_limit: "Stopped at the time limit",
    Outcome.cost_limit: "Stopped at the cost limit",
    Outcome.loop_stopped: "Stopped: it went in circles",
    Outcome.refused: "The model refused",
    Outcome.context_overflow: "The context was full",
    Outcome.provider_error: "Provider error, not graded",
    Outcome.environment_error: "Environment error, not graded",
    Outcome.config_error: "Configuration error, not graded",
    Outcome.internal_error: "Internal error, not graded",
    Outcome.cancelled: "Stopped by a person",
    Outcome.running: "Not finished",
}


#: Why a trial has no result, in its headline and on its chip.
DUE = {"regrade": ("to regrade", "To regrade"), "run again": ("to run again", "Run again: the task has changed")}


def headline(key_run: int, outcome: TrialOutcome | None, stands: Standing, total: int) -> str:
    """ "Run 2: failed, 2 of 7 checkpoints missed"."""
    result = stands.result
    if outcome is None:
        return f"Run {key_run}: not finished"
    if stands.due:
        return f"Run {key_run}: {DUE[stands.due][0]}"
    if result is None:
        return f"Run {key_run}: not graded"
    missed = sum(verdict.result in ("fail", "partial") for verdict in result.deciding.values())
    words = {"pass": "passed", "fail": "failed", "ungraded": "needs a physician"}[result.result]
    return f"Run {key_run}: {words}" + (f", {missed} of {total} checkpoints missed" if missed else "")


def header(trial: StoredTrial, batch: str, task: Task | None, stands: Standing, told: Trajectory) -> None:
    """Title and facts."""
    key, outcome, result = trial.key, trial.outcome, stands.result
    chips: list[Markup] = []
    if stands.due:
        chips.append(theme.chip(DUE[stands.due][1], "orange", "history"))
    if result is not None:
        chips.append(theme.verdict_chip(result.result))
        critical = sum(
            result.deciding[c.id].result in ("fail", "partial")
            for c in (task.checkpoints if task else ())
            if c.criticality == "critical" and c.id in result.deciding
        )
        if critical:
            chips.append(theme.chip(f"Critical missed: {critical}", "red", "warning"))
        if result.severe_harm_events:
            chips.append(theme.chip(f"Severe harm: {result.severe_harm_events}", "red", "dangerous"))
    if outcome is None:
        chips += [chip for chip in [stored_trials.open_chip(trial, Outcome.running)] if chip is not None]
    else:
        chips += [
            theme.chip(OUTCOMES[outcome.outcome], "plain" if outcome.outcome is Outcome.finished else "orange"),
            theme.chip(f"{outcome.calls:,} calls, {outcome.turns:,} turns"),
            theme.chip(cost_words(outcome)),
        ]
        chips += [theme.chip(flag, "gray", "flag") for flag in outcome.flags]
    if outcome is not None and task is not None:
        grader = next((one.grader.version for one in stands.verdicts.values()), "none")
        chips.append(
            theme.chip(
                f"Task {task.meta.version} · graders {grader} · profile {told.profile or 'unknown'}", "plain", "tag"
            )
        )
        if outcome.agent_digest != task.agent_digest and not stands.due:
            chips.append(theme.chip("The task has changed since this ran", "orange", "history"))
    if told.damaged:
        chips.append(theme.chip(f"{told.damaged} lines cannot be read", "orange", "error"))
    crumb = tag(
        "nav",
        tag("a", f"Batch {batch}", href=frame.link("trials", **{"from": batch})),
        " / ",
        tag("a", key.task, href=frame.link("task", id=key.task)),
        f" / {key.agent}",
        cls="sm mute",
    )
    title = headline(key.run, outcome, stands, len(task.checkpoints) if task else 0)
    frame.header(title, frame.facts(*chips), crumb=crumb)


def cost_words(outcome: TrialOutcome) -> str:
    """ "88,300 tokens, $1.21"; what is unknown is said to be."""
    usage = outcome.usage
    tokens = usage.uncached_input + usage.cache_read + usage.cache_write + usage.output
    cost = "cost unknown" if usage.cost is None else f"${usage.cost:,.2f}"
    return f"{tokens:,} tokens, {cost}"


def loaded(trial: StoredTrial, seen: Sight) -> tuple[Task | None, str]:
    """The trial's task as the batch ran it, or why it cannot be read."""
    try:
        return stored_trials.planned_task(stored_trials.batch_name(trial), trial.key.task, seen), ""
    except WorkbenchError as error:
        return None, str(error)


def page() -> None:
    """Draw the page."""
    batch, task_id, agent = frame.asked("batch"), frame.asked("task"), frame.asked("agent")
    run = frame.asked("run")
    trials = stored_trials.of_agent(batch, task_id, agent)
    trial = next((one for one in trials if str(one.key.run) == run), None)
    if trial is None:
        raise UsageError("there is no such trial.", remedy="Choose one on the Trials page.")
    seen = sight()
    data_class = stored_trials.data_class(Batch.open(frame.workspace().runs, batch), task_id)
    if not seen.results(task_id, data_class):
        frame.show(tag("h1", "Trial", cls="h1"))
        frame.show(seen.left_out([(task_id, data_class)]) or tag("p", "This is not shown to you.", cls="empty"))
        return
    task, why = loaded(trial, seen)
    if frame.asked("chart") == "1" and task is not None:
        chart_then(trial, task)
        return
    told = stored_trials.trajectory(trial)
    lines = steps.order_lines(trial.writes())
    outcome = trial.outcome
    stands = standing(outcome, task, trial.verdicts()) if task is not None else Standing()
    numbers = sorted(one.key.run for one in trials)
    at = numbers.index(trial.key.run)
    with st.container(horizontal=True, vertical_alignment="top", key="trial-head"):
        header(trial, batch, task, stands, told)
        with st.container(horizontal=True, width="content"):
            for label, symbol, other in (("Previous", "chevron_left", at - 1), ("Next run", "chevron_right", at + 1)):
                shut = not 0 <= other < len(numbers)
                address = stored_trials.address(batch, task_id, agent, numbers[at if shut else other])
                frame.door("trial.py", label, address, key=f"door-{label[:4].lower()}", width=130,
                           icon=f":material/{symbol}:", shut=shut)  # fmt: skip
    if outcome is not None and outcome.detail:
        frame.show(tag("p", outcome.detail, cls="sm warn"))
    if task is None:
        frame.show(frame.notice("The task of this trial cannot be read.", why))
    evidence = frozenset(
        cite.n for verdict in stands.verdicts.values() for cite in verdict.cites if isinstance(cite, CallCite)
    )
    left, right = st.columns([1.55, 1], gap="large")
    with left:
        steps_view.draw(trial, task, told, lines, evidence)
        outcome_view.notes(trial, stands)
        if told.final:
            with st.expander("The agent's last words", key="lastwords"):
                frame.show(prose.verbatim(told.final[: chart_records.LONG]))
    with right:
        outcome_view.orders(trial, task, lines, stands)
        if task is not None:
            outcome_view.verdicts(trial, task, stands, lines)
            outcome_view.again(trial, task, stands)
    if outcome is None and trial.alive:
        frame.show(tag("p", "This trial is running; reload to see more.", cls="sm mute"))


def chart_then(trial: StoredTrial, task: Task) -> None:
    """The chart as it stood after a step: the record, and what the agent had written by then."""
    asked = frame.asked("step")
    number = int(asked) if asked.isdecimal() else 0
    view = stored_trials.chart_at(trial, task, number)
    written = [write for write in trial.writes() if write.call is not None and write.call <= number]
    crumb = tag("nav", tag("a", "Back to the trial", href=stored_trials.link(trial, step=asked)), cls="sm")
    count = f"{len(written)} written by the agent by then" if written else "nothing written by then"
    frame.header(f"Chart after step {number}", frame.facts(theme.chip(count, "blue", "edit_document")), crumb=crumb)
    if written:
        rows = [outcome_view.order_row(trial, line, []) for line in steps.order_lines(written)]
        frame.show(theme.section("Written by then"))
        frame.show(tag("div", join(rows), cls="rows"))
    at = frame.asked("at")
    if at:
        with st.container(border=True, key="record"):
            chart_records.record_card(view, at, "")
    chart_sections.facts_strip(view)
    chart_sections.times(view)
    chart_sections.problems_and_gaps(view)
    chart_records.every_resource(view)


page()
