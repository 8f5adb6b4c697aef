"""What the agent did is read from the ledger and the trajectory, in process."""

from __future__ import annotations

import pytest

from graders.evidence import Evidence, workspace_path
from tasks.package import Task
from tasks.trials import ToolCall
from tests.graders.trials import apixaban, evidence, read, writes


def test_created_is_known_from_the_ledger_and_not_from_the_date_that_was_written(tiny_task: Task) -> None:
    # Weakness 15: an agent that dates its order long before the trial has created it all the same, and what stood in
    # the chart before is not created however late its date.
    backdated = apixaban(authoredOn="1999-01-01")
    found = evidence(tiny_task, backdated)
    assert [order.ref for order in found.orders("MedicationRequest")] == ["MedicationRequest/w-1"]
    assert {row.id for row in found.search("MedicationRequest", ("patient", "p-7001"))} == {"m-1", "m-2", "w-1"}
    assert {row.id for row in found.search_chart("MedicationRequest", ("patient", "p-7001"))} == {"m-1", "m-2"}


def test_appointments_and_messages_come_from_the_ledger_too(tiny_task: Task) -> None:
    message = {
        "resourceType": "Communication",
        "id": "w-2",
        "status": "in-progress",
        "subject": {"reference": "Patient/p-7001"},
        "payload": [{"contentString": "Apixaban is ordered."}],
    }
    visit = {
        "resourceType": "Appointment",
        "id": "w-3",
        "status": "booked",
        "participant": [
            {"actor": {"reference": "Practitioner/d-20"}, "status": "accepted"},
            {"actor": {"reference": "Patient/p-7001"}, "status": "accepted"},
        ],
    }
    found = evidence(tiny_task, message, visit)
    assert [order.id for order in found.orders()] == ["w-2", "w-3"]
    assert [text for _, text in found.messages] == ["Apixaban is ordered."]
    assert found.quote("apixaban") is not None


@pytest.mark.parametrize(
    "subject", [{"reference": "Patient/p-7002"}, {"reference": "http://127.0.0.1:1/s/x/fhir/Patient/p-7002"}]
)
def test_an_order_for_another_patient_is_never_one_for_this_patient(tiny_task: Task, subject: dict[str, str]) -> None:
    found = evidence(tiny_task, apixaban(subject=subject))
    assert found.orders() == ()
    assert [order.id for order in found.misdirected] == ["w-1"]


def test_an_absolute_reference_to_the_patient_is_the_patient(tiny_task: Task) -> None:
    found = evidence(
        tiny_task, apixaban(subject={"reference": "http://127.0.0.1:1/s/x/fhir/Patient/p-7001/_history/1"})
    )
    assert len(found.orders()) == 1
    assert found.misdirected == ()


def test_the_last_version_of_a_resource_counts(tiny_task: Task) -> None:
    first, second = writes(apixaban(), apixaban(status="stopped"))
    found = Evidence(tiny_task, tiny_task.chart, (first, second))
    assert [order.body["status"] for order in found.written] == ["stopped"]


@pytest.mark.parametrize("path", ["/workspace/output/reply.md", "output/reply.md", "reply.md", "./output//reply.md"])
def test_a_file_is_found_by_every_way_of_writing_its_path(tiny_task: Task, path: str) -> None:
    found = evidence(tiny_task, files={"/workspace/output/reply.md": "Hello"})
    assert found.text(path) == "Hello"
    assert found.text("/workspace/output/other.md") is None
    assert workspace_path("a/reply.md") == "a/reply.md"


def test_a_call_whose_write_is_not_in_the_ledger_makes_the_evidence_unreadable(tiny_task: Task) -> None:
    # Weakness 16: a lost ledger must not read as "no orders found".
    call = ToolCall(
        n=4, turn=1, call_id="c", tool="fhir_medication_request_create", arguments={}, result="{}", shown=2, writes=(1,)
    )
    assert evidence(tiny_task, calls=[call]).faults == ("call 4 made write 1, which is not in the ledger",)
    assert evidence(tiny_task, apixaban(), calls=[call]).faults == ()


def test_a_ledger_with_a_gap_is_unreadable(tiny_task: Task) -> None:
    first, second = writes(apixaban(), apixaban(id="w-2"))
    assert Evidence(tiny_task, tiny_task.chart, (second,)).faults
    assert Evidence(tiny_task, tiny_task.chart, (first, first)).faults


def test_seen_asks_for_the_whole_resource_and_seen_text_for_the_words(tiny_task: Task) -> None:
    whole = read(tiny_task, 2, "Observation/o-creatinine", "DocumentReference/n-1")
    cut = read(tiny_task, 1, "Observation/o-creatinine", shown=60)
    found = evidence(tiny_task, calls=[cut, whole])
    assert found.seen("Observation/o-creatinine").n == 2  # type: ignore[union-attr]
    assert found.seen("Observation/o-weight") is None
    assert found.seen_text("stopped warfarin").n == 2  # type: ignore[union-attr]
    assert found.seen_text("stopped warfarin", "Observation/o-creatinine") is None
    assert found.seen_text("stopped metoprolol") is None
