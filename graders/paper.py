"""The published figures of PhysicianBench (arXiv 2605.02240), rebuilt from counts of tasks.

The paper states other formulas than its figures follow. The file published/physicianbench-v1.json holds what is printed
and, derived from it, how many of the 100 tasks each model passed in exactly 1, 2 and 3 of 3 runs. From these counts the
same functions that report our own batches give pass@1, pass@3 and pass^3 by every convention, and `reproduce` says
which convention prints the paper's figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from importlib.resources import files
from pathlib import Path

from pydantic import Field, ValidationError

from graders.metrics import Counts, Estimate, all_conventions
from tasks.errors import UsageError
from tasks.strict import Strict

RUNS = 3
TASKS = 100


class PublishedModel(Strict):
    """A row of the paper's main table; percents as printed. `tasks_with_passes`: tasks passed in 1, 2, 3 of 3 runs."""

    model: str
    pass_at_1: float
    pass_at_1_sd: float
    pass_at_3: float
    pass_hat_3: float
    turns: float
    tasks_with_passes: tuple[int, int, int]
    unbiased_pass_at_3: int
    failed_share: dict[str, float]


class Published(Strict):
    """The file."""

    source: str
    columns: dict[str, str]
    models: tuple[PublishedModel, ...] = Field(min_length=1)


@dataclass(frozen=True)
class Rebuilt:
    """One figure of one model: as printed, and by each convention that goes by its name (percent, to one decimal).

    `fits`: the formulas whose rounding is what is printed. `expected`: the formula that the figure is known to follow.
    """

    model: str
    figure: str
    printed: Decimal
    by_formula: dict[str, Decimal]
    expected: str

    @property
    def fits(self) -> tuple[str, ...]:
        """The formulas that print this figure."""
        return tuple(formula for formula, value in self.by_formula.items() if value == self.printed)

    @property
    def matches(self) -> bool:
        """Whether the formula that it is known to follow prints it."""
        return self.expected in self.fits


#: Figure -> (the conventions that go by this name, the one that the paper's figures follow).
_FIGURES: dict[str, tuple[tuple[str, ...], str]] = {
    "pass@1": (("c/n",), "c/n"),
    "pass@3": (("1 - C(n-c,k)/C(n,k)", "1 - (1 - c/n)^k"), "1 - (1 - c/n)^k"),
    "pass^3": (("C(c,k)/C(n,k)", "(c/n)^k"), "C(c,k)/C(n,k)"),
}


def published(path: Path | None = None) -> Published:
    """What the paper prints; `path` names another file of the same shape. UsageError where it cannot be read."""
    place = path or files("graders").joinpath("published", "physicianbench-v1.json")
    try:
        return Published.model_validate_json(place.read_bytes())
    except OSError as error:
        raise UsageError(f"the published figures cannot be read: {error.strerror}.", where=str(place)) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"the published figures are not of the known shape: {where}: {first['msg']}", where=str(place)
        ) from None


def counts_of(row: PublishedModel) -> list[Counts]:
    """One Counts a task: n = 3 runs, c = passes. UsageError where more than 100 tasks would have passes."""
    ones, twos, threes = row.tasks_with_passes
    none = TASKS - ones - twos - threes
    if none < 0 or min(row.tasks_with_passes) < 0:
        raise UsageError(f"{row.model}: {row.tasks_with_passes} is no split of {TASKS} tasks.")
    passes = [0] * none + [1] * ones + [2] * twos + [3] * threes
    return [Counts(RUNS, c) for c in passes]


def reproduce(data: Published) -> list[Rebuilt]:
    """pass@1, pass@3 and pass^3 of every model by every convention."""
    found = []
    for row in data.models:
        by_formula = {one.formula: one for one in all_conventions(counts_of(row), RUNS)}
        printed = {"pass@1": row.pass_at_1, "pass@3": row.pass_at_3, "pass^3": row.pass_hat_3}
        for figure, (formulas, expected) in _FIGURES.items():
            values = {str(formula): percent(by_formula[formula]) for formula in formulas}  # type: ignore[index]
            found.append(Rebuilt(row.model, figure, Decimal(str(printed[figure])), values, expected))
    return found


def percent(one: Estimate) -> Decimal:
    """The value in percent, rounded half up to one decimal as tables are printed."""
    return (Decimal(str(round(100 * (one.value or 0.0), 9)))).quantize(Decimal("0.1"), ROUND_HALF_UP)


def as_text(found: list[Rebuilt]) -> str:
    """A line a model and figure: printed, each convention, which of them prints it."""
    lines = [f"{'model':<18} {'figure':<7} {'printed':>7}  conventions"]
    for one in found:
        said = "   ".join(
            f"{formula} = {value}{' *' if value == one.printed else ''}" for formula, value in one.by_formula.items()
        )
        wrong = "" if one.matches else f"   MISMATCH: {one.expected} does not print it"
        lines.append(f"{one.model:<18} {one.figure:<7} {one.printed:>7}  {said}{wrong}")
    models = len({one.model for one in found})
    good = sum(one.matches for one in found)
    lines += [
        "",
        f"{good} of {len(found)} printed figures of {models} models are rebuilt (* = this formula prints the figure).",
        "pass@3 as printed is the plug-in form, not the unbiased one that the paper states;",
        "pass^3 as printed is 'all 3 runs passed'.",
    ]
    return "\n".join(lines)
