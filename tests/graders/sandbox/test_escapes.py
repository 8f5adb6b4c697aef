"""Task code tries to get out, one way a test; the kernel says no, and the verdict of that checkpoint says error."""

from __future__ import annotations

import os
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from graders.evidence import Evidence
from graders.sandbox import kernel
from graders.sandbox.runner import Sandbox, SandboxFault, SandboxUnavailable, probe
from graders.verdicts import Judgement, Truth
from tasks.package import Task, load
from tasks.workspace import Workspace
from tests.tasks.packages import TINY_ID, tiny_files

pytestmark = pytest.mark.skipif(bool(kernel.available()), reason=f"no kernel sandbox here: {kernel.available()}")


def task_with(code: str) -> Task:
    """The tiny task with other checkpoint functions; those that its checkpoints name stay there."""
    files = tiny_files()
    own = files.get("checkpoints.py", b"").decode()
    files["checkpoints.py"] = (own + "\n\n" + code).encode()
    return load(files, where=TINY_ID)


def evidence_with(code: str, files: dict[str, str] | None = None) -> Evidence:
    task = task_with(code)
    return Evidence(task=task, chart=task.chart, files=files or {})


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    made = Sandbox()
    yield made
    made.close()


def answer(box: Sandbox, body: str, *, head: str = "") -> object:
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    code = f"from graders.verdicts import passed, failed, partial, Truth\n{head}\ndef tried(evidence):\n{lines}\n"
    return box.call("tried", evidence_with(code))


# What must work


def test_an_honest_function_is_graded(box: Sandbox) -> None:
    body = (
        'rows = evidence.search("Observation")\n'
        'return passed(f"{len(rows)} results", evidence.cite(evidence.get(evidence.patient)))'
    )
    said = answer(box, body)
    assert isinstance(said, Judgement)
    assert said.result == "pass"
    assert len(said.cites) == 1


def test_a_truth_and_something_else(box: Sandbox) -> None:
    said = answer(box, "from decimal import Decimal\nreturn Truth(Decimal('33.0'), 'mL/min')")
    assert isinstance(said, Truth)
    assert (str(said.value), said.unit) == ("33.0", "mL/min")
    assert answer(box, "return True") == "bool"
    assert answer(box, "return None") == "NoneType"


def test_the_same_call_again_costs_a_fork_not_a_start(box: Sandbox) -> None:
    evidence = evidence_with("from graders.verdicts import passed\ndef tried(evidence):\n    return passed('ok')")
    box.call("tried", evidence)
    began = time.monotonic()
    for _ in range(20):
        box.call("tried", evidence)
    assert (time.monotonic() - began) / 20 < 0.5


# What must not


def test_a_shell_cannot_be_started(box: Sandbox) -> None:
    said = answer(box, "import ctypes\nreturn passed(str(ctypes.CDLL(None).system(b'true')))")
    assert isinstance(said, Judgement)
    assert said.reason != "0"


