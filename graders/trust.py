"""Which task code is trusted: exactly the checkpoints.py files of tasks/suite, byte for byte, each under its own id.

All other task code is never run in this process, only in the sandbox (graders/sandbox/).
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import tasks

CODE_FILE = "checkpoints.py"


def code_digest(code: bytes | str) -> str:
    """SHA-256 of a checkpoints.py, in hex; text counts as UTF-8."""
    return hashlib.sha256(code.encode("utf-8") if isinstance(code, str) else code).hexdigest()


@cache
def shipped() -> dict[str, str]:
    """Task id -> digest of its checkpoints.py, for every task of the installed tasks/suite that has one."""
    suite = Path(tasks.__file__).resolve().parent / "suite"
    return {path.parent.name: code_digest(path.read_bytes()) for path in sorted(suite.glob(f"*/{CODE_FILE}"))}


def is_trusted(task_id: str, code: bytes | str) -> bool:
    """Whether this code is the shipped code of this task. A task that only takes the name, or the code, is not."""
    return shipped().get(task_id) == code_digest(code)
