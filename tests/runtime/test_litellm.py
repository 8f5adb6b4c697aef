"""A translating proxy of other people between our clients and the wire server, both ways: the verdicts stay the same.

litellm is not ours, so that it catches what we would misread on both sides. It is installed into an environment of its
own, once; where that cannot be done the tests skip and say why.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from providers.wire import KEY, PlanScript, WireServer
from runtime.trial import run_trial
from tasks.package import Task
from tasks.stored import StoredTrial
from tasks.trials import Outcome, TrialKey, TrialOutcome
from tasks.workspace import Workspace
from tests.tasks.packages import TINY_ID

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

VERSION = "1.108"
#: The proxy starts only with a key of its own; our clients give it, and the proxy gives KEY to the wire server.
PROXY_KEY = f"sk-{secrets.token_hex(32)}"
HOME = Path(os.environ.get("WORKBENCH_LITELLM") or Path(tempfile.gettempdir()) / f"workbench-litellm-{VERSION}")

#: One deployment each way. A backend with chat completions only needs the prefix hosted_vllm/ and the setting below; a
#: failed deployment would be in cooldown and answer 429 by itself.
CONFIG = """\
model_list:
  - model_name: to-completions
    litellm_params: {{model: hosted_vllm/scripted, api_base: {openai}, api_key: {key}}}
  - model_name: to-messages
    litellm_params: {{model: anthropic/scripted, api_base: {anthropic}, api_key: {key}}}
litellm_settings: {{use_chat_completions_url_for_anthropic_messages: true, num_retries: 0, telemetry: false}}
router_settings: {{num_retries: 0, disable_cooldowns: true}}
"""


def installed() -> Path:
    """The litellm command. Skips where it cannot be installed."""
    command = HOME / "bin" / "litellm"
    if not command.exists():
        shutil.rmtree(HOME, ignore_errors=True)
        made = subprocess.run([sys.executable, "-m", "venv", str(HOME)], capture_output=True, text=True)
        done = made if made.returncode else subprocess.run(
            [str(HOME / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check",
             f"litellm[proxy]=={VERSION}.*"],
            capture_output=True, text=True,
        )  # fmt: skip
        if done.returncode:
            shutil.rmtree(HOME, ignore_errors=True)
            pytest.skip(f"litellm cannot be installed here: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    return command


@pytest.fixture(scope="module")
def wire() -> Iterator[WireServer]:
    with WireServer({}) as server:
        yield server


@pytest.fixture(scope="module")
def proxy(wire: WireServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The proxy's base URL."""
    folder = tmp_path_factory.mktemp("litellm")
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(openai=wire.openai_url, anthropic=wire.anthropic_url, key=KEY))
    command = installed()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (folder / "log").open("wb") as log:
        env = os.environ | {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": PROXY_KEY}
        process = subprocess.Popen(
            [str(command), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)],
            stdout=log, stderr=log, cwd=folder, env=env,
        )  # fmt: skip
        try:
            url = f"http://127.0.0.1:{port}"
            pause, until = threading.Event(), time.monotonic() + 240
            while not _answers(f"{url}/health/liveliness"):
                if process.poll() is not None or time.monotonic() > until:
                    pytest.fail(f"litellm did not start: {(folder / 'log').read_text()[-1500:]}")
                pause.wait(0.5)
            yield url
        finally:
            process.terminate()
            process.wait(30)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def twenty_turns(task: Task) -> PlanScript:
    """The task's plan behind reads, 20 turns in all."""
    plan = PlanScript.of(task.plans["apixaban"])
    reads = [
        {"tool": "fhir_observation_search_labs", "arguments": {"patient": "p-7001", "count": n + 1}, "save_as": ""}
        for n in range(19 - len(plan.actions))
    ]
    return replace(plan, actions=[*reads, *plan.actions], thinking="")


def configure(workspace: Workspace, models: dict[str, str]) -> None:
    told = "".join(
        f'[model."{name}"]\nendpoint = "{url}"\nprice = {{input = 1.0, output = 2.0}}\n'
        f'key_env = "{"PROXY_KEY" if "/to-" in name else "WIRE_KEY"}"\n'
        for name, url in models.items()
    )
    workspace.make()
    workspace.settings_file.write_text(told)


def play(task: Task, folder: Path, agent: str) -> tuple[TrialOutcome, StoredTrial]:
    key = TrialKey(task=TINY_ID, agent=agent, run=1)
    outcome = run_trial(task, key, folder)
    return outcome, StoredTrial.of(folder, key)


