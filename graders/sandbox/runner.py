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
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from graders.evidence import Evidence
from graders.sandbox import kernel
from graders.verdicts import Judgement, Truth
from tasks.errors import EnvironmentFault
from tasks.strict import Strict
from tasks.trials import Cite
from tasks.workspace import VARIABLE, Workspace

if TYPE_CHECKING:
    from tasks.package import Task

Mode = Literal["kernel", "process"]
CPU_SECONDS, WALL_SECONDS, MEMORY_BYTES = 10, 20.0, 1 << 30
_MOST_BYTES = 1 << 20
_ROOT = Path(__file__).resolve().parents[2]
#: What of a package no checkpoint function reads: the answers, and what people said of them.
_NOT_SENT = ("solution/", "reviews/")


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


class _Branch(NamedTuple):
    """A process that holds one task or one trial, and the socket to it."""

    what: object
    connection: socket.socket


class Sandbox:
    """The warm process with its branches, and the calls through them; one call at a time, from any thread.

    `mode` "process" leaves out Landlock and seccomp. It is weaker, is chosen only by name, and every verdict says so.
    Raises SandboxUnavailable at the first call where the kernel cannot hold the code, after really trying.
    """

    def __init__(self, mode: Mode = "kernel") -> None:
        self.mode = mode
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._warm: socket.socket | None = None
        self._task: _Branch | None = None
        self._trial: _Branch | None = None
        self._proved = False

    def call(self, name: str, evidence: Evidence) -> Judgement | Truth | str:
        """What a function of checkpoints.py answers: a Judgement, a Truth, or the type's name of anything else.

        Raises SandboxFault where it gave none, SandboxUnavailable where it could not be run.
        """
        with self._lock:
            if self._owner != os.getpid():
                # A fork of the grading process must not speak on its parent's sockets.
                self._process = self._warm = self._task = self._trial = None
                self._owner = os.getpid()
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
        """End the warm process and its branches."""
        for branch in (self._trial, self._task):
            if branch:
                branch.connection.close()
        if self._warm:
            self._warm.close()
        if self._process and self._owner == os.getpid():
            self._process.kill()
            self._process.wait()
        self._process = self._warm = self._task = self._trial = None

    # ---- the warm process and its branches ----------------------------------------------------------------------

    def _started(self) -> socket.socket:
        if self._warm and self._process and self._process.poll() is None:
            return self._warm
        self.close()
        ours, theirs = socket.socketpair()
        workspace = Workspace.find()
        # Python's own modules, time zones and our tables: nothing that a person wrote.
        tables = (_ROOT / "tasks" / "fhir" / "definitions", _ROOT / "graders" / "tables")
        readable = [sysconfig.get_path("stdlib"), "/usr/share/zoneinfo", *map(str, tables)]
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
        self._warm = ours
        return ours

    def _branch(self, connection: socket.socket, what: object, request: dict[str, Any]) -> _Branch:
        """A fork of the process behind `connection` that holds what the request brings."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._ask(connection, {"ask": "branch"}, theirs.fileno())
            if not self._answered(connection, 60).get("ok"):
                raise SandboxFault("the sandbox could not branch")
            self._ask(ours, request)
            if not self._answered(ours, 120).get("ok"):
                raise SandboxFault("the task could not be loaded in the sandbox")
        except SandboxFault:
            ours.close()
            raise
        return _Branch(what, ours)

    def _task_branch(self, task: Task) -> _Branch:
        warm = self._started()
        key = f"{task.id} {task.agent_digest} {task.grade_digest}"
        if self._task is None or self._task.what != key:
            self._drop_trial()
            if self._task:
                self._task.connection.close()
                self._task = None
            files = {path: data for path, data in task.files.items() if not path.startswith(_NOT_SENT)}
            self._task = self._branch(warm, key, {"ask": "task", "where": task.id, "files": files})
        return self._task

    def _trial_branch(self, evidence: Evidence) -> _Branch:
        task = self._task_branch(evidence.task)
        if self._trial is None or self._trial.what is not evidence:
            self._drop_trial()
            request = {
                "ask": "evidence",
                "created": evidence.created,
                "calls": evidence.calls,
                "texts": dict(evidence.files),
            }
            self._trial = self._branch(task.connection, evidence, request)
        return self._trial

    def _drop_trial(self) -> None:
        if self._trial:
            self._trial.connection.close()
            self._trial = None

    def _ask(self, connection: socket.socket, request: dict[str, Any], descriptor: int | None = None) -> None:
        data = pickle.dumps(request, protocol=pickle.HIGHEST_PROTOCOL)
        head = struct.pack(">Q", len(data))
        try:
            connection.settimeout(120)
            if descriptor is None:
                connection.sendall(head)
            else:
                socket.send_fds(connection, [head], [descriptor])
            connection.sendall(data)
        except OSError:
            self.close()
            raise SandboxFault("the sandbox process ended") from None

    def _answered(self, connection: socket.socket, seconds: float) -> dict[str, Any]:
        try:
            connection.settimeout(seconds)
            head = _exactly(connection, 8)
            return dict(json.loads(_exactly(connection, struct.unpack(">Q", head)[0])))
        except (OSError, ValueError):
            self.close()
            raise SandboxFault("the sandbox process ended") from None

    # ---- one call -----------------------------------------------------------------------------------------------

    def _run(self, name: str, evidence: Evidence) -> bytes:
        try:
            trial = self._trial_branch(evidence)
        except SandboxFault:
            # Killed from outside since the last call; a second time is a fault.
            trial = self._trial_branch(evidence)
        read_end, write_end = os.pipe()
        try:
            try:
                self._ask(
                    trial.connection,
                    {
                        "ask": "call", "function": name, "mode": self.mode, "cpu_seconds": CPU_SECONDS,
                        "wall_seconds": WALL_SECONDS, "memory_bytes": MEMORY_BYTES,
                    },
                    write_end,
                )  # fmt: skip
            finally:
                os.close(write_end)
            data = _drain(read_end, WALL_SECONDS + 30)
        finally:
            os.close(read_end)
        return _checked(data, self._answered(trial.connection, WALL_SECONDS + 30))

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
        "holds('send a signal', lambda: os.kill(os.getppid(), 0))\n"
        "holds('open UDP', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))\n"
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


def configured() -> Sandbox:
    """The sandbox that workbench.toml asks for. Raises SandboxUnavailable where it says off, SettingsError."""
    mode = Workspace.find().settings.sandbox.mode
    if mode == "off":
        raise SandboxUnavailable("[sandbox] mode is off in workbench.toml; task code is not run.")
    return sandbox(mode)


__all__ = ["Mode", "Sandbox", "SandboxFault", "SandboxUnavailable", "configured", "probe", "sandbox"]
