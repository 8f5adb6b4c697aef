"""A batch: tasks x agents x runs, planned, run in slots, stopped, resumed (design 9).

What each trial needs is decided from what is on the disk: nothing (REUSE), grading (REGRADE), or a run (RUN, RERUN).
plan.jsonl is append-only: a `planned` line for each task and agent of an invocation, an `answered` line for each
trial with the names that the provider gave.
"""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from graders.judge import Judge
from graders.regrade import lacks_judge, regrade
from graders.report import MODEL_SETTINGS, PlannedSettings
from graders.version import VERSION
from runtime.agent import prompt_hash
from runtime.agents import is_built_in
from runtime.clock import clock_of
from runtime.executors import DIED, NOT_STARTED, Executor
from runtime.slot import TrialRequest, TrialResult, load_folder
from runtime.trial import Settings
from tasks.errors import EnvironmentFault, UsageError, WorkbenchError
from tasks.package import Task
from tasks.stored import Batch, StoredTrial, agent_folder, trial_folder
from tasks.trials import OUTCOMES, Outcome, TrialKey
from tasks.workspace import Workspace

#: Attempts of one trial in one invocation, where the outcome is one that is retried.
MAX_ATTEMPTS = 3
#: Seconds that a running trial has to stop between two steps before its process is ended.
GRACE_SECONDS = 30.0
_STOP_FILE = "stop"


class Need(StrEnum):
    """What a planned trial needs."""

    run = "run"
    rerun = "rerun"
    resume = "resume"
    regrade = "regrade"
    reuse = "reuse"
    busy = "busy"


class Decision(NamedTuple):
    """What a trial needs, and why."""

    need: Need
    why: str


@dataclass(frozen=True)
class Item:
    """One task and agent of a batch, to be run `runs` times. `folder` is the task's own folder."""

    task: Task
    agent: str
    runs: int
    folder: Path


@dataclass(frozen=True)
class Finished:
    """One trial that is done with, for whoever shows progress. `outcome` is None where it did not come to one."""

    done: int
    total: int
    key: TrialKey
    need: Need
    outcome: Outcome | None
    detail: str
    trial: StoredTrial | None


