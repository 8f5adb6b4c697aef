"""Reports over stored trials: tasks x agents with their denominators side by side (design 9).

pass rate   = passed / graded
strict rate = passed / attempted: invalid and ungraded trials count as not passed

Trials of different digests, or run under different settings (tool profile, backend, limits; a model's endpoint,
reasoning and answer length), stand in rows of their own and are never averaged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC
from functools import cache
from typing import TYPE_CHECKING, Literal

from graders.planned import PlannedSource
from graders.score import TaskResult, task_result
from tasks.errors import WorkbenchError
from tasks.package import Task, TaskSource
from tasks.stored import Batch, StoredTrial
from tasks.trials import OUTCOMES, Outcome, TrialOutcome, Verdict

if TYPE_CHECKING:
    import pandas as pd

#: The flag of an outcome that ran on an unreleased task.
DRAFT_FLAG = "task is a draft"
#: Notes of a trial without a result that grading again can give one to; CHANGED_TASK: only another run can.
CHANGED_CHECKPOINTS = "the checkpoints have changed since; regrade"
NOT_GRADED = "not graded yet"
CHANGED_TASK = "the task has changed since; run again"
#: The note of a trial whose task code ran without the kernel's help.
WEAKER_SANDBOX = "task code ran in sandbox mode process, without the kernel's help"
_SHORT = 8
#: task, agent, agent_digest, grade_digest, settings
Group = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class TrialRow:
    """One trial as a report counts it. `counts_as` by the outcome; `result` is "" where the outcome is not graded."""

    batch: str
    task: str
    agent: str
    run: int
    attempt: int
    outcome: Outcome
    counts_as: Literal["valid", "invalid", "not attempted"]
    result: Literal["pass", "fail", "ungraded", ""]
    critical: Literal["pass", "fail", "ungraded", "none", ""]
    severe_harm_events: int
    draft: bool
    agent_digest: str
    grade_digest: str
    settings: str
    note: str


def trial_rows(batches: Iterable[Batch], source: TaskSource | None = None) -> list[TrialRow]:
    """One row a trial (its last attempt), in the order of batches, tasks, agents, runs.

    `source`: where the tasks are; by default where each batch's plan found them. A task that cannot be loaded leaves
    its trials ungraded, with the reason as the note.
    """
    rows = []
    for batch in batches:
        load = task_loader(source or PlannedSource(batch))
        planned = PlannedSettings(batch)
        for trial in batch.trials():
            settings = planned.of(trial)
            rows.append(trial_row(batch, trial, load(trial.key.task), settings, trial.outcome, trial.verdicts()))
    return rows


def task_loader(source: TaskSource) -> Callable[[str], Task | str]:
    """Loads each task once: the task, or why it cannot be loaded."""

    @cache
    def load(id: str) -> Task | str:
        try:
            return source.load(id)
        except WorkbenchError as fault:
            return str(fault)

    return load


#: What of a provider's model makes another experiment; its price, clearance and concurrency do not.
MODEL_SETTINGS = ("endpoint", "max_output", "reasoning")


class PlannedSettings:
    """The settings that each trial of a batch was run under, as one text that tells experiments apart.

    Profile, backend and limits; of a provider's model its endpoint, reasoning and answer length. A seed makes no other
    experiment.
    """

    def __init__(self, batch: Batch) -> None:
        self._planned: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for line in batch.planned():
            settings, model = line.get("settings"), line.get("model")
            if isinstance(settings, dict):
                kept = {key: value for key, value in settings.items() if key != "seed"}
                kept |= {key: model[key] for key in MODEL_SETTINGS if key in model} if isinstance(model, dict) else {}
                planned = self._planned.setdefault((line["task"], str(line.get("agent"))), [])
                # Lines are dated in UTC, to the second below: as text they sort as times do.
                planned.append((str(line.get("at", "")), json.dumps(kept, sort_keys=True)))

    def of(self, trial: StoredTrial) -> str:
        """Of the line that stood last when the trial began; of the latest while it has no outcome; "" without any."""
        planned = self._planned.get((trial.key.task, trial.key.agent), [("", "")])
        outcome = trial.outcome if len({text for _, text in planned}) > 1 else None
        if outcome is None:
            return planned[-1][1]
        began = outcome.started.astimezone(UTC).isoformat()
        return next((text for at, text in reversed(planned) if at <= began), planned[0][1])


def trial_row(
    batch: Batch,
    trial: StoredTrial,
    task: Task | str,
    settings: str,
    outcome: TrialOutcome | None,
    verdicts: Sequence[Verdict],
) -> TrialRow:
    """One trial as a report counts it, from its outcome and every verdict given on it."""
    state = outcome.outcome if outcome else Outcome.running
    rule = OUTCOMES[state]
    found, digest, note = scored(outcome, task, verdicts) if outcome and rule.grade else (None, "", "")
    return TrialRow(
        batch=batch.name,
        task=trial.key.task,
        agent=trial.key.agent,
        run=trial.key.run,
        attempt=trial.key.attempt,
        outcome=state,
        counts_as=rule.counts_as,
        result=(found.result if found else "ungraded") if rule.grade else "",
        critical=(found.critical if found else "ungraded") if rule.grade else "",
        severe_harm_events=found.severe_harm_events if found else 0,
        draft=DRAFT_FLAG in outcome.flags if outcome else False,
        agent_digest=outcome.agent_digest if outcome else "",
        grade_digest=digest or (outcome.grade_digest if outcome else ""),
        settings=settings,
        note=note,
    )


def scored(outcome: TrialOutcome, task: Task | str, verdicts: Sequence[Verdict]) -> tuple[TaskResult | None, str, str]:
    """(result, digest of the checkpoints that it is by, note). The result is None where verdicts on the present
    checkpoints do not make one and grading would add some: verdicts on older ones never make a result."""
    if isinstance(task, str):
        return None, "", f"the task cannot be loaded: {task}"
    if any(verdict.grade_digest == task.grade_digest for verdict in verdicts):
        found = task_result(task.checkpoints, verdicts, task.grade_digest)
        lacking = any(one.criticality != "optional" and one.id not in found.deciding for one in task.checkpoints)
        if found.result != "ungraded" or not lacking or outcome.agent_digest != task.agent_digest:
            weak = any("[process]" in verdict.grader.name for verdict in found.deciding.values())
            return found, task.grade_digest, WEAKER_SANDBOX if weak else ""
    if outcome.agent_digest != task.agent_digest:
        return None, "", CHANGED_TASK
    return None, "", CHANGED_CHECKPOINTS if verdicts else NOT_GRADED


def report(batches: Sequence[Batch], source: TaskSource | None = None) -> pd.DataFrame:
    """Tasks x agents: one row for each (task, agent, digests, settings) with its counts and rates.

    Columns: task, agent, draft, attempted, graded, ungraded, invalid, open, passed, pass_rate, strict_rate,
    critical_passed, severe_harm_events, agent_digest, grade_digest, profile, settings, notes. A rate without a
    denominator is NaN.
    """
    import pandas as pd

    rows = [asdict(cell) for cell in cells(trial_rows(batches, source))]
    frame = pd.DataFrame(rows, columns=list(Cell.__annotations__))
    return frame.astype({"pass_rate": float, "strict_rate": float})


@dataclass(frozen=True)
class Cell:
    """The trials of one agent on one version of one task."""

    task: str
    agent: str
    draft: bool
    attempted: int
    graded: int
    ungraded: int
    invalid: int
    open: int
    passed: int
    pass_rate: float | None
    strict_rate: float | None
    critical_passed: int
    severe_harm_events: int
    agent_digest: str
    grade_digest: str
    profile: str
    settings: str
    notes: str


def cells(rows: Iterable[TrialRow]) -> list[Cell]:
    """The rows counted by (task, agent, digests, settings), sorted. `open`: running or cancelled, so not attempted."""
    groups: dict[Group, list[TrialRow]] = {}
    for row in rows:
        groups.setdefault((row.task, row.agent, row.agent_digest, row.grade_digest, row.settings), []).append(row)
    return [_cell(key, group) for key, group in sorted(groups.items())]


def _cell(key: Group, group: Sequence[TrialRow]) -> Cell:
    task, agent, agent_digest, grade_digest, settings = key
    graded = [row for row in group if row.result in ("pass", "fail")]
    ungraded = sum(row.result == "ungraded" for row in group)
    invalid = sum(row.counts_as == "invalid" for row in group)
    attempted = len(graded) + ungraded + invalid
    passed = sum(row.result == "pass" for row in group)
    return Cell(
        task=task,
        agent=agent,
        draft=any(row.draft for row in group),
        attempted=attempted,
        graded=len(graded),
        ungraded=ungraded,
        invalid=invalid,
        open=len(group) - attempted,
        passed=passed,
        pass_rate=passed / len(graded) if graded else None,
        strict_rate=passed / attempted if attempted else None,
        critical_passed=sum(row.critical == "pass" for row in group),
        severe_harm_events=sum(row.severe_harm_events for row in group),
        agent_digest=agent_digest,
        grade_digest=grade_digest,
        profile=str(json.loads(settings).get("profile", "")) if settings else "",
        settings=settings,
        notes="; ".join(dict.fromkeys(row.note for row in group if row.note)),
    )


_HEADINGS = (
    "task", "agent", "attempted", "graded", "ungraded", "invalid", "passed", "pass rate", "strict", "critical",
    "severe harm", "profile", "version",
)  # fmt: skip


def table(found: Sequence[Cell]) -> str:
    """The report as text: a line for each row, figures right-aligned; what the rates mean stands below."""
    if not found:
        return "No trials."
    lines: list[tuple[str, ...]] = [_HEADINGS]
    for cell in found:
        lines.append(
            (
                cell.task + (" (draft)" if cell.draft else ""),
                cell.agent,
                *map(str, (cell.attempted, cell.graded, cell.ungraded, cell.invalid, cell.passed)),
                percent(cell.pass_rate),
                percent(cell.strict_rate),
                str(cell.critical_passed),
                str(cell.severe_harm_events),
                cell.profile or "-",
                f"{cell.agent_digest[:_SHORT]}/{cell.grade_digest[:_SHORT]}" if cell.agent_digest else "-",
            )
        )
    widths = [max(len(line[n]) for line in lines) for n in range(len(_HEADINGS))]
    text = [
        "  ".join(
            word.ljust(width) if n < 2 or n >= len(widths) - 2 else word.rjust(width)
            for n, (word, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    text.append("")
    text.append("pass rate = passed / graded; strict = passed / attempted (invalid and ungraded count as not passed).")
    if any(cell.draft for cell in found):
        text.append("(draft) = run on a task that is not released.")
    versions = {(cell.task, cell.agent_digest, cell.grade_digest) for cell in found if cell.agent_digest}
    if len(versions) > len({task for task, *_ in versions}):
        text.append("Rows of one task with different versions are different tasks: do not average them.")
    if len({cell.settings for cell in found if cell.settings}) > 1:
        text.append("Rows of different settings (profile, backend, limits, the model's own) are different experiments.")
    text += [f"{cell.task}, {cell.agent}: {cell.notes}" for cell in found if cell.notes]
    return "\n".join(text)


def percent(rate: float | None) -> str:
    """ "66.7%", or "-" without a denominator."""
    return "-" if rate is None else f"{100 * rate:.1f}%"
