"""What the model was shown: the resources and texts inside the shown part of its tool results.

A tool result is stored in full with the number of characters that the model was shown. A resource counts as shown
only where its own JSON entry lies whole inside that part; a quotation counts where the quoted words stand in the part
of the entry that was shown. Text that the agent itself wrote and then read back is no fact seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tasks.anchors import holds
from tasks.toolnames import CREATE_TOOLS, WRITE_FILE
from tasks.trials import ToolCall

_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)("(?=\s*(:)?)|\\?$)', re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.+-])-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?=[\s,\]}])")
_CUT_ESCAPE = re.compile(r"(?<!\\)\\u[0-9a-fA-F]{0,3}$")
_DECODER = json.JSONDecoder()

#: Tools whose results hold what the agent wrote, not what the record says.
WRITERS = frozenset({*CREATE_TOOLS, WRITE_FILE})


@dataclass(frozen=True)
class ShownEntry:
    """One resource in one tool result, as far as the model was shown it."""

    call: int
    ref: str
    shown: str
    whole: bool

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The string values and numbers of the shown part, decoded; of a string cut off, its beginning."""
        found = []
        between = []
        end = 0
        for match in _STRING.finditer(self.shown):
            between.append(self.shown[end : match.start()])
            end = match.end()
            if match.group(3):  # a key is not a fact
                continue
            body = match.group(1) if match.group(2) == '"' else _CUT_ESCAPE.sub("", match.group(1))
            try:
                found.append(str(json.loads(f'"{body}"', strict=False)))
            except ValueError:
                continue
        between.append(self.shown[end:])
        return (*found, *_NUMBER.findall(" ".join(between)))

    def holds(self, quote: str) -> bool:
        """Whether the quoted words stand in what was shown of this resource."""
        return any(holds(quote, text) for text in self.texts)


def is_read(call: ToolCall) -> bool:
    """Whether the call's result shows the record: not an error, not a write."""
    return not call.error and not call.writes and call.tool not in WRITERS


def shown_entries(calls: Iterable[ToolCall], *, written: frozenset[str] = frozenset()) -> Iterator[ShownEntry]:
    """Every resource that a read call showed, in order. `written`: references that the agent itself created."""
    for call in calls:
        if not is_read(call):
            continue
        for start, end, ref in resource_spans(call.result, call.shown):
            if ref not in written:
                yield ShownEntry(call.n, ref, call.result[start : min(end, call.shown)], end <= call.shown)


def resource_spans(result: str, shown: int) -> list[tuple[int, int, str]]:
    """(start, end, reference) of the resources of a tool result that begin inside the first `shown` characters.

    A result is `{"entries": [resource, ...], ...}`, a Bundle, or one resource. What is not JSON has none.
    """
    try:
        return list(_spans(result, shown))
    except (ValueError, IndexError, RecursionError):
        return []


def _spans(text: str, shown: int) -> Iterator[tuple[int, int, str]]:
    start = _skip(text, 0)
    if text[start] != "{":
        return
    top: dict[str, Any] = {}
    for key, at in _members(text, start):
        if key in ("entries", "entry") and text[at] == "[":
            for place in _elements(text, at, shown):
                yield from _resource_at(text, place)
            return
        elif key in ("resourceType", "id"):
            top[key] = _DECODER.raw_decode(text, at)[0]
    if "resourceType" in top and "id" in top and top["resourceType"] != "Bundle":
        end = _DECODER.raw_decode(text, start)[1]
        yield start, end, f"{top['resourceType']}/{top['id']}"


def _resource_at(text: str, start: int) -> Iterator[tuple[int, int, str]]:
    value, end = _DECODER.raw_decode(text, start)
    if not isinstance(value, dict):
        return
    if isinstance(value.get("resource"), dict) and "resourceType" not in value:  # a Bundle's entry
        for key, at in _members(text, start):
            if key == "resource":
                yield from _resource_at(text, at)
    elif isinstance(value.get("resourceType"), str) and isinstance(value.get("id"), str):
        yield start, end, f"{value['resourceType']}/{value['id']}"


def _members(text: str, start: int) -> Iterator[tuple[str, int]]:
    """(key, where its value starts) of the JSON object at `start`."""
    at = _skip(text, start + 1)
    while text[at] == '"':
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] != ":":
            raise ValueError("not a JSON object")
        at = _skip(text, at + 1)
        yield key, at
        at = _skip(text, _DECODER.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _skip(text, at + 1)


def _elements(text: str, start: int, shown: int) -> Iterator[int]:
    """Where each element of the JSON array at `start` begins, as far as it begins inside the shown part."""
    at = _skip(text, start + 1)
    while text[at] != "]" and at < shown:
        yield at
        at = _skip(text, _DECODER.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
