"""Medications as the record lists them: a row a drug, an interval an order.

What a note says is really taken is not in here: it can be the case's trap, and is read in the notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any, Literal

from review_ui.chartview.dosage import dose_words
from review_ui.chartview.elements import When, concept, each, element, time_of, when
from tasks.fhir.chart import Records
from tasks.fhir.resources import Resource

State = Literal["active", "do not give", "on hold", "reported", "unknown", "planned", "draft", "not taken", "stopped"]
_ENDED = frozenset({"stopped", "completed", "cancelled", "entered-in-error"})
#: Intents that ask for nothing yet, in words.
_INTENTS = {"proposal": "proposed only", "plan": "planned only", "option": "one of several options"}
_FORM = re.compile(
    r"\b(?:oral|tablets?|tab|capsules?|cap|solution|suspension|injection|injectable|extended|delayed|release|er|xr|sr|"
    r"inhaler|cream|ointment|patch|spray|drops?|pen|product|pack|by|mouth)\b.*$",
    re.IGNORECASE,
)
_RANK: dict[State, int] = {
    "active": 0, "do not give": 1, "on hold": 2, "reported": 3, "unknown": 4, "planned": 5, "draft": 6, "not taken": 7,
    "stopped": 8,
}  # fmt: skip
#: States in which nothing of the drug is given or taken.
_NOT_GIVEN: frozenset[State] = frozenset({"do not give", "planned", "draft", "not taken"})
_HOURS = re.compile(r"^\s*[0-9]+\s*HR\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Interval:
    """One order or statement of a drug. `end` is the clock for one that runs.

    `status` is in words; `stated_end` is the last day that the record gives, past or still to come.
    """

    ref: str
    drug: str
    dose: str
    state: State
    status: str
    start: When
    end: datetime
    stated_end: When | None
    kind: str

    @property
    def end_stated(self) -> bool:
        """Whether the record gives the end."""
        return self.stated_end is not None

    @property
    def until(self) -> str:
        """How long, in words: "9 Mar 2026", "still listed", "not begun"."""
        match self.state:
            case "stopped":
                return str(self.stated_end or "end not stated")
            case "not taken":
                return "not taken"
            case "planned":
                return "not begun"
            case "unknown":
                return "not stated"
        return f"still listed, to {self.stated_end}" if self.stated_end else "still listed"


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


def _span(body: Mapping[str, Any], kind: str, zone: tzinfo) -> tuple[When | None, When | None, When | None]:
    """(start, end, when it was recorded). Of an order the first start and the last end of all its dosages: the steps of
    a taper are one course, which has an end only where each step has one."""
    if kind == "MedicationStatement":
        period = body.get("effectivePeriod")
        given: Mapping[str, Any] = period if isinstance(period, Mapping) else {"start": body.get("effectiveDateTime")}
        return when(given.get("start"), zone), when(given.get("end"), zone), when(body.get("dateAsserted"), zone)
    recorded = time_of(body, zone)
    starts, ends = [], []
    for dosage in each(body.get("dosageInstruction")):
        bounds = element(dosage, "timing.repeat.boundsPeriod")
        starts.append(when(bounds.get("start"), zone) if isinstance(bounds, Mapping) else None)
        ends.append(when(bounds.get("end"), zone) if isinstance(bounds, Mapping) else None)
    begun = [one or recorded for one in starts]
    start = min((one for one in begun if one), key=lambda one: one.start, default=None)
    known = [one for one in ends if one]
    end = max(known, key=lambda one: one.last) if known and len(known) == len(ends) else None
    return start, end, recorded


def _state(body: Mapping[str, Any], kind: str, *, begun: bool, over: bool) -> State:
    status, intent = str(body.get("status") or ""), str(body.get("intent") or "")
    if status == "not-taken":
        return "not taken"
    if status in _ENDED or over:
        return "stopped"
    if kind != "MedicationStatement" and body.get("doNotPerform") is True:
        return "do not give"
    if status == "on-hold":
        return "on hold"
    if status == "draft":
        return "draft"
    if status == "intended" or not begun or (kind != "MedicationStatement" and intent in _INTENTS):
        return "planned"
    if status != "active":
        return "unknown"
    return "reported" if kind == "MedicationStatement" else "active"


def interval(resource: Resource, records: Records, *, now: datetime, zone: tzinfo) -> Interval | None:
    """The interval of a MedicationRequest or MedicationStatement; None for one entered in error, without any date, or
    recorded after the clock. One that is to begin after the clock starts where it was recorded, as planned."""
    body = resource.body
    status = str(body.get("status") or "")
    if status == "entered-in-error":
        return None
    start, end, recorded = _span(body, resource.type, zone)
    start, known = start or recorded, recorded or start
    if start is None or known is None or known.start > now:
        return None
    begun = start.start <= now
    over = end is not None and end.last < now
    state = _state(body, resource.type, begun=begun, over=over)
    words = [status.replace("-", " ") or "status not stated"]
    if resource.type != "MedicationStatement":
        words += ["do not give"] if body.get("doNotPerform") is True else []
        words += filter(None, [_INTENTS.get(str(body.get("intent") or ""))])
    words += [f"to begin {start}"] if not begun else []
    first = start if begun else known
    return Interval(
        ref=resource.ref,
        drug=drug_words(resource, records),
        dose=dose_words(resource, zone=zone),
        state=state,
        status=", ".join(words),
        start=first,
        end=max(end.last if end and over else now, first.start),
        # An order that was stopped before its stated end did not end then.
        stated_end=end if over or state != "stopped" else None,
        kind=resource.type,
    )


def medications(rows: Iterable[Resource], records: Records, *, now: datetime, zone: tzinfo) -> list[Medication]:
    """A row a drug: running ones first, then by the last start, newest first.

    The end of a stopped order that does not state one is the start of the drug's next course, else unknown: its bar
    then runs to its own start, and `end_stated` is False.
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
                later = [
                    other.start.start
                    for other in ordered[place + 1 :]
                    if other.start.start > one.start.start and other.state not in _NOT_GIVEN
                ]
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
