"""Input that loses nothing: the text area that is kept while one types, and the sheet in which one chooses.

A draft is keyed by person, task, round and item (tasks.statedb), so that it survives another page, a reload, a lost
connection and a restart of the server. Two windows of one person never overwrite each other's words unasked.

What Streamlit 1.67 does to a click, read in its source and measured: a newer message of the browser ends the run that
is going on at its next `st.` call and at its next look into `st.session_state`, in callbacks too, whatever
`runner.fastReruns` says. A callback that is cut off is not called again, and `if st.button(…):` further down the page
is never reached. Therefore

* a choice or a text is sent again, with everything else that is not confirmed, until the server has confirmed it;
* what a callback does is done without `st.`: it reads `Memory` (one look that gives way to nothing) and the drafts;
* every button that changes something acts in its callback (`memory()` and `Memory.say` are made for it).
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import streamlit as st

from review_ui import failure
from tasks.errors import WorkbenchError
from tasks.statedb import Draft, StateDb

FOLDER = Path(__file__).parent
#: Characters of one text. What is longer stays in the field, which says by how much.
LIMIT = 100_000
#: Characters of one line.
LINE = 4_000
#: How the item begins that keeps what a window could not save into an item, because another one had changed that.
BESIDE = "beside."
#: (database, person, task, round) -> the last minute that was noted there by this server
_alive: dict[tuple[str, str, str, int], int] = {}


@dataclass(frozen=True)
class Notebook:
    """Where one person's drafts on one task in one round are kept. `open_data`: whether the browser's own storage may
    hold what the server has not confirmed yet. `beside`: the texts that are kept beside the draft where two windows
    differ: a page shows them when the field is gone in which they stand.

    It reads the drafts once and knows what it changed itself: one is made for each run of a page. `again` gives one
    that reads anew, for a callback that was bound when the page was drawn.
    """

    db: StateDb
    person: str
    task: str
    round: int
    open_data: bool = True
    beside: Callable[[str], bool] | None = field(default=None, compare=False, repr=False)
    _read: dict[str, dict[str, Draft]] = field(default_factory=dict, compare=False, repr=False)

    def all(self) -> dict[str, Draft]:
        """{item: draft}."""
        if "all" not in self._read:
            self._read["all"] = self.db.drafts(self.person, self.task, self.round)
        return dict(self._read["all"])

    def values(self) -> dict[str, str]:
        """{item: what it holds}."""
        return {item: draft.value for item, draft in self.all().items()}

    def again(self) -> Notebook:
        """The same, reading the drafts anew."""
        return Notebook(self.db, self.person, self.task, self.round, self.open_data, self.beside)

    def save(self, item: str, value: str) -> Draft:
        """Keep a value; what a click chose is kept like what was typed. Counts as a sign of life."""
        saved = self.db.save_draft(self.person, self.task, self.round, item, value)
        if "all" in self._read:
            self._read["all"][item] = saved
        self.alive()
        return saved

    def alive(self) -> None:
        """A sign of life: the person did something on the task. Written once a minute, which is what is counted."""
        minute = int(time.time() // 60)
        slot = (str(self.db.path), self.person, self.task, self.round)
        if _alive.get(slot) != minute:
            self.db.active(self.person, self.task, self.round)
            _alive[slot] = minute

    def drop(self, *items: str) -> None:
        """Forget these items; everything without items."""
        self.db.drop_drafts(self.person, self.task, self.round, items or None)
        self._read.clear()

    def key(self, item: str) -> str:
        """The widget key of an item: by what it is about, never by its place in a list."""
        return f"draft-{self.person}-{self.task}-{self.round}-{item}"


# ---- what a session knows -------------------------------------------------------------------------------------------


@dataclass
class Mark:
    """How far the messages of one widget have been answered."""

    seq: int = 0
    saving: int | None = None
    conflict: bool = False
    failed: bool = False
    over: bool = False
    #: of a text: whether it is kept beside its draft
    beside: bool = False
    #: of a text: what stands in its field as long as there is no draft
    start: str = ""
    #: of a sheet: what this session saved last of an item, and the lines that another window has changed
    mine: dict[str, str] = field(default_factory=dict)
    conflicts: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Allowed:
    """What an item of a sheet may hold. `values`: None = any line of text; `several`: lines, each one of them."""

    values: frozenset[str] | None
    several: bool = False
    start: str = ""

    def holds(self, value: str) -> bool:
        if self.values is None:
            return len(value) <= LINE
        return all(one in self.values for one in (value.split("\n") if self.several and value else [value]))


@dataclass
class Memory:
    """What one session of a browser knows: an object of our own in `st.session_state`, so that a callback can read and
    change it without giving way to a newer click."""

    #: Names this session to the browser: what was chosen before a restart of the server carries another name.
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    marks: dict[str, Mark] = field(default_factory=dict)
    #: widget key -> the text's item; widget key of a sheet -> what may be chosen in it. As they were last drawn.
    texts: dict[str, str] = field(default_factory=dict)
    sheets: dict[str, Mapping[str, Allowed]] = field(default_factory=dict)
    areas: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: (item, value) of choices that were kept since the page last asked, oldest first
    changed: list[tuple[str, str]] = field(default_factory=list)
    #: where -> what the last action there has to say on the page: (title, words)
    said: dict[str, tuple[str, str]] = field(default_factory=dict)
    #: the drafts of the review page that is on the screen
    here: Notebook | None = None
    #: where the page leads to next, counted so that each place is led to once; the view that has to be shown for it
    leads: int = 0
    lead: str = ""
    view: str = ""
    #: Review-Ids of what went through here, and when (monotonic seconds) each button last did
    finished: set[str] = field(default_factory=set)
    worked: dict[str, float] = field(default_factory=dict)

    def mark(self, key: str) -> Mark:
        return self.marks.setdefault(key, Mark())

    def go(self, place: str, view: str = "") -> None:
        """Lead to a place (the item of a row or of a text area) at the next drawing."""
        self.view = view
        self.leads = max(self.leads + 1, int(time.time() * 1000))
        self.lead = place

    def unsettled(self, book: Notebook, *starts: str) -> bool:
        """Whether a text whose item begins so is not kept as it stands in its field: too long, changed in another
        window, or not written. An action on it waits until that is settled."""
        found: set[str] = set()
        for name, mark in self.marks.items():
            if name.startswith(book.key("")):
                _, space, item = name.rpartition(" ")
                if space and (mark.conflict or mark.failed or mark.over):
                    found.add(item)
                found |= mark.conflicts
        return any(item.startswith(starts) for item in found)

    def say(self, book: Notebook, title: str, words: str) -> None:
        """Have something said on the pages of this person and task until the next action there."""
        self.said[book.key("")] = (title, words)

    def hush(self, book: Notebook) -> None:
        self.said.pop(book.key(""), None)


def memory() -> Memory:
    """This session's. For the drawing of a page."""
    found = st.session_state.get("autosave-memory")
    if not isinstance(found, Memory):
        found = st.session_state["autosave-memory"] = Memory()
    return found


