"""A physician's own verdict on one checkpoint of a stored trial: the form, and what was stored read back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Literal, cast, get_args

import streamlit as st

from graders.calibrate import give
from review_ui import autosave, failure, frame, identity, theme
from review_ui.autosave import Notebook, held
from review_ui.identity import Identity
from review_ui.markup import Markup, tag
from tasks.declarations import Checkpoint
from tasks.errors import WorkbenchError
from tasks.package import Task
from tasks.people import Person
from tasks.review.permissions import allowed
from tasks.statedb import StateDb
from tasks.stored import StoredTrial
from tasks.trials import ErrorKind, Verdict

Result = Literal["pass", "partial", "fail", "ungraded"]
WORDS: dict[str, Result] = {"Pass": "pass", "Partial": "partial", "Fail": "fail", "Cannot judge": "ungraded"}
NO_CAUSE = "not said"
#: Seconds for which a stored verdict is read back, counted from its first drawing.
STANDS = 10.0


@dataclass
class Saved:
    """What the last press of "Save verdict" came to, until it is shown: the stored verdict, or why it was refused.

    One object of ours in the session, so that a callback changes it without giving way to a newer click.
    """

    verdict: Verdict | None = None
    refused: str = ""
    shown: float | None = None


def saved(slot: str) -> Saved:
    """This session's, for one page."""
    found = st.session_state.get(slot)
    if not isinstance(found, Saved):
        found = st.session_state[slot] = Saved()
    return found


def grader() -> tuple[Identity, Person] | None:
    """Who is here, if they may grade by hand; else what is in the way is shown."""
    who = identity.current()
    if who.person is None:
        frame.show(tag("p", "A verdict needs a name: say who you are first.", cls="sm mute"))
        identity.chooser()
        return None
    if not allowed(who.person, "grade_by_hand"):
        words = f"{who.name} may not grade by hand; that is for reviewers, pharmacists and adjudicators."
        frame.show(tag("p", words, cls="sm mute"))
        identity.chooser()
        return None
    return who, who.person


def levels(checkpoint: Checkpoint) -> list[str]:
    """The verdicts that the checkpoint knows, in words; no level between pass and fail where its rubric has none."""
    no_partial = checkpoint.rubric is not None and checkpoint.rubric.partial is None
    return [word for word in WORDS if not (word == "Partial" and no_partial)]


def form(
    trial: StoredTrial, task: Task, checkpoint: Checkpoint, who: Identity, person: Person, said: Saved,
    then: Callable[[], None] = lambda: None,
) -> None:  # fmt: skip
    """The form. What is typed survives reload and restart. `said` holds what saving came to; `then` follows at once."""
    # The key of the draft and its widgets names no agent: a blind reader can see it in the page's source.
    mark = hashlib.sha256(f"{trial.path}\0{checkpoint.id}".encode()).hexdigest()[:16]
    book = Notebook(
        StateDb(frame.workspace().state_db), f"{person.id}@verdicts", task.id, 0, task.meta.data_class == "open"
    )
    verdict = st.segmented_control("Verdict", levels(checkpoint), key=f"verdict-{mark}")
    if verdict in ("Partial", "Fail"):
        st.selectbox(
            "Earliest cause of what went wrong", [NO_CAUSE, *get_args(ErrorKind)], key=f"cause-{mark}",
            format_func=lambda name: name.capitalize(),
        )  # fmt: skip
    autosave.area(book, mark, "Why", rows=3, placeholder="In a sentence; it stays with the trial", required=True)
    draft = book.all().get(mark)
    reason = draft.value.strip() if draft else ""
    missing = [words for words, absent in (("verdict", not verdict), ("reason", not reason)) if absent]
    if missing:
        frame.show(tag("p", f"Still needed: {', '.join(missing)}.", cls="sm mute"))

    @failure.guarded
    def save() -> None:
        now = book.again()
        autosave.settle_all(now)
        if held()[0].unsettled(now, mark):
            said.verdict, said.refused = None, " ".join(autosave.UNSETTLED)
            return
        chosen = held()[1].get(f"verdict-{mark}")
        words = now.values().get(mark, "").strip()
        # The second click of a double click: the first one has taken the words along.
        if chosen not in WORDS or not words:
            return
        why = held()[1].get(f"cause-{mark}", NO_CAUSE) if chosen in ("Partial", "Fail") else NO_CAUSE
        try:
            stored = give(
                trial, task, checkpoint.id, WORDS[chosen], words, person,
                cause=None if why == NO_CAUSE else cast(ErrorKind, why), verified=who.verified,
            )  # fmt: skip
        except WorkbenchError as error:
            said.verdict, said.refused = None, str(error)
            return
        now.drop(mark)
        said.verdict, said.refused, said.shown = stored, "", None
        then()

    if said.refused:
        frame.show(tag("p", said.refused, cls="warn", role="alert"))
    st.button(
        "Save verdict", type="primary", icon=":material/check:", key=f"save-{mark}", disabled=bool(missing),
        on_click=save,
    )  # fmt: skip


def read_back(said: Saved) -> None:
    """Show what was stored, for a while: the second click of a double click, or a saving that arrives late, draws the
    page anew at once, and would take the words away before they are seen."""
    now = monotonic()
    if said.shown is not None and now - said.shown > STANDS:
        said.verdict = None
    if said.verdict is not None:
        said.shown = now if said.shown is None else said.shown
        frame.show(_stored(said.verdict))


def _stored(verdict: Verdict) -> Markup:
    """What was stored, as it stands in the trial."""
    cause = tag("span", f"Cause: {verdict.cause}. ", cls="sm") if verdict.cause else None
    return tag(
        "div",
        theme.verdict_chip(verdict.result),
        tag("span", f" Saved {verdict.at.astimezone():%H:%M}, {verdict.checkpoint}. ", cls="sm mute"),
        cause,
        tag("span", verdict.reason, cls="sm"),
        role="status",
    )
