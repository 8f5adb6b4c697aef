"""How long and when: durations, windows from `now`, dates and intervals in text.

Calendar days in the zone of `now`; a week is 7 days; a month is 28 to 31 days, a year 365 or 366.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from decimal import ROUND_CEILING, Decimal
from functools import cache

from graders.orders.text import NUMBER, normal, number, numerals

_UNIT = r"(?P<unit>hours?|hrs?|h|days?|d|weeks?|wks?|wk|w|months?|mos?|mo|years?|yrs?|y)(?![a-z])"
#: Days of one unit: the shortest and the longest.
_DAYS = {"h": ("1/24", "1/24"), "d": ("1", "1"), "w": ("7", "7"), "m": ("28", "31"), "y": ("365", "366")}


@dataclass(frozen=True)
class Span:
    """Days from a point, low..high; high None = open ("at least 12 months")."""

    low: Decimal
    high: Decimal | None

    def within(self, other: Span) -> bool:
        if self.low < other.low:
            return False
        return other.high is None or (self.high is not None and self.high <= other.high)

    def __str__(self) -> str:
        low = _shown(self.low)
        if self.high is None:
            return f"at least {low} d"
        return f"{low} d" if self.low == self.high else f"{low}-{_shown(self.high)} d"


def _shown(value: Decimal) -> str:
    return format(value.quantize(Decimal("0.1")).normalize(), "f")


def _one_day(name: str) -> tuple[Decimal, Decimal]:
    low, high = _DAYS[name[0]]
    return (Decimal(1) / 24, Decimal(1) / 24) if "/" in low else (Decimal(low), Decimal(high))


def span(low: Decimal, high: Decimal, unit: str, *, point: bool = False, low_unit: str = "") -> Span:
    """A span of `unit`s. `point` reads a month as 30 days and a year as 365 (what an order says), else as a range."""
    _, day_high = _one_day(unit)
    first_low, _ = _one_day(low_unit or unit)
    if point:
        middle = {"m": Decimal(30), "y": Decimal(365)}
        day_high = middle.get(unit[0], day_high)
        first_low = middle.get((low_unit or unit)[0], first_low)
    return Span(low * first_low, high * day_high)


_RANGE = re.compile(
    rf"(?:(?P<sign>>=|<=|>|<|at least|at most|up to|within)\s*)?(?P<low>{NUMBER})\s*"
    r"(?:(?P<unit1>hours?|h|days?|d|weeks?|wks?|wk|months?|mos?|mo|years?)?\s*(?:-"
    rf"|to)\s*(?P<high>{NUMBER}))?\s*-?{_UNIT}"
)


@cache
def read_window(text: str) -> Span | None:
    """A declaration's window or duration ("5-10 d", "6 wk", ">=12 mo", "within 48 h"); None where it cannot be read."""
    match = _RANGE.fullmatch(numerals(normal(text)).strip())
    if match is None:
        return None
    low = number(match["low"])
    high = number(match["high"]) if match["high"] else low
    found = span(low, high, match["unit"], low_unit=match["unit1"] or "")
    if found.high is not None and found.low > found.high:
        return None
    match match["sign"]:
        case ">=" | ">" | "at least":
            return Span(found.low, None)
        case "<=" | "<" | "at most" | "up to" | "within":
            return Span(Decimal(0), found.high)
    return found


# ---- durations in an order's text ----------------------------------------------------------------------------------

_FOR = re.compile(
    r"(?:\bfor (?:a total of |at least |the next |another )?|\bx ?|\btimes"
    rf" )(?P<low>{NUMBER})\s*(?:(?:-|to)\s*(?P<high>{NUMBER}))?\s*-?{_UNIT}"
    r"(?!\s*(?:prior|before|ago|after))"
)
_COURSE = re.compile(
    rf"\b(?P<low>{NUMBER})\s*(?:(?:-|to)\s*(?P<high>{NUMBER}))?[\s-]*{_UNIT}[\s-]+(?:course"
    r"|treatment|total|of (?:therapy|treatment)|regimen)"
)
_COUNT = re.compile(rf"(?:\bx ?|\bfor )(?P<n>{NUMBER})\s*(?:more |total )?doses\b|\b(?P<n2>{NUMBER}) doses total\b")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATE = (
    r"(?P<iso>\d{4}-\d{2}-\d{2})|(?P<month>\d{1,2})/(?P<day>\d{1,2})(?:/(?P<year>\d{4}|\d{2}))?(?!\d|/)"
    r"|(?P<name>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
    r" (?P<nday>\d{1,2})(?:st|nd|rd|th)?(?:,? (?P<nyear>\d{4}))?"
)
_ANY_DATE = re.compile(rf"(?<![\d/.])(?:{_DATE})")
_THROUGH = re.compile(rf"\b(?P<how>through|thru|until|till|ending|ends|stop on|last dose) (?:on )?(?:{_DATE})")


