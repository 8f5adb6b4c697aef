"""A physician's own verdict on one checkpoint of a stored trial: the form, and what was stored read back."""

from __future__ import annotations

import hashlib
from typing import Literal, cast, get_args

import streamlit as st

from graders.calibrate import give
from review_ui import autosave, frame, identity, theme
from review_ui.autosave import Notebook
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


def form(trial: StoredTrial, task: Task, checkpoint: Checkpoint, who: Identity, person: Person) -> Verdict | None:
    """The form; the stored verdict on the run in which it was saved. What is typed survives reload and restart."""
    # The key of the draft and its widgets names no agent: a blind reader can see it in the page's source.
    mark = hashlib.sha256(f"{trial.path}\0{checkpoint.id}".encode()).hexdigest()[:16]
    book = Notebook(
        StateDb(frame.workspace().state_db), f"{person.id}@verdicts", task.id, 0, task.meta.data_class == "open"
    )
    verdict = st.segmented_control("Verdict", levels(checkpoint), key=f"verdict-{mark}")
    cause = NO_CAUSE
    if verdict in ("Partial", "Fail"):
        cause = st.selectbox(
            "Earliest cause of what went wrong", [NO_CAUSE, *get_args(ErrorKind)], key=f"cause-{mark}",
            format_func=lambda name: name.capitalize(),
        )  # fmt: skip
    autosave.area(book, mark, "Why", rows=3, placeholder="In a sentence; it stays with the trial", required=True)
    draft = book.all().get(mark)
    reason = draft.value.strip() if draft else ""
    missing = [words for words, absent in (("verdict", not verdict), ("reason", not reason)) if absent]
    if missing:
        frame.show(tag("p", f"Still needed: {', '.join(missing)}.", cls="sm mute"))
    if not st.button(
        "Save verdict", type="primary", icon=":material/check:", key=f"save-{mark}", disabled=bool(missing)
    ):
        return None
    autosave.settle(book, mark)
    draft = book.all().get(mark)
    try:
        stored = give(
            trial, task, checkpoint.id, WORDS[verdict or "Cannot judge"], draft.value if draft else "", person,
            cause=None if cause == NO_CAUSE else cast(ErrorKind, cause), verified=who.verified,
        )  # fmt: skip
    except WorkbenchError as error:
        frame.show(tag("p", str(error), cls="warn", role="alert"))
        return None
    book.drop(mark)
    return stored


def stored_words(verdict: Verdict) -> Markup:
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
