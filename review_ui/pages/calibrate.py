"""Calibration: a physician judges one checkpoint at a time, blind to judge and agent; and how far the two agree."""

from __future__ import annotations

from collections.abc import Hashable

import streamlit as st

from graders.calibrate import Agreed, Case, agreement, pairs_of, queue
from graders.intervals import Interval
from graders.planned import PlannedSource
from graders.report import task_loader
from review_ui import by_hand, chart_records, frame, prose, stored_trials, theme
from review_ui.kept import kept
from review_ui.markup import Markup, join, tag
from review_ui.sight import Sight, sight
from tasks.people import Person
from tasks.stored import Batch

NEXT, AGREE = "Next checkpoint", "Agreement"
#: Pairs under which an agreement warns rather than measures.
FEW = 30


def cases(batch: Batch, person: Person, seen: Sight, *, verified: bool) -> list[Case]:
    """What is left for this person, read once a visit: reading it again would take seconds for thousands of trials."""
    key = f"queue-{batch.name}-{person.id}"
    if key not in st.session_state:
        st.session_state[key] = queue([batch], PlannedSource, person, verified=verified)
    found: list[Case] = st.session_state[key]
    # How agents did on a task is for after one's own review of it; what was read before that stays out as well.
    classes = stored_trials.data_classes(batch)
    found[:] = [one for one in found if seen.results(one.task.id, classes.get(one.task.id, ""))]
    return found


def rubric(case: Case) -> Markup:
    """The levels in the rubric's own words."""
    rows = [("Pass", case.rubric.passed), ("Partial", case.rubric.partial), ("Fail", case.rubric.fail)]
    return tag("dl", join(join((tag("dt", name, cls="b sm"), tag("dd", words))) for name, words in rows if words))


def one_case(batch: Batch, seen: Sight) -> None:
    """The next checkpoint: what is asked, what the agent wrote, the form."""
    admitted = by_hand.grader()
    if admitted is None:
        return
    who, person = admitted
    left = cases(batch, person, seen, verified=who.verified)
    said = by_hand.saved("calibrated")
    by_hand.read_back(said)
    if not left:
        words = (
            "Nothing is left for you in this batch: no checkpoint of it goes to a judge, or you have judged them all."
        )
        frame.show(tag("p", words, cls="empty"))
        return
    case = left[0]
    reading, judging = st.columns([1.6, 1], gap="large")
    with reading:
        frame.show(theme.section("What the agent wrote", case.checkpoint.file or ""))
        if case.text:
            chart_records.long_text(case.text, "", key="calibrated")
        else:
            frame.show(tag("p", "It left no such file.", cls="empty"))
        with st.expander("What the agent was asked", key="asked"):
            frame.show(prose.formatted(case.task.instruction))
        frame.show(tag("p", tag("a", "The chart", href=frame.link("task", id=case.task.id)), cls="sm"))
    with judging, st.container(border=True, key="judging"):
        frame.show(
            tag("div", tag("span", case.task.meta.title, cls="sm mute"), tag("p", case.checkpoint.title, cls="h3"))
        )
        frame.show(rubric(case))
        by_hand.form(case.trial, case.task, case.checkpoint, who, person, said, lambda: left.remove(case))
        st.button("Later", icon=":material/redo:", type="tertiary", disabled=len(left) < 2, on_click=_later,
                  args=(left, case))  # fmt: skip
    frame.show(tag("p", f"{len(left):,} left for you, in an order that says nothing of agent or judge.", cls="sm mute"))


def _later(left: list[Case], case: Case) -> None:
    # By the case that was shown: the second click of a double click puts nothing else off.
    if left and left[0] is case:
        left.append(left.pop(0))


