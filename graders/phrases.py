"""The words that plain sentences are built from: amounts, frequencies, routes, spans of time, forms of an order."""

from __future__ import annotations

import re

ROUTES: dict[str, str] = {
    "oral": "by mouth",
    "sublingual": "under the tongue",
    "IV": "by intravenous route",
    "IM": "by intramuscular injection",
    "subcutaneous": "by subcutaneous injection",
    "inhaled": "by inhalation",
    "nasal": "into the nose",
    "topical": "on the skin",
    "transdermal": "as a skin patch",
    "ophthalmic": "into the eye",
    "rectal": "by rectum",
    "vaginal": "by vagina",
}

FREQUENCIES: dict[str, str] = {
    "once": "as a single dose",
    "daily": "once daily",
    "bid": "twice daily",
    "tid": "three times daily",
    "qid": "four times daily",
    "every other day": "every other day",
    "weekly": "once weekly",
    "twice weekly": "twice weekly",
    "monthly": "once a month",
}

URGENCIES: dict[str, str] = {
    "routine": "routine",
    "urgent": "urgent or higher",
    "asap": "ASAP or higher",
    "stat": "STAT",
}

CONTRASTS: dict[str, str] = {
    "with": "with contrast",
    "without": "without contrast",
    "both": "with and without contrast",
}

#: (order type, form) -> how it must stand in the record.
FORMS: dict[tuple[str, str], str] = {
    ("MedicationRequest", "orders"): "as an active order",
    ("ServiceRequest", "orders"): "as an active order",
    ("Appointment", "orders"): "as a booked appointment",
    ("Communication", "orders"): "in a sent message",
    ("MedicationRequest", "pends"): "as a draft or proposed order for signature",
    ("ServiceRequest", "pends"): "as a draft or proposed order for signature",
    ("Appointment", "pends"): "as a proposed or pending appointment",
    ("Communication", "pends"): "in a sent message",
}

#: Key of an order row -> the word for it in "one with another ...".
CHECKED_KEYS: dict[str, str] = {
    "ingredient": "drug",
    "drug_class": "drug class",
    "release": "release form",
    "dose": "dose",
    "daily": "daily dose",
    "frequency": "frequency",
    "prn": "schedule",
    "max_daily": "daily maximum",
    "route": "route",
    "duration": "duration",
    "taper": "taper",
    "steps": "dose schedule",
    "test": "test",
    "imaging": "study",
    "referral": "specialty",
    "procedure": "procedure",
    "urgency": "urgency",
    "when": "time",
    "trigger": "condition",
    "act": "action",
    "owner": "owner",
    "reason": "reason",
    "replaces": "replaced drug",
}
#: The same words, in the order in which a sentence lists them.
CHECKED: tuple[str, ...] = tuple(CHECKED_KEYS.values())

_UNITS = {
    "h": "hour",
    "hr": "hour",
    "hour": "hour",
    "d": "day",
    "day": "day",
    "wk": "week",
    "w": "week",
    "week": "week",
    "mo": "month",
    "month": "month",
    "y": "year",
    "yr": "year",
    "year": "year",
}
_SPAN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:-\s*(\d+(?:\.\d+)?))?\s*([A-Za-z]+?)s?\s*")
#: Longer signs first.
_SIGNS = (
    (">=", "at least"), ("≥", "at least"), ("<=", "at most"), ("≤", "at most"), (">", "more than"), ("<", "less than"),
)  # fmt: skip
_RANGE = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)\s*-\s*(\d[\d,]*(?:\.\d+)?)")


def span(text: str) -> str:
    """A span of time in words: "5-10 d" -> "5 to 10 days", "<=1 wk" -> "at most 1 week"; another form stays."""
    for sign, words in _SIGNS:
        if text.strip().startswith(sign):
            return f"{words} {span(text.strip().removeprefix(sign).strip())}"
    match = _SPAN.fullmatch(text)
    unit = _UNITS.get(match.group(3).lower()) if match else None
    if match is None or unit is None:
        return text
    low, high = match.group(1), match.group(2)
    number = f"{low} to {high}" if high else low
    return f"{number} {unit}{'' if number == '1' else 's'}"


def amount(text: str) -> str:
    """An amount in words: "2.5-5 mg" -> "2.5 to 5 mg", ">700 mg" -> "more than 700 mg"."""
    said = _RANGE.sub(r"\1 to \2", text.strip())
    for sign, words in _SIGNS:
        if said.startswith(sign):
            return f"{words} {said.removeprefix(sign).strip()}"
    return said


def frequency(text: str) -> str:
    """A frequency in words: "BID" -> "twice daily", "q8h" -> "every 8 hours"."""
    said = " ".join(text.split())
    if known := FREQUENCIES.get(said.casefold()):
        return known
    if clock := re.fullmatch(r"q(\d+)\s*h", said, re.IGNORECASE):
        return f"every {span(clock.group(1) + ' h')}"
    return said
