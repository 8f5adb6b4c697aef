"""python -m providers.wire: play a script or a solution plan as a model, in both wire formats, until interrupted."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from providers.wire.script import Faulty, PlanScript, Player, Reply, Script
from providers.wire.server import KEY, WireServer
from tasks.errors import PackageError, UsageError, WorkbenchError
from tasks.package import SUITE, FolderSource

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def script_of(path: Path) -> Script:
    """A file of replies, one JSON object a line (fields of `Reply`). Raises UsageError, PackageError."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise UsageError("the script cannot be read.", where=str(path), remedy="Name a text file.") from None
    replies = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            replies.append(Reply.model_validate_json(line))
        except ValidationError as fault:
            first = fault.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the line"
            raise PackageError(f"{place}: {first['msg']}.", where=f"{path}:{number}") from None
    return Script(replies)


def plan_of(named: str) -> PlanScript:
    """TASK:PLAN, or TASK for its first plan; a task is an id of the suite or a folder. Raises UsageError."""
    name, _, plan = named.partition(":")
    folder = Path(name).absolute()
    here = (folder / "task.toml").is_file()
    task = FolderSource(folder.parent).load(folder.name) if here else SUITE.load(name)
    if not task.plans or (plan and plan not in task.plans):
        raise UsageError(
            f"the task has no plan {plan!r}." if plan else "the task has no plan.",
            where=task.id,
            remedy=f"It has: {', '.join(sorted(task.plans)) or 'none'}.",
        )
    return PlanScript.of(task.plans[plan or min(task.plans)])


@app.command()
def serve(
    script: Annotated[Path | None, typer.Option(help="A file of replies, one JSON object a line.")] = None,
    plan: Annotated[str, typer.Option(help="TASK:PLAN: play a solution plan as a model would.")] = "",
    model: Annotated[str, typer.Option(help="The model's name.")] = "scripted",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 = any free one.")] = 0,
    faults: Annotated[float, typer.Option(min=0, max=0.9, help="How likely a turn begins with a failure.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Of the failures.")] = 0,
) -> None:
    """Serve a scripted model on 127.0.0.1 and print what workbench.toml needs to know of it."""
    try:
        if (script is None) == (not plan):
            raise UsageError("Say what to play.", remedy="Give --script FILE or --plan TASK:PLAN, and not both.")
        player: Player = script_of(script) if script else plan_of(plan)
        server = WireServer({model: Faulty(player, seed, faults) if faults else player}, port=port).start()
    except WorkbenchError as fault:
        typer.echo(str(fault), err=True)
        raise typer.Exit(fault.exit_code) from None
    for face, url in (("anthropic", server.anthropic_url), ("openai", server.openai_url)):
        typer.echo(f'[model."{face}/{model}"]\nendpoint = "{url}"\nkey_env = "WIRE_KEY"\n')
    typer.echo(f"# Put these into workbench.toml, and: export WIRE_KEY={KEY}")
    typer.echo("# Serving until interrupted (Ctrl-C).")
    sys.stdout.flush()
    try:
        server.join()
    except KeyboardInterrupt:
        server.stop()


if __name__ == "__main__":
    app()