@dataclass
class Tally:
    """What became of every planned trial of one invocation."""

    outcomes: Counter[str] = field(default_factory=Counter)
    needs: Counter[str] = field(default_factory=Counter)
    unfinished: list[str] = field(default_factory=list)
    stopped: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether every trial finished, whatever its verdict."""
        return not self.unfinished and not self.stopped


def decide(attempts: Sequence[StoredTrial], task: Task, *, retry_broken: bool = False, judge: bool = False) -> Decision:
    """What a trial with these attempts (of one task, agent and run, in order) needs now.

    `judge`: whether there is one now; then what an earlier one failed at, or nobody judged, is graded again.
    `retry_broken` also runs again what ended as config_error or internal_error, after somebody has mended the cause.
    """
    if not attempts:
        return Decision(Need.run, "not run yet")
    last = attempts[-1]
    outcome = last.outcome
    if outcome is None:
        if last.alive:
            return Decision(Need.busy, "another process is running it")
        return Decision(Need.resume, "its process ended before it did")
    if outcome.agent_digest != task.agent_digest:
        return Decision(Need.rerun, "instruction, chart, context or limits have changed")
    rule = OUTCOMES[outcome.outcome]
    if rule.retry != "no":
        return Decision(Need.resume, f"it ended as {outcome.outcome}")
    if not rule.grade:
        if retry_broken:
            return Decision(Need.rerun, f"it ended as {outcome.outcome}")
        return Decision(Need.reuse, f"it ended as {outcome.outcome}, which is not retried by itself")
    graded = {verdict.checkpoint for verdict in last.verdicts() if _holds(verdict.grade_digest, task)}
    current = {
        verdict.checkpoint
        for verdict in last.verdicts()
        if _holds(verdict.grade_digest, task) and (verdict.grader.kind == "person" or verdict.grader.version == VERSION)
    }
    wanted = {checkpoint.id for checkpoint in task.checkpoints}
    if wanted - graded:
        return Decision(Need.regrade, "the checkpoints have changed, or were not graded")
    if wanted - current:
        return Decision(Need.regrade, f"the graders are now of version {VERSION}")
    if judge and lacks_judge(task, last.verdicts()):
        return Decision(Need.regrade, "the judge failed, or there was none")
    return Decision(Need.reuse, "the same task, checkpoints and graders")


def _holds(grade_digest: str, task: Task) -> bool:
    return grade_digest == task.grade_digest


# ---- the plan -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def code_version() -> str:
    """The version of this code: of the distribution, with the commit where it runs from a clone."""
    try:
        version = importlib.metadata.version("physicianbench-workbench")
    except importlib.metadata.PackageNotFoundError:
        version = "0"
    try:
        root = Path(__file__).resolve().parent.parent
        told = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return version
    return f"{version}+{told.stdout.strip()}" if told.returncode == 0 else version


def planned_line(item: Item, settings: Settings) -> dict[str, Any]:
    """The plan.jsonl line of one task and agent: everything that a later reader needs to compare or repeat it."""
    try:
        clock = clock_of(item.task)
        at, clock_source = clock.now.isoformat(timespec="seconds"), clock.source
    except WorkbenchError as fault:
        # The trial itself will say so as its outcome; one broken chart must not keep the other tasks from running.
        at, clock_source = "", str(fault)
    return {
        "kind": "planned",
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "task": item.task.id,
        "task_version": item.task.meta.version,
        "agent": item.agent,
        "runs": item.runs,
        "folder": str(item.folder),
        "agent_digest": item.task.agent_digest,
        "grade_digest": item.task.grade_digest,
        "grader_version": VERSION,
        "draft": item.task.is_draft,
        "data_class": item.task.meta.data_class,
        "clock": at,
        "clock_source": clock_source,
        "settings": settings.model_dump(mode="json"),
        "backend_version": code_version() if settings.backend == "embedded" else "",
        "prompt_sha256": prompt_hash(),
        "code_version": code_version(),
        "model": _model_settings(item.agent),
    }


def _model_settings(agent: str) -> dict[str, Any]:
    """What workbench.toml says of a provider's model, prices as of this line's `at`. No key is in it."""
    if is_built_in(agent):
        return {}
    configured = Workspace.find().settings.models.get(agent)
    return configured.model_dump(mode="json") if configured else {}


def planned_runs(batch: Batch) -> dict[tuple[str, str], int]:
    """(task, agent) -> runs planned: the most of any line, so that asking for fewer later gives up none of them."""
    runs: dict[tuple[str, str], int] = {}
    for line in batch.planned():
        who, asked = (line["task"], str(line.get("agent", ""))), line.get("runs")
        runs[who] = max(runs.get(who, 0), asked if isinstance(asked, int) else 0)
    return runs


def items_of(batch: Batch) -> tuple[list[Item], Settings]:
    """What a batch was planned to run, each in the folder of its latest line, and its settings.

    Raises UsageError where it has no plan, or none that can be gone by, and PackageError.
    """
    latest = {(line["task"], line.get("agent")): line for line in batch.planned()}
    settings = settings_of(batch)
    if not latest or settings is None:
        raise UsageError("the batch has no plan.", where=str(batch.path), remedy="Start it with `runtime run`.")
    runs = planned_runs(batch)
    items = []
    for (task, agent), line in latest.items():
        folder = line.get("folder")
        if not isinstance(folder, str) or not isinstance(agent, str) or not runs[(task, agent)]:
            raise UsageError(
                f"a line of the plan names no folder, agent or runs for {task}.",
                where=str(batch.path / "plan.jsonl"),
                remedy="Mend the line, or start it again with `runtime run`.",
            )
        items.append(Item(load_folder(Path(folder), task), agent, runs[(task, agent)], Path(folder)))
    return items, settings


def settings_of(batch: Batch) -> Settings | None:
    """The settings that the batch was planned with; None where no line of its plan tells them."""
    return next((found for line in reversed(batch.planned()) if (found := _settings(line))), None)


def _settings(line: Mapping[str, Any]) -> Settings | None:
    try:
        return Settings.model_validate(line.get("settings"))
    except ValidationError:
        return None


def _check_settings(batch: Batch, settings: Settings, agents: Iterable[str]) -> None:
    """Trials of different settings must not end up in one average."""
    for line in batch.planned():
        if _settings(line) != settings:
            raise UsageError(
                "the batch was planned with other settings (profile, backend, limits or seed).",
                where=str(batch.path),
                remedy="Take another name for the new ones.",
            )
        if line.get("prompt_sha256") != prompt_hash():
            raise UsageError(
                "the batch was planned with another system prompt.",
                where=str(batch.path),
                remedy="Take another name for the new one.",
            )
    for agent in agents:
        if differing := _other_model_settings(batch, agent):
            raise UsageError(
                f"{agent} has other settings now than when trials of this batch were run: {', '.join(differing)}.",
                where=str(batch.path),
                remedy="Set it back in workbench.toml, or take another name for the new ones.",
            )


def _other_model_settings(batch: Batch, agent: str) -> list[str]:
    """What of a model's settings is not as it was for trials of this batch that count; a plan that came to no such
    trial (no key, a wrong address) binds nobody."""
    now = _model_settings(agent)
    before = [line["model"] for line in batch.planned() if line.get("agent") == agent and line.get("model")]
    if not now or all(then.get(key) == now[key] for then in before for key in MODEL_SETTINGS):
        return []
    counted = [
        trial for trial in batch.attempts() if trial.key.agent == agent and OUTCOMES[trial.state].counts_as == "valid"
    ]
    told = PlannedSettings(batch)
    ran = [json.loads(text) for text in {told.of(trial) for trial in counted} if text]
    return [key for key in MODEL_SETTINGS if any(key in then and then[key] != now[key] for then in ran)]


# ---- running --------------------------------------------------------------------------------------------------------


def run_batch(
    batch: Batch,
    items: Sequence[Item],
    settings: Settings,
    executor: Executor,
    *,
    progress: Callable[[Finished], None] = lambda finished: None,
    retry_broken: bool = False,
    max_attempts: int = MAX_ATTEMPTS,
    grace: float = GRACE_SECONDS,
) -> Tally:
    """Bring every planned trial to an outcome, in the executor's slots. KeyboardInterrupt and `request_stop` end it
    cleanly: what runs stops between two steps, and a later resume runs the rest.

    Raises EnvironmentFault where another process runs this batch, UsageError where its settings differ.
    """
    with batch.lock():
        _check_settings(batch, settings, {item.agent for item in items})
        (batch.path / _STOP_FILE).unlink(missing_ok=True)
        for item in items:
            agent_folder(item.agent)
            batch.add_plan(planned_line(item, settings))
        judge = Judge.configured(Workspace.find())
        run = _Run(batch, items, settings, executor, progress, retry_broken, max_attempts, grace, judge)
        try:
            return run.run()
        finally:
            if judge is not None:
                judge.close()
            (batch.path / _STOP_FILE).unlink(missing_ok=True)


class _Run:
    def __init__(
        self,
        batch: Batch,
        items: Sequence[Item],
        settings: Settings,
        executor: Executor,
        progress: Callable[[Finished], None],
        retry_broken: bool,
        max_attempts: int,
        grace: float,
        judge: Judge | None,
    ) -> None:
        self.batch = batch
        self.items = items
        self.settings = settings
        self.executor = executor
        self.progress = progress
        self.retry_broken = retry_broken
        self.max_attempts = max_attempts
        self.grace = grace
        self.judge = judge
        self.tally = Tally()
        self.total = sum(item.runs for item in items)
        self.done = 0
        self.tries: Counter[tuple[str, str, int]] = Counter()
        self.needs: dict[tuple[str, str, int], Need] = {}
        self.pending: dict[Future[TrialResult], tuple[Item, TrialKey]] = {}
        #: What has been submitted, or is done with.
        self.begun: set[tuple[str, str, int]] = set()
        self.stop_asked: float | None = None

    def run(self) -> Tally:
        for item, run, attempts in self._planned():
            # Grading again takes long where there is much of it, and costs with a judge: a stop is heard here too.
            while (item.task.id, item.agent, run) not in self.begun:
                try:
                    self._hear()
                    self._start(item, run, attempts)
                except KeyboardInterrupt:
                    self._stop(now=self.stop_asked is not None)
        while self.pending:
            try:
                finished, _ = wait(self.pending, timeout=0.2, return_when=FIRST_COMPLETED)
                self._hear()
                for future in finished:
                    self._collect(future)
            except KeyboardInterrupt:
                # A second one does not wait for the step at hand.
                self._stop(now=self.stop_asked is not None)
            if self.stop_asked is not None and time.monotonic() - self.stop_asked > self.grace:
                self.executor.kill()
        return self.tally

    def _planned(self) -> Iterator[tuple[Item, int, list[StoredTrial]]]:
        stored: dict[tuple[str, str, int], list[StoredTrial]] = {}
        for trial in self.batch.attempts():
            stored.setdefault((trial.key.task, trial.key.agent, trial.key.run), []).append(trial)
        # Runs outermost: a batch that is stopped early has whole first runs rather than whole first tasks.
        for run in range(1, max((item.runs for item in self.items), default=0) + 1):
            for item in self.items:
                if run <= item.runs:
                    yield item, run, stored.get((item.task.id, item.agent, run), [])

    def _hear(self) -> None:
        if (self.batch.path / _STOP_FILE).exists():
            self._stop()

    def _start(self, item: Item, run: int, attempts: list[StoredTrial]) -> None:
        who = (item.task.id, item.agent, run)
        decision = decide(attempts, item.task, retry_broken=self.retry_broken, judge=self.judge is not None)
        if who not in self.needs:
            self.tally.needs[decision.need] += 1
        self.needs[who] = decision.need
        if self.stop_asked is not None and decision.need not in (Need.reuse, Need.busy):
            key = attempts[-1].key if attempts else TrialKey(task=item.task.id, agent=item.agent, run=run)
            self._finish(key, decision.need, None, NOT_STARTED, None)
            return
        if decision.need in (Need.run, Need.rerun, Need.resume):
            self._submit(item, run, attempts[-1].key.attempt if decision.need is Need.resume else None)
            return
        last = attempts[-1]
        if decision.need is Need.busy:
            self._finish(last.key, Need.busy, None, decision.why, last)
            return
        if decision.need is Need.regrade:
            regrade(last, item.task, judge=self.judge)
        self._finish(last.key, decision.need, last.state, decision.why, last)

    def _submit(self, item: Item, run: int, after: int | None) -> None:
        key = self.batch.next_attempt(item.task.id, item.agent, run)
        self.tries[(key.task, key.agent, key.run)] += 1
        request = TrialRequest(
            batch=str(self.batch.path),
            folder=str(item.folder),
            key=key,
            settings=self.settings,
            agent_digest=item.task.agent_digest,
            after=after,
        )
        self.pending[self.executor.submit(request)] = (item, key)
        self.begun.add((key.task, key.agent, key.run))

    def _collect(self, future: Future[TrialResult]) -> None:
        item, key = self.pending.pop(future)
        result = future.result()
        who = (key.task, key.agent, key.run)
        retry = OUTCOMES[result.outcome.outcome].retry == "yes" if result.outcome else result.error == DIED
        if retry and self.stop_asked is None and self.tries[who] < self.max_attempts:
            self._submit(item, key.run, key.attempt)
            return
        outcome = result.outcome.outcome if result.outcome else None
        trial = StoredTrial(self.batch.path / trial_folder(key), key) if result.outcome else None
        if trial is not None and (models := _models(trial)):
            self.batch.add_plan(
                {"kind": "answered", "task": key.task, "agent": key.agent, "run": key.run, "models": models}
            )
        self._finish(key, self.needs[who], outcome, result.outcome.detail if result.outcome else result.error, trial)

    def _finish(
        self, key: TrialKey, need: Need, outcome: Outcome | None, detail: str, trial: StoredTrial | None
    ) -> None:
        self.begun.add((key.task, key.agent, key.run))
        self.done += 1
        if outcome is not None:
            self.tally.outcomes[outcome] += 1
        if outcome is None or OUTCOMES[outcome].counts_as == "not attempted":
            self.tally.unfinished.append(f"{key.task} {key.agent} run {key.run}: {detail or outcome}")
        self.progress(Finished(self.done, self.total, key, need, outcome, detail, trial))

    def _stop(self, *, now: bool = False) -> None:
        if now:
            self.executor.kill()
        elif self.stop_asked is None:
            self.stop_asked = time.monotonic()
            self.tally.stopped = True
            self.executor.cancel()


def _models(trial: StoredTrial) -> list[str]:
    named = [event.data.get("model", "") for event in trial.events() if event.type == "model"]
    return list(dict.fromkeys(name for name in named if name))


# ---- from another shell ---------------------------------------------------------------------------------------------


def is_running(batch: Batch) -> bool:
    """Whether a process is running this batch now."""
    try:
        with batch.lock():
            return False
    except EnvironmentFault:
        return True


def request_stop(batch: Batch, *, wait_seconds: float = 60.0, poll: float = 0.2) -> bool:
    """Ask the process that runs this batch to stop, and wait for it. False where none runs it.

    Raises EnvironmentFault where it has not stopped in time; the request stands.
    """
    if not is_running(batch):
        return False
    (batch.path / _STOP_FILE).touch()
    until = time.monotonic() + wait_seconds
    while time.monotonic() < until:
        if not is_running(batch):
            return True
        time.sleep(poll)
    raise EnvironmentFault(
        "the batch has not stopped yet.", where=str(batch.path), remedy="It stops after the step at hand; look again."
    )


def counts(outcomes: Mapping[str, int]) -> str:
    """`3 finished, 1 loop_stopped`."""
    return ", ".join(f"{number} {name}" for name, number in sorted(outcomes.items(), key=lambda pair: -pair[1]))


def find_trial(what: str, find_batch: Callable[[str], Batch]) -> StoredTrial | None:
    """The trial that `what` names: its folder, or BATCH/TASK/AGENT/RUN (its last attempt). None where it names a batch.

    Raises UsageError where it names a trial that is not there.
    """
    folder = Path(what)
    if (folder / "trajectory.jsonl").is_file():
        here = folder.absolute()
        return next((trial for trial in Batch(here.parents[4]).attempts() if trial.path == here), None)
    parts = what.split("/")
    if folder.is_dir() or len(parts) < 4:
        return None
    name, task, *agent, run = parts
    batch = find_batch(name)
    for trial in batch.trials():
        if (trial.key.task, trial.key.agent, str(trial.key.run)) == (task, "/".join(agent), run):
            return trial
    raise UsageError(f"there is no trial {what} on the disk.", remedy=f"See them with: python -m runtime show {name}")
