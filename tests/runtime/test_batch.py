"""Batches: what is run, reused, graded again; retries; stopping, being killed, and going on."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from runtime import executors
from runtime.__main__ import app
from runtime.batch import Finished, Item, Need, decide, is_running, items_of, planned_runs, run_batch
from runtime.executors import DIED, LocalExecutor
from runtime.slot import TrialRequest, TrialResult, load_folder
from runtime.trial import Settings
from tasks.errors import EnvironmentFault, UsageError
from tasks.manifest import Limits
from tasks.package import Task
from tasks.progress import read
from tasks.stored import Batch, StoredTrial, TrialWriter
from tasks.trials import OUTCOMES, Outcome, TrialOutcome
from tasks.workspace import Workspace
from tests.tasks.packages import TINY_ID

ROOT = Path(__file__).resolve().parents[2]


class Played:
    """An executor that ends every trial as the test says, and really writes it. No process, so no waiting."""

    slots = 1

    def __init__(self, folder: Path, script: Callable[[TrialRequest], Outcome | None]) -> None:
        self.task = load_folder(folder)
        self.script = script
        self.requests: list[TrialRequest] = []

    def submit(self, request: TrialRequest) -> Future[TrialResult]:
        self.requests.append(request)
        future: Future[TrialResult] = Future()
        ended = self.script(request)
        if ended is None:
            TrialWriter(Path(request.batch), request.key).close()
            future.set_result(TrialResult(error=DIED))
            return future
        now = datetime.now(UTC)
        with TrialWriter(Path(request.batch), request.key) as writer:
            outcome = TrialOutcome(
                key=request.key, outcome=ended, started=now, ended=now, data_class="open",
                agent_digest=self.task.agent_digest, grade_digest=self.task.grade_digest,
            )  # fmt: skip
            writer.finish(outcome)
        future.set_result(TrialResult(outcome=outcome))
        return future

    def cancel(self) -> None: ...

    def kill(self) -> None: ...

    def close(self) -> None: ...


def item(folder: Path, agent: str = "noop", runs: int = 1) -> Item:
    return Item(load_folder(folder), agent, runs, folder)


def batch_in(tmp_path: Path, name: str = "b") -> Batch:
    return Batch.create(tmp_path / "runs", name)


def edit(folder: Path, name: str, old: str, new: str) -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


# ---- the retry table ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", list(OUTCOMES))
def test_each_outcome_is_retried_as_the_table_says(tiny_package: Path, tmp_path: Path, outcome: Outcome) -> None:
    executor = Played(tiny_package, lambda request: outcome)
    tally = run_batch(batch_in(tmp_path), [item(tiny_package)], Settings(), executor, max_attempts=3)
    rule = OUTCOMES[outcome]
    assert len(executor.requests) == (3 if rule.retry == "yes" else 1)
    assert [request.key.attempt for request in executor.requests] == list(range(1, len(executor.requests) + 1))
    assert tally.is_complete == (rule.counts_as != "not attempted")


def test_a_retry_that_succeeds_is_the_attempt_that_counts(tiny_package: Path, tmp_path: Path) -> None:
    ends = iter([Outcome.provider_error, None, Outcome.finished])
    batch = batch_in(tmp_path)
    tally = run_batch(batch, [item(tiny_package)], Settings(), Played(tiny_package, lambda request: next(ends)))
    assert tally.outcomes == Counter({"finished": 1})
    (trial,) = batch.trials()
    assert (trial.key.attempt, trial.state) == (3, Outcome.finished)


def test_a_process_that_keeps_dying_leaves_the_trial_unfinished(tiny_package: Path, tmp_path: Path) -> None:
    executor = Played(tiny_package, lambda request: None)
    tally = run_batch(batch_in(tmp_path), [item(tiny_package)], Settings(), executor, max_attempts=3)
    assert len(executor.requests) == 3
    assert not tally.is_complete
    assert DIED in tally.unfinished[0]


# ---- what a stored trial still needs --------------------------------------------------------------------------------


@pytest.fixture
def done(tiny_package: Path, tmp_path: Path) -> Batch:
    """A batch with one finished and graded noop trial."""
    from runtime.trial import run_trial
    from tasks.trials import TrialKey

    batch = batch_in(tmp_path, "done")
    run_trial(load_folder(tiny_package), TrialKey(task=TINY_ID, agent="noop", run=1), batch.path)
    return batch


def need(batch: Batch, folder: Path, **more: Any) -> Need:
    return decide(batch.attempts(), load_folder(folder), **more).need


def test_nothing_changed_is_reuse(done: Batch, tiny_package: Path) -> None:
    assert need(done, tiny_package) is Need.reuse


def test_a_new_solution_or_changelog_changes_nothing(done: Batch, tiny_package: Path) -> None:
    edit(tiny_package, "solution/apixaban/reply.md", "Reply", "Answer")
    assert need(done, tiny_package) is Need.reuse


def test_changed_checkpoints_are_graded_again(done: Batch, tiny_package: Path) -> None:
    edit(tiny_package, "checkpoints.toml", 'dose = "5 mg"', 'dose = "2.5 mg"')
    assert need(done, tiny_package) is Need.regrade


def test_a_new_grader_version_is_graded_again(done: Batch, tiny_package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.batch.VERSION", "another")
    assert need(done, tiny_package) is Need.regrade


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("instruction.md", "e-consult", "electronic consult"),
        ("task.toml", "turns = 40", "turns = 41"),
        ("chart/Observation.ndjson", '"value":84', '"value":85'),
    ],
)
def test_what_the_agent_sees_changed_is_run_again(
    done: Batch, tiny_package: Path, name: str, old: str, new: str
) -> None:
    edit(tiny_package, name, old, new)
    assert need(done, tiny_package) is Need.rerun


def test_a_trial_that_is_running_elsewhere_is_left_alone(tiny_package: Path, tmp_path: Path) -> None:
    from tasks.trials import TrialKey

    batch = batch_in(tmp_path)
    with TrialWriter(batch.path, TrialKey(task=TINY_ID, agent="noop", run=1)):
        assert need(batch, tiny_package) is Need.busy
    assert need(batch, tiny_package) is Need.resume


def test_broken_ones_are_run_again_only_when_asked(tiny_package: Path, tmp_path: Path) -> None:
    batch = batch_in(tmp_path)
    run_batch(batch, [item(tiny_package)], Settings(), Played(tiny_package, lambda request: Outcome.config_error))
    assert need(batch, tiny_package) is Need.reuse
    assert need(batch, tiny_package, retry_broken=True) is Need.rerun


# ---- real slots -----------------------------------------------------------------------------------------------------


def test_trials_run_in_slots_are_reused_and_graded_again(tiny_package: Path, tmp_path: Path) -> None:
    batch, settings = batch_in(tmp_path), Settings()
    said: list[Finished] = []
    with LocalExecutor(2) as executor:
        items = [item(tiny_package, "oracle", 2), item(tiny_package, "noop", 2)]
        tally = run_batch(batch, items, settings, executor, progress=said.append)
        assert tally.is_complete
        assert tally.outcomes == Counter({"finished": 4})
        assert [finished.done for finished in said] == [1, 2, 3, 4]

        again = run_batch(batch, items, settings, executor)
        assert again.needs == Counter({Need.reuse: 4})

        edit(tiny_package, "checkpoints.toml", 'dose = "5 mg"', 'dose = "2.5 mg"')
        changed = [item(tiny_package, "oracle", 2), item(tiny_package, "noop", 2)]
        graded = run_batch(batch, changed, settings, executor)
        assert graded.needs == Counter({Need.regrade: 4})
        latest = batch.trials()[-1].latest_verdicts()
        assert {verdict.grade_digest for verdict in latest.values()} == {changed[0].task.grade_digest}

        more = run_batch(batch, [item(tiny_package, "noop", 3)], settings, executor)
        assert more.needs == Counter({Need.reuse: 2, Need.run: 1})
    assert len(batch.attempts()) == 5


def test_the_plan_has_what_a_later_reader_needs(tiny_package: Path, tmp_path: Path) -> None:
    batch = batch_in(tmp_path)
    settings = Settings(limits=Limits(turns=7), seed=3)
    with LocalExecutor(1) as executor:
        run_batch(batch, [item(tiny_package)], settings, executor)
    planned, answered = batch.plan()
    task = load_folder(tiny_package)
    assert planned["kind"] == "planned"
    assert (planned["agent_digest"], planned["grade_digest"]) == (task.agent_digest, task.grade_digest)
    assert planned["settings"] == settings.model_dump(mode="json")
    for name in ("prompt_sha256", "code_version", "grader_version", "clock", "backend_version", "data_class"):
        assert planned[name]
    assert (answered["kind"], answered["models"]) == ("answered", ["noop"])
    items, kept = items_of(batch)
    assert kept == settings
    assert [(one.task.id, one.agent, one.runs) for one in items] == [(TINY_ID, "noop", 1)]


def test_other_settings_do_not_go_into_the_same_batch(tiny_package: Path, tmp_path: Path) -> None:
    batch = batch_in(tmp_path)
    executor = Played(tiny_package, lambda request: Outcome.finished)
    run_batch(batch, [item(tiny_package)], Settings(), executor)
    with pytest.raises(UsageError, match="other settings"):
        run_batch(batch, [item(tiny_package)], Settings(limits=Limits(turns=5)), executor)


MODEL = """\
[model."openai/m"]
reasoning = "{effort}"
price = {{input = {price}, output = 2.0}}
"""


def test_a_model_under_another_effort_does_not_go_into_the_same_batch(
    tiny_package: Path, tmp_path: Path, workspace: Workspace
) -> None:
    def says(effort: str, price: float = 1.0) -> None:
        workspace.make()
        workspace.settings_file.write_text(MODEL.format(effort=effort, price=price))

    def go(runs: int, outcome: Outcome) -> None:
        run_batch(batch, [item(tiny_package, "openai/m", runs)], Settings(), Played(tiny_package, lambda _: outcome))

    batch = batch_in(tmp_path)
    says("none")
    go(1, Outcome.config_error)
    says("low")
    go(2, Outcome.finished)  # nothing that counts was run before
    says("low", price=3.0)
    go(3, Outcome.finished)  # a price is no other experiment
    says("high")
    with pytest.raises(UsageError, match=r"openai/m has other settings now .*: reasoning"):
        go(4, Outcome.finished)
    assert len(batch.attempts()) == 3
    says("low")
    go(4, Outcome.finished)


def test_asking_for_fewer_runs_later_gives_up_none_of_those_asked_for(tiny_package: Path, tmp_path: Path) -> None:
    batch = batch_in(tmp_path)
    executor = Played(tiny_package, lambda request: Outcome.finished)
    run_batch(batch, [item(tiny_package, runs=5)], Settings(), executor)
    run_batch(batch, [item(tiny_package, runs=1)], Settings(), executor)
    (left,), _ = items_of(batch)
    assert left.runs == 5
    assert planned_runs(batch) == {(TINY_ID, "noop"): 5}


def test_a_plan_line_cut_by_hand_is_one_message(tiny_package: Path, tmp_path: Path) -> None:
    batch = batch_in(tmp_path)
    run_batch(batch, [item(tiny_package)], Settings(), Played(tiny_package, lambda request: Outcome.finished))
    batch.add_plan({"kind": "planned"})
    assert [one.task.id for one in items_of(batch)[0]] == [TINY_ID]
    batch.add_plan({"kind": "planned", "task": TINY_ID, "agent": "noop", "runs": 1})
    with pytest.raises(UsageError, match="names no folder"):
        items_of(batch)


def test_a_batch_that_is_there_is_gone_on_with_under_its_own_limits(shell: Shell, tiny_package: Path) -> None:
    task = str(tiny_package)
    first = ("run", task, "--agent", "noop", "--batch", "b", "--turns", "9", "--cost", "2.5", "--seed", "4")
    assert shell.run(*first)[0] == 0
    code, _, err = shell.run("run", task, "--agent", "shotgun", "--batch", "b")
    assert code == 0, err
    assert {json.dumps(line["settings"], sort_keys=True) for line in shell.batch.planned()} == {
        json.dumps(Settings(limits=Limits(turns=9, cost=2.5), seed=4).model_dump(mode="json"), sort_keys=True)
    }
    code, _, err = shell.run("run", task, "--agent", "shotgun", "--batch", "b", "--turns", "8")
    assert (code, "other settings" in err) == (2, True)


# ---- a slot that cannot start, a stop while grading again -----------------------------------------------------------


def test_a_slot_that_cannot_be_started_leaves_its_trial_to_be_run(
    tiny_package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = iter([OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))])
    real = executors._Process

    def process() -> executors._Process:
        if fault := next(starts, None):
            raise fault
        return real()

    monkeypatch.setattr(executors, "_Process", process)
    with LocalExecutor(1) as executor:
        tally = run_batch(batch_in(tmp_path), [item(tiny_package, runs=2)], Settings(), executor)
    assert tally.outcomes == Counter({"finished": 1})
    (left,) = tally.unfinished
    assert os.strerror(errno.ENOMEM) in left


@pytest.mark.parametrize("how", ["stop file", "Ctrl-C"])
def test_a_stop_is_heard_while_trials_are_graded_again(
    tiny_package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    batch = batch_in(tmp_path)
    executor = Played(tiny_package, lambda request: Outcome.finished)
    run_batch(batch, [item(tiny_package, runs=3)], Settings(), executor)
    graded: list[int] = []

    def regrade(trial: StoredTrial, task: Task, **_: Any) -> None:
        graded.append(trial.key.run)
        if how == "Ctrl-C":
            raise KeyboardInterrupt
        (batch.path / "stop").touch()

    monkeypatch.setattr("runtime.batch.regrade", regrade)
    shown: list[Finished] = []
    tally = run_batch(batch, [item(tiny_package, runs=5)], Settings(), executor, progress=shown.append)
    assert graded == [1]
    assert tally.stopped
    assert len(executor.requests) == 3
    left = [1, 2, 3, 4, 5] if how == "Ctrl-C" else [2, 3, 4, 5]
    assert [int(one.split("run ")[1].split(":")[0]) for one in tally.unfinished] == left
    assert [one.done for one in shown] == [1, 2, 3, 4, 5]
    assert sum(tally.needs.values()) == 5


def test_one_process_at_a_time_runs_a_batch(tiny_package: Path, tmp_path: Path) -> None:
    batch = batch_in(tmp_path)
    assert not is_running(batch)
    with batch.lock():
        assert is_running(batch)
        with pytest.raises(EnvironmentFault, match="another process"):
            run_batch(batch, [item(tiny_package)], Settings(), Played(tiny_package, lambda request: Outcome.finished))


def test_a_task_that_changed_after_planning_is_not_run(tiny_package: Path, tmp_path: Path) -> None:
    planned = item(tiny_package)
    assert planned.task.agent_digest
    assert planned.task.grade_digest
    edit(tiny_package, "instruction.md", "e-consult", "electronic consult")
    with LocalExecutor(1) as executor:
        tally = run_batch(batch_in(tmp_path), [planned], Settings(), executor)
    assert "has changed since" in tally.unfinished[0]


# ---- the command, killed and stopped --------------------------------------------------------------------------------


def _hears_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Shell:
    """`python -m runtime ...` in a process of its own, on a workspace of this test's own."""

    def __init__(self, tmp_path: Path) -> None:
        self.env = os.environ | {"WORKBENCH_WORKSPACE": str(tmp_path / "workspace"), "PYTHONPATH": str(ROOT)}
        self.batch = Batch(tmp_path / "workspace" / "runs" / "b")
        self.cwd = tmp_path

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "runtime", *arguments],
            env=self.env, cwd=self.cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            # Tests that were started in the background of a script ignore Ctrl-C, and hand that down.
            preexec_fn=_hears_ctrl_c,
        )  # fmt: skip

    def run(self, *arguments: str) -> tuple[int, str, str]:
        with self.start(*arguments) as process:
            out, err = process.communicate(timeout=120)
        return process.returncode, out, err


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def until(condition: Callable[[], Any]) -> Any:
    """The condition's value once it holds; for what another process does. Fails after two minutes."""
    pause = threading.Event()
    for _ in range(12_000):
        if value := condition():
            return value
        pause.wait(0.01)
    pytest.fail("it did not come to that in two minutes")


