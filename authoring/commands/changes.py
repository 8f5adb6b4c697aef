"""Commands on changes: propose, show, decide, lift, adjudicate, apply."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from authoring.commands.shell import (
    Actor,
    AsJson,
    Reason,
    ReviewId,
    TaskId,
    change_of,
    desk,
    finding_of,
    print_json,
    reported,
    told,
)
from authoring.commands.working import Job, errand, working
from tasks.errors import UsageError

if TYPE_CHECKING:
    from authoring.views import ChangeView
    from tasks.review.state import ReviewState

Change = Annotated[str, typer.Argument(help="A change's id, or how it begins.", metavar="CHANGE", show_default=False)]


def propose(
    task: TaskId,
    from_dir: Annotated[Path, typer.Option(help="The package as it should be, for instance an edited clone.")],
    finding: Annotated[list[str] | None, typer.Option(help="A finding that it answers; may be repeated.")] = None,
    rationale: Annotated[str, typer.Option(help="Why.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the edits; put nothing up.")] = False,
    actor: Actor = None,
    review_id: ReviewId = None,
    as_json: AsJson = False,
) -> None:
    """Propose a folder's differences from the task, as small edits.

    reviews/, CHANGELOG.md and the version are left out. A task that is not there yet is brought in as a new one.
    """
    from datetime import UTC, datetime

    from authoring.comparing import edits_between
    from authoring.proposals import Proposal, ProposedEdit
    from tasks.folders import FolderFiles
    from tasks.review.events import package_hash

    with reported():
        if not from_dir.is_dir():
            raise UsageError("there is no such folder.", where=str(from_dir))
        mine = desk(actor)
        given = FolderFiles(from_dir)
        if given.refused:
            raise UsageError(given.refused[0].message, where=given.refused[0].place)
        files = dict(given)
        with mine.store.at() as view:
            known = task in view.tasks()
            at = mine.snapshot(view, task) if known else None
            before = at.files if at else {}
            state = at.state if at else None
        if state is None:
            told(mine.bring_in(files, where=task, review_id=review_id), f"{task} is a new task", as_json=as_json)
            return
        edits = edits_between(before, files)
        if not edits:
            raise UsageError("the folder is the task as it stands; there is nothing to propose.", where=str(from_dir))
        answers = tuple(finding_of(state, one) for one in finding or ())
        proposal = Proposal(
            task=task, package=package_hash(before), made_by=mine.actor.id, by_hand=True, at=datetime.now(UTC),
            edits=tuple(ProposedEdit(edit=edit, findings=answers, rationale=rationale) for edit in edits),
        )  # fmt: skip
        if dry_run:
            print_json([edit.model_dump(mode="json") for edit in edits])
            return
        done, prepared = mine.propose(task, proposal, review_id=review_id)
        told(done, f"{len(prepared.changes)} changes are up for decision", as_json=as_json)
        if not as_json:
            for ref in prepared.changes:
                mark = "  weakens a safety checkpoint" if ref.weakens_safety else ""
                typer.echo(f"  {ref.change[:12]}  {ref.unit}{mark}")


def show(
    task: TaskId,
    change: Annotated[str | None, typer.Argument(help="One change; default all that are live.")] = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Show proposed changes and what was decided on them. In clinical words first, then as a diff."""
    from authoring.views import change_view

    with reported():
        mine = desk(actor, reads=True)
        with mine.store.at() as view:
            at = mine.snapshot(view, task)
            state = at.state
            ids = [change_of(state, change)] if change else [one.ref.change for one in state.live_changes]
            views = [change_view(at, id) for id in ids]
        if as_json:
            print_json([_as_json(one) for one in views])
            return
        if not views:
            typer.echo("No change waits for a decision.")
        for one in views:
            _print(one, state)


def _as_json(view: ChangeView) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "change": view.ref.change, "base": view.ref.base, "result": view.ref.result, "unit": view.ref.unit,
        "status": view.status, "made_by": view.made_by, "rationale": view.rationale, "group": view.ref.group,
        "findings": list(view.ref.findings), "weakens_safety": view.ref.weakens_safety,
        "consequence": view.consequence.word, "diff": "\n".join(one.text for one in view.diffs),
        "rows": [asdict(row) for row in view.rows], "raw": [asdict(row) for row in view.raw],
        "decisions": {person: one.decision for person, one in view.decisions.items()},
    }  # fmt: skip


