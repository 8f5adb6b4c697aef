"""Reports: denominators side by side, drafts marked, versions apart."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.report import Cell, TrialRow, cells, percent, report, table, trial_rows
from tasks.package import FolderSource, Task
from tasks.stored import Batch, StoredTrial
from tasks.trials import OUTCOMES, Grader, Outcome, Verdict
from tests.graders.trials import stored


def judged(trial: StoredTrial, task: Task, *results: Any, digest: str | None = None) -> StoredTrial:
    """Append a verdict for each checkpoint of the task."""
    trial.add_verdicts(
        Verdict(
            checkpoint=checkpoint.id,
            result=result,
            reason="",
            grader=Grader(kind="code", name="n", version="1"),
            at=datetime(2026, 1, 1, tzinfo=UTC),
            grade_digest=task.grade_digest if digest is None else digest,
        )
        for checkpoint, result in zip(task.checkpoints, results, strict=True)
    )
    return trial


@pytest.fixture
def source(tiny_package: Path) -> FolderSource:
    return FolderSource(tiny_package.parent)


def only(runs: Path, source: FolderSource) -> list[Cell]:
    return cells(trial_rows([Batch(runs / "b1")], source))


def test_every_denominator_stands_beside_the_others(tiny_task: Task, source: FolderSource, tmp_path: Path) -> None:
    judged(stored(tmp_path, tiny_task, run=1), tiny_task, "pass", "pass", "pass")
    judged(stored(tmp_path, tiny_task, run=2), tiny_task, "pass", "fail", "pass")
    judged(stored(tmp_path, tiny_task, run=3), tiny_task, "pass", "pass", "error")
    stored(tmp_path, tiny_task, run=4, outcome=Outcome.environment_error)
    stored(tmp_path, tiny_task, run=5, outcome=Outcome.cancelled, agent_digest=tiny_task.agent_digest)
    (cell,) = only(tmp_path, source)
    assert (cell.attempted, cell.graded, cell.ungraded, cell.invalid, cell.open, cell.passed) == (4, 2, 1, 1, 1, 1)
    assert (cell.pass_rate, cell.strict_rate) == (0.5, 0.25)
    assert (cell.critical_passed, cell.severe_harm_events) == (2, 1)


def test_the_last_attempt_counts(tiny_task: Task, source: FolderSource, tmp_path: Path) -> None:
    stored(tmp_path, tiny_task, outcome=Outcome.provider_error)
    judged(stored(tmp_path, tiny_task, attempt=2), tiny_task, "pass", "pass", "pass")
    (cell,) = only(tmp_path, source)
    assert (cell.attempted, cell.invalid, cell.passed) == (1, 0, 1)


def test_an_errored_run_that_is_invalid_does_not_raise_the_strict_rate(
    tiny_task: Task, source: FolderSource, tmp_path: Path
) -> None:
    judged(stored(tmp_path, tiny_task, run=1), tiny_task, "pass", "pass", "pass")
    for run in (2, 3, 4):
        stored(tmp_path, tiny_task, run=run, outcome=Outcome.internal_error)
    (cell,) = only(tmp_path, source)
    assert (cell.pass_rate, cell.strict_rate) == (1.0, 0.25)


def test_drafts_are_marked(tiny_task: Task, source: FolderSource, tmp_path: Path) -> None:
    judged(stored(tmp_path, tiny_task, flags=("task is a draft",)), tiny_task, "pass", "pass", "pass")
    (cell,) = only(tmp_path, source)
    assert cell.draft
    assert f"{tiny_task.id} (draft)" in table([cell])


def test_versions_of_a_task_are_never_averaged(tiny_task: Task, source: FolderSource, tmp_path: Path) -> None:
    judged(stored(tmp_path, tiny_task, run=1), tiny_task, "pass", "pass", "pass")
    judged(
        stored(tmp_path, tiny_task, run=2, agent_digest="0" * 64), tiny_task, "fail", "fail", "fail", digest="1" * 64
    )
    found = only(tmp_path, source)
    assert len(found) == 2
    assert {cell.attempted for cell in found} == {1}
    assert "do not average them" in table(found)
    other = next(cell for cell in found if cell.agent_digest == "0" * 64)
    assert (other.ungraded, other.notes) == (1, "the task has changed since; run again")


def test_verdicts_on_changed_checkpoints_ask_for_a_regrade(
    tiny_task: Task, source: FolderSource, tmp_path: Path
) -> None:
    judged(stored(tmp_path, tiny_task), tiny_task, "pass", "pass", "pass", digest="1" * 64)
    (cell,) = only(tmp_path, source)
    assert (cell.passed, cell.ungraded, cell.notes) == (0, 1, "the checkpoints have changed since; regrade")


def test_a_trial_that_nobody_graded_and_a_task_that_is_gone_are_ungraded(
    tiny_task: Task, source: FolderSource, tmp_path: Path
) -> None:
    stored(tmp_path, tiny_task)
    assert only(tmp_path, source)[0].notes == "not graded yet"
    (tmp_path / "empty").mkdir()
    (cell,) = only(tmp_path, FolderSource(tmp_path / "empty"))
    assert cell.ungraded == 1
    assert "cannot be loaded" in cell.notes


def test_the_frame_has_the_documented_columns_and_nan_without_a_denominator(
    tiny_task: Task, source: FolderSource, tmp_path: Path
) -> None:
    stored(tmp_path, tiny_task, outcome=Outcome.config_error)
    frame = report([Batch(tmp_path / "b1")], source)
    assert list(frame.columns) == list(Cell.__annotations__)
    assert frame["pass_rate"].isna().all()
    assert frame["strict_rate"].tolist() == [0.0]
    assert report([], source).empty


def test_no_trials_is_said() -> None:
    assert table([]) == "No trials."
    assert percent(None) == "-"
    assert percent(2 / 3) == "66.7%"


@given(st.lists(st.tuples(st.sampled_from(Outcome), st.sampled_from(["pass", "fail", "ungraded"])), max_size=30))
def test_the_counts_add_up_and_the_strict_rate_is_never_above_the_pass_rate(rows: list[tuple[Outcome, Any]]) -> None:
    made = [
        TrialRow(
            "b", "t", "a", n, 1, outcome, OUTCOMES[outcome].counts_as, result if OUTCOMES[outcome].grade else "", "", 0,
            False, "d", "g", "", "",
        )
        for n, (outcome, result) in enumerate(rows, start=1)
    ]  # fmt: skip
    for cell in cells(made):
        assert cell.attempted == cell.graded + cell.ungraded + cell.invalid
        assert cell.attempted + cell.open == len(rows)
        if cell.pass_rate is not None and cell.strict_rate is not None:
            assert cell.strict_rate <= cell.pass_rate


def test_batches_of_different_settings_are_never_averaged_and_a_seed_is_no_difference(
    tiny_task: Task, source: FolderSource, tmp_path: Path
) -> None:
    settings = {"b1": ("paper", 100, 0), "b2": ("paper", 100, 1), "b3": ("paper", 40, 0), "b4": ("extended", 100, 0)}
    for name, (profile, turns, seed) in settings.items():
        judged(stored(tmp_path, tiny_task, batch=name), tiny_task, "pass", "pass", "pass")
        Batch(tmp_path / name).add_plan(
            {
                "kind": "planned",
                "task": tiny_task.id,
                "agent": "oracle",
                "settings": {"profile": profile, "limits": {"turns": turns}, "seed": seed},
            }
        )
    found = cells(trial_rows([Batch(tmp_path / name) for name in settings], source))
    assert sorted((cell.profile, cell.attempted) for cell in found) == [("extended", 1), ("paper", 1), ("paper", 2)]
    assert "different experiments" in table(found)


def test_a_model_under_another_effort_is_another_experiment_trial_by_trial(
    tiny_task: Task, source: FolderSource, tmp_path: Path
) -> None:
    for run in (1, 2, 3):
        judged(stored(tmp_path, tiny_task, agent="a/x", run=run), tiny_task, "pass", "pass", "pass")
    batch = Batch(tmp_path / "b1")
    began = [trial.outcome.started for trial in batch.trials() if trial.outcome]
    assert len(began) == 3
    planned = {"kind": "planned", "task": tiny_task.id, "agent": "a/x", "settings": {"profile": "paper"}}

    def line(at: datetime, effort: str, price: float) -> None:
        model = {"reasoning": effort, "max_output": 9, "endpoint": "", "price": {"input": price}}
        batch.add_plan({**planned, "at": at.isoformat(timespec="seconds"), "model": model})

    line(min(began) - timedelta(hours=2), "low", 1.0)
    line(min(began) - timedelta(hours=1), "low", 2.0)
    (one,) = {row.settings for row in trial_rows([batch], source)}
    assert '"reasoning": "low"' in one
    assert "price" not in one
    line(max(began) + timedelta(hours=1), "high", 2.0)
    assert {row.settings for row in trial_rows([batch], source)} == {one}, "these began before the change"
    outcome = stored(tmp_path, tiny_task, agent="a/x", run=4).path / "outcome.json"
    later = json.loads(outcome.read_text()) | {"started": (max(began) + timedelta(hours=2)).isoformat()}
    outcome.write_text(json.dumps(later))
    assert [row.settings == one for row in trial_rows([batch], source)] == [True, True, True, False]
