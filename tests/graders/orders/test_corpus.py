"""The corpus of order phrasings: every right answer was derived by hand from the order rules, with its reason."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from graders.orders import OrderContext, check_declaration, judge
from tasks.declarations import Checkpoint
from tasks.fhir.resources import Resource

HERE = Path(__file__).resolve().parent
NOW = datetime.fromisoformat("2025-03-20T09:00:00-07:00")
PATIENT = "Patient/p-1"


def _checkpoint(group: dict[str, Any]) -> Checkpoint:
    declared: dict[str, Any] = {
        "id": "cp1",
        "title": "corpus",
        "capability": "action_execution",
        "criticality": "required",
        "reachable": ["paper"],
        "grader": "code",
        "action": group.get("action", "do_now"),
        "must_not": group.get("must_not", []),
        "followup": group.get("followup", []),
    }
    if "row" in group:
        declared["order"] = {"type": group.get("type", "MedicationRequest"), "accept": [group["row"]]}
    elif "order" in group:
        declared["order"] = group["order"]
    return Checkpoint.model_validate_json(json.dumps(declared))


def _concept(text: str, system: str = "", code: str = "") -> dict[str, Any]:
    made: dict[str, Any] = {"text": text}
    if code:
        made["coding"] = [{"system": system, "code": code, "display": text}]
    return made


def _resource(case: dict[str, Any], number: int) -> dict[str, Any]:
    if "fhir" in case:
        whole: dict[str, Any] = json.loads(case["fhir"])
        return whole
    subject = {"reference": case.get("patient", PATIENT)}
    body: dict[str, Any] = {"id": case.get("id", f"o{number}"), "status": case.get("status", "active")}
    if case.get("do_not_perform"):
        body["doNotPerform"] = True
    if "priority" in case:
        body["priority"] = case["priority"]
    if "note" in case:
        body["note"] = [{"text": case["note"]}]
    reason: dict[str, Any] = {}
    if "reason" in case:
        reason["text"] = case["reason"]
    if "reason_code" in case:
        reason["coding"] = [{"system": "http://hl7.org/fhir/sid/icd-10-cm", "code": case["reason_code"]}]
    if reason:
        body["reasonCode"] = [reason]
    if "med" in case:
        body |= {"resourceType": "MedicationRequest", "intent": case.get("intent", "order"), "subject": subject}
        body["medicationCodeableConcept"] = _concept(
            case["med"], "http://www.nlm.nih.gov/research/umls/rxnorm", case.get("rxnorm", "")
        )
        if "rxnorm" in case:
            del body["medicationCodeableConcept"]["coding"][0]["display"]
        dosage: dict[str, Any] = {}
        if "sig" in case:
            dosage["text"] = case["sig"]
        if "dose" in case:
            quantity = {"value": case["dose"]} | ({"unit": case["unit"]} if "unit" in case else {})
            dosage["doseAndRate"] = [{"doseQuantity": quantity}]
        if "repeat" in case:
            dosage["timing"] = {"repeat": case["repeat"]}
        if "as_needed" in case:
            dosage["asNeededBoolean"] = case["as_needed"]
        if "route" in case:
            dosage["route"] = {"text": case["route"]}
        if dosage:
            body["dosageInstruction"] = [dosage]
        dispense: dict[str, Any] = {}
        if "quantity" in case:
            dispense["quantity"] = {"value": case["quantity"]}
        if "supply" in case:
            dispense["expectedSupplyDuration"] = {"value": case["supply"], "unit": "days", "code": "d"}
        if "refills" in case:
            dispense["numberOfRepeatsAllowed"] = case["refills"]
        if dispense:
            body["dispenseRequest"] = dispense
        if "prior" in case:
            body["priorPrescription"] = {"reference": case["prior"]}
    elif "service" in case:
        body |= {"resourceType": "ServiceRequest", "intent": case.get("intent", "order"), "subject": subject}
        body["code"] = _concept(case["service"], "http://loinc.org", case.get("code", ""))
        if "category" in case:
            body["category"] = [{"text": case["category"]}]
        if "site" in case:
            body["bodySite"] = [{"text": case["site"]}]
        if "on" in case:
            body["occurrenceDateTime"] = case["on"]
    elif "appointment" in case:
        body |= {"resourceType": "Appointment", "description": case["appointment"]}
        body["status"] = case.get("status", "booked")
        body["start"] = case["start"]
        body["participant"] = [{"actor": subject, "status": "accepted"}]
    else:
        body |= {"resourceType": "Communication", "subject": subject}
        body["status"] = case.get("status", "in-progress")
        body["payload"] = [{"contentString": case["message"]}]
    return body


class _Chart:
    """The records of a corpus case: a handful of resources."""

    def __init__(self, resources: list[Resource]) -> None:
        self._resources = resources

    def get(self, ref: str) -> Resource | None:
        return next((one for one in self._resources if one.ref == ref), None)

    def resources(self, type: str | None = None) -> Iterator[Resource]:
        return (one for one in self._resources if type is None or one.type == type)

    def search(self, type: str, params: Any, **_: Any) -> Any:
        raise AssertionError("orders read the chart by resources() and get()")


def _cases() -> list[Any]:
    found = []
    for path in sorted(HERE.glob("corpus*.toml")):
        for n, group in enumerate(tomllib.loads(path.read_text("utf-8"))["group"], 1):
            for m, case in enumerate(group["cases"], 1):
                found.append(pytest.param(group, case, id=f"{path.stem}-{n}-{group['theme']}-{m}-{case['why']}"))
    return found


CASES = _cases()


@pytest.mark.parametrize(("group", "case"), CASES)
def test_the_corpus_is_judged_as_written(group: dict[str, Any], case: dict[str, Any]) -> None:
    checkpoint = _checkpoint(group)
    assert check_declaration(checkpoint) == []
    parts = case.get("orders", [case])
    written = [Resource.parse(json.dumps(_resource(part, n))) for n, part in enumerate(parts, 1) if "text" not in part]
    texts = {f"output/note-{n}.md": part["text"] for n, part in enumerate(parts, 1) if "text" in part}
    chart = _Chart([Resource.parse(json.dumps(_resource(one, 90 + n))) for n, one in enumerate(group.get("chart", []))])
    context = OrderContext(PATIENT, "Practitioner/d-1", NOW, group.get("authority", "orders"))
    judgement = judge(checkpoint, context, written, chart, texts)
    assert (judgement.result == "pass") is case["ok"], (judgement.reason, case["why"])
    resources = [part for part in parts if "text" not in part]
    for part, order in zip(resources, judgement.orders, strict=True):
        if "matched" in part:
            assert order.matched is part["matched"], order.reason
    alone = "orders" not in case and len(resources) == 1 and "row" in group
    if alone and group.get("action") != "conditional" and not group.get("followup"):
        assert judgement.orders[0].matched is case["ok"], judgement.orders[0].reason


def test_the_corpus_has_at_least_three_hundred_phrasings_over_every_theme() -> None:
    themes = Counter(case.values[0]["theme"] for case in CASES)
    assert sum(themes.values()) >= 300
    assert len(themes) >= 20
    assert all(case.values[1]["why"] for case in CASES)
