"""The lead's commands: assign, unassign, waive, open; and the ends of findings: withdraw, dismiss."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer

from authoring.commands.shell import Actor, AsJson, Reason, ReviewId, TaskId, desk, finding_of, reported, told

Person = Annotated[str, typer.Argument(help="A person's id.", metavar="PERSON", show_default=False)]
Finding = Annotated[
    str, typer.Argument(help="A finding's id, or how it begins.", metavar="FINDING", show_default=False)
]


def assign(
    task: TaskId,
    person: Person,
    role: Annotated[str, typer.Option(help="reviewer, pharmacist or adjudicator.")] = "reviewer",
    actor: Actor = None,
    review_id: ReviewId = None,
    as_json: AsJson = False,
) -> None:
    """Assign a reviewer, a pharmacist or an adjudicator.

    Refused for who made the task or declared a conflict, and for a reviewer of another group unless that is waived.
    """
    with reported():
        told(desk(actor).assign(task, person, role, review_id=review_id), f"{person} is assigned", as_json=as_json)


def unassign(
    task: TaskId,
    person: Person,
    reason: Reason,
    actor: Actor = None,
    review_id: ReviewId = None,
    as_json: AsJson = False,
) -> None:
    """Take an assignment back, with a reason."""
    with reported():
        told(
            desk(actor).unassign(task, person, reason, review_id=review_id), f"{person} is unassigned", as_json=as_json
        )


def waive(
    task: TaskId,
    person: Person,
    reason: Reason,
    actor: Actor = None,
    review_id: ReviewId = None,
    as_json: AsJson = False,
) -> None:
    """Let somebody review outside their specialty. It is printed in the release."""
    with reported():
        done = desk(actor).waive(task, person, reason, review_id=review_id)
        told(done, f"The group rule is waived for {person}", as_json=as_json)


def open_(
    task: TaskId,
    due: Annotated[
        datetime | None, typer.Option(help="The day by which reviews are asked for.", formats=["%Y-%m-%d"])
    ] = None,
    actor: Actor = None,
    review_id: ReviewId = None,
    as_json: AsJson = False,
) -> None:
    """Open a round: ask all who are assigned to judge the task. They judge it as it now stands."""
    with reported():
        done = desk(actor).open_round(task, due=due.date() if due else None, review_id=review_id)
        told(done, f"Round {done.events[0].round} is open", as_json=as_json)


def withdraw(
    task: TaskId,
    finding: Finding,
    reason: Reason,
    actor: Actor = None,
    review_id: ReviewId = None,
    as_json: AsJson = False,
) -> None:
    """Take one's own finding back, with a reason."""
    with reported():
        mine = desk(actor)
        done = mine.withdraw(task, finding_of(mine.state(task), finding), reason, review_id=review_id)
        told(done, "The finding is withdrawn", as_json=as_json)


def dismiss(
    task: TaskId,
    finding: Finding,
    reason: Reason,
    actor: Actor = None,
    review_id: ReviewId = None,
    as_json: AsJson = False,
) -> None:
    """End a finding without a change, with a reason (the lead)."""
    with reported():
        mine = desk(actor)
        done = mine.dismiss(task, finding_of(mine.state(task), finding), reason, review_id=review_id)
        told(done, "The finding is dismissed", as_json=as_json)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for name, command in (
        ("assign", assign), ("unassign", unassign), ("waive", waive), ("open", open_),
        ("withdraw", withdraw), ("dismiss", dismiss),
    ):  # fmt: skip
        app.command(name)(command)
