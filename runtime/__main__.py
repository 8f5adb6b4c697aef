"""python -m runtime: run agents on tasks, stop, resume and show what they did, list the tools, serve a chart."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from runtime.ehr.commands import ehr_app
from runtime.model_commands import models_app
from tasks.errors import UsageError, WorkbenchError

if TYPE_CHECKING:
    from runtime.batch import Finished, Item
    from runtime.trial import Settings
    from tasks.manifest import Limits
    from tasks.package import Task
    from tasks.stored import Batch, StoredTrial

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Run agents on tasks.\n\nExit codes: 0 ok, 1 found faults, 2 usage, 3 environment.",
)
app.add_typer(ehr_app, name="ehr")
app.add_typer(models_app, name="models")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
Jobs = Annotated[int | None, typer.Option("--jobs", min=1, max=256, help="Trials at a time. Default: one a core.")]
Job = Annotated[str, typer.Option("--job", help="Tell progress to this job's folder.", hidden=True)]


@contextmanager
def _reported() -> Iterator[None]:
    """One clear message for what a user can meet, and its exit code."""
    try:
        yield
    except WorkbenchError as fault:
        typer.echo(str(fault), err=True)
        raise typer.Exit(fault.exit_code) from None


@app.command()
def run(
    tasks: Annotated[list[str] | None, typer.Argument(help="Ids of tasks, or folders that hold one.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Every task of the suite.")] = False,
    suite: Annotated[Path | None, typer.Option(help="A folder of tasks. Default: the bundled suite.")] = None,
    agent: Annotated[
        list[str] | None,
        typer.Option(help="oracle, oracle:PLAN, noop, shotgun, parrot, or provider/model; may be given again."),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, max=1000, help="Runs of each task and agent.")] = 1,
    jobs: Jobs = None,
    batch: Annotated[
        str | None, typer.Option(help="The batch's name in the workspace, new or there already. Default: the time.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The batch's folder, instead of a name in the workspace.")] = None,
    backend: Annotated[str | None, typer.Option(help="EHR backend. Default: as in workbench.toml.")] = None,
    turns: Annotated[int | None, typer.Option(min=1, help="At most so many turns a trial.")] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="At most so many tokens a trial.")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.001, help="At most so many seconds a trial.")] = None,
    cost: Annotated[float | None, typer.Option(min=0.0001, help="At most so many USD a trial.")] = None,
    seed: Annotated[int | None, typer.Option(help="Recorded, and given to models that take one. Default: 0.")] = None,
    retry_broken: Annotated[
        bool, typer.Option("--retry-broken", help="Run again what ended as config_error or internal_error.")
    ] = False,
    as_json: AsJson = False,
    job: Job = "",
) -> None:
    """Run agents on tasks. What is there already and still holds is not run again. In a batch that is there already,
    limits, backend and seed that are not given are those of the batch.

    Exit 0 when every trial finished, whatever its verdict.
    """
    with _reported():
        from runtime.batch import Item, settings_of
        from runtime.trial import Settings
        from tasks.manifest import Limits
        from tasks.stored import Batch
        from tasks.workspace import Workspace

        workspace = Workspace.find()
        folder = out.absolute().parent if out else workspace.runs
        called = out.absolute().name if out else batch or f"{datetime.now().astimezone():%Y%m%d-%H%M%S}"
        there = Batch(folder / called) if (folder / called / "plan.jsonl").is_file() else None
        configured = workspace.settings
        base = (settings_of(there) if there else None) or Settings(
            backend=configured.ehr.backend, limits=configured.limits
        )
        given = Limits(turns=turns, tokens=tokens, seconds=seconds, cost=cost)
        settings = Settings(
            profile=base.profile,
            backend=_backend(backend or base.backend),
            limits=_over(base.limits, given),
            seed=base.seed if seed is None else seed,
        )
        chosen = _tasks(tasks or [], every, suite)
        _check_plans(agent or [], [task for task, _ in chosen])
        items = [Item(task, name, runs, where) for task, where in chosen for name in _agents(agent or [], task)]
        opened = Batch.open(folder, called) if (folder / called).is_dir() else Batch.create(folder, called)
        _run(opened, items, settings, jobs, retry_broken, as_json, job)


def _over(configured: Limits, given: Limits) -> Limits:
    """The limits given at the shell, and where none is those of the batch, or of workbench.toml for a new one."""
    from tasks.manifest import Limits

    pick = {name: getattr(given, name) or getattr(configured, name, None) for name in Limits.model_fields}
    return Limits(**pick)


def _backend(name: str) -> str:
    from runtime.ehr import BACKENDS

    if name not in BACKENDS:
        raise UsageError(
            f"There is no EHR backend named {name!r}.", remedy=f"Choose one of: {', '.join(sorted(BACKENDS))}."
        )
    return name


def _check_plans(agents: list[str], tasks: list[Task]) -> None:
    """A plan that no task has is a slip of the pen; one that some lack is an outcome of theirs."""
    known = sorted({plan for task in tasks for plan in task.plans})
    for name in agents:
        agent, _, plan = name.partition(":")
        if agent == "oracle" and plan and plan not in known:
            raise UsageError(f"No task here has a plan {plan!r}.", remedy=f"There are: {', '.join(known) or 'none'}.")


def _tasks(names: list[str], every: bool, suite: Path | None) -> list[tuple[Task, Path]]:
    from runtime.slot import load_folder
    from tasks.package import SUITE, FolderSource

    source = FolderSource(suite) if suite else SUITE
    if every == bool(names):
        raise UsageError("Say which tasks to run.", remedy="Give ids or folders, or --all, and not both.")
    chosen = source.list() if every else names
    if not chosen:
        raise UsageError(f"There is no task in {source.root}.", remedy="Name another folder with --suite.")
    folders = []
    for name in dict.fromkeys(chosen):
        path = Path(name)
        here = path if (path / "task.toml").is_file() else source.root / name
        if not here.is_dir():
            source.files(name)  # says which tasks there are
        folders.append(here.absolute())
    return [(load_folder(folder), folder) for folder in folders]


def _agents(names: list[str], task: Task) -> list[str]:
    from runtime.agents import BUILT_IN, is_built_in, oracles
    from tasks.stored import agent_folder

    if not names:
        raise UsageError("Say which agent to run.", remedy=f"Give --agent: {', '.join(BUILT_IN)}, or provider/model.")
    found: list[str] = []
    for name in dict.fromkeys(names):
        agent_folder(name)
        if not is_built_in(name) and "/" not in name:
            raise UsageError(
                f"There is no agent {name!r}.", remedy=f"Choose one of {', '.join(BUILT_IN)}, or provider/model."
            )
        found += oracles(task) if name == "oracle" else [name]
    return list(dict.fromkeys(found))


def _run(
    batch: Batch,
    items: list[Item],
    settings: Settings,
    jobs: int | None,
    retry_broken: bool,
    as_json: bool,
    job: str,
) -> None:
    from runtime.batch import counts, run_batch
    from runtime.executors import LocalExecutor
    from tasks.progress import to_job, to_shell
    from tasks.workspace import Workspace

    # SIGTERM ends a batch as Ctrl-C does: what runs stops between two steps.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    total = sum(item.runs for item in items)
    slots = min(jobs or os.cpu_count() or 1, total)
    trials: list[dict[str, Any]] = []
    by_id = {item.task.id: item.task for item in items}
    progress = to_job(Workspace.find().jobs / job) if job else to_shell()
    progress.begin(f"Batch {batch.name}, {slots} at a time", total)
    for note in _clocks(by_id.values()):
        progress.note(note)

    def finished(one: Finished) -> None:
        line = _finished(one, by_id[one.key.task])
        trials.append(line)
        if remark := _remark(one, line):
            progress.note(f"{line['task']} · {line['agent']} · run {line['run']}: {remark}")
        state = ", ".join(part for part in (line["outcome"] or "not run", line["result"]) if part)
        progress.step(f"{line['task']} · {line['agent']} · run {line['run']}", state)

    try:
        with LocalExecutor(slots) as executor:
            tally = run_batch(batch, items, settings, executor, progress=finished, retry_broken=retry_broken)
    except WorkbenchError as fault:
        progress.fail(str(fault))
        raise
    if tally.is_complete:
        progress.end(f"{batch.name} is complete")
    else:
        progress.fail(f"{batch.name} is not complete")
    if as_json:
        said = {"batch": batch.name, "path": str(batch.path), "outcomes": dict(tally.outcomes), "trials": trials}
        typer.echo(json.dumps(said | {"unfinished": tally.unfinished, "stopped": tally.stopped}))
    else:
        typer.echo(f"{counts(tally.outcomes) or 'nothing'} in {batch.name} ({batch.path}).")
        for left in tally.unfinished:
            typer.echo(f"not finished: {left}")
        if not tally.is_complete:
            typer.echo(f"Go on with: python -m runtime resume {batch.name}")
    raise typer.Exit(0 if tally.is_complete else 1)


def _clocks(tasks: Iterable[Task]) -> Iterator[str]:
    """A sentence for each draft that has no clock of its own."""
    from runtime.clock import clock_of

    for task in tasks:
        if task.meta.context is None or task.meta.context.now is None:
            clock = clock_of(task)
            yield f"{task.id}: the clock is {clock.now.isoformat(timespec='seconds')}, {clock.source}"


def _finished(finished: Finished, task: Task) -> dict[str, Any]:
    from graders.score import task_result

    trial = finished.trial
    outcome = trial.outcome if trial else None
    result = ""
    if trial is not None and outcome is not None and trial.verdicts():
        result = task_result(task.checkpoints, trial.verdicts(), task.grade_digest).result
    return {
        "task": finished.key.task,
        "agent": finished.key.agent,
        "run": finished.key.run,
        "attempt": finished.key.attempt,
        "need": finished.need.value,
        "outcome": finished.outcome.value if finished.outcome else None,
        "detail": finished.detail,
        "result": result,
        "turns": outcome.turns if outcome else 0,
        "calls": outcome.calls if outcome else 0,
        "seconds": outcome.wall_seconds if outcome else 0.0,
        "flags": list(outcome.flags) if outcome else [],
    }


def _remark(finished: Finished, line: dict[str, Any]) -> str:
    """What is worth saying of a trial besides its outcome and result."""
    parts = [*line["flags"]]
    if finished.need.value == "reuse":
        parts.insert(0, f"stored, {finished.detail}")
    elif finished.need.value == "regrade":
        parts.insert(0, f"graded again, {finished.detail}")
    elif finished.detail:
        parts.insert(0, finished.detail)
    return "; ".join(parts)


@app.command()
def resume(
    batch: Annotated[str, typer.Argument(help="A batch: its name in the workspace, or its folder.")],
    jobs: Jobs = None,
    retry_broken: Annotated[
        bool, typer.Option("--retry-broken", help="Run again what ended as config_error or internal_error.")
    ] = False,
    as_json: AsJson = False,
    job: Job = "",
) -> None:
    """Run what a stopped or killed batch has left. By its plan; what needs it is graded again."""
    with _reported():
        from runtime.batch import items_of

        opened = _batch(batch)
        items, settings = items_of(opened)
        _run(opened, items, settings, jobs, retry_broken, as_json, job)


@app.command()
def replay(
    trial: Annotated[str, typer.Argument(help="BATCH/TASK/AGENT/RUN or the trial's folder.")],
    as_json: AsJson = False,
) -> None:
    """Play a stored trial again on a fresh record and compare.

    The model's stored answers are played; calls, results and verdicts are compared.

    Exit 0 when all are the same.
    """
    with _reported():
        from dataclasses import asdict

        from runtime.batch import find_trial, items_of
        from runtime.replay import replay as play
        from tasks.stored import Batch

        stored = find_trial(trial, _batch)
        if stored is None:
            raise UsageError("Name one trial.", where=trial, remedy="Write BATCH/TASK/AGENT/RUN.")
        items, settings = items_of(Batch(stored.path.parents[4]))
        (task, *_) = [item.task for item in items if item.task.id == stored.key.task]
        done = play(stored, task, settings)
        if as_json:
            typer.echo(json.dumps(asdict(done)))
        else:
            typer.echo(f"{done.turns} turns, {done.calls} calls, {done.verdicts} verdicts, from {done.source}")
            for difference in done.differences:
                typer.echo(f"  {difference}")
            typer.echo("The same." if not done.differences else "Not the same.")
        raise typer.Exit(1 if done.differences else 0)


@app.command()
def stop(
    batch: Annotated[str, typer.Argument(help="A batch: its name in the workspace, or its folder.")],
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for it.")] = 60.0,
) -> None:
    """Stop a running batch cleanly. What runs ends after the step at hand, and can be resumed."""
    with _reported():
        from runtime.batch import request_stop

        opened = _batch(batch)
        stopped = request_stop(opened, wait_seconds=wait)
        typer.echo(f"{opened.name} is stopped." if stopped else f"{opened.name} is not running.")


@app.command()
def show(
    what: Annotated[
        str, typer.Argument(help="A batch (name or folder), or a trial: BATCH/TASK/AGENT/RUN or its folder.")
    ],
    as_json: AsJson = False,
) -> None:
    """Show a batch's trials, or one trial step by step in plain words."""
    with _reported():
        from runtime.batch import find_trial

        trial = find_trial(what, _batch)
        if trial is not None:
            _show_trial(trial, as_json)
        else:
            _show_batch(_batch(what), as_json)