@dataclass(frozen=True)
class Found:
    """A duration at [start, end): days, a count of doses, or a last day."""

    start: int
    end: int
    days: Span | None = None
    doses: Decimal | None = None
    until: date | None = None
    inclusive: bool = True


def durations(text: str, now: datetime) -> list[Found]:
    """Every duration that a normalised text states, in order, not overlapping."""
    found: list[Found] = []
    for match in _COUNT.finditer(text):
        found.append(Found(match.start(), match.end(), doses=number(match["n"] or match["n2"])))
    for pattern in (_FOR, _COURSE):
        for match in pattern.finditer(text):
            if match["unit"][0] == "h":
                continue
            low = number(match["low"])
            high = number(match["high"]) if match["high"] else low
            found.append(Found(match.start(), match.end(), days=span(low, high, match["unit"], point=True)))
    for match in _THROUGH.finditer(text):
        if (day := _date_of(match, now)) is not None:
            found.append(Found(match.start(), match.end(), until=day, inclusive=match["how"] not in ("until", "till")))
    found.sort(key=lambda one: (one.start, -one.end))
    apart: list[Found] = []
    for one in found:
        if not apart or one.start >= apart[-1].end:
            apart.append(one)
    return apart


def _date_of(match: re.Match[str], now: datetime) -> date | None:
    try:
        if match["iso"]:
            return date.fromisoformat(match["iso"])
        if match["month"]:
            month, day, year = int(match["month"]), int(match["day"]), match["year"]
        else:
            month, day, year = _MONTHS.index(match["name"]) + 1, int(match["nday"]), match["nyear"]
        if year:
            return date(int(year) + (2000 if len(year) == 2 else 0), month, day)
        this = date(now.year, month, day)
        # A date without its year is the next such day; a day of the last weeks is a past one, not next year's.
        return this if this >= now.date() - timedelta(days=60) else date(now.year + 1, month, day)
    except ValueError:
        return None


def dates(text: str, now: datetime) -> list[tuple[int, int, date]]:
    """(start, end, day) of every date in a normalised text."""
    found = []
    for match in _ANY_DATE.finditer(text):
        if (day := _date_of(match, now)) is not None:
            found.append((match.start(), match.end(), day))
    return found


# ---- intervals from now --------------------------------------------------------------------------------------------

_IN = re.compile(
    r"(?P<how>>=|~|@|\b(?:at least|in|at|after|within|every|next|q|by|no (?:later|sooner)"
    r" than|approximately|about|around))\s*"
    r"(?:approximately |about |around |the next |~ ?|at least"
    rf" )?(?P<low>{NUMBER})\s*(?:(?:-|to)\s*(?P<high>{NUMBER}))?\s*-?{_UNIT}"
    r"(?P<tail>\s*(?:before|prior|ago|post-?|after (?:last|the last|dose)))?"
)
#: "at 1 and 4 weeks", and what follows an interval: "at 1 week and 4 weeks".
_PAIR = re.compile(rf"\b(?:at|in|after) (?P<one>{NUMBER}) ?(?:and|&|,) ?(?P<two>{NUMBER}) ?{_UNIT}")
_AND = re.compile(
    rf"\s*(?:,? ?and|,|&)\s*(?:again |then )?(?:at |in )?(?P<low>{NUMBER})\s*(?:(?:-"
    rf"|to)\s*(?P<high>{NUMBER}))?\s*-?{_UNIT}"
)
_BARE = re.compile(rf"^\s*(?P<low>{NUMBER})\s*(?:(?:-|to)\s*(?P<high>{NUMBER}))?\s*-?{_UNIT}[\s.]*$")
_LATER = re.compile(
    rf"\b(?P<low>{NUMBER})\s*(?:(?:-|to)\s*(?P<high>{NUMBER}))?[\s-]*{_UNIT}[\s-]+(?:later"
    r"|from now|follow-?up|recheck|repeat|check|out|after (?:start|initiation|starting"
    r"|dose 1|change|the change))"
)
_WEEK_N = re.compile(
    rf"\b(?P<unit0>week|day|month)s? (?P<low>{NUMBER})(?:\s*(?:-|to|and"
    rf"|,)\s*(?P<high>{NUMBER}))?\b(?!\s*(?:days?|weeks?|mg|mcg))"
)
#: (words, first day, last day). No two of them can stand at one place, so one expression finds them all in one pass.
_DAYS_IN_WORDS = (
    (r"today|same[- ]day|tonight|this (?:morning|afternoon|evening)|now|immediately", 0, 0),
    (r"tomorrow", 1, 1),
    (r"next week", 7, 7),
    (r"next month", 30, 30),
    (r"(?:in|after) (?:a|one) week|weekly|every week", 7, 7),
    (r"(?:in|after) (?:a|one) month|monthly|every month", 30, 30),
    (r"(?:in|after) (?:a|one) year|annual(?:ly)?|yearly|every year", 365, 365),
    (r"every other week|in a fortnight", 14, 14),
    (r"within (?:a|one|the) week", 0, 7),
    (r"quarterly", 91, 91),
)
_IN_WORDS = re.compile(rf"\b(?:{'|'.join(f'({words})' for words, _, _ in _DAYS_IN_WORDS)})\b")


