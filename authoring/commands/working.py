"""A long command at work: it tells how far it is, to a person or to a job, and is stopped only where nothing is
written."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from tasks.errors import WorkbenchError

if TYPE_CHECKING:
    from types import FrameType

    from authoring.desk import Desk
    from authoring.gate import GateResult
    from authoring.vouching import Errand
    from tasks.progress import Progress

Job = Annotated[str, typer.Option("--job", help="Tell progress to this job's folder.", hidden=True)]


def errand(command: str, task: str, review_id: str | None, job: str) -> Callable[[str], Errand]:
    """What a job of this command was sent to do, for the person that it names."""
    from authoring.vouching import Errand

    return lambda person: Errand(person, command, task, review_id or "", job)


class Work:
    """Progress, and a stop that waits while something is being written. `asked`: somebody wants it to stop."""

    def __init__(self, teller: Callable[[], Progress]) -> None:
        self._teller = teller
        self.progress = teller()
        self.asked = False
        self._open = False

    @contextmanager
    def stoppable(self) -> Iterator[None]:
        """Here a stop takes effect at once, as KeyboardInterrupt; one that was asked for before too."""
        try:
            self._open = True
            self._check()
            yield
        finally:
            self._open = False
        self._check()

    def _check(self) -> None:
        if self.asked:
            raise KeyboardInterrupt

    def heard(self, number: int, where: FrameType | None) -> None:
        """Somebody asks it to stop."""
        self.asked = True
        if self._open:
            raise KeyboardInterrupt

    def gate(self, files: Mapping[str, bytes], task: str) -> GateResult:
        """The gate, told check by check. From when it has ended on nothing can be stopped: what it allows is written.

        Each run counts anew: where the first fails, others look for the change that it is due to.
        """
        # It brings in the runtime and the graders, which no other command needs.
        from authoring.gate import count, run_gate

        told = self._teller()
        with self.stoppable():
            told.begin("The gate", count(files, task=task))
            return run_gate(files, task=task, progress=lambda check: told.step(check.name, check.state))


@contextmanager
def working(mine: Desk, job: str, what: str, stopped: str) -> Iterator[Work]:
    """A command at work, ended or failed as it is. `stopped`: what is said where it was stopped.

    SIGTERM, which is how a page stops a job, is as good as Ctrl-C.
    """
    from tasks.progress import to_job, to_shell

    folder = mine.workspace.jobs / job
    folder.mkdir(parents=True, exist_ok=True)
    work = Work(lambda: to_job(folder) if job else to_shell())
    before = {number: signal.signal(number, work.heard) for number in (signal.SIGTERM, signal.SIGINT)}
    work.progress.begin(what)
    try:
        yield work
        work.progress.end("Done; the stop came too late." if work.asked else "Done")
    except WorkbenchError as fault:
        work.progress.fail(str(fault))
        raise
    except KeyboardInterrupt:
        work.progress.fail(stopped)
        typer.echo(stopped, err=True)
        raise typer.Exit(1) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
