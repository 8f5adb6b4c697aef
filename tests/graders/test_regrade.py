"""Regrading from the disk gives the live verdicts, appends what changed, and says why."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from graders import trust
from graders.evidence import Evidence
from graders.grade import grade
from graders.regrade import regrade, same
from tasks.package import Task
from tasks.trials import Grader, Outcome, Verdict
from tests.graders.trials import AT, apixaban, evidence, read, stored
from tests.tasks.packages import REPLY, TINY_ID, TINY_NOTE, tiny_files

grading = sys.modules["graders.grade"]


@pytest.fixture(autouse=True)
def _shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "shipped", lambda: {TINY_ID: trust.code_digest(tiny_files()["checkpoints.py"])})


def calls(task: Task) -> list[object]:
    first = read(task, 1, "Observation/o-creatinine").model_copy(
        update={"tool": "fhir_medication_request_create", "writes": (1,)}
    )
    return [first, read(task, 2, "Observation/o-creatinine", "DocumentReference/n-1", shown=700)]


def test_from_disk_equals_live_without_the_time(tiny_task: Task, tmp_path: Path) -> None:
    live = grade(evidence(tiny_task, apixaban(), calls=calls(tiny_task), files={TINY_NOTE: REPLY}), at=AT)  # type: ignore[arg-type]
    trial = stored(tmp_path, tiny_task, apixaban(), calls=calls(tiny_task), files={"reply.md": REPLY})  # type: ignore[arg-type]
    again = regrade(trial, tiny_task)
    assert len(live) == len(again.verdicts) == 3
    assert all(same(before, after) for before, after in zip(live, again.verdicts, strict=True))
    assert {v.result for v in live if v.checkpoint != "cp2"} == {"pass", "partial"}


def test_only_what_is_new_is_appended_and_nothing_is_rewritten(tiny_task: Task, tmp_path: Path) -> None:
    trial = stored(tmp_path, tiny_task, files={"reply.md": REPLY})
    assert {change.why for change in regrade(trial, tiny_task).changes} == {"not graded before"}
    first = (trial.path / "verdicts.jsonl").read_bytes()
    assert regrade(trial, tiny_task).changes == ()
    assert (trial.path / "verdicts.jsonl").read_bytes() == first


def test_a_new_grader_version_lists_what_changed_and_why(
    tiny_task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = stored(tmp_path, tiny_task, files={"reply.md": "nothing"})
    regrade(trial, tiny_task)
    before = (trial.path / "verdicts.jsonl").read_bytes()
    monkeypatch.setattr(grading, "VERSION", "next")
    changes = regrade(trial, tiny_task).changes
    assert len(changes) == 3
    assert {change.why for change in changes} == {"grader version 1 became next"}
    assert not any(change.flips for change in changes)
    assert (trial.path / "verdicts.jsonl").read_bytes().startswith(before)


def test_changed_checkpoints_are_named_as_the_reason_and_flips_are_marked(tiny_task: Task, tmp_path: Path) -> None:
    trial = stored(tmp_path, tiny_task, files={"reply.md": REPLY})
    regrade(trial, tiny_task)
    easier = tiny_task.checkpoints[0].model_copy(update={"seen": ('instruction#"on no anticoagulant now"',)})
    changed = replace(
        tiny_task,
        checkpoints=(easier, *tiny_task.checkpoints[1:]),
        files={**tiny_task.files, "checkpoints.toml": b"# changed\n"},
    )
    found = {change.checkpoint: change for change in regrade(trial, changed).changes}
    assert (found["cp1"].why, found["cp1"].flips) == ("the checkpoints have changed", True)
    assert found["cp1"].before.result == "fail"  # type: ignore[union-attr]
    assert not found["cp3"].flips


def test_a_dry_run_appends_nothing(tiny_task: Task, tmp_path: Path) -> None:
    trial = stored(tmp_path, tiny_task)
    assert len(regrade(trial, tiny_task, dry_run=True).changes) == 3
    assert trial.verdicts() == []


def test_a_persons_verdict_is_left_alone(tiny_task: Task, tmp_path: Path) -> None:
    trial = stored(tmp_path, tiny_task)
    regrade(trial, tiny_task)
    person = Verdict(
        checkpoint="cp1",
        result="pass",
        reason="Read it myself.",
        grader=Grader(kind="person", name="dr-a", version=""),
        at=AT,
        grade_digest=tiny_task.grade_digest,
    )
    trial.add_verdicts([person])
    assert regrade(trial, tiny_task).changes == ()
    assert trial.latest_verdicts()["cp1"] == person


@pytest.mark.parametrize(
    "outcome", [Outcome.environment_error, Outcome.provider_error, Outcome.cancelled, Outcome.running]
)
def test_a_trial_without_a_gradable_outcome_is_skipped(tiny_task: Task, tmp_path: Path, outcome: Outcome) -> None:
    trial = stored(tmp_path, tiny_task, outcome=outcome)
    found = regrade(trial, tiny_task)
    assert found.skipped
    assert found.verdicts == ()


def test_a_trial_of_another_version_of_the_task_is_skipped(tiny_task: Task, tmp_path: Path) -> None:
    found = regrade(stored(tmp_path, tiny_task, agent_digest="0" * 64), tiny_task)
    assert "run it again" in found.skipped


@pytest.mark.parametrize("name", ["ehr.ndjson", "trajectory.jsonl"])
def test_a_damaged_record_is_an_error_and_never_read_as_nothing_done(
    tiny_task: Task, tmp_path: Path, name: str
) -> None:
    trial = stored(tmp_path, tiny_task, apixaban(), calls=calls(tiny_task))  # type: ignore[arg-type]
    file = trial.path / name
    file.write_bytes(file.read_bytes()[:-40])
    assert {verdict.result for verdict in regrade(trial, tiny_task).verdicts} == {"error"}


def test_a_lost_ledger_is_an_error(tiny_task: Task, tmp_path: Path) -> None:
    trial = stored(tmp_path, tiny_task, apixaban(), calls=calls(tiny_task))  # type: ignore[arg-type]
    (trial.path / "ehr.ndjson").unlink()
    assert Evidence.from_trial(tiny_task, trial).created == ()
    assert {verdict.result for verdict in regrade(trial, tiny_task).verdicts} == {"error"}
