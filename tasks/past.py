"""Commands on the past of a task in tasks.git: history and diff. They read; nobody has to be named."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tasks.errors import StoreError, UsageError, WorkbenchError

TaskId = Annotated[str, typer.Argument(help="The task's id.", metavar="TASK", show_default=False)]
#: Trailers that are worth a column of their own.
_SHOWN = ("Round", "Verdict")


def history(
    task: TaskId,
    limit: Annotated[int, typer.Option(help="How many, newest first.", min=1)] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a script.")] = False,
) -> None:
    """What happened to a task in the repository: who did what, when."""
    from tasks.store import Store
    from tasks.workspace import Workspace

    try:
        store = Store(Workspace.find().tasks_git)
        with store.at() as view:
            if task not in view.tasks():
                raise UsageError(f"there is no task '{task}'.", remedy=f"There are: {', '.join(view.tasks())}.")
        entries = store.history(task, limit=limit)
    except WorkbenchError as fault:
        raise _told(fault) from None
    if as_json:
        rows = [
            {"commit": one.hash, "author": one.author.name, "email": one.author.email, "at": one.at.isoformat(),
             "subject": one.subject, "trailers": dict(one.trailers)}
            for one in entries
        ]  # fmt: skip
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=1))
        return
    for one in entries:
        said = ", ".join(f"{key} {one.trailers[key]}" for key in _SHOWN if key in one.trailers)
        subject = one.subject.removeprefix(f"{task}: ")
        typer.echo(
            f"{one.hash[:12]}  {one.at:%Y-%m-%d %H:%M}  {one.author.name}: {subject}{f'  ({said})' if said else ''}"
        )


def diff(
    task: TaskId,
    old: Annotated[str, typer.Argument(help="A commit of its history, or how it begins.", show_default=False)],
    new: Annotated[str | None, typer.Argument(help="The other one. Default: the newest.")] = None,
) -> None:
    """What changed in a task between two commits, reviews left out."""
    from tasks.store import Store
    from tasks.workspace import Workspace

    try:
        store = Store(Workspace.find().tasks_git)
        known = [one.hash for one in store.history(limit=100_000)]
        said = store.diff(_whole(known, old), _whole(known, new) if new else store.head(), task)
    except WorkbenchError as fault:
        raise _told(fault) from None
    typer.echo(said, nl=False)


def _whole(known: list[str], given: str) -> str:
    found = [one for one in known if one.startswith(given)]
    if len(given) < 4 or len(found) != 1:
        raise UsageError(f"{given!r} names no one commit.", remedy="`python -m tasks history TASK` lists them.")
    return found[0]


def _told(fault: WorkbenchError) -> typer.Exit:
    if isinstance(fault, StoreError) and "not there" in fault.what:
        fault = StoreError(fault.what, where=fault.where, remedy="`python -m authoring status` makes one.")
    typer.echo(str(fault), err=True)
    return typer.Exit(fault.exit_code)
