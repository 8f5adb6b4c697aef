"""What the commands share: who acts, how a fault is told, how input files are read, how answers are printed."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tasks.errors import UsageError, WorkbenchError

if TYPE_CHECKING:
    from authoring.desk import Desk, Done
    from authoring.vouching import Errand
    from tasks.review.state import ReviewState

TaskId = Annotated[str, typer.Argument(help="The task's id.", metavar="TASK", show_default=False)]
Actor = Annotated[
    str | None,
    typer.Option("--as", help="Who acts: an id of workbench.toml. Default: whoever has git's user.email."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
ReviewId = Annotated[
    str | None,
    typer.Option("--review-id", help="An id for this submission: sent twice, it counts once. Default: a new one."),
]
Reason = Annotated[str, typer.Option("--reason", help="Why; it stands in the record.", show_default=False)]


@contextmanager
def reported() -> Iterator[None]:
    """One clear message for what a user can meet, and its exit code."""
    try:
        yield
    except WorkbenchError as fault:
        typer.echo(str(fault), err=True)
        raise typer.Exit(fault.exit_code) from None


def desk(actor: str | None, *, reads: bool = False, errand: Callable[[str], Errand] | None = None) -> Desk:
    """The desk of whoever acts, at this shell's workspace. What only reads needs nobody.

    Nobody is verified at a shell. `errand`: what a person of that id would be doing; a job that a page started for a
    verified person has a voucher for just that.
    """
    from authoring.desk import Desk
    from authoring.library import open_store
    from authoring.vouching import taken, vouched
    from tasks.people import Person, acting
    from tasks.workspace import Workspace

    workspace = Workspace.find()
    try:
        who = acting(workspace.settings.people, actor)
    except UsageError:
        if actor is not None or not reads:
            raise
        who = Person(id="reader", name="Reader", email="reader@workbench.invalid", roles=("researcher",))
    voucher = taken()
    verified = errand is not None and vouched(workspace, errand(who.id), voucher)
    return Desk(workspace, open_store(workspace), who, verified=verified)


def read_table(path: Path | None, what: str) -> dict[str, Any]:
    """A TOML or JSON file as a table. Raises UsageError where it cannot be read."""
    if path is None:
        raise UsageError(
            f"no file with the {what} is named.", remedy="Say --from FILE; --template prints one to fill in."
        )
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        why = getattr(fault, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"the file cannot be read: {why}.", where=str(path)) from None
    try:
        value = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (json.JSONDecodeError, tomllib.TOMLDecodeError) as fault:
        raise UsageError(
            f"it is not valid {'JSON' if path.suffix == '.json' else 'TOML'}: {fault}.", where=str(path)
        ) from None
    if not isinstance(value, dict):
        raise UsageError("a table is wanted.", where=str(path), remedy="--template prints one to fill in.")
    return value


def print_json(value: Any) -> None:
    """A value as JSON."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=1, default=str))


def told(done: Done, said: str, *, as_json: bool) -> None:
    """What a submission came to."""
    if as_json:
        events = [json.loads(event.model_dump_json()) for event in done.events]
        print_json({"commit": done.commit, "again": done.again, "events": events})
        return
    where = f" Commit {done.commit[:12]}." if done.commit else ""
    typer.echo(f"{said}{' (it was in already)' if done.again else ''}.{where}")


def one_of(ids: list[str], given: str, what: str) -> str:
    """The id that `given` begins; long ids need not be typed whole. Raises UsageError for none or several."""
    found = [id for id in ids if id == given] or [id for id in ids if given and id.startswith(given)]
    if len(found) != 1:
        raise UsageError(
            f"{given!r} names {'no' if not found else 'more than one'} {what}.",
            remedy="`authoring status` and `authoring show` list them.",
        )
    return found[0]


def change_of(state: ReviewState, given: str) -> str:
    """A change by the beginning of its id."""
    return one_of(list(state.changes), given, "change")


def finding_of(state: ReviewState, given: str) -> str:
    """A finding by the beginning of its id."""
    return one_of(list(state.findings), given, "finding")
