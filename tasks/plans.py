"""Solution plans: the tool calls and files with which a physician would solve a task (design 4).

solution/<plan>/actions.jsonl holds one `{"tool", "arguments", "save_as"}` a line. A later argument may say
`{{name.reference}}` for the reference of what an earlier line saved (ids differ by backend). write_file takes
`{"file_path", "content_file"}`; the file stands beside actions.jsonl, so that a deliverable exists once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import StringConstraints

from tasks.manifest import inside_output
from tasks.places import Fault, Misread, at, json_value, nearest, shown, text, validated
from tasks.strict import Strict
from tasks.toolnames import CREATE_TOOLS, TOOL_NAMES, WRITE_FILE

ACTIONS = "actions.jsonl"
PLAN_NAME = re.compile(r"^[a-z0-9][a-z0-9-]{0,63}$")
PLACEHOLDER = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")
_SAVED = re.compile(r"^([a-z][a-z0-9_]*)\.reference$")


class Action(Strict):
    """One tool call of a plan."""

    tool: str
    arguments: dict[str, Any]
    save_as: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")] | None = None


@dataclass(frozen=True)
class Plan:
    """One acceptable way to solve the task. `files` are the deliverables by name, as bytes."""

    name: str
    actions: tuple[Action, ...]
    files: Mapping[str, bytes] = field(repr=False)

    def content(self, action: Action) -> str:
        """The text that a write_file action writes."""
        return self.files[action.arguments["content_file"]].decode("utf-8")


def placeholders(value: Any) -> Iterator[str]:
    """What stands between {{ and }} anywhere in the arguments."""
    if isinstance(value, str):
        yield from PLACEHOLDER.findall(value)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from placeholders(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from placeholders(inner)


def filled(value: Any, saved: Mapping[str, str]) -> Any:
    """The arguments with every `{{name.reference}}` replaced by `saved[name]` (a reference such as Type/id)."""
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda found: saved[found[1].removesuffix(".reference")], value)
    if isinstance(value, dict):
        return {key: filled(inner, saved) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [filled(inner, saved) for inner in value]
    return value


def read_plan(name: str, files: Mapping[str, bytes], folder: str) -> tuple[Plan | None, list[Fault]]:
    """The plan in `files` (names inside its folder) and every fault of it; no plan where actions cannot be read."""
    path = f"{folder}/{ACTIONS}"
    if ACTIONS not in files:
        return None, [Fault(folder, f"the plan has no {ACTIONS}; add it or remove the folder")]
    try:
        source = text(files[ACTIONS], path)
    except Misread as error:
        return None, list(error.faults)
    deliverables = {file: data for file, data in files.items() if file != ACTIONS}
    actions: list[Action] = []
    faults: list[Fault] = []
    saved: set[str] = set()
    used: set[str] = set()
    unreadable = False
    for number, line in enumerate(source.rstrip("\n").split("\n"), start=1):
        place = at(path, number)
        try:
            action = _action(line, path, number)
        except Misread as error:
            faults += error.faults
            # What the unreadable line saves or writes is not known, so that its absence is no second fault.
            unreadable = True
            continue
        if action.tool == WRITE_FILE:
            file = action.arguments.get("content_file")
            used.add(str(file))
            faults += _write_faults(action, deliverables, place)
        for wanted in placeholders(action.arguments):
            found = _SAVED.match(wanted)
            if not found:
                faults.append(
                    Fault(place, f"the placeholder {shown(wanted)} is not of the form {{{{name.reference}}}}")
                )
            elif found[1] not in saved and not unreadable:
                faults.append(Fault(place, f"no earlier line saves {shown(found[1])}.{nearest(found[1], saved)}"))
        if action.save_as and action.save_as in saved:
            faults.append(Fault(place, f"save_as: {shown(action.save_as)} is saved already by an earlier line"))
        if action.save_as:
            saved.add(action.save_as)
        actions.append(action)
    for file in sorted(set(deliverables) - used if not unreadable else ()):
        faults.append(Fault(f"{folder}/{file}", f"no write_file of {ACTIONS} names this file; name it or delete it"))
    for file in sorted(deliverables):
        try:
            text(deliverables[file], f"{folder}/{file}")
        except Misread as error:
            faults += error.faults
    return Plan(name, tuple(actions), deliverables), faults


def _action(line: str, path: str, number: int) -> Action:
    place = at(path, number)
    if not line.strip():
        raise Misread(Fault(place, "the line is blank; remove it"))
    data = json_value(line, path, line=number)
    if not isinstance(data, dict):
        raise Misread(Fault(place, 'not a JSON object; write {"tool": ..., "arguments": {...}}'))
    arguments = data.get("arguments")
    # Arguments stay as JSON has them; only the shell around them is strict.
    outer = {**data, "arguments": {}} if isinstance(arguments, dict) else data
    action = validated(Action, outer, path, line=number)
    if action.tool not in TOOL_NAMES:
        hint = nearest(action.tool, TOOL_NAMES) or f" They are: {', '.join(TOOL_NAMES)}."
        raise Misread(Fault(place, f"tool: {shown(action.tool)} is not one of the 14 tools.{hint}"))
    if action.save_as and action.tool not in CREATE_TOOLS:
        raise Misread(Fault(place, f"save_as: {action.tool} creates nothing that has a reference; remove save_as"))
    return action.model_copy(update={"arguments": arguments})


def _write_faults(action: Action, files: Mapping[str, bytes], place: str) -> list[Fault]:
    arguments = action.arguments
    stray = sorted(set(arguments) - {"file_path", "content_file", "mode"})
    if stray or "content_file" not in arguments or "file_path" not in arguments:
        said = f"; {', '.join(stray)} does not belong there" if stray else ""
        return [Fault(place, f'{WRITE_FILE} takes {{"file_path", "content_file"}} and perhaps "mode"{said}')]
    file = arguments["content_file"]
    if file not in files:
        return [Fault(place, f"content_file: {shown(file)} is not in the plan's folder.{nearest(str(file), files)}")]
    try:
        inside_output(str(arguments["file_path"]))
    except ValueError as error:
        return [Fault(place, f"file_path: {error}")]
    return []
