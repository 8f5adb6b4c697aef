"""How often intervals hold the truth, by simulation: the tables of docs/metrics.md.

`python -m benchmarks coverage`. Tasks are drawn from a population: a task's true pass rate from a beta distribution of
a given mean, its runs from a binomial. `likeness` is the correlation of two runs of one task: 0.2 (tasks hardly differ)
to 0.8 (nearly every task is always or never passed). The truth is the population's mean, for pass@3 and pass^3 of its
cube forms. Every draw is seeded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from graders.intervals import Interval, detectable_difference, difference_interval, sign_flip_p
from graders.metrics import Counts, Formula, estimate

SIZES = (12, 24, 48, 100)
RATES = tuple(round(0.05 * n, 2) for n in range(1, 20))
LIKENESS = (0.2, 0.5, 0.8)
RUNS = 3
DRAWS = 1000
Rng = Generator
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Figure:
    """A figure whose interval is tried: its formula, its k, and its true value in a beta population."""

    name: str
    formula: Formula
    k: int
    truth: Callable[[float, float], float]


def _cube(a: float, b: float) -> float:
    """E[p^3] of a beta distribution."""
    return a * (a + 1) * (a + 2) / ((a + b) * (a + b + 1) * (a + b + 2))


FIGURES = (
    Figure("pass@1", "c/n", 1, lambda a, b: a / (a + b)),
    Figure("pass@3 unbiased", "1 - C(n-c,k)/C(n,k)", 3, lambda a, b: 1 - _cube(b, a)),
    Figure("pass^3 unbiased", "C(c,k)/C(n,k)", 3, lambda a, b: _cube(a, b)),
)


@dataclass(frozen=True)
class Cell:
    """One setting: the share of intervals that held the truth, and how wide they were."""

    figure: str
    tasks: int
    rate: float
    likeness: float
    coverage: float
    width: float
    narrowest: float


def beta_of(rate: float, likeness: float) -> tuple[float, float]:
    """(a, b) of the beta distribution with this mean, in which two runs of one task correlate by `likeness`."""
    size = 1 / likeness - 1
    return rate * size, (1 - rate) * size


def passes(rng: Rng, tasks: int, rate: float, likeness: float, draws: int) -> Whole:
    """draws x tasks: how many of 3 runs passed."""
    a, b = beta_of(rate, likeness)
    return rng.binomial(RUNS, rng.beta(a, b, size=(draws, tasks)))


def measured(figure: Figure, tasks: int, rate: float, likeness: float, *, draws: int = DRAWS, seed: int = 0) -> Cell:
    """Coverage and width of one figure's interval in one setting."""
    rng = np.random.default_rng([seed, tasks, int(1000 * rate), int(10 * likeness), figure.k, len(figure.formula)])
    truth = figure.truth(*beta_of(rate, likeness))
    found: dict[tuple[int, ...], Interval] = {}
    hits, widths = 0, []
    for row in passes(rng, tasks, rate, likeness, draws):
        # The figure does not depend on the order of tasks: equal splits are computed once.
        split = tuple(int(n) for n in np.bincount(row, minlength=RUNS + 1))
        if split not in found:
            counts = [Counts(RUNS, c) for c, times in enumerate(split) for _ in range(times)]
            interval = estimate(figure.name, figure.formula, figure.k, counts).interval
            assert interval is not None
            found[split] = interval
        interval = found[split]
        hits += interval.low <= truth <= interval.high
        widths.append(interval.high - interval.low)
    return Cell(figure.name, tasks, rate, likeness, hits / draws, float(np.mean(widths)), min(widths))


def bootstrapped(tasks: int, rate: float, likeness: float, *, draws: int = 400, seed: int = 0) -> Cell:
    """The same of pass@1 by the percentile bootstrap over tasks, 1,000 resamples."""
    rng = np.random.default_rng([seed, tasks, int(1000 * rate), int(10 * likeness)])
    hits, widths = 0, []
    for row in passes(rng, tasks, rate, likeness, draws):
        means = row[rng.integers(0, tasks, size=(1000, tasks))].mean(axis=1) / RUNS
        low, high = np.quantile(means, [0.025, 0.975])
        hits += bool(low <= rate <= high)
        widths.append(float(high - low))
    return Cell("bootstrap", tasks, rate, likeness, hits / draws, float(np.mean(widths)), min(widths))


