"""Checks of text and chart: identifiers, the clock, sources, what is asked, and what gives the answer away."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

from authoring.gate.results import Check, checked
from graders.orders import doses, drugs
from graders.orders.text import normal
from tasks.anchors import Anchor, plain, texts
from tasks.declarations import Checkpoint
from tasks.errors import DeclarationError
from tasks.fhir.resources import Resource
from tasks.package import Task

#: How many checks `checks` makes.
COUNT = 5


def checks(task: Task) -> Iterator[Check]:
    """Each in turn. A draft without checkpoints or clock is checked for what it has."""
    read = _Read(task)
    yield _identifiers(read)
    yield _asked(task)
    yield _leaks(read)
    yield _clock(read)
    yield _sources(task)


class _Read:
    """The texts of a package, read once."""

    def __init__(self, task: Task) -> None:
        self.task = task

    @cached_property
    def resources(self) -> tuple[Resource, ...]:
        return tuple(self.task.chart.resources())

    @cached_property
    def chart_texts(self) -> tuple[tuple[str, str], ...]:
        """(reference, text) for every text of the chart that is written for people; attachments decoded."""
        return tuple((one.ref, text) for one in self.resources for text in texts(one.body))

    @cached_property
    def other_texts(self) -> tuple[tuple[str, str], ...]:
        """(path, line) of every other text of the package, reviews apart."""
        found = []
        for path, data in sorted(self.task.files.items()):
            if not path.startswith(("chart/", "reviews/")):
                text = data.decode("utf-8", errors="replace")
                found += [(f"{path}:{number}", line) for number, line in enumerate(text.split("\n"), start=1)]
        return tuple(found)


# ---- identifiers ----------------------------------------------------------------------------------------------------

_WEB = re.compile(r"\b(?:https?|ftp)://\S+|\bwww\.\w+\.\w+", re.I)
#: What looks like an identifier of Safe Harbor (45 CFR 164.514(b)(2)) in free text. Names need a reader.
_IDENTIFIERS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a social security number", re.compile(r"(?<![\d-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])")),
    ("a social security number", re.compile(r"\b(?:ssn|social security)\b\D{0,12}\d{3}[- ]?\d{2}[- ]?\d{4}\b", re.I)),
    (
        "a telephone number",
        re.compile(r"(?<![\w.-])(?:\+?1[-. ]?)?(?:\(\d{3}\)\s?|\d{3}[-.])\d{3}[-. ]\d{4}(?![\w-])(?!\.\d)"),
    ),
    (
        "a telephone number",
        re.compile(r"\b(?:phone|tel|fax|cell|pager)\b\.?\s*(?:no\.?|number|#)?\s*:?\s*\+?\d[\d ().-]{6,}\d", re.I),
    ),
    ("a telephone number", re.compile(r"(?<![\w.])\+\d{1,3}[ -]?\(?\d{2,4}\)?(?:[ -]?\d{2,4}){2,4}(?!\w)")),
    (
        "a medical record number",
        re.compile(
            r"\b(?:mrn|medical record (?:no|number|#)|chart (?:no|number|#)|acct|account (?:no|number|#))"
            r"\W{0,4}(?:is\s)?\d[\d-]{4,}",
            re.I,
        ),
    ),
    ("an e-mail address", re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}")),
    ("a web address", _WEB),
    (
        "an IP address",
        re.compile(r"(?<![\d.])(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}(?![\d.])"),
    ),
    (
        "a postal address",
        re.compile(
            r"\b\d{1,5}\s+(?:[NSEW]\.?\s+)?(?:[A-Z][a-z]+\s){1,3}"
            r"(?:Street|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Court)\b"
        ),
    ),
    (
        "a device or vehicle number",
        re.compile(r"\b(?:VIN|serial (?:no|number|#)|license plate)\W{0,4}\w*\d[\w-]{5,}", re.I),
    ),
)
#: Elements that carry identifiers as such.
_CARRIERS = ("telecom", "photo", "contact")


def _identifiers(read: _Read) -> Check:
    wrong = []
    for place, text in (*read.chart_texts, *read.other_texts):
        for what, pattern in _IDENTIFIERS:
            if pattern is _WEB and not _is_prose(place, text):
                # A text that is an address alone, or stands in data, names a code system or a profile.
                continue
            if pattern.search(text):
                # What it is and where, never the text itself.
                wrong.append(f"{place} holds what looks like {what}")
    for resource in read.resources:
        if resource.type in ("Patient", "RelatedPerson"):
            wrong += [f"{resource.ref} has {key}" for key in _CARRIERS if resource.body.get(key)]
            if any(address.get("line") for address in resource.body.get("address") or ()):
                wrong.append(f"{resource.ref} has a street address")
            if any(len(str(one.get("value", ""))) >= 6 for one in resource.body.get("identifier") or ()):
                wrong.append(f"{resource.ref} has an identifier with a number of its own")
    detail = f"{len(read.chart_texts)} texts of {len(read.resources)} resources, and all files; names need a reader"
    return checked("Nothing looks like an identifier", list(dict.fromkeys(wrong)), detail)


def _is_prose(place: str, text: str) -> bool:
    file = place.rsplit(":", 1)[0]
    return " " in text.strip() and not file.endswith((".json", ".jsonl", ".toml", ".py"))


# ---- what is asked --------------------------------------------------------------------------------------------------


def _asked(task: Task) -> Check:
    """Whether each checkpoint quotes the words of the instruction that ask for it."""
    name = "Nothing is graded that is not asked"
    if not task.checkpoints:
        return Check(name, "skipped", "a draft has no checkpoints yet")
    wrong = []
    for checkpoint in task.checkpoints:
        anchors = [anchor for entry in checkpoint.rests_on if (anchor := _anchor(entry)) is not None]
        if not any(anchor.is_instruction and anchor.quote for anchor in anchors):
            wrong.append(f"{checkpoint.id}: rests_on quotes no words of the instruction that ask for it")
        wrong += [
            f"{checkpoint.id}: {path} is not named in the instruction"
            for path in dict.fromkeys((checkpoint.file, checkpoint.extract.file if checkpoint.extract else None))
            if path and path not in task.instruction
        ]
    return checked(name, wrong, f"{len(task.checkpoints)} checkpoints anchored in the instruction")


def _anchor(entry: str) -> Anchor | None:
    try:
        return Anchor.parse(entry)
    except DeclarationError:
        return None


# ---- leaks ----------------------------------------------------------------------------------------------------------

#: Shortest sentence of a deliverable, in characters, and shortest title, in words, whose repetition is no accident.
_LONG_SENTENCE, _LONG_TITLE = 60, 4
_PACKAGE_PARTS = re.compile(r"\b(?:checkpoints\.(?:toml|py)|solution/|actions\.jsonl|rests_on|must_not)\b")


def _leaks(read: _Read) -> Check:
    task = read.task
    instruction = plain(task.instruction).casefold()
    chart = [(ref, plain(text).casefold()) for ref, text in read.chart_texts if len(text) >= _LONG_SENTENCE]
    wrong = []
    quoted = [
        plain(anchor.quote).casefold()
        for checkpoint in task.checkpoints
        for entry in checkpoint.rests_on
        if (anchor := _anchor(entry)) is not None and anchor.quote
    ]
    for name, sentence in _sentences(task):
        said = plain(sentence).casefold().strip(" -*#|")
        if len(said) < _LONG_SENTENCE:
            continue
        if said in instruction:
            wrong.append(f"instruction.md holds a sentence of {name}")
        # A plan may quote the chart; then the sentence holds a graded quotation.
        if not any(quote in said for quote in quoted):
            wrong += [f"{ref} holds a sentence of {name}" for ref, text in chart if said in text]
    for checkpoint in task.checkpoints:
        title = plain(checkpoint.title).casefold()
        if len(title.split()) >= _LONG_TITLE:
            places = [("instruction.md", instruction), *chart]
            wrong += [f"{place} holds the title of {checkpoint.id}" for place, text in places if title in text]
        wrong += [f"instruction.md gives the answer of {checkpoint.id}: {said}" for said in _told(checkpoint, task)]
    guid = task.meta.provenance.contamination_guid if task.meta.provenance else None
    for place, text in (("instruction.md", task.instruction), *read.chart_texts):
        if guid and guid in text:
            wrong.append(f"{place} holds the contamination GUID")
        if found := _PACKAGE_PARTS.search(text):
            wrong.append(f"{place} speaks of the package ({found[0]})")
    return checked("No answer in what the agent can read", list(dict.fromkeys(wrong)), "instruction and chart")


def _sentences(task: Task) -> Iterator[tuple[str, str]]:
    for name, plan in sorted(task.plans.items()):
        for path, data in sorted(plan.files.items()):
            for line in data.decode("utf-8", errors="replace").split("\n"):
                for sentence in re.split(r"(?<=[.!?])\s+", line):
                    yield f"solution/{name}/{path}", sentence


def _told(checkpoint: Checkpoint, task: Task) -> Iterator[str]:
    """A drug of the answer with its dose, in one sentence of the instruction."""
    rows = checkpoint.order.accept if checkpoint.order else ()
    for sentence in re.split(r"(?<=[.!?])\s+|\n", task.instruction):
        said = normal(sentence)
        named = {part for one in drugs.mentions(said) for part in one.drug.components}
        for row in rows:
            wanted = drugs.read_name(row.ingredient) if row.ingredient else None
            dose = doses.read_dose(row.dose) if row.dose else None
            if wanted is None or dose is None or not set(wanted.components) <= named:
                continue
            amounts = [doses.read_amount(found[0]) for found in re.finditer(_DOSE, said)]
            if any(amount is not None and amount in dose for amount in amounts):
                yield f"{row.ingredient} {row.dose}"


_DOSE = r"\d[\d,]*(?:\.\d+)?\s*(?:mcg|mg|g|units?|meq|mmol|ml)\b"


# ---- clock ----------------------------------------------------------------------------------------------------------

#: Elements that say when something was made, seen or recorded; they lie before `now`. Not the ones that plan ahead.
_RECORDED = frozenset(
    {"recorded", "recordedDate", "recordedOn", "issued", "date", "authored", "authoredOn", "dateAsserted",
     "assertedDate", "lastUpdated", "lastModified", "created", "sent", "received", "effectiveDateTime",
     "effectiveInstant", "performedDateTime", "onsetDateTime", "abatementDateTime", "lastOccurrence", "birthDate",
     "deceasedDateTime", "collectedDateTime", "receivedTime", "whenHandedOver", "whenPrepared", "started", "creation",
     "time", "changed", "statusDate", "authenticatedOn", "signed", "asserted", "entered"}
)  # fmt: skip
#: Periods that are over or under way; a period's end may lie ahead only where something is planned.
_PERIODS = frozenset({"effectivePeriod", "performedPeriod", "onsetPeriod", "abatementPeriod", "collectedPeriod"})
_PLANNED = frozenset(
    {"Appointment", "AppointmentResponse", "CarePlan", "Goal", "Task", "Coverage", "Slot", "Schedule", "Account"}
)


def _clock(read: _Read) -> Check:
    name = "Nothing was recorded after the clock"
    context = read.task.meta.context
    if context is None or context.now is None:
        return Check(name, "skipped", "a draft has no clock yet")
    wrong = []
    for resource in read.resources:
        for path, value in _moments(resource.type, resource.body, resource.type):
            if _after(value, context.now):
                wrong.append(f"{resource.ref} {path} is {value}, after {context.now.isoformat()}")
    return checked(name, wrong, f"{len(read.resources)} resources before {context.now.isoformat()}")


def _moments(type: str, value: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for key, inner in value.items():
        here = f"{path}.{key}"
        if isinstance(inner, str):
            if key in _RECORDED or (type == "Immunization" and key == "occurrenceDateTime"):
                yield here, inner
        elif isinstance(inner, Mapping):
            if key in _PERIODS or (key == "period" and type not in _PLANNED):
                starts = inner.get("start"), inner.get("end") if _is_over(type, value) else None
                yield from ((here, moment) for moment in starts if isinstance(moment, str))
            yield from _moments(type, inner, here)
        elif isinstance(inner, list):
            for number, item in enumerate(inner):
                if isinstance(item, Mapping):
                    yield from _moments(type, item, f"{here}[{number}]")


def _is_over(type: str, body: Mapping[str, Any]) -> bool:
    """Whether the end of a period has happened: of an encounter only where it says finished."""
    return type != "Encounter" or body.get("status") == "finished"


def _after(value: str, now: datetime) -> bool:
    """Whether the earliest moment that a FHIR date can mean lies after `now`; a date is read in the zone of `now`."""
    if "T" not in value:
        return value[:10] > now.date().isoformat()[: len(value)]
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return False
    return (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)) > now


# ---- sources --------------------------------------------------------------------------------------------------------


def _sources(task: Task) -> Check:
    name = "Sources are not newer than the clock and not superseded"
    now = task.meta.context.now if task.meta.context else None
    if now is None or not task.checkpoints:
        return Check(name, "skipped", "a draft has no clock or no checkpoints yet")
    wrong, count, unverified = [], 0, 0
    for checkpoint in task.checkpoints:
        for source in checkpoint.source:
            count += 1
            unverified += not source.verified
            said = f"{checkpoint.id}: {source.org} {source.year}"
            if source.year > now.year:
                wrong.append(f"{said} is newer than the task's clock")
            if source.superseded_by:
                wrong.append(f"{said} is superseded by {source.superseded_by}")
    detail = f"{count} sources, {unverified} not verified"
    return checked(name, wrong, detail)
