"""What the reports count: one fact a trial, with every checkpoint's deciding verdict, read once and kept in the cache.

A trial's fact is kept until its outcome, its verdicts, its task or this code changes, so that a page over thousands of
trials reads a few files instead of tens of thousands. Deleting the cache costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from graders.planned import PlannedSource, folder_state
from graders.report import PlannedSettings, TrialRow, task_loader, trial_row
from graders.score import SEVERE, deciding_verdicts
from graders.version import VERSION
from tasks.errors import EnvironmentFault
from tasks.package import Task, TaskSource
from tasks.stored import Batch, StoredTrial, write_whole
from tasks.taxonomy import SPECIALTIES
from tasks.trials import Outcome, Result, Verdict

#: Part of every key: raise it when a fact holds something else.
_SHAPE = 2


@dataclass(frozen=True)
class CheckpointFact:
    """One checkpoint of one trial, by the verdict that counts; result "" where there is none.

    `place`: its place in the task, from 0. `severity`: of its harm, "" without one. `by`: the kind of grader. `votes`
    and `dissenting`: of a model's verdict, the votes that count and those besides the commonest. `cause`: a person's.
    """

    checkpoint: str
    title: str
    place: int
    capability: str
    kind: str
    criticality: str
    severity: str
    result: Result | str
    by: str
    judge: str
    votes: int
    dissenting: int
    cause: str


@dataclass(frozen=True)
class TrialFact:
    """One trial. `cost` and `judge_cost` in USD, None = unknown; `tokens_in` with the cached ones.

    `severe_most`: safety checkpoints of severity severe or death that could fail. `settings`: "" or what tells this
    experiment from others of the same agent.
    """

    row: TrialRow
    specialty: str
    group: str
    workflow: str
    authority: str
    calls: int
    turns: int
    tokens_in: int
    tokens_out: int
    seconds: float
    cost: float | None
    judge_cost: float | None
    severe_most: int
    checkpoints: tuple[CheckpointFact, ...]


def trial_facts(
    batches: Iterable[Batch], source: TaskSource | None = None, *, cache: Path | None = None
) -> list[TrialFact]:
    """The facts of every trial's last attempt. `source`: as in `report.trial_rows`; `cache`: the workspace's folder."""
    found: list[TrialFact] = []
    for batch in batches:
        found += _of_batch(batch, source or PlannedSource(batch), cache)
    return found


def _of_batch(batch: Batch, source: TaskSource, cache: Path | None) -> list[TrialFact]:
    load = task_loader(source)
    planned = PlannedSettings(batch)
    kept = _Kept(_place(cache, batch) if cache else None)
    states: dict[str, str] = {}
    found: list[TrialFact] = []
    for trial in batch.trials():
        id = trial.key.task
        if id not in states:
            states[id] = folder_state(source, id) or _digests(load(id))
        settings = planned.of(trial)
        mark = _mark(trial, states[id], settings)
        fact = kept.get(str(trial.path), mark)
        if fact is None:
            fact = _fact(batch, trial, load(id), settings)
            kept.add(str(trial.path), mark, fact)
        found.append(fact)
    kept.save()
    return found


def _fact(batch: Batch, trial: StoredTrial, task: Task | str, settings: str) -> TrialFact:
    verdicts = trial.verdicts()
    outcome = trial.outcome
    row = trial_row(batch, trial, task, settings, outcome, verdicts)
    spent = outcome.usage if outcome else None
    meta = None if isinstance(task, str) else task.meta
    return TrialFact(
        row=row,
        specialty=meta.specialty if meta else "",
        group=SPECIALTIES[meta.specialty] if meta else "",
        workflow=meta.workflow if meta else "",
        authority=(meta.context.authority or "") if meta and meta.context else "",
        calls=outcome.calls if outcome else 0,
        turns=outcome.turns if outcome else 0,
        tokens_in=spent.uncached_input + spent.cache_read + spent.cache_write if spent else 0,
        tokens_out=spent.output if spent else 0,
        seconds=outcome.seconds if outcome else 0.0,
        cost=spent.cost if spent else None,
        judge_cost=judge_cost(verdicts),
        severe_most=sum(one.harm is not None and one.harm.severity in SEVERE for one in _checkpoints(task)),
        checkpoints=tuple(_checkpoint_facts(task, verdicts)) if row.result in ("pass", "fail", "ungraded") else (),
    )


def _checkpoints(task: Task | str) -> Sequence[Any]:
    return () if isinstance(task, str) else task.checkpoints


def judge_cost(verdicts: Iterable[Verdict]) -> float | None:
    """USD that judges cost for these verdicts, superseded ones too; None where one is unknown, 0 without a judge."""
    costs = [verdict.judging.usage.cost for verdict in verdicts if verdict.judging is not None]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def _checkpoint_facts(task: Task | str, verdicts: Sequence[Verdict]) -> Iterable[CheckpointFact]:
    if isinstance(task, str):
        return
    deciding = deciding_verdicts(task.checkpoints, verdicts, task.grade_digest)
    for place, checkpoint in enumerate(task.checkpoints):
        verdict = deciding.get(checkpoint.id)
        judging = verdict.judging if verdict else None
        yield CheckpointFact(
            checkpoint=checkpoint.id,
            title=checkpoint.title,
            place=place,
            capability=checkpoint.capability,
            kind=checkpoint.kind,
            criticality=checkpoint.criticality,
            severity=checkpoint.harm.severity if checkpoint.harm else "",
            result=verdict.result if verdict else "",
            by=verdict.grader.kind if verdict else "",
            judge=judging.model if judging else "",
            votes=len(judging.counted) if judging else 0,
            dissenting=judging.dissenting if judging else 0,
            cause=(verdict.cause or "") if verdict else "",
        )


# ---- the cache ------------------------------------------------------------------------------------------------------


def _digests(task: Task | str) -> str:
    """Changes with what a fact takes from a task."""
    if isinstance(task, str):
        return task
    context = task.meta.context
    return repr((task.agent_digest, task.grade_digest, task.meta.specialty, task.meta.workflow, context))


def _mark(trial: StoredTrial, task: str, settings: str) -> str:
    """Changes with whatever the trial's fact depends on; `task` with its task."""
    parts: list[object] = [_SHAPE, VERSION, settings, task, str(trial.path)]
    for name in ("outcome.json", "verdicts.jsonl"):
        try:
            state = os.stat(os.path.join(trial.path, name))  # noqa: PTH116, PTH118 (twice for each of thousands)
        except OSError:
            parts.append(None)
        else:
            parts.append((state.st_mtime_ns, state.st_size, state.st_ino))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def _place(cache: Path, batch: Batch) -> Path:
    return cache / "results" / f"{hashlib.sha256(str(batch.path.resolve()).encode()).hexdigest()[:32]}.json"


