"""Buttons that change something: each acts in its callback, once, and what came of it is said beside it.

A newer click ends a run of a page wherever it is (see autosave), so nothing is done further down a page that a click
has to reach. A callback reads what the session knows at once and does its work without Streamlit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from authoring.vouching import VARIABLE, Errand, vouch
from review_ui import failure, frame
from review_ui.autosave import UNSETTLED, Notebook, held, memory, settle_all
from review_ui.markup import tag
from review_ui.reviewing.sitting import Sitting, minted, used
from tasks.errors import UsageError, WorkbenchError

#: (drafts as they are now, Review-Id) -> what was done, for a passing word; raises where it was not.
Does = Callable[[Notebook, str], str]
#: Seconds after something went through in which a press that finds nothing left to do is the end of a double click.
_AGAIN = 2.0


def button(
    at: Sitting, label: str, name: str, does: Does, *, key: str, uses: Sequence[str], told: bool = True, **look: Any
) -> None:
    """A button that submits. `name`: "what#on which state": its Review-Id is minted for just that.

    `uses`: how the items begin whose words it acts on; () = none. While one of them is not kept as it stands in its
    field the press does nothing but say so. `told`: why it was refused stands above it; else the page says
    `refusal(name)` where it has room.
    """
    if told:
        refusal(at, name)
    slot = f"{name}-{at.me}-{at.at.task_id}"
    if (id := minted(slot)) in memory().finished:
        used(slot)
        id = minted(slot)
    st.button(label, key=f"{key}-{id}", on_click=_act, args=(at, name, does, id, tuple(uses)), **look)


def refusal(at: Sitting, name: str) -> None:
    """Why the last press of this button did nothing."""
    if said := memory().said.get(_place(at, name)):
        frame.show(tag("p", " ".join(part for part in said if part), cls="warn b sm", role="alert"))


def passing(at: Sitting) -> None:
    """Say once what was done."""
    found = memory()
    if said := found.said.get(_place(at, "")):
        st.toast(said[0], icon=":material/check:")
        found.said.pop(_place(at, ""), None)


@failure.guarded
def _act(at: Sitting, name: str, does: Does, id: str, uses: tuple[str, ...]) -> None:
    book, (found, _) = at.book.again(), held()
    settle_all(book)
    if id in found.finished:
        # The second click of a double click: what the first came to is said already.
        return
    found.said.pop(_place(at, name), None)
    if found.unsettled(book, *uses):
        found.said[_place(at, name)] = UNSETTLED
        return
    try:
        done = does(book, id)
    except WorkbenchError as error:
        # The same on the button that was drawn in between: the words are taken, and there is nothing to say of them.
        # Where there are words again it is no second click.
        words = any(value for item, value in book.values().items() if item.startswith(uses))
        if words or time.monotonic() - found.worked.get(_place(at, name), -_AGAIN) >= _AGAIN:
            found.said[_place(at, name)] = ("", str(error))
        return
    found.finished.add(id)
    found.worked[_place(at, name)] = time.monotonic()
    if done:
        found.said[_place(at, "")] = (done, "")


def _place(at: Sitting, name: str) -> str:
    # Somebody else may have changed the state under it: what was refused is said on the state that is.
    return f"act {at.me} {at.at.task_id} {name.partition('#')[0]}"


def voucher(at: Sitting, command: str, submission: str, job: str) -> dict[str, str]:
    """Environment of a job: who is verified on this page is verified for this one errand; nobody else becomes so."""
    if not at.who.verified:
        return {}
    return {VARIABLE: vouch(frame.workspace(), Errand(at.me, command, at.at.task_id, submission, job))}


def reason(book: Notebook, item: str, words: str = "It needs a reason.") -> str:
    """What was written there. Raises UsageError where nothing was."""
    said = book.values().get(item, "").strip()
    if not said:
        raise UsageError(words)
    return said
