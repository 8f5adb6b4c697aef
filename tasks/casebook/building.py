"""From a case to its package: the chart that the case makes, and what a person wrote for it in `written/`.

A case is a subpackage of tasks.casebook with `TASK` (the task's id) and `chart()`. Its `written/` mirrors the package;
checkpoints.py is kept there as checkpoints.py.txt, because in the package it is data that graders run, not a module of
this floor.
"""

from __future__ import annotations

import importlib
import pkgutil
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import tasks.casebook
from tasks.errors import UsageError

_CODE = "checkpoints.py"


class Difference(NamedTuple):
    """A file in which a package on disk departs from what its case builds."""

    path: str
    what: str


def cases() -> dict[str, str]:
    """Task id -> module, for every case."""
    found = {}
    for module in pkgutil.iter_modules(tasks.casebook.__path__):
        if module.ispkg:
            name = f"tasks.casebook.{module.name}"
            found[str(importlib.import_module(name).TASK)] = name
    return found


def build(task: str) -> dict[str, bytes]:
    """Every file of the package, by path. UsageError for a task that has no case."""
    known = cases()
    if task not in known:
        raise UsageError(f"there is no case for {task!r}", remedy=f"Cases: {', '.join(known)}.")
    module = importlib.import_module(known[task])
    chart: Mapping[str, bytes] = module.chart()
    files = {**_written(Path(str(module.__file__)).parent / "written"), **chart}
    return dict(sorted(files.items()))


def _written(root: Path) -> dict[str, bytes]:
    found = {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
    if f"{_CODE}.txt" in found:
        found[_CODE] = found.pop(f"{_CODE}.txt")
    return found


def differences(files: Mapping[str, bytes], folder: Path) -> Iterator[Difference]:
    """Where the folder departs from the built files; nothing where they are the same byte for byte.

    What reviewing leaves in reviews/ is no part of what a case builds.
    """
    there = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    for name in sorted({*files, *there}):
        if name.startswith("reviews/") or "__pycache__" in name:
            continue
        if name not in there:
            yield Difference(name, "is missing")
        elif name not in files:
            yield Difference(name, "is not built by the case")
        elif there[name].read_bytes() != files[name]:
            yield Difference(name, "differs")


def write(files: Mapping[str, bytes], folder: Path) -> None:
    """Make the folder hold exactly these files, and its reviews/. It is replaced whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, data in files.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if (folder / "reviews").is_dir():
            shutil.copytree(folder / "reviews", fresh / "reviews")
        fresh.chmod(0o755)
        if folder.exists():
            retired = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
            folder.replace(retired / folder.name)
            fresh.replace(folder)
            shutil.rmtree(retired)
        else:
            fresh.replace(folder)
    finally:
        if fresh.exists():
            shutil.rmtree(fresh)
