"""Command line of authoring: new tasks, reviews, proposals, decisions, sign-off (`python -m authoring --help`)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from authoring.commands import changes, demo, gate, judgement, revise, rounds, standing
from tasks.errors import WorkbenchError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Write, review and change tasks.\n\nExit codes: 0 ok, 1 found faults, 2 usage, 3 environment.",
)


@app.callback()
def _group() -> None:
    """Write and change tasks."""


@app.command()
def new(
    chart: Annotated[Path, typer.Option(help="A bundle, or a folder of bundles or of NDJSON; .gz too.")],
    patient: Annotated[str, typer.Option(help="The patient's id in that record, or Patient/id.")],
    out: Annotated[Path, typer.Option(help="The new folder; its name becomes the task's id.")],
    title: Annotated[str, typer.Option(help="One line, without the answer.")] = "",
    specialty: Annotated[str, typer.Option(help="One of the 21.")] = "Internal Medicine",
    workflow: Annotated[str, typer.Option(help="One of the four.")] = "Workup & Risk Stratification",
    data_class: Annotated[str, typer.Option(help="open, dua or phi; phi until you know better.")] = "phi",
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as one JSON object.")] = False,
) -> None:
    """Make a draft task from one patient's record."""
    from authoring.draft import new_draft

    try:
        draft = new_draft(
            chart, patient, out, title=title, specialty=specialty, workflow=workflow, data_class=data_class
        )
    except WorkbenchError as fault:
        typer.echo(str(fault), err=True)
        raise typer.Exit(fault.exit_code) from None
    counts = {
        "taken": draft.taken,
        "dropped": draft.dropped,
        "left out": draft.others,
        "references reduced to their display": draft.unlinked,
        "decided on the way": draft.notes,
    }
    if as_json:
        typer.echo(json.dumps({"folder": str(draft.folder), "counts": counts}))
        return
    typer.echo(f"Draft written to {draft.folder}: {draft.taken.total()} resources, data class {data_class}.")
    for what, counter in counts.items():
        _show(what, counter)
    typer.echo(f"Next: write instruction.md, then python -m tasks validate {draft.folder}")


def _show(what: str, counter: Counter[str]) -> None:
    if counter:
        typer.echo(f"{what}:")
        for key, count in counter.most_common():
            typer.echo(f"  {count:>6}  {key}")


for commands in (rounds, judgement, revise, changes, gate, standing, demo):
    commands.register(app)


if __name__ == "__main__":
    app(prog_name="python -m authoring")
