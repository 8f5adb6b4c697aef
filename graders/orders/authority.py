"""Who acts: what state an order must be in to satisfy, and what over-reaches (field/orders.md, Decided)."""

from __future__ import annotations

from typing import Literal

from graders.orders.candidates import Candidate
from tasks.declarations import Checkpoint

Authority = Literal["orders", "pends", "recommends"]

#: Actions that an order row alone never settles: a judge or a function does.
NEVER_BY_A_ROW = frozenset({"shared_decision", "defer", "ask"})


def of_checkpoint(checkpoint: Checkpoint, authority: Authority) -> Authority:
    """The authority for one checkpoint: the task's, unless its action is pend or recommend."""
    return {"pend": "pends", "recommend": "recommends"}.get(checkpoint.action, authority)  # type: ignore[return-value]


def why_not(one: Candidate, wanted_type: str, authority: Authority, *, weighs: bool = False) -> str:
    """Why a candidate's kind or state does not satisfy under this authority; "" where it does.

    `weighs`: "consider" counts (action shared_decision).
    """
    if one.state == "dead":
        return one.why_dead
    if one.mood == "denied":
        return "its text takes it back"
    if one.mood == "conditional":
        return "it waits for a condition and is not an order now"
    if one.mood == "considered" and not weighs:
        return "it only considers it"
    if one.mood == "mentioned":
        return "it is named, not recommended"
    if wanted_type == "Communication":
        return "" if one.type == "Communication" else f"it is a {one.type or 'note'}, not a Communication"
    if one.is_order:
        if one.type != wanted_type:
            return f"it is a {one.type}, not a {wanted_type}"
        if authority == "orders":
            return "" if one.state == "active" else "it is a draft, proposal or plan, not an active order"
        return "" if one.state == "draft" else "it is an active order, which over-reaches"
    if authority == "recommends":
        return ""
    return "it is said in a message or note, not ordered"


def over_reaches(one: Candidate, wanted_type: str, authority: Authority) -> bool:
    """Whether an order that meets the row goes beyond what the task's person may do."""
    return (
        authority != "orders"
        and one.is_order
        and one.type == wanted_type
        and one.state == "active"
        and one.mood not in ("denied",)
    )
