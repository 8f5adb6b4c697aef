"""Where tasks stand, and their end: status, signoff, release."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from authoring.commands.shell import Actor, AsJson, ReviewId, desk, print_json, reported, told
from authoring.commands.shell import TaskId as OneTask

if TYPE_CHECKING:
    from authoring.desk import Desk
    from tasks.review.state import ReviewState


def status(
    task: Annotated[str | None, typer.Argument(help="One task; default all.", metavar="[TASK]")] = None,
    agreement: Annotated[bool, typer.Option("--agreement", help="How far reviewers agree.")] = False,
    measure: Annotated[str, typer.Option(help="raw, kappa or alpha.")] = "alpha",
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Show where tasks stand and whose turn it is. Open findings, vetoes and what sign-off still needs, too."""
    from authoring.library import take_over
    from tasks.review.signoff import turns

    with reported():
        mine = desk(actor, reads=True)
        with mine.store.at() as view:
            ids = [task] if task else view.tasks()
        news = take_over(mine.store) if not task else None
        for id in ids:
            mine.finish_round(id)
        with mine.store.at() as view:
            states = [mine.snapshot(view, id).state for id in ids]
        if agreement:
            _agreement(states, measure, as_json=as_json)
            return
        if as_json:
            found = [_state(mine, state, whole=task is not None) for state in states]
            print_json(found[0] if task else found)
            return
        for state in states:
            sealed = mine.still_to_come(state)
            whose = [f"{one.person or one.role}: {one.detail}" for one in turns(state) if one.what != "review"]
            whose += [f"{person}: Review, round {state.round}" for person in sealed]
            typer.echo(f"{state.task}  {state.stage}, round {state.round}  {'; '.join(whose)}")
        if news:
            for word, names in (("updated", news.updated), ("added", news.added), ("changed here and kept", news.kept)):
                if names:
                    typer.echo(f"Newer bundled tasks, {word}: {', '.join(names)}")
        if task:
            _detail(mine, states[0])


def _detail(mine: Desk, state: ReviewState) -> None:
    for person, role in state.assigned.items():
        typer.echo(f"  {role:<12} {person}")
    for id, found in state.findings.items():
        word = found.end or "open"
        typer.echo(
            f"  finding {id[:12]}  {word:<10} {found.finding.weight:<9} by {found.by}: {found.finding.text[:100]}"
        )
    for change in state.changes.values():
        waiting = f"  waits for {', '.join(change.waiting_for)}" if change.waiting_for else ""
        typer.echo(f"  change  {change.ref.change[:12]}  {change.status:<10} {change.ref.unit}{waiting}")
    for veto in state.vetoes:
        typer.echo(f"  veto of {veto.owner} on {veto.change[:12] or 'the task'}: {veto.reason[:100]}")
    for one in mine.requirements(state.task):
        typer.echo(f"  [{'x' if one.met else ' '}] {one.text}{'' if one.met else ': ' + one.todo}")


def _state(mine: Desk, state: ReviewState, *, whole: bool) -> dict[str, Any]:
    from tasks.review.signoff import turns

    found: dict[str, Any] = {
        "task": state.task, "stage": state.stage, "round": state.round, "package": state.package,
        "assigned": dict(state.assigned), "waiting_for_review": list(mine.still_to_come(state)),
        "open_findings": len(state.open_findings), "vetoes": [asdict(veto) for veto in state.vetoes],
        "turns": [asdict(one) for one in turns(state)],
        "releases": [one.tag for one in state.releases], "defects": len(state.defects),
    }  # fmt: skip
    if whole:
        found |= {
            "findings": [
                {"finding": id, "by": one.by, "round": one.round, "end": one.end, "why": one.why,
                 "weight": one.finding.weight, "dimension": one.finding.dimension, "text": one.finding.text}
                for id, one in state.findings.items()
            ],
            "changes": [
                {"change": one.ref.change, "unit": one.ref.unit, "status": one.status, "made_by": one.made_by,
                 "waiting_for": list(one.waiting_for), "proposal": one.proposal}
                for one in state.changes.values()
            ],
            "requirements": [asdict(one) for one in mine.requirements(state.task)],
        }  # fmt: skip
    return found


def _agreement(states: list[ReviewState], measure: str, *, as_json: bool) -> None:
    from authoring.views import agreement_by_checkpoint, agreement_by_dimension

    found = {
        "dimension": agreement_by_dimension(states, measure),
        "checkpoint": agreement_by_checkpoint(states, measure),
    }
    if as_json:
        print_json({kind: {name: asdict(one) for name, one in table.items()} for kind, table in found.items()})
        return
    for kind, table in found.items():
        typer.echo(f"{measure} by {kind}")
        for name, one in table.items():
            said = "not defined" if one.value is None else f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f})"
            few = "  too few to lean on" if one.few else ""
            typer.echo(f"  {name.replace('_', ' '):<30} n = {one.n:<4} {said}{few}")


def signoff(
    task: OneTask,
    statement: Annotated[str, typer.Option(help="What you sign: stands beside your name in the release.")] = "",
    package: Annotated[
        str | None, typer.Option(help="Hash of the package that you saw (status --json). Default: as it stands now.")
    ] = None,
    actor: Actor = None,
    review_id: ReviewId = None,
    as_json: AsJson = False,
) -> None:
    """Sign exactly the bytes of the task as it stands. Without --statement list what is still missing."""
    with reported():
        mine = desk(actor, reads=not statement)
        if statement:
            done = mine.sign(task, statement, package=package, review_id=review_id)
            told(done, f"Signed by {mine.actor.name}", as_json=as_json)
            return
        found = mine.requirements(task)
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        for one in found:
            typer.echo(f"[{'x' if one.met else ' '}] {one.text}{'' if one.met else ': ' + one.todo}")
    if any(not one.met for one in found):
        raise typer.Exit(1)


def release(task: OneTask, actor: Actor = None, review_id: ReviewId = None, as_json: AsJson = False) -> None:
    """Release the task as all have signed it (the lead). Tag, manifest of digests, changelog."""
    with reported():
        made = desk(actor).release(task, review_id=review_id)
    if as_json:
        print_json(asdict(made))
    else:
        typer.echo(f"{made.tag}\n\n{made.text}", nl=False)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for name, command in (("status", status), ("signoff", signoff), ("release", release)):
        app.command(name)(command)
