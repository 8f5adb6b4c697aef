"""The only shape that a reviser's answer can have, and how it becomes edits of a package.

The model's edits are those of authoring/edits.py with two differences: what it removes it need not hash (the package
it was shown is fixed), and the words of a note are found and replaced in the decoded text.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from hashlib import sha1, sha256
from typing import Annotated, Any, Literal

from pydantic import Field

from authoring.edits import (
    AddCheckpoint,
    AddFile,
    AddResource,
    CheckpointEdit,
    Edit,
    ManifestEdit,
    Package,
    RemoveCheckpoint,
    RemoveFile,
    RemoveResource,
    ResourceEdit,
    TextEdit,
)
from authoring.jsontext import EditError
from tasks.anchors import attached_text
from tasks.errors import ChartError
from tasks.fhir.resources import parse_json
from tasks.review.events import DimensionId
from tasks.strict import Strict

Words = Annotated[str, Field(min_length=1)]


class NoteEdit(Strict):
    """Replace `find`, which stands exactly once in the decoded text of the note, by `replace`."""

    kind: Literal["note"] = "note"
    ref: str = Field(description="the DocumentReference or other resource, Type/id")
    find: Words
    replace: str


class TakeOutResource(Strict):
    """Take a resource out of the chart."""

    kind: Literal["remove_resource"] = "remove_resource"
    ref: str


class TakeOutCheckpoint(Strict):
    """Take a checkpoint out."""

    kind: Literal["remove_checkpoint"] = "remove_checkpoint"
    checkpoint: str


class TakeOutFile(Strict):
    """Take a file of solution/ or examples/ out."""

    kind: Literal["remove_file"] = "remove_file"
    path: str


ModelEdit = Annotated[
    TextEdit | NoteEdit | ResourceEdit | AddResource | TakeOutResource | CheckpointEdit | AddCheckpoint
    | TakeOutCheckpoint | ManifestEdit | AddFile | TakeOutFile,
    Field(discriminator="kind"),
]  # fmt: skip


class RevisedEdit(Strict):
    """One edit, what it answers, and why."""

    edit: ModelEdit
    findings: tuple[str, ...] = Field(min_length=1, description="the findings that it resolves: F1, F2, ...")
    dimension: DimensionId
    rationale: Words = Field(description="why, for a physician, in one or two sentences")
    evidence: tuple[str, ...] = Field(min_length=1, description="what it rests on, in the grammar of the rules")
    risk: str = Field(description="what could go wrong with it")


class LeftOpen(Strict):
    """A finding that no edit resolves."""

    finding: str
    reason: Words


class RevisionAnswer(Strict):
    """Propose edits of the task that resolve the findings, and list the findings that stay open with the reason."""

    edits: tuple[RevisedEdit, ...]
    unaddressed: tuple[LeftOpen, ...] = ()


def read_answer(text: str) -> RevisionAnswer:
    """The answer in a call's arguments, numbers as they were written. Raises ValueError with words for the model."""
    try:
        value = parse_json(text)
    except ChartError as fault:
        raise ValueError(fault.what) from None
    return RevisionAnswer.model_validate(value)


def edit_of(edit: ModelEdit, package: Package) -> Edit:
    """The edit of the package that the model's edit means. Raises EditError."""
    match edit:
        case NoteEdit():
            return _in_note(edit, package)
        case TakeOutResource():
            return RemoveResource(ref=edit.ref, was=package.unit_hash(_chart_unit(edit.ref)))
        case TakeOutCheckpoint():
            return RemoveCheckpoint(
                checkpoint=edit.checkpoint, was=package.unit_hash(f"checkpoints.toml#{edit.checkpoint}")
            )
        case TakeOutFile():
            return RemoveFile(path=edit.path, was=sha256(package.read(edit.path) or b"").hexdigest())
        case _:
            return edit


def unit_named(edit: ModelEdit) -> str:
    """What the model's edit works on, as far as it can be named before it is tried."""
    match edit:
        case NoteEdit() | TakeOutResource() | ResourceEdit():
            return _chart_unit(edit.ref)
        case AddResource():
            return _chart_unit(f"{edit.resource.get('resourceType', '?')}/{edit.resource.get('id', '?')}")
        case TakeOutCheckpoint() | CheckpointEdit():
            return f"checkpoints.toml#{edit.checkpoint}"
        case AddCheckpoint():
            return f"checkpoints.toml#{edit.table.get('id', '?')}"
        case ManifestEdit():
            return f"task.toml#{edit.key}"
        case TextEdit() | AddFile() | TakeOutFile():
            return edit.path


def note_texts(body: Any) -> Iterator[tuple[str, str]]:
    """(JSON pointer of the attachment, its decoded text) of every text that is attached to a resource."""
    stack: list[tuple[str, Any]] = [("", body)]
    while stack:
        pointer, node = stack.pop(0)
        if isinstance(node, dict):
            text = attached_text(node)
            if text is not None:
                yield pointer, text
            stack += [(f"{pointer}/{_escaped(key)}", value) for key, value in node.items()]
        elif isinstance(node, list):
            stack += [(f"{pointer}/{number}", value) for number, value in enumerate(node)]


def _in_note(edit: NoteEdit, package: Package) -> ResourceEdit:
    line = package.unit(_chart_unit(edit.ref))
    if line is None:
        raise EditError("there is no such resource in the chart", where=edit.ref)
    body = parse_json(line)
    found = [(pointer, text) for pointer, text in note_texts(body) if edit.find in text]
    count = sum(_times(text, edit.find) for _, text in found)
    if count != 1:
        words = f"stands {count} times" if count else "does not stand"
        raise EditError(f"the text to find {words} in the note", where=edit.ref)
    pointer, text = found[0]
    return ResourceEdit(
        ref=edit.ref, operations=note_operations(body, pointer, text.replace(edit.find, edit.replace, 1))
    )


def note_operations(body: Any, pointer: str, text: str) -> tuple[dict[str, Any], ...]:
    """Tested operations that make `text` the attached text at `pointer` of a resource, size and hash with it."""
    attachment = _at(body, pointer)
    data = text.encode()
    values: dict[str, Any] = {"data": base64.b64encode(data).decode()}
    if "size" in attachment:
        values["size"] = len(data)
    if "hash" in attachment:
        # FHIR R4, Attachment.hash: the SHA-1 of the data, in base64.
        values["hash"] = base64.b64encode(sha1(data, usedforsecurity=False).digest()).decode()
    return tuple(
        one
        for key, value in values.items()
        for one in (
            {"op": "test", "path": f"{pointer}/{key}", "value": attachment[key]},
            {"op": "replace", "path": f"{pointer}/{key}", "value": value},
        )
    )


def _chart_unit(ref: str) -> str:
    kind, _, id = ref.partition("/")
    return f"chart/{kind}.ndjson#{id}"


def _times(text: str, find: str) -> int:
    count, at = 0, text.find(find)
    while at >= 0:
        count, at = count + 1, text.find(find, at + 1)
    return count


def _at(value: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
