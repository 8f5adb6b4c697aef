"""Adjudication: what reviewers decided differently, settled with a reason; and vetoes that an adjudicator lifts."""

from __future__ import annotations

import streamlit as st

from authoring.deciding import kept_from_lifting
from review_ui import frame, theme
from review_ui.autosave import Notebook, area
from review_ui.markup import Markup, tag
from review_ui.reviewing import acting, change_card, changes, decide_view, fields
from review_ui.reviewing.sitting import Sitting
from tasks.review.permissions import allowed
from tasks.review.state import ChangeState

ANSWERS = {
    "agrees": "The owner agrees",
    "does not agree": "The owner does not agree",
    "could not be reached": "The owner could not be reached",
}


def draw(at: Sitting) -> None:
    """Draw what waits for an adjudicator; nothing for anybody else."""
    person = at.who.person
    if person is None or not allowed(person, "adjudicate"):
        return
    every = [one for one in at.state.changes.values() if one.status == "split"]
    split = [one for one in every if not _has_part(at, one)]
    # One's own veto is lifted where one decides, and on Sign-off.
    vetoes = [
        one for one in at.state.vetoes if one.owner != at.me and not kept_from_lifting(at.state, at.me, one.change)
    ]
    if not split and not vetoes:
        if at.me not in at.state.reviewers:
            frame.show(_nothing(at, open_=bool(every or at.state.vetoes)))
        return
    # What may harm comes first, as it does for those who decide.
    for veto in vetoes:
        lift(at, veto.change, veto.owner, veto.reason)
    split.sort(key=lambda one: not changes.is_safety(at.state, one))
    for number, one in enumerate(split, 1):
        settle_split(at, one, f"{number} of {len(split)}, round {one.round}")


def _nothing(at: Sitting, *, open_: bool) -> Markup:
    """Why there is nothing here for this person."""
    if any(one.owner == at.me for one in at.state.vetoes):
        return frame.notice("Your own veto stands.", "You lift it yourself, on Sign-off.")
    if open_:
        words = "You made it, or judged or decided on it yourself."
        return frame.notice("What is open here is for another adjudicator.", words)
    return frame.notice("Nothing is split.", decide_view.next_words(at))


def _has_part(at: Sitting, one: ChangeState) -> bool:
    """Whether the person made the change or decided on it: then it is settled by somebody else."""
    return one.made_by == at.me or at.me in one.decisions


def settle_split(at: Sitting, one: ChangeState, place: str) -> None:
    """One split change: what it is, what each said, the decision."""
    id = one.ref.change
    what, _ = change_card.place_of(at, one.ref.unit)
    frame.show(theme.section(f"Split: {what}", place))
    _what_it_is(at, one)
    frame.show(change_card.decided_card(at, list(one.decisions.values())))
    area(at.book, f"adjudicate.{id}", "Reason, read by everybody", rows=2, required=True)
    name = f"adjudicate-{id}#{len(at.at.events)}"
    acting.refusal(at, name)
    with st.container(horizontal=True):
        for decision, label, icon in (
            ("approve", "Accept the change", "check"),
            ("reject", "Reject the change", "close"),
        ):
            acting.button(at, label, name, _settling(at, id, decision), key=decision,
                          uses=(f"adjudicate.{id}",), told=False, icon=f":material/{icon}:")  # fmt: skip


def _what_it_is(at: Sitting, one: ChangeState) -> None:
    """The finding, the change and what it means, its reasons folded: as those who decided on it saw it."""
    frame.show(change_card.finding_card(at, changes.findings(at.state, one.ref, at.me)))
    view = change_card.view_of(at, one)
    if isinstance(view, str):
        frame.show(frame.notice("This change no longer applies to the task as it stands.", view))
        return
    decide_view.shown(at, one, view)
    decide_view.folds(at, one, view)


def _settling(at: Sitting, change: str, decision: str) -> acting.Does:
    item = f"adjudicate.{change}"

    def does(book: Notebook, id: str) -> str:
        at.desk.adjudicate(at.at.task_id, change, decision, acting.reason(book, item), review_id=id)
        book.drop(item)
        return "It is settled."

    return does


def lift(at: Sitting, change: str, owner: str, reason: str) -> None:
    """A veto that stands: its owner's reason; lifted only with the owner's recorded answer."""
    what = change_card.place_of(at, at.state.changes[change].ref.unit)[0] if change else "the whole task"
    key = change[:16] or "task"
    frame.show(theme.section(f"Veto on {what}", f"by {at.name(owner)}"))
    frame.show(tag("div", theme.chip("Veto stands", "veto", "front_hand"), tag("div", f"“{reason}”"), cls="card"))
    if change:
        _what_it_is(at, at.state.changes[change])
    item, says = f"over.{key}.{owner}", f"says.{key}.{owner}"

    def does(book: Notebook, id: str) -> str:
        needs = "It needs the owner's answer and a reason."
        answer = acting.reason(book, says, needs)
        at.desk.lift_veto(at.at.task_id, change, owner, answer, acting.reason(book, item, needs), review_id=id)
        book.drop(item, says)
        return "The veto is lifted."

    with st.expander("Lift it with the owner's answer", key=f"over-{key}-{owner}"):
        fields.choice(at.book, says, "What the owner says", ANSWERS, at.book.values(), quiet=False)
        area(at.book, item, "Why it is lifted, printed in the release", rows=2)
        acting.button(at, "Lift the veto", f"over-{key}-{owner}#{len(at.at.events)}", does, key="over",
                      uses=(item, says))  # fmt: skip