def steps_of(shell: Shell) -> int:
    attempts = shell.batch.attempts() if shell.batch.path.is_dir() else []
    return sum(len(trial.calls()) for trial in attempts)


def slots_of(process: subprocess.Popen[str]) -> list[int]:
    """The process ids of a command's slots."""
    listed = Path(f"/proc/{process.pid}/task")
    return [int(pid) for thread in listed.iterdir() for pid in (thread / "children").read_text().split()]


def test_a_trial_killed_in_the_middle_leaves_readable_files_and_is_run_again(shell: Shell, tiny_package: Path) -> None:
    process = shell.start("run", str(tiny_package), "--agent", "shotgun", "--batch", "b")
    with process:
        until(lambda: steps_of(shell) >= 5)
        # Scheduler first, so that it cannot start a second attempt; then the trial itself, in mid-step. It is held
        # until then, since a trial that hears of its scheduler's end stops in order.
        (slot,) = slots_of(process)
        os.kill(slot, signal.SIGSTOP)
        process.kill()
        os.kill(slot, signal.SIGKILL)
        process.communicate(timeout=60)
    (killed,) = shell.batch.attempts()
    until(lambda: not killed.alive)
    assert killed.outcome is None
    assert len(killed.calls()) >= 5
    assert len(killed.writes()) >= len(killed.calls())
    assert [event.n for event in killed.events()] == list(range(1, len(killed.events()) + 1))
    before = (killed.path / "trajectory.jsonl").read_bytes()

    code, out, _ = shell.run("show", f"b/{TINY_ID}/shotgun/1")
    assert code == 0
    assert "its process is gone" in out
    assert "ordered a drug: apixaban 5 mg BID oral" in out

    code, out, err = shell.run("resume", "b")
    assert code == 0, err
    assert [trial.key.attempt for trial in shell.batch.attempts()] == [1, 2]
    resumed = shell.batch.trials()[0]
    assert resumed.outcome is not None
    assert (resumed.outcome.outcome, resumed.outcome.continues) == (Outcome.finished, 1)
    assert resumed.calls()[: len(killed.calls())] == killed.calls()
    assert resumed.writes()[: len(killed.writes())] == killed.writes()
    assert (killed.path / "trajectory.jsonl").read_bytes() == before


