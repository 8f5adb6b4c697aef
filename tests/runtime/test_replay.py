"""What is kept of a trial over the wire is enough to play it again to the same verdicts; a key is never in it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from providers.exchange import EXCHANGE, exchanges
from providers.wire import KEY, Fault, Faulty, PlanScript, Script, WireServer
from runtime.__main__ import app
from runtime.replay import replay, stored_turns
from runtime.trial import Settings, run_trial
from tasks.package import Task
from tasks.stored import StoredTrial
from tasks.trials import Outcome, TrialKey
from tasks.workspace import Workspace
from tests.tasks.packages import TINY_ID

ROOT = Path(__file__).resolve().parents[2]
FACES = ("anthropic", "openai")


def configure(workspace: Workspace, server: WireServer, **more: Any) -> None:
    told = ""
    for face, url in (("anthropic", server.anthropic_url), ("openai", server.openai_url)):
        told += f'[model."{face}/scripted"]\nendpoint = "{url}"\nkey_env = "WIRE_KEY"\n'
        told += "price = {input = 2.0, cache_read = 0.2, cache_write = 2.5, output = 10.0}\n"
        told += "".join(f"{name} = {json.dumps(value)}\n" for name, value in more.items())
    workspace.make()
    workspace.settings_file.write_text(told)


@pytest.fixture
def wire(tiny_task: Task, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    monkeypatch.setenv("WIRE_KEY", KEY)
    player = Faulty(
        PlanScript.of(tiny_task.plans["apixaban"]),
        seed=3,
        rate=0.3,
        faults=(Fault(kind="cut_stream"), Fault(kind="stream_error"), Fault(kind="status", status=429, retry_after=0)),
    )
    with WireServer({"scripted": player}) as server:
        configure(workspace, server, reasoning="high")
        yield server


@pytest.mark.parametrize("face", FACES)
def test_a_stored_exchange_replays_to_the_same_calls_results_and_verdicts(
    tiny_task: Task, tmp_path: Path, wire: WireServer, face: str
) -> None:
    key = TrialKey(task=TINY_ID, agent=f"{face}/scripted", run=1)
    ended = run_trial(tiny_task, key, tmp_path)
    assert ended.outcome is Outcome.finished
    trial = StoredTrial.of(tmp_path, key)

    source, turns = stored_turns(trial)
    assert (source, len(turns)) == (EXCHANGE, 9)
    again = replay(trial, tiny_task, Settings())
    assert again.differences == ()
    assert (again.source, again.turns, again.calls, again.verdicts) == (EXCHANGE, 9, 8, 3)

    # Every request is there, whole, those that failed too.
    kept = list(exchanges(trial.path / EXCHANGE))
    assert len(kept) == len(wire.requests) > 9
    for mine, theirs in zip(kept, wire.requests, strict=True):
        assert mine.request["messages"] == _unmarked(theirs["messages"])
        assert mine.request["model"] == theirs["model"]
    assert {one.failure for one in kept} >= {""}
    assert sum(one.failure != "" for one in kept) == len(kept) - 9
    for file in trial.path.rglob("*"):
        assert not file.is_file() or KEY not in file.read_text()


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(inner) for key, inner in value.items() if key != "cache_control"}
    return [_unmarked(inner) for inner in value] if isinstance(value, list) else value


def test_a_replay_tells_what_is_no_longer_the_same(tiny_task: Task, tmp_path: Path, wire: WireServer) -> None:
    key = TrialKey(task=TINY_ID, agent="openai/scripted", run=1)
    run_trial(tiny_task, key, tmp_path)
    trial = StoredTrial.of(tmp_path, key)
    path = trial.path / EXCHANGE
    text = path.read_text()
    assert "apixaban" in text
    path.write_text(text.replace('"tool_calls"', '"tool_callz"'))
    assert replay(trial, tiny_task, Settings()).differences != ()
    path.write_text(text)
    verdicts = trial.path / "verdicts.jsonl"
    verdicts.write_text(verdicts.read_text().replace('"result":"pass"', '"result":"fail"'))
    assert any("now pass" in line for line in replay(trial, tiny_task, Settings()).differences)


@pytest.mark.parametrize("agent", ["oracle", "shotgun", "parrot"])
def test_built_in_agents_replay_from_their_trajectory(tiny_task: Task, tmp_path: Path, agent: str) -> None:
    key = TrialKey(task=TINY_ID, agent=agent, run=1)
    run_trial(tiny_task, key, tmp_path)
    again = replay(StoredTrial.of(tmp_path, key), tiny_task, Settings())
    assert (again.source, again.differences) == ("trajectory.jsonl", ())


def test_the_whole_way_from_a_shell(tiny_package: Path, tmp_path: Path) -> None:
    """The wire server as a command, `runtime run` against it, `runtime replay`, and no key anywhere."""
    marked = "wire-key"
    env = os.environ | {"WORKBENCH_WORKSPACE": str(tmp_path / "w"), "PYTHONPATH": str(ROOT), "WIRE_KEY": marked}
    command = [sys.executable, "-m", "providers.wire", "--plan", f"{tiny_package}:apixaban", "--faults", "0.1"]
    with subprocess.Popen(command, env=env, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stdout is not None
            said = ""
            while "Serving until" not in said:
                said += serving.stdout.readline()
            (tmp_path / "w").mkdir()
            (tmp_path / "w" / "workbench.toml").write_text(said.partition("#")[0])
            for face in FACES:
                run = [sys.executable, "-m", "runtime", "run", str(tiny_package), "--agent", f"{face}/scripted"]
                done = subprocess.run([*run, "--batch", face], env=env, cwd=tmp_path, capture_output=True, text=True)
                assert done.returncode == 0, done.stderr
                name = f"{face}/{TINY_ID}/{face}/scripted/1"
                again = subprocess.run(
                    [sys.executable, "-m", "runtime", "replay", name, "--json"],
                    env=env, cwd=tmp_path, capture_output=True, text=True,
                )  # fmt: skip
                assert again.returncode == 0, again.stdout + again.stderr
                told = json.loads(again.stdout)
                assert (told["source"], told["differences"], told["verdicts"]) == (EXCHANGE, [], 3)
        finally:
            serving.terminate()
    # The server's own line names its key, and that is where it ends.
    for file in (tmp_path / "w").rglob("*"):
        assert not file.is_file() or marked.encode() not in file.read_bytes(), file


# ---- keys -----------------------------------------------------------------------------------------------------------


MARKED = "sk-MARKED-0123456789abcdef"


class Echo:
    """A provider that repeats the key wherever it can: in text, in errors."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def reply(self, heard: Any) -> Any:
        reply = self.inner.reply(heard)
        return reply if heard.turn else reply.model_copy(update={"faults": (Fault(kind="garbled"),)})


