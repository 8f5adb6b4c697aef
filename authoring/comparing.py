"""Minimal edits between two states of a package, for those who edit in their own tools and then propose.

For each file the edits that say most are tried first (operations on a resource, keys of a checkpoint), then plain
find/replace; what is taken gives exactly the bytes of the folder. reviews/, CHANGELOG.md and the version are the
workbench's and are left out.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from authoring import tomltext
from authoring.edits import (
    AddCheckpoint,
    AddFile,
    AddResource,
    ChartLines,
    CheckpointEdit,
    Edit,
    Files,
    ManifestEdit,
    Package,
    RemoveCheckpoint,
    RemoveFile,
    RemoveResource,
    ResourceEdit,
    TextEdit,
)
from authoring.jsontext import EditError, same
from tasks.errors import WorkbenchError
from tasks.fhir.resources import Resource, dump_json, parse_json
from tasks.structure import chart_type

_WORD = re.compile(r"\w+|\s+|[^\w\s]")


def compared(path: str) -> bool:
    """Whether a file of a package is compared at all."""
    return not path.startswith("reviews/") and path != "CHANGELOG.md"


def edits_between(before: Files, after: Files) -> tuple[Edit, ...]:
    """Edits that make `after` of `before`, byte for byte. Raises EditError for a file that no edit can give."""
    wanted = {path: data for path, data in after.items() if compared(path)}
    if "task.toml" in wanted and "task.toml" in before:
        wanted["task.toml"] = _with_version_of(before["task.toml"], wanted["task.toml"])
    out: list[Edit] = []
    for path in sorted(path for path in {*before, *wanted} if compared(path)):
        old, new = before.get(path), wanted.get(path)
        if old != new:
            out += _edits(before, path, old, new)
    package = Package(before)
    for edit in out:
        package = package.apply(edit)
    made = {path: data for path, data in package.files().items() if compared(path)}
    if made != wanted:
        wrong = sorted(path for path in {*made, *wanted} if made.get(path) != wanted.get(path))
        raise EditError("no edits give exactly these bytes", where=", ".join(wrong))
    return tuple(out)


def _with_version_of(old: bytes, new: bytes) -> bytes:
    try:
        return tomltext.edit_manifest(
            new.decode(),
            "version",
            tomltext.value_at(old.decode(), "version"),
            tomltext.value_at(new.decode(), "version"),
        ).encode()
    except (WorkbenchError, ValueError):
        return new


def _edits(before: Files, path: str, old: bytes | None, new: bytes | None) -> list[Edit]:
    for candidate in _candidates(path, old, new):
        package = Package(before)
        try:
            for edit in candidate:
                package = package.apply(edit)
        except WorkbenchError:
            continue
        if package.read(path) == new:
            return candidate
    if chart_type(path):
        raise EditError(
            "a line differs in more than its values", where=path, remedy=f"Keep its layout: {_layout(old, new)}."
        )
    raise EditError("this file cannot be changed by a proposal", where=path)


def _layout(old: bytes | None, new: bytes | None) -> str:
    a, b = ChartLines(old or b""), ChartLines(new or b"")
    odd = [
        id
        for id in b.ids()
        if a.get(id) != (line := b.get(id)) and line and dump_json(parse_json(line)) != line.decode()
    ]
    return f"one resource a line, no spaces, as in the others ({', '.join(odd[:5]) or 'order or blank lines'})"


def _candidates(path: str, old: bytes | None, new: bytes | None) -> Iterator[list[Edit]]:
    if chart_type(path):
        kind = chart_type(path) or ""
        for rebuild in (False, True):
            yield list(_chart(kind, ChartLines(old or b""), ChartLines(new or b""), rebuild=rebuild))
        return
    try:
        a, b = (old or b"").decode(), (new or b"").decode()
    except UnicodeDecodeError:
        raise EditError("only text can be proposed", where=path) from None
    if old is None:
        if path == "checkpoints.toml":
            yield [AddCheckpoint(table=_plain(tomltext.table(b, id))) for id, _ in tomltext.blocks(b)[1]]
        yield [AddFile(path=path, content=b)]
        return
    if new is None:
        yield [RemoveFile(path=path, was=sha256(old).hexdigest())]
        return
    try:
        if path == "checkpoints.toml":
            yield list(_checkpoints(a, b))
        if path == "task.toml":
            yield list(_manifest(a, b))
    except (EditError, tomllib.TOMLDecodeError):
        pass
    yield list(_text(path, a, b))
    yield [TextEdit(path=path, find=a, replace=b)] if a else []


# Resources


def _chart(kind: str, old: ChartLines, new: ChartLines, *, rebuild: bool) -> Iterator[Edit]:
    for id in sorted({*old.ids(), *new.ids()}):
        a, b = old.get(id), new.get(id)
        if a == b:
            continue
        if b is None:
            yield RemoveResource(ref=f"{kind}/{id}", was=sha256(a or b"").hexdigest())
        elif a is None:
            yield AddResource(resource=Resource.parse(b.decode()).body)
        else:
            before, after = parse_json(a.decode()), parse_json(b.decode())
            operations = list(operations_between(before, after))
            if rebuild:
                operations = list(_rebuilt(before, after))
            if operations:
                yield ResourceEdit(ref=f"{kind}/{id}", operations=tuple(operations))


def operations_between(old: Any, new: Any, pointer: str = "") -> Iterator[dict[str, Any]]:
    """RFC 6902 operations from one JSON value to another, each replace and remove behind a test of what was there."""
    if _equal(old, new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [key for key in old if key not in new]:
            yield {"op": "test", "path": _join(pointer, key), "value": old[key]}
            yield {"op": "remove", "path": _join(pointer, key)}
        for key, value in new.items():
            if key in old:
                yield from operations_between(old[key], value, _join(pointer, key))
            else:
                yield {"op": "add", "path": _join(pointer, key), "value": value}
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_operations(old, new, pointer)
    else:
        yield {"op": "test", "path": pointer, "value": old}
        yield {"op": "replace", "path": pointer, "value": new}


def _list_operations(old: list[Any], new: list[Any], pointer: str) -> Iterator[dict[str, Any]]:
    if len(old) == len(new):
        for place, (a, b) in enumerate(zip(old, new, strict=True)):
            yield from operations_between(a, b, _join(pointer, str(place)))
        return
    start = 0
    while start < min(len(old), len(new)) and _equal(old[start], new[start]):
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and _equal(old[-1 - end], new[-1 - end]):
        end += 1
    for place in range(len(old) - end - 1, start - 1, -1):
        yield {"op": "test", "path": _join(pointer, str(place)), "value": old[place]}
        yield {"op": "remove", "path": _join(pointer, str(place))}
    for place in range(start, len(new) - end):
        yield {"op": "add", "path": _join(pointer, str(place)), "value": new[place]}


def _rebuilt(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Operations that take everything out from the first element that differs, and put it back in the new order."""
    keys, wanted = list(old), list(new)
    start = 0
    while start < min(len(keys), len(wanted)) and keys[start] == wanted[start]:
        if not _equal(old[keys[start]], new[keys[start]]):
            yield {"op": "test", "path": _join("", keys[start]), "value": old[keys[start]]}
            yield {"op": "replace", "path": _join("", keys[start]), "value": new[keys[start]]}
        start += 1
    for key in keys[start:]:
        yield {"op": "test", "path": _join("", key), "value": old[key]}
        yield {"op": "remove", "path": _join("", key)}
    for key in wanted[start:]:
        yield {"op": "add", "path": _join("", key), "value": new[key]}


