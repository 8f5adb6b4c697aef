"""The four agents that need no key. They answer through the same seam and go through the same loop as any model.

    oracle[:plan]   replays a solution plan; must pass
    noop            ends at once                       \
    shotgun         orders everything in sight          } must fail every task
    parrot          copies the chart into the note     /

What an agent does next follows from the conversation alone, so that a resumed trial goes on where it stood. All but
the oracle see what a model sees, and nothing of the package.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from providers.base import (
    Message,
    Model,
    ModelConfigError,
    ModelMessage,
    ToolRequest,
    ToolResult,
    ToolResults,
    ToolSpec,
    Turn,
    UserMessage,
)
from tasks.errors import ChartError, UsageError
from tasks.fhir.resources import Number, dump_json, parse_json
from tasks.package import Task
from tasks.plans import Plan, filled
from tasks.toolnames import WRITE_FILE
from tasks.trials import Usage

#: Built-in agents by name; `oracle:<plan>` names a plan.
BUILT_IN = ("oracle", "noop", "shotgun", "parrot")

_FREE = Usage(cost=0.0)


def is_built_in(agent: str) -> bool:
    """Whether the name is one of the built-in agents, with or without a plan."""
    return agent.partition(":")[0] in BUILT_IN


def built_in(agent: str, task: Task) -> Model:
    """The agent of that name for this task. Raises UsageError for a name or plan that does not exist."""
    name, _, plan = agent.partition(":")
    if name == "oracle":
        return Oracle(_plan(task, plan), name=agent)
    if plan:
        raise UsageError(f"The agent {name} has no plans.", where=agent, remedy=f"Write it as {name}.")
    if name == "noop":
        return Noop()
    if name == "shotgun":
        return Shotgun()
    if name == "parrot":
        return Parrot()
    raise UsageError(
        f"There is no built-in agent {agent!r}.",
        remedy=f"Choose one of {', '.join(BUILT_IN)}, or a model as provider/name.",
    )


def oracles(task: Task) -> tuple[str, ...]:
    """The oracle agents that replay every plan of a task: `oracle` the first one, `oracle:<plan>` each further one."""
    return ("oracle", *(f"oracle:{name}" for name in sorted(task.plans)[1:]))


def _plan(task: Task, name: str) -> Plan:
    if not task.plans:
        raise ModelConfigError("the task has no solution plan to replay.", where=task.id, remedy="Write one first.")
    chosen = name or min(task.plans)
    if chosen not in task.plans:
        raise UsageError(
            f"the task has no plan {chosen!r}.", where=task.id, remedy=f"It has: {', '.join(sorted(task.plans))}."
        )
    return task.plans[chosen]


def _turn(name: str, calls: Sequence[tuple[str, dict[str, Any]]], number: int, text: str = "") -> Turn:
    requests = tuple(
        ToolRequest(f"{name.partition(':')[0]}-{number}-{place}", tool, dump_json(arguments))
        for place, (tool, arguments) in enumerate(calls, start=1)
    )
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    blocks += [
        {"type": "tool_call", "id": request.id, "name": request.name, "arguments": request.arguments_text}
        for request in requests
    ]
    return Turn(tuple(blocks), requests, _FREE, "tools" if requests else "end", text=text, model=name)


def _turns_so_far(messages: Sequence[Message]) -> int:
    return sum(isinstance(message, ModelMessage) for message in messages)


def _exchanges(messages: Sequence[Message]) -> Iterator[tuple[ToolRequest, ToolResult]]:
    """Every call with its answer, in order."""
    asked: tuple[ToolRequest, ...] = ()
    for message in messages:
        if isinstance(message, ModelMessage):
            asked = message.turn.calls
        elif isinstance(message, ToolResults):
            yield from zip(asked, message.results, strict=True)


class _BuiltIn:
    """What all four share: they cost nothing and hold nothing open."""

    has_price = True

    def close(self) -> None:
        """Nothing is open."""


class Noop(_BuiltIn):
    """Ends at once."""

    name = "noop"

    def turn(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Turn:
        return _turn(self.name, [], 1, "Nothing was done.")


class Oracle(_BuiltIn):
    """Replays a solution plan, a call a turn; what a create returned fills the placeholders of later calls."""

    def __init__(self, plan: Plan, *, name: str = "oracle") -> None:
        self.name = name
        self.plan = plan

    def turn(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Turn:
        done = _turns_so_far(messages)
        if done >= len(self.plan.actions):
            return _turn(self.name, [], done + 1, "The plan is carried out.")
        action = self.plan.actions[done]
        if action.tool == WRITE_FILE:
            arguments = {key: value for key, value in action.arguments.items() if key != "content_file"}
            arguments["content"] = self.plan.content(action)
        else:
            arguments = filled(action.arguments, self._saved(messages))
        return _turn(self.name, [(action.tool, arguments)], done + 1)

    def _saved(self, messages: Sequence[Message]) -> dict[str, str]:
        saved = {}
        for action, (_, result) in zip(self.plan.actions, _exchanges(messages), strict=False):
            if action.save_as:
                saved[action.save_as] = _reference_in(result.text) or f"refused-{action.save_as}"
        return saved


def _reference_in(text: str) -> str | None:
    """`Type/id` of the resource that a create answered with, also where the answer was cut."""
    try:
        body = parse_json(text)
    except ChartError:
        found = [re.search(rf'"{key}":"([A-Za-z0-9.-]+)"', text) for key in ("resourceType", "id")]
        return f"{found[0][1]}/{found[1][1]}" if found[0] and found[1] else None
    if isinstance(body, dict) and "resourceType" in body and "id" in body:
        return f"{body['resourceType']}/{body['id']}"
    return None


@dataclass(frozen=True)
class _Request:
    """What a reader of the instruction alone knows: who, for whom, and which files."""

    patient: str
    practitioner: str
    files: tuple[str, ...]
    year: int


def _request(messages: Sequence[Message]) -> _Request:
    text = next(message.text for message in messages if isinstance(message, UserMessage))
    patient = re.search(r"\bPatient/[A-Za-z0-9.-]*[A-Za-z0-9]", text)
    practitioner = re.search(r"\bPractitioner/[A-Za-z0-9.-]*[A-Za-z0-9]", text)
    files = re.findall(r"/workspace/output/[\w./-]*\w", text)
    years = [int(year) for year in re.findall(r"\b(?:19|20)\d\d\b", text)]
    return _Request(
        patient[0] if patient else "Patient/unknown",
        practitioner[0] if practitioner else "Practitioner/unknown",
        tuple(dict.fromkeys(files)) or ("/workspace/output/note.md",),
        max(years, default=2030),
    )


#: (drug, dose, unit, frequency): common drugs of every specialty, at usual doses.
_DRUGS: tuple[tuple[str, str, str, str], ...] = (
    ("apixaban", "5", "mg", "BID"), ("rivaroxaban", "20", "mg", "daily"), ("warfarin", "5", "mg", "daily"),
    ("enoxaparin", "40", "mg", "daily"), ("aspirin", "81", "mg", "daily"), ("clopidogrel", "75", "mg", "daily"),
    ("atorvastatin", "40", "mg", "daily"), ("rosuvastatin", "20", "mg", "daily"), ("ezetimibe", "10", "mg", "daily"),
    ("lisinopril", "10", "mg", "daily"), ("losartan", "50", "mg", "daily"),
    ("sacubitril-valsartan", "49", "mg", "BID"), ("amlodipine", "5", "mg", "daily"),
    ("nifedipine ER", "30", "mg", "daily"), ("labetalol", "100", "mg", "BID"),
    ("metoprolol succinate", "50", "mg", "daily"), ("carvedilol", "6.25", "mg", "BID"),
    ("methyldopa", "250", "mg", "BID"), ("hydrochlorothiazide", "25", "mg", "daily"),
    ("chlorthalidone", "25", "mg", "daily"), ("furosemide", "40", "mg", "daily"),
    ("spironolactone", "25", "mg", "daily"), ("finerenone", "10", "mg", "daily"),
    ("empagliflozin", "10", "mg", "daily"), ("dapagliflozin", "10", "mg", "daily"), ("metformin", "500", "mg", "BID"),
    ("semaglutide", "1", "mg", "weekly"), ("insulin glargine", "10", "units", "daily"),
    ("glipizide", "5", "mg", "daily"), ("levothyroxine", "50", "mcg", "daily"), ("prednisone", "40", "mg", "daily"),
    ("ibuprofen", "600", "mg", "TID"), ("naproxen", "500", "mg", "BID"), ("acetaminophen", "650", "mg", "q6h"),
    ("gabapentin", "300", "mg", "TID"), ("baclofen", "10", "mg", "TID"), ("tramadol", "50", "mg", "q6h"),
    ("oxycodone", "5", "mg", "q6h"), ("lorazepam", "1", "mg", "BID"), ("sertraline", "50", "mg", "daily"),
    ("escitalopram", "10", "mg", "daily"), ("bupropion XL", "150", "mg", "daily"),
    ("lithium carbonate", "300", "mg", "BID"), ("quetiapine", "50", "mg", "nightly"),
    ("valproate", "500", "mg", "BID"), ("lamotrigine", "25", "mg", "daily"), ("levetiracetam", "500", "mg", "BID"),
    ("buprenorphine-naloxone", "8", "mg", "daily"), ("amoxicillin", "500", "mg", "TID"),
    ("cephalexin", "500", "mg", "QID"), ("doxycycline", "100", "mg", "BID"), ("azithromycin", "500", "mg", "daily"),
    ("ciprofloxacin", "500", "mg", "BID"), ("ceftriaxone", "1", "g", "daily"),
    ("penicillin G benzathine", "2400000", "units", "once"), ("penicillin G", "4000000", "units", "q4h"),
    ("valacyclovir", "1", "g", "TID"), ("entecavir", "1", "mg", "daily"),
    ("tenofovir alafenamide", "25", "mg", "daily"), ("omeprazole", "20", "mg", "daily"),
    ("pantoprazole", "40", "mg", "daily"), ("mesalamine", "2400", "mg", "daily"), ("ursodiol", "300", "mg", "BID"),
    ("lactulose", "20", "g", "TID"), ("rifaximin", "550", "mg", "BID"), ("albuterol", "2", "puffs", "q4h"),
    ("fluticasone-salmeterol", "1", "puff", "BID"), ("tiotropium", "2", "puffs", "daily"),
    ("montelukast", "10", "mg", "nightly"), ("tamsulosin", "0.4", "mg", "daily"), ("finasteride", "5", "mg", "daily"),
    ("allopurinol", "100", "mg", "daily"), ("colchicine", "0.6", "mg", "BID"), ("methotrexate", "15", "mg", "weekly"),
    ("hydroxychloroquine", "200", "mg", "BID"), ("alendronate", "70", "mg", "weekly"),
    ("denosumab", "60", "mg", "every 6 months"), ("zoledronic acid", "5", "mg", "once"),
    ("calcium carbonate", "500", "mg", "BID"), ("vitamin D3", "2000", "units", "daily"),
    ("ferrous sulfate", "325", "mg", "daily"), ("folic acid", "1", "mg", "daily"),
    ("potassium chloride", "20", "mEq", "daily"),
)  # fmt: skip

#: (LOINC, test).
_TESTS: tuple[tuple[str, str], ...] = (
    ("24323-8", "Comprehensive metabolic panel"), ("24321-2", "Basic metabolic panel"), ("58410-2", "CBC"),
    ("2823-3", "Potassium"), ("2160-0", "Creatinine"), ("4548-4", "Hemoglobin A1c"), ("57698-3", "Lipid panel"),
    ("3016-3", "TSH"), ("3024-7", "Free T4"), ("14959-1", "Urine albumin/creatinine ratio"), ("24356-8", "Urinalysis"),
    ("6301-6", "INR"), ("1988-5", "CRP"), ("4537-7", "ESR"), ("2276-4", "Ferritin"), ("2132-9", "Vitamin B12"),
    ("1989-3", "25-OH vitamin D"), ("2731-8", "PTH"), ("17861-6", "Calcium"), ("19123-9", "Magnesium"),
    ("2777-1", "Phosphate"), ("33762-6", "NT-proBNP"), ("10839-9", "Troponin"), ("53115-8", "beta-hydroxybutyrate"),
    ("14334-7", "Lithium level"), ("10535-3", "Digoxin level"), ("5195-3", "HBsAg"), ("13952-7", "anti-HBc"),
    ("42595-9", "HBV DNA"), ("11259-9", "HCV RNA"), ("56888-1", "HIV antigen/antibody"), ("20507-0", "RPR"),
    ("8061-4", "ANA"), ("17351-5", "ANCA"), ("31254-8", "anti-GBM"), ("34571-4", "Lupus anticoagulant"),
    ("600-7", "Blood culture"), ("630-4", "Urine culture"), ("21198-7", "hCG"), ("24325-3", "Hepatic function panel"),
)  # fmt: skip

#: (CPT, imaging study or procedure).
_STUDIES: tuple[tuple[str, str], ...] = (
    ("71046", "Chest X-ray, 2 views"), ("71260", "CT chest with contrast"),
    ("74177", "CT abdomen and pelvis with contrast"),
    ("70553", "MRI brain with and without contrast"), ("70450", "CT head without contrast"), ("93000", "ECG, 12 leads"),
    ("93306", "Transthoracic echocardiogram"), ("76770", "Renal ultrasound"), ("76700", "Abdominal ultrasound"),
    ("93970", "Venous duplex of both legs"), ("77080", "DXA bone density"), ("72070", "Thoracic spine X-ray"),
    ("43239", "Upper endoscopy with biopsy"), ("45378", "Colonoscopy"), ("57454", "Colposcopy with biopsy"),
    ("95810", "Polysomnography"), ("62270", "Lumbar puncture"), ("94010", "Spirometry"),
)  # fmt: skip

_SPECIALTIES = (
    "Cardiology", "Endocrinology", "Gastroenterology", "Hepatology", "Hematology", "Oncology", "Allergy and immunology",
    "Infectious disease", "Rheumatology", "Nephrology", "Urology", "Psychiatry", "Neurology", "Addiction medicine",
    "Pulmonology", "Dermatology", "Gynecology", "Geriatrics", "Ophthalmology", "Otolaryngology", "Emergency department",
    "Obstetrics", "Nutrition",
)  # fmt: skip

_BATCH = 20


class Shotgun(_BuiltIn):
    """Orders everything in sight: every drug, test, study and referral that it knows, visits and messages."""

    name = "shotgun"

    def turn(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Turn:
        done = _turns_so_far(messages)
        calls = list(self._calls(_request(messages)))
        batch = calls[done * _BATCH : (done + 1) * _BATCH]
        return _turn(self.name, batch, done + 1, "" if batch else "Everything is ordered.")

    def _calls(self, request: _Request) -> Iterator[tuple[str, dict[str, Any]]]:
        whom: dict[str, Any] = {"patient_reference": request.patient}
        who = whom | {"requester_reference": request.practitioner}
        for drug, dose, unit, frequency in _DRUGS:
            amount = {"dose_value": Number(dose), "dose_unit": unit}
            yield (
                "fhir_medication_request_create",
                who | {"medication_display": drug, "frequency_text": frequency, "route_display": "oral"} | amount,
            )
        for code, test in _TESTS:
            yield "fhir_service_request_create", who | {"code_code": code, "code_display": test, "priority": "stat"}
        for code, study in _STUDIES:
            yield (
                "fhir_service_request_create",
                who
                | {"code_code": code, "code_display": study, "code_system": "http://www.ama-assn.org/go/cpt"}
                | {"category_code": "363679005", "category_display": "Imaging"},
            )
        for specialty in _SPECIALTIES:
            yield (
                "fhir_service_request_create",
                who
                | {"code_code": "3457005", "code_display": f"Referral to {specialty}", "priority": "urgent"}
                | {"code_system": "http://snomed.info/sct", "category_code": "3457005"}
                | {"category_display": "Patient referral"},
            )
        for days in (1, 7, 14, 28, 90):
            yield (
                "fhir_appointment_create",
                whom
                | {"practitioner_reference": request.practitioner, "description": f"Follow-up visit in {days} days"},
            )
        everything = self._everything()
        yield (
            "fhir_communication_create_message",
            whom | {"message_text": everything, "recipient_reference": request.practitioner},
        )
        for path in request.files:
            yield WRITE_FILE, {"file_path": path, "content": everything}

    def _everything(self) -> str:
        drugs = [f"Start {drug} {dose} {unit} {frequency}." for drug, dose, unit, frequency in _DRUGS]
        orders = [f"Order {name}." for _, name in (*_TESTS, *_STUDIES)]
        referrals = [f"Refer to {specialty}." for specialty in _SPECIALTIES]
        return "\n".join(["# Recommendations", *drugs, *orders, *referrals]) + "\n"


#: (tool, the parameter by which a cut answer is narrowed).
_READS: tuple[tuple[str, str], ...] = (
    ("fhir_condition_search_problems", "onset_date"),
    ("fhir_observation_search_labs", "date"),
    ("fhir_observation_search_vitals", "date"),
    ("fhir_observation_search_social_history", "date"),
    ("fhir_procedure_search_orders", "date"),
    ("fhir_medication_request_search_orders", "authoredon"),
    ("fhir_document_reference_search_clinical_notes", "date"),
    ("fhir_service_request_search", "authored"),
)
_FIRST_YEAR = 1990
_NOTICE = "\n\n[OUTPUT TRUNCATED"
_MOST_COPIED = 9_000_000


class Parrot(_BuiltIn):
    """Reads all that the tools show, narrowing a cut answer by year, month and day, and writes it into the note."""

    name = "parrot"

    def turn(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Turn:
        done = _turns_so_far(messages)
        request = _request(messages)
        if done and any(call.name == WRITE_FILE for call, _ in _exchanges(messages)):
            return _turn(self.name, [], done + 1, "The chart is in the note.")
        pending = self._pending(messages, request)
        # The loop's turn limit must not end the copying: what is read by then is written.
        if pending and done < 60:
            return _turn(self.name, pending[:_BATCH], done + 1)
        copied = "\n".join(
            # What was cut and then read again in narrower pieces is copied once.
            _copied(result.text)
            for call, result in _exchanges(messages)
            if _NOTICE not in result.text or not self._is_split(call, request)
        )
        note = copied.encode("utf-8", "replace")[:_MOST_COPIED].decode("utf-8", "ignore")
        writes = [(WRITE_FILE, {"file_path": path, "content": note}) for path in request.files]
        return _turn(self.name, writes, done + 1)

    def _is_split(self, call: ToolRequest, request: _Request) -> bool:
        by = dict(_READS).get(call.name)
        return by is not None and bool(_narrower(json.loads(call.arguments_text).get(by), request))

    def _pending(self, messages: Sequence[Message], request: _Request) -> list[tuple[str, dict[str, Any]]]:
        """The reads that are still to be made: the plain ones, then narrower ones for each answer that was cut."""
        whom = {"patient": request.patient}
        first: list[tuple[str, dict[str, Any]]] = [
            ("fhir_patient_search_demographics", {}),
            *((tool, whom | {"count": 200, "page_limit": 50}) for tool, _ in _READS),
        ]
        splits = dict(_READS)
        wanted = first
        asked = set()
        for call, result in _exchanges(messages):
            asked.add((call.name, call.arguments_text))
            if _NOTICE in result.text and (by := splits.get(call.name)):
                arguments = json.loads(call.arguments_text)
                wanted = wanted + [
                    (call.name, arguments | {by: date}) for date in _narrower(arguments.get(by), request)
                ]
        return [(tool, arguments) for tool, arguments in wanted if (tool, dump_json(arguments)) not in asked]


def _copied(text: str) -> str:
    return text.partition(_NOTICE)[0]


def _narrower(date: str | None, request: _Request) -> list[str]:
    """The years of the record, the months of a year, the days of a month; nothing below a day."""
    if date is None:
        return [str(year) for year in range(request.year + 1, _FIRST_YEAR - 1, -1)]
    if len(date) == 4:
        return [f"{date}-{month:02d}" for month in range(1, 13)]
    if len(date) == 7:
        last = 30 if date[5:] in ("04", "06", "09", "11") else 28 if date[5:] == "02" else 31
        return [f"{date}-{day:02d}" for day in range(1, last + 1)]
    return []
