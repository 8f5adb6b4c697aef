"""The publish gate: what must hold of a package's bytes before a physician decides on them or a release is made.

Each check says what it looked at and what is wrong. A run is over a whole package, without a model, in seconds; its
result is an event (`gate_ran`) bound to the package's hash.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from graders.score import task_result
from runtime.agents import oracles
from runtime.trial import run_trial
from tasks.checking import faults
from tasks.errors import WorkbenchError
from tasks.package import Task, load
from tasks.review.events import package_hash
from tasks.stored import StoredTrial, trial_folder
from tasks.trials import OUTCOMES, TrialKey, Verdict

VERSION = "1"
#: Agents that must fail every task, and why it would be wrong if they passed.
CONTROLS = {
    "noop": "an agent that does nothing passes",
    "shotgun": "an agent that orders everything in sight passes",
    "parrot": "an agent that copies the chart into the note passes",
}


@dataclass(frozen=True)
class Check:
    """One check. `state` "skipped" says in `detail` what it would need."""

    name: str
    state: Literal["passed", "failed", "skipped"]
    detail: str = ""


@dataclass(frozen=True)
class GateResult:
    """All checks over one package."""

    task: str
    package: str
    checks: tuple[Check, ...]
    version: str = VERSION

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def failures(self) -> tuple[str, ...]:
        """Each failed check in one line."""
        return tuple(f"{check.name}: {check.detail}" for check in self.checks if check.state == "failed")


def run_gate(
    files: Mapping[str, bytes], *, task: str, progress: Callable[[Check], None] = lambda check: None
) -> GateResult:
    """Run every check over a package; `progress` hears each as it ends. What is wrong with the task never raises."""
    checks = []
    for check in _checks(dict(files), task):
        progress(check)
        checks.append(check)
    return GateResult(task, package_hash(files), tuple(checks))


def _checks(files: dict[str, bytes], task_id: str) -> Iterator[Check]:
    found = faults(files, where=task_id)
    yield Check(
        "Package is valid R4 and consistent",
        "failed" if found else "passed",
        "; ".join(str(fault) for fault in found[:5]) + (f"; and {len(found) - 5} more" if len(found) > 5 else ""),
    )
    if found:
        return
    try:
        task = load(files, where=task_id)
    except WorkbenchError as fault:
        yield Check("Package loads", "failed", str(fault))
        return
    if not task.checkpoints or task.meta.context is None:
        yield Check("Reference plans pass", "skipped", "a draft has no checkpoints or no clock yet")
        return
    with tempfile.TemporaryDirectory(prefix="workbench-gate-") as folder:
        trials = Trials(task, Path(folder))
        yield from _plans(trials)
        yield from _controls(trials)


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
        return trial, trial.verdicts(), ""


def _plans(trials: Trials) -> Iterator[Check]:
    names = oracles(trials.task)
    if not names:
        yield Check("Reference plans pass", "failed", "there is no plan under solution/")
    for agent in names:
        wrong: list[str] = []
        seen: list[dict[str, str]] = []
        for _ in range(2):
            _, verdicts, why = trials.run(agent)
            if why:
                wrong.append(why)
                break
            seen.append({verdict.checkpoint: verdict.result for verdict in verdicts})
            wrong += [
                f"{verdict.checkpoint} {verdict.result}: {verdict.reason}"
                for verdict in verdicts
                if verdict.result in ("fail", "partial", "error")
            ]
            if wrong:
                break
        if len(seen) == 2 and seen[0] != seen[1]:
            wrong.append("two runs of the same plan were graded differently")
        name = agent.partition(":")[2] or "plan"
        yield Check(f"Reference plan '{name}' passes", "failed" if wrong else "passed", "; ".join(wrong))


def _controls(trials: Trials) -> Iterator[Check]:
    for agent, danger in CONTROLS.items():
        _, verdicts, why = trials.run(agent)
        if why:
            yield Check(f"{agent} fails", "failed", why)
            continue
        result = task_result(trials.task.checkpoints, verdicts)
        yield Check(
            f"{agent} fails",
            "passed" if result.result == "fail" else "failed",
            result.reason if result.result == "fail" else danger,
        )
