"""The sheet: rows in which one chooses, drawn as one component, with one text area under them where that is wanted.

A choice stands on the screen before the server has heard of it, and is sent until the server has confirmed it; the
page being drawn anew never takes it back (choices.js).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st

from review_ui.autosave import (
    FOLDER,
    LINE,
    Allowed,
    Area,
    Notebook,
    area_data,
    memory,
    script,
    settle_all,
    settle_sheet,
)
from review_ui.markup import Markup, visible

Kind = Literal["radio", "pick", "many", "line", "words", "area", "html"]
When = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class Option:
    """One thing to choose. `tone`: what color it takes once chosen, where that is not blue."""

    value: str
    words: str
    icon: str = ""
    tone: Literal["", "red", "orange"] = ""


@dataclass(frozen=True)
class Piece:
    """A piece of a row's label. `count`: items of the sheet; the piece reads "2 of 5 " and its text, as they stand."""

    text: str
    cls: str = ""
    count: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fold:
    """A button before the label that opens and shuts: the item holds "open" or something else."""

    item: str
    words: str
    name: str
    tip: str = ""
    start: Literal["open", "shut"] = "shut"


@dataclass(frozen=True)
class Row:
    """One row. `name`: what a screen reader calls the control. `clear`: a second click takes the choice back.
    `when`: (item, values), shown while the item holds one of these. `stacked`: the label above the control; `half`:
    two rows share a line. `start`: what it holds as long as nothing was chosen. `card`: rows of one name stand in one
    box. `about`: what `pointed` hands over where a finding is about this row. `area`: a text area instead of choices;
    `html`: something to read instead."""

    item: str
    name: str
    options: tuple[Option, ...] = ()
    kind: Kind = "radio"
    label: tuple[Piece, ...] = ()
    chip: tuple[str, str, str] | None = None
    fold: Fold | None = None
    when: When | None = None
    tip: str = ""
    start: str = ""
    placeholder: str = "Choose"
    clear: bool = False
    stacked: bool = False
    half: bool = False
    card: str = ""
    about: str = ""
    area: Area | None = None
    html: Markup | None = None

    @property
    def chooses(self) -> bool:
        return self.kind not in ("words", "area", "html")

    @property
    def allowed(self) -> Allowed:
        values = {one.value for one in self.options} | {""}
        return Allowed(None if self.kind == "line" else frozenset(values), self.kind == "many", self.start)

    def data(self, book: Notebook, key: str) -> dict[str, Any]:
        if self.area is not None:
            made = area_data(book, self.area, key)
            return {"item": self.item, "kind": "area", "area": made, "when": self.when, "card": self.card}
        if self.html is not None:
            if not isinstance(self.html, Markup):
                raise TypeError("only Markup is drawn as HTML")
            return {"item": self.item, "kind": "html", "html": self.html, "when": self.when, "card": self.card}
        return {
            "item": self.item,
            "name": visible(self.name),
            "kind": self.kind,
            "options": [
                {"value": one.value, "words": visible(one.words), "icon": one.icon, "tone": one.tone}
                for one in self.options
            ],
            "label": [{"text": visible(one.text), "cls": one.cls, "count": list(one.count)} for one in self.label],
            "chip": list(self.chip) if self.chip else None,
            "lead": None
            if self.fold is None
            else {
                "item": self.fold.item,
                "words": visible(self.fold.words),
                "name": visible(self.fold.name),
                "tip": self.fold.tip,
            },
            "when": self.when,
            "tip": visible(self.tip),
            "placeholder": self.placeholder,
            "clear": self.clear,
            "stacked": self.stacked,
            "half": self.half,
            "card": self.card,
            "about": self.about,
        }


def text(area: Area, *, when: When | None = None, card: str = "") -> Row:
    """A row that is a text area."""
    return Row(area.item, area.label, kind="area", area=area, when=when, card=card)


def reading(item: str, html: Markup, *, when: When | None = None, card: str = "") -> Row:
    """A row that is something to read. `item` names it within its sheet; no draft has that name."""
    return Row(item, "", kind="html", html=html, when=when, card=card)


@st.cache_resource(show_spinner=False)
def _component() -> Callable[..., Any]:
    css = (FOLDER / "autosave.css").read_text("utf-8") + (FOLDER / "choices.css").read_text("utf-8")
    return st.components.v2.component(
        "workbench_choices",
        html='<div class="wb-host"></div>',
        css=css,
        js=script("choices.js"),
        isolate_styles=False,
    )


def sheet(book: Notebook, name: str, rows: Sequence[Row]) -> None:
    """Draw the rows. What they hold is in `book.values()` afterwards.

    `name`: what this sheet is about; two sheets of a page never share one, nor an item.
    """
    key = book.key(f"sheet.{name}")
    found = memory()
    allowed = {row.item: row.allowed for row in rows if row.chooses}
    allowed |= {row.fold.item: Allowed(frozenset({"open", "shut"}), start=row.fold.start) for row in rows if row.fold}
    found.sheets[key] = allowed
    found.areas[key] = tuple(row.item for row in rows if row.area)
    for row in rows:
        if row.area is not None:
            found.mark(f"{key} {row.item}").start = row.area.start
    settle_sheet(book, key, found, {key: st.session_state.get(key)})
    drafts = book.values()
    # The data is one string: Streamlit looks through anything else for tables, value by value.
    data = json.dumps(
        {
            "identity": f"{book.person}/{book.task}/{book.round}/sheet.{name}",
            "session": found.token,
            "seq": found.mark(key).seq,
            "keep": book.open_data,
            "rows": [row.data(book, key) for row in rows],
            "values": {item: drafts.get(item, one.start) for item, one in allowed.items()},
            "conflicts": [item for item in allowed if item in found.mark(key).conflicts],
            "limit": LINE,
            "lead": {"number": found.leads, "item": found.lead}
            if any(row.item == found.lead for row in rows)
            else None,
        }
    )
    _component()(
        key=key,
        data=data,
        default={"chosen": None, "drafts": None},
        on_chosen_change=lambda: settle_all(book.again()),
        on_drafts_change=lambda: settle_all(book.again()),
    )
