"""The command revise: a model drafts edits that answer the open findings; a person sends the draft to decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from authoring.commands.shell import Actor, AsJson, TaskId, desk, print_json, reported
from authoring.commands.working import Job, errand, working
from tasks.errors import UsageError

if TYPE_CHECKING:
    from authoring.desk import Desk
    from authoring.reviser import Draft
    from tasks.progress import Progress

#: What a job is sent to do: a voucher for asking is none for sending.
ASK, SEND = "revise", "revise --propose"
STOPPED = "Stopped. What was asked and answered so far is kept; nothing was put up."


def revise(
    task: TaskId,
    model: Annotated[str | None, typer.Option(help="provider/name. Default: use.reviser of workbench.toml.")] = None,
    preview: Annotated[bool, typer.Option("--preview", help="Say what would be sent and stop.")] = False,
    draft: Annotated[str | None, typer.Option(help="A draft that is there (its id), instead of a new one.")] = None,
    drop: Annotated[list[int] | None, typer.Option(help="Leave this edit of the draft out; may be repeated.")] = None,
    propose: Annotated[bool, typer.Option("--propose", help="Send the draft to decision, if the gate allows.")] = False,
    actor: Actor = None,
    as_json: AsJson = False,
    job: Job = "",
) -> None:
    """Let a model draft edits that answer the open findings.

    The draft stays in jobs/ of the workspace and nothing is committed; --propose puts it up for decision. Exit 1 where
    the gate fails with these edits on what it did not fail on before, or where no edit holds.
    """
    with reported():
        sent_to_do = errand(SEND if propose else ASK, task, None, job)
        mine = desk(actor, errand=sent_to_do if job else None)
        if preview:
            _preview(mine, task, model, as_json=as_json)
            return
        with working(mine, job, f"Revise {task}", STOPPED) as work:
            if draft:
                found = _at_hand(mine, task, draft)
            else:
                with work.stoppable():
                    found = _asked(mine, task, model, job, work.progress)
            if drop:
                from authoring.reviser import store

                found = found.with_dropped(drop)
                store(mine.workspace, found)
            if not as_json:
                _told(mine, found)
            if propose:
                from authoring.reviser import send

                work.progress.note("The gate runs where the draft is another one than it ran on")
                found = send(mine, found, gate=work.gate)
                if not as_json:
                    typer.echo(f"Up for decision: {', '.join(found.put_up)}.")
        if as_json:
            print_json(_as_json(found))
    if not propose and (not found.kept or (found.gate and found.gate.new)):
        raise typer.Exit(1)


def _preview(mine: Desk, task: str, model: str | None, *, as_json: bool) -> None:
    from authoring.reviser import preview

    found = preview(mine, task, model)
    sent = found.sent
    if as_json:
        print_json({"model": found.model, "cost": found.cost, "tokens": sent.tokens, **sent.model_dump(mode="json")})
        return
    cost = "its cost is unknown" if found.cost is None else f"about ${found.cost:.2f} to read it once"
    typer.echo(
        f"{found.model} would be sent {sent.findings} findings, {len(sent.files)} files, "
        f"{len(sent.resources)} resources whole and {sent.listed} in a line: about {sent.tokens:,} tokens, {cost}."
    )


def _at_hand(mine: Desk, task: str, id: str) -> Draft:
    from authoring.reviser import find

    found = find(mine.workspace, id)
    if found.task != task:
        raise UsageError(f"this draft is of {found.task}.", where=id)
    return found


def _asked(mine: Desk, task: str, model: str | None, job: str, progress: Progress) -> Draft:
    from authoring.reviser import revise as ask

    return ask(mine, task, model=model, job=job, tell=progress.note)


def _told(mine: Desk, draft: Draft) -> None:
    typer.echo(f"Draft {draft.id} for {draft.task}, by {draft.asked} (answered as {draft.answered})")
    cost = "unknown" if draft.usage.cost is None else f"${draft.usage.cost:.4f}"
    typer.echo(f"  cost {cost}, {draft.repairs} repairs, prompt {draft.sent.prompt} {draft.sent.prompt_hash[:12]}")
    for left in draft.left_open:
        typer.echo(f"  OPEN    finding {left.finding[:12]}: {left.reason}")
    weak = _weakened(mine, draft)
    for number, one in enumerate(draft.edits, 1):
        from authoring.edits import unit_of

        state = "dropped" if one.dropped else "changed" if one.changed else "holds"
        findings = ", ".join(id[:12] for id in one.edit.findings)
        typer.echo(f"  {number:>3}  {state:<8} {unit_of(one.edit.edit)}  for {findings}: {one.edit.rationale}")
        if number in weak:
            typer.echo(f"       WEAKENS A SAFETY CHECKPOINT: {'; '.join(weak[number])}")
    for out in draft.left_out:
        typer.echo(f"  LEFT OUT {out.unit}: {out.why}{': ' + out.message if out.message else ''}")
    if draft.gate:
        typer.echo(f"  gate: {'passed' if draft.gate.passed else 'failed'}")
        for line in draft.gate.new:
            typer.echo(f"    with these edits: {line}")


def _weakened(mine: Desk, draft: Draft) -> dict[int, tuple[str, ...]]:
    """{number of the edit: what of a safety checkpoint becomes weaker}, where the draft still stands."""
    from authoring.reviser import weakening

    return weakening(mine, draft)


def _as_json(draft: Draft) -> dict[str, Any]:
    import json

    from authoring.revising.drafts import dump

    table: dict[str, Any] = json.loads(dump(draft))
    return table


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("revise")(revise)
