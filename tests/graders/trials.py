"""Evidence and stored trials made by hand for the graders' tests, over the tiny task."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graders.evidence import Evidence
from tasks.declarations import Checkpoint
from tasks.package import Task
from tasks.stored import Batch, StoredTrial, TrialWriter
from tasks.trials import Outcome, ToolCall, TrialKey, TrialOutcome, Write

AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def checkpoint(id: str = "cp1", **keys: Any) -> Checkpoint:
    """A code checkpoint of capability action_execution with these keys."""
    base: dict[str, Any] = {
        "id": id,
        "title": "A checkpoint",
        "capability": "action_execution",
        "criticality": "required",
        "reachable": ("paper",),
        "grader": "code",
    }
    return Checkpoint.model_validate(base | keys)


def with_checkpoints(task: Task, *checkpoints: Checkpoint) -> Task:
    """The task with other checkpoints."""
    return replace(task, checkpoints=checkpoints)


def read(
    task: Task, n: int, *refs: str, shown: int | None = None, tool: str = "fhir_observation_search_labs"
) -> ToolCall:
    """A read call that returned these resources of the chart."""
    entries = []
    for ref in refs:
        resource = task.chart.get(ref)
        assert resource is not None
        body = dict(resource.body)
        if ref.startswith("DocumentReference/"):
            import base64

            attachment = dict(body["content"][0]["attachment"])
            attachment["data"] = base64.b64decode(attachment["data"]).decode()
            body["content"] = [{"attachment": attachment}]
        entries.append(body)
    result = json.dumps({"entries": entries, "total": len(entries), "pages": 1}, default=float)
    return ToolCall(
        n=n,
        turn=n,
        call_id=f"c{n}",
        tool=tool,
        arguments={"patient": "p-7001"},
        result=result,
        shown=len(result) if shown is None else shown,
    )


def apixaban(**keys: Any) -> dict[str, Any]:
    """An active order of apixaban 5 mg by mouth twice daily for the tiny patient."""
    return {
        "resourceType": "MedicationRequest",
        "id": "w-1",
        "status": "active",
        "intent": "order",
        "medicationCodeableConcept": {"text": "apixaban 5 mg tablet"},
        "subject": {"reference": "Patient/p-7001"},
        "requester": {"reference": "Practitioner/d-20"},
        "authoredOn": "2025-03-14T08:30:01-05:00",
        "dosageInstruction": [
            {
                "text": "BID",
                "timing": {"code": {"text": "BID"}},
                "route": {"text": "oral"},
                "doseAndRate": [{"doseQuantity": {"value": 5, "unit": "mg"}}],
            }
        ],
    } | keys


def writes(*bodies: Mapping[str, Any]) -> tuple[Write, ...]:
    """The ledger of these creates, made by calls 1, 2, ..."""
    return tuple(
        Write(
            sequence=n,
            call=n,
            reference=f"{body['resourceType']}/{body['id']}",
            version=1,
            resource=json.dumps(body),
        )
        for n, body in enumerate(bodies, start=1)
    )


def evidence(task: Task, *bodies: Mapping[str, Any], calls: Sequence[ToolCall] = (), **keys: Any) -> Evidence:
    """Evidence of a trial that wrote these resources."""
    return Evidence(task=task, chart=task.chart, created=writes(*bodies), calls=tuple(calls), **keys)


def stored(
    runs: Path,
    task: Task,
    *bodies: Mapping[str, Any],
    calls: Sequence[ToolCall] = (),
    files: Mapping[str, str] | None = None,
    outcome: Outcome = Outcome.finished,
    agent: str = "oracle",
    run: int = 1,
    attempt: int = 1,
    flags: tuple[str, ...] = (),
    agent_digest: str | None = None,
    batch: str = "b1",
) -> StoredTrial:
    """A trial on the disk, in batch `b1` by default."""
    folder = Batch(runs / batch) if (runs / batch).is_dir() else Batch.create(runs, batch)
    key = TrialKey(task=task.id, agent=agent, run=run, attempt=attempt)
    with TrialWriter(folder.path, key) as writer:
        for write in writes(*bodies):
            writer.write(write)
        for call in calls:
            writer.call(call)
        for name, text in (files or {}).items():
            (writer.workspace / "output" / name).write_text(text, "utf-8")
        if outcome is not Outcome.running:
            writer.finish(
                TrialOutcome(
                    key=key,
                    outcome=outcome,
                    started=AT,
                    ended=AT,
                    flags=flags,
                    data_class="open",
                    agent_digest=task.agent_digest if agent_digest is None else agent_digest,
                    grade_digest=task.grade_digest,
                )
            )
        return writer.stored
