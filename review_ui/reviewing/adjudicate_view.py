"""Adjudication: what reviewers decided differently, settled with a reason; and vetoes that an adjudicator lifts."""

from __future__ import annotations

import streamlit as st

from review_ui import frame, theme
from review_ui.autosave import area, settle
from review_ui.markup import join, tag
from review_ui.reviewing import change_card, changes, decide_view, effect_view
from review_ui.reviewing.findings_view import titles
from review_ui.reviewing.sitting import Sitting, minted, used
from tasks.errors import WorkbenchError
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
    split = [one for one in at.state.changes.values() if one.status == "split"]
    if not split and not at.state.vetoes:
        if at.me not in at.state.reviewers:
            frame.show(frame.notice("Nothing is split.", decide_view.next_words(at)))
        return
    for one in split:
        settle_split(at, one)
    for veto in at.state.vetoes:
        lift(at, veto.change, veto.owner, veto.reason)


def settle_split(at: Sitting, one: ChangeState) -> None:
    """One split change: what it is, what each said, the decision."""
    id = one.ref.change
    what, _ = changes.place_words(one.ref.unit, titles(at.task))
    frame.show(theme.section(f"Split: {what}", f"round {one.round}"))
    view = change_card.view_of(at, one)
    found = changes.findings(at.state, one.ref, at.me)
    frame.show(change_card.finding_card(at, found))
    if not isinstance(view, str):
        frame.show(change_card.change_card(at, one, view))
        if one.ref.unit.startswith(("checkpoints.", "examples/")):
            effect_view.draw(at, one)
    said = [
        tag("div", tag("span", f"{at.name(person)}: ", cls="b"), decision.decision,
            tag("span", f" “{decision.reason}”") if decision.reason else None)
        for person, decision in one.decisions.items()
    ]  # fmt: skip
    frame.show(tag("div", tag("div", "Decided so far", cls="xs mute b"), join(said), cls="card"))
    area(at.book, f"adjudicate.{id}", "Reason, read by everybody", rows=2, required=True)
    name = f"adjudicate-{id}"
    with st.container(horizontal=True):
        approve = st.button("Accept the change", icon=":material/check:", key=f"accept-{minted(name)}")
        reject = st.button("Reject the change", icon=":material/close:", key=f"refuse-{minted(name)}")
    if approve or reject:
        settle(at.book, f"adjudicate.{id}")
        draft = at.book.all().get(f"adjudicate.{id}")
        if draft is None or not draft.value.strip():
            frame.show(tag("p", "It needs a reason.", cls="warn b", role="status"))
            return
        try:
            at.desk.adjudicate(
                at.at.task_id, id, "approve" if approve else "reject", draft.value, review_id=minted(name)
            )
        except WorkbenchError as error:
            frame.show(frame.notice("Not settled. What you wrote is kept.", str(error)))
            return
        used(name)
        at.book.drop(f"adjudicate.{id}")
        st.rerun()


def lift(at: Sitting, change: str, owner: str, reason: str) -> None:
    """A veto that stands: its owner's reason; lifted only with the owner's recorded answer."""
    what = changes.place_words(at.state.changes[change].ref.unit, titles(at.task))[0] if change else "the whole task"
    key = change[:16] or "task"
    frame.show(theme.section(f"Veto on {what}", f"by {at.name(owner)}"))
    frame.show(tag("div", theme.chip("Veto stands", "veto", "front_hand"), tag("p", f"“{reason}”"), cls="card"))
    with st.expander("Lift it with the owner's answer", key=f"over-{key}-{owner}"):
        answer = st.radio("What the owner says", list(ANSWERS), format_func=lambda one: ANSWERS[one], index=None,
                          key=f"answer-{key}-{owner}")  # fmt: skip
        item = f"over.{key}.{owner}"
        area(at.book, item, "Why it is lifted, printed in the release", rows=2)
        name = f"over-{key}-{owner}"
        if st.button("Lift the veto", key=f"over-{minted(name)}"):
            settle(at.book, item)
            draft = at.book.all().get(item)
            if answer is None or draft is None or not draft.value.strip():
                frame.show(tag("p", "It needs the owner's answer and a reason.", cls="warn b", role="status"))
                return
            try:
                at.desk.lift_veto(at.at.task_id, change, owner, answer, draft.value, review_id=minted(name))
            except WorkbenchError as error:
                frame.show(frame.notice("Not lifted. What you wrote is kept.", str(error)))
                return
            used(name)
            at.book.drop(item)
            st.rerun()