def _show_batch(batch: Batch, as_json: bool) -> None:
    from dataclasses import asdict

    from graders.report import trial_rows
    from runtime.batch import is_running

    rows = trial_rows([batch])
    if as_json:
        said = [asdict(row) for row in rows]
        typer.echo(json.dumps({"batch": batch.name, "running": is_running(batch), "trials": said}, default=str))
        return
    typer.echo(f"{batch.name}: {len(rows)} trials{', running' if is_running(batch) else ''}  {batch.path}")
    for row in rows:
        words = f"  {row.task}  {row.agent}  run {row.run} attempt {row.attempt}: {row.outcome}"
        words += f", {row.result}" if row.result else ""
        typer.echo(words + (", draft" if row.draft else "") + (f"  ({row.note})" if row.note else ""))
    for fault in batch.damage():
        typer.echo(f"  damaged: {fault}", err=True)


def _show_trial(trial: StoredTrial, as_json: bool) -> None:
    from runtime.telling import steps, told

    outcome = trial.outcome
    if as_json:
        said = {
            "key": trial.key.model_dump(mode="json"),
            "path": str(trial.path),
            "outcome": outcome.model_dump(mode="json") if outcome else None,
            "alive": trial.alive,
            "events": [event.model_dump(mode="json") | {"words": told(event)} for event in trial.events()],
            "writes": [write.model_dump(mode="json") for write in trial.writes()],
            "verdicts": [verdict.model_dump(mode="json") for verdict in trial.verdicts()],
            "files": trial.files(),
        }
        typer.echo(json.dumps(said, ensure_ascii=False))
        return
    key = trial.key
    state = "is running" if trial.alive else "its process is gone; resume the batch"
    typer.echo(f"{key.task}  {key.agent}  run {key.run} attempt {key.attempt}: {outcome.outcome if outcome else state}")
    for step in steps(trial):
        typer.echo(step)
    for name, verdict in trial.latest_verdicts().items():
        typer.echo(f"  {name}: {verdict.result} ({verdict.grader.kind}) {verdict.reason}")
    if outcome is not None:
        typer.echo(
            f"  {outcome.turns} turns, {outcome.calls} calls, {outcome.wall_seconds:.2f} s {outcome.detail}".rstrip()
        )
        for flag in outcome.flags:
            typer.echo(f"  {flag}")
    for fault in trial.damage():
        typer.echo(f"  damaged: {fault}", err=True)


