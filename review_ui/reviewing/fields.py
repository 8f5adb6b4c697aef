"""Fields of the review pages that are no text: a choice is kept the moment it is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import streamlit as st

from review_ui.autosave import Notebook


def _known() -> dict[str, tuple[str, str]]:
    """{widget key: (item, the value that is kept of it)} of this session."""
    found: dict[str, tuple[str, str]] = st.session_state.setdefault("choices", {})
    return found


def settle(book: Notebook) -> None:
    """Keep every choice on the page that is not kept yet. Called before a page reads its drafts.

    The callbacks of widgets do not suffice: of clicks that Streamlit joins into one run it calls some and skips others
    (measured, 1.67), while the page goes on showing the choice.
    """
    for key, (item, kept) in list(_known().items()):
        if key == book.key(item) and key in st.session_state:
            value = str(st.session_state[key] or "")
            if value != kept:
                book.save(item, value)
                _known()[key] = (item, value)


def _kept(book: Notebook) -> Callable[[], None]:
    return lambda: settle(book)


def _prime(book: Notebook, item: str, drafts: Mapping[str, str], options: Iterable[str] | None, start: str = "") -> str:
    """The widget's key, with its value taken from the draft where it is new or another window chose something else."""
    key = book.key(item)
    draft = drafts.get(item, start)
    value = draft if options is None or draft in options else start
    before = _known().get(key)
    if key not in st.session_state or (before is not None and value != before[1]):
        st.session_state[key] = value if value or options is None or "" in options else None
        _known()[key] = (item, value)
    elif before is None:
        _known()[key] = (item, value)
    return key


def choice(
    book: Notebook,
    item: str,
    label: str,
    options: Mapping[str, str],
    drafts: Mapping[str, str],
    *,
    quiet: bool = True,
    icons: Mapping[str, str] | None = None,
) -> str:
    """A segmented control without a default; the chosen value, or ""."""
    key = _prime(book, item, drafts, options)

    def words(value: str) -> str:
        symbol = (icons or {}).get(value)
        return f":material/{symbol}: {options[value]}" if symbol else options[value]

    st.segmented_control(
        label, list(options), format_func=words, key=key, on_change=_kept(book),
        label_visibility="collapsed" if quiet else "visible",
    )  # fmt: skip
    return st.session_state.get(key) or ""


def pick(
    book: Notebook,
    item: str,
    label: str,
    options: Mapping[str, str],
    drafts: Mapping[str, str],
    *,
    placeholder: str = "Choose",
) -> str:
    """A select box without a default; the chosen value, or ""."""
    key = _prime(book, item, drafts, options)
    st.selectbox(
        label, list(options), format_func=lambda value: options[value], key=key, index=None,
        placeholder=placeholder, on_change=_kept(book),
    )  # fmt: skip
    return st.session_state.get(key) or ""


def forget(book: Notebook, *items: str) -> None:
    """Drop drafts, and what the fields on the page hold of them."""
    book.drop(*items)
    for item in items:
        st.session_state.pop(book.key(item), None)
        _known().pop(book.key(item), None)


def line(book: Notebook, item: str, label: str, drafts: Mapping[str, str], *, start: str = "") -> str:
    """One line of text, kept when the field is left; for values of a few words."""
    key = _prime(book, item, drafts, None, start)
    st.text_input(label, key=key, on_change=_kept(book))
    return str(st.session_state.get(key) or "")


def chosen(
    book: Notebook, item: str, label: str, options: tuple[str, ...], drafts: Mapping[str, str], *, start: str
) -> str:
    """A select box that starts at the present value."""
    key = _prime(book, item, drafts, options, start)
    st.selectbox(label, options, key=key, format_func=lambda one: one or "none", on_change=_kept(book))
    return str(st.session_state.get(key) or "")
