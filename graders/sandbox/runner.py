"""P's side of the sandbox: starts W, sends calls, reads answers that it does not trust."""

from __future__ import annotations

import atexit
import json
import os
import pickle
import select
import socket
import struct
import subprocess
import sys
import sysconfig
import threading
import time
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from graders.evidence import Evidence
from graders.sandbox import kernel
from graders.verdicts import Judgement, Truth
from tasks.errors import EnvironmentFault
from tasks.strict import Strict
from tasks.trials import Cite
from tasks.workspace import VARIABLE, Workspace

Mode = Literal["kernel", "process"]
CPU_SECONDS, WALL_SECONDS, MEMORY_BYTES = 10, 20.0, 1 << 30
_MOST_BYTES = 1 << 20
_ROOT = Path(__file__).resolve().parents[2]


class SandboxUnavailable(EnvironmentFault):
    """Task code cannot be held here, so it is not run."""


class SandboxFault(Exception):
    """The call gave no answer: why, without anything that the code said."""


class _Said(Strict):
    kind: Literal["judgement", "truth", "other", "raised"]
    result: Literal["pass", "partial", "fail"] | None = None
    reason: str = Field(default="", max_length=20_000)
    value: str = Field(default="", max_length=200)
    unit: str = Field(default="", max_length=100)
    how: str = Field(default="", max_length=20_000)
    cites: tuple[Cite, ...] = Field(default=(), max_length=500)
    type: str = Field(default="", max_length=200)
    place: str = Field(default="", max_length=200)


_SAID = TypeAdapter(_Said)


class Sandbox:
    """One warm process and the calls through it; used by one thread at a time.

    `mode` "process" leaves out Landlock and seccomp. It is weaker, is chosen only by name, and every verdict says so.
    Raises SandboxUnavailable at the first call where the kernel cannot hold the code, after really trying.
    """

    def __init__(self, mode: Mode = "kernel") -> None:
        self.mode = mode
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._sent: set[str] = set()
        self._proved = False

    def call(self, name: str, evidence: Evidence) -> Judgement | Truth | str:
        """What a function of checkpoints.py answers: a Judgement, a Truth, or the type's name of anything else.

        Raises SandboxFault where it gave none, SandboxUnavailable where it could not be run.
        """
        with self._lock:
            self._prove()
            said = self._said(self._run(name, evidence))
        match said.kind:
            case "judgement" if said.result:
                return Judgement(said.result, said.reason, said.cites)
            case "truth":
                return Truth(_number(said.value), said.unit, said.cites, said.how)
            case "raised":
                hint = " (the sandbox forbids files, network, processes)" if "Permission" in said.type else ""
                raise SandboxFault(f"{said.type} at {said.place}{hint}")
        return said.type or "nothing"

    def close(self) -> None:
        """End W."""
        if self._socket:
            self._socket.close()
        if self._process:
            self._process.kill()
            self._process.wait()
        self._socket = self._process = None
        self._sent.clear()

    # ---- the warm process ---------------------------------------------------------------------------------------

    def _start(self) -> socket.socket:
        if self._socket and self._process and self._process.poll() is None:
            return self._socket
        self.close()
        ours, theirs = socket.socketpair()
        workspace = Workspace.find()
        # Python's own modules, our tables, and the chart's index: nothing that a person wrote.
        tables = (_ROOT / "tasks" / "fhir" / "definitions", _ROOT / "graders" / "tables")
        readable = [sysconfig.get_path("stdlib"), str(workspace.cache), *map(str, tables)]
        code = f"import sys; sys.path[:0] = {[str(_ROOT)]!r}; from graders.sandbox.warm import main; main()"
        # No variable of ours goes along: no key, no token, no path but the workspace's.
        environment = {VARIABLE: str(workspace.path), "LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-B", "-c", code, str(theirs.fileno()), *readable],
                pass_fds=[theirs.fileno()],
                env=environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._socket = ours
        return ours

    def _ask(self, request: dict[str, Any], pipe: int | None = None) -> dict[str, Any]:
        connection = self._start()
        data = pickle.dumps(request, protocol=pickle.HIGHEST_PROTOCOL)
        head = struct.pack(">Q", len(data))
        try:
            if pipe is None:
                connection.sendall(head)
            else:
                socket.send_fds(connection, [head], [pipe])
            connection.sendall(data)
        except OSError:
            self.close()
            raise SandboxFault("the sandbox process ended") from None
        return {}

    def _answered(self, seconds: float) -> dict[str, Any]:
        connection = self._start()
        connection.settimeout(seconds)
        try:
            head = _exactly(connection, 8)
            return dict(json.loads(_exactly(connection, struct.unpack(">Q", head)[0])))
        except (OSError, ValueError):
            self.close()
            raise SandboxFault("the sandbox process ended") from None

    # ---- one call -----------------------------------------------------------------------------------------------

    def _run(self, name: str, evidence: Evidence) -> bytes:
        task = evidence.task
        key = f"{task.id} {task.agent_digest} {task.grade_digest}"
        for _ in range(2):
            self._start()
            if key not in self._sent:
                self._ask({"ask": "task", "key": key, "where": task.id, "files": dict(task.files)})
                if not self._answered(120).get("ok"):
                    raise SandboxFault("the task could not be loaded in the sandbox")
                self._sent.add(key)
            read_end, write_end = os.pipe()
            try:
                self._ask(
                    {
                        "ask": "call", "key": key, "function": name, "created": evidence.created,
                        "calls": evidence.calls, "texts": dict(evidence.files), "mode": self.mode,
                        "cpu_seconds": CPU_SECONDS, "wall_seconds": WALL_SECONDS, "memory_bytes": MEMORY_BYTES,
                    },
                    write_end,
                )  # fmt: skip
                os.close(write_end)
                write_end = -1
                data = _drain(read_end, WALL_SECONDS + 30)
                os.close(read_end)
                read_end = -1
                how = self._answered(WALL_SECONDS + 30)
            finally:
                for end in (read_end, write_end):
                    if end >= 0:
                        os.close(end)
            if how.get("unknown"):
                self._sent.discard(key)
                continue
            return _checked(data, how)
        raise SandboxFault("the task could not be loaded in the sandbox")

    @staticmethod
    def _said(data: bytes) -> _Said:
        try:
            return _SAID.validate_json(data)
        except ValidationError:
            raise SandboxFault("what it answered is not an answer") from None

    def _prove(self) -> None:
        """Before the first call: try to break out of a fork as it will be used, and go on only where that fails."""
        if self._proved or self.mode != "kernel":
            return
        if missing := kernel.available():
            raise SandboxUnavailable(f"{missing}; task code is not run.")
        if broken := probe():
            raise SandboxUnavailable(f"the sandbox does not hold here: {broken}; task code is not run.")
        self._proved = True


