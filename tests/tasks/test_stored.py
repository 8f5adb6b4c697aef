"""Run folders: written event by event, read back after a crash."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import EnvironmentFault, UsageError
from tasks.stored import Batch, StoredTrial, TrialWriter, append_lines, batches, trial_folder, verdicts_that_count
from tasks.trials import Grader, Outcome, ToolCall, TrialKey, TrialOutcome, Verdict, Write

KEY = TrialKey(task="tiny-anticoagulation", agent="anthropic/claude", run=2, attempt=1)
NOW = datetime(2026, 11, 30, 1, 0, tzinfo=UTC)


def outcome(kind: Outcome = Outcome.finished) -> TrialOutcome:
    return TrialOutcome(
        key=KEY, outcome=kind, started=NOW, ended=NOW, data_class="open", agent_digest="a", grade_digest="g"
    )


def verdict(checkpoint: str, result: str, kind: str, reason: str = "because") -> Verdict:
    grader = Grader(kind=kind, name="test", version="1")
    return Verdict(checkpoint=checkpoint, result=result, reason=reason, grader=grader, at=NOW)


def call(n: int, result: str = "{}") -> ToolCall:
    return ToolCall(n=n, turn=1, call_id=f"c{n}", tool="write_file", arguments={"x": 1}, result=result, shown=2)


@pytest.fixture
def batch(tmp_path: Path) -> Batch:
    return Batch.create(tmp_path / "runs", "first-light")


def test_what_is_written_is_read_back_in_order(batch: Batch) -> None:
    with TrialWriter(batch.path, KEY) as writer:
        writer.event("system", {"prompt": "you are"})
        written = Write(sequence=1, call=1, reference="MedicationRequest/a", version=1, resource='{"dose":5.00}')
        writer.write(written)
        writer.call(call(1, "a long result\n\u2028 ü"))
        (writer.workspace / "output" / "note.md").write_text("# Reply ü\n", "utf-8")
        writer.finish(outcome())
        writer.verdicts([verdict("cp1", "pass", "code")])
    trial = batch.trials()[0]
    assert trial == StoredTrial.of(batch.path, KEY)
    assert [event.n for event in trial.events()] == [1, 2]
    assert trial.calls() == [call(1, "a long result\n\u2028 ü")]
    assert trial.writes() == [written]
    assert trial.files() == {"/workspace/output/note.md": "# Reply ü\n"}
    assert trial.outcome == outcome()
    assert trial.latest_verdicts()["cp1"].result == "pass"
    assert trial.damage() == []


def test_the_folder_is_named_as_the_design_says() -> None:
    assert trial_folder(KEY).as_posix() == "trials/tiny-anticoagulation/anthropic__claude/2/attempt-1"


@pytest.mark.parametrize("agent", ["../x", "a__b", "a//b", "", "a b", "/etc", "a/../b", "x" * 200])
def test_an_agent_that_no_folder_can_carry_is_refused(batch: Batch, agent: str) -> None:
    with pytest.raises(UsageError):
        TrialWriter(batch.path, KEY.model_copy(update={"agent": agent}))


def test_a_second_writer_of_the_same_attempt_is_refused(batch: Batch) -> None:
    with TrialWriter(batch.path, KEY), pytest.raises(UsageError, match="on the disk already"):
        TrialWriter(batch.path, KEY)


def test_an_outcome_is_written_once(batch: Batch) -> None:
    with TrialWriter(batch.path, KEY) as writer:
        writer.finish(outcome())
        with pytest.raises(UsageError, match="outcome already"):
            writer.finish(outcome(Outcome.cancelled))
        with pytest.raises(UsageError, match="trial is over"):
            writer.event("model", {})
        assert writer.stored.state is Outcome.finished


def test_a_trial_is_alive_while_its_writer_holds_it(batch: Batch) -> None:
    writer = TrialWriter(batch.path, KEY)
    trial = writer.stored
    assert trial.alive
    assert trial.state is Outcome.running
    writer.close()
    assert not trial.alive
    assert trial.state is Outcome.running
    assert trial.outcome is None


def test_a_killed_process_leaves_readable_files_and_a_trial_that_can_be_resumed(batch: Batch) -> None:
    program = textwrap.dedent(
        """
        import os, signal, sys
        from pathlib import Path
        from tasks.stored import TrialWriter
        from tasks.trials import ToolCall, TrialKey
        key = TrialKey(task="tiny-anticoagulation", agent="anthropic/claude", run=2, attempt=1)
        writer = TrialWriter(Path(sys.argv[1]), key)
        for n in range(1, 6):
            writer.call(ToolCall(n=n, turn=n, call_id="c", tool="t", arguments={}, result="r" * 50_000, shown=1))
        os.write(writer._trajectory, b'{"n": 6, "at": "2026-11')
        print("ready", flush=True)
        signal.pause()
        """
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(batch.path)], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        trial = batch.trials()[0]
        assert trial.alive
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    assert not trial.alive
    assert len(trial.calls()) == 5
    assert [fault.message for fault in trial.damage()] == ["the last line is cut short and is left out"]
    assert batch.next_attempt(KEY.task, KEY.agent, KEY.run).attempt == 2


def test_a_torn_line_costs_only_itself_when_more_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.jsonl"
    trial = StoredTrial(tmp_path, KEY)
    trial.add_verdicts([verdict("cp1", "fail", "code")])
    with path.open("ab") as handle:
        handle.write(b'{"checkpoint": "cp2", "res')
    trial.add_verdicts([verdict("cp3", "pass", "code")])
    assert [given.checkpoint for given in trial.verdicts()] == ["cp1", "cp3"]
    assert [fault.place for fault in trial.damage()] == [f"{path}:2"]


def test_verdicts_of_several_graders_at_once_all_land_whole(tmp_path: Path) -> None:
    trial = StoredTrial(tmp_path, KEY)

    def grade(checkpoint: int) -> None:
        for _ in range(20):
            trial.add_verdicts([verdict(f"cp{checkpoint}", "pass", "code", "r" * 20_000)] * 2)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(grade, range(4)))
    assert len(trial.verdicts()) == 160
    assert trial.damage() == []


@given(cut=st.integers(min_value=0, max_value=4000))
def test_a_record_cut_anywhere_is_read_up_to_the_cut(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = tmp_path_factory.mktemp("cut")
    lines = [
        json.dumps({"n": n, "at": NOW.isoformat(), "type": "model", "data": {"text": "é" * n}}, ensure_ascii=False)
        for n in range(1, 20)
    ]
    whole = ("\n".join(lines) + "\n").encode()
    (folder / "trajectory.jsonl").write_bytes(whole[:cut])
    trial = StoredTrial(folder, KEY)
    assert len(trial.events()) == whole[:cut].count(b"\n")
    assert bool(trial.damage()) == bool(whole[:cut] and not whole[:cut].endswith(b"\n"))


def test_damage_in_the_middle_is_named_and_left_out(tmp_path: Path) -> None:
    append_lines(tmp_path / "ehr.ndjson", ["\x00\x00\x00", '{"sequence": 0}', "[]"])
    trial = StoredTrial(tmp_path, KEY)
    assert trial.writes() == []
    assert [fault.place[-2:] for fault in trial.damage()] == [":1", ":2", ":3"]


def test_an_outcome_that_cannot_be_read_is_not_finished_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "outcome.json").write_text("{", "utf-8")
    trial = StoredTrial(tmp_path, KEY)
    assert trial.outcome is None
    assert trial.state is Outcome.running
    assert "cannot be read" in trial.damage()[0].message


def test_the_latest_verdict_counts_and_a_persons_above_every_graders() -> None:
    given_in_order = [
        verdict("cp1", "fail", "code"),
        verdict("cp1", "pass", "code"),
        verdict("cp2", "pass", "person"),
        verdict("cp2", "fail", "judge"),
        verdict("cp3", "ungraded", "judge"),
        verdict("cp3", "partial", "person"),
        verdict("cp3", "pass", "person"),
    ]
    counting = verdicts_that_count(given_in_order)
    assert {name: one.result for name, one in counting.items()} == {"cp1": "pass", "cp2": "pass", "cp3": "pass"}
    assert counting["cp3"].grader.kind == "person"


def test_links_in_the_workspace_are_not_followed(batch: Batch, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("never", "utf-8")
    with TrialWriter(batch.path, KEY) as writer:
        (writer.workspace / "output" / "folder").symlink_to(secret)
        (writer.workspace / "output" / "file").symlink_to(secret / "key")
        assert writer.stored.files() == {}


def test_the_last_attempt_of_a_trial_counts(batch: Batch) -> None:
    for number in (1, 2, 10):
        TrialWriter(batch.path, KEY.model_copy(update={"attempt": number})).close()
    assert [trial.key.attempt for trial in batch.attempts()] == [1, 2, 10]
    assert [trial.key.attempt for trial in batch.trials()] == [10]
    assert batch.next_attempt(KEY.task, KEY.agent, KEY.run).attempt == 11


def test_a_plan_is_append_only_and_survives_a_torn_line(batch: Batch) -> None:
    batch.add_plan({"kind": "trial", "seed": 1})
    with (batch.path / "plan.jsonl").open("ab") as handle:
        handle.write(b'{"kind": ')
    batch.add_plan({"kind": "trial", "seed": 2})
    assert [line["seed"] for line in batch.plan()] == [1, 2]
    assert [fault.place for fault in batch.damage()] == [f"{batch.path / 'plan.jsonl'}:2"]


def test_one_process_at_a_time_holds_a_batch(batch: Batch) -> None:
    with batch.lock(), pytest.raises(EnvironmentFault, match="another process"), batch.lock():
        pass
    with batch.lock():
        pass


def test_a_batch_is_found_by_name_or_the_names_are_told(batch: Batch) -> None:
    runs = batch.path.parent
    assert Batch.open(runs, "first-light") == batch
    with pytest.raises(UsageError, match="first-light"):
        Batch.open(runs, "../runs/first-light")
    with pytest.raises(UsageError, match="already"):
        Batch.create(runs, "first-light")
    with pytest.raises(UsageError, match="cannot name"):
        Batch.create(runs, "a/b")
    assert batches(runs) == [batch]
    assert batches(runs / "none") == []


def test_a_full_disk_is_one_message(batch: Batch, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, data: object) -> int:
        raise OSError(28, "No space left on device")

    with TrialWriter(batch.path, KEY) as writer:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(EnvironmentFault, match="the disk is full"):
            writer.event("model", {"text": "private"})
        with pytest.raises(EnvironmentFault):
            writer.finish(outcome())
        monkeypatch.undo()
        assert writer.stored.outcome is None
        assert not [path for path in writer.path.iterdir() if path.name.endswith(".tmp")]
