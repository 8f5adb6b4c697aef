"""python -m tasks: list, show and validate task packages, and see what a set of them covers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from tasks.catalog import Catalog, Coverage, detail, row
from tasks.errors import UsageError, WorkbenchError
from tasks.folders import FolderFiles
from tasks.package import SUITE, Fault, FolderSource, Task, faults
from tasks.past import diff, history
from tasks.taxonomy import WORKFLOWS

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Task packages: list, show, validate, what they cover, and their history.\n\n"
    "Exit codes: 0 ok, 1 found faults, 2 usage, 3 environment.",
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


def _source(folder: Path | None) -> FolderSource:
    return FolderSource(folder) if folder is not None else SUITE


def _json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=1))


def _columns(rows: Sequence[Sequence[object]]) -> str:
    """Rows as aligned text; numbers to the right."""
    texts = [[str(cell) for cell in cells] for cells in rows]
    widths = [max(len(cells[n]) for cells in texts) for n in range(len(texts[0]))]
    numeric = [all(isinstance(cells[n], int) for cells in rows[1:]) and len(rows) > 1 for n in range(len(widths))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(cells, widths, numeric, strict=True)
        ).rstrip()
        for cells in texts
    )


@app.command("list")
def list_(tasks: TasksFolder = None, as_json: AsJson = False) -> None:
    """List the tasks, one a line.

    What cannot be read is named on stderr (exit 1).
    """
    with _reported():
        catalog = Catalog.of(_source(tasks))
    if as_json:
        _json([row(task) for task in catalog.tasks])
    elif catalog.tasks:
        lines = [("id", "specialty", "workflow", "checkpoints", "state", "title")]
        for task in catalog.tasks:
            one = row(task)
            state = "draft" if one["draft"] else "complete"
            lines.append((task.id, one["specialty"], one["workflow"], one["checkpoints"], state, one["title"]))
        typer.echo(_columns(lines))
    else:
        typer.echo("No task loads here." if catalog.broken else "No tasks here.")
    for error in catalog.broken:
        typer.echo(str(error), err=True)
    if catalog.broken:
        raise typer.Exit(1)


@app.command()
def show(
    id: Annotated[str, typer.Argument(help="The task's id.", show_default=False)],
    tasks: TasksFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show one task.

    Its facts, its instruction, its checkpoints, and what a release still needs.
    """
    with _reported():
        task = _source(tasks).load(id)
        found = detail(task)
    if as_json:
        _json(found)
    else:
        typer.echo(_described(task, found))


def _described(task: Task, found: dict[str, Any]) -> str:
    meta, context = task.meta, task.meta.context
    facts: list[tuple[str, object]] = [
        ("id", f"{task.id}, version {meta.version}, {meta.split.replace('_', ' ')}, data class {meta.data_class}"),
        ("specialty", f"{meta.specialty} ({meta.group})"),
        ("workflow", meta.workflow),
        ("patient", context.patient if context else "not stated"),
        ("practitioner", (context and context.practitioner) or "not stated"),
        ("clock", context.now.isoformat() if context and context.now else "not stated"),
        ("authority", (context and context.authority) or "not stated"),
        ("deliverables", ", ".join(found["deliverables"]) or "none"),
        ("chart", f"{sum(found['resources'].values())} resources: " + _counted(found["resources"])),
        ("plans", _counted(found["plans"]) or "none"),
        ("agent digest", found["agent_digest"]),
        ("grade digest", found["grade_digest"]),
    ]
    lines = [meta.title, "", _columns(facts), "", task.instruction.rstrip(), "", "Checkpoints", ""]
    if task.checkpoints:
        head = ("id", "criticality", "capability", "grader", "safety", "title")
        lines.append(
            _columns(
                [head]
                + [
                    (one.id, one.criticality, one.capability, one.grader, one.harm.kind if one.harm else "", one.title)
                    for one in task.checkpoints
                ]
            )
        )
    else:
        lines.append("none yet")
    if found["missing_for_release"]:
        lines += ["", "A release still needs", "", *(f"- {missing}" for missing in found["missing_for_release"])]
    return "\n".join(lines)


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


