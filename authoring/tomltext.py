"""Edits of task.toml and checkpoints.toml in place: tomlkit keeps what an edit does not name, byte for byte.

checkpoints.toml is cut into its [[checkpoint]] tables first, and only the table that is edited goes through tomlkit.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
import tomlkit.exceptions
from tomlkit.items import Item

from authoring.jsontext import EditError, same

_HEADER = re.compile(r"^\[\[checkpoint\]\][ \t]*(#.*)?$", re.MULTILINE)


def blocks(text: str) -> tuple[str, list[tuple[str, str]]]:
    """(what stands before the first table, [(checkpoint id, text of its table)]).

    Raises EditError where the tables cannot be told apart, as with a header inside a multi-line string.
    """
    starts = [found.start() for found in _HEADER.finditer(text)]
    head = text[: starts[0]] if starts else text
    out = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        part = text[start:end]
        try:
            tables = tomllib.loads(part)["checkpoint"]
            (table,) = tables
            out.append((str(table["id"]), part))
        except (tomllib.TOMLDecodeError, KeyError, ValueError):
            raise EditError("the checkpoints cannot be told apart here", where="checkpoints.toml") from None
    return head, out


def table(text: str, checkpoint: str) -> dict[str, Any]:
    """One checkpoint's table, parsed. Raises EditError where it is not there."""
    return dict(tomllib.loads(_block(text, checkpoint))["checkpoint"][0])


def _block(text: str, checkpoint: str) -> str:
    for id, part in blocks(text)[1]:
        if id == checkpoint:
            return part
    raise EditError(f"there is no checkpoint {checkpoint}", where="checkpoints.toml")


def edit_checkpoint(text: str, checkpoint: str, changes: Mapping[str, Any], was: Mapping[str, Any]) -> str:
    """The file with keys of one checkpoint set (None = taken out). `was`: the present value of each (None = absent).

    Raises EditError where a present value is another one, or the id is to change.
    """
    part = _block(text, checkpoint)
    present = table(text, checkpoint)
    if "id" in changes:
        raise EditError("a checkpoint keeps its id", where=checkpoint, remedy="Remove it and add another.")
    _expect(present, changes, was, where=checkpoint)
    document = tomlkit.parse(part)
    target = document["checkpoint"][0]
    for key, value in changes.items():
        if value is None:
            del target[key]
        else:
            target[key] = _written(value)
    new = tomlkit.dumps(document)
    return text.replace(part, new, 1)


def add_checkpoint(text: str, new: Mapping[str, Any], after: str = "") -> str:
    """The file with one more table: behind the checkpoint `after`, else at the end. Raises EditError for a known id."""
    head, present = blocks(text)
    ids = [id for id, _ in present]
    if new.get("id") in ids:
        raise EditError(f"{new['id']} is there already", where="checkpoints.toml")
    lines = ["[[checkpoint]]", *(f"{key} = {_written(value).as_string()}" for key, value in new.items()), ""]
    written = "\n".join(lines)
    if after and after not in ids:
        raise EditError(f"there is no checkpoint {after}", where="checkpoints.toml")
    parts = [part for _, part in present]
    position = ids.index(after) + 1 if after else len(parts)
    before = (parts[position - 1] if position else head).rstrip("\n")
    separator = "\n\n" if before else ""
    tail = "".join(parts[position:])
    text_before = head + "".join(parts[:position])
    return text_before.rstrip("\n") + separator + written + ("\n" + tail if tail else "")


def remove_checkpoint(text: str, checkpoint: str) -> str:
    """The file without one table."""
    return text.replace(_block(text, checkpoint), "", 1).rstrip("\n") + "\n"


def edit_manifest(text: str, key: str, value: Any, was: Any) -> str:
    """task.toml with one dotted key set (None = taken out). `was` is its present value (None = absent)."""
    document = tomlkit.parse(text)
    *path, last = key.split(".")
    target: Any = document
    for part in path:
        if part not in target:
            if value is None:
                raise EditError("there is no such key", where=f"task.toml: {key}")
            target[part] = tomlkit.table()
        target = target[part]
    _expect(tomllib.loads(text) if not path else _at(text, path), {last: value}, {last: was}, where=f"task.toml: {key}")
    if value is None:
        del target[last]
    else:
        target[last] = _written(value)
    return tomlkit.dumps(document)


def _at(text: str, path: Sequence[str]) -> Mapping[str, Any]:
    found: Any = tomllib.loads(text)
    for part in path:
        found = found.get(part, {}) if isinstance(found, Mapping) else {}
    return found if isinstance(found, Mapping) else {}


def _expect(present: Mapping[str, Any], changes: Mapping[str, Any], was: Mapping[str, Any], *, where: str) -> None:
    for key, value in changes.items():
        if not same(_json(present.get(key)), was.get(key)):
            raise EditError(f"{key} is not what the edit expects it to be", where=where)
        if value is None and key not in present:
            raise EditError(f"{key} is not there", where=where)


def _json(value: Any) -> Any:
    """A TOML value as JSON has it: dates as text."""
    if isinstance(value, Mapping):
        return {key: _json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_json(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def _written(value: Any) -> Item:
    """A value as TOML: tables inside a checkpoint inline, as the format has them; dates from their text."""
    if isinstance(value, Mapping):
        inline = tomlkit.inline_table()
        for key, item in value.items():
            inline.append(key, _written(item))
        return inline
    if isinstance(value, (list, tuple)):
        array = tomlkit.array()
        for item in value:
            array.append(_written(item))
        if len(value) > 1 and any(isinstance(item, Mapping) for item in value):
            array.multiline(True)
        return array
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d([.]\d+)?([+-]\d\d:\d\d|Z)", value):
        return tomlkit.datetime(value)
    if isinstance(value, str) and "\n" in value:
        return tomlkit.string(value, multiline=True, escape=True)
    try:
        made: Item = tomlkit.item(value)
    except (tomlkit.exceptions.TOMLKitError, ValueError, TypeError):
        raise EditError(f"a value of type {type(value).__name__} cannot stand in TOML") from None
    return made


def value_at(text: str, key: str) -> Any:
    """The value of a dotted key as JSON has it, or None where it is absent."""
    *path, last = key.split(".")
    return _json(_at(text, path).get(last))
