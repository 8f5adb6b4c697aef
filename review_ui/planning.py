"""What a run would do before it does: which trials are there already, which would run, and what that may cost; and
how far one is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from graders.facts import TrialFact
from graders.report import TrialRow
from review_ui.results.narrow import to_regrade, to_run_again
from runtime.agents import is_built_in, oracles
from runtime.batch import Need, decide, planned_runs
from tasks.package import Task
from tasks.stored import Batch, StoredTrial
from tasks.trials import OUTCOMES

_RUNS = (Need.run, Need.rerun, Need.resume)
Attempts = Mapping[tuple[str, str, int], Sequence[StoredTrial]]


@dataclass(frozen=True)
class Work:
    """Trials by what they need, and of those that would run how many each agent has.

    `to_judge`: of those that would run or be graded again, how many a model would judge, by agent. `broken`: trials
    that ended in an error of the configuration or of ours, and would be left so.
    """

    reuse: int
    regrade: int
    run: int
    busy: int
    to_run: Mapping[str, int]
    to_judge: Mapping[str, int] = field(default_factory=dict)
    broken: int = 0

    @property
    def total(self) -> int:
        """All planned trials."""
        return self.reuse + self.regrade + self.run + self.busy


@dataclass(frozen=True)
class Range:
    """The middle half of what earlier trials came to, times the trials to run."""

    low: float
    high: float


def agents_of(names: Iterable[str], task: Task) -> list[str]:
    """The agents as they are run on a task: oracle stands for each of its reference plans."""
    found: list[str] = []
    for name in names:
        found += oracles(task) if name == "oracle" else [name]
    return list(dict.fromkeys(found))


def attempts_of(batch: Batch) -> Attempts:
    """The attempts of a batch by task, agent and run."""
    found: dict[tuple[str, str, int], list[StoredTrial]] = {}
    for trial in batch.attempts():
        found.setdefault((trial.key.task, trial.key.agent, trial.key.run), []).append(trial)
    return found


def work(
    tasks: Sequence[Task],
    names: Sequence[str],
    runs: int,
    there: Attempts,
    *,
    judge: bool = False,
    retry_broken: bool = False,
) -> Work:
    """What tasks x agents x runs need, given the attempts that are there. Reads the verdicts of each of these."""
    needs: Counter[Need] = Counter()
    to_run: Counter[str] = Counter()
    to_judge: Counter[str] = Counter()
    broken = 0
    for task in tasks:
        judged = any(one.grader == "judge" or (one.extract and one.extract.field) for one in task.checkpoints)
        for agent in agents_of(names, task):
            for run in range(1, runs + 1):
                given = there.get((task.id, agent, run), ())
                need = decide(given, task, judge=judge, retry_broken=retry_broken).need if given else Need.run
                needs[need] += 1
                if need in _RUNS:
                    to_run[agent] += 1
                if judge and judged and need in (*_RUNS, Need.regrade):
                    to_judge[agent] += 1
                broken += need is Need.reuse and not OUTCOMES[given[-1].state].grade
    running = sum(needs[need] for need in _RUNS)
    return Work(needs[Need.reuse], needs[Need.regrade], running, needs[Need.busy], dict(to_run), dict(to_judge), broken)


def _middle(values: Sequence[float]) -> Range:
    ordered = sorted(values)
    last = len(ordered) - 1
    return Range(ordered[round(0.25 * last)], ordered[round(0.75 * last)])


def cost(planned: Work, earlier: Iterable[TrialFact]) -> Range | None:
    """USD for the agents; None where an agent that costs has no earlier trial of known cost.

    By trials that came to an end of their own: what broke off or never began cost less, or nothing.
    """
    paid = {agent: count for agent, count in planned.to_run.items() if not is_built_in(agent)}
    return _expected(paid, [(one.row.agent, one.cost) for one in earlier if one.row.counts_as == "valid"])


def judge_cost(planned: Work, earlier: Iterable[TrialFact]) -> Range | None:
    """USD for the judge, from what judging the same agents' trials cost; None where no trial of theirs was judged."""
    judged = [one for one in earlier if any(checkpoint.judge for checkpoint in one.checkpoints)]
    # Where some cost something, those that cost nothing were answered from the cache.
    asked = [one for one in judged if one.judge_cost != 0] or judged
    return _expected(planned.to_judge, [(one.row.agent, one.judge_cost) for one in asked])


def seconds(planned: Work, earlier: Iterable[TrialFact], slots: int) -> float | None:
    """Wall seconds with so many trials at a time; None where an agent has no earlier trial."""
    known = [(one.row.agent, one.seconds) for one in earlier if one.row.counts_as == "valid"]
    told = _expected(planned.to_run, known)
    return None if told is None else (told.low + told.high) / 2 / max(1, min(slots, planned.run))


def _expected(planned: Mapping[str, int], known: Sequence[tuple[str, float | None]]) -> Range | None:
    low = high = 0.0
    for agent, count in planned.items():
        values = [value for name, value in known if name == agent and value is not None]
        if not values:
            return None
        each = _middle(values)
        low, high = low + count * each.low, high + count * each.high
    return Range(low, high)


def money_words(told: Range | None, unpriced: Sequence[str] = ()) -> str:
    """ "$38 to $55". `unpriced`: models whose cost is never known, because the settings have no price of them."""
    if told is None and unpriced:
        return f"unknown: no price is set for {', '.join(unpriced)}"
    if told is None:
        return "unknown before its first run"
    if told.high == 0:
        return "nothing"
    low, high = f"${told.low:,.2f}", f"${told.high:,.2f}"
    return low if low == high else f"{low} to {high}"


def time_words(told: float | None) -> str:
    """ "about 50 min"."""
    if told is None:
        return "unknown before its first run"
    if told < 50:
        return "under a minute"
    minutes = told / 60
    return f"about {minutes:.0f} min" if minutes < 90 else f"about {minutes / 60:.1f} h"


def counted_as(row: TrialRow) -> str:
    """The part of the bar that a trial stands in; "" for one that is not done."""
    if row.counts_as == "invalid":
        return "invalid"
    return "regrade" if to_regrade(row) or to_run_again(row) else row.result


def total_of(batch: Batch, rows: Sequence[TrialRow], hidden: Iterable[str], told: int) -> int:
    """How many trials the batch has in all: as planned over all its starts, not only `told` by the latest one."""
    left_out = set(hidden)
    planned_in_all = sum(count for (task, _), count in planned_runs(batch).items() if task not in left_out)
    return max(len(rows), planned_in_all or told)
