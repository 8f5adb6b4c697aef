"""The publish gate at the shell: each check as it ends, the mutation score, the survivors, the variants that failed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from authoring.commands.shell import Actor, AsJson, ReviewId, desk, print_json, reported
from authoring.commands.working import Job, errand, working
from tasks.errors import UsageError

if TYPE_CHECKING:
    from authoring.desk import Desk
    from authoring.gate import Check, GateResult

#: What a job is sent to do that only looks: its voucher is good for no other command.
LOOK = "gate --dry-run"


def gate(
    task: Annotated[str | None, typer.Argument(help="A task's id.", metavar="[TASK]", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="Every task.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option("--dir", help="A package's folder, or a folder of packages, instead of the store; not recorded."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Record nothing.")] = False,
    actor: Actor = None,
    review_id: ReviewId = None,
    as_json: AsJson = False,
    job: Job = "",
) -> None:
    """Run the publish gate and record what it found.

    It becomes an event of the task. Exit 1 where a check fails.

    Each check is printed as it ends; then the mutation score, each mutant that no checkpoint caught, and each harmless
    variant that one failed.
    """
    results = []
    with reported():
        if (task is not None) + every + (folder is not None and task is None and not every) != 1:
            raise UsageError("name one task, or --all, or --dir DIR.", remedy="python -m authoring gate --help")
        if job:
            if task is None or actor is None or folder is not None:
                raise UsageError("a job gates one task of the store, for somebody.")
            if dry_run:
                _to_look(task, actor, job)
            else:
                _as_job(task, actor, review_id, job)
            return
        if folder is not None:
            for id, files in _packages(folder, task).items():
                results.append(_run(id, files, as_json))
        else:
            mine = _desk(actor, dry_run)
            for id in _ids(mine[0], task):
                results.append(_from_store(mine, id, review_id, as_json))
    if as_json:
        told = [one.as_json() for one in results]
        print_json(told[0] if task is not None else told)
    if not all(one.passed for one in results):
        raise typer.Exit(1)


def _as_job(task: str, actor: str, review_id: str | None, job: str) -> None:
    """Gate and record, told to the job's folder. A gate that fails is an answer, and no failure of the job."""
    mine = desk(actor, errand=errand("gate", task, review_id, job))
    with working(mine, job, f"The gate on {task}", "Stopped. Nothing was recorded.") as work:
        with mine.store.at() as view:
            at = mine.snapshot(view, task)
            files, again = at.files, review_id is not None and review_id in at.state.submissions
        if not again:
            mine.record_gate(task, work.gate(files, task), review_id=review_id)


def _to_look(task: str, actor: str, job: str) -> None:
    """Gate, record nothing, and leave what every check found in the job's folder, for a page to show."""
    from authoring.gate.results import keep
    from tasks.review.permissions import refuse_unverified

    mine = desk(actor, errand=errand(LOOK, task, None, job))
    with working(mine, job, f"Every check on {task}", "Stopped. Nothing is kept of it.") as work:
        with mine.store.at() as view:
            at = mine.snapshot(view, task)
            refuse_unverified(at.meta.data_class, verified=mine.verified)
            files = at.files
        keep(mine.workspace.jobs / job, work.gate(files, task))


def _desk(actor: str | None, dry_run: bool) -> tuple[Desk, bool]:
    """(the desk, whether what is found is recorded): an event needs a person."""
    if dry_run:
        return desk(actor, reads=True), False
    try:
        return desk(actor), True
    except UsageError:
        if actor is not None:
            raise
        return desk(None, reads=True), False


def _ids(mine: Desk, task: str | None) -> list[str]:
    if task is not None:
        return [task]
    with mine.store.at() as view:
        return sorted(view.tasks())


def _from_store(mine: tuple[Desk, bool], task: str, review_id: str | None, as_json: bool) -> GateResult:
    desk_, record = mine
    with desk_.store.at() as view:
        files = desk_.snapshot(view, task).files
    result = _run(task, files, as_json)
    if record:
        desk_.record_gate(task, result, review_id=review_id)
    if not as_json:
        typer.echo("Recorded." if record else "Not recorded: name a person with --as to record it.")
    return result


def _packages(folder: Path, task: str | None) -> dict[str, Mapping[str, bytes]]:
    from tasks.package import FolderSource

    if (folder / "task.toml").is_file():
        source, ids = FolderSource(folder.resolve().parent), [folder.resolve().name]
    else:
        source = FolderSource(folder)
        ids = source.list() if task is None else [task]
    if not ids:
        raise UsageError("there is no package in this folder.", where=str(folder), remedy="Name a folder of packages.")
    return {id: source.files(id) for id in ids}


def _run(task: str, files: Mapping[str, bytes], as_json: bool) -> GateResult:
    # It brings in the runtime and the graders, which no other command needs.
    from authoring.gate import run_gate

    if as_json:
        return run_gate(files, task=task)
    typer.echo(task)
    result = run_gate(files, task=task, progress=_tell)
    if result.mutation_score is not None:
        caught = len(result.mutants) - len(result.survivors)
        typer.echo(f"  mutation score {result.mutation_score:.1%} ({caught} of {len(result.mutants)} caught)")
    for one in result.survivors:
        typer.echo(f"  survived  {one.name}")
    if result.variants:
        passed = len(result.variants) - len(result.broken_variants)
        typer.echo(f"  harmless variants: {passed} of {len(result.variants)} pass")
    for one in result.broken_variants:
        typer.echo(f"  failed    {one.name}: {', '.join(one.checkpoints)}: {'; '.join(one.why)}")
    typer.echo(f"  {'passed' if result.passed else 'FAILED'} in {result.seconds:.1f} s")
    return result


def _tell(check: Check) -> None:
    typer.echo(f"  {check.state:<8}  {check.name}{': ' + check.detail if check.detail else ''}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("gate")(gate)
