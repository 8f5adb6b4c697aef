"""A stored trial as steps, and its orders in clinical words."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from review_ui import steps
from review_ui.runs import next_name
from tasks.declarations import Checkpoint
from tasks.stored import TrialWriter
from tasks.trials import CallCite, Grader, QuoteCite, ResourceCite, ToolCall, TrialKey, Verdict, Write

RESULT = json.dumps({"entries": [{"resourceType": "Observation", "id": "k-1"}], "total": 3, "pages": 1})


def call(n: int, tool: str = "fhir_observation_search_labs", **more: Any) -> ToolCall:
    given: dict[str, Any] = {
        "arguments": {"patient": "Patient/p-1", "code": "2823-3", "count": 50},
        "result": RESULT,
        "shown": len(RESULT),
    }
    return ToolCall(n=n, turn=n, call_id=f"c{n}", tool=tool, **(given | more))


def stored(tmp_path: Path, *calls: ToolCall) -> Path:
    with TrialWriter(tmp_path, TrialKey(task="a-task", agent="noop", run=1)) as writer:
        writer.event("system", {"text": "You are", "profile": "paper", "tools": []})
        for one in calls:
            writer.call(one)
        writer.event("model", {"turn": 9, "text": "Done.", "model": "noop"})
        return writer.path / "trajectory.jsonl"


def write(sequence: int, body: dict[str, Any], call: int = 1) -> Write:
    full = {"resourceType": "MedicationRequest", "id": f"w-{sequence}", **body}
    return Write(
        sequence=sequence,
        call=call,
        reference=f"{full['resourceType']}/{full['id']}",
        version=1,
        resource=json.dumps(full),
    )


def verdict(checkpoint: str, result: Any, *cites: Any) -> Verdict:
    return Verdict(
        checkpoint=checkpoint, result=result, reason="because", cites=cites, at=datetime.now(UTC),
        grader=Grader(kind="code", name="orders", version="1"), grade_digest="0" * 64,
    )  # fmt: skip


def test_a_step_says_what_was_asked_what_was_found_and_that_it_was_cut(tmp_path: Path) -> None:
    told = steps.read(
        stored(tmp_path, call(1), call(2, shown=20), call(3, tool="no_such_tool", error=True, result="x", shown=1))
    )
    first, second, third = told.steps
    assert (first.verb, first.words, first.total, first.cut) == ("Search labs", "code 2823-3", 3, False)
    assert second.cut
    assert (third.verb, third.error, third.total) == ("no_such_tool", True, None)
    assert (told.final, told.profile, told.model) == ("Done.", "paper", "noop")


def test_a_step_is_read_in_full_from_its_place_in_the_file(tmp_path: Path) -> None:
    path = stored(tmp_path, *(call(n, arguments={"code": "é" * n}) for n in range(1, 30)))
    told = steps.read(path)
    for step in told.steps:
        found = steps.full(path, step)
        assert found is not None
        assert found.arguments == {"code": "é" * step.n}


def test_a_line_cut_short_by_a_killed_process_is_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    path = stored(tmp_path, call(1), call(2))
    path.write_bytes(path.read_bytes() + b'{"n": 5, "type": "tool", "da')
    told = steps.read(path)
    assert (len(told.steps), told.damaged) == (2, 1)


def test_a_trial_without_a_trajectory_has_no_steps(tmp_path: Path) -> None:
    assert steps.read(tmp_path / "nothing.jsonl").steps == ()


def test_orders_are_told_in_clinical_words() -> None:
    drug = write(
        1,
        {
            "status": "active",
            "intent": "order",
            "medicationCodeableConcept": {"text": "Finerenone"},
            "dosageInstruction": [
                {
                    "text": "once daily",
                    "route": {"text": "oral"},
                    "doseAndRate": [{"doseQuantity": {"value": 10, "unit": "mg"}}],
                }
            ],
        },
    )
    test = write(
        2,
        {
            "resourceType": "ServiceRequest",
            "status": "draft",
            "intent": "order",
            "code": {"text": "Potassium"},
            "occurrenceDateTime": "2026-04-09T08:00:00-05:00",
            "priority": "urgent",
        },
    )
    message = write(
        3, {"resourceType": "Communication", "status": "in-progress", "payload": [{"contentString": "Call me"}]}
    )
    lines = steps.order_lines([drug, test, message])
    assert lines[0].what == "Finerenone, 10 mg once daily oral"
    assert lines[0].detail == "active order"
    assert lines[1].what == "Potassium, on 9 Apr 2026, urgent"
    assert lines[1].detail == "draft, not active"
    assert (lines[2].kind, lines[2].what, lines[2].detail) == ("message", "Message", "Call me")


def test_a_write_that_cannot_be_read_is_listed_all_the_same() -> None:
    broken = Write(sequence=1, call=1, reference="MedicationRequest/x", version=1, resource="{")
    assert steps.order_lines([broken])[0].what == "MedicationRequest/x"


def checkpoint(id: str, **more: Any) -> Checkpoint:
    return Checkpoint.model_validate(
        {
            "id": id, "title": id, "capability": "action_execution", "criticality": "required", "reachable": ["paper"],
            "grader": "code", **more,
        }
    )  # fmt: skip


def test_not_done_is_an_order_that_failed_without_anything_written_for_it() -> None:
    order = {"type": "ServiceRequest", "accept": [{"test": "potassium"}]}
    asked = [
        checkpoint("cp1", order=order),
        checkpoint("cp2", order=order),
        checkpoint("cp3", seen=["Observation/k-1"]),
    ]
    verdicts = {
        "cp1": verdict("cp1", "fail"),
        "cp2": verdict("cp2", "fail", ResourceCite(ref="ServiceRequest/w-1")),
        "cp3": verdict("cp3", "fail"),
    }
    assert [one.id for one in steps.not_done(asked, verdicts)] == ["cp1"]


def test_an_order_carries_the_checkpoints_whose_verdicts_cite_it() -> None:
    lines = steps.order_lines([write(1, {"status": "active"}, call=4), write(2, {"status": "active"}, call=5)])
    verdicts = [
        verdict("cp1", "pass", ResourceCite(ref="MedicationRequest/w-1"), CallCite(n=4)),
        verdict("cp2", "fail", CallCite(n=4), QuoteCite(file="/workspace/output/n.md", text="x")),
    ]
    assert steps.claims(verdicts, lines) == {"MedicationRequest/w-1": ["cp1", "cp2"]}
    assert steps.quotes(verdicts, "/workspace/output/n.md") == [("cp2", "x")]


def test_a_batch_of_the_day_gets_the_next_free_letter() -> None:
    assert next_name("2026-03-14", []) == "2026-03-14-a"
    assert next_name("2026-03-14", ["2026-03-14-a", "2026-03-14-c"]) == "2026-03-14-b"
    taken = [f"2026-03-14-{chr(97 + n)}" for n in range(26)]
    assert next_name("2026-03-14", taken) == "2026-03-14-aa"


def test_a_cut_goes_through_the_resource_that_the_agent_saw_in_part() -> None:
    from review_ui.chartview.elements import when
    from tasks.fhir.chart import Chart

    bodies = [
        {"resourceType": "Condition", "id": f"c-{n}", "code": {"text": f"Problem {n}"}, "onsetDateTime": f"202{n}"}
        for n in range(3)
    ]
    result = json.dumps({"entries": bodies, "total": 3, "pages": 1})
    chart = Chart.open({"Patient.ndjson": b'{"resourceType":"Patient","id":"p-1"}\n'})
    cut = call(1, tool="fhir_condition_search_problems", result=result, shown=result.index("Problem 1"))
    found = steps.entries(cut, chart, UTC)
    assert [(entry.line.what, entry.seen) for entry in found] == [
        ("Problem 0", "whole"),
        ("Problem 1", "part"),
        ("Problem 2", "not"),
    ]
    assert found[0].line.when == when("2020", UTC)
    assert steps.entries(call(2, result="an error", shown=8), chart, UTC) == []
