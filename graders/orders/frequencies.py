"""How often: reading frequencies from text and from FHIR timing, and the one-way order between them.

q12h satisfies BID, q8h TID, q6h QID; a row that says q8h means the clock, so TID does not satisfy it (field/orders.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any, Literal

from graders.orders.text import normal, numerals

Kind = Literal["once", "per_day", "hours", "days", "per_week", "months", "unreadable"]


@dataclass(frozen=True)
class Frequency:
    """A frequency in one canonical form.

    once; per_day n (1 = daily, 2 = BID); hours n (clock); days n (every n days, 2 to 13 and more); per_week n
    (twice weekly = 2); months n (28 to 31 days = 1). Every 24 h is per_day 1, every 48 h is days 2, weekly is days 7.
    """

    kind: Kind
    n: Decimal = Decimal(1)

    def __str__(self) -> str:
        n = int(self.n) if self.n == self.n.to_integral_value() else self.n
        match self.kind:
            case "once":
                return "once"
            case "per_day":
                return {1: "daily", 2: "BID", 3: "TID", 4: "QID"}.get(int(self.n), f"{n} times a day")
            case "hours":
                return f"q{n}h"
            case "days":
                return {2: "every other day", 7: "weekly"}.get(int(self.n), f"every {n} days")
            case "per_week":
                return "twice weekly" if n == 2 else f"{n} times a week"
            case "months":
                return "monthly" if n == 1 else f"every {n} months"
            case "unreadable":
                return "an ambiguous frequency"

    @property
    def per_day(self) -> Decimal | None:
        """Times a day, averaged; None for once and for what has no rate."""
        match self.kind:
            case "per_day":
                return self.n
            case "hours":
                return Decimal(24) / self.n
            case "days":
                return 1 / self.n
            case "per_week":
                return self.n / 7
            case "months":
                return 1 / (self.n * 30)
        return None


def hours(n: Decimal) -> Frequency:
    if n % 24 == 0:
        return days(n / 24)
    return Frequency("hours", n)


def days(n: Decimal) -> Frequency:
    if n == 1:
        return Frequency("per_day", Decimal(1))
    if 28 <= n <= 31:
        return Frequency("months", Decimal(1))
    return Frequency("days", n)


def weeks(n: Decimal) -> Frequency:
    return days(n * 7)


def satisfies(given: Frequency, wanted: Frequency) -> bool:
    """Whether an order that says `given` satisfies a row that says `wanted`; one way from the clock to the count."""
    if given == wanted:
        return given.kind != "unreadable"
    return given.kind == "hours" and wanted.kind == "per_day" and given.n * wanted.n == 24


@dataclass(frozen=True)
class Stated:
    """A frequency found at [start, end): one value, both ends of a range, or an alternative that never matches."""

    start: int
    end: int
    ends: tuple[Frequency, ...]
    alternatives: bool = False
    by_meals: bool = False
    time_of_day: bool = False


_N = r"(\d+(?:\.\d+)?)"
_HOURS = r"(?:h|hr|hrs|hour|hours)\b"
_DAY = r"(?:day|d|24 ?h(?:ours?|rs?)?)\b"
_EVERY = r"(?:every|each|q\.?|once every|once each)\s*"
_TIMES = r"(?:times?|x)"
_MEAL = r"(?:meals?|food)"
_NAMED_MEAL = r"(?:breakfast|lunch|dinner|supper|evening meal|morning meal|largest meal|main meal|a meal)"


def _per_day(n: int) -> Any:
    return lambda m: (Frequency("per_day", Decimal(n)),)


def _range(low: Frequency, high: Frequency) -> tuple[Frequency, ...]:
    return (low,) if low == high else (low, high)


#: (pattern, reader, by_meals, time_of_day): the first that matches at a place wins, the longest text first.
_PATTERNS: tuple[tuple[re.Pattern[str], Any, bool, bool], ...] = tuple(
    (re.compile(pattern), read, by_meals, time_of_day)
    for pattern, read, by_meals, time_of_day in (
        # Never readable: biweekly means two things.
        (r"\bbi-?weekly\b|\bbi-?monthly\b", lambda m: (Frequency("unreadable"),), False, False),
        # Alternatives inside one order.
        (r"\b(?:daily|qd|once daily) (?:or|to) (?:bid|twice daily|b\.i\.d\.)", lambda m: None, False, False),
        (
            r"\b(?:daily|qd|bid|tid|qid|b\.i\.d\.|t\.i\.d\.|twice daily|three times daily)\s*(?:-|/|or|to)\s*"
            r"(?:bid|tid|qid|b\.i\.d\.|t\.i\.d\.|q\.i\.d\.|twice daily|twice a day|(?:three|3) times (?:a day|daily)"
            r"|(?:four|4) times (?:a day|daily))",
            lambda m: None,
            False,
            False,
        ),
        (
            rf"\b{_N}\s*(?:-|or|to)\s*{_N}\s*(?:times|x)\s*(?:per|a|/|each)?\s*(?:day|daily)\b",
            lambda m: None,
            False,
            False,
        ),
        (r"\b(?:once or twice|1-2 times) (?:a day|daily)\b", lambda m: None, False, False),
        # Weeks, months, years before days.
        (
            rf"\b(?:{_N}|twice|thrice)\s*(?:{_TIMES})?\s*(?:-\s*)?(?:weekly\b|(?:a|per"
            r"|each|every)\s*(?:week|wk)\b|/\s*(?:week|wk)\b)",
            lambda m: (_per_week(m),),
            False,
            False,
        ),
        (
            rf"\b{_EVERY}{_N}\s*(?:-|to)\s*{_N}\s*-?(?:weeks?|wks?|w)\b",
            lambda m: _range(weeks(Decimal(m[1])), weeks(Decimal(m[2]))),
            False,
            False,
        ),
        (rf"\b{_EVERY}{_N}\s*-?(?:weeks?|wks?|w)\b", lambda m: (weeks(Decimal(m[1])),), False, False),
        (
            rf"\b{_EVERY}other\s*(?:week|wk)\b|\bfortnightly\b|\bqow\b|\b{_EVERY}(?:2nd|second) week\b",
            lambda m: (days(Decimal(14)),),
            False,
            False,
        ),
        (rf"\b{_EVERY}{_N}\s*-?(?:months?|mos?)\b", lambda m: (Frequency("months", Decimal(m[1])),), False, False),
        (
            r"\b(?:semi-?annually|twice (?:a|per) year|twice yearly)\b",
            lambda m: (Frequency("months", Decimal(6)),),
            False,
            False,
        ),
        (r"\b(?:quarterly)\b", lambda m: (Frequency("months", Decimal(3)),), False, False),
        (
            r"\b(?:annually|yearly|once (?:a|per) year|every year|once yearly|every 12 months)\b",
            lambda m: (Frequency("months", Decimal(12)),),
            False,
            False,
        ),
        (
            rf"\b(?:once )?(?:monthly|a month|per month)\b|\b{_EVERY}month\b|\bqmonth\b|\bq1mo\b",
            lambda m: (Frequency("months"),),
            False,
            False,
        ),
        (
            rf"\b(?:once[- ])?(?:weekly|a week|per week)\b|\b{_EVERY}(?:week|wk)\b|\bonce/wk\b|\bonce/week\b"
            r"|\b(?:every|each) (?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|\bon"
            r" (?:mon|tues|wednes|thurs|fri|satur|sun)days\b",
            lambda m: (days(Decimal(7)),),
            False,
            False,
        ),
        # Clock hours.
        (
            rf"\b{_EVERY}{_N}\s*(?:-|to|or)\s*{_N}\s*-?{_HOURS}",
            lambda m: _range(hours(Decimal(m[1])), hours(Decimal(m[2]))),
            False,
            False,
        ),
        (rf"\b{_EVERY}{_N}\s*-?{_HOURS}", lambda m: (hours(Decimal(m[1])),), False, False),
        (
            r"\b(?:round the clock )?q(4|6|8|12|24|48|72)\b(?!\s*(?:d|w|m|h))",
            lambda m: (hours(Decimal(m[1])),),
            False,
            False,
        ),
        (rf"\b{_N}[- ]?hourly\b", lambda m: (hours(Decimal(m[1])),), False, False),
        # Days.
        (
            rf"\b{_EVERY}(?:other|2nd|second|alternate)\s*(?:day|d|morning|evening"
            r"|night)\b|\bqod\b|\bq\.o\.d\.?|\balternate days\b"
            r"|\balternating days\b|\bon alternate days\b|\be\.?o\.?d\.?\b",
            lambda m: (days(Decimal(2)),),
            False,
            False,
        ),
        (
            rf"\b{_EVERY}{_N}\s*(?:-|to)\s*{_N}\s*-?(?:days?|d)\b",
            lambda m: _range(days(Decimal(m[1])), days(Decimal(m[2]))),
            False,
            False,
        ),
        (rf"\b{_EVERY}(?:third|3rd) day\b", lambda m: (days(Decimal(3)),), False, False),
        (rf"\b{_EVERY}{_N}\s*-?(?:days?|d)\b", lambda m: (days(Decimal(m[1])),), False, False),
        # Counts a day.
        (
            rf"\b(?:{_N}|twice|thrice)\s*(?:{_TIMES})?\s*(?:-\s*)?(?:daily|(?:a|per"
            rf"|each|every|in a|in)\s*{_DAY}|/\s*(?:day\b|d\b))",
            lambda m: (_times_a_day(m),),
            False,
            False,
        ),
        (r"\b(?:bid|b\.i\.d\.?|bd)(?![a-z])", _per_day(2), False, False),
        (r"\b(?:tid|t\.i\.d\.?|tds)(?![a-z])", _per_day(3), False, False),
        (r"\b(?:qid|q\.i\.d\.?|qds)(?![a-z])", _per_day(4), False, False),
        (
            r"\bfive times (?:a day|daily)\b",
            _per_day(5),
            False,
            False,
        ),
        (
            r"\b(?:in the |every |each |q)?(?:am|a\.m\.|morning)\s*(?:and|&"
            r"|\+)\s*(?:in the |every |at |each |q)?(?:pm|p\.m\.|evening|night|bedtime"
            r"|hs)\b",
            _per_day(2),
            False,
            True,
        ),
        # Meals: a named frequency beside them rules.
        (
            rf"\b(?:with|before|after|at) (?:each |every |all |the )?(?:{_MEAL})(?:,|"
            r" and|&)* (?:and )?(?:at )?(?:bedtime|hs|night)\b|\bachs\b|\bac ?(?:&"
            r"|and) ?hs\b",
            _per_day(4),
            True,
            False,
        ),
        (
            rf"\b(?:with|before|after|at) {_NAMED_MEAL}(?:,| and|&)+\s*(?:with"
            rf" )?{_NAMED_MEAL}(?:,| and|&)+\s*(?:with )?{_NAMED_MEAL}\b",
            _per_day(3),
            True,
            False,
        ),
        (
            rf"\b(?:with|before|after|at) (?:the )?{_NAMED_MEAL}(?: and|&|,)\s*(?:with "
            rf"|before |after )?(?:the )?{_NAMED_MEAL}\b"
            r"|\b(?:with|before|after) (?:the )?morning and evening meals?\b",
            _per_day(2),
            True,
            False,
        ),
        (
            r"\b(?:with|before|after|at) (?:(?:each|every|all|the|3|your) )?meals\b"
            r"|\b(?:with|before|after) (?:each|every) meal\b"
            r"|\bthree times (?:a day|daily) with meals\b|\bwith each meal\b|\bacm\b|\bq ?ac\b|\btidac\b",
            _per_day(3),
            True,
            False,
        ),
        (rf"\b(?:with|before|after|at) (?:the |your )?{_NAMED_MEAL}\b", _per_day(1), True, False),
        # Once a day.
        (
            r"\b(?:qhs|q\.h\.s\.?|q hs|at bedtime|nightly|every night|each night|at"
            r" night|hs|before bed|bedtime)(?![a-z])",
            _per_day(1),
            False,
            True,
        ),
        (
            r"\b(?:q ?am|qam|every morning|each morning|in the morning|q ?pm|qpm|every"
            r" evening|each evening|in the evening"
            r"|in the afternoon|q morning|q evening|at noon|am|pm)(?![a-z])",
            _per_day(1),
            False,
            True,
        ),
        (
            r"\b(?:once[- ]daily|once (?:a|per|every|each) day|once/day|once per 24"
            r" hours|1x ?/ ?day|1x daily|one time (?:a|per) day"
            r"|one time daily|every day|each day|daily|q ?day|qday|q\.d\.?|qd|q ?1 ?d"
            r"|od|per day|a day|/ ?day)(?![a-z])",
            _per_day(1),
            False,
            False,
        ),
        # A single dose, never daily.
        (
            r"\bx ?1\b(?! ?\d)(?!\s*(?:day|d\b|week|wk|month))|\bonce(?: only)?\b"
            r"|\b(?:single|one|1)[- ](?:time )?dose\b|\b(?:one|1)[- ]time\b|\bas a"
            r" single dose\b"
            r"|\bfor (?:one|1) dose\b|\bx ?1 dose\b|\bstat dose\b",
            lambda m: (Frequency("once"),),
            False,
            False,
        ),
    )
)
_NEGATED = re.compile(r"(?:\bnot|\bnever|\binstead of|\brather than|\bvs\.?|\bno longer)\s+(?:the\s+)?$")


def _times(match: re.Match[str]) -> Decimal:
    if match[1]:
        return Decimal(match[1])
    return Decimal(3 if match[0].startswith("thrice") else 2)


def _times_a_day(match: re.Match[str]) -> Frequency:
    return Frequency("per_day", _times(match))


def _per_week(match: re.Match[str]) -> Frequency:
    n = _times(match)
    return days(Decimal(7)) if n == 1 else Frequency("per_week", n)


def find(text: str) -> list[Stated]:
    """Every frequency stated in a normalised text, in order, not overlapping. "NOT daily" states none."""
    text = re.sub(r"\b(three|four|five|six|two|one) (?=times)", lambda m: f"{_TIMES_WORDS[m[1]]:<{len(m[1])}} ", text)
    text = re.sub(r"\btwice\b(?= (?:daily|a |per |every |each |weekly))", "twice", text)
    taken: list[Stated] = []
    covered = [False] * (len(text) + 1)
    for pattern, read, by_meals, time_of_day in _PATTERNS:
        for match in pattern.finditer(text):
            if match.start() == match.end() or any(covered[match.start() : match.end()]):
                continue
            for place in range(match.start(), match.end()):
                covered[place] = True
            if _NEGATED.search(text[: match.start()]):
                continue
            ends = read(match)
            taken.append(
                Stated(
                    match.start(),
                    match.end(),
                    ends or (),
                    alternatives=ends is None,
                    by_meals=by_meals,
                    time_of_day=time_of_day,
                )
            )
    return sorted(taken, key=lambda stated: stated.start)


_TIMES_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}


@cache
def read(text: str) -> tuple[Frequency, ...] | None:
    """What a declaration's frequency says: one frequency or the ends of a range; None where it cannot be read."""
    wanted = numerals(normal(text)).strip()
    found = find(wanted)
    if len(found) != 1 or found[0].alternatives:
        return None
    stated = found[0]
    rest = (wanted[: stated.start] + wanted[stated.end :]).strip(" .,")
    return stated.ends if not rest and all(end.kind != "unreadable" for end in stated.ends) else None


