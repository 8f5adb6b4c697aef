"""Rates over tasks, each named by its formula (design 10).

A task of n graded runs, c of them passed, contributes

    pass@1              c/n
    pass@k unbiased     1 - C(n-c,k)/C(n,k)       the chance that a draw of k runs holds a pass
    pass@k plug-in      1 - (1 - c/n)^k           what the paper prints as pass@3
    pass^k unbiased     C(c,k)/C(n,k)             the chance that a draw of k runs passed whole; the paper's pass^3
    pass^k plug-in      (c/n)^k

and the figure is the mean over tasks. A task with n < k contributes nothing to a figure of k and is counted in
`left_out`. Intervals are over tasks (graders/intervals.py). Errors, ungraded and invalid runs are in no n; the
strict figures count them as runs that did not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb, sqrt
from typing import Literal

from graders.intervals import Interval, rate_interval

Formula = Literal[
    "c/n", "1 - C(n-c,k)/C(n,k)", "1 - (1 - c/n)^k", "C(c,k)/C(n,k)", "(c/n)^k"
]  # fmt: skip

#: Ranking a group of fewer tasks would rank chance (field/clinical.md).
FEWEST_RANKED = 20


@dataclass(frozen=True)
class Counts:
    """One agent on one task: `n` graded runs, `c` of them passed. ValueError unless 0 <= c <= n."""

    n: int
    c: int

    def __post_init__(self) -> None:
        if not 0 <= self.c <= self.n:
            raise ValueError(f"{self.c} of {self.n} runs cannot have passed")


@dataclass(frozen=True)
class Estimate:
    """One figure. `value` in [0, 1], None where no task has the runs for it; `interval` over `tasks` tasks.

    `left_out`: tasks with runs, but fewer than k. `unequal`: whether tasks have different numbers of runs, so that some
    are known better than others; each task weighs the same.
    """

    name: str
    formula: Formula
    k: int
    value: float | None
    interval: Interval | None
    tasks: int
    left_out: int
    unequal: bool


def unbiased_pass_at(n: int, c: int, k: int) -> float | None:
    """1 - C(n-c,k)/C(n,k); None where n < k."""
    return None if n < k else 1 - comb(n - c, k) / comb(n, k)


def plugin_pass_at(n: int, c: int, k: int) -> float | None:
    """1 - (1 - c/n)^k; None where n < k."""
    return None if n < k else 1 - (1 - c / n) ** k


def unbiased_pass_hat(n: int, c: int, k: int) -> float | None:
    """C(c,k)/C(n,k); None where n < k."""
    return None if n < k else comb(c, k) / comb(n, k)


def plugin_pass_hat(n: int, c: int, k: int) -> float | None:
    """(c/n)^k; None where n < k."""
    return None if n < k else (c / n) ** k


_BY_FORMULA: dict[Formula, Callable[[int, int, int], float | None]] = {
    "c/n": lambda n, c, k: plugin_pass_hat(n, c, 1) if n else None,
    "1 - C(n-c,k)/C(n,k)": unbiased_pass_at,
    "1 - (1 - c/n)^k": plugin_pass_at,
    "C(c,k)/C(n,k)": unbiased_pass_hat,
    "(c/n)^k": plugin_pass_hat,
}


def estimate(name: str, formula: Formula, k: int, counts: Iterable[Counts]) -> Estimate:
    """The mean of the formula over tasks, with its interval. ValueError for k < 1."""
    if k < 1:
        raise ValueError(f"k is at least 1, not {k}")
    run = [one for one in counts if one.n]
    values = [(value, one.n) for one in run if (value := _BY_FORMULA[formula](one.n, one.c, k)) is not None]
    shares = [value for value, _ in values]
    # A draw of k runs is one observation of a figure of k, and n runs hold n/k draws that share no run.
    worth = sum(n / k for _, n in values)
    return Estimate(
        name=name,
        formula=formula,
        k=k,
        value=sum(shares) / len(shares) if shares else None,
        interval=rate_interval(shares, [1.0] * len(shares), worth=worth),
        tasks=len(shares),
        left_out=len(run) - len(shares),
        unequal=len({n for _, n in values}) > 1,
    )


def pass_at_1(counts: Iterable[Counts]) -> Estimate:
    """The mean of c/n over tasks."""
    return estimate("pass@1", "c/n", 1, counts)


def all_conventions(counts: Sequence[Counts], k: int) -> tuple[Estimate, ...]:
    """pass@1, then pass@k and pass^k by both formulas each."""
    return (
        pass_at_1(counts),
        estimate(f"pass@{k} unbiased", "1 - C(n-c,k)/C(n,k)", k, counts),
        estimate(f"pass@{k} plug-in", "1 - (1 - c/n)^k", k, counts),
        estimate(f"pass^{k} unbiased", "C(c,k)/C(n,k)", k, counts),
        estimate(f"pass^{k} plug-in", "(c/n)^k", k, counts),
    )


@dataclass(frozen=True)
class Spread:
    """The pass rate of each run number over the tasks that have it. `sd`: their sample standard deviation, None of one.

    `tasks`: how many tasks each run number has; where these differ the rates are of different sets of tasks.
    """

    rates: tuple[float, ...]
    tasks: tuple[int, ...]
    sd: float | None


def spread_over_runs(passed: Mapping[tuple[str, int], bool]) -> Spread:
    """The spread over runs from (task, run) -> whether it passed, over the graded runs."""
    by_run: dict[int, list[bool]] = {}
    for (_, run), good in passed.items():
        by_run.setdefault(run, []).append(good)
    rates = tuple(sum(goods) / len(goods) for _, goods in sorted(by_run.items()))
    mean = sum(rates) / len(rates) if rates else 0.0
    sd = sqrt(sum((rate - mean) ** 2 for rate in rates) / (len(rates) - 1)) if len(rates) > 1 else None
    return Spread(rates, tuple(len(goods) for _, goods in sorted(by_run.items())), sd)


def share(name: str, parts: Sequence[int], wholes: Sequence[int]) -> tuple[float | None, Interval | None]:
    """sum(parts)/sum(wholes) with its interval over tasks: of all failed checkpoints, those of one capability."""
    total = sum(wholes)
    if not total:
        return None, None
    return sum(parts) / total, rate_interval(list(map(float, parts)), list(map(float, wholes)), worth=float(total))


def events_per_task(events: Sequence[Sequence[int]], most: Sequence[int]) -> tuple[float | None, Interval | None]:
    """Mean number of events (severe harms) a run, over tasks, with its interval.

    `events[i]`: the events of each graded run of task i; `most[i]`: how many it could be at most. Tasks on which none
    can happen count as 0.
    """
    used = [(runs, top) for runs, top in zip(events, most, strict=True) if runs]
    if not used:
        return None, None
    highest = max((top for _, top in used), default=0)
    means = [sum(runs) / len(runs) for runs, _ in used]
    value = sum(means) / len(means)
    if not highest:
        return value, Interval(0.0, 0.0)
    scaled = rate_interval(
        [mean / highest for mean in means], [1.0] * len(means), worth=float(sum(len(r) for r, _ in used))
    )
    return value, None if scaled is None else Interval(scaled.low * highest, scaled.high * highest)


def ranks(values: Mapping[str, float | None], tasks: int) -> dict[str, int | None]:
    """Agent -> rank (1 = highest, equals share), None for all under FEWEST_RANKED tasks and where there is no value."""
    if tasks < FEWEST_RANKED:
        return dict.fromkeys(values)
    known = [value for value in values.values() if value is not None]
    return {
        agent: None if value is None else 1 + sum(other > value + 1e-12 for other in known)
        for agent, value in values.items()
    }
