"""W, the warm process: loads what a call needs, forks for each call, never runs task code itself.

Started by runner.py as `python -I -c …` with an empty environment and one socket. A request comes with the write end
of a pipe, which only the fork keeps; W answers on the socket how the fork ended and never sees what it said.
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
from pathlib import Path
from typing import Any

from graders.evidence import Evidence
from graders.sandbox import kernel
from graders.trust import CODE_FILE
from graders.verdicts import Judgement, Truth
from tasks.package import Task, load

#: Imported before any fork: what a checkpoint function may use, so that a call opens no file of ours.
PRELOADED = (
    "collections", "dataclasses", "datetime", "decimal", "fractions", "functools", "itertools", "json", "math", "re",
    "statistics", "string", "typing", "unicodedata", "zoneinfo",
    "graders.describe", "graders.lab_units", "graders.phrases", "graders.truths", "graders.verdicts",
)  # fmt: skip
#: Tasks kept loaded, newest last.
_KEPT = 4
_MOST_BYTES = 262_144


def serve(connection: socket.socket, readable: list[Path]) -> None:
    """Answer requests until the other end closes."""
    tasks: dict[str, Task] = {}
    while True:
        request, pipe = _receive(connection)
        if request is None:
            return
        try:
            if request["ask"] == "task":
                tasks[request["key"]] = task = load(request["files"], where=request["where"])
                len(task.chart)
                while len(tasks) > _KEPT:
                    tasks.pop(next(iter(tasks)))
                _answer(connection, {"ok": True})
            elif request["key"] not in tasks:
                _answer(connection, {"ok": False, "unknown": True})
            else:
                evidence = _evidence(tasks[request["key"]], request)
                _answer(connection, _fork(evidence, request, pipe, connection, readable))
        except Exception as fault:  # noqa: BLE001 (W must outlive any one request; the message may hold chart text)
            _answer(connection, {"ok": False, "fault": type(fault).__name__})
        finally:
            if pipe is not None:
                os.close(pipe)


def _evidence(task: Task, request: dict[str, Any]) -> Evidence:
    made = Evidence(
        task=task, chart=task.chart, created=request["created"], calls=request["calls"], files=request["texts"]
    )
    # Computed here once and shared by every fork of this trial, instead of in each.
    _ = made.records
    return made


def _fork(
    evidence: Evidence, request: dict[str, Any], pipe: int | None, connection: socket.socket, readable: list[Path]
) -> dict[str, Any]:
    if pipe is None:
        return {"ok": False, "fault": "no pipe"}
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


def _child(evidence: Evidence, request: dict[str, Any], pipe: int, readable: list[Path]) -> None:
    """C: never returns."""
    try:
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
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        serve(connection, [Path(one) for one in sys.argv[2:]])


if __name__ == "__main__":
    main()
