"""Digests of a package (design 4): equal digest = equal to the agent, or equal to the graders.

Each is the SHA-256 of one line `<sha256>  <path>` per part, sorted by path. task.toml enters the agent's digest only
with context, deliverables and limits (as canonical JSON), so that a new title does not void stored trials.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256

from tasks.folders import FolderFiles
from tasks.manifest import TaskMeta


def over(parts: Mapping[str, str]) -> str:
    """The digest of {path: SHA-256 of its bytes} as 64 hexadecimal digits."""
    lines = "".join(f"{parts[path]}  {path}\n" for path in sorted(parts))
    return sha256(lines.encode()).hexdigest()


def _parts(files: Mapping[str, bytes], paths: Iterable[str]) -> dict[str, str]:
    if isinstance(files, FolderFiles):
        return {path: files.sha256(path) for path in paths}
    return {path: sha256(files[path]).hexdigest() for path in paths}


def agent_digest(files: Mapping[str, bytes], meta: TaskMeta) -> str:
    """What the agent meets: instruction, chart, context, deliverables, limits."""
    parts = _parts(files, [path for path in files if path == "instruction.md" or path.startswith("chart/")])
    slice_ = meta.model_dump(mode="json", include={"context", "deliverables", "limits"})
    canonical = json.dumps(slice_, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return over({**parts, "task.toml": sha256(canonical.encode()).hexdigest()})


def grade_digest(files: Mapping[str, bytes]) -> str:
    """What grades it: checkpoints.toml, checkpoints.py, examples/."""
    graded = [path for path in files if path in _GRADING or path.startswith("examples/")]
    return over(_parts(files, graded))


_GRADING = ("checkpoints.toml", "checkpoints.py")