def _print(view: ChangeView, state: ReviewState) -> None:
    ref = view.ref
    typer.echo(f"{ref.change[:12]}  {ref.unit}  {view.status}, by {view.made_by}  {view.consequence.word}")
    if ref.weakens_safety:
        typer.echo("  WEAKENS A SAFETY CHECKPOINT")
    if view.unreadable:
        typer.echo(f"  CANNOT BE READ BY ITSELF, so that what follows is not known: {view.unreadable}")
    if ref.group:
        others = [c.ref.change[:12] for c in state.changes.values() if c.ref.group == ref.group and c.ref != ref]
        typer.echo(f"  decided together with {', '.join(others)}")
    if view.title:
        typer.echo(f"  {view.title}")
    for row in view.rows:
        range_ = f"  (range {row.range})" if row.range else ""
        typer.echo(f"  {row.field}: {row.old} -> {row.new}{range_}")
    for raw in view.raw:
        typer.echo(f"  {raw.path}: {raw.old} -> {raw.new}")
    for one in view.diffs:
        typer.echo(one.text.rstrip("\n"))
    if view.rationale:
        typer.echo(f"  Why: {view.rationale}")
    for person, decided in view.decisions.items():
        typer.echo(f"  {person}: {decided.decision}{': ' + decided.reason if decided.reason else ''}")
    typer.echo("")


def decide(
    task: TaskId,
    change: Change,
    decision: Annotated[str, typer.Argument(help="approve, reject, veto or discuss.", show_default=False)],
    reason: Annotated[str, typer.Option("--reason", help="Why; needed for all but approve.")] = "",
    harm: Annotated[
        str | None, typer.Option(help="For a veto: KIND,SEVERITY,LIKELIHOOD, as commission,severe,likely.")
    ] = None,
    base: Annotated[
        str | None, typer.Option(help="Hash of the bytes that you saw before the change (show --json). Default: now's.")
    ] = None,
    actor: Actor = None,
    review_id: ReviewId = None,
    as_json: AsJson = False,
) -> None:
    """Decide on one change: approve, reject, veto, discuss."""
    with reported():
        mine = desk(actor)
        found = mine.state(task)
        ref = found.changes[change_of(found, change)].ref
        one: dict[str, Any] = {"change": ref.change, "base": ref.base if base is None else base, "result": ref.result}
        one |= {"decision": decision, "reason": reason}
        if harm is not None:
            parts = harm.split(",")
            if len(parts) != 3:
                raise UsageError("harm is three words: KIND,SEVERITY,LIKELIHOOD.", remedy="commission,severe,likely")
            one["harm"] = dict(zip(("kind", "severity", "likelihood"), parts, strict=True))
        done = mine.decide(task, [one], review_id=review_id)
        status = mine.state(task).changes[ref.change].status
        told(done, f"{decision} on {ref.unit}: it is {status} now", as_json=as_json)


def lift(
    task: TaskId,
    owner: Annotated[str, typer.Argument(help="Whose veto.", metavar="OWNER", show_default=False)],
    reason: Reason,
    change: Annotated[str, typer.Option(help="The change that it stands on. Default: the task as a whole.")] = "",
    owner_says: Annotated[
        str, typer.Option(help="Your own: 'lifted it'. As adjudicator: agrees, does not agree, could not be reached.")
    ] = "lifted it",
    actor: Actor = None,
    review_id: ReviewId = None,
    as_json: AsJson = False,
) -> None:
    """Lift a veto: one's own, or another's as adjudicator. Another's needs what its owner answered."""
    with reported():
        mine = desk(actor)
        whole = change_of(mine.state(task), change) if change else ""
        done = mine.lift_veto(task, whole, owner, owner_says, reason, review_id=review_id)
        told(done, f"The veto of {owner} is lifted", as_json=as_json)


def adjudicate(
    task: TaskId,
    change: Change,
    decision: Annotated[str, typer.Argument(help="approve or reject.", show_default=False)],
    reason: Reason,
    actor: Actor = None,
    review_id: ReviewId = None,
    as_json: AsJson = False,
) -> None:
    """Settle a split decision (an adjudicator)."""
    with reported():
        mine = desk(actor)
        done = mine.adjudicate(task, change_of(mine.state(task), change), decision, reason, review_id=review_id)
        told(done, f"Adjudicated: {decision}", as_json=as_json)


def apply(
    task: TaskId,
    change: Annotated[list[str] | None, typer.Option(help="Only this accepted change; may be repeated.")] = None,
    actor: Actor = None,
    review_id: ReviewId = None,
    as_json: AsJson = False,
    job: Job = "",
) -> None:
    """Apply the accepted changes in one commit. Only if they go together and the gate passes on the result.

    Otherwise nothing is applied, and the changes it is due to are named (exit 1).
    """
    with reported():
        mine = desk(actor, errand=errand("apply", task, review_id, job))
        with working(mine, job, f"Apply the accepted changes of {task}", "Stopped. Nothing was applied.") as work:
            state = mine.state(task)
            only = [change_of(state, one) for one in change or ()]
            done = mine.apply(task, only, review_id=review_id, gate=work.gate)
        told(done, "The accepted changes are applied", as_json=as_json)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for name, command in (
        ("propose", propose), ("show", show), ("decide", decide), ("lift", lift), ("adjudicate", adjudicate),
        ("apply", apply),
    ):  # fmt: skip
        app.command(name)(command)
