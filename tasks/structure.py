"""From files to parsed parts: which files a package may hold, and what each must look like by itself."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tasks.declarations import Checkpoint
from tasks.folders import FolderFiles
from tasks.manifest import TaskMeta
from tasks.places import Fault, Misread, at, json_value, shown, text, toml, toml_line, validated
from tasks.plans import PLAN_NAME, Plan, read_plan
from tasks.strict import Strict

#: The files that every package has.
REQUIRED = ("task.toml", "instruction.md")
_FIXED = (*REQUIRED, "checkpoints.toml", "checkpoints.py", "CHANGELOG.md", "reviews/events.ndjson")
_CHART = re.compile(r"^chart/([A-Z][A-Za-z]{1,63})\.ndjson$")
_EXAMPLE = re.compile(r"^examples/[A-Za-z0-9][A-Za-z0-9._-]*\.(?:json|md|txt)$")
_REVIEWS = re.compile(r"^reviews/(?:proposals/[A-Za-z0-9][A-Za-z0-9._-]*|releases/[0-9]+)\.json$")
_SOLUTION = re.compile(r"^solution/([^/]+)/([A-Za-z0-9][A-Za-z0-9._-]*)$")


class _Checkpoints(Strict):
    checkpoint: tuple[Checkpoint, ...] = ()


@dataclass(frozen=True)
class Parts:
    """A package's files, parsed."""

    meta: TaskMeta
    instruction: str
    checkpoints: tuple[Checkpoint, ...]
    code: str | None
    plans: Mapping[str, Plan]
    examples: Mapping[str, bytes]


def chart_type(path: str) -> str | None:
    """The resource type that a chart file holds, by its name; None for another file."""
    found = _CHART.match(path)
    return found[1] if found else None


def read(files: Mapping[str, bytes], where: str) -> tuple[Parts | None, list[Fault]]:
    """The parts (None where task.toml or instruction.md cannot be read) and every fault that needs no chart."""
    found: list[Fault] = [*_listing_faults(files)]
    meta: TaskMeta | None = None
    instruction: str | None = None
    code: str | None = None
    checkpoints: tuple[Checkpoint, ...] = ()
    plans: dict[str, Plan] = {}
    readable = set(files)
    if "task.toml" in readable:
        try:
            meta = _meta(files["task.toml"], where)
        except Misread as error:
            found += error.faults
    for path in sorted(readable & {"instruction.md", "CHANGELOG.md"}):
        try:
            content = text(files[path], path)
            instruction = content if path == "instruction.md" else instruction
        except Misread as error:
            found += error.faults
    if "checkpoints.py" in readable:
        try:
            written = text(files["checkpoints.py"], "checkpoints.py")
            functions(written)
            code = written
        except Misread as error:
            found += error.faults
    if "checkpoints.toml" in readable:
        try:
            checkpoints = _read_checkpoints(files["checkpoints.toml"])
        except Misread as error:
            found += error.faults
    for name, inner in _plan_files(files).items():
        plan, faults = read_plan(name, inner, f"solution/{name}")
        found += faults
        if plan is not None:
            plans[name] = plan
    examples = {path: files[path] for path in sorted(readable) if _EXAMPLE.match(path)}
    found += _plain_faults(files)
    told = [Fault("/".join(filter(None, (where, fault.place))), fault.message) for fault in found]
    if meta is None or instruction is None:
        return None, told
    return Parts(meta, instruction, checkpoints, code, plans, examples), told


def _listing_faults(files: Mapping[str, bytes]) -> Iterator[Fault]:
    if isinstance(files, FolderFiles):
        yield from files.refused
    for path in REQUIRED:
        if path not in files:
            yield Fault(path, "the file is missing; every package has it")
    for path in sorted(files):
        solution = _SOLUTION.match(path)
        if solution and not PLAN_NAME.match(solution[1]):
            yield Fault(path, f"{shown(solution[1])} is no name for a plan; use small letters, digits and hyphens")
        elif not (path in _FIXED or solution or any(one.match(path) for one in (_CHART, _EXAMPLE, _REVIEWS))):
            yield Fault(path, "the file does not belong in a package; remove it (docs/task-package.md lists the files)")


def _meta(data: bytes, where: str) -> TaskMeta:
    source = text(data, "task.toml")
    meta = validated(TaskMeta, toml(source, "task.toml"), "task.toml", source=source)
    folder = where.rstrip("/").rsplit("/", 1)[-1]
    if folder and folder != meta.id:
        line = at("task.toml", toml_line(source, ("id",)))
        raise Misread(Fault(line, f"id: {shown(meta.id)} is not the folder's name {shown(folder)}; make them equal"))
    twice = _repeated([deliverable.path for deliverable in meta.deliverables])
    if twice is not None:
        line = at("task.toml", toml_line(source, ("deliverable", twice, "path")))
        raise Misread(Fault(line, f"deliverable[{twice + 1}].path: the path stands twice; remove one"))
    return meta


def _read_checkpoints(data: bytes) -> tuple[Checkpoint, ...]:
    source = text(data, "checkpoints.toml")
    parsed = validated(_Checkpoints, toml(source, "checkpoints.toml"), "checkpoints.toml", source=source)
    if not parsed.checkpoint:
        raise Misread(Fault("checkpoints.toml", "the file holds no [[checkpoint]]; add one or delete the file"))
    twice = _repeated([checkpoint.id for checkpoint in parsed.checkpoint])
    if twice is not None:
        place = at("checkpoints.toml", toml_line(source, ("checkpoint", twice, "id")))
        raise Misread(Fault(place, f"checkpoint[{twice + 1}].id: {shown(parsed.checkpoint[twice].id)} stands twice"))
    return parsed.checkpoint


def _repeated(values: list[str]) -> int | None:
    return next((index for index, value in enumerate(values) if value in values[:index]), None)


def functions(code: str) -> dict[str, int]:
    """Top-level functions of checkpoints.py that take one argument: name -> line. Read, never imported.

    Raises Misread for text that is not Python.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except SyntaxError as error:
        raise Misread(Fault(at("checkpoints.py", error.lineno), f"not valid Python: {error.msg}")) from None
    except (RecursionError, MemoryError, ValueError):
        raise Misread(Fault("checkpoints.py", "not valid Python: nested too deeply to be read")) from None
    return {
        node.name: node.lineno
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and len(node.args.posonlyargs) + len(node.args.args) - len(node.args.defaults) == 1
        and not any(default is None for default in node.args.kw_defaults)
    }


def _plan_files(files: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    plans: dict[str, dict[str, bytes]] = {}
    for path in sorted(files):
        solution = _SOLUTION.match(path)
        if solution and PLAN_NAME.match(solution[1]):
            plans.setdefault(solution[1], {})[solution[2]] = files[path]
    return plans


def _plain_faults(files: Mapping[str, bytes]) -> Iterator[Fault]:
    """Files that only have to be readable here: examples, and what reviewing left."""
    for path in sorted(files):
        if not (_EXAMPLE.match(path) or path == "reviews/events.ndjson" or _REVIEWS.match(path)):
            continue
        try:
            content = text(files[path], path)
            if path.endswith(".json"):
                json_value(content, path)
            elif path.endswith(".ndjson"):
                for number, line in enumerate(content.rstrip("\n").split("\n"), start=1):
                    json_value(line, path, line=number)
        except Misread as error:
            yield from error.faults
