"""Edits of a task package as data: exact, whole or refused, and never wider than what they name (design 11).

    text        one find/replace in one text file, with exactly one match
    resource    RFC 6902 operations on one resource of the chart, old values tested
    checkpoint  keys of one checkpoint, with their present values
    manifest    one key of task.toml, with its present value
    add_… and remove_… of resources, checkpoints and files

An edit works on one *unit*: a file, one resource ("chart/Condition.ndjson#c-12"), one checkpoint
("checkpoints.toml#cp4") or one key ("task.toml#context.now"). Nothing here is fuzzy: what does not match exactly is
an EditError that shows the nearest real text.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from authoring import jsontext, tomltext
from authoring.jsontext import EditError
from tasks.fhir.resources import Resource, dump_json, parse_json
from tasks.strict import Strict
from tasks.structure import chart_type

Files = Mapping[str, bytes]
#: Files that hold text for people or for the grader and take find/replace.
_TEXT = ("instruction.md", "checkpoints.py", "checkpoints.toml", "task.toml")
_TEXT_FOLDERS = ("solution/", "examples/")
_MOST_MATCHES_SHOWN = 3


class TextEdit(Strict):
    """Replace `find`, which stands exactly once in the file, by `replace`."""

    kind: Literal["text"] = "text"
    path: str
    find: str = Field(min_length=1)
    replace: str


class ResourceEdit(Strict):
    """RFC 6902 operations on one resource."""

    kind: Literal["resource"] = "resource"
    ref: str
    operations: tuple[dict[str, Any], ...] = Field(min_length=1)


class AddResource(Strict):
    """A new resource of the chart, as one JSON object."""

    kind: Literal["add_resource"] = "add_resource"
    resource: dict[str, Any]


class RemoveResource(Strict):
    """Take a resource out. `was` is the SHA-256 of its line, so that what is removed is what was seen."""

    kind: Literal["remove_resource"] = "remove_resource"
    ref: str
    was: str


class CheckpointEdit(Strict):
    """Set keys of one checkpoint (null = take the key out). `was` has the present value of each (null = absent)."""

    kind: Literal["checkpoint"] = "checkpoint"
    checkpoint: str
    set: dict[str, Any] = Field(min_length=1)
    was: dict[str, Any]


class AddCheckpoint(Strict):
    """A new checkpoint, behind `after` ("" = at the end)."""

    kind: Literal["add_checkpoint"] = "add_checkpoint"
    table: dict[str, Any]
    after: str = ""


class RemoveCheckpoint(Strict):
    """Take a checkpoint out. `was` is the SHA-256 of its table's text."""

    kind: Literal["remove_checkpoint"] = "remove_checkpoint"
    checkpoint: str
    was: str


class ManifestEdit(Strict):
    """Set one dotted key of task.toml (null = take it out). `was` is its present value (null = absent)."""

    kind: Literal["manifest"] = "manifest"
    key: str = Field(pattern=r"^[a-z_]+(\.[a-z_]+)*$")
    value: Any
    was: Any


class AddFile(Strict):
    """A new text file of a solution or an example."""

    kind: Literal["add_file"] = "add_file"
    path: str
    content: str


class RemoveFile(Strict):
    """Take a file of a solution or an example out. `was` is the SHA-256 of its bytes."""

    kind: Literal["remove_file"] = "remove_file"
    path: str
    was: str


Edit = Annotated[
    TextEdit | ResourceEdit | AddResource | RemoveResource | CheckpointEdit | AddCheckpoint | RemoveCheckpoint
    | ManifestEdit | AddFile | RemoveFile,
    Field(discriminator="kind"),
]  # fmt: skip
EDIT: TypeAdapter[Edit] = TypeAdapter(Edit)


def parse_edit(value: Any) -> Edit:
    """An edit from parsed JSON. Parse the text with `parse_json` first: it keeps 5.00 as 5.00."""
    return EDIT.validate_python(value)


