"""A provider's model, asked over HTTP through its SDK, in the same trial and the same loop as the built-in agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from providers.wire import KEY, Reply, Script, WireServer
from providers.wire.script import Fault, PlanScript, ToolUse
from runtime.batch import Item, planned_line
from runtime.trial import Settings, run_trial
from tasks.manifest import Limits
from tasks.package import Task, load
from tasks.plans import Plan
from tasks.stored import StoredTrial, trial_folder
from tasks.trials import Outcome, TrialKey, TrialOutcome
from tasks.workspace import Workspace
from tests.tasks.packages import TINY_ID, tiny_files

FACES = ("anthropic", "openai")


def settings_for(workspace: Workspace, server: WireServer, face: str, **more: str) -> None:
    url = server.anthropic_url if face == "anthropic" else server.openai_url
    lines = {"endpoint": url, "key_env": "WIRE_KEY", "data_class": "open"} | more
    told = "".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items())
    price = "price = {input = 2.0, cache_read = 0.2, cache_write = 2.5, output = 10.0}\n"
    workspace.make()
    workspace.settings_file.write_text(f'[model."{face}/scripted"]\n{told}{price}')


def actions(plan: Plan) -> list[dict[str, Any]]:
    rows = []
    for action in plan.actions:
        arguments = dict(action.arguments)
        if "content_file" in arguments:
            arguments["content"] = plan.content(action)
            del arguments["content_file"]
        rows.append({"tool": action.tool, "arguments": arguments, "save_as": action.save_as})
    return rows


def play(
    task: Task, batch: Path, face: str, player: Any, workspace: Workspace, limits: Limits | None = None, **more: str
) -> tuple[TrialOutcome, StoredTrial]:
    key = TrialKey(task=task.id, agent=f"{face}/scripted", run=1)
    with WireServer({"scripted": player}) as server:
        settings_for(workspace, server, face, **more)
        outcome = run_trial(task, key, batch, Settings(limits=limits or Limits()))
    return outcome, StoredTrial(batch / trial_folder(key), key)


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WIRE_KEY", KEY)


@pytest.mark.parametrize("face", FACES)
def test_a_model_that_plays_the_plan_gets_the_oracles_verdicts(
    tiny_task: Task, tmp_path: Path, workspace: Workspace, face: str
) -> None:
    oracle = TrialKey(task=tiny_task.id, agent="oracle", run=1)
    run_trial(tiny_task, oracle, tmp_path)
    wanted = StoredTrial(tmp_path / trial_folder(oracle), oracle)

    outcome, trial = play(tiny_task, tmp_path, face, PlanScript(actions(tiny_task.plans["apixaban"])), workspace)
    assert (outcome.outcome, outcome.turns, outcome.calls) == (Outcome.finished, 9, 8)
    assert [call.tool for call in trial.calls()] == [call.tool for call in wanted.calls()]
    assert [verdict.result for verdict in trial.verdicts()] == [verdict.result for verdict in wanted.verdicts()]
    assert outcome.usage.uncached_input == sum(20 * turn for turn in range(1, 9)) + 100
    assert outcome.usage.cost is not None
    assert outcome.usage.cost > 0
    for file in trial.path.rglob("*"):
        assert not file.is_file() or KEY not in file.read_text()


@pytest.mark.parametrize("face", FACES)
def test_a_truncated_call_is_not_carried_out_and_the_trial_goes_on(
    tiny_task: Task, tmp_path: Path, workspace: Workspace, face: str
) -> None:
    cut = ToolUse(name="write_file", arguments='{"file_path": "reply.md", "content": "half a rep')
    script = Script([
        Reply(calls=(cut,), stop="length"),
        Reply(calls=(ToolUse(name="fhir_condition_search_problems", arguments={"patient": "p-7001"}),)),
    ])  # fmt: skip
    outcome, trial = play(tiny_task, tmp_path, face, script, workspace)
    assert outcome.outcome is Outcome.finished
    assert trial.files() == {}
    assert [call.tool for call in trial.calls()] == ["fhir_condition_search_problems"]


@pytest.mark.parametrize("face", FACES)
def test_a_create_is_made_once_though_the_provider_fails_around_it(
    tiny_task: Task, tmp_path: Path, workspace: Workspace, face: str
) -> None:
    order = ToolUse(
        name="fhir_communication_create_message",
        arguments={"patient_reference": "Patient/p-7001", "message_text": "Please call."},
    )
    again = (Fault(kind="status", status=500, times=1), Fault(kind="cut_stream", times=1))
    script = Script([Reply(calls=(order,), faults=again), Reply(text="Done.", faults=again)])
    outcome, trial = play(tiny_task, tmp_path, face, script, workspace)
    assert outcome.outcome is Outcome.finished
    assert len(trial.writes()) == 1


@pytest.mark.parametrize("face", FACES)
def test_a_money_limit_ends_the_trial_as_an_outcome(
    tiny_task: Task, tmp_path: Path, workspace: Workspace, face: str
) -> None:
    look = [Reply(calls=(ToolUse(name="fhir_condition_search_problems", arguments={"count": n}),)) for n in range(1, 9)]
    outcome, trial = play(tiny_task, tmp_path, face, Script(look), workspace, Limits(cost=0.002))
    assert outcome.outcome is Outcome.cost_limit
    assert 0 < outcome.turns < 9
    assert len(trial.verdicts()) == 3


def test_a_model_that_is_not_cleared_for_the_data_is_asked_nothing(tmp_path: Path, workspace: Workspace) -> None:
    files = tiny_files()
    files["task.toml"] = files["task.toml"].replace(b'data_class = "open"', b'data_class = "phi"')
    asked = []

    class Watched(Script):
        def reply(self, heard: Any) -> Reply:
            asked.append(heard)
            return super().reply(heard)

    outcome, trial = play(load(files, where=TINY_ID), tmp_path, "openai", Watched([]), workspace)
    assert (outcome.outcome, outcome.turns, asked) == (Outcome.config_error, 0, [])
    assert "phi" in outcome.detail
    assert trial.verdicts() == []


def test_a_model_that_is_not_in_the_settings_is_a_config_error(
    tiny_task: Task, tmp_path: Path, workspace: Workspace
) -> None:
    outcome = run_trial(tiny_task, TrialKey(task=tiny_task.id, agent="openai/other", run=1), tmp_path)
    assert outcome.outcome is Outcome.config_error
    assert str(workspace.settings_file) in outcome.detail


def test_the_plan_records_the_models_settings_and_no_key(tiny_task: Task, tmp_path: Path, workspace: Workspace) -> None:
    with WireServer({"scripted": Script([])}) as server:
        settings_for(workspace, server, "openai")
        line = planned_line(Item(tiny_task, "openai/scripted", 1, tmp_path), Settings())
    assert line["model"]["price"]["output"] == 10.0
    assert KEY not in json.dumps(line)