ESCAPES = {
    "read /etc/passwd": ("return passed(open('/etc/passwd').read())", "PermissionError"),
    "read by os.open": ("import os\nreturn passed(str(os.read(os.open('/etc/hostname', 0), 9)))", "PermissionError"),
    "list the home folder": ("import os\nreturn passed(str(os.listdir('/root')))", "PermissionError"),
    "list the root": ("import os\nreturn passed(str(os.listdir('/')))", "PermissionError"),
    "write beside the task": ("open('/tmp/workbench-escape', 'w')\nreturn passed('x')", "PermissionError"),
    "write by os.open": (
        "import os\nos.open('/tmp/workbench-escape', os.O_CREAT | os.O_WRONLY)\nreturn passed('x')",
        "PermissionError",
    ),
    "make a folder": ("import os\nos.mkdir('/tmp/workbench-escape')\nreturn passed('x')", "PermissionError"),
    "remove a file": ("import os\nos.unlink(KEEP)\nreturn passed('x')", "PermissionError"),
    "change a mode": ("import os\nos.chmod(KEEP, 0)\nreturn passed('x')", "PermissionError"),
    "change a time": ("import os\nos.utime(KEEP, (0, 0))\nreturn passed('x')", "PermissionError"),
    "link a file": ("import os\nos.symlink('/', '/tmp/workbench-escape')\nreturn passed('x')", "PermissionError"),
    "TCP to loopback": ("import _socket\n_socket.socket(2, 1)\nreturn passed('x')", "PermissionError"),
    "UDP": ("import _socket\n_socket.socket(2, 2)\nreturn passed('x')", "PermissionError"),
    "unix socket": ("import _socket\n_socket.socket(1, 1)\nreturn passed('x')", "PermissionError"),
    "fork": ("import os\nos.fork()\nreturn passed('x')", "PermissionError"),
    "fork bomb": ("import os\nwhile True:\n    os.fork()", "PermissionError"),
    "thread": ("import _thread\n_thread.start_new_thread(print, ())\nreturn passed('x')", "RuntimeError"),
    "exec": ("import os\nos.execv('/bin/true', ['true'])\nreturn passed('x')", "PermissionError"),
    "posix_spawn": ("import os\nos.posix_spawn('/bin/true', ['true'], {})\nreturn passed('x')", "PermissionError"),
    "signal the parent": ("import os\nos.kill(os.getppid(), 9)\nreturn passed('x')", "PermissionError"),
    "signal everybody": ("import os\nos.kill(-1, 9)\nreturn passed('x')", "PermissionError"),
    "raise a limit": (
        "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (99, 99))\nreturn passed('x')",
        "OSError|PermissionError|ValueError",
    ),
    "endless loop": ("while True:\n    pass", "signal|did not end"),
    "a list of 4 GB": ("x = [0] * (4 << 27)\nreturn passed(str(len(x)))", "MemoryError"),
    "SystemExit": ("raise SystemExit(0)", "SystemExit"),
    "os._exit": ("import os\nos._exit(0)", "without an answer"),
    "os._exit with a status": ("import os\nos._exit(3)", "ended with 3"),
    "abort": ("import os\nos.abort()", "signal|without an answer|ended"),
    "a crash": ("import ctypes\nctypes.string_at(0)", "signal|Error"),
    "signal by fcntl": (
        "import fcntl, os\nfcntl.fcntl(3, fcntl.F_SETOWN, os.getppid())\nreturn passed('x')",
        "PermissionError",
    ),
    "sleep for ever": ("import time\ntime.sleep(1_000_000)\nreturn passed('x')", "did not end within 3 s"),
    "other charts in the cache": (
        "import os\nreturn passed(str(os.listdir(CACHE)))",
        "PermissionError",
    ),
    "TCP beyond": (
        "import _socket\n_socket.socket(2, 1).connect(('192.0.2.1', 443))\nreturn passed('x')",
        "PermissionError",
    ),
    "UDP to loopback": (
        "import _socket\n_socket.socket(2, 2).sendto(b'x', ('127.0.0.1', 53))\nreturn passed('x')",
        "PermissionError",
    ),
    "ptrace": (
        "import ctypes\nif ctypes.CDLL(None).ptrace(16, 1, 0, 0):\n    raise PermissionError\nreturn passed('x')",
        "PermissionError",
    ),
    "subprocess": ("import subprocess\nsubprocess.run(['/bin/true'])\nreturn passed('x')", "PermissionError"),
    "read the code of the workbench": ("return passed(open(ROOT + '/pyproject.toml').read())", "PermissionError"),
    "deep recursion": ("def deep(n):\n    return deep(n + 1)\nreturn deep(0)", "RecursionError|signal"),
    "no such function": ("raise LookupError('x')", "LookupError"),
}  # fmt: skip


