"""A stored trial as steps to read: plain verbs, what was found, what the agent saw; and its orders in clinical words.

No page in here. The trajectory is read once into small rows with the place of each line in the file; the full text of
a step is read when it is asked for, so that a trial of 10,000 steps opens as fast as one of ten.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from graders.shown import resource_spans
from review_ui.chartview.dosage import dose_words
from review_ui.chartview.elements import concept, each, element, when
from review_ui.chartview.words import Line, line
from tasks.declarations import Checkpoint
from tasks.errors import ChartError
from tasks.fhir.chart import Records
from tasks.fhir.resources import Resource
from tasks.toolnames import WRITE_FILE
from tasks.trials import CallCite, QuoteCite, ResourceCite, ToolCall, Verdict, Write

VERBS = {
    "fhir_patient_search_demographics": "Search patients",
    "fhir_condition_search_problems": "Search problems",
    "fhir_observation_search_labs": "Search labs",
    "fhir_observation_search_vitals": "Search vitals",
    "fhir_observation_search_social_history": "Search social history",
    "fhir_procedure_search_orders": "Search procedures",
    "fhir_medication_request_search_orders": "Search medications",
    "fhir_document_reference_search_clinical_notes": "Search notes",
    "fhir_service_request_search": "Search orders",
    "fhir_medication_request_create": "Order medication",
    "fhir_service_request_create": "Order test or service",
    "fhir_appointment_create": "Book appointment",
    "fhir_communication_create_message": "Send message",
    WRITE_FILE: "Write file",
}
#: Resource type that a write makes -> the word of its chip and its icon.
WRITES = {
    "MedicationRequest": ("order", "pill"),
    "ServiceRequest": ("order", "science"),
    "Appointment": ("appointment", "event"),
    "Communication": ("message", "mail"),
}
_SUBJECT = frozenset({"patient", "subject", "patient_reference", "requester_reference", "count", "page_limit"})
_TOTAL = re.compile(r'"total"\s*:\s*([0-9]+)')


@dataclass(frozen=True)
class Step:
    """One tool call of a trial as a row. `offset` is where its line starts in trajectory.jsonl.

    `total` is the count that a search reported; `length` and `shown` are characters of the result.
    """

    n: int
    turn: int
    tool: str
    words: str
    total: int | None
    length: int
    shown: int
    error: bool
    writes: tuple[int, ...]
    offset: int

    @property
    def verb(self) -> str:
        """The tool in plain words; a tool that does not exist is named as it was called."""
        return VERBS.get(self.tool, self.tool)

    @property
    def cut(self) -> bool:
        """Whether the agent was shown less than the whole result."""
        return self.shown < self.length


@dataclass(frozen=True)
class Ending:
    """Something of the trajectory that is no tool call: a limit that stopped it, an error."""

    kind: str
    words: str


@dataclass(frozen=True)
class Trajectory:
    """What is needed to list a trial's steps. `damaged`: lines that cannot be read."""

    steps: tuple[Step, ...]
    endings: tuple[Ending, ...]
    final: str
    prompt: str
    profile: str
    model: str
    damaged: int


def read(path: Path) -> Trajectory:
    """The rows of trajectory.jsonl; empty where there is none. A line cut short by a killed process is counted."""
    steps: list[Step] = []
    endings: list[Ending] = []
    final = prompt = profile = model = ""
    damaged = 0
    offset = 0
    try:
        handle = path.open("rb")
    except FileNotFoundError:
        return Trajectory((), (), "", "", "", "", 0)
    with handle:
        for row in handle:
            start, offset = offset, offset + len(row)
            try:
                event = json.loads(row)
                data = event["data"]
                match event["type"]:
                    case "tool":
                        steps.append(_step(data, start))
                    case "model":
                        final = str(data.get("text") or "") or final
                        model = str(data.get("model") or "") or model
                    case "system":
                        prompt, profile = str(data.get("text") or ""), str(data.get("profile") or "")
                    case "limit":
                        endings.append(Ending("limit", f"{data.get('limit', '')}: {data.get('detail', '')}"))
                    case "error":
                        endings.append(Ending("error", f"{data.get('outcome', '')}: {data.get('detail', '')}"))
            except (ValueError, KeyError, TypeError):
                damaged += 1
    return Trajectory(tuple(steps), tuple(endings), final, prompt, profile, model, damaged)


