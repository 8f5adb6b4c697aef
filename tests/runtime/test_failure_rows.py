"""Every way in which a provider or the EHR fails, as whole trials through the loop, in both wire formats."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from providers import RetryPolicy, chat
from providers.base import Model
from providers.wire import KEY, Fault, Faulty, PlanScript, Reply, Script, Tokens, ToolUse, WireServer
from providers.wire.script import PASSING
from runtime import ehr
from runtime.ehr.embedded import EmbeddedSession
from runtime.trial import Settings, run_trial
from tasks.errors import EnvironmentFault
from tasks.fhir.chart import Chart
from tasks.fhir.resources import Resource
from tasks.manifest import Limits
from tasks.package import Task
from tasks.settings import ModelSettings, Price
from tasks.stored import StoredTrial
from tasks.trials import OUTCOMES, Outcome, TrialKey, TrialOutcome, Usage
from tests.runtime.conftest import PATIENT
from tests.tasks.packages import TINY_ID

FACES = ("anthropic", "openai")
PRICE = Price(input=2.0, cache_read=0.2, cache_write=2.5, output=10.0)
READ = ToolUse(name="fhir_condition_search_problems", arguments={"patient": "p-7001"})
ORDER = ToolUse(
    name="fhir_communication_create_message", arguments={"patient_reference": PATIENT, "message_text": "Please call."}
)


class Wired:
    """A wire server whose models a test adds as it goes, and trials on it that never really wait."""

    def __init__(self, task: Task, folder: Path) -> None:
        self.server = WireServer({}).start()
        self.task = task
        self.folder = folder

    def trial(
        self,
        face: str,
        player: Any,
        *,
        name: str = "scripted",
        limits: Limits | None = None,
        backend: str = "embedded",
        attempts: int = 1,
        budget: float = 60.0,
        **settings: Any,
    ) -> tuple[TrialOutcome, StoredTrial]:
        self.server.players[name] = player
        url = self.server.anthropic_url if face == "anthropic" else self.server.openai_url
        told = ModelSettings(endpoint=url, key_env="WIRE_KEY", price=PRICE, concurrency=64, **settings)

        def maker(agent: str, task: Task) -> Model:
            policy = RetryPolicy(budget=budget, sleep=lambda seconds: None)
            return chat(agent, told, data_class="open", policy=policy, environ={"WIRE_KEY": KEY})

        after = None
        for attempt in range(1, attempts + 1):
            key = TrialKey(task=TINY_ID, agent=f"{face}/{name}", run=1, attempt=attempt)
            outcome = run_trial(
                self.task, key, self.folder, Settings(limits=limits or Limits(), backend=backend),
                maker=maker, after=after,
            )  # fmt: skip
            after = StoredTrial.of(self.folder, key)
            if OUTCOMES[outcome.outcome].retry == "no":
                break
        assert after is not None
        return outcome, after

    def bill(self, name: str) -> Usage:
        """What the server itself counted as answered."""
        served = self.server.served.get(name, [])
        sums = {tier: sum(getattr(one, tier) for one in served) for tier in Tokens.model_fields}
        return Usage(**sums)


@pytest.fixture
def wired(tiny_task: Task, tmp_path: Path) -> Any:
    made = Wired(tiny_task, tmp_path)
    yield made
    made.server.stop()


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@dataclass(frozen=True)
class Row:
    """Replies, and what a trial over them must come to."""

    replies: tuple[Reply, ...]
    outcome: Outcome
    calls: tuple[tuple[str, bool], ...] = ()
    """(tool, is an error) of what was carried out."""
    writes: int = 0
    flags: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    settings: Mapping[str, Any] = field(default_factory=dict)
    model: str = "scripted"


def _behind(fault: Fault) -> tuple[Reply, ...]:
    """A create whose request, and whose answer's request, meet the fault."""
    return (Reply(thinking="Hm.", calls=(ORDER,), faults=(fault,)), Reply(text="Done.", faults=(fault,)))


