"""A page with one sheet that holds a row of every kind, over the drafts of the workspace.

`?slow=1`: each run of the page takes a second before it comes to the sheet.
"""

from __future__ import annotations

import time

import streamlit as st

from review_ui import theme
from review_ui.autosave import Area, Notebook, held, settle_all
from review_ui.autosave.choices import Fold, Option, Piece, Row, reading, sheet, text
from review_ui.markup import Markup, tag
from tasks.statedb import StateDb
from tasks.workspace import Workspace


def options(*values: str) -> tuple[Option, ...]:
    return tuple(Option(value, value.capitalize()) for value in values)


def press() -> None:
    """What a button does: it counts in the drafts, after all that was sent is kept."""
    again = book.again()
    settle_all(again)
    values = again.values()
    seen = [values.get("words", ""), *(values[item] for item in sorted(values) if item.startswith("kept."))]
    again.save("pressed", f"{values.get('pressed', '')}[{' '.join(seen)}]")


st.html(f"{theme.style()}<h1>A sheet</h1>")
book = Notebook(StateDb(Workspace.find().state_db), "p", "t", 1)
settle_all(book)
for _ in range(20 if "slow" in st.query_params else 0):
    held()
    st.session_state.get("where a newer click ends this run")
    time.sleep(0.05)
rows = [
    Row(f"kept.{n}", f"Kept {n}", options("one", "two", "three"), label=(Piece(f"Row <b>{n}</b> \u202e"),))
    for n in range(20)
]
counted = Piece("answered", "sm mute", ("free", "pick"))
sheet(
    book,
    "all",
    [
        *rows,
        Row("free", "Free", options("yes", "no"), label=(Piece("Free"), counted), clear=True,
            fold=Fold("fold", "Head", "Fold it")),
        reading("folded", Markup(tag("p", "What is <i>folded</i>")), when=("fold", ("open",))),
        Row("pick", "Pick", options("red", "blue"), "pick", (Piece("Pick"),), stacked=True),
        Row("many", "Many", options("a", "b", "c"), "many", (Piece("Many"),), stacked=True),
        Row("line", "Line", kind="line", label=(Piece("Line"),), stacked=True, start="as it was"),
        text(Area("words", "Words", 2)),
    ],
)  # fmt: skip
st.button("Press", on_click=press)
