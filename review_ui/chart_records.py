"""What the chart says in its own words, as sections of a page: the notes, one entry, every entry."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from review_ui import frame, prose, theme
from review_ui.chart_sections import OTHER, about
from review_ui.chartview import ChartView
from review_ui.chartview.notes import Note, search
from review_ui.chartview.words import Line, fields, kinds_words
from review_ui.markup import highlighted, join, tag

#: Characters of one text that are drawn before the reader asks for all of it.
LONG = 20_000
#: Entries of a page of their list.
PAGE = 25


def _choose_note(ref: str) -> None:
    st.query_params["note"] = ref


@frame.part
def notes(view: ChartView, pointing: bool = False) -> None:
    """The notes: search and list left, the note right."""
    every = view.notes
    left, right = st.columns([1, 1.75], gap="large")
    with left:
        words = st.session_state.get("find") or ""
        found = search(every, words)
        frame.show(theme.section("Notes", f"{len(found)} of {len(every)}"))
        words = st.text_input(
            "Search the notes", placeholder="Search the notes", icon=":material/search:", key="find",
            bind="query-params", live="0s", label_visibility="collapsed",
        )  # fmt: skip
        found = search(every, words or "")
        if words:
            places = sum(len(hit.spans) + hit.in_title for hit in found)
            frame.show(tag("p", f"{len(found)} notes, {places} matches", cls="sm mute", role="status"))
        chosen = frame.asked("note") or (found[0].note.ref if found else "")
        pages = max(1, -(-len(found) // 8))
        # A search has a page of its own: the field begins at 1, and so does what is drawn.
        page_key = f"notes-page-{words}"
        at = min(int(st.session_state.get(page_key, 1)), pages)
        for hit in found[(at - 1) * 8 : at * 8]:
            note = hit.note
            with st.container(
                horizontal=True, wrap=False, vertical_alignment="center",
                key=f"row-note{'-on' if note.ref == chosen else ''}-{note.ref.replace('/', '-')}",
            ):  # fmt: skip
                frame.show(
                    tag(
                        "div",
                        tag(
                            "div",
                            tag("span", note.title, cls="b"),
                            tag("span", str(note.when or "no date"), cls="sm mute nowrap"),
                            cls="pair",
                        ),
                        tag("div", highlighted(hit.snippet, hit.snippet_spans), cls="sm mute"),
                    )
                )
                st.button("Read", key=f"read-{note.ref}", type="tertiary", on_click=_choose_note, args=(note.ref,))
        if pages > 1:
            st.number_input(f"Page of {pages}", 1, pages, key=page_key)
        if not found:
            frame.show(tag("p", "No note holds these words.", cls="empty"))
    with right:
        reading = next((one for one in every if one.ref == chosen), None)
        if reading is not None:
            read_note(view, reading, words or "")
            if pointing:
                frame.show(tag("p", about(reading.ref, reading.title)))


def read_note(view: ChartView, note: Note, words: str) -> None:
    """One note, with the words marked."""
    dated = f"{note.when.with_time()}" if note.when else "no date"
    after = bool(note.when and note.when.start > view.now)
    frame.show(theme.section(note.title, f"{dated}{' · ' + note.author if note.author else ''}"))
    state = []
    if note.superseded:
        state.append(theme.chip("No longer stands, by its status", "orange", "history"))
    if after:
        state.append(theme.chip("After the task's clock", "orange", "schedule"))
    state += [theme.chip(f"Refers to an earlier note: {target}", "plain", "link") for target in note.replaces]
    if state:
        frame.show(theme.chips(*state))
    long_text(note.text or "This note holds no text.", words, key=f"note-{note.ref}", source=note.ref)


def long_text(text: str, words: str, key: str, source: str = "") -> None:
    """A text with the words marked; a very long one in pieces, the first with a hit in view. `source`: the reference
    that words selected in it are of, "" for a text that no finding quotes."""
    marks = prose.find(text, words)
    if len(text) <= LONG:
        frame.show(tag("div", prose.verbatim(text, marks), data_source=source or None))
        return
    pieces = -(-len(text) // LONG)
    first_hit = marks[0][0] // LONG + 1 if marks else 1
    said = f"Part of {pieces} ({len(text):,} characters)"
    # Other words are another field: it begins at their first hit, wherever the last one stood.
    at = int(st.number_input(said, 1, pieces, first_hit, key=f"part-{key}-{words}"))
    start = (at - 1) * LONG
    shown = prose.verbatim(text[start : start + LONG], [(a - start, b - start) for a, b in marks])
    frame.show(tag("div", shown, data_source=source or None))


def record_card(view: ChartView, ref: str, quote: str, *, pointing: bool = False, raw: bool = True) -> None:
    """One resource: its line, its fields in words, the quote marked; `raw`: its reference, and the JSON folded."""
    resource = view.records.get(ref)
    if resource is None:
        frame.show(frame.notice("This is not in the chart.", f"There is no {ref} in this task's chart."))
        return
    said = view.line(ref)
    assert said is not None
    chips = [theme.chip(said.kind, "blue"), *([theme.chip(said.ref)] if raw else [])]
    if said.other:
        chips.append(OTHER)
    if said.when:
        chips.append(theme.chip(said.when.with_time(), "plain", "schedule"))
        if said.when.start > view.now:
            chips.append(theme.chip("After the task's clock", "orange", "schedule"))
    frame.show(tag("div", theme.chips(*chips), tag("p", said.what, cls="h3"), tag("p", said.detail, cls="sm mute")))
    note = next((one for one in view.notes if one.ref == ref), None)
    if note is not None:
        long_text(note.text, quote, key=f"card-{ref}", source=ref)
    rows = [
        tag(
            "tr",
            tag("th", field.name, scope="row", title=field.path),
            tag("td", highlighted(field.value[:LONG], prose.find(field.value[:LONG], quote))),
        )
        for field in fields(resource)
        if note is None or len(field.value) < 400
    ]
    frame.show(tag("table", tag("tbody", join(rows)), cls="grid fields", data_source=ref))
    if pointing:
        frame.show(tag("p", about(ref, said.what)))
    if not raw:
        return
    with st.expander("JSON as it stands in the record", key="rawjson"):
        frame.show(theme.written(resource.raw[: 5 * LONG]))
        if len(resource.raw) > 5 * LONG:
            frame.show(tag("p", f"The first {5 * LONG:,} of {len(resource.raw):,} characters.", cls="sm mute"))


def _choose_record(ref: str) -> None:
    st.query_params["at"] = ref
    st.query_params.pop("quote", None)


def every_resource(view: ChartView, *, raw: bool = True, beneath: Callable[[str], None] | None = None) -> None:
    """Every resource by type, a page at a time. `raw`: with the names that the record has for it. `beneath`: draws what
    stands under the row of the one that the address asks for."""
    types = view.types()
    names = sorted(types, key=lambda type: (-types[type], type))
    title = "Every resource" if raw else "Every entry"
    frame.show(theme.section(title, f"{sum(types.values()):,} in the chart"))
    if not names:
        frame.show(tag("p", "The chart is empty.", cls="empty"))
        return
    left, middle, right = st.columns([1.2, 1.6, 0.6], vertical_alignment="bottom")
    type = left.selectbox(
        "Type" if raw else "Kind", names, key="type", bind="query-params",
        format_func=lambda name: " · ".join([kinds_words(name), *([name] if raw else []), f"{types[name]:,}"]),
    )  # fmt: skip
    words = middle.text_input(
        "Search in this type" if raw else "Search in this kind",
        key="having",
        bind="query-params",
        live="0s",
        icon=":material/search:",
    )
    _, total = view.page(type, start=0, size=0, words=words or "")
    pages = max(1, -(-total // PAGE))
    at = int(right.number_input(f"Page of {pages}", 1, pages, key=f"page-{type}-{words}"))
    rows, _ = view.page(type, start=(at - 1) * PAGE, size=PAGE, words=words or "")
    frame.show(tag("p", f"{total:,} found, newest first", cls="sm mute", role="status"))
    for one in rows:
        resource_row(one, raw=raw)
        if beneath is not None and one.ref == frame.asked("at"):
            beneath(one.ref)


def resource_row(one: Line, *, raw: bool = True) -> None:
    """One resource of the list."""
    key = one.ref.replace("/", "-")
    with st.container(horizontal=True, wrap=False, vertical_alignment="center", key=f"row-res-{key}"):
        frame.show(
            tag(
                "div",
                tag(
                    "span",
                    join([OTHER, " "]) if one.other else None,
                    one.what[:300],
                    tag("span", f" {one.detail[:160]}", cls="sm mute"),
                ),
                tag("span", one.ref if raw else "", cls="xs mute"),
                tag("span", str(one.when or "no date"), cls="sm mute nowrap"),
                cls="res-row",
            )
        )
        st.button("Open", key=f"res-{one.ref}", type="tertiary", on_click=_choose_record, args=(one.ref,))
