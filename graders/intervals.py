"""Intervals over tasks that hold their level, and paired comparisons (design 10).

The runs of one task are not independent, so the tasks are what is sampled. The percentile bootstrap over tasks, which
is what one meets elsewhere, covers far less than it says at 12 to 100 tasks and has no width where all tasks agree
(docs/metrics.md has both measured). Used here instead is the interval of Korn and Graubard for proportions from
clusters (Korn EL, Graubard BI, Survey Methodology 1998;24:193-201; as the US National Center for Health Statistics
applies it, Vital Health Stat 2017;2(175)): the variance between tasks says how many independent observations the data
are worth, that number is reduced for the few degrees of freedom, and the exact interval of Clopper and Pearson is taken
for it. It needs no random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

LEVEL = 0.95
#: Standard deviation over tasks of the difference of two agents' pass rates at 3 runs each, as planning value where
#: none can be measured: it gives 21, 15 and 10 points at 24, 48 and 100 tasks (field/clinical.md, Researchers).
PLANNING_SD = 0.367


@dataclass(frozen=True)
class Interval:
    """A two-sided interval of `level` (0.95). Both ends lie in the range of what is estimated."""

    low: float
    high: float
    level: float = LEVEL


# ---- the beta and t distributions -----------------------------------------------------------------------------------


def beta_below(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), a and b > 0.

    By the continued fraction of DLMF 8.17.22 (Lentz's method), on the side where it converges fast.
    """
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    value = d
    for m in range(1, 400):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + term * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + term / c
            c = c if abs(c) > tiny else tiny
            value *= c * d
        if abs(c * d - 1) < 1e-13:
            break
    return value


def beta_quantile(p: float, a: float, b: float) -> float:
    """The x with I_x(a, b) = p, to about 1e-12."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if beta_below(middle, a, b) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: float) -> float:
    """The quantile of Student's t for p in (0.5, 1)."""
    # P(|T| > t) = I_x(df/2, 1/2) with x = df / (df + t^2)
    x = beta_quantile(2 * (1 - p), df / 2, 0.5)
    return math.sqrt(df * (1 - x) / x)


# ---- one rate -------------------------------------------------------------------------------------------------------


def rate_interval(
    parts: Sequence[float], wholes: Sequence[float], *, worth: float, level: float = LEVEL
) -> Interval | None:
    """The interval of sum(parts) / sum(wholes) over tasks; None without a task.

    `parts[i]` of `wholes[i]` is what task i contributes, 0 <= part <= whole; with wholes of 1 it is the plain mean over
    tasks. `worth`: the most independent observations that all tasks together can be (runs, for a rate over runs).
    With a single task nothing is known of the variance between tasks, and the interval is that of one observation.
    """
    used = [(part, whole) for part, whole in zip(parts, wholes, strict=True) if whole > 0]
    tasks, total = len(used), sum(whole for _, whole in used)
    if not tasks:
        return None
    rate = min(1.0, max(0.0, sum(part for part, _ in used) / total))
    size = _effective(used, rate, total, max(worth, float(tasks)), level)
    return _exact(round(rate, 12), round(size, 9), level)


def _effective(used: Sequence[tuple[float, float]], rate: float, total: float, worth: float, level: float) -> float:
    """How many independent observations the tasks are worth, reduced for the degrees of freedom."""
    tasks = len(used)
    if tasks == 1:
        return 1.0
    p = (1 + level) / 2
    spread = sum((part - rate * whole) ** 2 for part, whole in used) * tasks / (tasks - 1) / total**2
    # Tasks that all came out alike, at 0 or 1, say nothing of the variance: then each is worth one observation.
    size = rate * (1 - rate) / spread if spread > 1e-15 and 0 < rate < 1 else float(tasks)
    size = min(max(size, 1.0), worth)
    return max(1.0, size * (NormalDist().inv_cdf(p) / t_quantile(p, tasks - 1)) ** 2)


@lru_cache(maxsize=65536)
def _exact(rate: float, size: float, level: float) -> Interval:
    """Clopper and Pearson's interval for rate x size successes of `size`, which need not be whole numbers."""
    hits, misses, tail = rate * size, (1 - rate) * size, (1 - level) / 2
    low = 0.0 if hits < 1e-9 else beta_quantile(tail, hits, misses + 1)
    high = 1.0 if misses < 1e-9 else beta_quantile(1 - tail, hits + 1, misses)
    return Interval(min(low, rate), max(high, rate), level)


