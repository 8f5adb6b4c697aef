"""What a person may change of a draft's edit in words, without JSON: the texts that it brings in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from authoring.edits import AddFile, CheckpointEdit, Edit, Files, ManifestEdit, Package, ResourceEdit, TextEdit, unit_of
from authoring.jsontext import same
from authoring.revising.answer import note_operations, note_texts
from tasks.errors import ChartError, UsageError
from tasks.fhir.resources import parse_json


@dataclass(frozen=True)
class Piece:
    """One text of an edit. `name` is its key, `label` what it is called, `long` whether it wants several lines."""

    name: str
    label: str
    text: str
    long: bool


def pieces(edit: Edit, files: Files) -> tuple[Piece, ...]:
    """The texts of an edit; () for one that can only be dropped and proposed anew by hand."""
    match edit:
        case TextEdit():
            return (Piece("replace", "The new text", edit.replace, True),)
        case AddFile():
            return (Piece("content", "The file", edit.content, True),)
        case ResourceEdit():
            note = _note(edit, files)
            if note is not None:
                return (Piece("note", "Text of the note", note[1], True),)
            return tuple(
                Piece(str(number), _label(operation["path"]), _written(operation["value"]), False)
                for number, operation in enumerate(edit.operations)
                if operation["op"] in ("add", "replace") and _is_plain(operation["value"])
            )
        case CheckpointEdit():
            return tuple(
                Piece(key, key.replace("_", " "), _written(value), isinstance(value, str) and len(value) > 80)
                for key, value in edit.set.items()
                if _is_plain(value)
            )
        case ManifestEdit() if _is_plain(edit.value):
            return (Piece("value", edit.key, _written(edit.value), False),)
    return ()


def changed(edit: Edit, texts: Mapping[str, str], files: Files) -> Edit:
    """The edit with other texts, {name: text}; the same edit where none differs.

    Raises UsageError for words where a number or a yes/no stands.
    """
    new = {one.name: texts[one.name] for one in pieces(edit, files) if texts.get(one.name, one.text) != one.text}
    if not new:
        return edit
    match edit:
        case TextEdit():
            return edit.model_copy(update={"replace": new["replace"]})
        case AddFile():
            return edit.model_copy(update={"content": new["content"]})
        case ResourceEdit() if "note" in new:
            found = _note(edit, files)
            assert found is not None
            pointer, _, before = found
            return edit.model_copy(update={"operations": note_operations(before, pointer, new["note"])})
        case ResourceEdit():
            operations = tuple(
                {**one, "value": _read(new[str(number)], one["value"])} if str(number) in new else one
                for number, one in enumerate(edit.operations)
            )
            return edit.model_copy(update={"operations": operations})
        case CheckpointEdit():
            return edit.model_copy(update={"set": {**edit.set, **{k: _read(v, edit.set[k]) for k, v in new.items()}}})
        case ManifestEdit():
            return edit.model_copy(update={"value": _read(new["value"], edit.value)})
    return edit


def _note(edit: ResourceEdit, files: Files) -> tuple[str, str, Any] | None:
    """(pointer of the attachment, its text after the edit, the resource before it) of an edit of one note's text."""
    changing = [one["path"] for one in edit.operations if one["op"] != "test"]
    data = [path for path in changing if path.endswith("/data")]
    if len(data) != 1 or any(path.rpartition("/")[0] != data[0].rpartition("/")[0] for path in changing):
        return None
    package = Package(files)
    before, after = package.unit(unit_of(edit)), package.apply(edit).unit(unit_of(edit))
    pointer = data[0].removesuffix("/data")
    text = dict(note_texts(parse_json(after))).get(pointer) if after else None
    return None if before is None or text is None else (pointer, text, parse_json(before))


def _is_plain(value: Any) -> bool:
    return not isinstance(value, (Mapping, list, tuple)) and value is not None


def _written(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _read(text: str, old: Any) -> Any:
    """The typed text as a value of the old one's kind."""
    if isinstance(old, str):
        return text
    try:
        value = parse_json(text.strip())
    except ChartError:
        value = None
    if isinstance(value, (str, Mapping, list)) or value is None or isinstance(value, bool) != isinstance(old, bool):
        kind = "true or false" if isinstance(old, bool) else "a number"
        raise UsageError(f"{kind} is wanted here.", remedy=f"It was {_written(old)}.")
    return old if same(value, old) and _written(old) == text.strip() else value


def _label(pointer: str) -> str:
    return " › ".join(part for part in pointer.split("/") if part and not part.isdecimal())
