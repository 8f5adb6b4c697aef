"""One trial: what it leaves on the disk, and that whatever happens becomes an outcome."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from graders.regrade import regrade
from providers.base import Message, ModelConfigError, ProviderFault, ToolSpec, Turn
from runtime.clock import clock_of, latest_recorded
from runtime.trial import Settings, run_trial, stricter
from tasks.errors import UsageError
from tasks.manifest import Limits
from tasks.package import Task, load
from tasks.stored import StoredTrial, trial_folder
from tasks.trials import OUTCOMES, Outcome, TrialKey
from tests.runtime.conftest import PATIENT, PRACTITIONER, Scripted, chart_of, turn
from tests.tasks.packages import TINY_ID, TINY_NOTE, tiny_files


def key(agent: str = "oracle", run: int = 1) -> TrialKey:
    return TrialKey(task=TINY_ID, agent=agent, run=run)


def stored(batch: Path, which: TrialKey) -> StoredTrial:
    return StoredTrial(batch / trial_folder(which), which)


def draft() -> Task:
    """The tiny task as authoring leaves it at first: no clock, no checkpoints, no plan."""
    files = {
        path: data
        for path, data in tiny_files().items()
        if not path.startswith(("solution/", "examples/")) and not path.startswith("checkpoints")
    }
    lines = [
        line
        for line in files["task.toml"].decode().splitlines()
        if not line.startswith(("now =", "authority =", "practitioner ="))
    ]
    return load(files | {"task.toml": "\n".join(lines).encode() + b"\n"}, where=TINY_ID)


def test_a_trial_leaves_everything_on_the_disk(tiny_task: Task, tmp_path: Path) -> None:
    outcome = run_trial(tiny_task, key(), tmp_path)
    trial = stored(tmp_path, key())
    assert trial.outcome == outcome
    assert (outcome.outcome, outcome.turns, outcome.calls) == (Outcome.finished, 9, 8)
    assert outcome.agent_digest == tiny_task.agent_digest
    assert outcome.grade_digest == tiny_task.grade_digest
    assert outcome.data_class == "open"
    assert [event.n for event in trial.events()] == list(range(1, len(trial.events()) + 1))
    assert [call.n for call in trial.calls()] == list(range(1, 9))
    assert [write.call for write in trial.writes()] == [5, 6, 7]
    assert trial.files() == {TINY_NOTE: tiny_task.plans["apixaban"].files["reply.md"].decode()}
    assert {verdict.checkpoint for verdict in trial.verdicts()} == {"cp1", "cp2", "cp3"}
    assert trial.damage() == []
    assert json.loads(trial.writes()[0].resource)["authoredOn"] == "2025-03-14T08:30:01-05:00"


def test_grading_again_from_the_disk_gives_the_same_verdicts(tiny_task: Task, tmp_path: Path) -> None:
    for agent in ("oracle", "noop", "shotgun", "parrot"):
        run_trial(tiny_task, key(agent), tmp_path)
        again = regrade(stored(tmp_path, key(agent)), tiny_task)
        assert again.skipped == ""
        assert again.changes == ()


def test_the_oracle_passes_what_code_grades_and_the_others_do_not(tiny_task: Task, tmp_path: Path) -> None:
    results = {}
    for agent in ("oracle", "noop", "shotgun", "parrot"):
        run_trial(tiny_task, key(agent), tmp_path)
        latest = stored(tmp_path, key(agent)).latest_verdicts()
        results[agent] = {name: verdict.result for name, verdict in latest.items()}
    assert (results["oracle"]["cp1"], results["oracle"]["cp2"]) == ("pass", "pass")
    for agent in ("noop", "shotgun", "parrot"):
        assert results[agent]["cp2"] == "fail", agent


def test_a_ledger_entry_is_on_the_disk_before_the_call_that_made_it(tiny_task: Task, tmp_path: Path) -> None:
    seen = []

    class Watching(Scripted):
        def turn(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Turn:
            trial = stored(tmp_path, key("watched"))
            seen.append((len(trial.calls()), len(trial.writes()), trial.alive, trial.outcome))
            return super().turn(messages, tools)

    order = (
        "fhir_communication_create_message",
        {"patient_reference": PATIENT, "message_text": "x", "recipient_reference": PRACTITIONER},
    )
    run_trial(tiny_task, key("watched"), tmp_path, model=Watching([[order], [order, order]]))
    assert seen == [(0, 0, True, None), (1, 1, True, None), (3, 3, True, None)]


def test_two_trials_at_once_on_one_task_do_not_see_each_other(tiny_task: Task, tmp_path: Path) -> None:
    meet = threading.Barrier(2, timeout=60)
    order = ("fhir_service_request_create", {
        "patient_reference": PATIENT, "requester_reference": PRACTITIONER, "code_code": "2823-3", "code_display": "K",
    })  # fmt: skip
    look = ("fhir_service_request_search", {"patient": "p-7001"})

    def agent(n: int) -> Scripted:
        def step(number: int) -> Any:
            if number:
                meet.wait()  # both have written before either looks, and both look before either ends
            return [[order] * (n + 1), [look], turn()][number] if number < 3 else turn()

        return Scripted(step)

    threads = [
        threading.Thread(target=run_trial, args=(tiny_task, key("both", n + 1), tmp_path), kwargs={"model": agent(n)})
        for n in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    for n in range(2):
        trial = stored(tmp_path, key("both", n + 1))
        assert trial.state is Outcome.finished
        assert len(trial.writes()) == n + 1
        assert json.loads(trial.calls()[-1].result)["total"] == n + 1


# ---- drafts and their clock -----------------------------------------------------------------------------------------


def test_a_draft_without_clock_and_checkpoints_runs_and_says_so(tmp_path: Path) -> None:
    task = draft()
    outcome = run_trial(task, key("noop"), tmp_path)
    assert outcome.outcome is Outcome.finished
    assert "task is a draft" in outcome.flags
    assert any(flag.startswith("clock: 2025-03-03T09:12:00-05:00 = the latest time recorded") for flag in outcome.flags)
    assert stored(tmp_path, key("noop")).verdicts() == []


def test_the_oracle_of_a_draft_without_plan_is_a_config_error(tmp_path: Path) -> None:
    outcome = run_trial(draft(), key(), tmp_path)
    assert outcome.outcome is Outcome.config_error
    assert "no solution plan" in outcome.detail


def test_a_tasks_own_clock_goes_before_the_charts(tiny_task: Task) -> None:
    assert clock_of(tiny_task).now == datetime.fromisoformat("2025-03-14T08:30:00-05:00")


def test_plans_for_the_future_are_no_present_time() -> None:
    subject = {"subject": {"reference": "Patient/p"}}
    rows: list[dict[str, Any]] = [
        {"resourceType": "Patient", "id": "p"},
        {"resourceType": "ServiceRequest", "id": "s", "status": "active", "intent": "order", **subject,
         "authoredOn": "2024-01-05", "occurrenceDateTime": "2031-01-01"},
        {"resourceType": "Encounter", "id": "e", "status": "finished", **subject,
         "class": {"code": "AMB"}, "period": {"start": "2024-02-01T08:00:00Z", "end": "2024-02-01T09:30:00Z"}},
        {"resourceType": "Appointment", "id": "a", "status": "booked", "start": "2031-02-01T08:00:00Z",
         "participant": [{"status": "accepted", "actor": {"reference": "Patient/p"}}]},
    ]  # fmt: skip
    assert latest_recorded(chart_of(rows)) == datetime.fromisoformat("2024-02-01T09:30:00+00:00")
    assert latest_recorded(chart_of(rows[:1])) is None


# ---- outcomes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        (ProviderFault("Overloaded."), Outcome.provider_error),
        (ModelConfigError("No key."), Outcome.config_error),
        (RuntimeError("the note says: Mr Ostrander"), Outcome.internal_error),
        (UnicodeDecodeError("utf-8", b"Ostrander", 0, 1, "x"), Outcome.internal_error),
    ],
)
def test_what_is_not_the_agents_doing_is_not_graded(
    tiny_task: Task, tmp_path: Path, fault: Exception, outcome: Outcome
) -> None:
    ended = run_trial(tiny_task, key("broken"), tmp_path, model=Scripted(lambda n: fault))
    assert ended.outcome is outcome
    trial = stored(tmp_path, key("broken"))
    assert trial.verdicts() == []
    assert trial.events()[-1].type == "error"
    assert "Ostrander" not in (trial.path / "trajectory.jsonl").read_text().rpartition("instruction")[2]
    assert "Ostrander" not in ended.detail


@pytest.mark.parametrize(
    ("step", "limits", "outcome"),
    [
        (turn(stop="refused"), Limits(), Outcome.refused),
        (turn(stop="overflow"), Limits(), Outcome.context_overflow),
        ([("nothing", {})], Limits(turns=2), Outcome.turn_limit),
        ([("nothing", {})], Limits(), Outcome.loop_stopped),
    ],
)
def test_what_the_agent_did_is_graded_however_it_ended(
    tiny_task: Task, tmp_path: Path, step: Any, limits: Limits, outcome: Outcome
) -> None:
    ended = run_trial(tiny_task, key("odd"), tmp_path, Settings(limits=limits), model=Scripted(lambda n: step))
    assert ended.outcome is outcome
    assert OUTCOMES[ended.outcome].grade
    assert len(stored(tmp_path, key("odd")).verdicts()) == 3


def test_a_provider_that_is_not_configured_is_a_config_error(tiny_task: Task, tmp_path: Path) -> None:
    ended = run_trial(tiny_task, key("nobody/nothing"), tmp_path)
    assert ended.outcome is Outcome.config_error


def test_an_attempt_is_never_written_over(tiny_task: Task, tmp_path: Path) -> None:
    run_trial(tiny_task, key("noop"), tmp_path)
    with pytest.raises(UsageError):
        run_trial(tiny_task, key("noop"), tmp_path)


def test_the_stricter_of_two_limits_counts() -> None:
    assert stricter(Limits(turns=40, tokens=5), Limits(turns=100, cost=1)) == Limits(turns=40, tokens=5, cost=1)
