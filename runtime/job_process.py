"""What a background job runs in: a command as `python -m` runs it, and what is written down of how it ended.

    python -m runtime.job_process MODULE [ARGUMENT ...] --job ID

An error that nobody expected goes into the job's log as an id, its kind and lines of code, never with its message,
which may quote the chart; the page is told the same id.
"""

from __future__ import annotations

import runpy
import secrets
import sys
import threading
from collections.abc import Sequence

from runtime.jobs import EXIT
from tasks.progress import to_job
from tasks.stored import write_whole
from tasks.tracing import traced
from tasks.workspace import Workspace

#: Exit code of a command that an unexpected error ended; those of our commands are 0 to 3.
BROKEN = 70
#: As of a command that Ctrl-C ended.
INTERRUPTED = 130


def run(module: str, arguments: Sequence[str]) -> int:
    """Run the command; its exit code."""
    folder = Workspace.find().jobs / arguments[-1]
    sys.argv = [module, *arguments]
    threading.excepthook = _in_a_thread
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = _code(ended)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:  # noqa: BLE001 (the last line before a log and a page: an id, never the message)
        code = BROKEN
        mark = _record(error)
        to_job(folder).fail(
            f"It stopped on an error that nobody expected. Error {mark}. What was stored before is kept; give this "
            "number to whoever looks after the workbench: the job's log has the details under it."
        )
    write_whole(folder / EXIT, f"{code}\n")
    return code


def _code(ended: SystemExit) -> int:
    if ended.code is None or isinstance(ended.code, int):
        return ended.code or 0
    sys.stderr.write(f"{ended.code}\n")
    return 1


def _in_a_thread(ended: threading.ExceptHookArgs) -> None:
    if ended.exc_value is not None and not isinstance(ended.exc_value, SystemExit):
        _record(ended.exc_value)


def _record(error: BaseException) -> str:
    mark = secrets.token_hex(4)
    sys.stderr.write(f"error {mark}: {traced(error)}\n")
    return mark


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], sys.argv[2:]))