def test_a_slot_whose_scheduler_was_killed_stops_by_itself(shell: Shell, tiny_package: Path) -> None:
    process = shell.start("run", str(tiny_package), "--agent", "shotgun", "--batch", "b")
    with process:
        until(lambda: steps_of(shell) >= 2)
        process.kill()
        process.communicate(timeout=60)
    (trial,) = shell.batch.attempts()
    until(lambda: trial.outcome)
    assert trial.state is Outcome.cancelled
    assert trial.verdicts() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_cleanly_and_resume_goes_on(shell: Shell, tiny_package: Path, number: signal.Signals) -> None:
    process = shell.start("run", str(tiny_package), "--agent", "shotgun", "--runs", "2", "--jobs", "1", "--batch", "b")
    with process:
        until(lambda: steps_of(shell) >= 2)
        process.send_signal(number)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert "resume b" in out
    (trial,) = shell.batch.attempts()
    assert trial.state is Outcome.cancelled
    code, out, _ = shell.run("resume", "b", "--json")
    assert code == 0
    said = json.loads(out)
    assert said["outcomes"] == {"finished": 2}
    assert {trial.key.attempt for trial in shell.batch.trials()} == {1, 2}


def test_a_batch_is_stopped_from_another_shell(shell: Shell, tiny_package: Path) -> None:
    process = shell.start("run", str(tiny_package), "--agent", "shotgun", "--runs", "3", "--jobs", "1", "--batch", "b")
    with process:
        until(lambda: steps_of(shell) >= 2)
        code, out, _ = shell.run("stop", "b")
        assert (code, out) == (0, "b is stopped.\n")
        process.communicate(timeout=60)
    assert process.returncode == 1
    assert shell.run("stop", "b")[:2] == (0, "b is not running.\n")
    assert not (shell.batch.path / "stop").exists()


