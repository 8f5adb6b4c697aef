"""`python -m authoring revise` as a person and as a background job: exit codes, drafts, dropping, sending, stopping."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from authoring.demo import Story, with_model
from authoring.demonstration.story import AUTHOR, JUDGE, MODEL, TASK, Reviser
from authoring.reviser import drafts
from providers.wire import Fault, Reply, WireServer
from providers.wire.script import Heard
from runtime import jobs
from tasks import progress
from tasks.workspace import Workspace

ROOT = Path(__file__).resolve().parents[3]
NAME = f"anthropic/{MODEL}"


class Mood:
    """The demonstration's reviser, or whatever a test wants it to say."""

    def __init__(self) -> None:
        self.says: Reply | None = None
        self.faults: tuple[Fault, ...] = ()
        self.asked = threading.Event()

    def reply(self, heard: Heard) -> Reply:
        self.asked.set()
        return (self.says or Reviser().reply(heard)).model_copy(update={"faults": self.faults})


@pytest.fixture
def mood() -> Mood:
    return Mood()


@pytest.fixture
def story(tmp_path: Path, mood: Mood) -> Iterator[Story]:
    workspace = Workspace(tmp_path / "workspace")
    workspace.make()
    with WireServer({MODEL: mood}, key="none") as wire:
        with_model(workspace, wire.anthropic_url)
        told = Story(workspace, lambda step: None)
        told.brought_in()
        told.judged(first=True)
        yield told


def run(story: Story, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "authoring", "revise", TASK, *arguments],
        env=os.environ | {"WORKBENCH_WORKSPACE": str(story.workspace.path), "PYTHONPATH": str(ROOT)},
        cwd=story.workspace.path, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout if code == 0 else done.stdout + done.stderr


def test_ask_drop_and_send_at_the_shell(story: Story) -> None:
    head = story.store.head()
    seen = json.loads(run(story, "--model", NAME, "--preview", "--as", AUTHOR, "--json"))
    assert (seen["findings"], len(seen["resources"]), seen["listed"]) == (5, 18, 0)
    assert drafts(story.workspace, TASK) == []

    draft = json.loads(run(story, "--model", NAME, "--as", AUTHOR, "--json"))
    assert (draft["asked"], draft["answered"], draft["repairs"]) == (NAME, MODEL, 1)
    assert [one["finding"] for one in draft["unaddressed"]] == [list(story.state.findings)[4]]
    printed = run(story, "--draft", draft["id"], "--as", AUTHOR)
    assert printed.index("OPEN") < printed.index("holds")
    assert "WEAKENS A SAFETY CHECKPOINT: cp5" in printed
    assert story.store.head() == head

    printed = run(story, "--draft", draft["id"], "--drop", "5", "--propose", "--as", AUTHOR)
    assert "Up for decision" in printed
    assert "5  dropped" in printed
    assert len(story.state.changes) == 4
    assert "sent to decision already" in run(story, "--draft", draft["id"], "--propose", "--as", AUTHOR, code=2)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--as", AUTHOR), 2, "no model is set to revise"),
        (("--as", AUTHOR, "--model", "openai/none"), 2, "has no model"),
        (("--as", JUDGE, "--model", NAME), 2, "may not propose"),
        (("--as", AUTHOR, "--draft", "none"), 2, "no draft of that job"),
        (("--as", AUTHOR, "--draft", "../x"), 2, "no such draft"),
    ],
)
def test_a_mistake_is_one_message(story: Story, arguments: tuple[str, ...], code: int, words: str) -> None:
    assert words in run(story, *arguments, code=code)


def test_a_refusal_is_an_environment_fault_without_a_draft(story: Story, mood: Mood) -> None:
    mood.says = Reply(stop="refusal")
    assert "refused to answer" in run(story, "--model", NAME, "--as", AUTHOR, code=3)
    assert drafts(story.workspace, TASK) == []


def _ended(story: Story, job: Any) -> jobs.Status:
    """The job's status once its process is gone."""
    jobs._children[job.id].wait(timeout=120)
    return jobs.status(story.workspace, jobs.find(story.workspace, job.id))


def test_a_job_tells_its_progress_and_its_log_quotes_no_chart(story: Story) -> None:
    job = jobs.start(story.workspace, ["authoring", "revise", TASK, "--model", NAME, "--as", AUTHOR])
    status = _ended(story, job)
    assert (status.state, status.message) == ("ended", "")
    (draft,) = drafts(story.workspace, TASK)
    assert draft.id == job.id
    # Without the times: seconds have numbers of their own.
    lines = progress.read(story.workspace.jobs / job.id)
    told = "\n".join(line.model_dump_json(exclude={"at"}) for line in lines)
    assert "4 of 5 edits hold" in told
    for words in ("naproxen", "creatinine", "2.1"):
        assert words not in told


def test_a_stopped_job_leaves_the_exchange_and_no_draft(story: Story, mood: Mood) -> None:
    mood.faults = (Fault(kind="slow", delay=0.5, times=99),)
    job = jobs.start(story.workspace, ["authoring", "revise", TASK, "--model", NAME, "--as", AUTHOR])
    assert mood.asked.wait(120)
    assert jobs.stop(story.workspace, job.id)
    status = _ended(story, job)
    assert status.state == "stopped"
    assert drafts(story.workspace, TASK) == []
    assert len(story.state.changes) == 0
