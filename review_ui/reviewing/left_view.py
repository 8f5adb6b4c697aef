"""What a reviewer wrote in stage 1 and did not submit: shown afterwards, to be copied, added or discarded."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from review_ui import failure, frame, theme
from review_ui.autosave import BESIDE, Notebook, held
from review_ui.markup import tag
from review_ui.reviewing import acting, forms
from review_ui.reviewing.findings_view import anchor_said, titles
from review_ui.reviewing.sitting import Sitting
from tasks.review.checklist import checklist
from tasks.review.events import PlanAmended, PlanLocked, ReviewSubmitted, parse_events
from tasks.wording import counted

#: How the items of a finding end that hold words.
_WRITTEN = tuple(f".{name}" for name in forms.WRITTEN)


def draw(at: Sitting) -> None:
    """A box for each round of this task that is over for this person and in which words are left."""
    for task, round, _ in at.desk.db.tasks_with_drafts(at.me):
        over = round < at.state.round or at.submitted is not None or not at.state.round_is_open
        if task == at.at.task_id and round and over:
            box(at, round)


def box(at: Sitting, round: int) -> None:
    """The words that are left of one round. What is left without any is of no use to anybody and goes."""
    book = at.book_of(round)
    items = {item: value for item, value in book.values().items() if forms.of_stage_1(item)}
    sent, locked = _sent(at, round)
    words = unsent(items, sent)
    if not words:
        if items:
            book.drop(*items)
        return
    with st.container(border=True, key=f"left-{round}"):
        frame.show(
            theme.section("Not submitted", f"{counted(len(words), 'text')} of round {round}, kept for you alone")
        )
        for item, value in words.items():
            what, where = named(at, item, items, locked=locked)
            frame.show(
                tag(
                    "div",
                    tag("div", what, cls="b sm"),
                    tag("div", where, cls="xs mute") if where else None,
                    tag("div", value, cls="lines"),
                    cls="anchor",
                )
            )
            adds = item.removeprefix(BESIDE).startswith(("amend.", "plan.") if locked else "amend.")
            if adds and round == at.state.round and at.blind:
                acting.button(at, "Add it to your plan as a correction", f"amend#{item}", _amend(at, item), uses=(),
                              key="amend-left", icon=":material/add:")  # fmt: skip
        with st.popover("Discard", icon=":material/delete:", key=f"discard-{round}", on_change="rerun") as up:
            if up.open:
                frame.show(tag("p", "Copy what you still need: these words are gone afterwards.", cls="sm"))
                st.button("Discard these words", key=f"discard-now-{round}", on_click=_discard, args=(at, round, items))


def unsent(items: Mapping[str, str], sent: frozenset[str]) -> dict[str, str]:
    """{item: words} of the drafts of stage 1 that hold words which are in no submission. `sent`: texts that are in
    one."""
    found = {}
    for item, value in items.items():
        kind, _, rest = item.removeprefix(BESIDE).partition(".")
        text = kind in ("amend", "why", "comment", "finding") or (kind == "new" and rest.endswith(_WRITTEN))
        text = text or (kind == "plan" and rest != "confidence")
        words = (forms.words_of(value) if kind == "finding" else value).strip()
        if text and words and words not in sent:
            found[item] = words
    return found


def named(at: Sitting, item: str, items: Mapping[str, str], *, locked: bool) -> tuple[str, str]:
    """(what a text was going to be, what it was about or ""). `locked`: a plan was, without these words."""
    if item.startswith(BESIDE):
        what, where = named(at, item.removeprefix(BESIDE), items, locked=locked)
        return f"{what}, as another window had it", where
    kind, _, rest = item.partition(".")
    match kind:
        case "new":
            id, _, name = rest.rpartition(".")
            what = {"text": "A finding that was not added", "source": "Its source"}.get(name, "Its alternative plan")
            where, quote = anchor_said(at, items.get(f"new.{id}.anchor", ""))
            return what, (where + (f": “{quote}”" if quote else "")) if name == "text" else ""
        case "amend":
            return "A correction of your plan that was not added", ""
        case "why":
            return "A reason for a rating that was changed", titles(at.task).get(rest, "")
        case "comment":
            return "A comment", next((one.title for one in checklist().dimensions if one.id == rest), "")
        case "plan":
            what = "Of your plan, written after it was locked" if locked else "Of a plan that was not locked"
            return what, next((label for key, label, _ in forms.PLAN if key == rest), "")
    return "A finding that was not submitted", ""


def _sent(at: Sitting, round: int) -> tuple[frozenset[str], bool]:
    """(every text of one's own submissions of a round, whether a plan is among them)."""
    sealed = [one for one in at.desk.db.sealed(at.at.task_id, round) if one.person == at.me]
    texts: set[str] = set()
    for event in (event for one in sealed for event in parse_events(one.events)):
        if isinstance(event, PlanLocked):
            texts |= {str(getattr(event.plan, key)).strip() for key, _, _ in forms.PLAN}
        elif isinstance(event, PlanAmended):
            texts.add(event.text.strip())
        elif isinstance(event, ReviewSubmitted):
            texts |= {one.comment.strip() for one in event.verdicts}
            texts |= {one.comment.strip() for one in event.ratings}
            texts |= {said.strip() for one in event.findings for said in (one.text, one.source, one.alternative_plan)}
    return frozenset(texts), any(one.kind == "plan" for one in sealed)


def _amend(at: Sitting, item: str) -> acting.Does:
    def does(book: Notebook, id: str) -> str:
        at.desk.amend_plan(at.at.task_id, acting.reason(book, item), review_id=id)
        book.drop(item)
        return "The correction is added."

    return does


@failure.guarded
def _discard(at: Sitting, round: int, shown: Mapping[str, str]) -> None:
    """Drop what was shown, as it was shown; what has changed since in another window stays."""
    book, (found, _) = at.book_of(round).again(), held()
    found.hush(book)
    kept = book.values()
    if items := [item for item, value in shown.items() if kept.get(item) == value]:
        book.drop(*items)
