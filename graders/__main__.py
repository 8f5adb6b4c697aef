"""python -m graders: match orders, grade again, report, calibrate, rebuild the paper's figures, tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graders.planned import PlannedSource
from tasks.errors import UsageError, WorkbenchError
from tasks.package import SUITE, FolderSource
from tasks.stored import Batch, StoredTrial
from tasks.workspace import Workspace

if TYPE_CHECKING:
    from graders.judge import Judge
    from tasks.progress import Progress

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Grade what agents did.\n\nExit codes: 0 ok, 1 found faults, 2 usage, 3 environment.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
Job = Annotated[str, typer.Option("--job", help="Tell progress to this job's folder.", hidden=True)]
Suite = Annotated[
    Path | None,
    typer.Option(help="A folder of tasks. Default: where the batch's plan found them.", show_default=False),
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
    checkpoint: Annotated[Path, typer.Argument(help="A TOML file with the table context and one checkpoint table.")],
    orders: Annotated[Path, typer.Argument(help="Orders as FHIR resources, one JSON object a line.")],
    chart: Annotated[Path | None, typer.Option(help="The patient's chart: folder, NDJSON or bundle.")] = None,
    note: Annotated[list[Path] | None, typer.Option(help="A note that the agent wrote; may be given again.")] = None,
    as_json: AsJson = False,
) -> None:
    """Judge orders by one checkpoint's declaration.

    What matches, and why the rest does not.

    The table context gives patient, practitioner, now, authority. Exit 0 on pass, 1 otherwise.
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
    suite: Suite = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change; append nothing.")] = False,
    as_json: AsJson = False,
    job: Job = "",
) -> None:
    """Grade stored trials again from the disk. What is new is appended; which verdicts changed, and why, is listed."""
    from graders import regrade as again

    with _reported(), _told(job, f"grade {what} again") as progress:
        batch, trials = _trials(what)
        source = FolderSource(suite) if suite else PlannedSource(batch)
        if progress is not None:
            progress.begin(f"grade {what} again", len(trials))
        with _judge() as judge:
            done = again.regrade_all(_stepped(trials, progress), source, dry_run=dry_run, judge=judge)
    typer.echo(again.as_json(done) if as_json else again.as_text(done, dry_run=dry_run))


class Form(StrEnum):
    """How a report is written."""

    table = "table"
    csv = "csv"
    parquet = "parquet"
    html = "html"
    json = "json"


class View(StrEnum):
    """What a report shows."""

    cells = "cells"
    agents = "agents"
    figures = "figures"
    comparisons = "comparisons"
    groups = "groups"
    workflows = "workflows"
    heat = "heat"
    failures = "failures"
    first_failures = "first-failures"
    judges = "judges"
    causes = "causes"
    gaps = "gaps"
    trials = "trials"
    verdicts = "verdicts"


@app.command()
def report(
    batches: Annotated[list[str], typer.Argument(help="Batches: names in the workspace, or folders.")],
    suite: Suite = None,
    view: Annotated[View, typer.Option(help="What to show; cells = tasks x agents.")] = View.cells,
    form: Annotated[Form, typer.Option("--format", help="html holds every view.")] = Form.table,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A file to write; needed for parquet.", show_default=False)
    ] = None,
    k: Annotated[int, typer.Option(min=1, help="The k of pass@k and pass^k.")] = 3,
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV: --format csv.")] = False,
    job: Job = "",
) -> None:
    """Results of batches: rates, pairs, failures, gaps.

    Tasks x agents with every denominator, rates by every convention.
    """
    from graders import report_files

    with _reported(), _told(job, f"report {view.value}"):
        if as_json and as_csv:
            raise UsageError("--json and --csv exclude each other.", remedy="Give one of them.")
        chosen = Form.json if as_json else Form.csv if as_csv else form
        made = report_files.made(
            [_batch(name) for name in batches],
            FolderSource(suite) if suite else None,
            view=view.value,
            form=chosen.value,
            k=k,
            cache=Workspace.find().cache,
        )
        if out is not None:
            report_files.written(out, made)
            typer.echo(f"Written: {out}")
        elif isinstance(made, bytes):
            raise UsageError("parquet is written to a file.", remedy="Name one with --out.")
        else:
            typer.echo(made, nl=not made.endswith("\n"))


