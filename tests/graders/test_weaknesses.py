"""Weaknesses 12 to 16 of the reference system, each as the trial that it gets wrong (field/physicianbench.md).

Every test gives the trial that passes there, and fails on that behaviour here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from graders.grade import grade
from graders.orders import OrderContext, judge
from graders.safety import findings
from tasks.errors import EnvironmentFault
from tasks.fhir.resources import Resource, dump_json
from tasks.package import Task
from tasks.trials import Verdict
from tests.graders.trials import AT, apixaban, checkpoint, evidence, read

ANTICOAGULATION = {
    "order": {
        "type": "MedicationRequest",
        "count": "one",
        "accept": [{"ingredient": "apixaban", "dose": "5 mg", "frequency": "BID", "route": "oral"}],
    }
}


def verdict(task: Task, *orders: dict[str, Any], **keys: Any) -> Verdict:
    """The verdict of a checkpoint with these keys on a trial that wrote these resources."""
    (found,) = grade(evidence(task, *orders), [checkpoint(**keys)], AT)
    return found


def drug(name: str, id: str = "w-9", **keys: Any) -> dict[str, Any]:
    """An active order of a drug, all in its text."""
    body = apixaban(id=id, medicationCodeableConcept={"text": name}, **keys)
    return {key: value for key, value in body.items() if key != "dosageInstruction"}


# 12. No safety or negative checks: ordering everything in sight is rewarded.


def test_12_ordering_everything_in_sight_is_no_way_to_pass(tiny_task: Task) -> None:
    everything = [
        apixaban(id="a"), drug("warfarin 5 mg PO daily", "b"), drug("ibuprofen 600 mg PO TID", "c"),
        drug("aspirin 325 mg PO daily", "d"),
    ]  # fmt: skip
    keys = ANTICOAGULATION | {"must_not": [{"class": "anticoagulant"}, {"class": "NSAID"}]}
    assert verdict(tiny_task, everything[0], **keys).result == "pass"
    found = verdict(tiny_task, *everything, **keys)
    assert (found.result, "warfarin" in found.reason, "ibuprofen" in found.reason) == ("fail", True, True)
    assert {"duplicate"} <= {one.kind for one in findings(evidence(tiny_task, *everything))}


# 13. Dose, unit and frequency are often unchecked: a ten-fold dose passes.


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("apixaban 5 mg PO BID", "pass"),
        ("apixaban 50 mg PO BID", "fail"),
        ("apixaban 5 mcg PO BID", "fail"),
        ("apixaban 5 g PO BID", "fail"),
        ("apixaban 0.5 mg PO BID", "fail"),
        ("apixaban 5 mg PO daily", "fail"),
        ("apixaban 5 mg PO weekly", "fail"),
        ("apixaban PO BID", "fail"),
    ],
)
def test_13_dose_unit_and_frequency_decide(tiny_task: Task, text: str, result: str) -> None:
    assert verdict(tiny_task, drug(text), **ANTICOAGULATION).result == result


@pytest.mark.parametrize("value", [50, 500, 0.5])
def test_13_a_tenfold_dose_fails_in_the_field_too(tiny_task: Task, value: float) -> None:
    order = apixaban(medicationCodeableConcept={"text": "apixaban"})
    order["dosageInstruction"][0]["doseAndRate"][0]["doseQuantity"]["value"] = value
    assert verdict(tiny_task, order, **ANTICOAGULATION).result == "fail"


# 14. Patterns blind to negation: the scan WITHOUT contrast passes, "Referral to ENT" fails an ENT referral.


def service(display: str) -> dict[str, Any]:
    """An active order of a service, by its name alone."""
    return {
        "resourceType": "ServiceRequest", "id": "s-1", "status": "active", "intent": "order",
        "code": {"coding": [{"system": "http://local", "code": "X1", "display": display}], "text": display},
        "subject": {"reference": "Patient/p-7001"}, "requester": {"reference": "Practitioner/d-20"},
    }  # fmt: skip


MRI = {"imaging": {"modality": "MRI", "site": "brain", "contrast": "with"}}


@pytest.mark.parametrize(
    ("row", "display", "result"),
    [
        (MRI, "MRI brain with contrast", "pass"),
        (MRI, "MRI brain WITHOUT contrast", "fail"),
        (MRI, "MRI brain with and without contrast", "fail"),
        (MRI, "MRI brain", "fail"),
        (MRI, "Do not order: MRI brain with contrast", "fail"),
        ({"referral": "otolaryngology"}, "Referral to ENT", "pass"),
        ({"referral": "ENT"}, "Referral to Otolaryngology", "pass"),
        ({"referral": "ENT"}, "Referral to neurology", "fail"),
        ({"referral": "ENT"}, "No referral to ENT needed", "fail"),
    ],
)
def test_14_negation_and_synonyms_are_read(tiny_task: Task, row: dict[str, Any], display: str, result: str) -> None:
    order = {"type": "ServiceRequest", "count": "one", "accept": [row]}
    assert verdict(tiny_task, service(display), order=order).result == result


@pytest.mark.parametrize("text", ["Do not start apixaban 5 mg PO BID", "Avoid apixaban 5 mg PO BID"])
def test_14_an_order_not_to_start_the_drug_is_no_order(tiny_task: Task, text: str) -> None:
    assert verdict(tiny_task, drug(text), **ANTICOAGULATION).result == "fail"


# 15. "Created by the agent" is decided by a date that the agent writes; Appointment and Communication not at all.


def test_15_the_ledger_decides_what_the_agent_made_whatever_dates_say(tiny_task: Task) -> None:
    for date in ("1999-01-01", "2099-01-01"):
        assert verdict(tiny_task, apixaban(authoredOn=date), **ANTICOAGULATION).result == "pass"
    assert verdict(tiny_task, **ANTICOAGULATION).result == "fail", "nothing was written"


@pytest.mark.parametrize("type", ["Appointment", "Communication"])
def test_15_a_visit_or_message_of_the_chart_is_never_the_agents(tiny_task: Task, type: str) -> None:
    bodies: dict[str, dict[str, Any]] = {
        "Appointment": {
            "status": "booked", "start": "2025-03-21T09:00:00-05:00", "description": "Cardiology follow-up",
            "participant": [{"actor": {"reference": "Patient/p-7001"}, "status": "accepted"}],
        },
        "Communication": {
            "status": "completed", "subject": {"reference": "Patient/p-7001"},
            "payload": [{"contentString": "Start apixaban 5 mg twice daily."}],
        },
    }  # fmt: skip
    body = {"resourceType": type, "id": "old", **bodies[type]}
    said = {"Appointment": {"when": "1-14 d"}, "Communication": {"ingredient": "apixaban", "dose": "5 mg"}}[type]
    row = checkpoint(order={"type": type, "count": "at_least_one", "accept": [said]})
    context = tiny_task.meta.context
    assert context is not None
    assert context.practitioner
    assert context.now
    asked = OrderContext(context.patient, context.practitioner, context.now, "orders")

    class WithOld:
        """The chart, with the old resource in it."""

        old = Resource.parse(dump_json(body))

        def get(self, ref: str) -> Resource | None:
            return self.old if ref == self.old.ref else tiny_task.chart.get(ref)

        def resources(self, kind: str | None = None) -> Any:
            yield from tiny_task.chart.resources(kind)
            if kind in (None, self.old.type):
                yield self.old

        def search(self, *arguments: Any, **keys: Any) -> Any:
            return tiny_task.chart.search(*arguments, **keys)

    assert judge(row, asked, [], WithOld(), {}).result == "fail"
    assert judge(row, asked, [WithOld.old], tiny_task.chart, {}).result == "pass", "the same, made by the agent"


# 16. A server outage reads as "no orders found"; retrieval asks for tool names instead of facts seen.


def test_16_an_outage_is_an_error_and_never_a_clinical_fail(tiny_task: Task) -> None:
    class Down:
        def get(self, ref: str) -> Any:
            raise EnvironmentFault("the server does not answer.")

        def resources(self, type: str | None = None) -> Any:
            return self.get("")

        def search(self, *arguments: Any, **keys: Any) -> Any:
            return self.get("")

    row = {"ingredient": "warfarin", "replaces": "apixaban"}
    order = {"type": "MedicationRequest", "count": "one", "accept": [row]}
    found = replace(evidence(tiny_task, drug("warfarin 5 mg PO daily")), chart=Down())
    (outage,) = grade(found, [checkpoint(order=order)], AT)
    assert outage.result == "error"
    assert "does not answer" in outage.reason


def test_16_facts_seen_decide_and_not_the_names_of_tools(tiny_task: Task) -> None:
    fact = "Observation/o-creatinine"
    right_tool_wrong_answer = read(tiny_task, 1, "Observation/o-weight")
    other_tool_right_answer = read(tiny_task, 1, fact, tool="fhir_condition_search_problems")
    results = [
        grade(evidence(tiny_task, calls=[call]), [checkpoint(seen=(fact,))], AT)[0].result
        for call in (right_tool_wrong_answer, other_tool_right_answer)
    ]
    assert results == ["fail", "pass"]
