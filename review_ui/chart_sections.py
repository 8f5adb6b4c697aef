"""The chart as sections of a page: facts, timeline, medications, problems, background, labs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Literal

import streamlit as st

from graders.analytes import unit_words
from review_ui import charts, frame, theme
from review_ui.chartview import ChartView
from review_ui.chartview.histories import Section
from review_ui.chartview.labs import Point, Series, System
from review_ui.chartview.medications import Medication
from review_ui.chartview.problems import Problem
from review_ui.chartview.timeline import Event
from review_ui.kept import kept
from review_ui.markup import Markup, join, tag

SPANS: dict[str, int | None] = {"2 years": 24, "5 years": 60, "All": None}
UNITS: dict[str, System] = {"mg/dL": "conventional", "µmol/L, SI": "SI"}
#: Series with a plot of their own before the rest is folded.
PLOTS = 9
#: Problems in view before the rest is folded.
LISTED = 12
#: Events of a page of their list.
EVENTS = 50
#: Entries of a background section that are drawn.
LONGEST = 100

#: What marks an entry that is in the record, but about another patient.
OTHER = theme.chip("Another patient", "orange", "group")


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
            ("page", "Anything else, said on the bar (dashed)"),
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
    if view.timeline:
        with st.expander("Events as a list", key="eventlist"):
            newest = [one for one in reversed(view.timeline) if (one.end or one.when.start) >= span.start]
            pages = max(1, -(-len(newest) // EVENTS))
            at = 1
            if pages > 1:
                at = int(st.number_input(f"Page of {pages}, newest first", 1, pages, key=f"events-page-{chosen}"))
            frame.show(event_table(newest[(at - 1) * EVENTS : at * EVENTS], pointing))


def _first(view: ChartView) -> datetime | None:
    starts = [event.when.start for event in view.timeline]
    starts += [interval.start.start for one in view.medications for interval in one.intervals]
    return min(starts, default=None)


def medication_table(every: list[Medication], pointing: bool = False) -> Markup:
    """The same as text: drug, dosage, from, to, status."""
    rows = []
    for medication in every:
        for one in reversed(medication.intervals):
            rows.append(
                tag(
                    "tr",
                    tag("td", one.drug, cls="b" if one.state in {"active", "reported"} else None),
                    tag("td", one.dose or "not stated"),
                    tag("td", str(one.start), cls="nowrap"),
                    tag("td", one.until, cls="nowrap"),
                    tag("td", f"{one.status}" + (", reported" if one.kind == "MedicationStatement" else "")),
                    tag("td", about(one.ref, one.drug)) if pointing else None,
                )
            )
    heads = [tag("th", name, scope="col") for name in ("Drug", "Dosage as written", "From", "To", "Status")]
    heads += [tag("td", "")] if pointing else []
    return tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(rows)), cls="grid")


def _lasting(one: Event) -> str:
    """When an event was, and until when where it went on after its first day."""
    longer = one.end is not None and one.end.date() > one.when.start.date()
    return one.when.with_time() + (f" to {one.end:%-d %b %Y}" if longer else "")


def event_table(every: list[Event], pointing: bool = False) -> Markup:
    """The timeline's events as text, in the order given."""
    if not every:
        return tag("p", "No event in this time.", cls="empty")
    rows = [
        tag(
            "tr",
            tag("td", _lasting(one), cls="nowrap"),
            tag("td", one.lane),
            tag("td", one.words),
            tag("td", about(one.ref, one.words)) if pointing else None,
        )
        for one in every
    ]
    heads = [tag("th", name, scope="col") for name in ("When", "Kind", "What")]
    heads += [tag("td", "")] if pointing else []
    return tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(rows)), cls="grid")


def background(sections: list[Section], pointing: bool = False) -> None:
    """Allergies, social and family history, immunizations and open orders, each folded, where the chart has them."""
    if sections:
        frame.show(theme.section("Background", "at the clock"))
    for one in sections:
        with st.expander(f"{one.title}, {len(one.entries)}", key=f"background-{one.title.split()[0].lower()}"):
            frame.show(_background_rows(one, pointing))


def _background_rows(section: Section, pointing: bool) -> Markup:
    rows = [
        tag(
            "tr",
            tag("td", one.what, cls="b"),
            tag("td", one.detail),
            tag("td", str(one.when or "no date"), cls="nowrap"),
            tag("td", about(one.ref, one.what)) if pointing else None,
        )
        for one in section.entries[:LONGEST]
    ]
    more = len(section.entries) - len(rows)
    table = tag("table", tag("tbody", join(rows)), cls="grid")
    return join([table, tag("p", f"And {more} older ones.", cls="sm mute") if more else None])


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
        background(view.background, pointing)
        frame.show(theme.section("Not in this chart", "computed from the coded entries; a note may still say it"))
        frame.show(
            tag(
                "ul",
                join(tag("li", gap.what, tag("span", f" {gap.found}", cls="xs mute")) for gap in view.absent),
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
                    tag("span", f" {problem.doubt}", cls="sm warn") if problem.doubt else None,
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
            tag("span", f"{_mark(last.side)}{last.shown or last.written}", cls="b big" + (" warn" if out else "")),
            tag("span", f" {unit_words(one.unit)}", cls="xs mute") if last.shown else None,
            tag("span", "" if last.low is not None or last.high is not None else " · no range", cls="xs mute"),
            tag("span", f" · {last.remark}", cls="xs warn") if last.remark else None,
        ),
        cls="pair lab-head",
        title=f"latest {last.when.with_time()}: {last.written}"[:200],
    )


def _spread(point: Point) -> str:
    """The reference range of a result: "3.5–5.1", "≤1.3"; "" where there is none."""
    low, high = ("" if limit is None else point.limit(limit) for limit in (point.low, point.high))
    if low and high:
        return f"{low}–{high}"
    return f"≥{low}" if low else f"≤{high}" if high else ""


def lab_table(rows: list[Series], pointing: bool = False) -> Markup:
    """Latest value of each series as text."""
    made = []
    for one in rows:
        last = one.latest
        value = f"{_mark(last.side)}{last.shown} {unit_words(one.unit)}" if last.shown else last.written
        made.append(
            tag(
                "tr",
                tag("td", one.name),
                tag(
                    "td",
                    tag("span", value, cls="warn b" if last.side in {"high", "low"} else None),
                    tag("span", f" {last.remark}", cls="xs warn") if last.remark else None,
                ),
                tag("td", _spread(last) or "no range", cls="mute"),
                tag("td", str(last.when), cls="nowrap"),
                tag("td", str(len(one.points)), cls="num"),
                tag("td", about(last.ref, f"the latest {one.name}")) if pointing else None,
            )
        )
    heads = [tag("th", name, scope="col") for name in ("Test", "Latest", "Range", "When", "Results")]
    heads += [tag("td", "")] if pointing else []
    return tag("table", tag("thead", tag("tr", join(heads))), tag("tbody", join(made)), cls="grid")
