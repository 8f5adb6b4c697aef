"""The stored trials of the workspace, each read once for as long as it stays the same.

Whoever asks for trials says what may be seen: what is hidden from a session never leaves this module.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from graders.facts import TrialFact
from graders.facts import trial_facts as facts_of
from graders.planned import PlannedSource
from graders.report import TrialRow
from review_ui import frame, library, runs, steps, theme
from review_ui.catalog import fingerprint
from review_ui.chartview import ChartView
from review_ui.kept import kept
from review_ui.markup import Markup
from review_ui.results.narrow import to_regrade, to_run_again
from review_ui.sight import Sight
from review_ui.steps import Trajectory
from tasks.errors import UsageError
from tasks.fhir.chart import Overlay
from tasks.fhir.resources import Resource
from tasks.package import Task
from tasks.stored import Batch, StoredTrial, trial_folder
from tasks.trials import OUTCOMES, Outcome, TrialKey


@dataclass(frozen=True)
class Shown:
    """The trials of a batch that may be shown, and (task, data class) of those that may not."""

    facts: tuple[TrialFact, ...]
    hidden: frozenset[tuple[str, str]]

    @property
    def rows(self) -> list[TrialRow]:
        """As reports list them."""
        return [fact.row for fact in self.facts]


@kept(100)
def _facts(folder: str, state: Hashable) -> tuple[TrialFact, ...]:
    return tuple(facts_of([Batch(Path(folder))], cache=frame.workspace().cache))


@kept(400)
def _classes(folder: str, state: Hashable) -> Mapping[str, str]:
    """The data class of each task as the batch planned it; the strictest where it was planned twice."""
    found: dict[str, str] = {}
    for line in Batch(Path(folder)).planned():
        task, given = line["task"], str(line.get("data_class", ""))
        found[task] = max(found.get(task, "open"), given, key=_strictness)
    return found


def _strictness(data_class: str) -> int:
    # A class that is not known counts as identified records (tasks/review/permissions.py).
    return {"open": 0, "dua": 1}.get(data_class, 2)


def batch_state(batch: Batch) -> Hashable:
    """Changes whenever a result, a verdict, the plan or a task of the batch does."""
    return (runs.fingerprint(batch), _task_states(batch))


def _task_states(batch: Batch) -> str:
    folders = {str(line.get("folder")) for line in batch.planned()}
    states = [fingerprint(Path(folder)) for folder in sorted(folders) if Path(folder).is_dir()]
    return hashlib.blake2b("".join(states).encode("ascii"), digest_size=16).hexdigest()


def data_classes(batch: Batch) -> Mapping[str, str]:
    """The data class that each task had when the batch was planned. Walks all folders of the batch: ask once."""
    return _classes(str(batch.path), runs.fingerprint(batch))


def data_class(batch: Batch, task_id: str) -> str:
    """The data class that the task had when the batch was planned; "" where the plan does not know the task."""
    return data_classes(batch).get(task_id, "")


def shown(batch: Batch, sight: Sight, state: Hashable | None = None) -> Shown:
    """What reports count of each trial that may be seen. Nobody changes it.

    `state`: the batch's own, for a caller that has asked for it already; to ask walks all its folders.
    """
    state = batch_state(batch) if state is None else state
    facts = _facts(str(batch.path), state)
    classes = _classes(str(batch.path), state)
    hidden = frozenset(
        (task, classes.get(task, ""))
        for task in {fact.row.task for fact in facts}
        if not sight.results(task, classes.get(task, ""))
    )
    if not hidden:
        return Shown(facts, hidden)
    tasks = {task for task, _ in hidden}
    return Shown(tuple(fact for fact in facts if fact.row.task not in tasks), hidden)


def of_agent(batch: str, task_id: str, agent: str) -> list[StoredTrial]:
    """The runs of one task and agent in a batch, the last attempt of each. UsageError where there is no such batch.

    Whether they may be shown is for the caller: `Sight.results`.
    """
    opened = Batch.open(frame.workspace().runs, batch)
    folder = opened.path / trial_folder(TrialKey(task=task_id, agent=agent, run=1)).parent.parent
    found: dict[int, StoredTrial] = {}
    for path in folder.glob("*/attempt-*"):
        run, attempt = path.parts[-2], path.parts[-1].removeprefix("attempt-")
        if run.isdecimal() and attempt.isdecimal() and int(run) > 0 and int(attempt) > 0:
            key = TrialKey(task=task_id, agent=agent, run=int(run), attempt=int(attempt))
            if int(run) not in found or found[int(run)].key.attempt < key.attempt:
                found[int(run)] = StoredTrial(path, key)
    return [found[run] for run in sorted(found)]


def of_row(row: TrialRow) -> StoredTrial:
    """The stored trial of a row, whether it is there or not."""
    key = TrialKey(task=row.task, agent=row.agent, run=row.run, attempt=row.attempt)
    return StoredTrial.of(frame.workspace().runs / row.batch, key)


def due_chip(row: TrialRow) -> Markup | None:
    """The chip of a trial without a result by the present version, which no physician needs to look at."""
    if to_regrade(row):
        return theme.chip("To regrade", "orange", "history")
    return theme.chip("Run again", "orange", "history") if to_run_again(row) else None


def open_chip(trial: StoredTrial, state: Outcome) -> Markup | None:
    """The chip of a trial that has come to no end of its own: it runs, its process is gone, or a person stopped it.

    None of every other outcome.
    """
    if OUTCOMES[state].counts_as != "not attempted":
        return None
    if state is Outcome.cancelled:
        return theme.chip("Stopped", "gray", "stop_circle")
    if trial.alive:
        return theme.chip("Running", "blue", "progress_activity")
    # It may have ended since `state` was read.
    return theme.chip("Its process is gone", "orange", "error") if trial.outcome is None else None


def answered(batch: Batch) -> dict[str, tuple[str, ...]]:
    """Agent -> the names under which its provider answered, in order. Several may be several models."""
    found: dict[str, dict[str, None]] = {}
    for line in batch.plan():
        if line.get("kind") == "answered" and isinstance(line.get("models"), list):
            found.setdefault(str(line.get("agent", "")), {}).update(dict.fromkeys(map(str, line["models"])))
    return {agent: tuple(names) for agent, names in found.items()}


@kept(32)
def _trajectory(path: str, size: int, changed: int) -> Trajectory:
    return steps.read(Path(path))


def trajectory(trial: StoredTrial) -> Trajectory:
    """The trial's steps, read once for as long as its file stays the same."""
    path = trial.path / "trajectory.jsonl"
    try:
        state = path.stat()
    except OSError:
        return steps.read(path)
    return _trajectory(str(path), state.st_size, state.st_mtime_ns)


