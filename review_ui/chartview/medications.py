"""Medications as the record lists them: a row a drug, an interval an order.

What a note says is really taken is not in here: it can be the case's trap, and is read in the notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any, Literal

from review_ui.chartview.elements import When, concept, each, element, quantity, time_of, when
from tasks.fhir.chart import Records
from tasks.fhir.resources import Resource

State = Literal["active", "stopped", "on hold", "draft", "reported"]
_ENDED = frozenset({"stopped", "completed", "cancelled", "entered-in-error"})
_FORM = re.compile(
    r"\b(?:oral|tablets?|tab|capsules?|cap|solution|suspension|injection|injectable|extended|delayed|release|er|xr|sr|"
    r"inhaler|cream|ointment|patch|spray|drops?|pen|product|pack|by|mouth)\b.*$",
    re.IGNORECASE,
)
_RANK: dict[State, int] = {"active": 0, "on hold": 1, "reported": 2, "draft": 3, "stopped": 4}
_HOURS = re.compile(r"^\s*[0-9]+\s*HR\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Interval:
    """One order or statement of a drug. `end` is the clock for one that runs; `end_stated`: the record gives it."""

    ref: str
    drug: str
    written: str
    dose: str
    state: State
    status: str
    start: When
    end: datetime
    end_stated: bool
    kind: str


@dataclass(frozen=True)
class Medication:
    """One drug with its intervals, oldest first."""

    name: str
    intervals: tuple[Interval, ...]

    @property
    def state(self) -> State:
        """active if any interval is."""
        states = {interval.state for interval in self.intervals}
        return min(states, key=lambda state: _RANK[state])


def drug_words(resource: Resource, records: Records) -> str:
    """The drug as the resource names it, or as the Medication that it refers to does."""
    body = resource.body
    words = concept(body.get("medicationCodeableConcept"))
    if words:
        return words
    reference = element(body, "medicationReference.reference")
    if isinstance(reference, str):
        if reference.startswith("#"):
            for inner in each(body.get("contained")):
                if inner.get("id") == reference[1:]:
                    return concept(inner.get("code")) or "unnamed drug"
        elif (found := records.get(reference)) is not None:
            return concept(found.body.get("code")) or "unnamed drug"
    return str(element(body, "medicationReference.display") or "unnamed drug")


def drug_key(words: str) -> str:
    """The drug without strength and form: "Losartan 50 mg tablet" and "losartan 100 MG Oral Tablet" are one row."""
    name = _HOURS.sub("", words)
    name = re.split(r"\s+[0-9]", name, maxsplit=1)[0]
    name = _FORM.sub("", name).strip(" ,;-(")
    return (name or words).casefold()


def dose_words(resource: Resource) -> str:
    """The dosage as written: the text, else dose and timing."""
    lines = []
    for dosage in each(resource.body.get("dosageInstruction") or resource.body.get("dosage")):
        words = dosage.get("text")
        if not isinstance(words, str) or not words.strip():
            dose = next((quantity(rate.get("doseQuantity")) for rate in each(dosage.get("doseAndRate"))), "")
            words = " ".join(filter(None, [dose, concept(element(dosage, "timing.code")), _repeat(dosage)]))
        if words:
            lines.append(words)
    return "; ".join(lines)


def _repeat(dosage: Mapping[str, Any]) -> str:
    repeat = element(dosage, "timing.repeat")
    if not isinstance(repeat, Mapping) or concept(element(dosage, "timing.code")):
        return ""
    frequency, period, unit = repeat.get("frequency"), repeat.get("period"), repeat.get("periodUnit")
    if frequency is None or period is None:
        return ""
    names = {"d": "day", "h": "hour", "wk": "week", "mo": "month", "min": "minute", "a": "year", "s": "second"}
    return f"{frequency} × every {period} {names.get(str(unit), unit)}"


def interval(resource: Resource, records: Records, *, now: datetime, zone: tzinfo) -> Interval | None:
    """The interval of a MedicationRequest or MedicationStatement; None for one entered in error or without any date."""
    body = resource.body
    status = str(body.get("status") or "")
    if status == "entered-in-error":
        return None
    dosages = each(body.get("dosageInstruction") or body.get("dosage"))
    bounds: Any = next((found for dosage in dosages if (found := element(dosage, "timing.repeat.boundsPeriod"))), {})
    if resource.type == "MedicationStatement":
        period = body.get("effectivePeriod") or {"start": body.get("effectiveDateTime")}
    else:
        period = bounds if isinstance(bounds, dict) else {}
    start = when(period.get("start"), zone) if isinstance(period, dict) else None
    start = start or time_of(body, zone)
    if start is None or start.start > now:
        return None
    written_end = when(period.get("end"), zone) if isinstance(period, dict) else None
    ended = status in _ENDED or (written_end is not None and written_end.start <= now)
    end = written_end.start if written_end and written_end.start <= now else now
    state: State
    if ended:
        state = "stopped"
    elif status == "on-hold":
        state = "on hold"
    elif status == "draft":
        state = "draft"
    else:
        state = "reported" if resource.type == "MedicationStatement" else "active"
    return Interval(
        ref=resource.ref,
        drug=drug_words(resource, records),
        written=drug_words(resource, records),
        dose=dose_words(resource),
        state=state,
        status=status or "not stated",
        start=start,
        end=max(end, start.start),
        end_stated=written_end is not None and written_end.start <= now,
        kind=resource.type,
    )


def medications(rows: Iterable[Resource], records: Records, *, now: datetime, zone: tzinfo) -> list[Medication]:
    """A row a drug: running ones first, then by the last start, newest first.

    The end of a stopped order that does not state one is the start of the drug's next order, else unknown: its bar then
    runs to its own start, and `end_stated` is False.
    """
    groups: dict[str, list[Interval]] = {}
    for resource in rows:
        if found := interval(resource, records, now=now, zone=zone):
            groups.setdefault(drug_key(found.drug), []).append(found)
    made = []
    for each_group in groups.values():
        ordered = sorted(each_group, key=lambda one: (one.start.start, one.ref))
        closed = []
        for place, one in enumerate(ordered):
            if one.state == "stopped" and not one.end_stated:
                later = [other.start.start for other in ordered[place + 1 :] if other.start.start > one.start.start]
                closed.append(replace(one, end=later[0] if later else one.start.start))
            else:
                closed.append(one)
        name = ordered[-1].drug
        made.append(Medication(short_name(name), tuple(closed)))
    made.sort(key=lambda one: (_RANK[one.state], -max(i.start.start.timestamp() for i in one.intervals), one.name))
    return made


def short_name(words: str) -> str:
    """The drug's name for a row's label: without strength and form."""
    name = re.split(r"\s+[0-9]", _HOURS.sub("", words), maxsplit=1)[0]
    name = _FORM.sub("", name).strip(" ,;-(") or words
    return name[:1].upper() + name[1:]
