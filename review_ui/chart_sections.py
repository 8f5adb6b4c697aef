"""The chart as sections of a page: question, facts, timeline and medications, problems, labs, notes, every resource."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Literal

import streamlit as st

from graders.analytes import unit_words
from review_ui import charts, frame, prose, theme
from review_ui.chartview import ChartView
from review_ui.chartview.elements import plain_number
from review_ui.chartview.labs import Series, System
from review_ui.chartview.medications import Medication
from review_ui.chartview.notes import Note, search
from review_ui.chartview.problems import Problem
from review_ui.chartview.words import Line, fields, kinds_words
from review_ui.kept import kept
from review_ui.markup import Markup, highlighted, join, tag

SPANS: dict[str, int | None] = {"2 years": 24, "5 years": 60, "All": None}
UNITS: dict[str, System] = {"mg/dL": "conventional", "µmol/L, SI": "SI"}
#: Series with a plot of their own before the rest is folded.
PLOTS = 9
#: Characters of one text that are drawn before the reader asks for all of it.
LONG = 20_000
PAGE = 25
#: Problems in view before the rest is folded.
LISTED = 12


def about(ref: str, what: str) -> Markup:
    """A quiet button of a row: the finding that is being written is about this entry (review_ui.autosave.pointed)."""
    return tag("button", "About this", type="button", cls="about", data_about=ref, aria_label=f"Finding about {what}")


@kept(400)
def _plot(key: tuple[object, ...], _make: Callable[[], Markup]) -> Markup:
    """A plot, made once for its key."""
    return _make()


def facts_strip(view: ChartView) -> None:
    """Age, weight, kidney function, pressure, allergies at the clock."""
    cells = [
        tag(
            "div",
            tag("div", fact.name, cls="xs mute b"),
            tag("div", fact.value, cls="fact" if fact.known else "fact mute"),
            tag("div", fact.basis, cls="xs mute"),
        )
        for fact in view.facts
    ]
    frame.show(tag("div", join(cells), cls="soft facts-strip"))
    if not view.clock_stated:
        frame.show(
            tag(
                "p",
                f"This draft has no clock: the values stand at the end of the chart, {view.now:%-d %b %Y}.",
                cls="sm warn",
            )
        )


@frame.part
def times(view: ChartView, pointing: bool = False) -> None:
    """Timeline and medications on one axis. `pointing`: rows carry a button `about` their entry."""
    with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute"):
        frame.show(
            theme.section(
                "Timeline and medications", "dashed line = the task's clock; medications as the record lists them"
            )
        )
        chosen = st.segmented_control(
            "Shown time", list(SPANS), default="2 years", required=True, key="span", bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
    first = _first(view)
    span = charts.Span.before(view.now, first, SPANS[chosen or "2 years"])
    if view.timeline:
        frame.show(_plot((view.mark, "timeline", span), lambda: charts.timeline(view.timeline, span)))
    shown = [one for one in view.medications if any(i.end >= span.start for i in one.intervals)]
    if shown:
        legend = [
            ("blue-mark", "Active in the record"),
            ("orange-mark", "Reported by the patient"),
            ("page", "On hold or draft (dashed)"),
            ("gray-fill", "Stopped"),
        ]
        swatches = [
            tag("span", tag("i", cls="swatch", style=f"background:var(--{role})"), words, cls="sm")
            for role, words in legend
        ]
        frame.show(tag("div", join(swatches), cls="legend"))
        frame.show(_plot((view.mark, "medications", span), lambda: charts.medications(shown, span)))
    elif not view.medications:
        frame.show(tag("p", "The record lists no medication.", cls="empty"))
    earlier = sum(event.when.start < span.start for event in view.timeline)
    hidden = len(view.medications) - len(shown)
    if earlier or hidden:
        frame.show(
            tag(
                "p",
                f"Before this time: {earlier} events and {hidden} stopped drugs. Choose All to see them.",
                cls="sm mute",
            )
        )
    with st.expander("Medications as a list", key="medlist"):
        frame.show(medication_table(view.medications, pointing))


def _first(view: ChartView) -> datetime | None:
    starts = [event.when.start for event in view.timeline]
    starts += [interval.start.start for one in view.medications for interval in one.intervals]
    return min(starts, default=None)


def medication_table(every: list[Medication], pointing: bool = False) -> Markup:
    """The same as text: drug, dosage, from, to, status."""
    rows = []
    for medication in every:
        for one in reversed(medication.intervals):
            running = one.state in {"active", "reported", "on hold", "draft"}
            end = "still listed" if running else f"{one.end:%-d %b %Y}" if one.end_stated else "end not stated"
            rows.append(
                tag(
                    "tr",
                    tag("td", one.drug, cls="b" if running else None),
                    tag("td", one.dose or "not stated"),
                    tag("td", str(one.start), cls="nowrap"),
                    tag("td", end, cls="nowrap"),
                    tag("td", f"{one.status}" + (", reported" if one.kind == "MedicationStatement" else "")),
                    tag("td", about(one.ref, one.drug)) if pointing else None,
                )
            )
    heads = [tag("th", name, scope="col") for name in ("Drug", "Dosage as written", "From", "To", "Status")]
    heads += [tag("td", "")] if pointing else []
    return tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(rows)), cls="grid")


def problems_and_gaps(view: ChartView, pointing: bool = False) -> None:
    """The problem list beside what the chart does not hold."""
    left, right = st.columns(2, gap="large")
    active = [problem for problem in view.problems if problem.active]
    past = [problem for problem in view.problems if not problem.active]
    with left:
        frame.show(theme.section("Problems", f"{len(active)} active, as listed"))
        frame.show(
            _problem_rows(active[:LISTED], pointing)
            if active
            else tag("p", "No active problem is listed.", cls="empty")
        )
        if len(active) > LISTED or past:
            with st.expander(f"{len(active[LISTED:]) + len(past)} more, active and past", key="pastproblems"):
                frame.show(_problem_rows(active[LISTED:] + past, pointing))
    with right:
        frame.show(theme.section("Not in this chart", "computed from the coded entries; a note may still say it"))
        frame.show(
            tag(
                "ul",
                join(tag("li", gap.what, tag("span", f" {gap.looked_for}", cls="xs mute")) for gap in view.absent),
                cls="list gaps",
            )
        )


def _problem_rows(rows: list[Problem], pointing: bool) -> Markup:
    return tag(
        "div",
        join(
            tag(
                "div",
                tag(
                    "span",
                    problem.words,
                    tag("span", f" {problem.status}", cls="sm mute") if not problem.active else None,
                ),
                about(problem.ref, problem.words) if pointing else None,
                tag("span", str(problem.onset or "no date"), cls="sm mute nowrap"),
                cls="pair",
            )
            for problem in rows
        ),
        cls="rows",
    )


@frame.part
def labs(view: ChartView, ring: str = "", pointing: bool = False) -> None:
    """Labs as small multiples against their ranges, with a unit switch; everything else as a table."""
    with st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute"):
        frame.show(theme.section("Labs", "up to the clock; band = reference range; triangle = outside it"))
        chosen = st.segmented_control(
            "Units", list(UNITS), default="mg/dL", required=True, key="units", bind="query-params",
            label_visibility="collapsed",
        )  # fmt: skip
    every = view.labs(UNITS[chosen or "mg/dL"])
    if not every:
        frame.show(tag("p", "The chart has no laboratory result at the clock.", cls="empty"))
        return
    plotted = [one for one in every if one.plotted]
    ranked = sorted(range(len(plotted)), key=lambda n: (_rank(plotted[n], ring), n))
    first = [plotted[n] for n in sorted(ranked[:PLOTS])]
    rest = [one for one in every if one not in first]
    span = charts.Span.before(view.now, None, 24)
    made = []
    for one in first:
        newest = one.plotted[-1].when.start
        own = span if newest >= span.start else charts.Span.before(view.now, one.plotted[0].when.start, None)
        draw = partial(charts.lab, one, own, ring)
        drawn = _plot((view.mark, one.name, one.unit, one.points[0].ref, own, ring), draw)
        made.append(tag("div", lab_head(one, pointing), drawn))
    frame.show(tag("div", join(made), cls="lab-grid"))
    if rest:
        with st.expander(f"{len(rest)} other results, latest value of each", key="otherlabs"):
            frame.show(lab_table(rest, pointing))
    if view.vitals:
        with st.expander(f"Vital signs, latest of {len(view.vitals)}", key="vitals"):
            frame.show(lab_table(view.vitals, pointing))


def _rank(one: Series, ring: str) -> tuple[int, int]:
    if ring and any(point.ref == ring for point in one.points):
        return (0, 0)
    if one.analyte is not None:
        return (1, 0)
    return (2, -len(one.plotted))


def _mark(side: Literal["high", "low", "in", "unknown"]) -> str:
    return {"high": "▲ ", "low": "▼ "}.get(side, "")


def _number(one: Series) -> str:
    last = one.latest
    return f"{last.comparator}{plain_number(last.value)}" if last.value is not None else last.written


def lab_head(one: Series, pointing: bool = False) -> Markup:
    """Name left; latest value with its mark and unit right."""
    last = one.latest
    out = last.side in {"high", "low"}
    return tag(
        "div",
        tag("span", one.name, cls="b"),
        about(last.ref, f"the latest {one.name}") if pointing else None,
        tag(
            "span",
            tag("span", f"{_mark(last.side)}{_number(one)}", cls="b big" + (" warn" if out else "")),
            tag("span", f" {unit_words(one.unit)}", cls="xs mute"),
            tag("span", "" if last.low is not None or last.high is not None else " · no range", cls="xs mute"),
        ),
        cls="pair lab-head",
        title=f"latest {last.when.with_time()}: {last.written}"[:200],
    )


def lab_table(rows: list[Series], pointing: bool = False) -> Markup:
    """Latest value of each series as text."""
    made = []
    for one in rows:
        last = one.latest
        limits = [plain_number(limit) if limit is not None else "" for limit in (last.low, last.high)]
        spread = (
            f"{limits[0]}–{limits[1]}"
            if all(limits)
            else f"≥{limits[0]}"
            if limits[0]
            else f"≤{limits[1]}"
            if limits[1]
            else ""
        )
        value = f"{_mark(last.side)}{_number(one)} {unit_words(one.unit)}" if last.value is not None else last.written
        made.append(
            tag(
                "tr",
                tag("td", one.name),
                tag("td", value, cls="warn b" if last.side in {"high", "low"} else None),
                tag("td", spread or "no range", cls="mute"),
                tag("td", str(last.when), cls="nowrap"),
                tag("td", str(len(one.points)), cls="num"),
                tag("td", about(last.ref, f"the latest {one.name}")) if pointing else None,
            )
        )
    heads = [tag("th", name, scope="col") for name in ("Test", "Latest", "Range", "When", "Results")]
    heads += [tag("td", "")] if pointing else []
    return tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(made)), cls="grid")


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
            bind="query-params", live=True, label_visibility="collapsed",
        )  # fmt: skip
        found = search(every, words or "")
        if words:
            places = sum(len(hit.spans) + hit.in_title for hit in found)
            frame.show(tag("p", f"{len(found)} notes, {places} matches", cls="sm mute", role="status"))
        chosen = frame.asked("note") or (found[0].note.ref if found else "")
        pages = max(1, -(-len(found) // 8))
        at = min(int(st.session_state.get("notes-page", 1)), pages)
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
            st.number_input(f"Page of {pages}", 1, pages, key="notes-page")
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
    long_text(note.text or "This note holds no text.", words, key=f"note-{note.ref}")


def long_text(text: str, words: str, key: str) -> None:
    """A text with the words marked; a very long one in pieces, the first with a hit in view."""
    marks = prose.find(text, words)
    if len(text) <= LONG:
        frame.show(prose.verbatim(text, marks))
        return
    pieces = -(-len(text) // LONG)
    first_hit = marks[0][0] // LONG + 1 if marks else 1
    at = int(st.number_input(f"Part of {pieces} ({len(text):,} characters)", 1, pieces, first_hit, key=f"part-{key}"))
    start = (at - 1) * LONG
    frame.show(prose.verbatim(text[start : start + LONG], [(a - start, b - start) for a, b in marks]))


def record_card(view: ChartView, ref: str, quote: str) -> None:
    """One resource: its line, its fields in words, the quote marked, the JSON folded."""
    resource = view.records.get(ref)
    if resource is None:
        frame.show(frame.notice("This is not in the chart.", f"There is no {ref} in this task's chart."))
        return
    said = view.line(ref)
    assert said is not None
    chips = [theme.chip(said.kind, "blue"), theme.chip(said.ref)]
    if said.when:
        chips.append(theme.chip(said.when.with_time(), "plain", "schedule"))
        if said.when.start > view.now:
            chips.append(theme.chip("After the task's clock", "orange", "schedule"))
    frame.show(tag("div", theme.chips(*chips), tag("p", said.what, cls="h3"), tag("p", said.detail, cls="sm mute")))
    note = next((one for one in view.notes if one.ref == ref), None)
    if note is not None:
        long_text(note.text, quote, key=f"card-{ref}")
    rows = [
        tag(
            "tr",
            tag("th", field.name, scope="row", title=field.path),
            tag("td", highlighted(field.value[:LONG], prose.find(field.value[:LONG], quote))),
        )
        for field in fields(resource)
        if note is None or len(field.value) < 400
    ]
    frame.show(tag("table", tag("tbody", join(rows)), cls="grid fields"))
    with st.expander("JSON as it stands in the record", key="rawjson"):
        frame.show(theme.written(resource.raw[: 5 * LONG]))
        if len(resource.raw) > 5 * LONG:
            frame.show(tag("p", f"The first {5 * LONG:,} of {len(resource.raw):,} characters.", cls="sm mute"))


def _choose_record(ref: str) -> None:
    st.query_params["at"] = ref
    st.query_params.pop("quote", None)


def every_resource(view: ChartView) -> None:
    """Every resource by type, a page at a time."""
    types = view.types()
    names = sorted(types, key=lambda type: (-types[type], type))
    frame.show(theme.section("Every resource", f"{sum(types.values()):,} in the chart"))
    if not names:
        frame.show(tag("p", "The chart is empty.", cls="empty"))
        return
    left, middle, right = st.columns([1.2, 1.6, 0.6], vertical_alignment="bottom")
    type = left.selectbox(
        "Type", names, format_func=lambda name: f"{kinds_words(name)} · {name} · {types[name]:,}", key="type",
        bind="query-params",
    )  # fmt: skip
    words = middle.text_input(
        "Search in this type", key="having", bind="query-params", live=True, icon=":material/search:"
    )
    _, total = view.page(type, start=0, size=0, words=words or "")
    pages = max(1, -(-total // PAGE))
    at = int(right.number_input(f"Page of {pages}", 1, pages, key=f"page-{type}-{words}"))
    rows, _ = view.page(type, start=(at - 1) * PAGE, size=PAGE, words=words or "")
    frame.show(tag("p", f"{total:,} found, newest first", cls="sm mute", role="status"))
    for one in rows:
        resource_row(one)


def resource_row(one: Line) -> None:
    """One resource of the list."""
    key = one.ref.replace("/", "-")
    with st.container(horizontal=True, wrap=False, vertical_alignment="center", key=f"row-res-{key}"):
        frame.show(
            tag(
                "div",
                tag("span", one.what[:300], tag("span", f" {one.detail[:160]}", cls="sm mute")),
                tag("span", one.ref, cls="xs mute"),
                tag("span", str(one.when or "no date"), cls="sm mute nowrap"),
                cls="res-row",
            )
        )
        st.button("Open", key=f"res-{one.ref}", type="tertiary", on_click=_choose_record, args=(one.ref,))
