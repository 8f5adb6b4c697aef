"""W, the warm process, and its branches: they hold what a call needs and fork for it; none of them runs task code.

    W       holds Python and our modules, nothing of any task. Asked to branch, it forks a holder.
    holder  of a task: its files and chart. A branch of it holds one trial's evidence. It forks C for each call.

So C never shares memory with another task, nor with another trial. Started by runner.py as `python -I -c …` with an
empty environment and one socket. A call comes with the write end of a pipe, which only the fork keeps; the holder
answers on its socket how the fork ended and never sees what it said.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pickle
import select
import signal
import socket
import struct
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graders import tables
from graders.evidence import Evidence
from graders.orders import statements
from graders.sandbox import kernel
from graders.trust import CODE_FILE
from graders.verdicts import Judgement, Truth
from tasks.fhir.index import StoredIndex
from tasks.package import Task, load

#: Imported before any fork: what a checkpoint function may use, so that a call opens no file of ours.
PRELOADED = (
    "collections", "dataclasses", "datetime", "decimal", "fractions", "functools", "itertools", "json", "math", "re",
    "statistics", "string", "typing", "unicodedata", "zoneinfo",
    "graders.describe", "graders.lab_units", "graders.phrases", "graders.truths", "graders.verdicts",
    "graders.safety", "numpy", "tasks.fhir.search", "tasks.trials",
)  # fmt: skip
#: Read once before any fork: what the order readers build at their first use (names, classes, patterns) is then there.
_A_SENTENCE = "Start apixaban 5 mg by mouth twice daily for 7 days, check potassium in 1 week; refer to nephrology."
#: How long an answer may be, in bytes.
_MOST_BYTES = 262_144


class Holder:
    """What one process of the tree holds, and the requests that it answers until the other end closes."""

    def __init__(self, connection: socket.socket, readable: tuple[Path, ...]) -> None:
        self.connection = connection
        self.readable = readable
        self.task: Task | None = None
        self.evidence: Evidence | None = None
        self.branches: list[int] = []

    def serve(self) -> None:
        """Answer requests until the other end closes."""
        while True:
            request, descriptor = _receive(self.connection)
            if request is None:
                return
            try:
                _answer(self.connection, self._answered(request, descriptor))
            except Exception as fault:  # noqa: BLE001 (one request must not end a holder; a message may hold chart text)
                _answer(self.connection, {"ok": False, "fault": type(fault).__name__})
            finally:
                if descriptor is not None:
                    os.close(descriptor)

    def _answered(self, request: dict[str, Any], descriptor: int | None) -> dict[str, Any]:
        self.branches = [pid for pid in self.branches if os.waitpid(pid, os.WNOHANG) == (0, 0)]
        match request["ask"]:
            case "branch" if descriptor is not None:
                self._branch(descriptor)
            case "task":
                self._hold_task(request)
            case "evidence":
                self._hold_evidence(request)
            case "call" if descriptor is not None and self.evidence is not None:
                return _fork(self.evidence, request, descriptor, self.readable)
            case _:
                return {"ok": False, "fault": "nothing to call"}
        return {"ok": True}

    def _branch(self, descriptor: int) -> None:
        gc.freeze()
        pid = os.fork()
        if pid:
            self.branches.append(pid)
            return
        try:
            # A branch ends with the process that it came from, and knows no other socket than its own.
            kernel.end_with_parent()
            self.connection.close()
            with socket.socket(fileno=descriptor) as connection:
                branch = Holder(connection, self.readable)
                branch.task = self.task
                branch.serve()
        finally:
            os._exit(0)

    def _hold_task(self, request: dict[str, Any]) -> None:
        self.task = load(request["files"], where=request["where"])
        stored = self.task.chart.index
        if isinstance(stored, StoredIndex):
            # Columns are mapped when they are first asked for: of this chart, and of no other in the cache.
            self.readable = (*self.readable, stored.folder)

    def _hold_evidence(self, request: dict[str, Any]) -> None:
        if self.task is None:
            raise LookupError("no task")
        self.evidence = Evidence(
            task=self.task,
            chart=self.task.chart,
            created=request["created"],
            calls=request["calls"],
            files=request["texts"],
        )
        # Computed here once and shared by every fork of this trial, instead of in each.
        _ = self.evidence.records


def _fork(evidence: Evidence, request: dict[str, Any], pipe: int, readable: tuple[Path, ...]) -> dict[str, Any]:
    gc.freeze()
    pid = os.fork()
    if pid == 0:
        _child(evidence, request, pipe, readable)
    watch = os.pidfd_open(pid)
    try:
        ended, _, _ = select.select([watch], [], [], request["wall_seconds"])
        if not ended:
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    finally:
        os.close(watch)
    return {"ok": True, "timed_out": not ended, "status": os.waitstatus_to_exitcode(status)}


def _child(evidence: Evidence, request: dict[str, Any], pipe: int, readable: tuple[Path, ...]) -> None:
    """C: never returns."""
    try:
        kernel.end_with_parent()
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.dup2(pipe, 3)
        # Chart files stay mapped without their descriptors; nothing else that W holds may reach task code.
        os.closerange(4, 65_536)
        kernel.limit(cpu_seconds=request["cpu_seconds"], memory_bytes=request["memory_bytes"])
        if request["mode"] == "kernel":
            kernel.lock_down(readable)
        said = _call(evidence, request["function"])
        _say(said)
    except BaseException as fault:  # noqa: BLE001 (whatever it is, this process ends here)
        _say({"kind": "raised", "type": type(fault).__name__, "place": _place(fault)})
    finally:
        os._exit(0)


def _say(said: dict[str, Any]) -> None:
    data = json.dumps(said, default=str).encode()
    if len(data) > _MOST_BYTES:
        data = json.dumps({"kind": "raised", "type": "answer too long", "place": CODE_FILE}).encode()
    view = memoryview(data)
    while view:
        view = view[os.write(3, view) :]


def _call(evidence: Evidence, name: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "checkpoints"}
    code = evidence.task.files.get(CODE_FILE, (evidence.task.code or "").encode())
    exec(compile(code, f"{evidence.task.id}/{CODE_FILE}", "exec", dont_inherit=True), namespace)  # noqa: S102 (sandboxed)
    function = namespace.get(name)
    if not callable(function):
        raise LookupError(name)
    answer = function(evidence)
    if isinstance(answer, Judgement):
        cites = [cite.model_dump() for cite in answer.cites]
        return {"kind": "judgement", "result": answer.result, "reason": answer.reason, "cites": cites}
    if isinstance(answer, Truth):
        cites = [cite.model_dump() for cite in answer.cites]
        return {"kind": "truth", "value": str(answer.value), "unit": answer.unit, "cites": cites, "how": answer.how}
    return {"kind": "other", "type": type(answer).__name__}


def _place(fault: BaseException) -> str:
    frames = traceback.extract_tb(fault.__traceback__)
    own = next((frame for frame in reversed(frames) if frame.filename.endswith(f"/{CODE_FILE}")), None)
    return f"{CODE_FILE}, line {own.lineno}" if own else CODE_FILE


def _receive(connection: socket.socket) -> tuple[dict[str, Any] | None, int | None]:
    first, descriptors, _, _ = socket.recv_fds(connection, 8, 1)
    pipe = descriptors[0] if descriptors else None
    while first and len(first) < 8:
        first += connection.recv(8 - len(first))
    if not first:
        return None, pipe
    (length,) = struct.unpack(">Q", first)
    data = bytearray()
    while len(data) < length:
        part = connection.recv(min(1 << 20, length - len(data)))
        if not part:
            return None, pipe
        data += part
    # From the grading process alone: this socket has no other end.
    return pickle.loads(bytes(data)), pipe  # noqa: S301


def _answer(connection: socket.socket, said: dict[str, Any]) -> None:
    data = json.dumps(said).encode()
    connection.sendall(struct.pack(">Q", len(data)) + data)


def main() -> None:
    """`warm.py FD READABLE…`"""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in PRELOADED:
        importlib.import_module(name)
    for name in tables.names():
        tables.rows(name)
    statements.read_text("", _A_SENTENCE, datetime(2025, 1, 1, tzinfo=UTC))
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        Holder(connection, tuple(Path(one) for one in sys.argv[2:])).serve()


if __name__ == "__main__":
    main()
