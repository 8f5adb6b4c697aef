"""What came of a trial: orders, checkpoints with their evidence, the note, and a verdict of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import streamlit as st

from graders.describe import describe, zone_of
from graders.steps import first_failed
from graders.words import words_in
from review_ui import by_hand, chart_records, following, frame, prose, starting, steps, stored_trials, theme
from review_ui.chartview.words import kind_words
from review_ui.markup import Markup, join, tag, visible
from review_ui.steps import OrderLine
from review_ui.trials.standing import Standing
from tasks.manifest import OUTPUT
from tasks.package import Task
from tasks.stored import StoredTrial
from tasks.trials import OUTCOMES, CallCite, QuoteCite, Verdict

#: Orders in view before the rest is folded, and of those that are folded.
FIRST, FOLDED = 12, 400
#: Characters of a note in view before the rest is folded.
NOTE = 6_000


def orders(trial: StoredTrial, task: Task | None, lines: Sequence[OrderLine], stands: Standing) -> None:
    """What it wrote, in clinical words, and what was asked for and is not there."""
    frame.show(theme.section("Orders it wrote", "in the record, from the ledger", anchor="orders"))
    # Verdicts of earlier checkpoints stand with the checkpoints, under their own heading; here only what holds now.
    deciding = {} if stands.earlier else stands.verdicts
    cited = steps.claims(deciding.values(), lines)
    rows = [order_row(trial, line, cited.get(line.write.reference, [])) for line in lines[: FIRST + FOLDED]]
    frame.show(
        tag("div", join(rows[:FIRST]), cls="rows")
        if rows
        else tag("p", "It wrote nothing into the record.", cls="empty")
    )
    if len(lines) > FIRST:
        with st.expander(f"{len(lines) - FIRST:,} more orders", key="moreorders"):
            frame.show(tag("div", join(rows[FIRST:]), cls="rows"))
            if len(lines) > len(rows):
                rest = f"The first {len(rows):,} of {len(lines):,} are listed; the steps show every one."
                frame.show(tag("p", rest, cls="sm mute"))
    if task is None:
        return
    missing = steps.not_done(task.checkpoints, deciding)
    made = []
    for checkpoint in missing:
        words = words_in(task, checkpoint)
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
    call = line.write.call
    step = tag("a", f"step {call}", href=stored_trials.link(trial, step=str(call))) if call else None
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
            made.append(tag("a", f"step {cite.n}", href=stored_trials.link(trial, step=str(cite.n))))
        elif isinstance(cite, QuoteCite):
            made.append(quote_link(task, cite, by_ref))
        elif cite.ref in by_ref:
            call = by_ref[cite.ref].write.call
            made.append(tag("a", f"order, step {call}", href=stored_trials.link(trial, step=str(call))))
        else:
            resource = task.chart.get(cite.ref)
            said = (
                describe(resource, zone_of(task))
                if resource
                else f"{kind_words(cite.ref.partition('/')[0])}, not in the chart"
            )
            made.append(tag("a", said, href=frame.link("task", id=task.id, view="Every resource", at=cite.ref)))
    return list(dict.fromkeys(made))


def quote_link(task: Task, cite: QuoteCite, written: Mapping[str, OrderLine]) -> Markup:
    """The link to quoted words, which says whose they are: the agent's note, what it wrote into the record, or the
    task's own instruction and chart, which the agent did not write."""
    words = f"“{cite.text[:80]}{'…' if len(cite.text) > 80 else ''}”"
    if cite.file in written:
        return tag("a", f"{written[cite.file].kind}, {words}", href="#orders")
    if cite.file.startswith(OUTPUT):
        return tag("a", f"note, {words}", href="#note")
    if cite.file == "instruction.md":
        place = {"view": "Checkpoints", "at": "instruction", "quote": cite.text}
        return tag("a", f"the instruction, {words}", href=frame.link("task", id=task.id, **place))
    resource = task.chart.get(cite.file)
    if resource is not None:
        place = {"view": "Every resource", "at": cite.file, "quote": cite.text}
        return tag("a", f"{describe(resource, zone_of(task))}, {words}", href=frame.link("task", id=task.id, **place))
    return tag("a", f"the record, {words}", href=frame.link("task", id=task.id, view="Chart"))


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


def verdicts(trial: StoredTrial, task: Task, stands: Standing, lines: Sequence[OrderLine]) -> None:
    """Each checkpoint with verdict, reason and links to its evidence; verdicts of earlier checkpoints are named so."""
    deciding = stands.verdicts
    tally = {name: sum(v.result == name for v in deciding.values()) for name in theme.VERDICTS}
    said = ", ".join(f"{n} {theme.VERDICTS[name][1].lower()}" for name, n in tally.items() if n)
    heading = "Checkpoints, as graded on an earlier version" if stands.earlier else "Checkpoints"
    frame.show(theme.section(heading, said or "not graded"))
    if stands.earlier:
        words = "These verdicts are of an earlier version of the checkpoints. They decide nothing now."
        frame.show(tag("p", theme.icon("history", "warn"), f" {words}", cls="sm warn", role="status"))
    rows = []
    first = "" if stands.earlier else first_failed_id(task, deciding)
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


def again(trial: StoredTrial, task: Task, stands: Standing) -> None:
    """A verdict of one's own, and grading again where that gives a verdict that is not there."""
    batch, key = stored_trials.batch_name(trial), trial.key
    name = f"{batch}/{key.task}/{key.agent}/{key.run}"
    about = {"regrade": name}
    if stands.due == "run again":
        words = "What the agent was shown has changed since: grading again gives no result, only another run does."
        frame.show(tag("p", words, " ", tag("a", "Run", href=frame.link("run")), cls="sm"))
    if stands.regrades and not following.follow(about, "Grading again"):
        mark = starting.key("regrade-key")
        st.button("Regrade", icon=":material/history:", key=f"regrade-{mark}", on_click=starting.start,
                  args=(("graders", "regrade", name), about, mark))  # fmt: skip
    said = by_hand.saved(f"by-hand-{name}")
    by_hand.read_back(said)
    outcome = trial.outcome
    if outcome is None or not OUTCOMES[outcome.outcome].grade or not task.checkpoints:
        return
    if outcome.agent_digest != task.agent_digest:
        return  # it would be refused: a verdict is on what this version of the task asks
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
        by_hand.form(trial, task, checkpoint, *admitted, said)


def notes(trial: StoredTrial, stands: Standing) -> None:
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
        for checkpoint, quote in steps.quotes(stands.verdicts.values(), name):
            spans = prose.find(text[:NOTE], quote)
            marks += spans[:1]
            if spans:
                cited.append(checkpoint)
        shown = text[:NOTE]
        frame.show(tag("div", prose.formatted(shown, marks, "cited"), cls="card"))
        if cited:
            whose = ", as graded on an earlier version" if stands.earlier else ""
            frame.show(tag("p", f"Underlined: cited by {', '.join(dict.fromkeys(cited))}{whose}", cls="sm mute"))
        if len(text) > len(shown):
            with st.expander(f"The whole file, {len(text):,} characters", key=f"file-{place}"):
                chart_records.long_text(text, "", key=f"file-{place}")
