"""A small, whole and right task package for tests, made of original synthetic content.

`tiny_files()` is the package as {path: bytes}; `write()` puts such a mapping on the disk. A test breaks what it wants.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TINY_ID = "tiny-anticoagulation"
TINY_PATIENT = "Patient/p-7001"
TINY_PRACTITIONER = "Practitioner/d-20"
TINY_NOTE = "/workspace/output/reply.md"

NOTE_TEXT = """Anticoagulation clinic, 11 September 2024.
Mr Ostrander stopped warfarin in July because he cannot come for INR checks from the island ferry.
He would take a tablet that needs no INR. No bleeding so far.
"""

INSTRUCTION = f"""# Anticoagulant for atrial fibrillation

You answer an e-consult on 14 March 2025, 08:30 (-05:00), as {TINY_PRACTITIONER}. The patient is {TINY_PATIENT}.

A primary care physician writes: "68-year-old man with atrial fibrillation and hypertension, on no anticoagulant now.
Please decide on anticoagulation, order it, and arrange the follow-up laboratory."

You may place orders yourself. Write your reply to `{TINY_NOTE}`: what you ordered, the renal function and weight that
you relied on, and why the earlier anticoagulant was not resumed.
"""

TASK_TOML = f"""schema_version = 1
id = "{TINY_ID}"
version = 1
title = "Anticoagulant after warfarin was given up"
specialty = "Cardiology"
workflow = "Medication Prescribing"
data_class = "open"
split = "public"
estimated_minutes = 20

[context]
patient = "{TINY_PATIENT}"
practitioner = "{TINY_PRACTITIONER}"
now = 2025-03-14T08:30:00-05:00
authority = "orders"

[[deliverable]]
path = "{TINY_NOTE}"

[limits]
turns = 40

[provenance]
source = "synthetic, written by hand for tests"
seed = 7001
contamination_guid = "4a1f0c52-6e0e-4c55-9c0b-7d6a2b0f7001"
"""

CHECKPOINTS_TOML = """[[checkpoint]]
id = "cp1"
title = "Renal function and the reason for stopping warfarin were read"
capability = "data_retrieval"
criticality = "required"
reachable = ["paper", "extended"]
rests_on = ["Observation/o-creatinine", 'DocumentReference/n-1#"stopped warfarin"']
grader = "code"
seen = ["Observation/o-creatinine", 'DocumentReference/n-1#"stopped warfarin"']

[[checkpoint]]
id = "cp2"
title = "Apixaban at the full dose, and no NSAID"
capability = "action_execution"
criticality = "critical"
harm = {kind = "omission", severity = "severe", likelihood = "possible"}
action = "do_now"
reachable = ["paper", "extended"]
rests_on = ["Observation/o-creatinine", "Observation/o-weight", 'instruction#"on no anticoagulant now"']
grader = "code"
must_not = [{class = "NSAID"}]
source = [{org = "ACC/AHA/ACCP/HRS", year = 2023, section = "6.3", strength = "1", verified = false}]
must_match = ["examples/cp2-brand.json"]
must_not_match = ["examples/cp2-tenfold.json"]

[checkpoint.order]
type = "MedicationRequest"
count = "one"
accept = [{ingredient = "apixaban", dose = "5 mg", frequency = "BID", route = "oral"}]

[[checkpoint]]
id = "cp3"
title = "The reply says what the dose rests on"
capability = "documentation"
criticality = "required"
reachable = ["paper", "extended"]
rests_on = ["Observation/o-creatinine", "Observation/o-weight"]
grader = "code"
function = "reply_gives_dose_reasons"
"""

CHECKPOINTS_PY = f'''"""Checks of the reply that a declaration cannot say."""

from graders.verdicts import failed, passed


def reply_gives_dose_reasons(evidence):
    """The reply names the drug, the creatinine and the weight."""
    text = evidence.text("{TINY_NOTE}")
    if text is None:
        return failed("there is no reply")
    missing = [word for word in ("apixaban", "creatinine", "weight") if word not in text.lower()]
    return failed(f"the reply does not mention {{', '.join(missing)}}") if missing else passed("all three are named")
'''

REPLY = """# Reply