def _batch(name: str) -> Batch:
    """A batch by its folder, or by its name in the workspace. Raises UsageError where there is none."""
    from tasks.stored import Batch
    from tasks.workspace import Workspace

    folder = Path(name)
    if (folder / "plan.jsonl").is_file() or (folder / "trials").is_dir():
        return Batch(folder.absolute())
    return Batch.open(Workspace.find().runs, name)


@app.command()
def tools(
    profile: Annotated[str, typer.Option(help="The tool profile.")] = "paper",
    as_json: Annotated[bool, typer.Option("--json", help="Print the schemas that models are given.")] = False,
) -> None:
    """List the tools that an agent has."""
    with _reported():
        from runtime.tools import tool_specs

        if profile != "paper":
            raise UsageError(f"There is no tool profile {profile!r} yet.", remedy="Use paper.")
        specs = tool_specs("paper")
        if as_json:
            told = [{"name": s.name, "description": s.description, "parameters": s.parameters} for s in specs]
            typer.echo(json.dumps(told, indent=1))
            return
        for spec in specs:
            typer.echo(f"{spec.name}\n    {spec.description}")
            required = spec.parameters.get("required", [])
            names = [f"{name} (required)" if name in required else name for name in spec.parameters["properties"]]
            typer.echo(f"    {', '.join(names)}")


if __name__ == "__main__":
    app()