def _equal(one: Any, other: Any) -> bool:
    """Equal as written: 5.0 and 5.00 say different things about a measurement."""
    return same(one, other) and dump_json(one) == dump_json(other)


def _join(pointer: str, key: str) -> str:
    return f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"


# TOML


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.isoformat() if isinstance(value, datetime) else value


def _checkpoints(old: str, new: str) -> Iterator[Edit]:
    before, after = dict(tomltext.blocks(old)[1]), dict(tomltext.blocks(new)[1])
    for id, part in before.items():
        if id not in after:
            yield RemoveCheckpoint(checkpoint=id, was=sha256(part.encode()).hexdigest())
    previous = ""
    for id, part in after.items():
        if id not in before:
            yield AddCheckpoint(table=_plain(tomltext.table(new, id)), after=previous)
        elif part != before[id]:
            a, b = _plain(tomltext.table(old, id)), _plain(tomltext.table(new, id))
            changed = [key for key in {**a, **b} if a.get(key) != b.get(key)]
            if changed:
                yield CheckpointEdit(
                    checkpoint=id, set={key: b.get(key) for key in changed}, was={key: a.get(key) for key in changed}
                )
        previous = id


def _manifest(old: str, new: str) -> Iterator[Edit]:
    a, b = dict(_leaves(_plain(tomllib.loads(old)))), dict(_leaves(_plain(tomllib.loads(new))))
    for key in {**a, **b}:
        if a.get(key) != b.get(key):
            yield ManifestEdit(key=key, value=b.get(key), was=a.get(key))