def planned_task(batch: str, task_id: str, sight: Sight) -> Task:
    """The task that a batch ran, as reports and regrading find it. Raises UsageError, PackageError, NotAllowed."""
    folder = PlannedSource(Batch.open(frame.workspace().runs, batch)).folder(task_id)
    if not (folder / "task.toml").is_file():
        raise UsageError("its folder is gone, and no bundled task has this id.", where=task_id)
    task = library.folder_task(folder)
    if task.id != task_id:
        raise UsageError(f"the folder holds the task {task.id}.", where=str(folder))
    sight.require(task.meta.data_class)
    return task


@kept(8)
def _chart_at(path: str, size: int, digest: str, step: int, _trial: StoredTrial, _task: Task) -> ChartView:
    overlay = Overlay(_task.chart)
    for write in _trial.writes():
        if write.call is not None and write.call <= step:
            overlay.add(Resource.parse(write.resource, where=write.reference))
    context = _task.meta.context
    if context is None:
        raise UsageError("this draft names no patient.", where=_task.id)
    # The tool layer stamps what is written a few seconds after the clock; a day later shows all of it.
    now = context.now + timedelta(days=1) if context.now else None
    return ChartView(overlay, context.patient, now)


def chart_at(trial: StoredTrial, task: Task, step: int) -> ChartView:
    """The chart with what the agent had written after a step."""
    ledger = trial.path / "ehr.ndjson"
    size = ledger.stat().st_size if ledger.exists() else 0
    return _chart_at(str(trial.path), size, task.agent_digest, step, trial, task)


def address(batch: str, task_id: str, agent: str, run: int) -> dict[str, str]:
    """The parameters of a trial's page."""
    return {"batch": batch, "task": task_id, "agent": agent, "run": str(run)}


def batch_name(trial: StoredTrial) -> str:
    """The name of the trial's batch, from its folder: runs/<batch>/trials/<task>/<agent>/<run>/attempt-<n>."""
    return trial.path.parents[4].name


def link(trial: StoredTrial, **more: str) -> str:
    """The address of the trial's page, with more parameters."""
    key = trial.key
    return frame.link("trial", **address(batch_name(trial), key.task, key.agent, key.run), **more)
