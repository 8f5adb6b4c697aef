"""A judge over HTTP: the scripted provider answers, and a judge checkpoint over the tiny task asks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from graders.evidence import Evidence
from graders.judge import Judge
from providers import RetryPolicy
from providers.wire import KEY, Fault, Heard, Reply, Tokens, ToolUse, WireServer
from tasks.declarations import Checkpoint
from tasks.package import Task
from tasks.settings import ModelSettings, Price
from tests.graders.trials import checkpoint as checkpoint_of
from tests.tasks.packages import TINY_NOTE

GOOD_NOTE = "Apixaban 5 mg by mouth twice daily. Creatinine is 1.1 mg/dL, weight 84 kg, age 68: no reduced dose."
RUBRIC = {
    "pass": "The drug, its dose and both numbers that the dose rests on are named.",
    "partial": "The drug and dose are named, and one of the two numbers.",
    "fail": "The dose or both numbers are missing.",
}


def judge_checkpoint(**keys: Any) -> Checkpoint:
    base = {
        "grader": "judge",
        "capability": "documentation",
        "title": "The reply says what the dose rests on",
        "rests_on": ("Observation/o-creatinine", 'DocumentReference/n-1#"stopped warfarin"'),
        "file": TINY_NOTE,
        "rubric": RUBRIC,
    }
    return checkpoint_of("cp4", **(base | keys))


def said(
    verdict: str, *quotes: str, reason: str = "As quoted.", source: str = "answer", faults: Sequence[Fault] = ()
) -> Reply:
    """One juror's opinion."""
    arguments = {
        "quotes": [{"source": source, "text": quote} for quote in quotes],
        "reason": reason,
        "verdict": verdict,
    }
    return Reply(
        calls=(ToolUse(name="answer", arguments=arguments),),
        tokens=Tokens(uncached_input=1000, output=100),
        faults=tuple(faults),
    )


@dataclass
class Jurors:
    """A player: the n-th new conversation gets the n-th reply, the last one for ever."""

    replies: Sequence[Reply]
    asked: int = 0
    guard: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, heard: Heard) -> Reply:
        with self.guard:
            reply = self.replies[min(self.asked, len(self.replies) - 1)]
            self.asked += 1
        return reply


class Bench:
    """A judge on the wire, and what it was asked."""

    def __init__(self, server: WireServer, face: str, cache: Path) -> None:
        self.server, self.face, self.cache = server, face, cache
        self.waits: list[float] = []
        self.judges: list[Judge] = []

    @property
    def name(self) -> str:
        return f"{self.face}/scripted"

    def settings(self, **keys: Any) -> ModelSettings:
        url = self.server.anthropic_url if self.face == "anthropic" else self.server.openai_url
        price = Price(input=1.0, cache_read=0.1, cache_write=1.0, output=10.0)
        return ModelSettings(**({"endpoint": url, "key_env": "WIRE_KEY", "price": price} | keys))

    def judge(self, *, votes: int = 1, key: str = KEY, budget: float = 5.0, **keys: Any) -> Judge:
        made = Judge(
            self.name,
            self.settings(**keys),
            votes=votes,
            cache=self.cache,
            policy=RetryPolicy(budget=budget, sleep=self.waits.append),
            environ={"WIRE_KEY": key},
        )
        self.judges.append(made)
        return made

    @property
    def asked(self) -> list[str]:
        """The user message of every request that the server answered."""
        return [heard.first_user for heard in self.server.heard]


@pytest.fixture(params=("anthropic", "openai"))
def face(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bench(face: str, tmp_path: Path) -> Iterator[Callable[..., Bench]]:
    servers: list[WireServer] = []
    made: list[Bench] = []

    def start(*replies: Reply, player: Any = None) -> Bench:
        server = WireServer({"scripted": player or Jurors(replies)}).start()
        servers.append(server)
        made.append(Bench(server, face, tmp_path / "rulings"))
        return made[-1]

    yield start
    for judge in (one for bench in made for one in bench.judges):
        judge.close()
    for server in servers:
        server.stop()


@pytest.fixture
def note(tiny_task: Task) -> Callable[..., Evidence]:
    """Evidence of a trial that left this text as its reply."""

    def of(text: str | None = GOOD_NOTE, task: Task = tiny_task) -> Evidence:
        return Evidence(task=task, chart=task.chart, files={} if text is None else {TINY_NOTE: text})

    return of
