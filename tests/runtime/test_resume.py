"""A trial killed between any two lines that it wrote goes on inside its conversation, and nothing is done twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from providers.base import Turn, check_pairing
from providers.wire import KEY, Fault, Faulty, PlanScript, Reply, Script, Tokens, ToolUse, WireServer
from runtime.resume import CONTINUED, CannotContinue, earlier
from runtime.trial import Settings, run_trial
from tasks.manifest import Limits
from tasks.package import Task
from tasks.stored import Batch, StoredTrial, TrialWriter
from tasks.trials import Event, Outcome, TrialKey, TrialOutcome
from tasks.workspace import Workspace
from tests.runtime.conftest import PATIENT, PRACTITIONER, Scripted
from tests.runtime.conftest import turn as scripted_turn
from tests.tasks.packages import TINY_ID

FACES = ("anthropic", "openai")


def _message(text: str) -> ToolUse:
    return ToolUse(
        name="fhir_communication_create_message",
        arguments={"patient_reference": PATIENT, "recipient_reference": PRACTITIONER, "message_text": text},
    )


def _part(text: str, mode: str = "a") -> ToolUse:
    return ToolUse(name="write_file", arguments={"file_path": "reply.md", "content": text, "mode": mode})


LABS = ToolUse(name="fhir_observation_search_labs", arguments={"patient": "p-7001"})
NOTES = ToolUse(name="fhir_document_reference_search_clinical_notes", arguments={"patient": "p-7001"})
ORDER = ToolUse(
    name="fhir_medication_request_create",
    arguments={"patient_reference": PATIENT, "requester_reference": PRACTITIONER, "medication_display": "apixaban"},
)
#: Parallel calls, two creates in one turn, appended files, a truncated turn, an unknown tool, thinking in every turn.
REPLIES = [
    Reply(thinking="First the results.", calls=(LABS, NOTES)),
    Reply(thinking="Half a thought.", calls=(_part("half of a", "w"),), stop="length"),
    Reply(thinking="Now the orders.", text="Ordering.", calls=(ORDER, _message("one"), _part("one\n"))),
    Reply(thinking="Hm.", calls=(ToolUse(name="no_such_tool"), ToolUse(name="write_file", arguments='{"x": '))),
    Reply(thinking="And the note.", calls=(_part("two\n"), _message("two"))),
    Reply(text="Done."),
]  # fmt: skip
TOKENS = Tokens(uncached_input=11, output=7)


@pytest.fixture(scope="module")
def wire() -> Iterator[WireServer]:
    script = Script([reply.model_copy(update={"tokens": TOKENS}) for reply in REPLIES])
    with WireServer({"scripted": script}) as server:
        yield server


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest, wire: WireServer, workspace: Workspace, monkeypatch: Any) -> str:
    monkeypatch.setenv("WIRE_KEY", KEY)
    workspace.make()
    lines = ""
    for name, url in (("anthropic", wire.anthropic_url), ("openai", wire.openai_url)):
        lines += f'[model."{name}/scripted"]\nendpoint = "{url}"\nkey_env = "WIRE_KEY"\n'
        lines += "price = {input = 2.0, output = 10.0}\n"
    workspace.settings_file.write_text(lines)
    wire.rewind()
    return str(request.param)


def _key(face: str, attempt: int = 1) -> TrialKey:
    return TrialKey(task=TINY_ID, agent=f"{face}/scripted", run=1, attempt=attempt)


def _lines_in_order(trial: StoredTrial) -> list[tuple[str, bytes]]:
    """(file, line) of trajectory and ledger in the order in which they came to the disk."""
    ledger = (trial.path / "ehr.ndjson").read_bytes().splitlines(keepends=True)
    out: list[tuple[str, bytes]] = []
    for line in (trial.path / "trajectory.jsonl").read_bytes().splitlines(keepends=True):
        event = Event.model_validate_json(line)
        out += [("ehr.ndjson", ledger[sequence - 1]) for sequence in event.data.get("writes", ())]
        out.append(("trajectory.jsonl", line))
    return out


def _killed(batch: Path, key: TrialKey, lines: list[tuple[str, bytes]], whole: StoredTrial) -> StoredTrial:
    """The attempt as a SIGKILL after these lines leaves it; files of the workspace may be ahead of the record."""
    TrialWriter(batch, key).close()
    trial = StoredTrial.of(batch, key)
    for name, line in lines:
        with (trial.path / name).open("ab") as file:
            file.write(line)
    shutil.copytree(whole.path / "workspace", trial.path / "workspace", dirs_exist_ok=True)
    return trial


def _bare(text: str, writes: list[Any]) -> str:
    """Text without the ids that differ from session to session."""
    for write in writes:
        text = text.replace(write.reference.partition("/")[2], f"id-{write.sequence}")
    return text


def _told(trial: StoredTrial) -> list[tuple[Any, ...]]:
    writes = trial.writes()
    return [
        (c.n, c.turn, c.tool, _bare(c.result, writes), c.shown, c.error, c.request, c.writes) for c in trial.calls()
    ]


def test_killed_between_any_two_lines_a_trial_goes_on_and_comes_to_the_same_end(
    tiny_task: Task, tmp_path: Path, face: str, wire: WireServer
) -> None:
    settings = Settings(limits=Limits(turns=40))
    ended = run_trial(tiny_task, _key(face), tmp_path / "whole", settings)
    assert (ended.outcome, ended.turns, ended.calls) == (Outcome.finished, 6, 9)
    whole = StoredTrial.of(tmp_path / "whole", _key(face))
    lines = _lines_in_order(whole)
    assert len(lines) == 2 + 6 + 9 + 1 + 3
    for cut in range(len(lines)):
        for torn in (False, True):
            batch = tmp_path / f"cut-{cut}-{torn}"
            name, line = lines[cut]
            half = [(name, line[: len(line) // 2])] if torn else []
            killed = _killed(batch, _key(face), lines[:cut] + half, whole)
            before = {path: path.read_bytes() for path in killed.path.rglob("*") if path.is_file()}
            asked = len(wire.requests)

            outcome = run_trial(tiny_task, _key(face, 2), batch, settings, after=killed)
            trial = StoredTrial.of(batch, _key(face, 2))
            where = f"killed after line {cut}, torn: {torn}"
            assert outcome.outcome is Outcome.finished, (where, outcome.detail)
            assert outcome.continues == (1 if cut >= 2 else None), where
            assert _told(trial) == _told(whole), where
            assert trial.files() == whole.files() == {"/workspace/output/reply.md": "one\ntwo\n"}, where
            assert [write.sequence for write in trial.writes()] == [1, 2, 3], where
            assert [_bare(w.resource, trial.writes()) for w in trial.writes()] == [
                _bare(w.resource, whole.writes()) for w in whole.writes()
            ], where
            kept = killed.writes()
            assert trial.writes()[: len(kept)] == kept, f"{where}: the ledger is not byte for byte what it was"
            assert [v.result for v in trial.verdicts()] == [v.result for v in whole.verdicts()], where
            assert (outcome.turns, outcome.calls, outcome.usage) == (ended.turns, ended.calls, ended.usage), where
            assert [event.n for event in trial.events()] == list(range(1, len(trial.events()) + 1))
            assert trial.damage() == []
            # The provider's server refuses any unpaired or changed conversation; and no turn is asked for twice.
            models = sum(
                Event.model_validate_json(line).type == "model" for n, line in lines[:cut] if n != "ehr.ndjson"
            )
            assert len(wire.requests) - asked == (6 - models if cut >= 2 else 6), where
            assert {path: path.read_bytes() for path in before} == before, f"{where}: the killed attempt was changed"


def test_a_resumed_trial_that_is_killed_again_goes_on_again(tiny_task: Task, tmp_path: Path, face: str) -> None:
    run_trial(tiny_task, _key(face), tmp_path / "whole")
    whole = StoredTrial.of(tmp_path / "whole", _key(face))
    lines = _lines_in_order(whole)
    killed = _killed(tmp_path / "b", _key(face), lines[:9], whole)
    run_trial(tiny_task, _key(face, 2), tmp_path / "b", after=killed)
    second = StoredTrial.of(tmp_path / "b", _key(face, 2))
    (second.path / "outcome.json").unlink()
    cut = (second.path / "trajectory.jsonl").read_bytes().splitlines(keepends=True)[:15]
    (second.path / "trajectory.jsonl").write_bytes(b"".join(cut))
    wrote = [write for write in second.writes() if write.sequence <= 2]
    (second.path / "ehr.ndjson").write_text("".join(write.model_dump_json() + "\n" for write in wrote))
    outcome = run_trial(tiny_task, _key(face, 3), tmp_path / "b", after=second)
    third = StoredTrial.of(tmp_path / "b", _key(face, 3))
    assert (outcome.outcome, outcome.continues, outcome.turns) == (Outcome.finished, 2, 6)
    assert sum(event.type == "resumed" for event in third.events()) == 2
    assert _told(third) == _told(whole)


class Dying(Scripted):
    """A provider that gives up after some turns."""

    fails_at: int = 3

    def turn(self, messages: Any, tools: Any) -> Turn:
        from providers.base import ModelMessage, ProviderFault

        check_pairing(messages)
        done = sum(isinstance(message, ModelMessage) for message in messages)
        if done == self.fails_at:
            raise ProviderFault("Overloaded for too long.")
        assert not callable(self.steps)
        step = self.steps[done] if done < len(self.steps) else scripted_turn()
        return step if isinstance(step, Turn) else scripted_turn(step, prefix=f"t{done}")


def _reads(count: int) -> list[Any]:
    return [[("fhir_observation_search_labs", {"patient": "p-7001", "count": n + 1})] for n in range(count)]


def test_a_provider_that_gave_up_costs_no_turn_and_no_create(tiny_task: Task, tmp_path: Path) -> None:
    order = ("fhir_communication_create_message", {"patient_reference": PATIENT, "message_text": "x"})
    steps = [[order], *_reads(4)]
    key = TrialKey(task=TINY_ID, agent="dying", run=1)
    failed = run_trial(tiny_task, key, tmp_path, model=Dying(steps))
    assert (failed.outcome, failed.turns) == (Outcome.provider_error, 3)
    model = Dying(steps)
    model.fails_at = 99
    second = key.model_copy(update={"attempt": 2})
    ended = run_trial(tiny_task, second, tmp_path, model=model, after=StoredTrial.of(tmp_path, key))
    assert (ended.outcome, ended.turns, ended.calls, ended.continues) == (Outcome.finished, 6, 5, 1)
    trial = StoredTrial.of(tmp_path, second)
    assert len(trial.writes()) == 1
    assert [event.type for event in trial.events()].count("error") == 0
    assert trial.verdicts() != []


@pytest.mark.parametrize(
    ("limits", "outcome"),
    [(Limits(turns=4), Outcome.turn_limit), (Limits(tokens=350), Outcome.token_limit),
     (Limits(cost=0.35), Outcome.cost_limit)],
)  # fmt: skip
def test_what_was_spent_before_counts_after(tiny_task: Task, tmp_path: Path, limits: Limits, outcome: Outcome) -> None:
    from tasks.trials import Usage

    steps = [
        scripted_turn(step, prefix=f"t{n}", usage=Usage(uncached_input=90, output=10, cost=0.1))
        for n, step in enumerate(_reads(9))
    ]
    key = TrialKey(task=TINY_ID, agent="dying", run=1)
    run_trial(tiny_task, key, tmp_path, Settings(limits=limits), model=Dying(steps))
    model = Dying(steps)
    model.fails_at = 99
    second = key.model_copy(update={"attempt": 2})
    ended = run_trial(
        tiny_task, second, tmp_path, Settings(limits=limits), model=model, after=StoredTrial.of(tmp_path, key)
    )
    assert (ended.outcome, ended.turns) == (outcome, 4)
    assert ended.usage.cost == pytest.approx(0.4)


def test_a_recorded_limit_ends_the_resumed_trial_without_asking_again(tiny_task: Task, tmp_path: Path) -> None:
    key = TrialKey(task=TINY_ID, agent="dying", run=1)
    model = Dying(_reads(9))
    model.fails_at = 99
    settings = Settings(limits=Limits(turns=3))
    run_trial(tiny_task, key, tmp_path, settings, model=model)
    first = StoredTrial.of(tmp_path, key)
    (first.path / "outcome.json").unlink()  # killed after the limit was recorded
    never = Scripted(lambda n: RuntimeError("asked"))
    second = key.model_copy(update={"attempt": 2})
    ended = run_trial(tiny_task, second, tmp_path, settings, model=never, after=first)
    assert (ended.outcome, never.seen) == (Outcome.turn_limit, [])
    kinds = [event.type for event in StoredTrial.of(tmp_path, second).events()]
    assert kinds.count("limit") == 1


def test_the_loop_stops_remember_what_came_before(tiny_task: Task, tmp_path: Path) -> None:
    same = [("fhir_condition_search_problems", {"patient": "p-7001"})]
    key = TrialKey(task=TINY_ID, agent="dying", run=1)
    run_trial(tiny_task, key, tmp_path, model=Dying([same] * 9))
    model = Dying([same] * 9)
    model.fails_at = 99
    second = key.model_copy(update={"attempt": 2})
    ended = run_trial(tiny_task, second, tmp_path, model=model, after=StoredTrial.of(tmp_path, key))
    assert (ended.outcome, ended.turns) == (Outcome.loop_stopped, 5)


def test_the_time_between_two_attempts_is_nobodys(tiny_task: Task, tmp_path: Path) -> None:
    key = TrialKey(task=TINY_ID, agent="dying", run=1)
    run_trial(tiny_task, key, tmp_path, model=Dying(_reads(9)))
    first = StoredTrial.of(tmp_path, key)
    text = (first.path / "trajectory.jsonl").read_text()
    rows = [json.loads(line) for line in text.splitlines()]
    for seconds, row in enumerate(rows):
        row["at"] = f"2026-01-01T00:00:{10 * min(seconds, 5):02}Z"
        if row["type"] == "model":
            row["data"]["waited"] = 2.0
        if row["type"] == "tool":
            row["data"]["seconds"] = 1.0
    (first.path / "trajectory.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = Dying(_reads(9))
    model.fails_at = 99
    second = key.model_copy(update={"attempt": 2})
    ended = run_trial(tiny_task, second, tmp_path, model=model, after=first)
    # 50 s from first to last event, less 3 turns of 2 s of back-off and 3 calls of 1 s in the EHR.
    assert 41 <= ended.seconds < 60
    limited = Settings(limits=Limits(seconds=40))
    third = key.model_copy(update={"attempt": 3})
    out = run_trial(tiny_task, third, tmp_path, limited, model=model, after=first)
    assert (out.outcome, out.turns) == (Outcome.time_limit, 3)


# ---- when it cannot be gone on with ----------------------------------------------------------------------------------


def _first(tiny_task: Task, tmp_path: Path) -> tuple[StoredTrial, TrialKey]:
    key = TrialKey(task=TINY_ID, agent="dying", run=1)
    run_trial(tiny_task, key, tmp_path, model=Dying([*_reads(1), [_order()], *_reads(4)]))
    return StoredTrial.of(tmp_path, key), key.model_copy(update={"attempt": 2})


def _order() -> tuple[str, dict[str, Any]]:
    return "fhir_communication_create_message", {"patient_reference": PATIENT, "message_text": "x"}


def _edit(trial: StoredTrial, name: str, old: str, new: str) -> None:
    text = (trial.path / name).read_text()
    assert old in text
    (trial.path / name).write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("name", "old", "new", "why"),
    [
        ("trajectory.jsonl", '"agent_digest":"', '"agent_digest":"x', "another agent_digest"),
        ("trajectory.jsonl", '"prompt_sha256":"', '"prompt_sha256":"x', "another prompt_sha256"),
        ("trajectory.jsonl", '"write_file"]', '"write_file","x"]', "another tools"),
        ("trajectory.jsonl", '{"n":4,', '{"n":44,', "its trajectory has gaps"),
        ("trajectory.jsonl", '"call_id":"t1-0"', '"call_id":"t9-9"', "a call is answered that no turn asked for"),
        ("ehr.ndjson", '"sequence":1', '"sequence":2', "its ledger has gaps"),
        ("ehr.ndjson", "{", "", "its ledger and its calls differ"),
    ],
)
def test_a_record_that_does_not_fit_together_is_not_gone_on_with(
    tiny_task: Task, tmp_path: Path, name: str, old: str, new: str, why: str
) -> None:
    first, key = _first(tiny_task, tmp_path)
    _edit(first, name, old, new)
    model = Dying(_reads(2))
    model.fails_at = 99
    ended = run_trial(tiny_task, key, tmp_path, model=model, after=first)
    assert (ended.outcome, ended.turns, ended.continues) == (Outcome.finished, 3, None)
    (flag,) = [flag for flag in ended.flags if flag.startswith("attempt 1 could not be gone on with: ")]
    assert why in flag


def test_what_a_backend_cannot_restore_is_run_anew(tiny_task: Task, tmp_path: Path) -> None:
    first, _ = _first(tiny_task, tmp_path)
    begun = first.events()[0].data
    with pytest.raises(CannotContinue, match="cannot restore"):
        earlier(first, tiny_task, profile="paper", backend="hapi", prompt_sha256=begun["prompt_sha256"])


@pytest.mark.parametrize("state", [outcome for outcome in Outcome if outcome not in CONTINUED])
def test_a_trial_that_is_over_is_over(tiny_task: Task, tmp_path: Path, state: Outcome) -> None:
    first, _ = _first(tiny_task, tmp_path)
    outcome = json.loads((first.path / "outcome.json").read_text()) | {"outcome": state.value}
    (first.path / "outcome.json").write_text(TrialOutcome.model_validate_json(json.dumps(outcome)).model_dump_json())
    with pytest.raises(CannotContinue, match="it ended as"):
        earlier(first, tiny_task, profile="paper", backend="embedded", prompt_sha256="")


# ---- real processes, really killed -----------------------------------------------------------------------------------


@pytest.mark.parametrize("face", ["anthropic", pytest.param("openai", marks=pytest.mark.soak)], indirect=True)
def test_killed_again_and_again_over_the_wire_a_trial_still_comes_to_its_end(
    tiny_package: Path, tiny_task: Task, tmp_path: Path, face: str, wire: WireServer
) -> None:
    """SIGKILL to scheduler and slot at whatever point they are, mid-stream too: every answer takes its time."""
    slow = Fault(kind="slow", delay=0.02, times=99)
    script = PlanScript.of(tiny_task.plans["apixaban"])
    before, wire.players["scripted"] = wire.players["scripted"], Faulty(script, rate=0.9, faults=[slow])
    env = os.environ | {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    batch = Batch(Workspace.find().runs / "b")
    try:
        for asked in (2, 4, 7):
            with _command(["run", str(tiny_package), "--agent", f"{face}/scripted", "--batch", "b"], env) as process:
                _until(lambda wanted=asked: len({one.turn for one in wire.heard}) >= wanted)
                slots = _slots(process.pid)
                process.kill()
                for slot in slots:
                    os.kill(slot, signal.SIGKILL)
            _until(lambda: not any(trial.alive for trial in batch.attempts()))
        with _command(["resume", "b"], env) as process:
            assert process.wait(120) == 0
    finally:
        wire.players["scripted"] = before
    assert len(batch.attempts()) == 4
    (trial,) = batch.trials()
    assert trial.outcome is not None
    assert (trial.outcome.outcome, trial.outcome.turns, trial.outcome.calls) == (Outcome.finished, 9, 8)
    assert trial.outcome.continues == 3
    assert [write.call for write in trial.writes()] == [5, 6, 7]
    oracle = _key("x").model_copy(update={"agent": "oracle"})
    run_trial(tiny_task, oracle, tmp_path / "oracle")
    wanted = StoredTrial.of(tmp_path / "oracle", oracle)
    assert [v.result for v in trial.verdicts()] == [v.result for v in wanted.verdicts()]
    assert trial.damage() == []


def _command(arguments: list[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "runtime", *arguments], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _slots(pid: int) -> list[int]:
    """The children of a process."""
    return [int(child) for thread in Path(f"/proc/{pid}/task").iterdir()
            for child in (thread / "children").read_text().split()]  # fmt: skip


def _until(condition: Callable[[], bool]) -> None:
    """Wait for what another process does, two minutes at most."""
    pause = threading.Event()
    for _ in range(12_000):
        if condition():
            return
        pause.wait(0.01)
    pytest.fail("it did not come to that in two minutes")
