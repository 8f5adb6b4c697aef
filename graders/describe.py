"""One resource in a few words, as a chart's line would name it: what, how much, when."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from tasks.fhir.resources import Resource

#: Elements that name what the resource is about, in the order in which they are tried.
_NAMED_BY = ("code", "medicationCodeableConcept", "vaccineCode", "type", "category")
#: Elements that say when, in the order in which they are tried.
_DATED_BY = (
    "effectiveDateTime",
    "authoredOn",
    "onsetDateTime",
    "performedDateTime",
    "date",
    "recordedDate",
    "sent",
    "start",
)


def describe(resource: Resource) -> str:
    """ "Creatinine in Serum or Plasma 1.1 mg/dL, Mar 3, 2025"; the type alone where it says no more."""
    body = resource.body
    if resource.type == "Patient":
        born = f"born {_spoken(str(body['birthDate']))}" if body.get("birthDate") else ""
        return ", ".join(part for part in ("patient", str(body.get("gender") or ""), born) if part)
    name = next((said for key in _NAMED_BY if (said := concept(body.get(key)))), "")
    if resource.type == "DocumentReference":
        name = name or "clinical note"
    # A LOINC name gives the property in brackets, which the unit already says.
    said = re.sub(r" \[[^\]]*\]", "", name) or resource.type
    if resource.type == "MedicationRequest" and body.get("status"):
        said += f" ({body['status']})"
    if value := _value(body):
        said += f" {value}"
    if when := _day(body):
        said += f", {when}"
    return said


def concept(value: Any) -> str:
    """The text of a CodeableConcept (of the first one of a list), else its first display, else its first code."""
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, dict):
        return ""
    coding = (value.get("coding") or [{}])[0]
    return str(value.get("text") or coding.get("display") or coding.get("code") or "")


def _value(body: dict[str, Any]) -> str:
    quantity = body.get("valueQuantity")
    if isinstance(quantity, dict) and "value" in quantity:
        sign = quantity.get("comparator") or ""
        return f"{sign}{quantity['value']} {quantity.get('unit') or quantity.get('code') or ''}".strip()
    return concept(body.get("valueCodeableConcept")) or str(body.get("valueString") or "")[:80]


def _day(body: dict[str, Any]) -> str:
    written = next((str(body[key]) for key in _DATED_BY if isinstance(body.get(key), str)), "")
    return _spoken(written)


def _spoken(written: str) -> str:
    try:
        day = date.fromisoformat(written[:10])
    except ValueError:
        return written[:10]
    return f"{day:%b} {day.day}, {day.year}"