# ---- what the command says ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run"], "which tasks"),
        (["run", "no-such-task", "--agent", "noop"], "no-such-task"),
        (["run", "{task}"], "which agent"),
        (["run", "{task}", "--agent", "nobody"], "nobody"),
        (["run", "{task}", "--agent", "noop", "--batch", "../b"], "cannot name a batch"),
        (["run", "{task}", "--agent", "oracle:none"], "apixaban"),
        (["run", "{task}", "--all", "--agent", "noop"], "not both"),
        (["run", "{task}", "--agent", "noop", "--backend", "paper"], "paper"),
        (["show", "nothing"], "nothing"),
        (["stop", "nothing"], "nothing"),
        (["resume", "nothing"], "nothing"),
    ],
)
def test_wrong_usage_is_one_message_and_exit_2(
    workspace: Workspace, tiny_package: Path, arguments: list[str], words: str
) -> None:
    said = CliRunner().invoke(app, [part.format(task=tiny_package) for part in arguments])
    assert said.exit_code == 2
    assert words in said.stderr
    assert isinstance(said.exception, SystemExit)
    assert not workspace.runs.exists()


def test_run_and_show_speak_plain_words(shell: Shell, tiny_package: Path) -> None:
    code, out, err = shell.run("run", str(tiny_package), "--agent", "oracle", "--agent", "noop", "--batch", "b")
    assert code == 0, err
    assert f"{TINY_ID} · oracle · run 1: finished" in err
    assert "2 finished in b (" in out
    code, out, _ = shell.run("show", "b")
    assert code == 0
    assert f"{TINY_ID}  noop  run 1 attempt 1: finished, fail" in out
    code, out, _ = shell.run("show", f"b/{TINY_ID}/oracle/1")
    assert "read laboratory results: 2 of 2" in out
    assert "ordered a drug: apixaban 5 mg tablet 5 mg BID oral" in out
    assert "wrote /workspace/output/reply.md" in out
    code, out, _ = shell.run("show", f"b/{TINY_ID}/oracle/1", "--json")
    said = json.loads(out)
    assert said["outcome"]["outcome"] == "finished"
    assert len(said["verdicts"]) == 3
    code, _, err = shell.run("run", str(tiny_package), "--agent", "noop", "--batch", "b")
    assert (code, "stored, the same task, checkpoints and graders" in err) == (0, True)


def test_a_job_finds_its_progress_in_its_folder(shell: Shell, tiny_package: Path, tmp_path: Path) -> None:
    folder = tmp_path / "workspace" / "jobs" / "j1"
    folder.mkdir(parents=True)
    code, out, _ = shell.run("run", str(tiny_package), "--agent", "noop", "--batch", "b", "--json", "--job", "j1")
    assert (code, json.loads(out)["outcomes"]) == (0, {"finished": 1})
    lines = read(folder)
    assert [line.kind for line in lines] == ["began", "note", "step", "ended"]
    assert (lines[2].done, lines[2].total, lines[2].tally) == (1, 1, {"finished, fail": 1})
    assert "no tool calls" in lines[1].what


def test_tools_lists_fourteen_and_gives_their_schemas(shell: Shell) -> None:
    code, out, _ = shell.run("tools", "--json")
    assert code == 0
    assert len(json.loads(out)) == 14
    code, out, _ = shell.run("tools")
    assert code == 0
    assert "medication_display (required)" in out
