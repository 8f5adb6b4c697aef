"""Where trials run. Every executor runs the same function in a subprocess a slot and gives the same results.

`local` is here; `dask` (its workers are daemonic, so a subprocess a slot there too) joins with the same four methods.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from runtime.slot import TrialRequest, TrialResult

#: The folder that the packages stand in, so that a slot finds them from wherever the command was started.
_ROOT = Path(__file__).resolve().parent.parent

NOT_STARTED = "not started: the batch was stopped"
DIED = "the trial's process died"


class Executor(Protocol):
    """Runs trials, `slots` at a time."""

    slots: int

    def submit(self, request: TrialRequest) -> Future[TrialResult]:
        """Queue one trial. The future's result is never an exception."""
        ...

    def cancel(self) -> None:
        """Start nothing more, and ask what runs to stop between two steps."""
        ...

    def kill(self) -> None:
        """End what still runs, at once; such trials can be resumed."""
        ...

    def close(self) -> None:
        """Wait for what runs and release everything."""
        ...


class _Process:
    """One slot's subprocess, in a session of its own so that Ctrl-C at the shell reaches the scheduler alone."""

    def __init__(self) -> None:
        paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "runtime.slot"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,
        )

    def ask(self, request: TrialRequest) -> TrialResult:
        """Raises OSError or ValidationError where the process died or said nothing readable."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(request.model_dump_json().encode() + b"\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise OSError("no answer")
        return TrialResult.model_validate_json(line)

    def send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(number)

    def end(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class LocalExecutor:
    """Trials in subprocesses of this machine."""

    def __init__(self, slots: int = 1) -> None:
        self.slots = slots
        self._pool = ThreadPoolExecutor(slots, thread_name_prefix="slot")
        self._idle: queue.LifoQueue[_Process] = queue.LifoQueue()
        self._all: list[_Process] = []
        self._lock = threading.Lock()
        self._stopped = False

    def submit(self, request: TrialRequest) -> Future[TrialResult]:
        return self._pool.submit(self._run, request)

    def _run(self, request: TrialRequest) -> TrialResult:
        try:
            process = self._take()
        except OSError as error:
            # Out of memory, processes or open files: this trial stays to be run, and the others go on.
            return TrialResult(error=f"not started: {error.strerror or type(error).__name__}")
        if process is None:
            return TrialResult(error=NOT_STARTED)
        try:
            result = process.ask(request)
        except (OSError, ValidationError):
            self._drop(process)
            return TrialResult(error=DIED)
        self._idle.put(process)
        return result

    def _take(self) -> _Process | None:
        with self._lock:
            if self._stopped:
                return None
            with suppress(queue.Empty):
                return self._idle.get_nowait()
            process = _Process()
            self._all.append(process)
            return process

    def _drop(self, process: _Process) -> None:
        process.end()
        with self._lock:
            self._all.remove(process)

    def cancel(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with self._lock:
            self._stopped = True
            for process in self._all:
                process.send(number)

    def close(self) -> None:
        self._pool.shutdown(wait=True)
        with self._lock:
            processes, self._all = self._all, []
            self._stopped = True
        for process in processes:
            process.end()

    def __enter__(self) -> LocalExecutor:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None:
            self.cancel()
        self.close()
