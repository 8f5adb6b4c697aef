"""One trial slot: a subprocess that runs trials one after the other, a request a line in, a result a line out.

`python -m runtime.slot` is started by an executor. SIGTERM, or the executor's end of the pipe closing, asks the running
trial to stop between two steps; it then ends as `cancelled`, and the slot ends.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from functools import lru_cache
from pathlib import Path
from typing import TextIO

from pydantic import Field

from runtime.trial import Settings, run_trial
from tasks.errors import UsageError, WorkbenchError
from tasks.package import FolderSource, Task
from tasks.stored import StoredTrial
from tasks.strict import Strict
from tasks.trials import TrialKey, TrialOutcome


class TrialRequest(Strict):
    """What a slot needs to run one attempt."""

    batch: str = Field(description="the batch's folder")
    folder: str = Field(description="the task's own folder")
    key: TrialKey
    settings: Settings
    agent_digest: str = Field(description="the task as planned; a task that has changed since is not run")
    after: int | None = Field(default=None, description="the attempt to go on from; None: from the start")


class TrialResult(Strict):
    """What became of a request: the outcome on disk, or why there is none."""

    outcome: TrialOutcome | None = None
    error: str = ""


def load_folder(folder: Path, id: str = "") -> Task:
    """The task in a folder, whatever the folder is called.

    Raises PackageError, and UsageError where it holds another task than `id`.
    """
    folder = folder.absolute()
    task = FolderSource(folder.parent).load(folder.name)
    if id and task.id != id:
        raise UsageError(
            f"the folder holds the task {task.id}, not {id}.", where=str(folder), remedy="Name the right folder."
        )
    return task


@lru_cache(maxsize=2)
def _task(folder: str, id: str, digest: str) -> Task:
    task = load_folder(Path(folder), id)
    if task.agent_digest != digest:
        raise WorkbenchError("the task has changed since the batch was planned.", where=id, remedy="Run it again.")
    return task


def answer(request: TrialRequest, stop: threading.Event) -> TrialResult:
    """Run one request in this process."""
    try:
        task = _task(request.folder, request.key.task, request.agent_digest)
        batch = Path(request.batch)
        after = None
        if request.after is not None:
            after = StoredTrial.of(batch, request.key.model_copy(update={"attempt": request.after}))
        outcome = run_trial(task, request.key, batch, request.settings, cancelled=stop.is_set, after=after)
    except WorkbenchError as fault:
        return TrialResult(error=str(fault))
    return TrialResult(outcome=outcome)


def serve(lines: TextIO, out: TextIO) -> None:
    """Answer requests until the lines end or the slot is told to stop."""
    stop = threading.Event()
    waiting: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def halt(*_: object) -> None:
        stop.set()
        waiting.put(None)

    def read() -> None:
        for line in lines:
            waiting.put(line)
        # The executor is gone, perhaps killed: nobody will count this trial, so it stops where it can be resumed.
        halt()

    signal.signal(signal.SIGTERM, halt)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=read, daemon=True).start()
    while (line := waiting.get()) is not None and not stop.is_set():
        result = answer(TrialRequest.model_validate_json(line), stop)
        out.write(result.model_dump_json() + "\n")
        out.flush()


def main() -> None:
    """Serve on stdin and stdout; whatever else writes to stdout goes to stderr."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        serve(sys.stdin, out)
    except BrokenPipeError:
        os._exit(1)
    # The reader thread still holds stdin; leaving through the interpreter's shutdown would wait for its lock.
    out.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