def unit_of(edit: Edit) -> str:
    """What the edit works on."""
    match edit:
        case TextEdit() | AddFile() | RemoveFile():
            return edit.path
        case ResourceEdit() | RemoveResource():
            return _resource_unit(edit.ref)
        case AddResource():
            return _resource_unit(f"{edit.resource.get('resourceType', '')}/{edit.resource.get('id', '')}")
        case CheckpointEdit() | RemoveCheckpoint():
            return f"checkpoints.toml#{edit.checkpoint}"
        case AddCheckpoint():
            return f"checkpoints.toml#{edit.table.get('id', '')}"
        case ManifestEdit():
            return f"task.toml#{edit.key}"


def path_of(edit: Edit) -> str:
    """The file that the edit changes."""
    return unit_of(edit).partition("#")[0]


def _resource_unit(ref: str) -> str:
    kind, _, id = ref.partition("/")
    return f"chart/{kind}.ndjson#{id}"


def unit_bytes(files: Files, unit: str) -> bytes | None:
    """The bytes of a unit as it stands in a package, or None where it is not there."""
    path, _, inner = unit.partition("#")
    if path not in files:
        return None
    if not inner:
        return files[path]
    if chart_type(path):
        return resource_lines(files[path]).get(inner)
    if path == "checkpoints.toml":
        return next((part.encode() for id, part in tomltext.blocks(files[path].decode())[1] if id == inner), None)
    value = tomltext.value_at(files[path].decode(), inner)
    return None if value is None else dump_json(value).encode()


def unit_hash(files: Files, unit: str) -> str:
    """SHA-256 of a unit's bytes, "" where it is not there."""
    found = unit_bytes(files, unit)
    return "" if found is None else sha256(found).hexdigest()


def change_id(edit: Edit, before: Files) -> str:
    """What makes a change this change: the hash of its path, the old and the new. The same change proposed again, in
    whatever words, has the same id. Raises EditError where the edit does not apply."""
    unit = unit_of(edit)
    if isinstance(edit, TextEdit):
        old, new = edit.find.encode(), edit.replace.encode()
    else:
        old, new = unit_bytes(before, unit) or b"", unit_bytes(apply(before, edit), unit) or b""
    digest = sha256()
    for part in (unit.encode(), old, new):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def apply(files: Files, edit: Edit) -> dict[str, bytes]:
    """The package after one edit. Raises EditError; the given package is never changed."""
    after = dict(files)
    path = path_of(edit)
    match edit:
        case TextEdit():
            after[path] = _replace(files, edit)
        case ResourceEdit() | AddResource() | RemoveResource():
            _edit_chart(after, path, edit)
        case CheckpointEdit():
            after[path] = tomltext.edit_checkpoint(_toml(files, path), edit.checkpoint, edit.set, edit.was).encode()
        case AddCheckpoint():
            text = files[path].decode() if path in files else ""
            after[path] = tomltext.add_checkpoint(text, edit.table, edit.after).encode()
        case RemoveCheckpoint():
            _expect(unit_hash(files, unit_of(edit)), edit.was, unit_of(edit))
            after[path] = tomltext.remove_checkpoint(_toml(files, path), edit.checkpoint).encode()
        case ManifestEdit():
            after[path] = tomltext.edit_manifest(_toml(files, path), edit.key, edit.value, edit.was).encode()
        case AddFile():
            if path in files:
                raise EditError("the file is there already", where=path, remedy="Edit it, or remove it first.")
            _allowed(path, _TEXT_FOLDERS)
            after[path] = edit.content.encode()
        case RemoveFile():
            _allowed(path, _TEXT_FOLDERS)
            _expect(unit_hash(files, path), edit.was, path)
            del after[path]
    if after.get(path) == files.get(path):
        raise EditError("the edit changes nothing", where=unit_of(edit))
    return after


#: How chart lines begin as they are written here; keys stand once, so the first id is the resource's.
_ID_FIRST = re.compile(rb'\{"resourceType":"[A-Za-z]+","id":"([A-Za-z0-9\-.]{1,64})"[,}]')