@dataclass(frozen=True)
class Interval:
    """A stated interval from now at [start, end)."""

    start: int
    end: int
    span: Span


def intervals(text: str, now: datetime) -> list[Interval]:
    """Every interval or date from `now` that a normalised text states; past ones and durations are left out."""
    text = numerals(text)
    found: list[Interval] = []
    for match in _IN.finditer(text):
        if match["tail"] and not match["tail"].strip().startswith("after"):
            continue
        low = number(match["low"])
        high = number(match["high"]) if match["high"] else low
        one = span(low, high, match["unit"], point=True)
        if match["how"] in ("within", "by") or match["how"].startswith("no later") or match["how"] == "next":
            one = Span(Decimal(0), one.high)
        elif match["how"].startswith(("no sooner", "at least", ">=")):
            one = Span(one.low, None)
        found.append(Interval(match.start(), match.end(), one))
    for pair in _PAIR.finditer(text):
        first, second = number(pair["one"]), number(pair["two"])
        found.append(Interval(pair.start(), pair.end("one"), span(first, first, pair["unit"], point=True)))
        found.append(Interval(pair.end("one"), pair.end(), span(second, second, pair["unit"], point=True)))
    for before in tuple(found):
        more = _AND.match(text, before.end)
        while more:
            low = number(more["low"])
            high = number(more["high"]) if more["high"] else low
            found.append(Interval(more.start(), more.end(), span(low, high, more["unit"], point=True)))
            more = _AND.match(text, more.end())
    for pattern in (_BARE, _LATER):
        for match in pattern.finditer(text):
            low = number(match["low"])
            high = number(match["high"]) if match["high"] else low
            found.append(Interval(match.start(), match.end(), span(low, high, match["unit"], point=True)))
    for match in _WEEK_N.finditer(text):
        low = number(match["low"])
        high = number(match["high"]) if match["high"] else low
        found.append(
            Interval(
                match.start(), match.end(), span(low, low if "and" in match[0] else high, match["unit0"], point=True)
            )
        )
    for match in _IN_WORDS.finditer(text):
        _, low_day, high_day = _DAYS_IN_WORDS[(match.lastindex or 1) - 1]
        found.append(Interval(match.start(), match.end(), Span(Decimal(low_day), Decimal(high_day))))
    for start, end, day in dates(text, now):
        away = Decimal((day - now.date()).days)
        if away >= 0:
            found.append(Interval(start, end, Span(away, away)))
    found.sort(key=lambda one: (one.start, -one.end))
    apart: list[Interval] = []
    for one_found in found:
        if not apart or one_found.start >= apart[-1].end:
            apart.append(one_found)
    return [Interval(one.start, one.end, _calendar(one.span)) for one in apart]


def _calendar(given: Span) -> Span:
    """Hours become calendar days: up to 24 h is within 1 day, 48 h within 2."""
    up = given.high.to_integral_value(ROUND_CEILING) if given.high is not None else None
    low = given.low.to_integral_value(ROUND_CEILING) if given.low == given.high else given.low
    return Span(low, up)


def local_day(text: str, zone: tzinfo | None) -> date | None:
    """The calendar day of a FHIR date or dateTime in the zone of `now`; partial dates have none."""
    try:
        if len(text) == 10:
            return date.fromisoformat(text)
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment.astimezone(zone).date() if moment.tzinfo else moment.date()
