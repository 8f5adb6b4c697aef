"""What a grader change would do to stored trials, shown beside it: counters, then the trials, flips first and bold.

It is worked out by a job (effects), so that no decision key waits for it; the same question is asked once and its
answer kept. A change that is only stepped past starts nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import streamlit as st

from graders import VERSION
from review_ui import failure, frame, runs, theme
from review_ui.kept import kept
from review_ui.markup import Markup, join, tag
from review_ui.reviewing import effects
from review_ui.reviewing.effects import Effect, Flip
from review_ui.reviewing.findings_view import titles
from review_ui.reviewing.sitting import Sitting
from runtime import jobs
from runtime.jobs import Status
from tasks.review.state import ChangeState

#: Rows before the rest is counted; flips are all shown up to three times as many.
_ROWS = 6
#: Seconds that a change stands on the screen before its effect is asked for.
_AFTER = 0.6
#: Effects that are worked out at a time.
_AT_ONCE = 2


def draw(at: Sitting, change: ChangeState) -> None:
    """The effect of a grader change where it is known, else how far it is."""
    question = _question(at, change)
    status = _asked(question)
    if status is not None and status.state == "ended":
        show(at, change, _answer(frame.workspace().jobs / status.job.id / effects.FILE))
    elif status is None or status.state == "running":
        st.session_state[f"effect-{question}"] = (time.monotonic(), status)
        frame.part(_wait, every=0.7)(at, change, question)
    else:
        words = status.message or "Its process is gone."
        frame.show(frame.notice("What would now pass or fail could not be worked out.", words))
        st.button("Try again", key=f"again-{question}", icon=":material/refresh:", on_click=_ask,
                  args=(at, change, question))  # fmt: skip


def _question(at: Sitting, change: ChangeState) -> str:
    """Task, change, trials and graders as they are: the same question has the same answer."""
    stored = tuple((batch.path.name, runs.fingerprint(batch)) for batch in frame.batches())
    asked = (at.at.task_id, at.at.package, change.ref.change, stored, VERSION)
    return sha256(repr(asked).encode()).hexdigest()[:24]


def _asked(question: str) -> Status | None:
    found = jobs.jobs(frame.workspace(), about={"effect": question})
    return jobs.status(frame.workspace(), found[0]) if found else None


@failure.guarded
def _ask(at: Sitting, change: ChangeState, question: str) -> None:
    place = frame.workspace()
    tries = len(jobs.jobs(place, about={"effect": question}))
    command = ["review_ui.reviewing.effects", at.at.task_id, change.ref.change, "--at", at.at.head]
    jobs.start(place, command, about={"effect": question}, person=at.me, key=f"{question}{tries:04d}")


def _wait(at: Sitting, change: ChangeState, question: str) -> None:
    since, status = st.session_state.get(f"effect-{question}", (0.0, None))
    stood = time.monotonic() - since
    # Drawn with the page it never ends the page's own run: the decision buttons below are still to come.
    if stood > _AFTER:
        status = _asked(question)
        if status is not None and status.state != "running":
            st.rerun()
    if status is None and stood > _AFTER:
        place = frame.workspace()
        others = [one for one in jobs.jobs(place)[:20] if "effect" in one.about and jobs.is_alive(place, one.id)]
        if len(others) < _AT_ONCE:
            _ask(at, change, question)
    last = status.last if status else None
    count = f": {last.done} of {last.total} trials" if last and last.total else ""
    frame.show(
        join(
            (
                theme.section("What would now pass or fail", "you can decide meanwhile"),
                tag("p", f"Running old and new graders on the stored trials{count} …", cls="sm mute", role="status"),
            )
        )
    )


@kept(256)
def _answer(path: Path) -> Effect | str:
    try:
        return effects.parsed(path.read_text("utf-8"))
    except (OSError, ValueError, KeyError, TypeError) as fault:
        return f"The answer of the job cannot be read ({type(fault).__name__})."


def show(at: Sitting, change: ChangeState, found: Effect | str) -> None:
    """Counters and rows."""
    if isinstance(found, str):
        frame.show(frame.notice("What would now pass or fail cannot be shown.", found))
        return
    frame.show(card(found, titles(at.task), change.ref.unit.partition("#")[2]))


def card(found: Effect, cps: dict[str, str], only: str = "") -> Markup:
    """The same as markup. `cps`: checkpoint -> its title; `only`: the one that all is about, which no row repeats."""
    ups, downs = found.count("fail", "pass"), found.count("pass", "fail")
    every = sum(row.runs for row in found.rows)
    flips = sum(row.runs for row in found.flipped)
    same = [
        f"{n} {word}" for word in ("pass", "partial", "fail", "ungraded", "error") if (n := found.count(word, word))
    ]
    parts = [theme.section("What would now pass or fail", f"on {_count(found.trials, 'stored trial')}")]
    if found.rows:
        parts.append(
            tag(
                "div",
                _counter(ups, "arrow_upward", "fail → pass"),
                _counter(downs, "arrow_downward", "pass → fail"),
                _counter(flips - ups - downs, "swap_vert", "other changes") if flips - ups - downs else None,
                _counter(every - flips, "drag_handle", f"same verdict ({', '.join(same)})" if same else "same verdict"),
                cls="counters",
            )
        )
        parts.append(_whole(found))
        many = len({row.checkpoint for row in found.rows}) > 1 or not only
        shown, left = _shown(found.rows)
        parts.append(_table(shown, cps if many else {}, "Stored trial", "What it ordered"))
        words = [f"{left} more with the same verdict"] if left else []
        words += [f"{found.older} older trials were not graded"] if found.older else []
        words += [f"{_count(found.skipped, 'trial')} of another version left out"] if found.skipped else []
        words.append("old and new graders really ran; no trial was run again")
        parts.append(tag("p", " · ".join(words), cls="sm mute"))
    else:
        parts.append(tag("p", _none(found), cls="b"))
    if found.examples:
        parts.append(tag("p", "Example orders that would be judged otherwise", cls="sm mute b"))
        parts.append(_table(found.examples[:_ROWS], {}, "", "Order"))
    return tag("div", join(parts), cls="effect")


def _none(found: Effect) -> str:
    """Why no trial is shown."""
    if found.skipped:
        return (
            f"None can be said of stored trials: {_count(found.skipped, 'trial')} saw another version of the task, or "
            "ended before there was anything to grade."
        )
    if found.older:
        return "No checkpoint changes: every stored trial is judged as before."
    return "No trial of this task is stored yet. Run one, and what it would now come to stands here."


def _whole(found: Effect) -> Markup:
    ups, downs = (
        sum(row.runs for row in found.whole if row.after == to and row.before != to) for to in ("pass", "fail")
    )
    said = [f"{_count(ups, 'trial')} would pass as a whole"] if ups else []
    said += [f"{_count(downs, 'trial')} would fail as a whole"] if downs else []
    words = f"Now {' and '.join(said)}." if said else "No trial as a whole comes to another result."
    return tag("p", words, cls="b" if said else "sm mute")


def _shown(rows: Sequence[Flip]) -> tuple[list[Flip], int]:
    """(rows, verdicts that are left out)."""
    flips = [row for row in rows if row.flips][: _ROWS * 3]
    same = [row for row in rows if not row.flips][: max(0, _ROWS - len(flips))]
    kept = [*flips, *same]
    return kept, sum(row.runs for row in rows) - sum(row.runs for row in kept)


def _table(rows: Sequence[Flip], cps: dict[str, str], who: str, what: str) -> Markup:
    heads = [*([who] if who else []), what, *(["Checkpoint"] if cps else []), "Old grader", "New grader", ""]
    return tag(
        "table",
        tag("thead", tag("tr", *[tag("th", name, scope="col") for name in heads])),
        tag("tbody", *[_row(row, cps, who) for row in rows]),
        cls="grid",
    )


def _row(row: Flip, cps: dict[str, str], who: str) -> Markup:
    name = row.who + (f", {row.runs} runs" if row.runs > 1 else "")
    return tag(
        "tr",
        tag("td", name, cls="b" if row.flips else None) if who else None,
        tag("td", row.ordered, tag("div", row.why, cls="xs mute") if row.why else None),
        tag("td", cps.get(row.checkpoint, row.checkpoint), cls="sm") if cps else None,
        tag("td", _verdict(row.before)),
        tag("td", _verdict(row.after)),
        tag("td", theme.chip("flips", "blue", "swap_vert") if row.flips else tag("span", "same", cls="sm mute")),
    )


def _verdict(result: str) -> Markup | str:
    return theme.verdict_chip(result) if result in theme.VERDICTS else "none"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _counter(n: int, symbol: str, words: str) -> Markup:
    return tag("div", tag("div", f"{n} ", theme.icon(symbol), cls="figure"), tag("div", words, cls="sm"), cls="card")
