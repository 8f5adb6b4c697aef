"""The text area that keeps what is typed: on the server half a second after the last key, on blur, and on leaving.

A draft is keyed by person, task, round and item (tasks.statedb), so that it survives another page, a reload, a lost
connection and a restart of the server. Two windows of one person never overwrite each other unasked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import streamlit as st

from review_ui import failure
from tasks.errors import WorkbenchError
from tasks.statedb import Draft, StateDb

_FOLDER = Path(__file__).parent
LIMIT = 100_000


@dataclass(frozen=True)
class Notebook:
    """Where one person's drafts on one task in one round are kept. `open_data`: whether the browser's own storage may
    hold what the server has not confirmed yet."""

    db: StateDb
    person: str
    task: str
    round: int
    open_data: bool = True

    def all(self) -> dict[str, Draft]:
        """{item: draft}."""
        return self.db.drafts(self.person, self.task, self.round)

    def save(self, item: str, value: str) -> Draft:
        """Keep a value; what a click chose is kept like what was typed. Counts as a sign of life."""
        saved = self.db.save_draft(self.person, self.task, self.round, item, value)
        self.db.active(self.person, self.task, self.round)
        return saved

    def drop(self, *items: str) -> None:
        """Forget these items; everything without items."""
        self.db.drop_drafts(self.person, self.task, self.round, items or None)

    def key(self, item: str) -> str:
        """The widget key of an item: by what it is about, never by its place in a list."""
        return f"draft-{self.person}-{self.task}-{self.round}-{item}"


@st.cache_resource(show_spinner=False)
def _component() -> Callable[..., Any]:
    return st.components.v2.component(
        "workbench_autosave",
        html='<div class="wb-field"></div>',
        css=(_FOLDER / "autosave.css").read_text("utf-8"),
        js=(_FOLDER / "autosave.js").read_text("utf-8"),
        isolate_styles=False,
    )


def clock(at: datetime) -> str:
    """ "14:03", on this server's clock."""
    return f"{at.astimezone():%H:%M}"


def settle(book: Notebook, item: str) -> None:
    """Save what the browser has sent for this item, if that has not been done. An action calls it first, so that a
    click right after typing acts on all of the text."""
    key = book.key(item)
    state = st.session_state.get(key)
    message = getattr(state, "draft", None) if state is not None else None
    if not isinstance(message, dict):
        return
    try:
        text, seq, base = str(message["text"])[:LIMIT], int(message["seq"]), int(message["base"])
    except (KeyError, TypeError, ValueError):
        return
    marks = st.session_state.setdefault("autosave-marks", {})
    mark = marks.setdefault(key, {"seq": 0, "revision": None, "conflict": False, "failed": False})
    if seq <= mark["seq"] and not mark["failed"]:
        return
    present = book.all().get(item)
    revision = present.revision if present else 0
    mark["failed"] = mark["conflict"] = False
    if (present.value if present else "") == text:
        mark["seq"] = seq
    elif message.get("force") or revision in (base, mark["revision"]):
        try:
            mark["revision"] = book.save(item, text).revision
            mark["seq"] = seq
        except WorkbenchError as error:
            # The field goes on saying "Not saved" and tries again.
            failure.record(error)
            mark["failed"] = True
    else:
        mark["seq"], mark["conflict"] = seq, True


def area(
    book: Notebook,
    item: str,
    label: str,
    *,
    rows: int = 2,
    placeholder: str = "",
    quiet: bool = False,
    required: bool = False,
    start: str = "",
) -> None:
    """Draw the field. `quiet`: the label is for screen readers only. `start`: the text where there is no draft yet.

    What it holds is in `book.all()` afterwards. It is no fragment of its own on purpose: Streamlit sends the field's
    flush and the click that caused it as one batch, and a batch that names a fragment runs that one, not the click.
    """
    key = book.key(item)
    settle(book, item)
    present = book.all().get(item)
    mark = st.session_state.setdefault("autosave-marks", {}).get(key, {"seq": 0, "conflict": False})
    _component()(
        key=key,
        data={
            "identity": f"{book.person}/{book.task}/{book.round}/{item}",
            "label": label,
            "text": present.value if present else start,
            "revision": present.revision if present else 0,
            "saved": clock(present.saved_at) if present else "",
            "seq": mark["seq"],
            "conflict": mark["conflict"],
            "rows": rows,
            "placeholder": placeholder,
            "quiet": quiet,
            "required": required,
            "limit": LIMIT,
            "keep": book.open_data,
        },
        default={"draft": None},
        on_draft_change=_settled(book, item),
    )


@st.cache_resource(show_spinner=False)
def _selection() -> Callable[..., Any]:
    return st.components.v2.component(
        "workbench_selection",
        html='<div class="wb-quote"></div>',
        css=(_FOLDER / "autosave.css").read_text("utf-8"),
        js=(_FOLDER / "selection.js").read_text("utf-8"),
        isolate_styles=False,
    )


def selected(key: str, label: str) -> str:
    """A button that takes the words which are selected on the page; those words once it is pressed, else ""."""
    result = _selection()(key=key, data={"label": label}, on_quoted_change=lambda: None)
    return str(getattr(result, "quoted", None) or "")


def _settled(book: Notebook, item: str) -> Callable[[], None]:
    return lambda: settle(book, item)
