"""RFC 6902 operations on JSON text, in place: what an operation does not name keeps its bytes.

`jsonpatch` works on parsed values and would rewrite the whole line. Here each operation replaces, inserts or cuts a
span of the text; the result is then checked against jsonpatch's, so that two implementations agree on every edit.
Pointers are RFC 6901.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import jsonpatch

from tasks.errors import PackageError
from tasks.fhir.resources import dump_json, parse_json

_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


class EditError(PackageError):
    """An edit that cannot be applied as it stands."""


@dataclass
class Node:
    """A value in the text: its span, and for containers the members with the start of each (key included)."""

    start: int
    end: int = 0
    members: dict[str, tuple[int, Node]] = field(default_factory=dict)
    is_list: bool = False
    is_container: bool = False


def scan(text: str) -> Node:
    """The tree of spans of a JSON text that is known to parse."""
    node, _ = _value(text, _skip(text, 0))
    return node


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _string_end(text: str, at: int) -> int:
    _, end = json.decoder.scanstring(text, at + 1, True)  # type: ignore[attr-defined]
    return int(end)


def _value(text: str, at: int) -> tuple[Node, int]:
    node = Node(at)
    if text[at] == '"':
        node.end = _string_end(text, at)
    elif text[at] in "[{":
        node.is_container, node.is_list = True, text[at] == "["
        closing = "]" if node.is_list else "}"
        at = _skip(text, at + 1)
        while text[at] != closing:
            start = at
            if node.is_list:
                key = str(len(node.members))
            else:
                end = _string_end(text, at)
                key = json.loads(text[at:end])
                at = _skip(text, _skip(text, end) + 1)
            child, at = _value(text, at)
            node.members[key] = (start, child)
            at = _skip(text, at)
            if text[at] == ",":
                at = _skip(text, at + 1)
        node.end = at + 1
    else:
        found = _SCALAR.match(text, at)
        node.end = found.end() if found else at + 1
    return node, node.end


def tokens(pointer: str) -> list[str]:
    """The parts of a JSON pointer. Raises EditError for text that is none."""
    if pointer and not pointer.startswith("/"):
        raise EditError(f"{pointer!r} is not a JSON pointer: it begins with '/'")
    if re.search(r"~(?![01])", pointer):
        raise EditError(f"{pointer!r} is not a JSON pointer: '~' stands only before 0 or 1")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def value_at(value: Any, pointer: str) -> Any:
    """What stands at a JSON pointer of a parsed value; None where nothing does."""
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping):
            value = value.get(key)
        elif isinstance(value, list):
            value = value[int(key)] if key.isdecimal() and int(key) < len(value) else None
        else:
            return None
    return value


def same(one: Any, other: Any) -> bool:
    """JSON equality: numbers by value, but 5 is not "5", and 1 is not true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, (int, float, Decimal)) and isinstance(other, (int, float, Decimal)):
        return Decimal(str(one)) == Decimal(str(other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(same(a, b) for a, b in zip(one, other, strict=True))
    return type(one) is type(other) and bool(one == other)


def patch(text: str, operations: Sequence[Mapping[str, Any]], *, where: str = "") -> str:
    """The text after the operations (test, add, replace, remove), every other byte as it was.

    Each replace and remove needs a `test` of the same path before it, each path through a list item a `test` inside
    that item. Raises EditError for an operation that breaks this, fails its test, or finds no place.
    """
    tested: set[str] = set()
    after = text
    for number, operation in enumerate(operations, 1):
        place = f"{where} operation {number}".strip()
        try:
            after = _apply(after, operation, tested)
        except EditError as fault:
            raise EditError(fault.what, where=place, remedy=fault.remedy) from None
    # The tests were made above, where 4.3 equals 4.3 whatever type holds it; jsonpatch compares types too.
    changing = [dict(op) for op in operations if op.get("op") != "test"]
    try:
        expected = jsonpatch.apply_patch(parse_json(text), parse_json(dump_json(changing)))
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
        raise EditError("the operations do not go together", where=where) from None
    if not same(parse_json(after), expected):
        raise EditError("the edit could not be applied without touching something else", where=where)
    return after


def _apply(text: str, operation: Mapping[str, Any], tested: set[str]) -> str:
    op, pointer = operation.get("op"), operation.get("path")
    if op not in ("test", "add", "replace", "remove"):
        raise EditError(f"the operation {op!r} is not one of test, add, replace, remove")
    if not isinstance(pointer, str):
        raise EditError("an operation needs a path")
    parts = tokens(pointer)
    if not parts:
        raise EditError("the whole resource cannot be the target; name the element")
    if op != "remove" and "value" not in operation:
        raise EditError(f"{op} needs a value")
    root = scan(text)
    if op == "test":
        found = _find(root, parts, pointer)
        if not same(parse_json(text[found.start : found.end]), operation["value"]):
            raise EditError(f"{pointer} is not what the edit expects it to be")
        tested.add(pointer)
        return text
    if parts[0] in ("id", "resourceType") and len(parts) == 1:
        raise EditError(f"{parts[0]} names the resource and cannot change", remedy="Remove it and add another.")
    _check_tested(root, parts, pointer, op, tested)
    if op == "remove":
        return _cut(text, _find(root, parts[:-1], pointer), parts[-1], pointer)
    value = dump_json(operation["value"])
    if op == "replace":
        found = _find(root, parts, pointer)
        return text[: found.start] + value + text[found.end :]
    return _insert(text, _find(root, parts[:-1], pointer), parts[-1], value, pointer)


def _check_tested(root: Node, parts: list[str], pointer: str, op: str, tested: set[str]) -> None:
    if op in ("replace", "remove") and pointer not in tested:
        raise EditError(f"{op} of {pointer} without a test of its old value before it")
    node = root
    for depth, part in enumerate(parts):
        if not node.is_container:
            break
        through_item = node.is_list and part != "-" and (depth < len(parts) - 1 or op != "add")
        if through_item:
            item = "/" + "/".join(p.replace("~", "~0").replace("/", "~1") for p in parts[: depth + 1])
            if not any(one == item or one.startswith(item + "/") for one in tested):
                raise EditError(f"{pointer} goes through the list item {item} without a test of what identifies it")
        if part not in node.members:
            break
        node = node.members[part][1]


def _find(node: Node, parts: list[str], pointer: str) -> Node:
    for part in parts:
        if part not in node.members:
            raise EditError(f"{pointer} leads nowhere in this resource")
        node = node.members[part][1]
    return node


def _cut(text: str, parent: Node, key: str, pointer: str) -> str:
    if key not in parent.members:
        raise EditError(f"{pointer} leads nowhere in this resource")
    keys = list(parent.members)
    position = keys.index(key)
    start, node = parent.members[key]
    if position + 1 < len(keys):
        # Up to the next member, its comma included.
        return text[:start] + text[parent.members[keys[position + 1]][0] :]
    if position:
        before = parent.members[keys[position - 1]][1]
        return text[: before.end] + text[node.end :]
    return text[:start] + text[node.end :]


def _insert(text: str, parent: Node, key: str, value: str, pointer: str) -> str:
    if not parent.is_container:
        raise EditError(f"{pointer} leads nowhere in this resource")
    members = list(parent.members.items())
    if parent.is_list:
        if key != "-" and not re.fullmatch(r"0|[1-9]\d*", key):
            raise EditError(f"{pointer}: a list takes a position or '-'")
        position = len(members) if key == "-" else int(key)
        if position > len(members):
            raise EditError(f"{pointer} is beyond the end of its list")
        if position < len(members):
            at = members[position][1][0]
            return text[:at] + value + "," + text[at:]
    else:
        if key in parent.members:
            raise EditError(f"{pointer} is there already", remedy="Use test and replace.")
        value = f"{json.dumps(key, ensure_ascii=False)}:{value}"
    if members:
        at = members[-1][1][1].end
        return text[:at] + "," + value + text[at:]
    at = parent.start + 1
    return text[:at] + value + text[at:]