# ---- two agents over the same tasks ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """Two agents over the tasks that both were run on. `difference` = first - second, in [-1, 1].

    `p`: of the sign-flip test over tasks, two-sided, the chance of a difference as large were both alike. `detectable`:
    the smallest true difference that this set finds with 80% power, given how much the tasks differ here. `better`,
    `worse`: tasks on which the first agent has the higher, the lower rate.
    """

    tasks: int
    first: float
    second: float
    difference: float
    interval: Interval
    p: float
    detectable: float
    better: int
    worse: int


def compare(
    first: Sequence[float], second: Sequence[float], *, seed: int = 0, level: float = LEVEL
) -> Comparison | None:
    """Paired comparison of two agents' rates per task, in the same order of tasks; None without a task."""
    pairs = list(zip(first, second, strict=True))
    tasks = len(pairs)
    if not tasks:
        return None
    gaps = [one - other for one, other in pairs]
    mean = sum(gaps) / tasks
    return Comparison(
        tasks=tasks,
        first=sum(first) / tasks,
        second=sum(second) / tasks,
        difference=mean,
        interval=difference_interval(gaps, level=level),
        p=sign_flip_p(gaps, seed=seed),
        detectable=detectable_difference(tasks, sd=_deviation(gaps) if tasks > 1 else PLANNING_SD),
        better=sum(gap > 1e-12 for gap in gaps),
        worse=sum(gap < -1e-12 for gap in gaps),
    )


def difference_interval(gaps: Sequence[float], *, level: float = LEVEL) -> Interval:
    """The interval of a mean difference in [-1, 1] over tasks, by Student's t over the tasks and two more.

    The two added tasks differ by +1/2 and -1/2 twice over (one half observation at each end, one at 0), as Agresti and
    Min add to paired proportions (Stat Med 2005;24:729-40): without them the interval is too narrow, and has no width
    where the agents agree on every task.
    """
    tasks = len(gaps)
    size = tasks + 2.0
    mean = sum(gaps) / size
    squares = sum(gap * gap for gap in gaps) + 1.0
    variance = max(0.0, squares / size - mean * mean) * size / (size - 1)
    half = t_quantile((1 + level) / 2, max(1, tasks - 1)) * math.sqrt(variance / size)
    plain = sum(gaps) / tasks
    return Interval(max(-1.0, min(mean - half, plain)), min(1.0, max(mean + half, plain)), level)


def sign_flip_p(gaps: Sequence[float], *, seed: int = 0, draws: int = 20_000) -> float:
    """Two-sided p of the sign-flip test: under no difference each task's gap could as well have the other sign.

    Exact where the gaps are whole multiples of 1/60 or more (rates of a few runs are), else by seeded draws,
    (1 + as extreme) / (1 + draws).
    """
    import numpy as np

    moved = np.array([abs(gap) for gap in gaps if abs(gap) > 1e-12])
    if not len(moved):
        return 1.0
    observed = abs(sum(gaps)) - 1e-9
    if (steps := _whole_steps(moved.tolist())) is not None:
        reach = sum(steps)
        chance = np.zeros(2 * reach + 1)
        chance[reach] = 1.0
        for step in steps:  # the distribution of the sum, one task's sign after the other
            chance = (np.roll(chance, step) + np.roll(chance, -step)) / 2
        sums = np.abs(np.arange(-reach, reach + 1)) * (moved.sum() / reach)
        return float(min(1.0, chance[sums >= observed].sum()))
    random = np.random.default_rng(seed)
    signs = 1.0 - 2.0 * random.integers(0, 2, size=(draws, len(moved)), dtype=np.int8)
    return float((1 + (np.abs(signs @ moved) >= observed).sum()) / (1 + draws))


def _whole_steps(sizes: Sequence[float]) -> list[int] | None:
    """The sizes as whole multiples of one unit, the largest 1/d with d up to 60; None where there is none."""
    for parts in range(1, 61):
        steps = [round(size * parts) for size in sizes]
        if all(abs(step / parts - size) < 1e-9 for step, size in zip(steps, sizes, strict=True)):
            return steps
    return None


def _deviation(gaps: Sequence[float]) -> float:
    mean = sum(gaps) / len(gaps)
    return math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / (len(gaps) - 1))


def detectable_difference(tasks: int, *, sd: float = PLANNING_SD, power: float = 0.8, level: float = LEVEL) -> float:
    """The smallest difference of two rates, in [0, 1], that a paired design over so many tasks finds with this power.

    (z at (1 + level)/2 + z at power) x sd / sqrt(tasks), sd over tasks of the difference. Without tasks, or where the
    formula gives more, 1: nothing smaller than everything. A measured sd of 0 says only that the set is too small to
    show a difference; the planning value stands in.
    """
    if tasks < 1:
        return 1.0
    normal = NormalDist()
    width = normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(power)
    return min(1.0, width * (sd if sd > 1e-9 else PLANNING_SD) / math.sqrt(tasks))
