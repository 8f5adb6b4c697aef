"""The plots of the pages, in Altair: no page in here, only values in and charts out.

Text from data passes through `visible` first: Vega draws it as SVG text, where a bidirectional control would still turn
a dose around. Times are drawn as wall-clock time of the task, whatever the reader's own time zone is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import altair as alt

from review_ui.chartview.labs import Point, Series, unit_words
from review_ui.chartview.medications import Interval, Medication
from review_ui.chartview.timeline import LANES, Event
from review_ui.markup import visible
from review_ui.theme import token

#: Room for the row labels of timeline and medications, so that their time axes line up, in pixels.
LABELS = 150
_ROW = 23
_FONT = "Source Sans, sans-serif"
_NO_FRAME = alt.ViewConfig(stroke=None)


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


def _rows(values: list[dict[str, Any]]) -> alt.Data:
    """Values as they are: no DataFrame, no limit on rows, nothing inferred."""
    return alt.Data(values=values)  # type: ignore[no-untyped-call]


def _wall(at: datetime) -> str:
    """Wall-clock time as text that the browser reads as UTC."""
    return at.replace(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _x(span: Span, *, labels: bool = True, ticks: int = 8, grid: bool = True) -> alt.X:
    days = (span.end - span.start).days
    axis = alt.Axis(
        title=None,
        labels=labels,
        format="%b %Y" if days > 120 else "%-d %b",
        tickCount=ticks,
        grid=grid,
        gridColor=token("hair"),
        domain=False,
        ticks=False,
        labelColor=token("muted"),
        labelFontSize=12,
        labelFlush=False,
        labelOverlap="greedy",
    )
    scale = alt.Scale(type="utc", domain=[_wall(span.start), _wall(span.end)], nice=False)
    return alt.X("at:T", scale=scale, axis=axis)


def _y(rows: Sequence[str], theme: str) -> alt.Y:
    return alt.Y(
        "row:N",
        sort=list(rows),
        scale=alt.Scale(domain=list(rows)),
        axis=alt.Axis(
            title=None,
            ticks=False,
            domain=False,
            labelAlign="left",
            labelPadding=LABELS - 2,
            labelLimit=LABELS - 8,
            minExtent=LABELS,
            maxExtent=LABELS,
            labelColor=token("ink", theme),
            labelFontSize=12.5,
        ),
    )


def _clock(span: Span, theme: str) -> alt.Chart:
    rule = alt.Chart(_rows([{"at": _wall(span.clock)}]))
    rule = rule.mark_rule(strokeDash=[4, 3], color=token("ink", theme), strokeWidth=1)
    return rule.encode(x="at:T")  # type: ignore[no-any-return]


def _layered(layers: Sequence[alt.Chart], height: int) -> alt.LayerChart:
    return alt.LayerChart(
        layer=list(layers),
        height=height,
        padding=0,
        background="transparent",
        config=alt.Config(view=_NO_FRAME, font=_FONT),
    )


def timeline(events: Sequence[Event], span: Span, theme: str = "light") -> alt.LayerChart:
    """The events inside the span, a lane a row; only lanes that the whole chart uses."""
    lanes = [lane for lane in LANES if any(event.lane == lane for event in events)]
    inside = [event for event in events if (event.end or event.when.start) >= span.start]
    values = [
        {
            "at": _wall(max(event.when.start, span.start)),
            "to": _wall(min(event.end or event.when.start, span.end)),
            "row": event.lane,
            "what": visible(event.words)[:80],
            "on": event.when.with_time(),
        }
        for event in inside
    ]
    tips = [alt.Tooltip("what:N", title="What"), alt.Tooltip("on:N", title="When")]
    shapes = alt.Scale(domain=list(LANES), range=["circle", "triangle-up", "cross", "diamond", "square"])
    colors = alt.Scale(
        domain=list(LANES),
        range=[token(role, theme) for role in ("gray-text", "orange", "violet-text", "primary", "gray-text")],
    )
    base = alt.Chart(_rows(values))
    points = base.mark_point(filled=True, size=52, opacity=1).encode(
        x=_x(span, labels=False),
        y=_y(lanes, theme),
        shape=alt.Shape("row:N", scale=shapes, legend=None),
        color=alt.Color("row:N", scale=colors, legend=None),
        tooltip=tips,
    )
    stays = (
        base.transform_filter("datum.row == 'Emergency, inpatient'")
        .mark_bar(height=5, opacity=0.55)
        .encode(x="at:T", x2="to:T", y=_y(lanes, theme), color=alt.Color("row:N", scale=colors, legend=None))
    )
    acute = any(value["row"] == "Emergency, inpatient" for value in values)
    layers = [*([stays] if acute else []), *([points] if values else []), _clock(span, theme)]
    return _layered(layers, _ROW * max(1, len(lanes)) + 8)


def _lanes_of(medication: Medication) -> list[tuple[int, Interval]]:
    """Intervals with the row that they stand on: two that run at once stand on two rows."""
    ends: list[datetime] = []
    placed = []
    for interval in medication.intervals:
        lane = next((n for n, end in enumerate(ends) if end <= interval.start.start), len(ends))
        if lane == len(ends):
            ends.append(interval.end)
        else:
            ends[lane] = interval.end
        placed.append((lane, interval))
    return placed


def medications(every: Sequence[Medication], span: Span, theme: str = "light", width: int = 900) -> alt.LayerChart:
    """A row a drug, a bar an interval, the dose inside where it fits. `width`: the pixels to expect for the bars."""
    rows: list[str] = []
    values: list[dict[str, Any]] = []
    whole = (span.end - span.start).total_seconds()
    taken: set[str] = set()
    for medication in every:
        label = visible(medication.name)[:60]
        while label in taken:
            label += " "
        taken.add(label)
        for lane, one in _lanes_of(medication):
            if one.end < span.start:
                continue
            row = label if lane == 0 else f"{label} ({lane + 1})"
            if row not in rows:
                rows.append(row)
            start, end = max(one.start.start, span.start), min(one.end, span.end)
            dose = visible(short_dose(one))
            pixels = (end - start).total_seconds() / whole * width
            values.append(
                {
                    "at": _wall(start),
                    "to": _wall(end if end > start else start + (span.end - span.start) / 200),
                    "row": row,
                    "state": one.state,
                    "what": visible(one.drug)[:90],
                    "dose": cut(visible(one.dose), 160),
                    "inside": cut(dose, int(pixels / 6.4)) if pixels > 6.4 * min(len(dose), 14) else "",
                    "beside": cut(dose, 34) if pixels <= 6.4 * min(len(dose), 14) else "",
                    "since": str(one.start),
                    "until": _until(one),
                    "status": visible(one.status),
                }
            )
    states = ["active", "on hold", "reported", "draft", "stopped"]
    fills = [token(r, theme) for r in ("blue-mark", "page", "orange-mark", "page", "gray-fill")]
    lines = [token(r, theme) for r in ("primary", "muted", "orange", "muted", "muted")]
    base = alt.Chart(_rows(values))
    bars = base.mark_bar(height=16, cornerRadius=3, strokeWidth=1).encode(
        x=_x(span),
        y=_y(rows, theme),
        x2="to:T",
        color=alt.Color("state:N", scale=alt.Scale(domain=states, range=fills), legend=None),
        stroke=alt.Stroke("state:N", scale=alt.Scale(domain=states, range=lines), legend=None),
        strokeDash=alt.StrokeDash(
            "state:N", scale=alt.Scale(domain=states, range=[[1, 0], [4, 3], [1, 0], [2, 2], [1, 0]]), legend=None
        ),
        tooltip=[
            alt.Tooltip("what:N", title="Drug"),
            alt.Tooltip("dose:N", title="Dosage"),
            alt.Tooltip("since:N", title="From"),
            alt.Tooltip("until:N", title="To"),
            alt.Tooltip("status:N", title="Status"),
        ],
    )
    ink = token("ink", theme)
    inside = base.mark_text(align="left", dx=5, fontSize=12, color=ink, baseline="middle")
    inside = inside.encode(x="at:T", y=_y(rows, theme), text="inside:N")
    beside = base.mark_text(align="right", dx=-5, fontSize=12, color=ink, baseline="middle")
    beside = beside.encode(x="at:T", y=_y(rows, theme), text="beside:N")
    return _layered([bars, inside, beside, _clock(span, theme)], _ROW * max(1, len(rows)) + 26)


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


def _until(one: Interval) -> str:
    if one.state in {"active", "reported", "on hold", "draft"}:
        return "still listed"
    return f"{one.end.day} {one.end:%b %Y}" if one.end_stated else "end not stated"


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


def lab(series: Series, span: Span, theme: str = "light", ring: str = "") -> alt.LayerChart:
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
    domain = [max(0.0, bottom - pad) if bottom >= 0 else bottom - pad, top + pad]
    values = [
        {
            "at": _wall(point.when.start),
            "value": point.value,
            "side": point.side,
            "written": visible(point.written)[:60],
            "on": point.when.with_time(),
            "ring": point.ref == ring,
        }
        for point in drawn
    ]
    y = alt.Y(
        "value:Q",
        scale=alt.Scale(domain=domain, nice=False, zero=False),
        axis=alt.Axis(
            title=None,
            values=limits or [bottom, top],
            grid=False,
            domain=False,
            ticks=False,
            format=".3~g",
            labelColor=token("muted", theme),
            labelFontSize=11.5,
            minExtent=34,
        ),
    )
    edges = {
        "at": _wall(span.start),
        "to": _wall(span.end),
        "value": max(domain[0], low) if low is not None else domain[0],
        "upper": min(domain[1], high) if high is not None else domain[1],
    }
    band = alt.Chart(_rows([edges] if limits else [])).mark_rect(color=token("band", theme))
    band = band.encode(x=_x(span, ticks=4, grid=False), x2="to:T", y=y, y2="upper:Q")
    base = alt.Chart(_rows(values))
    line = base.mark_line(color=token("muted", theme), strokeWidth=1.5).encode(x=_x(span, ticks=4, grid=False), y=y)
    out = "datum.side == 'high' || datum.side == 'low'"
    tips = [alt.Tooltip("written:N", title="Result"), alt.Tooltip("on:N", title="When")]
    normal = (
        base.transform_filter(f"!({out})")
        .mark_point(filled=True, size=30, opacity=1, color=token("muted", theme))
        .encode(x="at:T", y=y, tooltip=tips)
    )
    beyond = (
        base.transform_filter(out)
        .mark_point(filled=True, size=62, opacity=1, shape="triangle-up", color=token("orange", theme))
        .encode(x="at:T", y=y, tooltip=tips)
    )
    ringed = (
        base.transform_filter("datum.ring")
        .mark_point(filled=False, size=190, opacity=1, strokeWidth=2, color=token("primary", theme))
        .encode(x="at:T", y=y)
    )
    # A layer without a mark would be an unnamed graphic to a screen reader.
    layers = [
        *([band] if limits else []),
        line,
        *([normal] if _any(drawn, out=False) else []),
        *([beyond] if _any(drawn, out=True) else []),
    ]
    if any(point.ref == ring for point in drawn):
        layers.append(ringed)
    return _layered(layers, 96)


def _any(points: Sequence[Point], *, out: bool) -> bool:
    return any((point.side in {"high", "low"}) == out for point in points)


def lab_words(series: Series, span: Span) -> str:
    """What the plot shows, for a reader who does not see it."""
    inside = [point for point in series.plotted if point.when.start >= span.start]
    outside = sum(point.side in {"high", "low"} for point in inside)
    return (
        f"{visible(series.name)}, {unit_words(series.unit)}: {len(inside)} results, {outside} outside the range, "
        f"latest {visible(series.latest.written)} on {series.latest.when}"
    )