def probe() -> str:
    """ "" if a locked-down process is really held, else what it could still do."""
    code = (
        "import os, sys, socket\n"
        f"sys.path[:0] = {[str(_ROOT)]!r}\n"
        "from graders.sandbox import kernel\n"
        "kernel.limit(cpu_seconds=5, memory_bytes=1 << 29)\n"
        "kernel.lock_down([])\n"
        "def holds(what, act):\n"
        "    try:\n"
        "        act()\n"
        "    except OSError:\n"
        "        return\n"
        "    os.write(1, what.encode() + b';')\n"
        "holds('read /etc/passwd', lambda: open('/etc/passwd'))\n"
        "holds('write a file', lambda: open('/tmp/workbench-probe', 'w'))\n"
        "holds('open a socket', socket.socket)\n"
        "holds('fork', os.fork)\n"
        "holds('start a program', lambda: os.execv('/bin/true', ['true']))\n"
        "os.write(1, b'end')\n"
        "os._exit(0)\n"
    )
    try:
        done = subprocess.run([sys.executable, "-I", "-c", code], env={}, capture_output=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return "it could not be tried"
    said = done.stdout.decode(errors="replace")
    return said.removesuffix("end").strip(";") if said.endswith("end") else "it could not be tried"


def _checked(data: bytes, how: dict[str, Any]) -> bytes:
    if how.get("timed_out"):
        raise SandboxFault(f"it did not end within {WALL_SECONDS:.0f} s")
    if not how.get("ok"):
        raise SandboxFault("it could not be started")
    if how.get("status"):
        status = int(how["status"])
        raise SandboxFault(f"its process was ended by signal {-status}" if status < 0 else f"it ended with {status}")
    if not data:
        raise SandboxFault("it ended its process without an answer")
    return data


def _drain(descriptor: int, seconds: float) -> bytes:
    """What C writes, up to a bound, until every write end is closed."""
    out = bytearray()
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and len(out) <= _MOST_BYTES:
        if not select.select([descriptor], [], [], left)[0]:
            break
        part = os.read(descriptor, 65_536)
        if not part:
            break
        out += part
    return bytes(out)


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise OSError("closed")
        data += part
    return bytes(data)


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise SandboxFault("the truth it answered is no number") from None


@lru_cache(maxsize=2)
def sandbox(mode: Mode = "kernel") -> Sandbox:
    """The sandbox of this process, started at first use and ended with it."""
    made = Sandbox(mode)
    atexit.register(made.close)
    return made


__all__ = ["Mode", "Sandbox", "SandboxFault", "SandboxUnavailable", "probe", "sandbox"]