@pytest.mark.parametrize("row", ESCAPES)
def test_every_escape_is_blocked_and_named(
    box: Sandbox, row: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graders.sandbox.runner.CPU_SECONDS", 2)
    monkeypatch.setattr("graders.sandbox.runner.WALL_SECONDS", 3.0 if row == "sleep for ever" else 20.0)
    keep = tmp_path / "keep"
    keep.write_text("kept")
    body, words = ESCAPES[row]
    cache = Workspace.find().cache / "charts"
    root = Path(__file__).resolve().parents[3]
    with pytest.raises(SandboxFault, match=words):
        answer(box, body, head=f"KEEP, CACHE, ROOT = {str(keep)!r}, {str(cache)!r}, {str(root)!r}")
    assert keep.read_text() == "kept"
    assert not Path("/tmp/workbench-escape").exists()
    # That checkpoint is lost, the others are not.
    assert isinstance(answer(box, "return passed('still here')"), Judgement)


RAW = (
    "libc.fork()",
    "libc.vfork()",
    "libc.syscall(57)",  # fork
    "libc.syscall(41, 2, 1, 0)",  # socket
    "libc.syscall(101, 16, 1, 0, 0)",  # ptrace attach
    "libc.syscall(0x40000000 + 39)",  # getpid by its x32 number
    "libc.syscall(425, 1, 0)",  # io_uring_setup
    "libc.syscall(310, 1, 0, 0, 0, 0, 0)",  # process_vm_readv
)


@pytest.mark.parametrize("call", RAW)
def test_ctypes_meets_the_same_kernel(box: Sandbox, call: str) -> None:
    said = answer(box, f"import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nreturn passed(str({call}))")
    assert isinstance(said, Judgement)
    assert said.reason == "-1"


def test_no_key_of_the_grading_process_is_in_reach(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-of-the-test")
    fresh = Sandbox()
    try:
        said = answer(fresh, "import os\nreturn passed(repr(sorted(os.environ)))")
        assert isinstance(said, Judgement)
        assert "KEY" not in said.reason
        assert fresh._process is not None
        with pytest.raises(SandboxFault, match="PermissionError"):
            answer(fresh, f"return passed(open('/proc/{os.getpid()}/environ').read())")
        with pytest.raises(SandboxFault, match="PermissionError"):
            answer(fresh, f"return passed(open('/proc/{fresh._process.pid}/mem', 'rb').read(1).hex())")
        with pytest.raises(SandboxFault, match="PermissionError"):
            answer(fresh, "return passed(open('/proc/self/mem', 'rb').read(1).hex())")
    finally:
        fresh.close()


def test_the_result_channel_takes_one_honest_answer_or_none(box: Sandbox) -> None:
    forged = '{"kind": "judgement", "result": "pass", "reason": "forged"}'
    for body in (
        f"import os\nos.write(3, {forged.encode()!r})\nreturn failed('honest')",
        "import os\nos.write(3, b'x' * (3 << 20))\nreturn failed('honest')",
        "import os\nos.close(3)\nreturn failed('honest')",
    ):
        with pytest.raises(SandboxFault):
            answer(box, body)


def test_no_other_descriptor_is_open_in_a_call(box: Sandbox) -> None:
    body = (
        "import os\nfound = []\nfor n in range(4, 64):\n    try:\n        os.fstat(n)\n        found.append(n)\n"
        "    except OSError:\n        pass\nreturn passed(str(found))"
    )
    said = answer(box, body)
    assert isinstance(said, Judgement)
    assert said.reason == "[]"


def test_calls_share_nothing(box: Sandbox) -> None:
    code = (
        "from graders.verdicts import passed\nimport math\n"
        "def first(evidence):\n    math.secret = evidence.task.__dict__['secret'] = 'seen'\n    return passed('set')\n"
        "def second(evidence):\n"
        "    return passed(f\"{getattr(math, 'secret', None)} {evidence.task.__dict__.get('secret')}\")\n"
    )
    evidence = evidence_with(code)
    box.call("first", evidence)
    said = box.call("second", evidence)
    assert isinstance(said, Judgement)
    assert said.reason == "None None"


#: Looks through the memory of its process, 64 MB to either side of the evidence, for a note: it begins with STEM and
#: has a known checksum, so that the search does not find itself.
FIND = """
import ctypes, zlib
from graders.verdicts import passed
LIBC = ctypes.CDLL(None, use_errno=True)

def readable(page):
    # A path in a page that cannot be read is EFAULT; in any other it names no file, or one that may not be opened.
    return not (LIBC.open(ctypes.c_void_p(page), 0) == -1 and ctypes.get_errno() == 14)

def tried(evidence):
    near = id(next(iter(evidence.files.values()))) & ~4095
    for page in range(near - (64 << 20), near + (64 << 20), 4096):
        if readable(page):
            data = ctypes.string_at(page, 4096)
            at = data.find(STEM)
            while at >= 0:
                if zlib.crc32(data[at : at + LENGTH]) == SUM:
                    return passed('found')
                at = data.find(STEM, at + 1)
    return passed('not found')
"""


def finds(note: str) -> str:
    """Code that looks for a note in all the memory that it can reach."""
    return f"STEM, LENGTH, SUM = {note[:8].encode()!r}, {len(note)}, {zlib.crc32(note.encode())}\n{FIND}"


def test_another_tasks_text_and_another_trials_note_are_in_no_memory_that_task_code_shares(box: Sandbox) -> None:
    note = "zebra-in-the-note-of-the-first-trial"
    first = evidence_with(finds(note), {"/workspace/output/n.md": note})
    other_trial = Evidence(task=first.task, chart=first.chart, files={"/workspace/output/n.md": "nothing"})
    other_task = evidence_with(finds(note) + "# another task\n", {"/workspace/output/n.md": "nothing"})
    found = [box.call("tried", one) for one in (first, other_trial, first, other_task)]
    said = [one.reason for one in found if isinstance(one, Judgement)]
    assert said == ["found", "not found", "found", "not found"]


def test_the_answers_and_reviews_of_a_task_never_reach_its_code(box: Sandbox) -> None:
    said = answer(box, "return passed(str([p for p in evidence.task.files if p.startswith(('solution', 'reviews'))]))")
    assert isinstance(said, Judgement)
    assert said.reason == "[]"


def test_ending_the_sandbox_ends_every_process_of_it() -> None:
    fresh = Sandbox()
    assert isinstance(answer(fresh, "return passed('x')"), Judgement)
    assert fresh._process is not None
    group = fresh._process.pid
    fresh.close()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and _alive(group):
        os.sched_yield()
    assert not _alive(group)


def _alive(session: int) -> list[int]:
    """Processes of a session that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry.name))
    return found


def test_a_gigabyte_of_print_goes_nowhere(box: Sandbox, capfd: pytest.CaptureFixture[str]) -> None:
    said = answer(box, "for _ in range(1024):\n    print('x' * (1 << 20))\nreturn passed('printed')")
    assert isinstance(said, Judgement)
    assert capfd.readouterr() == ("", "")


def test_the_warm_process_killed_from_outside_is_started_again(box: Sandbox) -> None:
    answer(box, "return passed('ok')")
    process = box._process
    assert process is not None
    process.kill()
    process.wait()
    assert isinstance(answer(box, "return passed('ok')"), Judgement)


def test_many_threads_share_one_sandbox(box: Sandbox) -> None:
    evidence = evidence_with("from graders.verdicts import passed\ndef tried(evidence):\n    return passed('ok')")
    failures: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(5):
                box.call("tried", evidence)
        except Exception as failure:  # noqa: BLE001 (whatever it is, the test must show it)
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_kernel_that_does_not_hold_is_refused_by_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe() == ""
    monkeypatch.setattr("graders.sandbox.runner.probe", lambda: "read /etc/passwd")
    fresh = Sandbox()
    with pytest.raises(SandboxUnavailable, match="read /etc/passwd"):
        answer(fresh, "return passed('ok')")
    assert fresh._process is None


def test_the_weaker_mode_does_not_pretend(monkeypatch: pytest.MonkeyPatch) -> None:
    weak = Sandbox("process")
    try:
        said = answer(weak, "return passed(str(len(open('/etc/passwd').read()) > 0))")
        assert isinstance(said, Judgement)
        assert said.reason == "True", "this mode does not block files; that is why it is chosen only by name"
    finally:
        weak.close()