#: What this process has read before: folder of a trial -> (mark, fact). A mark stands for all that a fact is made of.
_memory: dict[str, tuple[str, TrialFact]] = {}
_MOST = 50_000


class _Kept:
    """The facts of one batch in the cache: this process's memory first, then the file, read only when it is needed."""

    def __init__(self, place: Path | None) -> None:
        self._place = place
        self._file: dict[str, Any] | None = None
        self._used: dict[str, str] = {}
        self._changed = False

    def get(self, name: str, mark: str) -> TrialFact | None:
        """The fact under this mark; None where it has to be made."""
        if self._place is None:
            return None
        held = _memory.get(name)
        if held is None or held[0] != mark:
            packed = self._read().get(name)
            if packed is None or packed[0] != mark:
                return None
            held = (mark, _unpacked(packed[1]))
            self._hold(name, held)
        self._used[name] = mark
        return held[1]

    def add(self, name: str, mark: str, fact: TrialFact) -> None:
        """Keep a fact; that of a trial that still runs is made anew each time."""
        if self._place is None or fact.row.outcome is Outcome.running:
            return
        self._hold(name, (mark, fact))
        self._used[name] = mark
        self._changed = True

    def save(self) -> None:
        """Write the file where something was added. What cannot be written is read from the trials again next time."""
        if self._place is None or not self._changed:
            return
        facts = {name: [mark, _packed(_memory[name][1])] for name, mark in self._used.items() if name in _memory}
        try:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._place, json.dumps(facts, ensure_ascii=False, separators=(",", ":")))
        except (OSError, EnvironmentFault):
            return

    def _hold(self, name: str, held: tuple[str, TrialFact]) -> None:
        if len(_memory) > _MOST:
            _memory.clear()
        _memory[name] = held

    def _read(self) -> dict[str, Any]:
        if self._file is None:
            try:
                found = json.loads(self._place.read_bytes()) if self._place else {}
            except (OSError, ValueError):
                found = {}
            self._file = found if isinstance(found, dict) else {}
        return self._file


