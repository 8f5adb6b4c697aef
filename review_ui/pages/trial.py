"""Trial: each step in plain words, what the agent saw, what it ordered, and why each checkpoint came out as it did."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import NamedTuple

import streamlit as st

from graders.describe import describe
from graders.score import TaskResult, task_result
from graders.steps import first_failed
from graders.words import plain_words
from review_ui import by_hand, chart_sections, following, frame, prose, steps, theme
from review_ui.chartview.words import kind_words
from review_ui.markup import Markup, join, tag, visible
from review_ui.steps import Entry, OrderLine, Step, Trajectory
from runtime import jobs
from tasks.errors import UsageError, WorkbenchError
from tasks.package import Task
from tasks.stored import StoredTrial
from tasks.trials import CallCite, Outcome, QuoteCite, ToolCall, TrialOutcome, Verdict

PAGE = 40
#: Orders in view before the rest is folded.
FIRST = 12
#: Characters of a note in view before the rest is folded.
NOTE = 6_000
ALL, CUT, WRITES, EVIDENCE = "All", "Cut results", "Writes", "Evidence"
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


def headline(key_run: int, outcome: TrialOutcome | None, result: TaskResult | None, total: int) -> str:
    """ "Run 2: failed, 2 of 7 checkpoints missed"."""
    if outcome is None:
        return f"Run {key_run}: not finished"
    if result is None:
        return f"Run {key_run}: not graded"
    missed = sum(verdict.result in ("fail", "partial") for verdict in result.deciding.values())
    words = {"pass": "passed", "fail": "failed", "ungraded": "needs a physician"}[result.result]
    return f"Run {key_run}: {words}" + (f", {missed} of {total} checkpoints missed" if missed else "")


def header(trial: StoredTrial, batch: str, task: Task | None, result: TaskResult | None, told: Trajectory) -> None:
    """Title and facts."""
    key, outcome = trial.key, trial.outcome
    chips: list[Markup] = []
    if result is not None:
        chips.append(theme.result_chip(result.result, ""))
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
        chips.append(
            theme.chip("Running", "blue", "progress_activity")
            if trial.alive
            else theme.chip("Its process is gone; resume the batch", "orange", "error")
        )
    else:
        chips += [
            theme.chip(OUTCOMES[outcome.outcome], "plain" if outcome.outcome is Outcome.finished else "orange"),
            theme.chip(f"{outcome.calls:,} calls, {outcome.turns:,} turns"),
            theme.chip(cost_words(outcome)),
        ]
        chips += [theme.chip(flag, "gray", "flag") for flag in outcome.flags]
    if outcome is not None and task is not None:
        grader = next(iter(result.deciding.values())).grader.version if result and result.deciding else "none"
        chips.append(
            theme.chip(
                f"Task {task.meta.version} · graders {grader} · profile {told.profile or 'unknown'}", "plain", "tag"
            )
        )
        if outcome.agent_digest != task.agent_digest:
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
    title = headline(key.run, outcome, result, len(task.checkpoints) if task else 0)
    frame.header(title, frame.facts(*chips), crumb=crumb)
    if outcome is not None and outcome.detail:
        frame.show(tag("p", outcome.detail, cls="sm warn"))


def cost_words(outcome: TrialOutcome) -> str:
    """ "88,300 tokens, $1.21"; what is unknown is said to be."""
    usage = outcome.usage
    tokens = usage.uncached_input + usage.cache_read + usage.cache_write + usage.output
    cost = "cost unknown" if usage.cost is None else f"${usage.cost:,.2f}"
    return f"{tokens:,} tokens, {cost}"


# ---- steps ----------------------------------------------------------------------------------------------------------


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
def step_list(trial: StoredTrial, told: Trajectory, lines: Sequence[OrderLine], evidence: frozenset[int]) -> None:
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
    pages = max(1, -(-len(kept) // PAGE))
    given = frame.asked("page")
    at = place // PAGE + 1 if place is not None else int(given) if given.isdecimal() else 1
    at = min(pages, max(1, at))
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
                    open_step(trial, call)
    if not kept:
        frame.show(tag("p", "No step of this kind." if told.steps else "It made no tool call.", cls="empty"))
    frame.pager(at, pages, drop=("step",))
    for ending in told.endings:
        frame.show(tag("p", theme.icon("stop_circle"), f" {ending.words}", cls="warn sm"))


def open_step(trial: StoredTrial, call: ToolCall) -> None:
    """What the agent saw, where it was cut, the rest, and the request."""
    length = len(call.result)
    said = f"{call.shown:,} of {length:,} characters" if call.shown < length else f"all {length:,} characters"
    title = tag("span", f"What the agent saw, step {call.n}", cls="h3")
    frame.show(tag("div", title, tag("span", said, cls="sm mute"), cls="pair"))
    task = loaded(trial)[0]
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
        frame.show(tag("div", asked[: chart_sections.LONG], cls="mono saw"))
        if call.request:
            frame.show(tag("p", "FHIR request as sent", cls="sm b"))
            frame.show(tag("div", call.request[: chart_sections.LONG], cls="mono saw"))
    elif view == "Full result":
        chart_sections.long_text(readable(call.result), "", key=f"full-{call.n}")
    else:
        seen = call.seen
        frame.show(tag("div", excerpt(seen), cls="mono saw"))
        if call.shown < length:
            frame.show(cut_band(length - call.shown))
            frame.show(tag("div", excerpt(call.result[call.shown :]), cls="mono unseen"))
    frame.show(
        tag(
            "p",
            tag("a", "Chart as it stood after this step", href=_here(trial, chart="1", step=str(call.n))),
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


def _here(trial: StoredTrial, **more: str) -> str:
    key = trial.key
    return frame.link("trial", **frame.trial_address(trial_batch(trial), key.task, key.agent, key.run), **more)


def trial_batch(trial: StoredTrial) -> str:
    """The name of the trial's batch, from its folder: runs/<batch>/trials/<task>/<agent>/<run>/attempt-<n>."""
    return trial.path.parents[4].name