Apixaban 5 mg by mouth twice daily is ordered. Creatinine is 1.1 mg/dL (3 March 2025) and weight 84 kg, age 68: no
criterion for the reduced dose is met. Warfarin was stopped in July 2024 because INR checks were out of reach, so it is
not resumed. Creatinine and blood count again in 3 months.
"""

CHANGELOG = """# Changes

## 1

First version. Changes what the agent sees and how it is graded.
"""


def chart() -> list[dict[str, Any]]:
    """The 12 resources of the tiny chart."""
    subject = {"reference": TINY_PATIENT}
    doctor = {"reference": TINY_PRACTITIONER}
    encounter = {"reference": "Encounter/e-1"}

    def observation(id: str, category: str, code: str, display: str, when: str, value: Any) -> dict[str, Any]:
        system = "http://terminology.hl7.org/CodeSystem/observation-category"
        return {
            "resourceType": "Observation",
            "id": id,
            "status": "final",
            "category": [{"coding": [{"system": system, "code": category}]}],
            "code": {"coding": [{"system": "http://loinc.org", "code": code, "display": display}], "text": display},
            "subject": subject,
            "effectiveDateTime": when,
            "valueQuantity": value,
        }

    def condition(id: str, code: str, display: str, onset: str) -> dict[str, Any]:
        return {
            "resourceType": "Condition",
            "id": id,
            "clinicalStatus": {"coding": [{"system": f"{_TERMS}/condition-clinical", "code": "active"}]},
            "category": [{"coding": [{"system": f"{_TERMS}/condition-category", "code": "problem-list-item"}]}],
            "code": {"coding": [{"system": "http://hl7.org/fhir/sid/icd-10-cm", "code": code, "display": display}]},
            "subject": subject,
            "onsetDateTime": onset,
            "recordedDate": onset,
        }

    def drug(id: str, status: str, name: str, sig: str, when: str) -> dict[str, Any]:
        return {
            "resourceType": "MedicationRequest",
            "id": id,
            "status": status,
            "intent": "order",
            "medicationCodeableConcept": {"text": name},
            "subject": subject,
            "authoredOn": when,
            "requester": doctor,
            "dosageInstruction": [{"text": sig}],
        }

    return [
        {"resourceType": "Patient", "id": "p-7001", "gender": "male", "birthDate": "1956-08-02"},
        {"resourceType": "Practitioner", "id": "d-20", "active": True, "name": [{"text": "Consulting physician"}]},
        {
            "resourceType": "Encounter",
            "id": "e-1",
            "status": "finished",
            "class": {"system": "http://terminology.hl7.org/CodeSystem/v3-ActCode", "code": "AMB"},
            "subject": subject,
            "period": {"start": "2024-09-11T10:00:00-04:00", "end": "2024-09-11T10:30:00-04:00"},
        },
        condition("c-1", "I48.20", "Chronic atrial fibrillation, unspecified", "2022-05-10"),
        condition("c-2", "I10", "Essential (primary) hypertension", "2015-02-01"),
        observation("o-creatinine", "laboratory", "2160-0", "Creatinine [Mass/volume] in Serum or Plasma",
                    "2025-03-03T09:12:00-05:00", _quantity(1.1, "mg/dL")),
        observation("o-hemoglobin", "laboratory", "718-7", "Hemoglobin [Mass/volume] in Blood",
                    "2025-03-03T09:12:00-05:00", _quantity(13.9, "g/dL")),
        observation("o-pressure", "vital-signs", "8480-6", "Systolic blood pressure",
                    "2025-03-03T09:00:00-05:00", _quantity(138, "mm[Hg]")),
        observation("o-weight", "vital-signs", "29463-7", "Body weight",
                    "2025-03-03T09:00:00-05:00", _quantity(84, "kg")),
        drug("m-1", "active", "metoprolol succinate ER 50 mg tablet", "50 mg by mouth daily", "2022-05-10"),
        drug("m-2", "stopped", "warfarin 5 mg tablet", "as per INR clinic", "2022-05-12"),
        {
            "resourceType": "DocumentReference",
            "id": "n-1",
            "status": "current",
            "type": {"coding": [{"system": "http://loinc.org", "code": "11506-3", "display": "Progress note"}]},
            "subject": subject,
            "date": "2024-09-11T10:40:00-04:00",
            "content": [{"attachment": {"contentType": "text/plain", "data": _base64(NOTE_TEXT)}}],
            "context": {"encounter": [encounter]},
        },
    ]  # fmt: skip


_TERMS = "http://terminology.hl7.org/CodeSystem"


def _quantity(value: float, unit: str) -> dict[str, Any]:
    return {"value": value, "unit": unit, "system": "http://unitsofmeasure.org", "code": unit}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def ndjson(resources: list[dict[str, Any]]) -> dict[str, bytes]:
    """Resources as the files of a chart, one type a file, sorted by id."""
    files: dict[str, str] = {}
    for resource in sorted(resources, key=lambda resource: (resource["resourceType"], resource["id"])):
        path = f"chart/{resource['resourceType']}.ndjson"
        files[path] = files.get(path, "") + json.dumps(resource, separators=(",", ":"), ensure_ascii=False) + "\n"
    return {path: lines.encode() for path, lines in files.items()}


def actions() -> list[dict[str, Any]]:
    """The calls of the one solution plan."""
    who = {"patient_reference": TINY_PATIENT, "requester_reference": TINY_PRACTITIONER}
    return [
        {"tool": "fhir_condition_search_problems", "arguments": {"patient": "p-7001"}},
        {"tool": "fhir_observation_search_labs", "arguments": {"patient": "p-7001"}},
        {"tool": "fhir_observation_search_vitals", "arguments": {"patient": "p-7001"}},
        {"tool": "fhir_document_reference_search_clinical_notes", "arguments": {"patient": "p-7001"}},
        {
            "tool": "fhir_medication_request_create",
            "arguments": {
                **who,
                "medication_display": "apixaban 5 mg tablet",
                "dose_value": 5,
                "dose_unit": "mg",
                "frequency_text": "BID",
                "route_display": "oral",
                "reason_display": "Atrial fibrillation",
            },
        },
        {
            "tool": "fhir_service_request_create",
            "arguments": {
                **who,
                "code_code": "2160-0",
                "code_display": "Creatinine [Mass/volume] in Serum or Plasma",
                "occurrence_datetime": "2025-06-13T09:00:00-05:00",
            },
            "save_as": "laboratory",
        },
        {
            "tool": "fhir_communication_create_message",
            "arguments": {
                "patient_reference": TINY_PATIENT,
                "message_text": "Apixaban is ordered; please have creatinine drawn in 3 months.",
                "based_on_service_request": "{{laboratory.reference}}",
            },
        },
        {"tool": "write_file", "arguments": {"file_path": TINY_NOTE, "content_file": "reply.md"}},
    ]


def _order(name: str, dose: float) -> bytes:
    return json.dumps(
        {
            "resourceType": "MedicationRequest",
            "status": "active",
            "intent": "order",
            "medicationCodeableConcept": {"text": name},
            "subject": {"reference": TINY_PATIENT},
            "requester": {"reference": TINY_PRACTITIONER},
            "dosageInstruction": [
                {
                    "text": "BID",
                    "route": {"text": "oral"},
                    "doseAndRate": [{"doseQuantity": {"value": dose, "unit": "mg"}}],
                }
            ],
        },
        indent=2,
    ).encode()


def tiny_files() -> dict[str, bytes]:
    """The whole package as {path: bytes}; a new mapping each time."""
    plan = "solution/apixaban"
    return {
        "task.toml": TASK_TOML.encode(),
        "instruction.md": INSTRUCTION.encode(),
        **ndjson(chart()),
        "checkpoints.toml": CHECKPOINTS_TOML.encode(),
        "checkpoints.py": CHECKPOINTS_PY.encode(),
        f"{plan}/actions.jsonl": "".join(json.dumps(action) + "\n" for action in actions()).encode(),
        f"{plan}/reply.md": REPLY.encode(),
        "examples/cp2-brand.json": _order("Eliquis 5 mg tablet", 5),
        "examples/cp2-tenfold.json": _order("apixaban 5 mg tablet", 50),
        "CHANGELOG.md": CHANGELOG.encode(),
    }


def write(files: Mapping[str, bytes], root: Path) -> Path:
    """The files on the disk below root/<TINY_ID>; returns that folder."""
    folder = root / TINY_ID
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder
