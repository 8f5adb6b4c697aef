"""One resource in a few words, as a chart's line would name it: what, how much, when."""

from __future__ import annotations

import re
from datetime import date, datetime, tzinfo
from typing import Any

from graders.analytes import unit_words
from tasks.fhir.resources import Resource
from tasks.package import Task

#: Elements that name what the resource is about, in the order in which they are tried.
_NAMED_BY = ("code", "medicationCodeableConcept", "vaccineCode", "type", "category")
#: The elements that say when something happened, in the order in which they are believed.
TIMES: dict[str, tuple[str, ...]] = {
    "Observation": ("effectiveDateTime", "effectiveInstant", "effectivePeriod", "issued"),
    "DiagnosticReport": ("effectiveDateTime", "effectivePeriod", "issued"),
    "DocumentReference": ("date", "context.period"),
    "Composition": ("date",),
    "Condition": ("onsetDateTime", "onsetPeriod", "recordedDate", "abatementDateTime"),
    "Encounter": ("period",),
    "Procedure": ("performedDateTime", "performedPeriod"),
    "MedicationRequest": ("authoredOn",),
    "MedicationStatement": ("effectiveDateTime", "effectivePeriod", "dateAsserted"),
    "MedicationAdministration": ("effectiveDateTime", "effectivePeriod"),
    "MedicationDispense": ("whenHandedOver", "whenPrepared"),
    "AllergyIntolerance": ("recordedDate", "onsetDateTime", "lastOccurrence"),
    "Immunization": ("occurrenceDateTime",),
    "ServiceRequest": ("occurrenceDateTime", "occurrencePeriod", "authoredOn"),
    "Appointment": ("start", "created"),
    "Consent": ("dateTime",),
    "Communication": ("sent", "received"),
    "ImagingStudy": ("started",),
    "CarePlan": ("period", "created"),
    "Claim": ("created",),
    "FamilyMemberHistory": ("date",),
    "Specimen": ("collection.collectedDateTime", "receivedTime"),
}


def describe(resource: Resource, zone: tzinfo | None = None) -> str:
    """ "Creatinine in Serum or Plasma 1.1 mg/dL, 3 Mar 2025"; the type alone where it says no more.

    `zone`: the task's, in which a moment has its day; without it the day is the one that is written.
    """
    body = resource.body
    if resource.type == "Patient":
        born = f"born {_spoken(str(body['birthDate']), None)}" if body.get("birthDate") else ""
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
    if when := _day(body, zone):
        said += f", {when}"
    return said


def zone_of(task: Task) -> tzinfo | None:
    """The zone of the task's clock; None for a draft without one."""
    context = task.meta.context
    return context.now.tzinfo if context is not None and context.now is not None else None


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
        unit = unit_words(str(quantity.get("unit") or quantity.get("code") or ""))
        return f"{sign}{quantity['value']} {unit}".strip()
    return concept(body.get("valueCodeableConcept")) or str(body.get("valueString") or "")[:80]


def _day(body: dict[str, Any], zone: tzinfo | None) -> str:
    for path in TIMES.get(str(body.get("resourceType")), ("date", "period")):
        value: Any = body
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        if isinstance(value, dict):
            value = value.get("start") or value.get("end")
        if isinstance(value, str) and value:
            return _spoken(value, zone)
    return ""


def _spoken(written: str, zone: tzinfo | None) -> str:
    """ "3 Mar 2025", or no more of it than is written."""
    try:
        if len(written) < 10:
            year, _, month = written.partition("-")
            return f"{date(int(year), int(month), 1):%b %Y}" if month else written
        day = date.fromisoformat(written[:10])
        if zone is not None and "T" in written:
            at = datetime.fromisoformat(written)
            day = at.astimezone(zone).date() if at.tzinfo else day
    except (ValueError, OverflowError):
        return written[:10]
    return f"{day.day} {day:%b} {day.year}"