# ---- the right side -------------------------------------------------------------------------------------------------


def orders(trial: StoredTrial, task: Task | None, lines: Sequence[OrderLine], result: TaskResult | None) -> None:
    """What it wrote, in clinical words, and what was asked for and is not there."""
    frame.show(theme.section("Orders it wrote", "in the record, from the ledger"))
    deciding = result.deciding if result else {}
    cited = steps.claims(deciding.values(), lines)
    rows = [order_row(trial, line, cited.get(line.write.reference, [])) for line in lines[:FIRST]]
    frame.show(
        tag("div", join(rows), cls="rows") if rows else tag("p", "It wrote nothing into the record.", cls="empty")
    )
    if len(lines) > FIRST:
        with st.expander(f"{len(lines) - FIRST:,} more orders", key="moreorders"):
            frame.show(tag("div", join(order_row(trial, line, []) for line in lines[FIRST:400]), cls="rows"))
    if task is None:
        return
    missing = steps.not_done(task.checkpoints, deciding)
    made = []
    for checkpoint in missing:
        words = plain_words(checkpoint, authority=task.meta.context.authority if task.meta.context else None)
        asked = " or ".join(words.passes) if words.any_of else "; ".join((*words.passes, *words.also))
        made.append(
            tag(
                "div",
                theme.icon("block", "bad"),
                tag("div", tag("span", "Not done: ", cls="b"), checkpoint.title, tag("div", asked, cls="sm mute")),
                theme.chip(checkpoint.id, "red"),
                cls="order-row",
            )
        )
    if made:
        frame.show(tag("div", join(made), cls="rows"))


def order_row(trial: StoredTrial, line: OrderLine, checkpoints: Sequence[str]) -> Markup:
    """One order."""
    step = (
        tag("a", f"step {line.write.call}", href=_here(trial, step=str(line.write.call))) if line.write.call else None
    )
    return tag(
        "div",
        theme.icon(line.symbol, "mute"),
        tag(
            "div",
            tag("div", line.what, cls="b"),
            tag("div", line.detail[:600], " · " if step else None, step, cls="sm mute"),
        ),
        theme.chips(*(theme.chip(name) for name in checkpoints)),
        cls="order-row",
    )


def evidence_links(trial: StoredTrial, task: Task, verdict: Verdict, lines: Sequence[OrderLine]) -> list[Markup]:
    """The links of one verdict's citations."""
    made = []
    by_ref = {line.write.reference: line for line in lines}
    for cite in verdict.cites:
        if isinstance(cite, CallCite):
            made.append(tag("a", f"step {cite.n}", href=_here(trial, step=str(cite.n))))
        elif isinstance(cite, QuoteCite):
            ref = cite.file if cite.file.partition("/")[0] in steps.WRITES else ""
            words = f"“{cite.text[:80]}{'…' if len(cite.text) > 80 else ''}”"
            made.append(tag("a", f"note, {words}" if not ref else words, href="#note" if not ref else "#orders"))
        elif cite.ref in by_ref:
            call = by_ref[cite.ref].write.call
            made.append(tag("a", f"order, step {call}", href=_here(trial, step=str(call))))
        else:
            resource = task.chart.get(cite.ref)
            said = describe(resource) if resource else f"{kind_words(cite.ref.partition('/')[0])}, not in the chart"
            made.append(tag("a", said, href=frame.link("task", id=task.id, view="Every resource", at=cite.ref)))
    return list(dict.fromkeys(made))


