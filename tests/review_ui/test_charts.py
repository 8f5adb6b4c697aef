"""The plots: where marks stand, what they say, and that text from a chart stays text."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from review_ui import charts
from review_ui.charts import Span
from review_ui.chartview.elements import When
from review_ui.chartview.labs import Point, Series
from review_ui.chartview.medications import Interval, Medication
from review_ui.chartview.timeline import Event
from review_ui.markup import polyline

CLOCK = datetime(2026, 3, 12, 9, 30, tzinfo=UTC)
SPAN = Span.before(CLOCK, None, 24)


def when(at: datetime) -> When:
    return When(at, f"{at:%Y-%m-%d}", "day")


def point(days: int, value: float, ref: str = "Observation/a", written: str = "") -> Point:
    at = CLOCK - timedelta(days=days)
    return Point(ref, when(at), value, "mmol/L", written or f"{value} mmol/L", low=3.5, high=5.1)


def test_results_outside_the_range_are_triangles_and_say_what_they_are() -> None:
    drawn = charts.lab(Series("Potassium", "mmol/L", (point(100, 4.2), point(10, 5.6)), False), SPAN)
    assert drawn.count('class="mark disc small"') == 1
    assert drawn.count('class="mark triangle warn"') == 1
    assert 'title="5.6 mmol/L, ' in drawn
    assert "2 results, 1 outside the range" in drawn


def test_a_higher_value_stands_higher_and_a_later_one_further_right() -> None:
    drawn = charts.lab(Series("Potassium", "mmol/L", (point(100, 4.2), point(10, 4.9)), False), SPAN)
    found = re.findall(r'class="mark[^"]*" style="left:([0-9.]+)%;top:([0-9.]+)%', drawn)
    (left, low), (right, high) = [(float(x), float(y)) for x, y in found]
    assert left < right
    assert low > high


def test_the_point_that_was_asked_for_has_a_ring_even_where_points_are_thinned() -> None:
    points = tuple(point(700 - n // 2, 4.0 + n % 7 / 10, f"Observation/{n}") for n in range(1200))
    drawn = charts.lab(Series("Potassium", "mmol/L", points, False), SPAN, ring="Observation/601")
    assert drawn.count("ringed") == 1
    assert drawn.count('class="mark') <= 245


def test_text_of_a_chart_stays_text_in_every_plot() -> None:
    evil = '"><img src=//evil onerror=x>\u202eabc'
    event = Event("Encounter/1", "Visits", when(CLOCK - timedelta(days=9)), None, evil)
    one = Interval(
        "MedicationRequest/1", evil, evil, "active", evil, when(CLOCK - timedelta(days=300)), CLOCK, None,
        "MedicationRequest",
    )  # fmt: skip
    drawn = [
        charts.timeline([event], SPAN),
        charts.medications([Medication(evil, (one,))], SPAN),
        charts.lab(Series(evil, evil, (point(9, 4.2, written=evil),), False), SPAN),
    ]
    for markup in drawn:
        assert "<img src=//evil" not in markup
        assert "\u202e" not in markup
        assert "evil" in markup


def test_events_too_close_to_tell_apart_are_one_mark_that_names_them() -> None:
    events = [Event(f"Encounter/{n}", "Visits", when(CLOCK - timedelta(days=40)), None, f"visit {n}") for n in range(6)]
    drawn = charts.timeline(events, SPAN)
    assert drawn.count('class="mark disc"') == 1
    assert "visit 0" in drawn
    assert "and 2 more" in drawn
    assert "Visits: 6 in this time" in drawn


def test_a_stay_is_drawn_as_long_as_it_was() -> None:
    start = CLOCK - timedelta(days=100)
    stay = Event("Encounter/1", "Emergency, inpatient", when(start), start + timedelta(days=73), "Ward")
    width = float(re.findall(r'class="stay" style="left:[0-9.]+%;width:([0-9.]+)%', charts.timeline([stay], SPAN))[0])
    assert width == pytest.approx(100 * 73 / ((SPAN.end - SPAN.start).days), rel=0.01)


@given(some.integers(1, 20_000), some.integers(3, 10))
def test_ticks_are_few_in_order_and_inside(days: int, most: int) -> None:
    span = Span(CLOCK - timedelta(days=days), CLOCK + timedelta(days=1), CLOCK)
    found = charts.ticks(span, most)
    assert len(found) <= most + 1
    assert [at for at, _ in found] == sorted(at for at, _ in found)
    assert all(0 <= at <= 100 for at, _ in found)
    assert len({words for _, words in found}) == len(found)


@given(some.lists(some.tuples(some.floats(0, 100), some.floats(0, 100)), max_size=30))
def test_a_line_holds_its_points_and_nothing_else(points: list[tuple[float, float]]) -> None:
    drawn = polyline(points)
    if len(points) < 2:
        assert drawn is None
        return
    assert drawn is not None
    held = base64.b64decode(drawn.split("base64,")[1].split('"')[0]).decode("ascii")
    assert re.fullmatch(r'<svg [^<>]*><polyline points="[0-9., ]+"[^<>]*/></svg>', held)
    assert held.count(",") == len(points)
