"""The checks of the gate, in order."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from authoring.gate import examples, mutants, package, reach, variants
from authoring.gate.replay import Stage, steps_of
from authoring.gate.results import Changed, Check, GateResult, checked
from graders.evidence import Evidence
from graders.grade import grade
from graders.regrade import same
from runtime.agents import oracles
from runtime.trial import run_trial
from tasks.checking import faults
from tasks.errors import WorkbenchError
from tasks.package import Task, load
from tasks.review.events import package_hash
from tasks.stored import StoredTrial, trial_folder
from tasks.trials import OUTCOMES, Result, TrialKey, Verdict

#: Agents that must fail every task, and why it would be wrong if they passed.
CONTROLS = {
    "noop": "an agent that does nothing passes",
    "shotgun": "an agent that orders everything in sight passes",
    "parrot": "an agent that copies the chart into the note passes",
}
#: Verdicts of a plan that show a fault of the plan or of the task. Ungraded is none: it waits for a judge.
_WRONG = ("fail", "partial", "error")

Progress = Callable[[Check], None]


def run_gate(files: Mapping[str, bytes], *, task: str, progress: Progress = lambda check: None) -> GateResult:
    """Run every check over a package; `progress` hears each as it ends. What is wrong with the task never raises."""
    began = time.monotonic()
    found = _Found()
    checks = []
    for check in _checks(dict(files), task, found):
        progress(check)
        checks.append(check)
    return GateResult(
        task=task,
        package=package_hash(files),
        checks=tuple(checks),
        mutants=tuple(found.mutants),
        variants=tuple(found.variants),
        seconds=time.monotonic() - began,
    )


def count(files: Mapping[str, bytes], *, task: str) -> int | None:
    """How many checks `run_gate` will make, where nothing ends it early; None where the package cannot be read."""
    try:
        found = load(files, where=task)
    except WorkbenchError:
        return None
    if not found.checkpoints or found.meta.context is None or found.meta.context.now is None:
        return 1 + package.COUNT + 1
    profiles = {profile for one in found.checkpoints for profile in one.reachable}
    plans = max(1, len(found.plans))
    return 1 + package.COUNT + len(profiles) + examples.COUNT + plans + len(CONTROLS) + 2


@dataclass
class _Found:
    """What the checks on plans leave for the result."""

    mutants: list[Changed] = field(default_factory=list)
    variants: list[Changed] = field(default_factory=list)


def _checks(files: dict[str, bytes], task_id: str, found: _Found) -> Iterator[Check]:
    faulty = faults(files, where=task_id)
    yield checked("Package is valid R4 and consistent", [str(fault) for fault in faulty])
    if faulty:
        return
    try:
        task = load(files, where=task_id)
    except WorkbenchError as fault:
        yield Check("Package loads", "failed", str(fault))
        return
    yield from package.checks(task)
    if not task.checkpoints or task.meta.context is None or task.meta.context.now is None:
        yield Check("Reference plans pass", "skipped", "a draft has no checkpoints or no clock yet")
        return
    yield from reach.checks(task)
    yield from examples.checks(task)
    with tempfile.TemporaryDirectory(prefix="workbench-gate-") as folder:
        trials = Trials(task, Path(folder))
        plans = list(_plans(trials))
        yield from plans
    stage = Stage(task)
    yield from _controls(stage)
    if any(check.state == "failed" for check in plans):
        yield Check("Mutants are caught", "skipped", "a reference plan does not pass")
        yield Check("Harmless variants pass", "skipped", "a reference plan does not pass")
        return
    yield _mutants(stage, found)
    yield _variants(stage, found)


class Trials:
    """Trials of built-in agents on one task, run where nobody keeps them."""

    def __init__(self, task: Task, folder: Path) -> None:
        self.task, self._folder = task, folder
        self._count = 0

    def run(self, agent: str) -> tuple[StoredTrial, Sequence[Verdict], str]:
        """(the trial, its verdicts, "" or why it could not be graded)."""
        self._count += 1
        key = TrialKey(task=self.task.id, agent=agent, run=self._count)
        outcome = run_trial(self.task, key, self._folder)
        trial = StoredTrial(self._folder / trial_folder(key), key)
        if not OUTCOMES[outcome.outcome].grade:
            return trial, (), f"{outcome.outcome.value}: {outcome.detail}"
        verdicts = trial.verdicts()
        if not verdicts:
            return trial, (), f"it was not graded: {'; '.join(outcome.flags)}"
        return trial, verdicts, ""


# ---- plans and controls ---------------------------------------------------------------------------------------------


def _plans(trials: Trials) -> Iterator[Check]:
    names = oracles(trials.task) if trials.task.plans else ()
    if not names:
        yield Check("Reference plans pass", "failed", "there is no plan under solution/")
    for agent, name in zip(names, sorted(trials.task.plans), strict=True):
        wrong: list[str] = []
        seen: list[dict[str, Result]] = []
        ungraded: list[str] = []
        for _ in range(2):
            trial, verdicts, why = trials.run(agent)
            if why:
                wrong.append(why)
                break
            seen.append({one.checkpoint: one.result for one in verdicts})
            again = grade(Evidence.from_trial(trials.task, trial))
            wrong += [
                f"{one.checkpoint} is {one.result} live and {other.result} from the disk"
                for one, other in zip(verdicts, again, strict=True)
                if not same(one, other)
            ]
            wrong += [f"{one.checkpoint} {one.result}: {one.reason}" for one in verdicts if one.result in _WRONG]
            ungraded = [one.checkpoint for one in verdicts if one.result == "ungraded"]
            if wrong:
                break
        if not wrong and seen[0] != seen[-1]:
            differ = sorted(id for id in seen[0] if seen[0][id] != seen[-1].get(id))
            wrong.append(f"two runs of the same plan were graded differently: {', '.join(differ)}")
        graded = len(trials.task.checkpoints) - len(ungraded)
        detail = f"{graded} checkpoints pass, twice and again from the disk"
        if ungraded:
            detail += f"; without a judge {', '.join(ungraded)} stay{'s' if len(ungraded) == 1 else ''} ungraded"
        yield checked(f"Reference plan '{name}' passes", wrong, detail)


def _controls(stage: Stage) -> Iterator[Check]:
    for agent, danger in CONTROLS.items():
        evidence, ended = stage.act(agent)
        fault = _first_failure(stage, evidence)
        detail = fault + (f" (it ended as {ended})" if ended else "")
        yield Check(f"{agent} fails", "passed", detail) if fault else Check(f"{agent} fails", "failed", danger)


def _first_failure(stage: Stage, evidence: Evidence) -> str:
    """The first required or critical checkpoint that fails, those first that are quick to grade; "" if none does."""
    binding = [one for one in stage.gradable if one.criticality != "optional"]
    for checkpoint in sorted(binding, key=lambda one: bool(one.order or one.must_not or one.followup)):
        (verdict,) = grade(evidence, [checkpoint])
        if verdict.result in ("fail", "partial"):
            return f"{verdict.checkpoint} {verdict.result}: {verdict.reason}"
    return ""


# ---- mutants and variants -------------------------------------------------------------------------------------------


def _mutants(stage: Stage, found: _Found) -> Check:
    ungraded: list[str] = []
    for name, plan in sorted(stage.task.plans.items()):
        steps = steps_of(plan)
        done, free = mutants.run(stage, name, steps)
        found.mutants += done
        ungraded += free
    if not found.mutants:
        return Check("Mutants are caught", "failed", "no mutant could be made: no order and no deliverable is graded")
    survivors = [one for one in found.mutants if not one.checkpoints]
    caught = len(found.mutants) - len(survivors)
    detail = f"{caught} of {len(found.mutants)} caught"
    if ungraded:
        detail += f"; no checkpoint asks for: {', '.join(dict.fromkeys(ungraded))}"
    wrong = [f"{caught} of {len(found.mutants)} caught; survived: {survivors[0].name}"] if survivors else []
    return checked("Mutants are caught", wrong + [one.name for one in survivors[1:]], detail)


def _variants(stage: Stage, found: _Found) -> Check:
    for name, plan in sorted(stage.task.plans.items()):
        found.variants += variants.run(stage, name, steps_of(plan))
    broken = [one for one in found.variants if one.checkpoints]
    wrong = [f"{one.name} fails {', '.join(one.checkpoints)} ({'; '.join(one.why)})" for one in broken]
    return checked("Harmless variants pass", wrong, f"{len(found.variants)} variants pass")