@app.command()
def calibrate(
    batches: Annotated[list[str] | None, typer.Argument(help="Batches with physicians' verdicts.")] = None,
    suite: Suite = None,
    examples: Annotated[
        list[str] | None,
        typer.Option(help="Put the example texts of this task's judge checkpoints to the judge; may be given again."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """How far the judge agrees with physicians.

    By kind of checkpoint; or with a task's example texts.

    Exit 1 where an example text is judged as it should not be.
    """
    from dataclasses import asdict

    from graders import calibrate as calibration
    from graders.report import task_loader

    with _reported():
        if bool(batches) == bool(examples):
            raise UsageError("give batches, or --examples TASK.", remedy="One of the two.")
        if examples:
            with _judge() as judge:
                if judge is None:
                    raise UsageError("no judge is configured.", remedy="Name one under [use] in workbench.toml.")
                source = FolderSource(suite) if suite else SUITE
                tasks = [source.load(id) for id in examples]
                tried = [one for task in tasks for one in calibration.try_examples(task, judge)]
            lacking = [line for task in tasks for line in calibration.without_examples(task)]
            if as_json:
                typer.echo(
                    json.dumps({"tried": [asdict(one) for one in tried], "lacking": lacking}, ensure_ascii=False)
                )
            else:
                typer.echo(calibration.tried_text(tried, lacking))
            raise typer.Exit(0 if all(one.right for one in tried) else 1)
        pairs = []
        for name in batches or ():
            batch = _batch(name)
            load = task_loader(FolderSource(suite) if suite else PlannedSource(batch))
            for trial in batch.trials():
                task = load(trial.key.task)
                if not isinstance(task, str):
                    pairs += calibration.pairs_of(trial, task)
        found = calibration.agreement(pairs)
    if as_json:
        typer.echo(json.dumps(calibration.agreement_rows(found), ensure_ascii=False, indent=1))
    else:
        typer.echo(calibration.agreement_text(found))


@app.command("reproduce-paper")
def reproduce_paper(
    data: Annotated[Path | None, typer.Option(help="Another file of published figures.", show_default=False)] = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the paper's figures from its counts.

    pass@1, pass@3 and pass^3, by every convention. Exit 1 on a mismatch.
    """
    from graders import paper

    with _reported():
        found = paper.reproduce(paper.published(data))
    if as_json:
        rows = [
            {
                "model": one.model,
                "figure": one.figure,
                "printed": float(one.printed),
                "by_formula": {formula: float(value) for formula, value in one.by_formula.items()},
                "fits": list(one.fits),
                "matches": one.matches,
            }
            for one in found
        ]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=1))
    else:
        typer.echo(paper.as_text(found))
    raise typer.Exit(0 if all(one.matches for one in found) else 1)


@app.command()
def tables(
    name: Annotated[str | None, typer.Argument(help="A table. Without one, the list of tables.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the clinical tables that graders read. Each row with its source, section and date."""
    from graders import tables as clinical

    with _reported():
        if as_json:
            chosen = [name] if name else list(clinical.names())
            typer.echo(json.dumps({table: clinical.rows(table) for table in chosen}, ensure_ascii=False, indent=1))
        else:
            typer.echo(clinical.render(name))


@contextmanager
def _told(job: str, what: str) -> Iterator[Progress | None]:
    """The progress of a background job: its end, or the message that it failed with. None where it is no job."""
    if not job:
        yield None
        return
    from tasks.progress import to_job

    progress = to_job(Workspace.find().jobs / job)
    try:
        yield progress
    except WorkbenchError as fault:
        progress.fail(str(fault))
        raise
    progress.end(what)


def _stepped(trials: Iterable[StoredTrial], progress: Progress | None) -> Iterator[StoredTrial]:
    """The trials, each told as done once the next is asked for."""
    for trial in trials:
        yield trial
        if progress is not None:
            progress.step(f"{trial.key.task}, {trial.key.agent}, run {trial.key.run}")


@contextmanager
def _judge() -> Iterator[Judge | None]:
    """The judge of the workspace for as long as it is needed; None where none is configured."""
    from graders.judge import Judge

    judge = Judge.configured(Workspace.find())
    try:
        yield judge
    finally:
        if judge is not None:
            judge.close()


def _batch(name: str) -> Batch:
    """A batch by its folder, or by its name in the workspace. Raises UsageError where there is none."""
    folder = Path(name)
    if (folder / "plan.jsonl").is_file() or (folder / "trials").is_dir():
        return Batch(folder)
    return Batch.open(Workspace.find().runs, name)


def _trials(what: str) -> tuple[Batch, list[StoredTrial]]:
    """The trials of a batch, or the one that is named, with the batch. Raises UsageError where there is none."""
    folder = Path(what)
    if (folder / "trajectory.jsonl").is_file():
        here = folder.resolve()
        batch = Batch(here.parents[4])
        found = [trial for trial in batch.attempts() if trial.path.resolve() == here]
    elif folder.is_dir() or what.count("/") < 3:
        batch = _batch(what)
        return batch, batch.trials()
    else:
        name, task, *agent, run = what.split("/")
        batch = _batch(name)
        key = (task, "/".join(agent), run)
        found = [trial for trial in batch.trials() if (trial.key.task, trial.key.agent, str(trial.key.run)) == key]
    if not found:
        raise UsageError(f"there is no trial {what}.", remedy="Name it BATCH/TASK/AGENT/RUN.")
    return batch, found


if __name__ == "__main__":
    app(prog_name="python -m graders")