def _packed(fact: TrialFact) -> list[Any]:
    return list(astuple(fact))


def _unpacked(values: Sequence[Any]) -> TrialFact:
    row, *rest, checkpoints = values
    made = TrialRow(*row)
    made = replace(made, outcome=Outcome(made.outcome))
    parts: tuple[Any, ...] = (made, *rest, tuple(CheckpointFact(*one) for one in checkpoints))
    return TrialFact(*parts)


# ---- which trials stand together ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Set:
    """Facts that may be averaged, by agent, and how many were set aside because they are of another version."""

    facts: tuple[TrialFact, ...]
    aside: int

    @property
    def agents(self) -> list[str]:
        """The agents, sorted."""
        return sorted({fact.row.agent for fact in self.facts})

    @property
    def tasks(self) -> list[str]:
        """The tasks, sorted."""
        return sorted({fact.row.task for fact in self.facts})

    def only(self, keep: Callable[[TrialFact], bool]) -> Set:
        """The same with some facts alone, for a filter by group, workflow or agent."""
        return Set(tuple(fact for fact in self.facts if keep(fact)), self.aside)


def comparable(facts: Iterable[TrialFact]) -> Set:
    """Facts of one version a task; an agent run under several settings becomes one agent for each.

    Of a task with trials of several versions the one with a graded trial, else the most trials, is kept; the rest is
    counted as set aside, never averaged.
    """
    by_task: dict[str, dict[tuple[str, str], list[TrialFact]]] = {}
    for fact in facts:
        versions = by_task.setdefault(fact.row.task, {})
        versions.setdefault((fact.row.agent_digest, fact.row.grade_digest), []).append(fact)
    kept: list[TrialFact] = []
    aside = 0
    for versions in by_task.values():
        # A trial without an outcome has no digests yet: it belongs to whichever version is kept.
        waiting = versions.pop(("", ""), [])
        best = max(
            versions,
            key=lambda version: (
                sum(fact.row.result in ("pass", "fail") for fact in versions[version]), len(versions[version]), version
            ),
            default=None,
        )  # fmt: skip
        kept += [*(versions[best] if best else []), *waiting]
        aside += sum(len(group) for version, group in versions.items() if version != best)
    return Set(tuple(_told_apart(kept)), aside)


def _told_apart(facts: Sequence[TrialFact]) -> list[TrialFact]:
    settings: dict[str, set[str]] = {}
    for fact in facts:
        settings.setdefault(fact.row.agent, set()).add(fact.row.settings)
    found = []
    for fact in facts:
        several = settings[fact.row.agent]
        if len(several) > 1:
            label = _difference(fact.row.settings, several)
            fact = replace(fact, row=replace(fact.row, agent=f"{fact.row.agent} [{label}]"))
        found.append(fact)
    return found


def _difference(settings: str, several: set[str]) -> str:
    """What of the settings differs among the experiments: "profile=paper"."""
    read = {text: json.loads(text) if text else {} for text in several}
    keys = sorted({key for values in read.values() for key in values})
    differing = [
        key for key in keys if len({json.dumps(values.get(key), sort_keys=True) for values in read.values()}) > 1
    ]
    own = read[settings]
    return (
        ", ".join(
            f"{key}={json.dumps(own[key]) if not isinstance(own.get(key), str) else own[key] or 'default'}"
            for key in differing
            if key in own
        )
        or "settings unknown"
    )
