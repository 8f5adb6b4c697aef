"""Small task packages for the pages' tests, written to a folder: a readable chart, and one full of hostile text."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

LOINC = "http://loinc.org"
#: Text that tries to become more than text. Shown everywhere, it must stay what it is.
CORPUS = {
    "script": "<script>window.pwned=1;document.title='pwned'</script>",
    "style": "<style>button{display:none!important}body{background:red}</style>",
    "image": '<img src="https://evil.example/track.png" onerror="window.pwned=2">',
    "markdown image": "![x](https://evil.example/md.png) [click](javascript:alert(1))",
    "banner": '<div style="position:fixed;inset:0;z-index:9999;background:url(https://evil.example/b.png)">covered</div>',
    "bidi": "dose \u202e5 gm 01\u202c stop",
    "zero width": "apixaban\u200b\u2060 5\ufeff mg",
    "entity": "&lt;b&gt; &amp; &#x202e;",
    "directive": ":red[red] :material/home: $x^2$ `code` **bold**",
    "template": "{{7*7}} ${7*7}",
}


def concept(code: str, display: str, system: str = LOINC) -> dict[str, Any]:
    return {"coding": [{"system": system, "code": code, "display": display}], "text": display}


def lab(
    id: str,
    code: str,
    name: str,
    value: float,
    unit: str,
    when: str,
    low: float | None = None,
    high: float | None = None,
) -> dict[str, Any]:
    ranges: dict[str, Any] = {}
    if low is not None:
        ranges["low"] = {"value": low, "unit": unit}
    if high is not None:
        ranges["high"] = {"value": high, "unit": unit}
    body: dict[str, Any] = {
        "resourceType": "Observation",
        "id": id,
        "status": "final",
        "category": [concept("laboratory", "Laboratory", "http://terminology.hl7.org/CodeSystem/observation-category")],
        "code": concept(code, name),
        "subject": {"reference": "Patient/p-1"},
        "effectiveDateTime": when,
        "valueQuantity": {"value": value, "unit": unit, "system": "http://unitsofmeasure.org", "code": unit},
    }
    if ranges:
        body["referenceRange"] = [ranges]
    return body


def vital(id: str, code: str, name: str, value: float, unit: str, when: str) -> dict[str, Any]:
    body = lab(id, code, name, value, unit, when)
    body["category"] = [
        concept("vital-signs", "Vital signs", "http://terminology.hl7.org/CodeSystem/observation-category")
    ]
    return body


def pressure(id: str, systolic: float, diastolic: float, when: str) -> dict[str, Any]:
    body = vital(id, "85354-9", "Blood pressure panel", 0, "mmHg", when)
    del body["valueQuantity"]
    body["component"] = [
        {"code": concept("8480-6", "Systolic"), "valueQuantity": {"value": systolic, "unit": "mmHg"}},
        {"code": concept("8462-4", "Diastolic"), "valueQuantity": {"value": diastolic, "unit": "mmHg"}},
    ]
    return body


def drug(id: str, words: str, status: str, when: str, dosage: str, **more: Any) -> dict[str, Any]:
    return {
        "resourceType": "MedicationRequest",
        "id": id,
        "status": status,
        "intent": "order",
        "medicationCodeableConcept": {"text": words},
        "subject": {"reference": "Patient/p-1"},
        "authoredOn": when,
        "dosageInstruction": [{"text": dosage}],
        **more,
    }


def problem(id: str, words: str, onset: str, status: str = "active") -> dict[str, Any]:
    return {
        "resourceType": "Condition",
        "id": id,
        "clinicalStatus": concept(status, status, "http://terminology.hl7.org/CodeSystem/condition-clinical"),
        "code": {"text": words},
        "subject": {"reference": "Patient/p-1"},
        "onsetDateTime": onset,
    }


def note(id: str, title: str, when: str, text: str, **more: Any) -> dict[str, Any]:
    return {
        "resourceType": "DocumentReference",
        "id": id,
        "status": "current",
        "type": {"text": title},
        "subject": {"reference": "Patient/p-1"},
        "date": when,
        "content": [
            {"attachment": {"contentType": "text/plain", "data": base64.b64encode(text.encode()).decode("ascii")}}
        ],
        **more,
    }


def visit(id: str, kind: str, start: str, end: str, words: str) -> dict[str, Any]:
    return {
        "resourceType": "Encounter",
        "id": id,
        "status": "finished",
        "class": {"system": "http://terminology.hl7.org/CodeSystem/v3-ActCode", "code": kind},
        "type": [{"text": words}],
        "subject": {"reference": "Patient/p-1"},
        "period": {"start": start, "end": end},
    }


def resources() -> list[dict[str, Any]]:
    """A 61-year-old with worsening kidneys, one creatinine in the other unit, one stopped drug still listed."""
    return [
        {"resourceType": "Patient", "id": "p-1", "gender": "male", "birthDate": "1964-05-02"},
        {"resourceType": "Practitioner", "id": "dr-1"},
        lab("cr-1", "2160-0", "Creatinine", 1.1, "mg/dL", "2024-06-01T08:00:00-05:00", 0.7, 1.3),
        lab("cr-2", "2160-0", "Creatinine", 1.4, "mg/dL", "2025-01-10T08:00:00-05:00", 0.7, 1.3),
        lab("cr-3", "14682-9", "Creatinine [Moles/volume]", 152, "umol/L", "2025-06-10T08:00:00-05:00", 62, 115),
        lab("cr-late", "2160-0", "Creatinine", 9.9, "mg/dL", "2025-12-01T08:00:00-05:00", 0.7, 1.3),
        lab("k-1", "2823-3", "Potassium", 4.8, "mmol/L", "2025-06-10T08:00:00-05:00", 3.5, 5.1),
        lab("k-2", "2823-3", "Potassium", 5.6, "mmol/L", "2025-06-20T08:00:00-05:00", 3.5, 5.1),
        vital("w-1", "29463-7", "Body weight", 80, "kg", "2025-06-10T09:00:00-05:00"),
        vital("h-1", "8302-2", "Body height", 178, "cm", "2025-06-10T09:00:00-05:00"),
        pressure("bp-1", 148, 84, "2025-06-10T09:00:00-05:00"),
        drug("m-1", "Losartan 50 mg tablet", "completed", "2023-02-01", "1 tablet by mouth daily"),
        drug("m-2", "Losartan 100 mg tablet", "active", "2024-06-01", "1 tablet by mouth daily"),
        drug("m-3", "Ibuprofen 400 mg tablet", "stopped", "2025-03-01", "1 tablet as needed"),
        problem("c-1", "Type 2 diabetes mellitus", "2015"),
        problem("c-2", "Acute bronchitis", "2021-02-03", "resolved"),
        visit("e-1", "AMB", "2024-06-01T08:00:00-05:00", "2024-06-01T08:30:00-05:00", "Office visit"),
        visit("e-2", "EMER", "2025-03-01T20:00:00-05:00", "2025-03-02T01:00:00-05:00", "Emergency visit"),
        note("n-1", "Emergency summary", "2025-03-02T01:00:00-05:00", "Knee pain. Took ibuprofen\nthree times a day."),
        note("n-2", "Phone call", "2025-04-01T10:00:00-05:00", "Stopped Ibuprofen last week. No ibuprofen since."),
    ]


CHECKPOINTS = """\
[[checkpoint]]
id = "cp1"
title = "Potassium found"
capability = "data_retrieval"
criticality = "critical"
reachable = ["paper"]
rests_on = ["Observation/k-2", 'DocumentReference/n-2#"Stopped Ibuprofen"', 'instruction#"potassium"']
grader = "code"
seen = ["Observation/k-2"]
source = [{org = "KDIGO", year = 2024, section = "4.3", verified = true}]