@kept(20)
def _agreement(folder: str, state: Hashable, hidden: frozenset[str], _batch: Batch) -> list[Agreed]:
    load = task_loader(PlannedSource(_batch))
    pairs = []
    for trial in _batch.trials():
        if trial.key.task in hidden:
            continue
        task = load(trial.key.task)
        if not isinstance(task, str):
            pairs += pairs_of(trial, task)
    return agreement(pairs)


def _told(value: float | None, interval: Interval | None) -> str:
    if value is None or interval is None:
        return "–"
    return f"{100 * value:.0f}% ({100 * interval.low:.0f} to {100 * interval.high:.0f})"


def agreement_table(found: list[Agreed]) -> Markup:
    """A row a judge and kind of checkpoint; all kinds together last, never alone."""
    heads = ("Judge", "Kind of checkpoint", "Pairs", "Tasks", "Same verdict", "Kappa", "Passed what they did not",
             "Not passed what they did", "No verdict")  # fmt: skip
    rows = []
    for one in found:
        few = tag("span", f" under {FEW}", cls="xs warn") if one.pairs < FEW else None
        rows.append(
            tag(
                "tr",
                tag("th", one.first, scope="row"),
                tag("td", one.kind.replace("_", " ")),
                tag("td", f"{one.pairs:,}", few, cls="num"),
                tag("td", f"{one.tasks:,}", cls="num"),
                tag("td", _told(one.same, one.same_interval), cls="num nowrap"),
                tag("td", "–" if one.kappa is None else f"{one.kappa:.2f}", cls="num"),
                tag("td", _told(one.too_kind, one.too_kind_interval), cls="num nowrap"),
                tag("td", _told(one.too_hard, one.too_hard_interval), cls="num nowrap"),
                tag("td", f"{one.silent:,}", cls="num"),
            )
        )
    head = tag("tr", join(tag("th", name, scope="col", cls="num" if n > 1 else None) for n, name in enumerate(heads)))
    body = tag("table", tag("thead", head), tag("tbody", join(rows)), cls="grid figures")
    return tag("div", body, cls="scroll-x", tabindex="0", role="region", aria_label="Agreement")


def agreed(batch: Batch, hidden: frozenset[str]) -> None:
    """Agreement by kind of checkpoint."""
    found = _agreement(str(batch.path), stored_trials.batch_state(batch), hidden, batch)
    frame.show(theme.section("Judge against physicians", "95% intervals over tasks; by kind, never only pooled"))
    if not found:
        words = "No checkpoint has been judged by a judge and a physician, or by two physicians."
        frame.show(tag("p", words, cls="empty"))
        return
    frame.show(agreement_table(found))
    words = "Passed what they did not: of what a physician did not pass, the share that the judge passed."
    frame.show(tag("p", f"{words} Under {FEW} pairs of a kind the figures warn rather than measure.", cls="sm mute"))


def page() -> None:
    """Draw the page."""
    batches = frame.batches()
    left, right = st.columns([2.4, 1], vertical_alignment="bottom")
    with left:
        frame.show(
            tag(
                "header",
                tag("h1", "Calibrate the judge", cls="h1"),
                tag(
                    "p",
                    "You see neither the judge's verdict nor whose trial it is. Yours stays with the trial.",
                    cls="lead",
                ),
            )
        )
    if not batches:
        frame.show(tag("p", "Nothing has been run in this workspace yet.", cls="empty"))
        return
    name = right.selectbox("Batch", [batch.name for batch in batches], key="batch", bind="query-params")
    batch = next((one for one in batches if one.name == name), batches[0])
    view = st.segmented_control(
        "View", [NEXT, AGREE], default=NEXT, required=True, key="view", bind="query-params",
        label_visibility="collapsed",
    )  # fmt: skip
    seen = sight()
    hidden = stored_trials.shown(batch, seen).hidden
    left_out = seen.left_out(hidden)
    if left_out:
        frame.show(left_out)
    if view == AGREE:
        agreed(batch, frozenset(task for task, _ in hidden))
    else:
        one_case(batch, seen)


page()