def _step(data: Mapping[str, Any], offset: int) -> Step:
    result = str(data.get("result") or "")
    arguments = data.get("arguments")
    found = _TOTAL.findall(result[-400:]) if result.startswith('{"entries"') else []
    return Step(
        n=int(data["n"]),
        turn=int(data["turn"]),
        tool=str(data["tool"]),
        words=argument_words(str(data["tool"]), arguments),
        total=int(found[-1]) if found else None,
        length=len(result),
        shown=int(data["shown"]),
        error=bool(data.get("error")),
        writes=tuple(int(one) for one in data.get("writes") or ()),
        offset=offset,
    )


def argument_words(tool: str, arguments: Any) -> str:
    """What a call asked for, without what every call repeats: "creatinine, since 2025-03"."""
    if not isinstance(arguments, dict):
        return _short(str(arguments), 120)
    if tool == WRITE_FILE:
        return f"{arguments.get('file_path', '')}, {len(str(arguments.get('content', '')).split())} words"
    keys: tuple[str, ...]
    if tool == "fhir_medication_request_create":
        keys = ("medication_display", "dose_value", "dose_unit", "frequency_text", "route_display", "status")
    elif tool == "fhir_service_request_create":
        keys = ("code_display", "occurrence_datetime", "priority", "status")
    elif tool == "fhir_appointment_create":
        keys = ("description", "start", "status")
    elif tool == "fhir_communication_create_message":
        keys = ("message_text",)
    else:
        shown = [
            f"{key} {value}" for key, value in arguments.items() if key not in _SUBJECT and value not in (None, "")
        ]
        return _short(", ".join(shown), 140) or "everything"
    return _short(", ".join(str(arguments[key]) for key in keys if arguments.get(key) not in (None, "")), 140)


