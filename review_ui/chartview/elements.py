"""Small readings of FHIR elements that every part of the chart view needs. All of them bear with what is missing."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any

from graders.describe import TIMES

LOINC = "http://loinc.org"
_WHEN = re.compile(
    r"(?P<y>[0-9]{4})(?:-(?P<m>[0-9]{2})(?:-(?P<d>[0-9]{2})"
    r"(?:T(?P<H>[0-9]{2}):(?P<M>[0-9]{2})(?::(?P<S>[0-9]{2})(?:\.[0-9]+)?)?(?P<z>Z|[+-][0-9]{2}:[0-9]{2})?)?)?)?"
)


@dataclass(frozen=True)
class When:
    """A FHIR date as written, and the first instant that it covers."""

    start: datetime
    written: str
    precision: str  # year, month, day, minute

    @property
    def last(self) -> datetime:
        """The last instant that it covers: the end of the day, month or year where no more was written."""
        days = {
            "day": 1,
            "month": calendar.monthrange(self.start.year, self.start.month)[1],
            "year": 366 if calendar.isleap(self.start.year) else 365,
        }.get(self.precision, 0)
        try:
            return self.start + timedelta(days=days) - timedelta(microseconds=1) if days else self.start
        except OverflowError:
            return self.start

    def __str__(self) -> str:
        return self.shown()

    def shown(self) -> str:
        """ "2026", "Mar 2026" or "9 Mar 2026"."""
        month = calendar.month_abbr[self.start.month]
        if self.precision == "year":
            return f"{self.start.year}"
        if self.precision == "month":
            return f"{month} {self.start.year}"
        return f"{self.start.day} {month} {self.start.year}"

    def with_time(self) -> str:
        """ "9 Mar 2026, 08:15" where a time was written."""
        return f"{self.shown()}, {self.start:%H:%M}" if self.precision == "minute" else self.shown()


def when(written: Any, zone: tzinfo = UTC) -> When | None:
    """The date or date-time; None for what is none. A date without offset is read in `zone`."""
    if not isinstance(written, str) or not (found := _WHEN.fullmatch(written.strip())):
        return None
    year, month, day = found["y"], found["m"], found["d"]
    precision = "minute" if found["H"] else "day" if day else "month" if month else "year"
    offset: tzinfo = zone
    if found["z"] == "Z":
        offset = UTC
    elif found["z"]:
        sign = -1 if found["z"][0] == "-" else 1
        from datetime import timezone

        minutes = sign * (int(found["z"][1:3]) * 60 + int(found["z"][4:6]))
        if abs(minutes) >= 24 * 60:
            return None
        offset = timezone(timedelta(minutes=minutes))
    try:
        start = datetime(
            int(year), int(month or 1), int(day or 1), int(found["H"] or 0), int(found["M"] or 0),
            min(int(found["S"] or 0), 59), tzinfo=offset,
        )  # fmt: skip
    except ValueError:
        return None
    try:
        return When(start.astimezone(zone), written, precision)
    except OverflowError:
        return None


def element(body: Mapping[str, Any], path: str) -> Any:
    """What stands at a dotted path; None where nothing does."""
    value: Any = body
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def each(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects of a list, or the one object; nothing where there is none."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, Mapping):
            yield item


def time_of(body: Mapping[str, Any], zone: tzinfo = UTC) -> When | None:
    """When what the resource tells of happened: the first of TIMES that can be read."""
    for path in TIMES.get(str(body.get("resourceType")), ("date", "period")):
        value = element(body, path)
        if isinstance(value, Mapping):
            value = value.get("start") or value.get("end")
        if found := when(value, zone):
            return found
    return None


def codings(concept: Any) -> Iterator[tuple[str, str, str]]:
    """(system, code, display) of a CodeableConcept's or Coding's codings."""
    for holder in each(concept):
        for coding in each(holder.get("coding")) if "coding" in holder else [holder]:
            yield str(coding.get("system") or ""), str(coding.get("code") or ""), str(coding.get("display") or "")


def concept(value: Any) -> str:
    """The words of a CodeableConcept: its text, else the first display, else the first code; "" where there is none."""
    if isinstance(value, str):
        return value
    for holder in each(value):
        if isinstance(holder.get("text"), str) and holder["text"].strip():
            return str(holder["text"])
        found = list(codings(holder))
        for _, _, display in found:
            if display:
                return display
        for _, code, _ in found:
            if code:
                return code
    return ""


def code_of(value: Any) -> str:
    """The first code of a CodeableConcept, such as a status; "" where there is none."""
    if isinstance(value, str):
        return value
    return next((code for _, code, _ in codings(value) if code), "")


def loincs(body: Mapping[str, Any]) -> frozenset[str]:
    """The LOINC codes of a resource's `code`."""
    return frozenset(code for system, code, _ in codings(body.get("code")) if system == LOINC and code)


def number(value: Any) -> float | None:
    """A JSON number as a float; None for anything else (a bool is no number)."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return None
    made = float(value)
    return made if made == made and abs(made) != float("inf") else None


def quantity(value: Any) -> str:
    """ "5 mg", "<0.5 ng/mL": as written, comparator first."""
    if not isinstance(value, Mapping) or value.get("value") is None:
        return ""
    unit = value.get("unit") or value.get("code") or ""
    return f"{value.get('comparator') or ''}{value['value']} {unit}".strip()


def reference_display(value: Any) -> str:
    """A Reference's display, else what it points to."""
    if not isinstance(value, Mapping):
        return ""
    return str(value.get("display") or value.get("reference") or "")


def exact(value: float) -> str:
    """A number with all its digits, without an exponent: 1.005, 1234.5, 150000."""
    return format(Decimal(repr(value)).normalize(), "f")


def plain_number(value: float) -> str:
    """A number that was computed, without a tail: 5, 0.45, 1.72, 1,250."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    shown = f"{value:.3g}" if abs(value) < 100 else f"{value:.4g}"
    if "e" in shown:
        shown = f"{value:f}".rstrip("0").rstrip(".")
    return shown
