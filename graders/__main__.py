"""python -m graders: match an order declaration, grade stored trials again, report, show the clinical tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from tasks.errors import UsageError, WorkbenchError
from tasks.package import SUITE, FolderSource
from tasks.stored import Batch, StoredTrial
from tasks.workspace import Workspace

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Grade what agents did. Exit codes: 0 ok, 1 found faults, 2 usage, 3 environment.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
TasksFolder = Annotated[
    Path | None,
    typer.Option("--tasks", help="A folder of task packages. Default: the bundled suite.", show_default=False),
]


@contextmanager
def _reported() -> Iterator[None]:
    """One clear message for what a user can meet, and its exit code."""
    try:
        yield
    except WorkbenchError as fault:
        typer.echo(str(fault), err=True)
        raise typer.Exit(fault.exit_code) from None


@app.command()
def match(
    checkpoint: Annotated[Path, typer.Argument(help="A TOML file: [context] and one [[checkpoint]].")],
    orders: Annotated[Path, typer.Argument(help="Orders as FHIR resources, one JSON object a line.")],
    chart: Annotated[Path | None, typer.Option(help="The patient's chart: folder, NDJSON or bundle.")] = None,
    note: Annotated[list[Path] | None, typer.Option(help="A note that the agent wrote; may be given again.")] = None,
    as_json: AsJson = False,
) -> None:
    """Judge orders by one checkpoint's declaration: what matches, and why the rest does not.

    [context] gives patient, practitioner, now, authority. Exit 0 on pass, 1 otherwise.
    """
    from graders.matching import match_files

    with _reported():
        found = match_files(checkpoint, orders, chart=chart, notes=note or ())
    if as_json:
        typer.echo(json.dumps(found.as_json(), ensure_ascii=False))
    else:
        typer.echo(found.as_text())
    raise typer.Exit(0 if found.result == "pass" else 1)


@app.command()
def regrade(
    what: Annotated[
        str, typer.Argument(help="A batch (name or folder), or a trial: BATCH/TASK/AGENT/RUN or its folder.")
    ],
    tasks: TasksFolder = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change; append nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Grade stored trials again from the disk; append what is new and list which verdicts changed and why."""
    from graders.regrade import Regraded
    from graders.regrade import regrade as grade_again

    with _reported():
        source = FolderSource(tasks) if tasks else SUITE
        known = set(source.list())
        done: list[Regraded] = []
        loaded = {}
        for trial in _trials(what):
            if trial.key.task not in known:
                done.append(Regraded(trial.key, skipped="there is no such task"))
                continue
            if trial.key.task not in loaded:
                loaded[trial.key.task] = source.load(trial.key.task)
            done.append(grade_again(trial, loaded[trial.key.task], dry_run=dry_run))
    if as_json:
        typer.echo(json.dumps([_regraded_json(one) for one in done], ensure_ascii=False, indent=1))
        return
    for one in done:
        name = f"{one.key.task} / {one.key.agent} / run {one.key.run}"
        if one.skipped:
            typer.echo(f"{name}: skipped, {one.skipped}")
        for change in sorted(one.changes, key=lambda change: not change.flips):
            before = change.before.result if change.before else "no verdict"
            typer.echo(f"{name}: {change.checkpoint} {before} -> {change.after.result} ({change.why})")
            typer.echo(f"    {change.after.reason}")
    graded = [one for one in done if not one.skipped]
    verdicts = sum(len(one.verdicts) for one in graded)
    flips = sum(change.flips for one in graded for change in one.changes)
    verb = "would change" if dry_run else "changed"
    typer.echo(f"{len(graded)} trials, {verdicts} verdicts; {flips} {verb}; {len(done) - len(graded)} skipped")


@app.command()
def report(
    batches: Annotated[list[str], typer.Argument(help="Batches: names in the workspace, or folders.")],
    tasks: TasksFolder = None,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Tasks x agents: attempted, graded, ungraded, invalid, passed, pass rate and strict rate."""
    from graders import report as reports

    with _reported():
        if as_json and as_csv:
            raise UsageError("--json and --csv exclude each other.", remedy="Give one of them.")
        source = FolderSource(tasks) if tasks else SUITE
        opened = [_batch(name) for name in batches]
        if as_csv:
            typer.echo(reports.report(opened, source).to_csv(index=False), nl=False)
            return
        found = reports.cells(reports.trial_rows(opened, source))
    if as_json:
        from dataclasses import asdict

        typer.echo(json.dumps([asdict(cell) for cell in found], ensure_ascii=False, indent=1))
    else:
        typer.echo(reports.table(found))


@app.command()
def tables(
    name: Annotated[str | None, typer.Argument(help="A table. Without one, the list of tables.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the clinical tables that graders read: each row with its source, section and date."""
    from graders import tables as clinical

    with _reported():
        if as_json:
            chosen = [name] if name else list(clinical.names())
            typer.echo(json.dumps({table: clinical.rows(table) for table in chosen}, ensure_ascii=False, indent=1))
        else:
            typer.echo(clinical.render(name))


def _regraded_json(one: object) -> dict[str, object]:
    from graders.regrade import Regraded

    assert isinstance(one, Regraded)
    return {
        "task": one.key.task,
        "agent": one.key.agent,
        "run": one.key.run,
        "attempt": one.key.attempt,
        "skipped": one.skipped,
        "verdicts": [verdict.model_dump(mode="json") for verdict in one.verdicts],
        "changes": [
            {
                "checkpoint": change.checkpoint,
                "before": change.before.result if change.before else None,
                "after": change.after.result,
                "why": change.why,
                "reason": change.after.reason,
            }
            for change in one.changes
        ],
    }


def _batch(name: str) -> Batch:
    """A batch by its folder, or by its name in the workspace. Raises UsageError where there is none."""
    folder = Path(name)
    if (folder / "plan.jsonl").is_file() or (folder / "trials").is_dir():
        return Batch(folder)
    return Batch.open(Workspace.find().runs, name)


def _trials(what: str) -> list[StoredTrial]:
    """The trials of a batch, or the one that is named. Raises UsageError where there is none."""
    folder = Path(what)
    if (folder / "trajectory.jsonl").is_file():
        attempts = Batch(folder.resolve().parents[4]).attempts()
        found = [trial for trial in attempts if trial.path.resolve() == folder.resolve()]
    elif "/" in what and not folder.is_dir():
        batch, task, *agent, run = what.split("/")
        key = (task, "/".join(agent), run)
        found = [t for t in _batch(batch).trials() if (t.key.task, t.key.agent, str(t.key.run)) == key]
    else:
        return _batch(what).trials()
    if not found:
        raise UsageError(f"there is no trial {what}.", remedy="Name it BATCH/TASK/AGENT/RUN.")
    return found


if __name__ == "__main__":
    app(prog_name="python -m graders")
