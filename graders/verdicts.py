"""What a checkpoint function may return: passed(), partial(), failed() or a Truth. Anything else is an error.

A function in checkpoints.py reads the evidence and judges one checkpoint:

    from graders.verdicts import failed, passed

    def potassium_was_rechecked(evidence):
        for order in evidence.orders("ServiceRequest"):
            ...
                return passed("A potassium level was ordered.", evidence.cite(order))
        return failed("No potassium level was ordered.")
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from tasks.trials import CallCite, QuoteCite, ResourceCite

AnyCite = ResourceCite | QuoteCite | CallCite


@dataclass(frozen=True)
class Judgement:
    """A function's judgement: the level, a reason in plain words, and what supports it."""

    result: Literal["pass", "partial", "fail"]
    reason: str
    cites: tuple[AnyCite, ...] = ()


@dataclass(frozen=True)
class Truth:
    """A value computed from the chart, in a unit, with the resources that it was computed from."""

    value: Decimal | int | float
    unit: str = ""
    cites: tuple[AnyCite, ...] = ()
    how: str = ""


def passed(reason: str, *cites: AnyCite) -> Judgement:
    """The checkpoint holds."""
    return Judgement("pass", reason, cites)


def partial(reason: str, *cites: AnyCite) -> Judgement:
    """A part of the checkpoint holds; for the task it counts as not passed."""
    return Judgement("partial", reason, cites)


def failed(reason: str, *cites: AnyCite) -> Judgement:
    """The checkpoint does not hold."""
    return Judgement("fail", reason, cites)