def held() -> tuple[Memory, Mapping[str, Any]]:
    """(memory, all that widgets hold) at once and without giving way to a newer click. For callbacks."""
    state = st.session_state.to_dict()
    found = state.get("autosave-memory")
    return (found if isinstance(found, Memory) else Memory()), state


#: Why an action waits, where Memory.unsettled says so.
UNSETTLED = (
    "Something is not saved as it stands.",
    "A field says “Not saved” and why. Settle that, then press again; nothing that you wrote is lost.",
)


def _well_formed(text: str) -> str:
    """Half of a pair of surrogates, which no file and no database takes, becomes a replacement character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _saving(draft: Draft) -> int:
    """Which saving of an item this is, in microseconds. A count would begin anew once the item was dropped, and the
    first saving after that be taken for the first one before."""
    return int(draft.saved_at.timestamp() * 1_000_000)


def clock(at: datetime) -> str:
    """ "14:03", on this server's clock."""
    return f"{at.astimezone():%H:%M}"


def settle_all(book: Notebook) -> None:
    """Keep everything that the browser has sent and that is not kept yet: before a page reads its drafts, and before
    an action acts on them."""
    found, state = held()
    prefix = book.key("")
    for key, item in found.texts.items():
        if key.startswith(prefix):
            settle_text(book, item, key, found, getattr(state.get(key), "draft", None))
    for key in found.sheets:
        if key.startswith(prefix):
            settle_sheet(book, key, found, state)


# ---- the text area --------------------------------------------------------------------------------------------------


def settle(book: Notebook, item: str) -> None:
    """Save what the browser has sent for this text, if that has not been done. An action calls it (or settle_all)
    first, so that a click right after typing acts on all of the text."""
    found, state = held()
    key = book.key(item)
    settle_text(book, item, key, found, getattr(state.get(key), "draft", None))


def settle_text(book: Notebook, item: str, key: str, found: Memory, message: object) -> None:
    """Save a message of a text area, if that has not been done. `key`: of the widget that it came from."""
    if not isinstance(message, dict):
        return
    mark = found.mark(f"{key} {item}")
    if message.get("over"):
        mark.over = True
        return
    try:
        text, seq, base = _well_formed(str(message["text"])), int(message["seq"]), int(message["base"])
    except (KeyError, TypeError, ValueError):
        return
    if len(text) > LIMIT:
        mark.over = True
    if len(text) > LIMIT or (seq <= mark.seq and not mark.failed and not mark.over):
        return
    mark.over = False
    try:
        present = book.all().get(item)
        mark.failed = mark.conflict = False
        if (present.value if present else mark.start) == text:
            mark.seq = seq
        elif present is None or message.get("force") or _saving(present) in (base, mark.saving):
            # What an action has taken from here (a proposal, a submission) is in its place: nothing would be
            # overwritten, and what is typed while that happens is this window's own.
            mark.saving = _saving(book.save(item, text))
            mark.seq = seq
        else:
            if book.beside is not None and book.beside(item):
                book.save(f"{BESIDE}{item}", text)
                mark.beside = True
            mark.seq, mark.conflict = seq, True
        if mark.beside and not mark.conflict:
            book.drop(f"{BESIDE}{item}")
            mark.beside = False
    except WorkbenchError as error:
        # The field goes on saying "Not saved" and tries again.
        failure.record(error)
        mark.failed = True