def of_repeat(repeat: Mapping[str, Any]) -> tuple[Frequency, ...]:
    """Frequency of a FHIR Timing.repeat: one value, or the ends of a range; empty where it states none."""
    found = []
    period, unit = repeat.get("period"), repeat.get("periodUnit")
    if period is not None and unit:
        for times in dict.fromkeys(
            (repeat.get("frequency", 1), repeat.get("frequencyMax", repeat.get("frequency", 1)))
        ):
            for span in dict.fromkeys((period, repeat.get("periodMax", period))):
                if (one := _of_period(Decimal(str(times)), Decimal(str(span)), str(unit))) is not None:
                    found.append(one)
    if not found:
        when = {str(code) for code in repeat.get("when", ())}
        named = len(when) or len(repeat.get("timeOfDay", ()))
        if when & {"C", "AC", "PC"}:
            return (Frequency("per_day", Decimal(3 + len(when & {"HS"}))),)
        if named:
            return (Frequency("per_day", Decimal(named)),)
        if days_of_week := repeat.get("dayOfWeek", ()):
            return (Frequency("per_week", Decimal(len(days_of_week))) if len(days_of_week) > 1 else days(Decimal(7)),)
    return tuple(dict.fromkeys(found))


def _of_period(times: Decimal, period: Decimal, unit: str) -> Frequency | None:
    if times <= 0 or period <= 0:
        return None
    match unit:
        case "h":
            return hours(period / times)
        case "d":
            return days(period) if times == 1 else (Frequency("per_day", times) if period == 1 else None)
        case "wk":
            if times == 1:
                return weeks(period)
            return (
                Frequency("per_day", Decimal(1))
                if times == 7 and period == 1
                else (Frequency("per_week", times) if period == 1 else None)
            )
        case "mo":
            return Frequency("months", period) if times == 1 else None
        case "a":
            return Frequency("months", period * 12) if times == 1 else None
    return None


#: HL7 v3 GTSAbbreviation and common EHR codes.
CODES = {
    "qd": "daily", "daily": "daily", "bid": "BID", "tid": "TID", "qid": "QID", "qod": "every other day",
    "am": "daily", "pm": "daily", "q4h": "q4h", "q6h": "q6h", "q8h": "q8h", "q12h": "q12h", "hs": "daily",
    "bed": "daily", "wk": "weekly", "mo": "monthly",
}  # fmt: skip


def any_satisfies(ends: Iterable[Frequency], wanted: Iterable[Frequency]) -> bool:
    """Every end of what is given is accepted by one of the wanted."""
    accepted = tuple(wanted)
    given = tuple(ends)
    return bool(given) and all(any(satisfies(end, one) for one in accepted) for end in given)
