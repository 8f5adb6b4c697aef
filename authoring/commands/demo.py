"""The command demo: one whole loop of review in a scratch workspace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from authoring.commands.shell import AsJson, print_json, reported

if TYPE_CHECKING:
    from authoring.demo import Step


def demo(
    workspace: Annotated[
        Path | None, typer.Option(help="A new folder for it. Default: one in the temporary directory; it stays there.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play one whole loop from folder to release.

    Findings, a model's edits, a veto, a second round, adjudication, sign-off, release.

    The people are invented and the model is a script; everything else is real, and stays to be looked at.
    """
    import tempfile

    from authoring.demo import play

    with reported():
        folder = workspace or Path(tempfile.mkdtemp(prefix="workbench-demo-"))
        if not as_json:
            typer.echo(
                f"A whole review, played in {folder}. People are invented; the model is a script and no model.\n"
            )
        played = play(folder, tell=lambda step: None if as_json else _told(step))
    if as_json:
        steps = [
            {
                "title": one.title,
                "lines": list(one.lines),
                "commits": [(c.hash, c.author.name, c.subject) for c in one.commits],
            }
            for one in played.steps
        ]
        print_json({"workspace": str(played.workspace), "release": played.release.tag, "steps": steps})
        return
    typer.echo("Look at it:")
    typer.echo(f"  git -C {played.workspace / 'tasks.git'} log --stat")
    typer.echo(f"  WORKBENCH_WORKSPACE={played.workspace} python -m authoring status {_task()}")
    typer.echo(f"  WORKBENCH_WORKSPACE={played.workspace} python -m streamlit run app.py")


def _task() -> str:
    from authoring.demonstration.story import TASK

    return TASK


def _told(step: Step) -> None:
    typer.echo(step.title)
    for line in step.lines:
        typer.echo(f"    {line}")
    for commit in step.commits:
        subject = commit.subject.removeprefix(f"{_task()}: ")
        typer.echo(f"  * {commit.hash[:8]}  {commit.author.name}: {subject}")
    typer.echo("")


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command("demo")(demo)