@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("case", ["good", "refused", "unreachable", "bug"])
def test_a_key_is_in_no_file_log_error_or_repr(
    tiny_task: Task,
    tmp_path: Path,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    face: str,
    case: str,
) -> None:
    monkeypatch.setenv("WIRE_KEY", MARKED)
    caplog.set_level(logging.DEBUG)
    player = Echo(Script([]))
    with WireServer({"scripted": player}, key="another" if case == "refused" else MARKED) as server:
        configure(workspace, server)
        if case == "unreachable":
            server.stop()
        if case == "bug":
            # An exception from inside the SDK that carries the client, headers and all.
            def burst(self: Any, *args: Any, **more: Any) -> Any:
                raise RuntimeError(f"headers: {self.auth_headers} {vars(self)}")

            target = "anthropic.Anthropic.post" if face == "anthropic" else "openai.OpenAI.post"
            monkeypatch.setattr(target, burst)
        monkeypatch.setattr("providers.retry.RetryPolicy.__init__.__defaults__", (-1.0, 0.0, 0.0, *_tail()))
        key = TrialKey(task=TINY_ID, agent=f"{face}/scripted", run=1)
        outcome = run_trial(tiny_task, key, workspace.runs / "b")
    expected = {"good": "provider_error", "refused": "config_error", "unreachable": "provider_error"}
    assert outcome.outcome == expected.get(case, "internal_error")
    trial = StoredTrial.of(workspace.runs / "b", key)
    assert (trial.path / "trajectory.jsonl").exists()
    said = caplog.text + "".join(capfd.readouterr()) + repr(outcome)
    assert MARKED not in said
    assert "atrial fibrillation" not in said, "what the model reads is a chart: in no log, at no level"
    found = [file for file in workspace.path.rglob("*") if file.is_file() and MARKED.encode() in file.read_bytes()]
    assert found == []


def _tail() -> tuple[Any, ...]:
    from providers.retry import RetryPolicy

    return tuple(RetryPolicy.__init__.__defaults__ or ())[3:]


def test_replaying_what_is_not_there_is_one_message(workspace: Workspace) -> None:
    said = CliRunner().invoke(app, ["replay", "nothing"])
    assert said.exit_code == 2
    assert "nothing" in said.stderr
