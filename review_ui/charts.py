"""The plots of the pages, as HTML of our own: no page in here, only values in and markup out.

Nothing is drawn by a script in the browser: boxes and marks stand at percentages of their track, so that a plot
stretches with the page, follows its theme, and is there as soon as the page is. Each mark says what it is when pointed
at; each track says in words how much it holds, and the page has all of it as a list. Times are wall-clock times of the
task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from graders.analytes import unit_words
from review_ui.chartview.elements import plain_number
from review_ui.chartview.labs import Point, Series
from review_ui.chartview.medications import Interval, Medication
from review_ui.chartview.timeline import LANES, Event
from review_ui.markup import Markup, join, polyline, tag, visible

#: Marks of one lane that would lie closer than this, in percent of the track, are drawn as one.
_CLOSE = 0.25
_DAY = timedelta(days=1)
#: Pixels to expect for a track, to tell whether a dose fits into its bar.
_WIDTH = 900
_STEPS = (1, 2, 3, 6, 12, 24, 60, 120)
_SHAPES = {
    "Visits": "disc",
    "Emergency, inpatient": "triangle warn",
    "Procedures": "cross",
    "ECG, imaging": "diamond",
    "Notes": "square",
}
#: Drawn by their fill alone; any other state is dashed and says in words what it is.
_STATES = {"active": "active", "reported": "reported", "stopped": "stopped"}


@dataclass(frozen=True)
class Span:
    """The stretch of time that is shown, and the task's clock."""

    start: datetime
    end: datetime
    clock: datetime

    @classmethod
    def before(cls, clock: datetime, first: datetime | None, months: int | None) -> Span:
        """The `months` before the clock; everything since `first` where months is None."""
        start = first if months is None and first is not None else clock - timedelta(days=30.44 * (months or 24))
        start = min(start, clock - timedelta(days=30))
        margin = (clock - start) / 60
        return cls(start - margin, clock + margin, clock)


def _wall(at: datetime) -> datetime:
    """Wall-clock time, whatever the zone."""
    return at.replace(tzinfo=UTC)


def _x(at: datetime, span: Span) -> float:
    """Where a time lies on the track, in percent, inside it."""
    start, end = _wall(span.start), _wall(span.end)
    return min(100.0, max(0.0, 100 * ((_wall(at) - start) / (end - start))))