@app.command()
def validate(
    paths: Annotated[
        list[Path] | None, typer.Argument(help="Folders of task packages.", metavar="[PATH]...", show_default=False)
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Every task of the suite, or of --tasks.")] = False,
    release: Annotated[bool, typer.Option("--release", help="Ask also for what a draft may lack.")] = False,
    tasks: TasksFolder = None,
    as_json: AsJson = False,
) -> None:
    """Check packages in full, charts too.

    One message a fault, with file and line. Exit 1 where there is one.
    """
    with _reported():
        if bool(paths) == all_:
            raise UsageError("nothing to check is named." if not paths else "PATH and --all exclude each other.",
                             remedy="Name folders of packages, or say --all.")  # fmt: skip
        source = _source(tasks)
        folders = [source.root / id for id in source.list()] if all_ else [*(paths or ())]
        results = [(folder, _checked(folder, release=release)) for folder in folders]
    found = [fault for _, faults_ in results for fault in faults_]
    if as_json:
        _json(
            [
                {"path": str(folder), "faults": [{"place": fault.place, "message": fault.message} for fault in inside]}
                for folder, inside in results
            ]
        )
    else:
        for fault in found:
            typer.echo(str(fault))
        if results:
            bad = sum(bool(inside) for _, inside in results)
            said = f"{len(found)} {'fault' if len(found) == 1 else 'faults'} in {bad}" if found else "no faults"
            typer.echo(f"{len(results)} {'task' if len(results) == 1 else 'tasks'} checked: {said}.")
        else:
            typer.echo("No tasks here.")
    if found:
        raise typer.Exit(1)


def _checked(folder: Path, *, release: bool) -> list[Fault]:
    if not folder.is_dir():
        raise UsageError("there is no such folder.", where=str(folder), remedy="Name the folder of a task package.")
    inside = FolderSource(folder).list()
    if inside and not (folder / "task.toml").exists():
        raise UsageError(
            "this folder holds packages and is none itself.", where=str(folder), remedy=f"Say --tasks {folder} --all."
        )
    # `.` and `..` have no name of their own, and the id must be the folder's name.
    shown = folder if folder.name not in ("", "..") else folder.resolve()
    return faults(FolderFiles(folder), where=str(shown), release=release)


@app.command()
def coverage(tasks: TasksFolder = None, as_json: AsJson = False) -> None:
    """Count what the tasks cover.

    Tasks by group and workflow, checkpoints by capability and kind. Nothing that is empty is left out.
    """
    with _reported():
        catalog = Catalog.of(_source(tasks))
    covered = Coverage.of(catalog.tasks)
    if as_json:
        _json(asdict(covered))
    else:
        table: list[tuple[object, ...]] = [("tasks", *WORKFLOWS, "all")]
        for group, cells in covered.cells.items():
            table.append((group, *cells.values(), sum(cells.values())))
        sums = [sum(cells[workflow] for cells in covered.cells.values()) for workflow in WORKFLOWS]
        table.append(("all", *sums, covered.tasks))
        counts: list[tuple[object, ...]] = [("checkpoints", "")]
        counts += [(name.replace("_", " "), count) for name, count in covered.capabilities.items()]
        counts += [(f"  {name.replace('_', ' ')}", count) for name, count in covered.kinds.items()]
        counts += [("critical", covered.critical), ("safety", covered.safety), ("all", covered.checkpoints)]
        authorities: list[tuple[object, ...]] = [("authority", ""), *covered.authorities.items()]
        typer.echo("\n\n".join(_columns(part) for part in (table, counts, authorities)))
    for error in catalog.broken:
        typer.echo(str(error), err=True)
    if catalog.broken:
        raise typer.Exit(1)


app.command()(history)
app.command()(diff)


if __name__ == "__main__":
    app(prog_name="python -m tasks")
