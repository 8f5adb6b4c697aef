"""FHIR dates as ranges: what "2023-05" covers, on the clock and on the calendar.

Every date, written or asked for, is a range. It is kept twice: as instants in microseconds since 1970-01-01T00:00Z
(a date without a zone is read as UTC), and as calendar days (proleptic Gregorian ordinals) in the offset that it was
written with. A search by day or coarser compares days, a finer one compares instants, as HAPI 8.8 does.
"""

from __future__ import annotations

import re
from datetime import date
from typing import NamedTuple

#: Bounds of a range that is open on that side; beyond every real date.
EARLIEST, LATEST = -(2**62), 2**62
FIRST_DAY, LAST_DAY = -(2**30), 2**30

_DAY = 86_400_000_000
_EPOCH = date(1970, 1, 1).toordinal()
_DATE = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,12}))?)?(Z|[+-]\d\d:\d\d)?)?)?)?", re.ASCII
)
TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?", re.ASCII)


class Span(NamedTuple):
    """A range, both ends included: instants in microseconds, days as ordinals, and how finely it was written."""

    low: int
    high: int
    low_day: int
    high_day: int
    unit: str = "range"  #: year, month, day, minute, second, fraction; `range` for a Period or Timing
    zoned: bool = False

    @property
    def by_day(self) -> bool:
        """Whether a search with this value compares calendar days."""
        return self.unit in ("year", "month", "day")


def span_of(text: str) -> Span | None:
    """The range that a date, dateTime or instant covers; None if it is none. Minutes without seconds are allowed."""
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    try:
        first = date(int(year), int(month or 1), int(day or 1)).toordinal()
    except ValueError:
        return None
    if hour is None:
        if day is not None:
            last, unit = first, "day"
        elif month is not None:
            last, unit = _month_after(int(year), int(month)) - 1, "month"
        else:
            last, unit = date(int(year), 12, 31).toordinal(), "year"
        return Span((first - _EPOCH) * _DAY, (last - _EPOCH + 1) * _DAY - 1, first, last, unit)
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 60:
        return None
    low = (first - _EPOCH) * _DAY + (int(hour) * 60 + int(minute)) * 60_000_000
    if zone not in (None, "Z"):
        hours, minutes = int(zone[1:3]), int(zone[4:6])
        if minutes > 59 or hours * 60 + minutes > 14 * 60:
            return None
        shift = (hours * 60 + minutes) * 60_000_000
        low += shift if zone[0] == "-" else -shift
    if second is None:
        high, unit = low + 60_000_000 - 1, "minute"
    elif fraction is None:
        low += int(second) * 1_000_000
        high, unit = low + 1_000_000 - 1, "second"
    else:
        digits = fraction[:6]
        step = 10 ** (6 - len(digits))
        low += int(second) * 1_000_000 + int(digits) * step
        high, unit = low + step - 1, "fraction"
    return Span(low, high, first, first, unit, zone is not None)


def _month_after(year: int, month: int) -> int:
    if month == 12:
        return date(year, 12, 31).toordinal() + 1
    return date(year, month + 1, 1).toordinal()


def joined(start: Span | None, end: Span | None) -> Span | None:
    """The range from one date to another, as a Period has it; a missing side is open; None if both are missing."""
    if start is None and end is None:
        return None
    return Span(
        start.low if start else EARLIEST,
        end.high if end else LATEST,
        start.low_day if start else FIRST_DAY,
        end.high_day if end else LAST_DAY,
    )


def covering(spans: list[Span]) -> Span | None:
    """The range from the earliest to the latest of several, as a Timing is searched; None for none."""
    if not spans:
        return None
    return Span(
        min(span.low for span in spans),
        max(span.high for span in spans),
        min(span.low_day for span in spans),
        max(span.high_day for span in spans),
    )