def resource_lines(data: bytes) -> dict[str, bytes]:
    """{id: line without its end} of a chart file, in its order. Lines written in our form are not parsed for it."""
    out = {}
    for line in data.split(b"\n"):
        if line.strip():
            found = _ID_FIRST.match(line)
            out[found[1].decode() if found else Resource.parse(line.decode()).id] = line
    return out


def _edit_chart(after: dict[str, bytes], path: str, edit: ResourceEdit | AddResource | RemoveResource) -> None:
    if not chart_type(path):
        raise EditError("a resource is named Type/id", where=unit_of(edit))
    lines = resource_lines(after[path]) if path in after else {}
    id = unit_of(edit).partition("#")[2]
    if isinstance(edit, AddResource):
        if id in lines:
            raise EditError("a resource with this id is there already", where=unit_of(edit))
        added = Resource.from_body(edit.resource, where="the new resource")
        lines[id] = added.raw.encode()
        lines = dict(sorted(lines.items()))
    elif id not in lines:
        known = difflib.get_close_matches(id, lines, n=_MOST_MATCHES_SHOWN)
        hint = f"Near it: {', '.join(known)}." if known else ""
        raise EditError("there is no such resource in the chart", where=edit.ref, remedy=hint)
    elif isinstance(edit, ResourceEdit):
        lines[id] = jsontext.patch(lines[id].decode(), edit.operations, where=edit.ref).encode()
    else:
        _expect(sha256(lines[id]).hexdigest(), edit.was, edit.ref)
        del lines[id]
    if lines:
        after[path] = b"\n".join(lines.values()) + b"\n"
    else:
        del after[path]


def _replace(files: Files, edit: TextEdit) -> bytes:
    _allowed(edit.path, (*_TEXT, *_TEXT_FOLDERS))
    if edit.path not in files:
        raise EditError("there is no such file in the package", where=edit.path)
    text = files[edit.path].decode()
    places = _places(text, edit.find)
    if len(places) == 1:
        return text.replace(edit.find, edit.replace, 1).encode()
    if places:
        lines = [text.count("\n", 0, at) + 1 for at in places]
        raise EditError(
            f"the text to find stands {len(places)} times, at lines {', '.join(map(str, lines[:10]))}",
            where=edit.path,
            remedy="Take more of the text around the right one.",
        )
    raise EditError(
        "the text to find does not stand in the file", where=edit.path, remedy=_nearest_lines(text, edit.find)
    )


def _places(text: str, find: str) -> list[int]:
    """Where the text stands, overlapping places too: "aa" stands twice in "aaa"."""
    out, at = [], text.find(find)
    while at >= 0:
        out.append(at)
        at = text.find(find, at + 1)
    return out


def _nearest_lines(text: str, find: str) -> str:
    """The real lines that look most like the wanted ones, with their numbers."""
    wanted = next((line for line in find.split("\n") if line.strip()), find)
    lines = text.split("\n")
    near = difflib.get_close_matches(
        wanted, [line for line in lines if line.strip()], n=_MOST_MATCHES_SHOWN, cutoff=0.5
    )
    if not near:
        return "No line resembles it."
    return "Nearest: " + "; ".join(f"line {lines.index(line) + 1}: {line!r}" for line in near) + "."


def _toml(files: Files, path: str) -> str:
    if path not in files:
        raise EditError("there is no such file in the package", where=path)
    return files[path].decode()


def _expect(present: str, was: str, where: str) -> None:
    if not present:
        raise EditError("it is not there", where=where)
    if present != was:
        raise EditError("it is not what the edit expects it to be", where=where)


def _allowed(path: str, places: tuple[str, ...]) -> None:
    parts = path.split("/")
    if not path.startswith(places) or ".." in parts or "" in parts or (path not in _TEXT and "/" not in path):
        raise EditError(
            "such an edit may not touch this file", where=path, remedy=f"It may touch: {', '.join(places)}."
        )


def parse_edits(text: str) -> list[Edit]:
    """Edits from a JSON list, decimals kept as written."""
    value = parse_json(text)
    if not isinstance(value, list):
        raise EditError("edits are a JSON list")
    return [parse_edit(one) for one in value]