def _leaves(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, Mapping):
            yield from _leaves(item, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", item


# Text


def _text(path: str, old: str, new: str) -> Iterator[Edit]:
    """Find/replace edits, each as short as it can be while what it looks for stands once in the file."""
    for start, end, text in _grown(old, _spans(old, new)):
        yield TextEdit(path=path, find=old[start:end], replace=text)


def _spans(old: str, new: str) -> list[tuple[int, int, str]]:
    """(start, end, new text) of each changed run, in characters of the old text, cut to whole words."""
    a, b = _tokens(old), _tokens(new)
    out = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            out.append((a[i1:i2], b[j1:j2], i1))
    starts = [0]
    for token in a:
        starts.append(starts[-1] + len(token))
    spans = []
    for was, now, place in out:
        words_a, words_b = (_WORD.findall("".join(side)) for side in (was, now))
        inner = difflib.SequenceMatcher(None, words_a, words_b, autojunk=False)
        at = [starts[place]]
        for word in words_a:
            at.append(at[-1] + len(word))
        changed = [code for code in inner.get_opcodes() if code[0] != "equal"]
        spans += [(at[i1], at[i2], "".join(words_b[j1:j2])) for _, i1, i2, j1, j2 in changed]
    return spans


def _tokens(text: str) -> list[str]:
    parts = text.split("\n")
    return [*(part + "\n" for part in parts[:-1]), *([parts[-1]] if parts[-1] else [])]


def _grown(text: str, spans: Sequence[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Spans widened word by word until each stands once in the text; those that then overlap become one."""
    bounds = [0]
    for word in _WORD.findall(text):
        bounds.append(bounds[-1] + len(word))
    out: list[tuple[tuple[int, int, str], tuple[int, int]]] = []
    for span in spans:
        range_ = _widened(text, span, bounds)
        # A few unchanged words in between do not make two decisions of one.
        while out and (out[-1][1][1] > range_[0] or _near(text[out[-1][0][1] : span[0]])):
            start, end, new = out.pop()[0]
            span = (start, span[1], new + text[end : span[0]] + span[2])
            range_ = _widened(text, span, bounds)
        out.append((span, range_))
    return [(low, high, text[low:start] + new + text[end:high]) for (start, end, new), (low, high) in out]


def _widened(text: str, span: tuple[int, int, str], bounds: Sequence[int]) -> tuple[int, int]:
    low, high, _ = span
    while low == high or _stands_often(text, text[low:high]):
        lower = bounds[max(0, bisect_left(bounds, low) - 1)]
        higher = bounds[min(len(bounds) - 1, bisect_right(bounds, high))]
        if (lower, higher) == (low, high):
            break
        low, high = lower, higher
    return low, high


def _near(between: str) -> bool:
    return len(between) <= 40 and "\n\n" not in between and len(between.split()) <= 3


def _stands_often(text: str, find: str) -> bool:
    at = text.find(find)
    return text.find(find, at + 1) >= 0
