"""What a trial's verdicts say now: a result by the present checkpoints, or that it waits for one. No page in here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from graders.report import CHANGED_TASK, scored
from graders.score import TaskResult, deciding_verdicts
from tasks.package import Task
from tasks.trials import OUTCOMES, TrialOutcome, Verdict


@dataclass(frozen=True)
class Standing:
    """`result`: by the present checkpoints, None where no verdict is by them. `verdicts`: what each checkpoint shows;
    `earlier`: they are of the version that was graded last, and decide nothing now. `due`: what gives it a result.
    `regrades`: whether grading again would give a verdict that is not there.
    """

    result: TaskResult | None = None
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    earlier: bool = False
    due: Literal["", "regrade", "run again"] = ""
    regrades: bool = False


def standing(outcome: TrialOutcome | None, task: Task, given: Sequence[Verdict]) -> Standing:
    """By the rule of the reports, so that Trial, Trials and Results say the same of one trial."""
    if outcome is None or not OUTCOMES[outcome.outcome].grade:
        return Standing(verdicts=deciding_verdicts(task.checkpoints, given, task.grade_digest))
    same_task = outcome.agent_digest == task.agent_digest
    result, _, note = scored(outcome, task, given)
    if result is not None:
        lacking = any(one.id not in result.deciding for one in task.checkpoints)
        return Standing(result, result.deciding, regrades=lacking and same_task)
    due: Literal["regrade", "run again"] = "run again" if note == CHANGED_TASK else "regrade"
    now = deciding_verdicts(task.checkpoints, given, task.grade_digest)
    last = deciding_verdicts(task.checkpoints, given, given[-1].grade_digest) if given and not now else now
    return Standing(None, last, earlier=bool(given) and not now, due=due, regrades=due == "regrade")
