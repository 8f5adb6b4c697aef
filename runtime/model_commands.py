"""python -m runtime models: list the configured models, and check one."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tasks.errors import UsageError, WorkbenchError

models_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The models of workbench.toml.")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
Job = Annotated[str, typer.Option("--job", help="Tell progress to this job's folder.", hidden=True)]


@models_app.command("list")
def list_models(as_json: AsJson = False) -> None:
    """List the configured models: key, price, data class, and what the last check found. Asks nobody."""
    from runtime.models import configured
    from tasks.workspace import Workspace

    try:
        rows = configured(Workspace.find())
    except WorkbenchError as fault:
        typer.echo(str(fault), err=True)
        raise typer.Exit(fault.exit_code) from None
    if as_json:
        typer.echo(json.dumps([row.model_dump(mode="json") for row in rows], indent=1))
        return
    for row in rows:
        price = f"USD {row.price.input:g} in, {row.price.output:g} out a million" if row.price else "price unknown"
        key = "key set" if row.has_key else f"no key in {row.key_env}" if row.key_env else "no key variable"
        state = "not checked"
        if row.checked is not None:
            state = "works" if row.checked.works else "cannot be used"
            state += f", checked {row.checked.at:%Y-%m-%d %H:%M} UTC"
            state += ", settings changed since" if row.is_stale else ""
        uses = f", {' and '.join(row.uses)}" if row.uses else ""
        typer.echo(f"{row.name}: {state}; {key}; cleared for {row.data_class}; {price}{uses}")
    if not rows:
        typer.echo('No model is configured. Add [model."provider/name"] to workbench.toml.')


@models_app.command("check")
def check_model(
    name: Annotated[str, typer.Argument(help="provider/name, as in workbench.toml.")],
    data_class: Annotated[str, typer.Option(help="Of the tasks that it is for: open, dua or phi.")] = "open",
    as_json: AsJson = False,
    job: Job = "",
) -> None:
    """Ask a model for one tool call and say in words what is wrong, and what to do. Exit 1 where it cannot be used."""
    from typing import get_args

    from runtime.models import check, in_words
    from tasks.progress import to_job
    from tasks.taxonomy import DataClass
    from tasks.workspace import Workspace

    progress = to_job(Workspace.find().jobs / job) if job else None
    try:
        wanted: list[DataClass] = [known for known in get_args(DataClass) if known == data_class]
        if not wanted:
            raise UsageError(f"There is no data class {data_class!r}.", remedy="Choose open, dua or phi.")
        done = check(Workspace.find(), name, data_class=wanted[0])
    except WorkbenchError as fault:
        if progress is not None:
            progress.fail(str(fault))
        typer.echo(str(fault), err=True)
        raise typer.Exit(fault.exit_code) from None
    if progress is not None:
        progress.end(f"check {name}")
    typer.echo(json.dumps(done.model_dump(mode="json") | {"works": done.works}) if as_json else in_words(done))
    raise typer.Exit(0 if done.works else 1)