@pytest.mark.parametrize(
    ("face", "through"), [("anthropic", "to-completions"), ("openai", "to-messages")], ids=["a-to-o", "o-to-a"]
)
def test_twenty_turns_through_the_proxy_come_to_the_same_verdicts(
    tiny_task: Task,
    tmp_path: Path,
    workspace: Workspace,
    wire: WireServer,
    proxy: str,
    monkeypatch: pytest.MonkeyPatch,
    face: str,
    through: str,
    record_property: Any,
) -> None:
    monkeypatch.setenv("WIRE_KEY", KEY)
    monkeypatch.setenv("PROXY_KEY", PROXY_KEY)
    wire.players = {"scripted": twenty_turns(tiny_task)}
    direct_url = wire.anthropic_url if face == "anthropic" else wire.openai_url
    configure(
        workspace,
        {f"{face}/scripted": direct_url, f"{face}/{through}": proxy if face == "anthropic" else f"{proxy}/v1"},
    )
    wire.rewind()
    plain, direct = play(tiny_task, tmp_path, f"{face}/scripted")
    heard_direct = list(wire.heard)
    wire.rewind()
    ended, proxied = play(tiny_task, tmp_path, f"{face}/{through}")
    heard = list(wire.heard)

    assert (plain.outcome, plain.turns) == (Outcome.finished, 20), plain.detail
    assert (ended.outcome, ended.turns) == (Outcome.finished, 20), ended.detail
    assert {one.face for one in heard} == ({"openai"} if face == "anthropic" else {"anthropic"})
    assert [(v.checkpoint, v.result) for v in proxied.verdicts()] == [
        (v.checkpoint, v.result) for v in direct.verdicts()
    ]
    assert [
        (c.tool, c.arguments if isinstance(c.arguments, str) else sorted(c.arguments)) for c in proxied.calls()
    ] == [(c.tool, c.arguments if isinstance(c.arguments, str) else sorted(c.arguments)) for c in direct.calls()]
    assert len(proxied.writes()) == len(direct.writes())
    assert proxied.files() == direct.files()
    changes = _changes(heard_direct[-1], heard[-1], plain, ended, direct, proxied)
    record_property("changes", "; ".join(changes))
    print(f"\n{face} through litellm {through}:", *changes, sep="\n  ")  # noqa: T201 (what the note lists; pytest -s)


def _changes(
    before: Any, after: Any, plain: TrialOutcome, ended: TrialOutcome, direct: StoredTrial, proxied: StoredTrial
) -> list[str]:
    """What the proxy changed, in words."""
    found = []
    if before.system != after.system:
        found.append("the system prompt's text")
    if before.first_user != after.first_user:
        found.append("the instruction's text")
    if list(before.tools) != list(after.tools):
        found.append("the names or order of the tools")
    was, now = (_schemas(one) for one in (before, after))
    if was != now:
        changed = [name for name in was if was[name] != now.get(name)]
        found.append(f"the schemas of {len(changed)} tools, as {was[changed[0]]} became {now.get(changed[0])}")
    found.append(f"keys of the request: {sorted(before.raw)} became {sorted(after.raw)}")
    for one, other in zip(before.results.values(), after.results.values(), strict=False):
        if one.text != other.text and "id" not in one.text:
            found.append("the text of tool results")
            break
    if plain.usage != ended.usage:
        found.append(f"usage: {plain.usage} became {ended.usage}")
    models = [{event.data["model"] for event in trial.events() if event.type == "model"} for trial in (direct, proxied)]
    if models[0] != models[1]:
        found.append(f"the model's name: {models[0]} became {models[1]}")
    ids = [[call.call_id for call in trial.calls()] for trial in (direct, proxied)]
    if ids[0][0][:6] != ids[1][0][:6]:
        found.append(f"call ids: {ids[0][0]} became {ids[1][0]}")
    return found


def _schemas(heard: Any) -> dict[str, str]:
    out = {}
    for tool in heard.raw.get("tools") or ():
        function = tool.get("function") or {}
        out[function.get("name") or tool["name"]] = json.dumps(
            function.get("parameters") or tool.get("input_schema"), sort_keys=True
        )
    return out


@pytest.mark.parametrize(
    ("face", "through"), [("anthropic", "to-completions"), ("openai", "to-messages")], ids=["a-to-o", "o-to-a"]
)
def test_thinking_through_the_proxy_never_becomes_a_clinical_fail(
    tiny_task: Task,
    tmp_path: Path,
    workspace: Workspace,
    wire: WireServer,
    proxy: str,
    monkeypatch: pytest.MonkeyPatch,
    face: str,
    through: str,
) -> None:
    """Whether thinking survives a proxy is its own affair; a backend that then refuses is a fault of the setting."""
    monkeypatch.setenv("WIRE_KEY", KEY)
    monkeypatch.setenv("PROXY_KEY", PROXY_KEY)
    wire.rewind()
    wire.players = {"scripted": replace(twenty_turns(tiny_task), thinking="Working through the record.")}
    configure(workspace, {f"{face}/{through}": proxy if face == "anthropic" else f"{proxy}/v1"})
    ended, trial = play(tiny_task, tmp_path, f"{face}/{through}")
    print(f"\nthinking, {face} through litellm {through}: {ended.outcome} after {ended.turns} turns: {ended.detail}")  # noqa: T201 (pytest -s)
    assert ended.outcome in (Outcome.finished, Outcome.config_error, Outcome.provider_error)
    assert bool(trial.verdicts()) == (ended.outcome is Outcome.finished)
