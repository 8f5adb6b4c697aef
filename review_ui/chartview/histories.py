"""What is read beside problems and drugs: allergies, social and family history, immunizations, open orders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any

from review_ui.chartview.elements import When, concept, each, element, quantity, time_of, when
from review_ui.chartview.facts import reaction_words, standing
from review_ui.chartview.labs import Measurement
from tasks.fhir.resources import Resource

#: The types that the sections are made of, beside Observations.
SHOWN = ("AllergyIntolerance", "FamilyMemberHistory", "Immunization", "ServiceRequest", "Appointment")
_OPEN = frozenset({"active", "on-hold", "draft"})
_COMING = frozenset({"proposed", "pending", "booked", "arrived", "waitlist"})


@dataclass(frozen=True)
class Entry:
    """One entry: what it is, what it says, when."""

    ref: str
    what: str
    detail: str
    when: When | None


@dataclass(frozen=True)
class Section:
    """Entries of one kind, newest first."""

    title: str
    entries: tuple[Entry, ...]


def sections(rows: Iterable[Resource], found: Iterable[Measurement], *, now: datetime, zone: tzinfo) -> list[Section]:
    """The sections that have entries at the clock; of each social finding the latest."""
    by_type: dict[str, list[Resource]] = {}
    for resource in rows:
        by_type.setdefault(resource.type, []).append(resource)
    made = {
        "Allergies": [
            _allergy(one, zone) for one in standing(by_type.get("AllergyIntolerance", []), now=now, zone=zone)
        ],
        "Social history": _social(found, now),
        "Family history": [_relative(one, zone) for one in _until(by_type.get("FamilyMemberHistory", []), now, zone)],
        "Immunizations": [_vaccine(one, zone) for one in _until(by_type.get("Immunization", []), now, zone)],
        "Orders and appointments outstanding": [
            *(one for row in by_type.get("ServiceRequest", []) if (one := _order(row, now, zone))),
            *(one for row in by_type.get("Appointment", []) if (one := _appointment(row, now, zone))),
        ],
    }
    return [Section(title, tuple(sorted(entries, key=_newest))) for title, entries in made.items() if entries]


def _newest(one: Entry) -> tuple[float, str]:
    return (-one.when.start.timestamp() if one.when else float("inf"), one.ref)


def _until(rows: Iterable[Resource], now: datetime, zone: tzinfo) -> list[Resource]:
    return [
        one
        for one in rows
        if one.body.get("status") != "entered-in-error" and ((at := time_of(one.body, zone)) is None or at.start <= now)
    ]


def _allergy(resource: Resource, zone: tzinfo) -> Entry:
    body = resource.body
    return Entry(resource.ref, concept(body.get("code")) or "no name", reaction_words(body), time_of(body, zone))


def _social(found: Iterable[Measurement], now: datetime) -> list[Entry]:
    latest: dict[str, Entry] = {}
    for one in found:
        point = one.point
        if "social-history" not in one.kinds or point is None or not one.resulted or point.when.start > now:
            continue
        name = concept(one.resource.body.get("code")) or "no name"
        key = min(one.codes, default=name)
        before = latest.get(key)
        if before is None or before.when is None or before.when.start <= point.when.start:
            latest[key] = Entry(point.ref, name, point.written, point.when)
    return list(latest.values())


def _relative(resource: Resource, zone: tzinfo) -> Entry:
    body = resource.body
    said = []
    for one in each(body.get("condition")):
        onset = quantity(one.get("onsetAge")) or str(one.get("onsetString") or "")
        words = [concept(one.get("code")), f"at {onset}" if onset else "", concept(one.get("outcome"))]
        said.append(" ".join(filter(None, words)))
    who = concept(body.get("relationship")) or str(body.get("name") or "") or "Relative"
    return Entry(resource.ref, who, "; ".join(filter(None, said)), time_of(body, zone))


def _vaccine(resource: Resource, zone: tzinfo) -> Entry:
    body = resource.body
    status = str(body.get("status") or "")
    reason = concept(body.get("statusReason"))
    detail = [{"not-done": "not given", "completed": ""}.get(status, status), reason, body.get("occurrenceString")]
    said = ", ".join(str(one) for one in detail if one)
    return Entry(resource.ref, concept(body.get("vaccineCode")) or "Vaccine", said, time_of(body, zone))


def _order(resource: Resource, now: datetime, zone: tzinfo) -> Entry | None:
    """An order that is open at the clock, whenever it is to be carried out."""
    body = resource.body
    authored = when(body.get("authoredOn"), zone)
    due = when(body.get("occurrenceDateTime"), zone) or when(element(body, "occurrencePeriod.start"), zone)
    known = authored or due
    if body.get("status") not in _OPEN or (known is not None and known.start > now):
        return None
    refused = body.get("doNotPerform") is True
    intent = str(body.get("intent") or "")
    detail: list[Any] = [
        "not to be done" if refused else "", str(body.get("status")).replace("-", " "),
        intent if intent in {"proposal", "plan", "option"} else "",
        body.get("priority") if body.get("priority") != "routine" else "", f"for {due}" if due else "",
    ]  # fmt: skip
    said = ", ".join(str(one) for one in detail if one)
    return Entry(resource.ref, concept(body.get("code")) or "Order", said, authored or due)


def _appointment(resource: Resource, now: datetime, zone: tzinfo) -> Entry | None:
    body = resource.body
    start, made = when(body.get("start"), zone), when(body.get("created"), zone)
    if body.get("status") not in _COMING or (made and made.start > now) or start is None or start.last < now:
        return None
    said = ", ".join(filter(None, [f"appointment on {start.with_time()}", str(body.get("status"))]))
    named = str(body.get("description") or concept(body.get("serviceType")) or "Appointment")
    return Entry(resource.ref, named, said, made or start)
