"""Fields of the review pages that are no text: a choice is kept the moment it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st

from review_ui.autosave import Notebook


def _kept(book: Notebook, item: str, key: str) -> Callable[[], None]:
    def keep() -> None:
        book.save(item, st.session_state.get(key) or "")

    return keep


def _prime(book: Notebook, item: str, drafts: Mapping[str, str], options: Mapping[str, str]) -> str:
    key = book.key(item)
    if key not in st.session_state:
        value = drafts.get(item, "")
        st.session_state[key] = value if value in options else None
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
        label, list(options), format_func=words, key=key, on_change=_kept(book, item, key),
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
        placeholder=placeholder, on_change=_kept(book, item, key),
    )  # fmt: skip
    return st.session_state.get(key) or ""


def forget(book: Notebook, *items: str) -> None:
    """Drop drafts, and what the fields on the page hold of them."""
    book.drop(*items)
    for item in items:
        st.session_state.pop(book.key(item), None)


def line(book: Notebook, item: str, label: str, drafts: Mapping[str, str], *, start: str = "") -> str:
    """One line of text, kept when the field is left; for values of a few words."""
    key = book.key(item)
    if key not in st.session_state:
        st.session_state[key] = drafts.get(item, start)
    st.text_input(label, key=key, on_change=_kept(book, item, key))
    return str(st.session_state.get(key) or "")


def chosen(
    book: Notebook, item: str, label: str, options: tuple[str, ...], drafts: Mapping[str, str], *, start: str
) -> str:
    """A select box that starts at the present value."""
    key = book.key(item)
    if key not in st.session_state:
        value = drafts.get(item, start)
        st.session_state[key] = value if value in options else start
    st.selectbox(label, options, key=key, format_func=lambda one: one or "none", on_change=_kept(book, item, key))
    return str(st.session_state.get(key) or "")