def paired(
    tasks: int, first: float, second: float, likeness: float, shared: float, *, draws: int = DRAWS, seed: int = 0
) -> tuple[float, float]:
    """(coverage of the difference's interval, share of sign-flip tests with p < 0.05) for two agents.

    `shared`: the share of tasks whose difficulty is one for both agents (the same quantile of their rates).
    """
    rng = np.random.default_rng([seed, tasks, int(1000 * first), int(1000 * second), int(10 * likeness)])
    rates = []
    common = rng.random((draws, tasks))
    same = rng.random((draws, tasks)) < shared
    for rate in (first, second):
        grid = np.sort(rng.beta(*beta_of(rate, likeness), size=20_000))
        own = rng.random((draws, tasks))
        rates.append(grid[(np.where(same, common, own) * len(grid)).astype(int)])
    gaps = (rng.binomial(RUNS, rates[0]) - rng.binomial(RUNS, rates[1])) / RUNS
    hits = significant = 0
    for row in gaps:
        values = [float(gap) for gap in row]
        interval = difference_interval(values)
        hits += interval.low <= first - second <= interval.high
        significant += sign_flip_p(values) < 0.05
    return hits / draws, significant / draws


def tables(sizes: Sequence[int] = SIZES, rates: Sequence[float] = RATES, draws: int = DRAWS) -> list[Cell]:
    """Every figure in every setting."""
    return [
        measured(figure, tasks, rate, likeness, draws=draws)
        for figure in FIGURES
        for tasks in sizes
        for rate in rates
        for likeness in LIKENESS
    ]


def main() -> None:
    """Print the tables of docs/metrics.md."""
    print(f"{RUNS} runs a task, {DRAWS} draws a cell, rates 5 to 95% in steps of 5, likeness {LIKENESS}\n")
    print(
        "| figure | tasks | coverage lowest | mean | highest | mean width | narrowest |\n|---|---|---|---|---|---|---|"
    )
    cells = tables()
    for figure in FIGURES:
        for tasks in SIZES:
            mine = [cell for cell in cells if (cell.figure, cell.tasks) == (figure.name, tasks)]
            low, high = min(cell.coverage for cell in mine), max(cell.coverage for cell in mine)
            mean = float(np.mean([cell.coverage for cell in mine]))
            width = float(np.mean([cell.width for cell in mine]))
            print(
                f"| {figure.name} | {tasks} | {100 * low:.1f}% | {100 * mean:.1f}% | {100 * high:.1f}% "
                f"| {width:.3f} | {min(cell.narrowest for cell in mine):.3f} |"
            )
    print("\npass@1 at likeness 0.5 by rate: coverage, mean width\n")
    shown = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95)
    print("| tasks | " + " | ".join(f"{rate:.0%}" for rate in shown) + " |\n|---|" + "---|" * len(shown))
    for tasks in SIZES:
        row = [measured(FIGURES[0], tasks, rate, 0.5) for rate in shown]
        print(f"| {tasks} | " + " | ".join(f"{100 * one.coverage:.1f}%, {one.width:.2f}" for one in row) + " |")
    print("\nThe percentile bootstrap in the same settings\n")
    print("| tasks | " + " | ".join(f"{rate:.0%}" for rate in shown) + " |\n|---|" + "---|" * len(shown))
    for tasks in SIZES:
        row = [bootstrapped(tasks, rate, 0.5) for rate in shown]
        print(f"| {tasks} | " + " | ".join(f"{100 * one.coverage:.1f}%, {one.width:.2f}" for one in row) + " |")
    print("\nTwo agents, likeness 0.5; four fifths of the tasks equally hard for both, as the planning value has it\n")
    print("| tasks | rates | coverage of the difference | p < 0.05 |\n|---|---|---|---|")
    for tasks in SIZES:
        gap = detectable_difference(tasks)
        for first, second in ((0.05, 0.05), (0.3, 0.3), (0.5, 0.5), (0.5 + gap / 2, 0.5 - gap / 2)):
            held, found = paired(tasks, first, second, 0.5, 0.8)
            print(f"| {tasks} | {first:.2f}, {second:.2f} | {100 * held:.1f}% | {100 * found:.1f}% |")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
