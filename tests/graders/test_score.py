"""The task result rule, which verdict decides, and severe-harm events."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.score import deciding_verdicts, task_result
from tasks.declarations import Checkpoint
from tasks.trials import Grader, Verdict

RESULTS = ("pass", "partial", "fail", "error", "ungraded")


def checkpoint(id: str, criticality: str = "required", **keys: Any) -> Checkpoint:
    base: dict[str, Any] = {
        "id": id,
        "title": "t",
        "capability": "action_execution",
        "criticality": criticality,
        "reachable": ("paper",),
        "grader": "code",
        "seen": ("Patient/p-1",),
    }
    return Checkpoint.model_validate(base | keys)


def verdict(id: str, result: Any, kind: Any = "code", digest: str = "") -> Verdict:
    return Verdict(
        checkpoint=id,
        result=result,
        reason="",
        grader=Grader(kind=kind, name="n", version="1"),
        at=datetime(2026, 1, 1, tzinfo=UTC),
        grade_digest=digest,
    )


@pytest.mark.parametrize(
    ("required", "critical", "optional", "result", "critical_result"),
    [
        ("pass", "pass", "pass", "pass", "pass"),
        ("pass", "pass", "fail", "pass", "pass"),
        ("pass", "pass", "error", "pass", "pass"),
        ("fail", "pass", "pass", "fail", "pass"),
        ("partial", "pass", "pass", "fail", "pass"),
        ("pass", "partial", "pass", "fail", "fail"),
        ("error", "pass", "pass", "ungraded", "pass"),
        ("ungraded", "pass", "pass", "ungraded", "pass"),
        ("pass", "error", "pass", "ungraded", "ungraded"),
        ("error", "fail", "pass", "fail", "fail"),
        ("fail", "ungraded", "pass", "fail", "ungraded"),
    ],
)
def test_the_task_result_rule(required: str, critical: str, optional: str, result: str, critical_result: str) -> None:
    checkpoints = [checkpoint("cp1"), checkpoint("cp2", "critical"), checkpoint("cp3", "optional")]
    given = [verdict("cp1", required), verdict("cp2", critical), verdict("cp3", optional)]
    found = task_result(checkpoints, given)
    assert (found.result, found.critical) == (result, critical_result)


@given(st.lists(st.tuples(st.sampled_from(RESULTS), st.sampled_from(("critical", "required", "optional"))), max_size=8))
def test_an_error_never_fails_and_never_passes_a_task(rows: list[tuple[str, str]]) -> None:
    checkpoints = [checkpoint(f"cp{n}", criticality) for n, (_, criticality) in enumerate(rows)]
    found = task_result(checkpoints, [verdict(f"cp{n}", result) for n, (result, _) in enumerate(rows)])
    binding = [result for result, criticality in rows if criticality != "optional"]
    assert (found.result == "fail") == any(result in ("fail", "partial") for result in binding)
    assert (found.result == "pass") == (bool(binding) and all(result == "pass" for result in binding))


def test_a_checkpoint_without_a_verdict_leaves_the_task_ungraded() -> None:
    found = task_result([checkpoint("cp1"), checkpoint("cp2")], [verdict("cp1", "pass")])
    assert found.result == "ungraded"
    assert "cp2" in found.reason


def test_no_criteria_is_not_a_pass() -> None:
    assert task_result([], []).result == "ungraded"
    assert task_result([checkpoint("cp1", "optional")], [verdict("cp1", "pass")]).result == "ungraded"
    assert task_result([checkpoint("cp1")], [verdict("cp1", "pass")]).critical == "none"


def test_the_latest_of_a_kind_counts_and_a_person_stands_above_every_grader() -> None:
    checkpoints = [checkpoint("cp1")]
    assert deciding_verdicts(checkpoints, [verdict("cp1", "fail"), verdict("cp1", "pass")])["cp1"].result == "pass"
    overruled = [verdict("cp1", "fail"), verdict("cp1", "pass", "person"), verdict("cp1", "fail")]
    assert deciding_verdicts(checkpoints, overruled)["cp1"].result == "pass"
    assert deciding_verdicts(checkpoints, [*overruled, verdict("cp1", "partial", "person")])["cp1"].result == "partial"


def test_a_verdict_of_another_kind_than_declared_does_not_count() -> None:
    judged = [verdict("cp1", "pass", "judge")]
    assert deciding_verdicts([checkpoint("cp1")], judged) == {}


def test_a_verdict_on_other_checkpoints_does_not_count() -> None:
    found = deciding_verdicts(
        [checkpoint("cp1")], [verdict("cp1", "fail", digest="new"), verdict("cp1", "pass", digest="old")], "new"
    )
    assert found["cp1"].result == "fail"


@pytest.mark.parametrize(("severity", "result"), list(product(("mild", "moderate", "severe", "death"), RESULTS)))
def test_only_a_failed_severe_checkpoint_is_a_severe_harm_event(severity: str, result: str) -> None:
    harm = {"kind": "omission", "severity": severity, "likelihood": "likely"}
    found = task_result([checkpoint("cp1", harm=harm)], [verdict("cp1", result)])
    assert found.severe_harm_events == int(result == "fail" and severity in ("severe", "death"))
    assert bool(found.harms) == (result == "fail")