[[checkpoint]]
id = "cp2"
title = "Potassium checked again"
capability = "action_execution"
criticality = "required"
harm = {kind = "omission", severity = "severe", likelihood = "likely"}
reachable = ["paper"]
rests_on = ["Observation/k-2"]
grader = "code"
order = {type = "ServiceRequest", count = "one", accept = [{test = "potassium", when = "<=1 wk"}]}
"""


def write(
    root: Path,
    id: str = "nephrology-small",
    *,
    title: str = "Potassium 5.6 on losartan: what now?",
    instruction: str = "# Consult\n\nThe **potassium** is up. Please advise.\n\n- write `/workspace/output/note.md`\n",
    specialty: str = "Nephrology",
    workflow: str = "Treatment Planning",
    chart: list[dict[str, Any]] | None = None,
    checkpoints: str = CHECKPOINTS,
) -> Path:
    """Write one package into `root` and return its folder."""
    folder = root / id
    (folder / "chart").mkdir(parents=True)
    (folder / "instruction.md").write_text(instruction, "utf-8")
    (folder / "task.toml").write_text(
        "schema_version = 1\n"
        f'id = "{id}"\nversion = 1\ntitle = {json.dumps(title, ensure_ascii=False)}\n'
        f'specialty = "{specialty}"\nworkflow = "{workflow}"\ndata_class = "open"\nestimated_minutes = 25\n\n'
        '[context]\npatient = "Patient/p-1"\npractitioner = "Practitioner/dr-1"\n'
        'now = 2025-07-01T09:30:00-05:00\nauthority = "orders"\n\n'
        '[[deliverable]]\npath = "/workspace/output/note.md"\n',
        "utf-8",
    )
    (folder / "checkpoints.toml").write_text(checkpoints, "utf-8")
    by_type: dict[str, list[dict[str, Any]]] = {}
    for body in chart if chart is not None else resources():
        by_type.setdefault(body["resourceType"], []).append(body)
    for kind, bodies in by_type.items():
        lines = [json.dumps(body, ensure_ascii=False) for body in sorted(bodies, key=lambda body: str(body["id"]))]
        (folder / "chart" / f"{kind}.ndjson").write_text("\n".join(lines) + "\n", "utf-8")
    return folder


def write_hostile(root: Path, id: str = "hostile-task") -> Path:
    """A package whose title, instruction, checkpoint titles, drugs, problems, labs and notes all hold the corpus."""
    everything = " ".join(CORPUS.values())
    chart = resources()
    for number, text in enumerate(CORPUS.values()):
        day = f"2025-05-{number + 1:02d}"
        chart += [
            problem(f"hc-{number}", text, day),
            drug(f"hm-{number}", text, "active", day, text),
            lab(f"ho-{number}", f"99{number}-1", text, 1.5, text, f"{day}T08:00:00Z", 0.5, 2),
            note(f"hn-{number}", text, f"{day}T08:00:00Z", text),
            visit(f"he-{number}", "AMB", f"{day}T08:00:00Z", f"{day}T09:00:00Z", text),
        ]
    chart.append(note("hn-long", "One long line", "2025-05-20T08:00:00Z", "x" * 1_000_000))
    checkpoints = CHECKPOINTS.replace('"Potassium found"', json.dumps(everything[:400], ensure_ascii=False))
    title = CORPUS["script"] + CORPUS["bidi"] + CORPUS["image"] + CORPUS["directive"]
    return write(
        root,
        id,
        title=title[:190],
        instruction="potassium\n\n" + "\n\n".join(CORPUS.values()) + "\n",
        chart=chart,
        checkpoints=checkpoints,
    )
