"""A stored trial in plain words: a line a step, for the shell and for pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tasks.errors import ChartError
from tasks.fhir.resources import parse_json
from tasks.stored import StoredTrial
from tasks.toolnames import CREATE_TOOLS, WRITE_FILE
from tasks.trials import Event, ToolCall

_READ = {
    "fhir_patient_search_demographics": "patients",
    "fhir_condition_search_problems": "problems",
    "fhir_observation_search_labs": "laboratory results",
    "fhir_observation_search_vitals": "vital signs",
    "fhir_observation_search_social_history": "social history",
    "fhir_procedure_search_orders": "procedures",
    "fhir_medication_request_search_orders": "medication orders",
    "fhir_document_reference_search_clinical_notes": "clinical notes",
    "fhir_service_request_search": "service orders",
}
_MADE = {
    "fhir_medication_request_create": ("ordered a drug", "medication_display"),
    "fhir_service_request_create": ("ordered", "code_display"),
    "fhir_appointment_create": ("booked a visit", "description"),
    "fhir_communication_create_message": ("sent a message", "message_text"),
}
_DOSE = ("dose_value", "dose_unit", "frequency_text", "route_display")
_LONGEST = 160


def steps(trial: StoredTrial) -> Iterator[str]:
    """Every event of the trial as one line of plain words, numbered as in the trajectory."""
    for event in trial.events():
        yield f"{event.n:>4}  {told(event)}"


def told(event: Event) -> str:
    """One event in plain words."""
    data = event.data
    if event.type == "system":
        return f"system prompt, profile {data.get('profile', '?')}, {len(data.get('tools', []))} tools"
    if event.type == "user":
        return f"instruction: {_short(str(data.get('text', '')))}"
    if event.type == "model":
        return _model(data)
    if event.type == "tool":
        try:
            return told_call(ToolCall.model_validate(data))
        except ValueError:
            return "a tool call that cannot be read"
    if event.type == "limit":
        return f"stopped by {data.get('limit', '?')}: {data.get('detail', '')}"
    if event.type == "resumed":
        return f"gone on with after attempt {data.get('attempt', '?')} ({data.get('ended', '?')})"
    return f"{data.get('outcome', 'error')}: {data.get('detail', '')}"


def _model(data: dict[str, Any]) -> str:
    calls = len(data.get("calls", []))
    asked = f"asks for {calls} tool call{'' if calls == 1 else 's'}" if calls else "is done"
    if data.get("stop") not in ("end", "tools"):
        asked = f"stop: {data.get('stop')}"
    words = _short(str(data.get("text", "")))
    return f"turn {data.get('turn', '?')}: the model {asked}" + (f': "{words}"' if words else "")


def told_call(call: ToolCall) -> str:
    """One tool call and its answer in plain words."""
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    if call.error:
        return f"{call.tool} refused: {_short(_value(call.result).get('error', call.result))}"
    if call.tool in _READ:
        filters = ", ".join(
            f"{name} {value}"
            for name, value in arguments.items()
            if value not in (None, "") and name not in ("patient", "subject", "count", "page_limit")
        )
        body = _value(call.result)
        found = f"{len(body.get('entries', []))} of {body.get('total', '?')}"
        cut = (
            f"; the model saw {call.shown:,} of {len(call.result):,} characters"
            if call.shown < len(call.result)
            else ""
        )
        return f"read {_READ[call.tool]}{f' ({filters})' if filters else ''}: {found}{cut}"
    if call.tool in CREATE_TOOLS:
        verb, what = _MADE[call.tool]
        amount = " ".join(str(arguments[name]) for name in _DOSE if arguments.get(name) not in (None, ""))
        state = arguments.get("status")
        body = _value(call.result)
        stored = f"{body.get('resourceType', '?')}/{body.get('id', '?')}"
        return (
            f"{verb}: {_short(str(arguments.get(what, '')))}{f' {amount}' if amount else ''}"
            f"{f' [{state}]' if state else ''} -> {stored}"
        )
    if call.tool == WRITE_FILE:
        body = _value(call.result)
        return f"wrote {body.get('file_path', '?')} ({body.get('bytes', 0):,} bytes)"
    return call.tool


def _value(text: str) -> dict[str, Any]:
    try:
        value = parse_json(text)
    except ChartError:
        return {}
    return value if isinstance(value, dict) else {}


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