def by_words(verdict: Verdict) -> Markup | None:
    """Who says so, where it is no rule: a physician by name, a judge by model and votes."""
    if verdict.grader.kind == "person":
        cause = f" ({verdict.cause})" if verdict.cause else ""
        return tag("span", f"{verdict.grader.name}, by hand{cause}: ", cls="b")
    if verdict.judging is None:
        return None
    agreeing = len(verdict.judging.counted) - verdict.judging.dissenting
    votes = f"{agreeing} of {len(verdict.judging.votes)} votes"
    return tag("span", f"{verdict.judging.model}, {votes}: ", cls="mute")


def verdicts(trial: StoredTrial, task: Task, result: TaskResult | None, lines: Sequence[OrderLine]) -> None:
    """Each checkpoint with verdict, reason and links to its evidence."""
    deciding = result.deciding if result else {}
    tally = {name: sum(v.result == name for v in deciding.values()) for name in theme.VERDICTS}
    said = ", ".join(f"{n} {theme.VERDICTS[name][1].lower()}" for name, n in tally.items() if n)
    frame.show(theme.section("Checkpoints", said or "not graded"))
    rows = []
    first = first_failed_id(task, deciding)
    for number, checkpoint in enumerate(task.checkpoints, start=1):
        verdict = deciding.get(checkpoint.id)
        links = evidence_links(trial, task, verdict, lines) if verdict else []
        rows.append(
            tag(
                "div",
                tag(
                    "div",
                    tag(
                        "span",
                        tag("span", f"{number} ", cls="mute"),
                        tag("span", checkpoint.title, cls="b"),
                        tag("span", f" {checkpoint.criticality}", cls="sm mute"),
                        tag("span", " · first to fail", cls="sm warn") if checkpoint.id == first else None,
                    ),
                    theme.verdict_chip(verdict.result) if verdict else theme.chip("Not graded", "gray"),
                    cls="pair",
                ),
                tag("div", by_words(verdict), verdict.reason, cls="sm") if verdict else None,
                tag("div", join(links, " "), cls="sm links") if links else None,
                cls="verdict-row",
            )
        )
    frame.show(tag("div", join(rows), cls="rows"))


class Placed(NamedTuple):
    """A checkpoint with its result and place, for the order in which a consult goes."""

    checkpoint: str
    capability: str
    place: int
    result: str


def first_failed_id(task: Task, deciding: Mapping[str, Verdict]) -> str:
    """The checkpoint that failed first in clinical order; "" where none failed."""
    placed = [
        Placed(one.id, one.capability, place, deciding[one.id].result)
        for place, one in enumerate(task.checkpoints)
        if one.id in deciding
    ]
    found = first_failed(placed)
    return found.checkpoint if found else ""


def again(trial: StoredTrial, task: Task, given: Sequence[Verdict]) -> None:
    """A verdict of one's own, and grading again where the checkpoints have changed."""
    batch, key = trial_batch(trial), trial.key
    name = f"{batch}/{key.task}/{key.agent}/{key.run}"
    about = {"regrade": name}
    if given and not any(one.grade_digest == task.grade_digest for one in given):
        words = "These verdicts are of an earlier version of the checkpoints."
        frame.show(tag("p", theme.icon("history", "warn"), f" {words}", cls="sm warn", role="status"))
        if not following.follow(about, "Grading again"):
            mark = st.session_state.setdefault("regrade-key", secrets.token_hex(8))
            if st.button("Regrade", icon=":material/history:", key=f"regrade-{mark}"):
                jobs.start(frame.workspace(), ["graders", "regrade", name], about=about, key=mark)
                st.session_state["regrade-key"] = secrets.token_hex(8)
                st.rerun()
    saved = st.session_state.pop("by-hand", None)
    if saved is not None:
        frame.show(by_hand.stored_words(saved))
    if trial.outcome is None or not task.checkpoints:
        return
    opened = st.toggle("Disagree with a verdict", key="disagree")
    if not opened:
        return
    with st.container(border=True, key="byhand"):
        admitted = by_hand.grader()
        if admitted is None:
            return
        titles = {one.id: f"{number} {one.title}" for number, one in enumerate(task.checkpoints, start=1)}
        chosen = st.selectbox("Checkpoint", list(titles), format_func=lambda id: visible(titles[id]), key="disputed")
        checkpoint = next(one for one in task.checkpoints if one.id == chosen)
        verdict = by_hand.form(trial, task, checkpoint, *admitted)
        if verdict is not None:
            st.session_state["by-hand"] = verdict
            st.rerun()


