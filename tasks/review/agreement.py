"""How far two or more reviewers agree: raw, Cohen's kappa, Krippendorff's alpha, each with n and an interval.

Cohen J. A coefficient of agreement for nominal scales. Educ Psychol Meas 1960;20:37-46.
Krippendorff K. Content Analysis, 4th ed., 2018, ch. 12: alpha for nominal data, any number of raters, gaps allowed.
Intervals: percentile bootstrap over items, 2,000 draws, seeded; under 30 items they are a warning, not a measurement.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

#: One item: who said what. Items with fewer than two answers say nothing about agreement.
Item = Mapping[str, str]
FEW = 30
_DRAWS, _SEED = 2000, 20260101


@dataclass(frozen=True)
class Agreement:
    """`value` is None where it is not defined (no items, or nobody ever varied: chance agreement is 1)."""

    measure: str
    n: int
    value: float | None
    low: float | None
    high: float | None

    @property
    def few(self) -> bool:
        """Whether there are too few items to lean on."""
        return self.n < FEW


def raw(items: Sequence[Item]) -> float | None:
    """The share of rater pairs that say the same, over all items."""
    agreed = pairs = 0
    for item in items:
        counts = Counter(item.values())
        n = sum(counts.values())
        pairs += n * (n - 1)
        agreed += sum(c * (c - 1) for c in counts.values())
    return agreed / pairs if pairs else None


def cohen(items: Sequence[Item]) -> float | None:
    """Cohen's kappa of two raters; each item's answers are taken in the order of the raters' names.

    Raises ValueError where more than two raters took part: Krippendorff's alpha is for that.
    """
    raters = sorted({name for item in items for name in item})
    if len(raters) > 2:
        raise ValueError("kappa is for two raters; use alpha")
    both = [(item[raters[0]], item[raters[1]]) for item in items if len(item) == 2]
    if not both:
        return None
    n = len(both)
    observed = sum(one == other for one, other in both) / n
    first, second = Counter(one for one, _ in both), Counter(other for _, other in both)
    expected = sum(first[label] * second[label] for label in first) / n**2
    return None if expected == 1 else (observed - expected) / (1 - expected)


def alpha(items: Sequence[Item]) -> float | None:
    """Krippendorff's alpha for nominal data."""
    rated = [Counter(item.values()) for item in items if len(item) >= 2]
    total = sum(sum(counts.values()) for counts in rated)
    if not total:
        return None
    disagreed = 0.0
    for counts in rated:
        m = sum(counts.values())
        disagreed += (m * m - sum(c * c for c in counts.values())) / (m - 1)
    margins = Counter[str]()
    for counts in rated:
        margins.update(counts)
    expected = (total * total - sum(c * c for c in margins.values())) / (total - 1)
    return None if expected == 0 else 1 - disagreed / expected


MEASURES: dict[str, Callable[[Sequence[Item]], float | None]] = {"raw": raw, "kappa": cohen, "alpha": alpha}


def agreement(measure: str, items: Sequence[Item]) -> Agreement:
    """A measure over items, with its 95% interval. `measure`: raw, kappa or alpha."""
    function = MEASURES[measure]
    usable = [item for item in items if len(item) >= 2]
    value = function(usable)
    if value is None:
        return Agreement(measure, len(usable), None, None, None)
    draw = random.Random(_SEED)  # noqa: S311 (a bootstrap, not a secret)
    drawn = sorted(
        result for _ in range(_DRAWS) if (result := function(draw.choices(usable, k=len(usable)))) is not None
    )
    low, high = drawn[int(0.025 * len(drawn))], drawn[min(len(drawn) - 1, int(0.975 * len(drawn)))]
    return Agreement(measure, len(usable), value, low, high)