def settle_sheet(book: Notebook, key: str, found: Memory, state: Mapping[str, Any]) -> None:
    """Save what a sheet has sent, choices and texts, if that has not been done."""
    drafts = getattr(state.get(key), "drafts", None)
    for item, draft in drafts.items() if isinstance(drafts, dict) else ():
        if item in found.areas.get(key, ()):
            settle_text(book, item, key, found, draft)
    message = getattr(state.get(key), "chosen", None)
    if not isinstance(message, dict):
        return
    allowed = found.sheets.get(key, {})
    mark = found.mark(key)
    try:
        seq, entries = int(message["seq"]), dict(message["entries"])
        if seq <= mark.seq:
            return
        for item, entry in entries.items():
            value, was = _well_formed(str(entry["value"])), str(entry["was"])
            if item not in allowed or not allowed[item].holds(value):
                continue
            present = book.all().get(item)
            now = present.value if present else allowed[item].start
            mark.conflicts.discard(item)
            if now == value:
                continue
            if allowed[item].values is None:
                # Words of another window are never overwritten unasked; what an action has taken is not there any more.
                if present is not None and now not in (was, mark.mine.get(item)):
                    mark.conflicts.add(item)
                    continue
            elif now != was and (entry.get("old") or message.get("session") != found.token):
                # Chosen before a restart, or before the page was loaded anew: what was chosen since elsewhere stands.
                continue
            book.save(item, value)
            mark.mine[item] = value
            found.changed = [*found.changed[-99:], (item, value)]
        mark.seq = seq
    except (KeyError, TypeError, ValueError, AttributeError):
        return
    except WorkbenchError as error:
        # The sheet goes on sending it.
        failure.record(error)


@dataclass(frozen=True)
class Area:
    """A text area: `quiet` = the label is for screen readers only; `start` = the text where there is no draft yet."""

    item: str
    label: str
    rows: int = 2
    placeholder: str = ""
    quiet: bool = False
    required: bool = False
    start: str = ""


def area_data(book: Notebook, one: Area, key: str) -> dict[str, Any]:
    present = book.all().get(one.item)
    mark = memory().mark(f"{key} {one.item}")
    return {
        "identity": f"{book.person}/{book.task}/{book.round}/{one.item}",
        "label": one.label,
        "text": present.value if present else one.start,
        "revision": _saving(present) if present else 0,
        "saved": clock(present.saved_at) if present else "",
        "seq": mark.seq,
        "conflict": mark.conflict,
        "rows": one.rows,
        "placeholder": one.placeholder,
        "quiet": one.quiet,
        "required": one.required,
        "limit": LIMIT,
        "keep": book.open_data,
    }


@st.cache_resource(show_spinner=False)
def _component() -> Callable[..., Any]:
    return st.components.v2.component(
        "workbench_autosave",
        html='<div class="wb-field"></div>',
        css=(FOLDER / "autosave.css").read_text("utf-8"),
        js=script("autosave.js"),
        isolate_styles=False,
    )


def script(name: str) -> str:
    """A component's script with what it stands on."""
    return "".join((FOLDER / part).read_text("utf-8") for part in ("unseen.js", "field.js", name))


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
    """Draw the field (see Area).

    What it holds is in `book.all()` afterwards. It is no fragment of its own on purpose: Streamlit sends the field's
    flush and the click that caused it as one batch, and a batch that names a fragment runs that one, not the click.
    """
    key = book.key(item)
    found = memory()
    found.texts[key] = item
    found.mark(f"{key} {item}").start = start
    settle_text(book, item, key, found, getattr(st.session_state.get(key), "draft", None))
    one = Area(item, label, rows, placeholder, quiet, required, start)
    _component()(
        key=key,
        data=area_data(book, one, key),
        default={"draft": None},
        on_draft_change=lambda: settle(book.again(), item),
    )


@st.cache_resource(show_spinner=False)
def _selection() -> Callable[..., Any]:
    return st.components.v2.component(
        "workbench_selection",
        html='<div class="wb-quote"></div>',
        css=(FOLDER / "autosave.css").read_text("utf-8"),
        js=(FOLDER / "selection.js").read_text("utf-8"),
        isolate_styles=False,
    )


def pointed(key: str, label: str, quote: Callable[[str], None], about: Callable[[str], None]) -> None:
    """A button that takes the words which are selected on the page, and what hears the rows of the page that have a
    button of their own (chart_sections.about). `quote` is called with what the page says of the selection (read by
    review_ui.reviewing.quoting), `about` with a row's reference."""

    def said(event: str, act: Callable[[str], None]) -> None:
        _, state = held()
        if value := getattr(state.get(key), event, None):
            act(_well_formed(str(value)))

    _selection()(
        key=key,
        data={"label": label},
        on_quoted_change=lambda: said("quoted", quote),
        on_pointed_change=lambda: said("pointed", about),
    )
