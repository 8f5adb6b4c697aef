"""python -m tasks.casebook [--check] [TASK]: rebuild the bundled packages, or see that they are up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tasks
from tasks.casebook import building
from tasks.errors import WorkbenchError

SUITE = Path(tasks.__file__).resolve().parent / "suite"


def main(
    task: Annotated[str | None, typer.Argument(help="One task; by default every case.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 where a package differs.")] = False,
    out: Annotated[Path, typer.Option("--out", help="The folder that holds the packages.")] = SUITE,
) -> None:
    """Rebuild the packages of tasks/suite/ byte for byte."""
    stale = False
    try:
        for name in [task] if task else sorted(building.cases()):
            files = building.build(name)
            if not check:
                building.write(files, out / name)
                typer.echo(f"{name}: {len(files)} files written")
                continue
            found = list(building.differences(files, out / name))
            for difference in found:
                typer.echo(f"{out.name}/{name}/{difference.path} {difference.what}")
            stale = stale or bool(found)
            if not found:
                typer.echo(f"{name}: {len(files)} files, as built")
    except WorkbenchError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(error.exit_code) from None
    if stale:
        typer.echo("Rebuild with: python -m tasks.casebook", err=True)
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
