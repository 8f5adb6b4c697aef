"""The output gap by authority, and the first failed step with its call."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graders.gap import gap_frame, gaps
from graders.steps import call_of, first_failed_step
from tasks.package import Task
from tasks.trials import CallCite, Grader, Outcome, QuoteCite, ResourceCite, ToolCall, Verdict
from tests.graders.trials import AT, apixaban, evidence, stored, writes
from tests.tasks.packages import TINY_NOTE

SAYS = {TINY_NOTE: "I recommend apixaban 5 mg by mouth twice daily."}
SILENT = {TINY_NOTE: "Blood pressure is well controlled."}
ORDER, DRAFT = apixaban(), apixaban(status="draft", intent="proposal")


def under(task: Task, authority: str) -> Task:
    assert task.meta.context is not None
    context = task.meta.context.model_copy(update={"authority": authority})
    return replace(task, meta=task.meta.model_copy(update={"context": context}))


@pytest.mark.parametrize(
    ("authority", "written", "files", "case"),
    [
        ("orders", (ORDER,), SAYS, ""),
        ("orders", (), SAYS, "recommended and not done"),
        ("orders", (DRAFT,), SAYS, "recommended and not done"),
        ("orders", (ORDER,), SILENT, "done and not written"),
        ("orders", (), SILENT, ""),
        ("pends", (DRAFT,), SAYS, ""),
        ("pends", (), SAYS, "recommended and not done"),
        ("pends", (DRAFT,), SILENT, "done and not written"),
        ("pends", (ORDER,), SAYS, "ordered beyond authority"),
        ("recommends", (), SAYS, ""),
        ("recommends", (ORDER,), SAYS, "ordered beyond authority"),
        ("recommends", (), SILENT, ""),
    ],
)
def test_note_and_record_by_authority(tiny_task: Task, authority: str, written: Any, files: Any, case: str) -> None:
    (found,) = gaps(evidence(under(tiny_task, authority), *written, files=files))
    assert (found.checkpoint, found.case) == ("cp2", case)


def test_a_wrong_dose_is_no_gap(tiny_task: Task) -> None:
    tenfold = apixaban(medicationCodeableConcept={"text": "apixaban"})
    tenfold["dosageInstruction"][0]["doseAndRate"][0]["doseQuantity"]["value"] = 50
    (found,) = gaps(evidence(tiny_task, tenfold, files=SAYS))
    assert (found.said, found.done, found.case) == (True, True, "")


def test_advice_against_is_no_recommendation(tiny_task: Task) -> None:
    (found,) = gaps(evidence(tiny_task, files={TINY_NOTE: "I advise against apixaban. Do not start apixaban."}))
    assert found.case == ""


def test_gaps_of_stored_trials_case_by_case(tiny_task: Task, tmp_path: Path) -> None:
    some = [
        stored(tmp_path, tiny_task, ORDER, files={"reply.md": SILENT[TINY_NOTE]}, run=1),
        stored(tmp_path, tiny_task, files={"reply.md": SAYS[TINY_NOTE]}, run=2),
        stored(tmp_path, tiny_task, files={"reply.md": SAYS[TINY_NOTE]}, run=3, agent_digest="0" * 64),
        stored(tmp_path, tiny_task, files={"reply.md": SAYS[TINY_NOTE]}, run=4, outcome=Outcome.cancelled),
        stored(tmp_path, tiny_task, files={"reply.md": SAYS[TINY_NOTE]}, run=5, outcome=Outcome.provider_error),
        stored(tmp_path, tiny_task, files={"reply.md": SAYS[TINY_NOTE]}, run=6, outcome=Outcome.turn_limit),
    ]
    frame = gap_frame(some, lambda task: tiny_task)
    assert frame[["run", "authority", "case"]].to_numpy().tolist() == [
        [1, "orders", "done and not written"],
        [2, "orders", "recommended and not done"],
        [6, "orders", "recommended and not done"],
    ]
    assert frame["references"].tolist() == ["MedicationRequest/w-1", "", ""]
    assert gap_frame(some, lambda task: "gone").empty


# ---- first failed step ----------------------------------------------------------------------------------------------


def verdict(task: Task, checkpoint: str, result: str, *cites: Any) -> Verdict:
    return Verdict(
        checkpoint=checkpoint, result=result, reason="", cites=cites, at=AT, grade_digest=task.grade_digest,  # type: ignore[arg-type]
        grader=Grader(kind="code", name="n", version="1"),
    )  # fmt: skip


def call(n: int, tool: str, **arguments: Any) -> ToolCall:
    return ToolCall(n=n, turn=n, call_id=f"c{n}", tool=tool, arguments=arguments, result="{}", shown=2)


CALLS = (
    call(1, "fhir_medication_request_create"),
    call(2, "write_file", file_path="output/reply.md"),
    call(3, "write_file", file_path="/workspace/output/reply.md"),
)


def test_the_first_failed_step_is_by_clinical_order_and_leads_to_its_call(tiny_task: Task, tmp_path: Path) -> None:
    trial = stored(tmp_path, tiny_task, ORDER, calls=CALLS, files={"reply.md": "x"})
    trial.add_verdicts(
        [
            verdict(tiny_task, "cp3", "fail", QuoteCite(file=TINY_NOTE, text="x")),
            verdict(tiny_task, "cp2", "fail", ResourceCite(ref="MedicationRequest/w-1")),
            verdict(tiny_task, "cp1", "pass", CallCite(n=1)),
        ]
    )
    step = first_failed_step(trial, tiny_task)
    assert step is not None
    assert step.call is not None
    assert (step.checkpoint.id, step.call.n) == ("cp2", 1)
    assert "wrote MedicationRequest/w-1" in step.why


def test_the_last_writing_of_a_file_is_its_call_and_what_was_never_done_has_none(tiny_task: Task) -> None:
    found, _ = call_of(verdict(tiny_task, "cp3", "fail", QuoteCite(file=TINY_NOTE, text="x")), CALLS, ())
    assert found is not None
    assert found.n == 3
    missing = verdict(tiny_task, "cp2", "fail", ResourceCite(ref="Observation/o-weight"))
    assert call_of(missing, CALLS, writes(ORDER)) == (None, "no call: what it asks for was never done")


def test_nothing_failed_is_no_step(tiny_task: Task, tmp_path: Path) -> None:
    trial = stored(tmp_path, tiny_task)
    trial.add_verdicts([verdict(tiny_task, "cp1", "error"), verdict(tiny_task, "cp2", "pass")])
    assert first_failed_step(trial, tiny_task) is None
