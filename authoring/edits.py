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
#: Keys of task.toml that say which task and which version this is; nobody proposes them.
_FIXED_KEYS = ("id", "version", "schema_version")
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
    return Package(files).unit(unit)


def unit_hash(files: Files, unit: str) -> str:
    """SHA-256 of a unit's bytes, "" where it is not there."""
    return Package(files).unit_hash(unit)


def change_id(edit: Edit, before: Files) -> str:
    """What makes a change this change: the hash of its path, the old and the new. The same change proposed again, in
    whatever words, has the same id. Raises EditError where the edit does not apply."""
    package = Package(before)
    return identity(edit, package, package.apply(edit))


def identity(edit: Edit, before: Package, after: Package) -> str:
    """`change_id` where both sides are at hand."""
    unit = unit_of(edit)
    if isinstance(edit, TextEdit):
        old, new = edit.find.encode(), edit.replace.encode()
    else:
        old, new = before.unit(unit) or b"", after.unit(unit) or b""
    digest = sha256()
    for part in (unit.encode(), old, new):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def apply(files: Files, edit: Edit) -> dict[str, bytes]:
    """The package after one edit. Raises EditError; the given package is never changed."""
    return Package(files).apply(edit).files()


#: How chart lines begin as they are written here; keys stand once, so the first id is the resource's.
_ID_FIRST = re.compile(rb'\{"resourceType":"[A-Za-z]+","id":"([A-Za-z0-9\-.]{1,64})"[,}]')


class ChartLines:
    """A chart file as lines by resource id. A changed one shares all that it did not change; bytes outside the changed
    lines stay as they were, blank lines and a missing final newline too."""

    def __init__(self, data: bytes) -> None:
        self._parts: tuple[bytes, ...] = tuple(data.split(b"\n"))
        self._place = {}
        for place, part in enumerate(self._parts):
            if part.strip():
                found = _ID_FIRST.match(part)
                self._place[found[1].decode() if found else Resource.parse(part.decode()).id] = place
        self._edited: dict[str, bytes | None] = {}

    def get(self, id: str) -> bytes | None:
        """The resource's line, or None."""
        if id in self._edited:
            return self._edited[id]
        return self._parts[self._place[id]] if id in self._place else None

    def ids(self) -> list[str]:
        """All ids."""
        gone = {id for id, line in self._edited.items() if line is None}
        return [id for id in {**self._place, **self._edited} if id not in gone]

    def replaced(self, id: str, line: bytes | None) -> ChartLines:
        """With another line for this resource (None = without it)."""
        other = object.__new__(ChartLines)
        other._parts, other._place = self._parts, self._place
        other._edited = {**self._edited, id: line}
        return other

    def data(self) -> bytes | None:
        """The file's bytes; None where no resource is left."""
        parts: list[bytes | None] = list(self._parts)
        added = []
        for id, line in self._edited.items():
            if id in self._place:
                parts[self._place[id]] = line
            elif line is not None:
                added.append((id, line))
        for id, line in sorted(added, reverse=True):
            before = [other for other in self._place if other < id]
            parts.insert(self._place[max(before, key=self._place.__getitem__)] + 1 if before else 0, line)
        left = [part for part in parts if part is not None]
        if not any(part.strip() for part in left):
            return None
        if not self._place and added and left[-1].strip():
            left.append(b"")
        return b"\n".join(left)


def resource_lines(data: bytes) -> dict[str, bytes]:
    """{id: line without its end} of a chart file, in its order. Lines written in our form are not parsed for it."""
    out = {}
    for line in data.split(b"\n"):
        if line.strip():
            found = _ID_FIRST.match(line)
            out[found[1].decode() if found else Resource.parse(line.decode()).id] = line
    return out


