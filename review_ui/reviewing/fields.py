"""Fields of the review pages that are no text: what is chosen is kept at once (review_ui.autosave.choices)."""

from __future__ import annotations

from collections.abc import Mapping

from review_ui.autosave import Notebook, memory, settle_all
from review_ui.autosave.choices import Kind, Option, Piece, Row, sheet

#: Values whose choice is not blue.
TONES: dict[str, str] = {"unsafe": "red"}


def settle(book: Notebook) -> None:
    """Keep everything that the browser has sent and that is not kept yet, and count the person as at work. Called
    before a page reads its drafts."""
    settle_all(book)
    book.alive()
    # What is drawn again by itself below (a search in the chart) is a sign of life too.
    memory().here = book


def options(words: Mapping[str, str], icons: Mapping[str, str] | None = None) -> tuple[Option, ...]:
    """{value: words} as a sheet takes them."""
    return tuple(
        Option(value, said, (icons or {}).get(value, ""), "red" if TONES.get(value) == "red" else "")
        for value, said in words.items()
    )


def stacked(item: str, label: str, words: Mapping[str, str], kind: Kind = "radio", **more: object) -> Row:
    """A row with its label above it, as a form has them."""
    return Row(item, label, options(words), kind, (Piece(label),), stacked=True, **more)  # type: ignore[arg-type]


def _value(book: Notebook, item: str, drafts: Mapping[str, str]) -> str:
    return book.values().get(item, drafts.get(item, ""))


def choice(
    book: Notebook,
    item: str,
    label: str,
    words: Mapping[str, str],
    drafts: Mapping[str, str],
    *,
    quiet: bool = True,
    icons: Mapping[str, str] | None = None,
) -> str:
    """A segmented control without a default; the chosen value, or ""."""
    shown = () if quiet else (Piece(label),)
    sheet(book, item, [Row(item, label, options(words, icons), "radio", shown, stacked=True)])
    return _value(book, item, drafts)


def pick(
    book: Notebook,
    item: str,
    label: str,
    words: Mapping[str, str],
    drafts: Mapping[str, str],
    *,
    placeholder: str = "Choose",
) -> str:
    """A select box without a default; the chosen value, or ""."""
    sheet(book, item, [stacked(item, label, words, "pick", placeholder=placeholder)])
    return _value(book, item, drafts)


def several(book: Notebook, item: str, label: str, words: Mapping[str, str], drafts: Mapping[str, str]) -> list[str]:
    """Check boxes; the values that are ticked, in the order of `words`."""
    sheet(book, item, [stacked(item, label, words, "many")])
    return [one for one in _value(book, item, drafts).split("\n") if one in words]
