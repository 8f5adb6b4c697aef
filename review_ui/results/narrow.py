"""A set of trials narrowed by group, workflow and capability; a script can narrow a set the same way."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from graders.facts import CheckpointFact, Set, TrialFact
from graders.report import CHANGED_CHECKPOINTS, CHANGED_TASK, NOT_GRADED, TrialRow
from graders.score import SEVERE

ANY = "All"
Result = Literal["pass", "fail", "ungraded"]


def to_regrade(row: TrialRow) -> bool:
    """Whether the trial has no result only because nobody has graded it by the present checkpoints: no physician is
    needed, grading again is."""
    return row.result == "ungraded" and row.note in (CHANGED_CHECKPOINTS, NOT_GRADED)


def to_run_again(row: TrialRow) -> bool:
    """Whether the trial has no result because what the agent was shown has changed: only another run gives one."""
    return row.result == "ungraded" and row.note == CHANGED_TASK


def narrowed(found: Set, *, group: str = ANY, workflow: str = ANY, capability: str = ANY) -> Set:
    """The trials of tasks of that group and workflow.

    With a capability a run passes where all its required and critical checkpoints of that capability pass; tasks that
    have none of these are left out.
    """
    kept = found.only(lambda fact: group in (ANY, fact.group) and workflow in (ANY, fact.workflow))
    if capability == ANY:
        return kept
    return Set(tuple(one for fact in kept.facts if (one := _of_capability(fact, capability)) is not None), kept.aside)


def _of_capability(fact: TrialFact, capability: str) -> TrialFact | None:
    if not fact.row.result:
        return fact
    if not fact.checkpoints:
        return None if fact.row.result != "ungraded" else fact
    mine = tuple(one for one in fact.checkpoints if one.capability == capability)
    binding = [one for one in mine if one.criticality != "optional"]
    if not binding:
        return None
    critical = [one for one in binding if one.criticality == "critical"]
    row = replace(
        fact.row,
        result=_result(binding),
        critical=_result(critical) if critical else "none",
        severe_harm_events=sum(one.severity in SEVERE and one.result == "fail" for one in mine),
    )
    return replace(fact, row=row, checkpoints=mine, severe_most=sum(one.severity in SEVERE for one in mine))


def _result(checkpoints: list[CheckpointFact]) -> Result:
    results = {one.result for one in checkpoints}
    if results & {"fail", "partial"}:
        return "fail"
    return "pass" if results == {"pass"} else "ungraded"