class Package:
    """A package while edits are tried on it. `apply` gives another one and costs no more than what it changes, so that
    hundreds of edits on a chart of tens of thousands of resources are composed in one pass over its files."""

    def __init__(self, files: Files) -> None:
        self._given = files
        self._files: dict[str, bytes | None] = {}
        self._charts: dict[str, ChartLines] = {}
        # Chart files as they were given, parsed once for all packages that come from here.
        self._parsed: dict[str, ChartLines] = {}

    def read(self, path: str) -> bytes | None:
        """The bytes of a file, or None."""
        if path in self._charts:
            return self._charts[path].data()
        return self._files[path] if path in self._files else self._given.get(path)

    def unit(self, unit: str) -> bytes | None:
        """The bytes of a unit, or None where it is not there."""
        path, _, inner = unit.partition("#")
        if inner and chart_type(path):
            lines = self._lines(path)
            return lines.get(inner) if lines else None
        data = self.read(path)
        if data is None or not inner:
            return data
        if path == "checkpoints.toml":
            return next((part.encode() for id, part in tomltext.blocks(data.decode())[1] if id == inner), None)
        value = tomltext.value_at(data.decode(), inner)
        return None if value is None else dump_json(value).encode()

    def unit_hash(self, unit: str) -> str:
        """SHA-256 of a unit's bytes, "" where it is not there."""
        found = self.unit(unit)
        return "" if found is None else sha256(found).hexdigest()

    def files(self) -> dict[str, bytes]:
        """The whole package."""
        out = dict(self._given)
        for path in (*self._files, *self._charts):
            data = self.read(path)
            if data is None:
                out.pop(path, None)
            else:
                out[path] = data
        return out

    def apply(self, edit: Edit) -> Package:
        """The package after one edit. Raises EditError."""
        path, unit = path_of(edit), unit_of(edit)
        after = self._branch()
        if isinstance(edit, (ResourceEdit, AddResource, RemoveResource)):
            if not chart_type(path):
                raise EditError("a resource is named Type/id", where=unit)
            line = self._edited_line(path, unit, edit)
            if line == self.unit(unit):
                raise EditError("the edit changes nothing", where=unit)
            after._charts[path] = (self._lines(path) or ChartLines(b"")).replaced(unit.partition("#")[2], line)
            return after
        data = self._edited_file(path, unit, edit)
        if data == self.read(path):
            raise EditError("the edit changes nothing", where=unit)
        after._files[path] = data
        return after

    def _branch(self) -> Package:
        other = Package(self._given)
        other._files, other._charts, other._parsed = dict(self._files), dict(self._charts), self._parsed
        return other

    def _lines(self, path: str) -> ChartLines | None:
        if path in self._charts:
            return self._charts[path]
        if path not in self._parsed and path in self._given:
            self._parsed[path] = ChartLines(self._given[path])
        return self._parsed.get(path)

    def _edited_line(self, path: str, unit: str, edit: ResourceEdit | AddResource | RemoveResource) -> bytes | None:
        present = self.unit(unit)
        if isinstance(edit, AddResource):
            if present is not None:
                raise EditError("a resource with this id is there already", where=unit)
            return Resource.from_body(edit.resource, where="the new resource").raw.encode()
        if present is None:
            lines = self._lines(path)
            id = unit.partition("#")[2]
            known = difflib.get_close_matches(id, lines.ids(), n=_MOST_MATCHES_SHOWN) if lines else []
            hint = f"Near it: {', '.join(known)}." if known else ""
            raise EditError("there is no such resource in the chart", where=edit.ref, remedy=hint)
        if isinstance(edit, RemoveResource):
            _expect(sha256(present).hexdigest(), edit.was, edit.ref)
            return None
        return jsontext.patch(present.decode(), edit.operations, where=edit.ref).encode()

    def _edited_file(self, path: str, unit: str, edit: Edit) -> bytes | None:
        data = self.read(path)
        match edit:
            case TextEdit():
                return _replace(data, edit)
            case AddFile():
                if data is not None:
                    raise EditError("the file is there already", where=path, remedy="Edit it, or remove it first.")
                _allowed(path, _TEXT_FOLDERS)
                return edit.content.encode()
            case RemoveFile():
                _allowed(path, _TEXT_FOLDERS)
                _expect(self.unit_hash(path), edit.was, path)
                return None
            case AddCheckpoint():
                return tomltext.add_checkpoint((data or b"").decode(), edit.table, edit.after).encode()
            case CheckpointEdit():
                return tomltext.edit_checkpoint(_text(data, path), edit.checkpoint, edit.set, edit.was).encode()
            case RemoveCheckpoint():
                _expect(self.unit_hash(unit), edit.was, unit)
                return tomltext.remove_checkpoint(_text(data, path), edit.checkpoint).encode()
            case ManifestEdit():
                if edit.key in _FIXED_KEYS:
                    raise EditError(
                        "a proposal may not set this key",
                        where=unit,
                        remedy="The version rises when changes are applied.",
                    )
                return tomltext.edit_manifest(_text(data, path), edit.key, edit.value, edit.was).encode()
        raise AssertionError(edit)


def _replace(data: bytes | None, edit: TextEdit) -> bytes:
    _allowed(edit.path, (*_TEXT, *_TEXT_FOLDERS))
    text = _text(data, edit.path)
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


def _text(data: bytes | None, path: str) -> str:
    if data is None:
        raise EditError("there is no such file in the package", where=path)
    return data.decode()


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