def notes(trial: StoredTrial, result: TaskResult | None) -> None:
    """What the agent wrote as files, with the words that verdicts cite underlined."""
    files = trial.files()
    if not files:
        frame.show(theme.section("Note", "none", anchor="note"))
        frame.show(tag("p", "The agent left no file.", cls="empty"))
    for place, (name, text) in enumerate(files.items()):
        frame.show(
            theme.section(
                "Note", f"{name.rsplit('/', 1)[-1]}, {len(text.split()):,} words", "note" if not place else None
            )
        )
        marks: list[tuple[int, int]] = []
        cited = []
        for checkpoint, quote in steps.quotes((result.deciding if result else {}).values(), name):
            spans = prose.find(text[:NOTE], quote)
            marks += spans[:1]
            if spans:
                cited.append(checkpoint)
        shown = text[:NOTE]
        frame.show(tag("div", prose.formatted(shown, marks, "cited"), cls="card"))
        if cited:
            frame.show(tag("p", f"Underlined: cited by {', '.join(dict.fromkeys(cited))}", cls="sm mute"))
        if len(text) > len(shown):
            with st.expander(f"The whole file, {len(text):,} characters", key=f"file-{place}"):
                chart_sections.long_text(text, "", key=f"file-{place}")


def loaded(trial: StoredTrial) -> tuple[Task | None, str]:
    """The trial's task as it stands now, or why it cannot be read."""
    try:
        return frame.planned_task(trial_batch(trial), trial.key.task), ""
    except WorkbenchError as error:
        return None, str(error)


def page() -> None:
    """Draw the page."""
    batch, task_id, agent = frame.asked("batch"), frame.asked("task"), frame.asked("agent")
    run = frame.asked("run")
    trials = frame.trials_of(batch, task_id, agent)
    trial = next((one for one in trials if str(one.key.run) == run), None)
    if trial is None:
        raise UsageError("there is no such trial.", remedy="Choose one on the Trials page.")
    task, why = loaded(trial)
    if frame.asked("chart") == "1" and task is not None:
        chart_then(trial, task)
        return
    told = frame.trajectory(trial)
    lines = steps.order_lines(trial.writes())
    outcome = trial.outcome
    given = trial.verdicts()
    result = None
    if task is not None and given:
        # By the present checkpoints where any verdict is; else by the version that was graded last.
        present = any(one.grade_digest == task.grade_digest for one in given)
        digest = task.grade_digest if present else given[-1].grade_digest
        result = task_result(task.checkpoints, given, digest)
    header(trial, batch, task, result, told)
    numbers = sorted(one.key.run for one in trials)
    at = numbers.index(trial.key.run)
    with st.container(horizontal=True, horizontal_alignment="right"):
        for label, symbol, other in (("Previous run", "chevron_left", at - 1), ("Next run", "chevron_right", at + 1)):
            if st.button(label, icon=f":material/{symbol}:", disabled=not 0 <= other < len(numbers)):
                frame.go("trial.py", frame.trial_address(batch, task_id, agent, numbers[other]))
    if task is None:
        frame.show(frame.notice("The task of this trial cannot be read.", why))
    evidence = frozenset(
        cite.n
        for verdict in (result.deciding if result else {}).values()
        for cite in verdict.cites
        if isinstance(cite, CallCite)
    )
    left, right = st.columns([1.55, 1], gap="large")
    with left:
        step_list(trial, told, lines, evidence)
        notes(trial, result)
        if told.final:
            with st.expander("The agent's last words", key="lastwords"):
                frame.show(prose.verbatim(told.final[: chart_sections.LONG]))
    with right:
        orders(trial, task, lines, result)
        if task is not None:
            verdicts(trial, task, result, lines)
            again(trial, task, given)
    if outcome is None and trial.alive:
        frame.show(tag("p", "This trial is running; reload to see more.", cls="sm mute"))


def chart_then(trial: StoredTrial, task: Task) -> None:
    """The chart as it stood after a step: the record, and what the agent had written by then."""
    asked = frame.asked("step")
    number = int(asked) if asked.isdecimal() else 0
    view = frame.chart_at(trial, task, number)
    written = [write for write in trial.writes() if write.call is not None and write.call <= number]
    crumb = tag("nav", tag("a", "Back to the trial", href=_here(trial, step=asked)), cls="sm")
    count = f"{len(written)} written by the agent by then" if written else "nothing written by then"
    frame.header(f"Chart after step {number}", frame.facts(theme.chip(count, "blue", "edit_document")), crumb=crumb)
    if written:
        frame.show(theme.section("Written by then"))
        frame.show(tag("div", join(order_row(trial, line, []) for line in steps.order_lines(written)), cls="rows"))
    at = frame.asked("at")
    if at:
        with st.container(border=True, key="record"):
            chart_sections.record_card(view, at, "")
    chart_sections.facts_strip(view)
    chart_sections.times(view)
    chart_sections.problems_and_gaps(view)
    chart_sections.every_resource(view)


page()