DONE = (("fhir_communication_create_message", False),)
ROWS: dict[str, Row] = {
    **{
        f"{fault.kind} {fault.status if fault.kind == 'status' else ''} {fault.retry_after or ''}".strip(): Row(
            _behind(fault), Outcome.finished, DONE, 1
        )
        for fault in PASSING
    },
    "endless overload": Row(
        (Reply(calls=(ORDER,)), Reply(faults=(Fault(kind="status", times=99),))), Outcome.provider_error, DONE, 1
    ),
    "Retry-After beyond the budget": Row(
        (Reply(faults=(Fault(kind="status", status=429, retry_after=9999),)),), Outcome.provider_error
    ),
    "refusal": Row((Reply(calls=(ORDER,)), Reply(stop="refusal")), Outcome.refused, DONE, 1),
    "context overflow": Row(
        (Reply(calls=(ORDER,)), Reply(faults=(Fault(kind="overflow", times=9),))), Outcome.context_overflow, DONE, 1
    ),
    "token cap inside a call": Row(
        (
            Reply(calls=(ORDER, ToolUse(name="write_file", arguments='{"file_path": "a')), stop="length"),
            Reply(text="!"),
        ),
        Outcome.finished,
        flags=("no tool calls", "1 truncated turns"),
    ),
    "token cap inside thinking": Row(
        (Reply(thinking="So much to think", stop="length"), Reply(calls=(READ,))),
        Outcome.finished,
        (("fhir_condition_search_problems", False),),
        flags=("1 truncated turns",),
    ),
    "invalid JSON arguments": Row(
        (Reply(calls=(ToolUse(name=ORDER.name, arguments='{"patient_reference": '),)), Reply(calls=(ORDER,))),
        Outcome.finished,
        ((ORDER.name, True), (ORDER.name, False)),
        1,
    ),
    "arguments of the wrong schema": Row(
        (Reply(calls=(ToolUse(name=ORDER.name, arguments={"patient": 7}),)),), Outcome.finished, ((ORDER.name, True),)
    ),
    "tool calls as text": Row(
        (Reply(text='<tool_call>{"name": "fhir_communication_create_message"}</tool_call>'),),
        Outcome.finished,
        flags=("no tool calls",),
    ),
    "half of a character in text": Row((Reply(text="So \ud83d", calls=(ORDER,)),), Outcome.finished, DONE, 1),
    "half of a character in arguments": Row(
        (Reply(calls=(ToolUse(name="write_file", arguments='{"file_path": "reply.md", "content": "a \\ud83d"}'),)),),
        Outcome.finished,
        (("write_file", True),),
    ),
    "half of a character in a tool's name": Row(
        (Reply(calls=(ToolUse(name="bad\ud83d"),)),), Outcome.finished, (("bad\ufffd", True),)
    ),
    "unknown tool": Row((Reply(calls=(ToolUse(name="drop"),)),), Outcome.finished, (("drop", True),)),
    "empty content": Row((Reply(),), Outcome.finished, flags=("no tool calls",)),
    "parallel calls": Row(
        (Reply(calls=(READ, ORDER, ToolUse(name="drop"), ORDER)),),
        Outcome.finished,
        ((READ.name, False), (ORDER.name, False), ("drop", True), (ORDER.name, False)),
        2,
    ),
    "thinking that must come back": Row(
        (Reply(thinking="A.", calls=(READ,)), Reply(thinking="B.", text="b", calls=(ORDER,)), Reply(thinking="C.")),
        Outcome.finished,
        ((READ.name, False), (ORDER.name, False)),
        1,
        settings={"reasoning": "high"},
    ),
    "cached tokens": Row(
        (Reply(calls=(ORDER,), tokens=Tokens(uncached_input=3, cache_read=90, cache_write=7, output=5, reasoning=2)),),
        Outcome.finished,
        DONE,
        1,
    ),
    "wrong model id": Row((), Outcome.config_error, model="no-such-model"),
    "turns": Row((Reply(calls=(ORDER,)),) * 3, Outcome.turn_limit, DONE, 1, limits=Limits(turns=1)),
    "tokens": Row((Reply(calls=(ORDER,)),) * 3, Outcome.token_limit, DONE, 1, limits=Limits(tokens=150)),
    "money": Row((Reply(calls=(ORDER,)),) * 3, Outcome.cost_limit, DONE, 1, limits=Limits(cost=0.0005)),
    "seconds": Row((Reply(calls=(ORDER,)),) * 3, Outcome.time_limit, limits=Limits(seconds=1e-9)),
    "money without a price": Row(
        (Reply(calls=(ORDER,)),), Outcome.config_error, limits=Limits(cost=1), settings={"price": None}
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_comes_to_its_outcome_and_nothing_is_done_twice(
    wired: Wired, face: str, name: str, tiny_task: Task
) -> None:
    row = ROWS[name]
    if row.model == "scripted":
        settings = dict(row.settings)
        if "price" in settings:
            url = wired.server.anthropic_url if face == "anthropic" else wired.server.openai_url
            wired.server.players["scripted"] = Script(row.replies)
            told = ModelSettings(endpoint=url, key_env="WIRE_KEY")
            key = TrialKey(task=TINY_ID, agent=f"{face}/scripted", run=1)
            outcome = run_trial(
                tiny_task, key, wired.folder, Settings(limits=row.limits),
                maker=lambda agent, task: chat(agent, told, data_class="open", environ={"WIRE_KEY": KEY}),
            )  # fmt: skip
            trial = StoredTrial.of(wired.folder, key)
        else:
            outcome, trial = wired.trial(face, Script(row.replies), limits=row.limits, **settings)
    else:
        wired.server.players["scripted"] = Script(())
        url = wired.server.anthropic_url if face == "anthropic" else wired.server.openai_url
        key = TrialKey(task=TINY_ID, agent=f"{face}/{row.model}", run=1)
        told = ModelSettings(endpoint=url, key_env="WIRE_KEY", price=PRICE)
        outcome = run_trial(
            tiny_task, key, wired.folder,
            maker=lambda agent, task: chat(agent, told, data_class="open", environ={"WIRE_KEY": KEY}),
        )  # fmt: skip
        trial = StoredTrial.of(wired.folder, key)
    assert outcome.outcome is row.outcome, outcome.detail
    assert tuple((call.tool, call.error) for call in trial.calls()) == row.calls
    assert len(trial.writes()) == row.writes
    assert tuple(flag for flag in outcome.flags if "draft" not in flag) == row.flags
    graded = {verdict.checkpoint for verdict in trial.verdicts()}
    assert bool(graded) == OUTCOMES[row.outcome].grade, "only what the agent did is graded"
    bill = wired.bill("scripted")
    assert outcome.usage.model_copy(update={"cost": None}) == bill
    if outcome.turns and outcome.outcome is not Outcome.config_error:
        tiers = (bill.uncached_input, bill.cache_read, bill.cache_write, bill.output)
        prices = (PRICE.input, PRICE.cache_read or 0, PRICE.cache_write or 0, PRICE.output)
        assert outcome.usage.cost == pytest.approx(sum(t * p for t, p in zip(tiers, prices, strict=True)) / 1e6)


def test_a_bad_key_and_an_uncleared_endpoint_are_no_fault_of_the_agent(
    wired: Wired, face: str, tiny_task: Task
) -> None:
    url = wired.server.anthropic_url if face == "anthropic" else wired.server.openai_url
    told = ModelSettings(endpoint=url, key_env="WIRE_KEY")
    for run, (environ, data_class) in enumerate([({"WIRE_KEY": "wrong"}, "open"), ({}, "open"), ({}, "phi")], start=1):
        key = TrialKey(task=TINY_ID, agent=f"{face}/scripted", run=run)
        remote = told if environ else told.model_copy(update={"endpoint": "http://192.0.2.1"})
        outcome = run_trial(
            tiny_task, key, wired.folder,
            maker=lambda agent, task, e=environ, d=data_class, r=remote: chat(agent, r, data_class=d, environ=e),
        )  # fmt: skip
        assert outcome.outcome is Outcome.config_error
        assert StoredTrial.of(wired.folder, key).verdicts() == []


# ---- many at once ----------------------------------------------------------------------------------------------------


class Flaky(EmbeddedSession):
    """An EHR that fails at random: before a request is carried out, or after it, when its answer is lost."""

    draw = random.Random(0)
    rate = 0.04
    guard = threading.Lock()

    def _fails(self) -> bool:
        with self.guard:
            return self.draw.random() < self.rate

    def find(self, type: str, params: Any, token: str | None) -> Any:
        if self._fails():
            raise EnvironmentFault("The EHR does not answer.")
        return super().find(type, params, token)

    def _store(self, body: dict[str, Any], *, type: str | None, call: int | None) -> Resource:
        if self._fails():
            raise EnvironmentFault("The EHR does not answer.")
        stored = super()._store(body, type=type, call=call)
        if self._fails():
            raise EnvironmentFault("The answer of the EHR was lost.")
        return stored


def _open_flaky(chart: Chart, now: datetime | None) -> ehr.Session:
    return Flaky(chart, now=now)


def _endings(seed: int) -> Callable[[int], Fault | str | None]:
    """What besides passing failures befalls conversation n: a refusal, an overflow, a provider that gives up once."""
    draw = random.Random(seed)
    fates = [draw.choice([None] * 6 + ["refusal", "overflow", "gives up", "gives up"]) for _ in range(1000)]
    return lambda n: fates[n]


@dataclass(frozen=True)
class Fated:
    """A plan, up to what befalls it in its middle."""

    plan: PlanScript
    fate: Any
    turn: int

    def reply(self, heard: Any) -> Reply:
        reply = self.plan.reply(heard)
        reply = reply.model_copy(
            update={"tokens": Tokens(uncached_input=17 + heard.turn, cache_read=heard.turn, output=5, reasoning=1)}
        )
        if heard.turn != self.turn:
            return reply
        if self.fate == "refusal":
            return Reply(stop="refusal", tokens=Tokens(uncached_input=5, output=1))
        if self.fate == "overflow":
            return reply.model_copy(update={"faults": (Fault(kind="overflow", times=99),)})
        if self.fate == "gives up":
            return reply.model_copy(update={"faults": (Fault(kind="status", status=529, retry_after=9999),)})
        return reply


@pytest.mark.parametrize("conversations", [24, pytest.param(200, marks=[pytest.mark.soak, pytest.mark.timeout(1800)])])
def test_many_conversations_with_failures_at_random_lose_nothing_and_repeat_nothing(
    wired: Wired, tiny_task: Task, conversations: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # `embedded` so that a session can be restored, as after any fault of the environment.
    monkeypatch.setitem(ehr.BACKENDS, "embedded", _open_flaky)
    Flaky.draw = random.Random(11)
    plan = PlanScript.of(tiny_task.plans["apixaban"])
    fate = _endings(7)
    oracle = TrialKey(task=TINY_ID, agent="oracle", run=1)
    monkeypatch.setattr(Flaky, "rate", 0.0)
    run_trial(tiny_task, oracle, wired.folder)
    wanted = [(v.checkpoint, v.result) for v in StoredTrial.of(wired.folder, oracle).verdicts()]
    creates = len(StoredTrial.of(wired.folder, oracle).writes())
    monkeypatch.setattr(Flaky, "rate", 0.04)

    def one(n: int) -> tuple[int, TrialOutcome, StoredTrial]:
        player = Faulty(Fated(plan, fate(n), 2 + n % 6), seed=n, rate=0.25)
        outcome, trial = wired.trial(FACES[n % 2], player, name=f"m-{n}", attempts=40, budget=1000)
        return n, outcome, trial

    with ThreadPoolExecutor(conversations) as pool:
        done = list(pool.map(one, range(conversations)))

    assert len(done) == conversations
    ended = {"refusal": Outcome.refused, "overflow": Outcome.context_overflow}
    resumed = 0
    for n, outcome, trial in done:
        assert outcome.outcome is ended.get(fate(n), Outcome.finished), (n, fate(n), outcome.detail)
        resumed += outcome.continues is not None
        if outcome.outcome is Outcome.finished:
            assert [(v.checkpoint, v.result) for v in trial.verdicts()] == wanted, n
            assert len(trial.writes()) == creates, n
        calls = [write.call for write in trial.writes()]
        assert len(set(calls)) == len(calls), f"{n}: a create was repeated"
        assert len({json.loads(w.resource)["id"] for w in trial.writes()}) == len(calls)
        assert outcome.usage.model_copy(update={"cost": None}) == wired.bill(f"m-{n}"), n
        assert trial.damage() == []
    assert resumed > conversations // 8, "the failures were too few to prove anything"
