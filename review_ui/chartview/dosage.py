"""A dosage in words: how much, how often, by which route, only as needed or not, and at most how much.

Structured elements are put into words; a text is shown as it is written, with what it leaves out and the elements say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, tzinfo
from typing import Any

from review_ui.chartview.elements import concept, each, element, number, quantity, when
from tasks.fhir.resources import Resource

_UNITS = {"s": "second", "min": "minute", "h": "hour", "d": "day", "wk": "week", "mo": "month", "a": "year"}
#: HL7's EventTiming and TimingEvent codes, as people say them.
_EVENTS = {
    "MORN": "in the morning", "MORN.early": "early in the morning", "MORN.late": "late in the morning",
    "NOON": "at noon", "AFT": "in the afternoon", "AFT.early": "early in the afternoon",
    "AFT.late": "late in the afternoon", "EVE": "in the evening", "EVE.early": "early in the evening",
    "EVE.late": "late in the evening", "NIGHT": "at night", "PHS": "after going to sleep", "HS": "at bedtime",
    "WAKE": "on waking", "C": "with meals", "CM": "with breakfast", "CD": "with lunch", "CV": "with dinner",
    "AC": "before meals", "ACM": "before breakfast", "ACD": "before lunch", "ACV": "before dinner",
    "PC": "after meals", "PCM": "after breakfast", "PCD": "after lunch", "PCV": "after dinner",
}  # fmt: skip
_AS_NEEDED = re.compile(
    r"\b(?:prn|p\.r\.n|(?:as|when|if|where)[ -](?:needed|required|necessary))(?![a-z])", re.IGNORECASE
)
_AT_MOST = re.compile(r"\b(?:max\w*|exceed\w*|(?:no|not) more than|at most|up to)\b", re.IGNORECASE)


def dose_words(resource: Resource, *, whole: bool = False, zone: tzinfo = UTC) -> str:
    """Every dosage of an order, a statement, a fill or a dose given, in order; "" where none is stated.

    `whole`: beside a text also the dose and the route of the elements, where the text does not hold them.
    """
    every = list(each(resource.body.get("dosageInstruction") or resource.body.get("dosage")))
    said = (_words(one, zone, whole=whole, dated=len(every) > 1) for one in every)
    return "; ".join(filter(None, said))


def _words(dosage: Mapping[str, Any], zone: tzinfo, *, whole: bool, dated: bool) -> str:
    text = dosage.get("text")
    written = text.strip() if isinstance(text, str) else ""
    flat = " ".join(written.split()).casefold()
    dose, route, bounds = _dose(dosage), concept(dosage.get("route")), _bounds(dosage, zone)
    if written:
        parts = [dose if whole and dose.casefold() not in flat else "", written]
        parts.append(route if whole and route.casefold() not in flat else "")
        parts.append(f"({bounds})" if dated and bounds else "")
    else:
        more = concept(dosage.get("additionalInstruction"))
        parts = [dose, route, _timing(dosage, zone), bounds, f"({more})" if more else ""]
    needed, most = _as_needed(dosage, flat), _most(dosage, flat)
    return ", ".join(filter(None, [" ".join(filter(None, parts)), needed, most]))


def _dose(dosage: Mapping[str, Any]) -> str:
    """How much at a time, or at which rate; a dose given has both beside its text, an order in a list of its own."""
    found = quantity(dosage.get("dose"))
    rate = ""
    for one in [*each(dosage.get("doseAndRate")), dosage]:
        found = found or quantity(one.get("doseQuantity")) or _range(one.get("doseRange"))
        rate = rate or quantity(one.get("rateQuantity")) or _range(one.get("rateRange")) or _ratio(one.get("rateRatio"))
    return " ".join(filter(None, [found, f"at {rate}" if rate else ""]))


def _range(value: Any) -> str:
    low, high = quantity(element(value, "low")) if isinstance(value, Mapping) else "", ""
    if isinstance(value, Mapping):
        high = quantity(value.get("high"))
    if low and high:
        number_of, _, unit = low.partition(" ")
        return f"{number_of}–{high}" if unit in {"", high.partition(" ")[2]} else f"{low} to {high}"
    return f"at least {low}" if low else f"up to {high}" if high else ""


def _ratio(value: Any) -> str:
    if not isinstance(value, Mapping):
        return ""
    top, bottom = quantity(value.get("numerator")), _span(value.get("denominator"))
    return f"{top} in {bottom}" if top and bottom else top


def _span(value: Any) -> str:
    """A length of time: "24 hours", "1 week"; another quantity as it is written."""
    if not isinstance(value, Mapping):
        return ""
    amount, unit = number(value.get("value")), str(value.get("code") or value.get("unit") or "")
    if amount is None or unit not in _UNITS:
        return quantity(value)
    return f"{amount:g} {_UNITS[unit]}{'' if amount == 1 else 's'}"


def _as_needed(dosage: Mapping[str, Any], text: str) -> str:
    reason = concept(dosage.get("asNeededCodeableConcept"))
    if not reason and dosage.get("asNeededBoolean") is not True:
        return ""
    if _AS_NEEDED.search(text) and (not reason or reason.casefold() in text):
        return ""
    if _AS_NEEDED.match(reason):
        return reason
    return f"as needed for {reason}" if reason else "as needed"


def _most(dosage: Mapping[str, Any], text: str) -> str:
    found = []
    for most in each(dosage.get("maxDosePerPeriod")):
        amount = quantity(most.get("numerator"))
        if amount and not (amount.casefold() in text and _AT_MOST.search(text)):
            found.append(f"at most {_ratio(most)}")
    if amount := quantity(dosage.get("maxDosePerAdministration")):
        found.append(f"at most {amount} at a time")
    if amount := quantity(dosage.get("maxDosePerLifetime")):
        found.append(f"at most {amount} in a lifetime")
    return ", ".join(found)


def _timing(dosage: Mapping[str, Any], zone: tzinfo) -> str:
    if code := concept(element(dosage, "timing.code")):
        return code
    repeat = element(dosage, "timing.repeat")
    words = [_often(repeat)] if isinstance(repeat, Mapping) else []
    if isinstance(repeat, Mapping):
        days = ", ".join(one[:3].capitalize() for one in _texts(repeat.get("dayOfWeek")))
        words += [f"on {days}" if days else ""]
        words += [_EVENTS.get(one, one) for one in _texts(repeat.get("when"))]
        hours = ", ".join(one[:5] for one in _texts(repeat.get("timeOfDay")))
        words += [f"at {hours}" if hours else ""]
        count = number(repeat.get("count"))
        words += [f"{count:g} times in all" if count is not None and count != 1 else "once" if count else ""]
    events = ", ".join(str(at) for one in _texts(element(dosage, "timing.event")) if (at := when(one, zone)))
    return " ".join(filter(None, [*words, f"on {events}" if events else ""]))


def _texts(value: Any) -> list[str]:
    many: Iterable[Any] = value if isinstance(value, list) else [value]
    return [one for one in many if isinstance(one, str) and one]


def _often(repeat: Mapping[str, Any]) -> str:
    """ "once a day", "2 × a day", "every 6 hours", "1–2 × every 3 days"."""
    least, most = number(repeat.get("frequency")), number(repeat.get("frequencyMax"))
    period, longest = number(repeat.get("period")), number(repeat.get("periodMax"))
    unit = _UNITS.get(str(repeat.get("periodUnit")), "")
    if period is None or not unit:
        return f"{least:g} ×" if least is not None else ""
    how = f"{1 if least is None else least:g}" + (f"–{most:g}" if most is not None and most != least else "")
    single = period == 1 and longest in (None, 1)
    span = unit if single else f"{period:g}{f'–{longest:g}' if longest not in (None, period) else ''} {unit}s"
    if how == "1":
        return f"once a {unit}" if single and unit not in {"hour", "minute", "second"} else f"every {span}"
    return f"{how} × {'an' if unit == 'hour' else 'a'} {unit}" if single else f"{how} × every {span}"


def _bounds(dosage: Mapping[str, Any], zone: tzinfo) -> str:
    """For how long: "for 5 days", "1 Mar 2026 to 5 Mar 2026"."""
    repeat = element(dosage, "timing.repeat")
    if not isinstance(repeat, Mapping):
        return ""
    if span := _span(repeat.get("boundsDuration")):
        return f"for {span}"
    if isinstance(span_range := repeat.get("boundsRange"), Mapping):
        low, high = _span(span_range.get("low")), _span(span_range.get("high"))
        return f"for {low} to {high}" if low and high else f"for {low or high}" if low or high else ""
    period = repeat.get("boundsPeriod")
    if not isinstance(period, Mapping):
        return ""
    start, end = when(period.get("start"), zone), when(period.get("end"), zone)
    if start and end:
        return f"{start} to {end}"
    return f"from {start}" if start else f"until {end}" if end else ""
