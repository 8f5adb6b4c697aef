"""What happened when: visits, emergencies, procedures, imaging and notes on one axis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Literal

from review_ui.chartview.elements import When, code_of, codings, concept, each, time_of, when
from tasks.fhir.resources import Resource

Lane = Literal["Visits", "Emergency, inpatient", "Procedures", "ECG, imaging", "Notes"]
LANES: tuple[Lane, ...] = ("Visits", "Emergency, inpatient", "Procedures", "ECG, imaging", "Notes")
_ACUTE = frozenset({"EMER", "IMP", "ACUTE", "NONAC", "OBSENC", "SS"})
_IMAGING = frozenset({"RAD", "CUS", "CTH", "NMR", "NMS", "RUS", "XRC", "EC", "CT", "imaging"})
_ECG = frozenset({"11524-6", "34534-8", "8601-7"})
#: The types that the timeline is made of.
SHOWN = ("Encounter", "Procedure", "DiagnosticReport", "ImagingStudy", "DocumentReference", "Composition")


@dataclass(frozen=True)
class Event:
    """One thing on the timeline."""

    ref: str
    lane: Lane
    when: When
    end: datetime | None
    words: str


def event(resource: Resource, zone: tzinfo) -> Event | None:
    """The resource as an event; None for one that never was, has no time, or has no lane."""
    body = resource.body
    at = time_of(body, zone)
    if at is None or body.get("status") in {"entered-in-error", "cancelled", "not-done"}:
        return None
    end = None
    if resource.type == "Encounter":
        acute = code_of(body.get("class")) in _ACUTE
        lane: Lane = "Emergency, inpatient" if acute else "Visits"
        words = _first(body.get("type")) or concept(body.get("class")) or "Visit"
        reason = _first(body.get("reasonCode"))
        words = f"{words}: {reason}" if reason else words
        period = body.get("period")
        ended = when(period.get("end"), zone) if isinstance(period, dict) else None
        end = ended.start if ended else None
    elif resource.type == "Procedure":
        lane, words = "Procedures", concept(body.get("code")) or "Procedure"
    elif resource.type == "ImagingStudy":
        lane, words = "ECG, imaging", str(body.get("description") or "") or "Imaging study"
    elif resource.type == "DiagnosticReport":
        codes = {code for category in each(body.get("category")) for _, code, _ in codings(category)}
        if not codes & _IMAGING and not {code for _, code, _ in codings(body.get("code"))} & _ECG:
            return None
        lane, words = "ECG, imaging", concept(body.get("code")) or "Report"
    else:
        lane, words = "Notes", concept(body.get("type")) or str(body.get("title") or "") or "Note"
    return Event(resource.ref, lane, at, end, words)


def _first(concepts: object) -> str:
    return next((words for one in each(concepts) if (words := concept(one))), "")


def timeline(resources: Iterable[Resource], *, now: datetime, zone: tzinfo) -> list[Event]:
    """The events at or before the clock, oldest first."""
    found = [made for resource in resources if (made := event(resource, zone)) and made.when.start <= now]
    return sorted(found, key=lambda one: (one.when.start, one.ref))
