"""Where a person is among the changes: which one is shown, what can be undone; kept for as long as the window is open.

One object of ours in the session, so that a callback reads and changes it without giving way to a newer click.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import streamlit as st

from review_ui import failure
from review_ui.autosave import held, settle_all
from review_ui.reviewing import changes
from review_ui.reviewing.sitting import Sitting
from tasks.review.events import ChangeRef, Decided
from tasks.review.state import ChangeState


@dataclass
class Going:
    """`at`: the change that is shown; `undo`: what each press decided, (change, its draft before) each, newest last;
    `before`: when the person last looked, asked once (`looked`)."""

    at: str = ""
    summary: bool = False
    undo: list[tuple[tuple[str, str], ...]] = field(default_factory=list)
    looked: bool = False
    before: datetime | None = None


def _slot(at: Sitting) -> str:
    return f"going-{at.me}-{at.at.task_id}"


def going(at: Sitting) -> Going:
    """This person's on this task. For the drawing of a page."""
    found = st.session_state.get(_slot(at))
    if not isinstance(found, Going):
        found = st.session_state[_slot(at)] = Going()
    return found


def _going(at: Sitting) -> Going:
    """The same for a callback."""
    found = held()[1].get(_slot(at))
    return found if isinstance(found, Going) else Going()


# ---- where a change stands for this person ----------------------------------------------------------------------


def standing(at: Sitting, one: ChangeState) -> Decided | None:
    """One's own decision that was submitted."""
    return one.decisions.get(at.me)


def settled(at: Sitting, one: ChangeState, drafts: Mapping[str, str]) -> bool:
    """Whether nothing is left to do about it."""
    made = changes.drafted(one.ref, drafts)
    return (made is not None and not made.stale and not made.lacks) or standing(at, one) is not None


def said_of(at: Sitting, one: ChangeState, drafts: Mapping[str, str]) -> str:
    """In a few words, "" for open."""
    made = changes.drafted(one.ref, drafts)
    if made is not None:
        if made.stale:
            return "outdated: it was put up again"
        return changes.DECISIONS[made.decision] + (f", needs {' and '.join(made.lacks)}" if made.lacks else "")
    found = standing(at, one)
    if found is not None:
        return f"{changes.DECISIONS[found.decision]}, submitted"
    if any(old.actor == at.me for old in one.outdated):
        return "your decision is outdated"
    return ""


def sign_of(at: Sitting, one: ChangeState, drafts: Mapping[str, str]) -> tuple[str, str] | None:
    """(symbol, tone) of the decision."""
    made = changes.drafted(one.ref, drafts)
    found = standing(at, one)
    decision = made.decision if made and not made.stale else found.decision if found else ""
    return changes.SIGNS.get(decision)


# ---- what keys and buttons do -----------------------------------------------------------------------------------


def go(at: Sitting, change: str) -> None:
    """Show this change."""
    here = _going(at)
    here.at, here.summary = change, False


def summarize(at: Sitting) -> None:
    """Show all decisions."""
    _going(at).summary = True


@failure.guarded
def decide(at: Sitting, change: ChangeState, decision: str, order: tuple[str, ...]) -> None:
    """Keep a decision and go on, unless it still needs something. The same again changes nothing.

    A key for a change that is no longer the one shown is for nobody: its button was not yet replaced on the screen.
    """
    book, here = at.book.again(), _going(at)
    settle_all(book)
    if here.at != change.ref.change or here.summary:
        return
    item = f"decision.{change.ref.change}"
    kept = book.values()
    before, now = kept.get(item, ""), changes.kept(change.ref, decision)
    if before != now:
        book.save(item, now)
        here.undo.append(((change.ref.change, before),))
    made = changes.drafted(change.ref, {**kept, item: now})
    if made is not None and not made.lacks:
        _step(here, order, change.ref.change, 1)


def decide_all(at: Sitting, refs: Sequence[ChangeRef], decision: str) -> None:
    """Keep the same decision on several changes; one Undo takes all of them back."""
    book, here = at.book.again(), _going(at)
    kept = book.values()
    made = []
    for ref in refs:
        item = f"decision.{ref.change}"
        before, now = kept.get(item, ""), changes.kept(ref, decision)
        if before != now:
            book.save(item, now)
            made.append((ref.change, before))
    if made:
        here.undo.append(tuple(made))


def step(at: Sitting, order: tuple[str, ...], by: int) -> None:
    """Show the next or the previous one."""
    here = _going(at)
    if here.at in order:
        _step(here, order, here.at, by)


def _step(here: Going, order: Sequence[str], change: str, by: int) -> None:
    place = order.index(change) + by
    if place >= len(order):
        here.summary = True
    else:
        here.at = order[max(0, place)]


@failure.guarded
def undo(at: Sitting) -> None:
    """Take back what was last decided in this sitting, and show its change; where they were several, the summary."""
    here = _going(at)
    if here.undo:
        book, taken = at.book.again(), here.undo.pop()
        for change, before in taken:
            book.save(f"decision.{change}", before)
        here.at, here.summary = taken[0][0], len(taken) > 1


def next_open(at: Sitting, change: str) -> None:
    """Show the next one that is open, or the summary where none is."""
    here = _going(at)
    if change:
        here.at, here.summary = change, False
    else:
        here.summary = True


def submitted(at: Sitting) -> None:
    """Begin anew after a submission."""
    here = _going(at)
    here.at, here.summary = "", False
    here.undo.clear()