def _short(words: str, length: int) -> str:
    flat = " ".join(words[: length * 4].split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"


def full(path: Path, step: Step) -> ToolCall | None:
    """The whole call of a row; None where its line cannot be read as one."""
    try:
        with path.open("rb") as handle:
            handle.seek(step.offset)
            event = json.loads(handle.readline())
        return ToolCall.model_validate(event["data"])
    except (OSError, ValueError, KeyError, ValidationError):
        return None


@dataclass(frozen=True)
class Entry:
    """One resource of a search result in clinical words; `seen`: whole, in part (the cut went through it), or not."""

    line: Line
    seen: Literal["whole", "part", "not"]


def entries(call: ToolCall, records: Records, zone: tzinfo) -> list[Entry]:
    """The resources of a read call's result, in order; empty for a result that is none."""
    found = []
    for start, end, ref in resource_spans(call.result, len(call.result)):
        try:
            resource = Resource.parse(call.result[start:end], where=ref)
        except ChartError:
            continue
        seen: Literal["whole", "part", "not"]
        seen = "whole" if end <= call.shown else "part" if start < call.shown else "not"
        found.append(Entry(line(resource, records, zone), seen))
    return found


@dataclass(frozen=True)
class OrderLine:
    """One thing that the agent wrote, in clinical words."""

    write: Write
    kind: str
    symbol: str
    what: str
    detail: str


def order_lines(writes: Iterable[Write]) -> list[OrderLine]:
    """The ledger in clinical words, in its order; what cannot be read is listed by its reference."""
    lines = []
    for write in writes:
        type = write.reference.split("/", 1)[0]
        kind, symbol = WRITES.get(type, ("entry", "description"))
        try:
            what, detail = _ordered(Resource.parse(write.resource))
        except ChartError:
            what, detail = write.reference, "cannot be read"
        lines.append(OrderLine(write, kind, symbol, what, detail))
    return lines


def _ordered(resource: Resource) -> tuple[str, str]:
    body = resource.body
    status = str(body.get("status") or "status not stated")
    state = {"active": "active order", "draft": "draft, not active", "stopped": "stopped"}.get(status, status)
    intent = str(body.get("intent") or "")
    if intent and intent != "order":
        state = f"{state}, intent {intent}"
    refused = body.get("doNotPerform") is True
    notes = "; ".join(str(note.get("text")) for note in each(body.get("note")) if note.get("text"))
    match resource.type:
        case "MedicationRequest":
            drug = concept(body.get("medicationCodeableConcept"))
            words = ", ".join(filter(None, [drug, dose_words(resource, whole=True)]))
            return f"Do not give: {words}" if refused else words, " · ".join(filter(None, [state, notes]))
        case "ServiceRequest":
            day = _day(body.get("occurrenceDateTime") or element(body, "occurrencePeriod.start"))
            priority = str(body.get("priority") or "")
            code = concept(body.get("code"))
            what = ", ".join(
                filter(None, [code, f"on {day}" if day else "", priority if priority != "routine" else ""])
            )
            return f"Not to be done: {what}" if refused else what, " · ".join(filter(None, [state, notes]))
        case "Appointment":
            written = str(body.get("start") or "")
            start = ", ".join(filter(None, [_day(written), written[11:16]]))
            detail = " · ".join(filter(None, [status, start, str(body.get("comment") or "")]))
            return str(body.get("description") or "Appointment"), detail
        case "Communication":
            text = " ".join(str(part.get("contentString") or "") for part in each(body.get("payload")))
            to = ", ".join(str(r.get("display") or r.get("reference") or "") for r in each(body.get("recipient")))
            return f"Message to {to}" if to else "Message", text
        case _:
            return concept(body.get("code")) or resource.ref, state


def _day(written: Any) -> str:
    """The day of a FHIR date as it is written, whatever the zone: "9 Apr 2026"."""
    found = when(str(written or "")[:10])
    return str(found) if found else str(written or "")


def not_done(checkpoints: Sequence[Checkpoint], verdicts: Mapping[str, Verdict]) -> list[Checkpoint]:
    """What was asked for and is not in the record: checkpoints with an order or follow-up that failed without citing
    anything that the agent wrote."""
    missing = []
    for checkpoint in checkpoints:
        verdict = verdicts.get(checkpoint.id)
        if (checkpoint.order is None and not checkpoint.followup) or verdict is None or verdict.result != "fail":
            continue
        if not any(isinstance(cite, ResourceCite | CallCite) for cite in verdict.cites):
            missing.append(checkpoint)
    return missing


def claims(verdicts: Iterable[Verdict], lines: Sequence[OrderLine]) -> dict[str, list[str]]:
    """Reference of a write -> the checkpoints whose verdicts cite it, directly or by the call that made it."""
    by_call = {one.write.call: one.write.reference for one in lines if one.write.call is not None}
    written = {one.write.reference for one in lines}
    found: dict[str, list[str]] = {}
    for verdict in verdicts:
        for cite in verdict.cites:
            ref = cite.ref if isinstance(cite, ResourceCite) else None
            if isinstance(cite, CallCite):
                ref = by_call.get(cite.n)
            if ref in written and verdict.checkpoint not in found.setdefault(ref, []):
                found[ref].append(verdict.checkpoint)
    return found


def quotes(verdicts: Iterable[Verdict], file: str) -> list[tuple[str, str]]:
    """(checkpoint, quoted words) of the verdicts that cite this file."""
    return [
        (verdict.checkpoint, cite.text)
        for verdict in verdicts
        for cite in verdict.cites
        if isinstance(cite, QuoteCite) and cite.file == file
    ]