def ticks(span: Span, most: int = 8) -> list[tuple[float, str]]:
    """(percent, words) of the first days of months, or of days in a short span, at most `most` of them."""
    start, end = _wall(span.start), _wall(span.end)
    if (end - start).days <= 120:
        step = timedelta(days=max(1, -(-(end - start).days // most)))
        first = (start + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        times = [first + n * step for n in range(most + 1) if first + n * step < end]
        return [(_x(at, span), f"{at.day} {at:%b}") for at in times[:most]]
    months = (end.year - start.year) * 12 + end.month - start.month
    step_of = next((step for step in _STEPS if months // step <= most), _STEPS[-1])
    found = []
    for number in range(start.year * 12 + start.month, end.year * 12 + end.month + 1):
        if number % step_of == 0:
            at = datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)
            if start <= at < end:
                found.append((_x(at, span), f"{at:%b %Y}"))
    return found[-most - 1 :]


def _grid(span: Span, marks: Sequence[tuple[float, str]]) -> Markup:
    lines = [tag("i", "", cls="tick", style=f"left:{at:.2f}%") for at, _ in marks]
    clock = tag("i", "", cls="clock", style=f"left:{_x(span.clock, span):.2f}%")
    return tag("div", join(lines), clock, cls="t-grid", aria_hidden="true")


def _axis(marks: Sequence[tuple[float, str]]) -> Markup:
    """The words below the track; those too close to an edge are drawn inside it."""
    made = [
        tag("span", words, cls="first" if at < 4 else "last" if at > 95 else None, style=f"left:{at:.2f}%")
        for at, words in marks
    ]
    return tag("div", join(made), cls="t-axis")


def timeline(events: Sequence[Event], span: Span) -> Markup:
    """The events inside the span, a lane a row; only lanes that the whole chart uses."""
    rows = []
    for lane in LANES:
        mine = [one for one in events if one.lane == lane]
        if not mine:
            continue
        inside = [one for one in mine if (one.end or one.when.start) >= span.start]
        made = [_stay(one, span) for one in inside if one.end and one.lane == "Emergency, inpatient"]
        made += _marks(inside, span, _SHAPES[lane])
        said = f"{lane}: {len(inside)} in this time"
        track = tag("div", join(made), cls="t-track", role="img", aria_label=said)
        rows.append(tag("div", tag("span", lane, cls="t-label"), track, cls="t-row"))
    return tag("div", _grid(span, ticks(span)), join(rows), cls="t-plot")


def _stay(one: Event, span: Span) -> Markup:
    left, right = _x(one.when.start, span), _x(one.end or one.when.start, span)
    style = f"left:{left:.2f}%;width:{max(right - left, 0.1):.2f}%"
    return tag("i", "", cls="stay", style=style, title=f"{one.when.with_time()}: {one.words[:80]}")


def _marks(events: Sequence[Event], span: Span, shape: str) -> list[Markup]:
    groups: list[tuple[float, list[Event]]] = []
    for one in sorted(events, key=lambda event: _wall(event.when.start)):
        at = _x(max(one.when.start, span.start), span)
        if groups and at - groups[-1][0] < _CLOSE:
            groups[-1][1].append(one)
        else:
            groups.append((at, [one]))
    made = []
    for at, group in groups:
        words = "; ".join(f"{one.when.with_time()}: {one.words[:80]}" for one in group[:4])
        more = f"; and {len(group) - 4} more" if len(group) > 4 else ""
        made.append(tag("i", "", cls=f"mark {shape}", style=f"left:{at:.2f}%", title=words + more))
    return made


def _lanes_of(medication: Medication) -> list[tuple[int, Interval]]:
    """Intervals with the row that they stand on: two that run at once, for a day or longer, stand on two rows."""
    ends: list[datetime] = []
    placed = []
    for interval in medication.intervals:
        lane = next((n for n, end in enumerate(ends) if end - _DAY < interval.start.start), len(ends))
        if lane == len(ends):
            ends.append(interval.end)
        else:
            ends[lane] = interval.end
        placed.append((lane, interval))
    return placed


def medications(every: Sequence[Medication], span: Span) -> Markup:
    """A row a drug, a bar an interval, the dose inside where it fits, else beside it."""
    rows = []
    for medication in every:
        lanes: dict[int, list[Markup]] = {}
        for lane, one in _lanes_of(medication):
            if one.end >= span.start:
                lanes.setdefault(lane, []).append(_bar(one, span))
        for place, lane in enumerate(sorted(lanes)):
            label = tag("span", medication.name if not place else "", cls="t-label", title=medication.name[:200])
            said = f"{medication.name[:80]}: {medication.state}" if not place else f"{medication.name[:80]}, at once"
            track = tag("div", join(lanes[lane]), cls="t-track", role="img", aria_label=said)
            rows.append(tag("div", label, track, cls="t-row"))
    marks = ticks(span)
    axis = tag("div", tag("span", "", cls="t-label"), _axis(marks), cls="t-row")
    return tag("div", _grid(span, marks), join(rows), axis, cls="t-plot")


def _bar(one: Interval, span: Span) -> Markup:
    left, right = _x(max(one.start.start, span.start), span), _x(min(one.end, span.end), span)
    width = max(right - left, 0.5)
    dose = short_dose(one)
    if one.state not in _STATES:
        dose = f"{one.state}: {dose}" if dose else one.state
    dose = cut(visible(dose), 80)
    fits = width / 100 * _WIDTH > 6.4 * min(len(dose), 14)
    told = f"{one.drug[:90]}; {one.dose[:160] or 'dosage not stated'}; from {one.start}; {one.until}; {one.status}"
    bar = tag(
        "div",
        dose if fits else "",
        cls=f"t-bar {_STATES.get(one.state, 'held')}",
        style=f"left:{left:.2f}%;width:{width:.2f}%",
        title=told,
    )
    if fits or not dose:
        return bar
    # A bar too short for its dose has it at its left, or at its right where there is more room.
    beside = (
        tag("span", cut(dose, 34), cls="t-beside", style=f"right:{100 - left:.2f}%")
        if left > 35
        else tag("span", cut(dose, 34), cls="t-beside", style=f"left:{left + width:.2f}%")
    )
    return join([bar, beside])


def short_dose(one: Interval) -> str:
    """The dosage without the drug's own name in front, which the row says already."""
    words = one.dose
    first = one.drug.split(" ", 1)[0].casefold()
    if first and words.casefold().startswith(first + " "):
        words = words[len(first) :].lstrip(" ,")
    return words


def cut(words: str, length: int) -> str:
    """The words, cut at a word's end where they are longer than `length` characters."""
    if len(words) <= length:
        return words
    short = words[: max(0, length - 1)]
    return (short.rsplit(" ", 1)[0] if " " in short else short).rstrip(" ,;") + "…"


def thinned(points: Sequence[Point], most: int = 240) -> list[Point]:
    """At most `most` of the points: of each stretch of time the lowest and the highest, so that no peak is lost."""
    if len(points) <= most:
        return list(points)
    size = -(-2 * len(points) // most)
    kept: list[Point] = []
    for start in range(0, len(points), size):
        stretch = range(start, min(start + size, len(points)))
        ends = {min(stretch, key=lambda n: points[n].value or 0.0), max(stretch, key=lambda n: points[n].value or 0.0)}
        kept += [points[n] for n in sorted(ends)]
    return [*kept, points[-1]] if kept[-1] is not points[-1] else kept


def lab(series: Series, span: Span, ring: str = "") -> Markup:
    """One analyte against its range. `ring`: the reference of a point to draw a ring around."""
    inside = [point for point in series.plotted if point.when.start >= span.start]
    drawn = thinned(inside)
    drawn += [point for point in inside if point.ref == ring and point not in drawn]
    numbers = [point.value for point in inside if point.value is not None]
    ranged = next((p for p in reversed(series.plotted) if p.low is not None or p.high is not None), None)
    low, high = (ranged.low, ranged.high) if ranged else (None, None)
    limits = [limit for limit in (low, high) if limit is not None]
    shown = [*numbers, *limits] or [0.0, 1.0]
    bottom, top = min(shown), max(shown)
    pad = (top - bottom or abs(top) or 1.0) * 0.14
    bottom, top = (max(0.0, bottom - pad) if bottom >= 0 else bottom - pad), top + pad

    def y(value: float) -> float:
        """Percent from the top."""
        return min(100.0, max(0.0, 100 * (top - value) / (top - bottom)))

    band = None
    if limits:
        upper, lower = y(high) if high is not None else 0.0, y(low) if low is not None else 100.0
        band = tag("div", "", cls="band", style=f"top:{upper:.2f}%;height:{max(lower - upper, 0.0):.2f}%")
    placed = sorted(
        ((_x(point.when.start, span), y(point.value), point) for point in drawn if point.value is not None),
        key=lambda one: one[0],
    )
    marks = [_point(point, x, down, ringed=point.ref == ring) for x, down, point in placed]
    said = ranged.limit if limits and ranged else plain_number
    labels = [tag("span", said(limit), style=f"top:{y(limit):.2f}%") for limit in (limits or [min(shown), max(shown)])]
    track = tag(
        "div",
        band,
        polyline([(x, down) for x, down, _ in placed]),
        join(marks),
        cls="l-track",
        role="img",
        aria_label=lab_words(series, span),
    )
    axis = tag("div", tag("span", "", cls="l-labels"), _axis(ticks(span, 4)), cls="l-row short")
    return tag(
        "div",
        tag("div", tag("div", join(labels), cls="l-labels", aria_hidden="true"), track, cls="l-row"),
        axis,
        cls="l-plot",
    )


def _point(point: Point, x: float, down: float, *, ringed: bool) -> Markup:
    shape = "triangle warn" if point.side in {"high", "low"} else "disc small"
    return tag(
        "i",
        "",
        cls=f"mark {shape}{' ringed' if ringed else ''}",
        style=f"left:{x:.2f}%;top:{down:.2f}%",
        title=", ".join(filter(None, [point.written[:60], point.when.with_time(), point.remark])),
    )


def lab_words(series: Series, span: Span) -> str:
    """What the plot shows, for a reader who does not see it."""
    inside = [point for point in series.plotted if point.when.start >= span.start]
    outside = sum(point.side in {"high", "low"} for point in inside)
    return (
        f"{visible(series.name)}, {unit_words(series.unit)}: {len(inside)} results, {outside} outside the range, "
        f"latest {visible(series.latest.written)} on {series.latest.when}"
        + (f", {series.latest.remark}" if series.latest.remark else "")
    )
