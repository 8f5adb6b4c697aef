"""Edits made by hand on a form: what was typed becomes the smallest exact edits, and nothing else changes."""

from __future__ import annotations

import base64
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from authoring import tomltext
from authoring.clinical import label
from authoring.comparing import edits_between
from authoring.edits import CheckpointEdit, Edit
from authoring.jsontext import value_at
from authoring.proposals import ProposedEdit
from authoring.quantities import same_unit, ucum
from tasks.anchors import attached_text
from tasks.errors import UsageError
from tasks.fhir.elements import check
from tasks.fhir.resources import dump_json, parse_json
from tasks.structure import chart_type

#: Elements that no form offers: they say what the resource is.
_FIXED = ("resourceType", "id", "meta")
_UCUM = "http://unitsofmeasure.org"


@dataclass(frozen=True)
class Leaf:
    """One value of a resource: its JSON pointer and its text. `note` = the text of a base64 attachment."""

    pointer: str
    text: str
    note: bool = False


def leaves(body: Mapping[str, Any]) -> list[Leaf]:
    """Every value of a resource that may be edited, in the order in which it is written."""
    out: list[Leaf] = []

    def walk(value: Any, pointer: str) -> None:
        if isinstance(value, dict):
            text = attached_text(value)
            for key, inner in value.items():
                if not pointer and key in _FIXED:
                    continue
                if key == "data" and text is not None:
                    out.append(Leaf(f"{pointer}/data", text, note=True))
                else:
                    walk(inner, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
        elif isinstance(value, list):
            for place, inner in enumerate(value):
                walk(inner, f"{pointer}/{place}")
        elif isinstance(value, bool):
            out.append(Leaf(pointer, "true" if value else "false"))
        elif value is not None:
            out.append(Leaf(pointer, str(value)))

    walk(dict(body), "")
    return out


#: Parts of a pointer under which stands what a machine reads: codes, links, origins.
_MACHINE = ("coding", "identifier", "extension", "modifierExtension", "contained", "div")
_MACHINE_LEAVES = ("system", "reference", "url", "contentType", "code", "id", "type", "hash", "size", "creation")
#: Where a comment may be added that is not there.
COMMENT = "/note/0/text"


def for_a_machine(leaf: Leaf) -> bool:
    """Whether a reader of the chart never meets this value: it is offered after the others."""
    parts = leaf.pointer.split("/")[1:]
    return any(part in _MACHINE for part in parts) or parts[-1] in _MACHINE_LEAVES


def may_comment(body: Mapping[str, Any]) -> bool:
    """Whether the resource has no comment and may have one."""
    if "note" in body:
        return False
    return not any(one.path == f"{body['resourceType']}.note" for one in check({**body, "note": [{"text": "x"}]}))


def resource_edits(line: bytes, ref: str, typed: Mapping[str, str]) -> tuple[Edit, ...]:
    """Operations on one resource for the values that were typed, {pointer: text}, each old value tested.

    A unit takes its code with it. Raises UsageError for text where a number or a yes/no stands, for a unit whose code
    is not known or another unit's, and for a result that is not valid R4.
    """
    before = parse_json(line.decode())
    after = copy.deepcopy(before)
    for leaf in leaves(before):
        if leaf.pointer in typed and typed[leaf.pointer] != leaf.text:
            _set(after, leaf, typed[leaf.pointer])
    for leaf in leaves(before):
        if leaf.pointer.endswith("/unit"):
            _code_with(before, after, leaf.pointer.removesuffix("/unit"))
    if (comment := typed.get(COMMENT, "").strip()) and "note" not in before:
        after["note"] = [{"text": comment}]
    kind = ref.partition("/")[0]
    path = f"chart/{kind}.ndjson"
    if dump_json(after) == dump_json(before):
        return ()
    known = {(one.path, one.code) for one in check(before)}
    if wrong := [one for one in check(after) if (one.path, one.code) not in known]:
        said = "; ".join(f"{label('/' + '/'.join(one.path.split('.')[1:]))}: {one.message}" for one in wrong[:3])
        raise UsageError(f"This is no valid entry of a record: {said}.")
    return edits_between({path: line + b"\n"}, {path: dump_json(after).encode() + b"\n"})


def _code_with(before: Any, after: Any, pointer: str) -> None:
    """Give a quantity whose unit was changed the code of the new unit: grading reads the code, readers the unit.

    Raises UsageError where the two are not the same unit, or where nothing tells that they are.
    """
    was, now = value_at(before, pointer), value_at(after, pointer)
    if "code" not in was or (was["unit"], was["code"]) == (now["unit"], now["code"]):
        return
    if now["code"] == was["code"]:
        code = ucum(now["unit"]) if was.get("system") in (None, _UCUM) else ""
        if not code and was["unit"] == was["code"]:
            code = now["unit"]
        if not code and same_unit(now["unit"], now["code"]) is not True:
            raise UsageError(
                f"{label(pointer + '/unit')}: for “{now['unit']}” no code is known, and grading reads the code, still "
                f"“{now['code']}”. Give the code of the unit too, under “Codes, links and origins”."
            )
        now["code"] = code or now["code"]
    if same_unit(now["unit"], now["code"]) is False:
        raise UsageError(
            f"{label(pointer + '/unit')}: “{now['unit']}” and the code “{now['code']}” are different units, and "
            "grading reads the code. Make both the same, the code under “Codes, links and origins”."
        )


def _set(body: Any, leaf: Leaf, text: str) -> None:
    parts = [part.replace("~1", "/").replace("~0", "~") for part in leaf.pointer.split("/")[1:]]
    for part in parts[:-1]:
        body = body[int(part)] if isinstance(body, list) else body[part]
    key: Any = int(parts[-1]) if isinstance(body, list) else parts[-1]
    was = body[key]
    if leaf.note:
        body[key] = base64.b64encode(text.encode()).decode("ascii")
    elif isinstance(was, bool):
        if text not in ("true", "false"):
            raise UsageError(f"{label(leaf.pointer)} is yes or no: write true or false.")
        body[key] = text == "true"
    elif isinstance(was, (int, float, Decimal)):
        try:
            number = Decimal(text.strip())
        except InvalidOperation:
            raise UsageError(f"{label(leaf.pointer)} is a number; “{text}” is none.") from None
        if not number.is_finite():
            raise UsageError(f"{label(leaf.pointer)} is a number; “{text}” is none.")
        body[key] = int(number) if number == number.to_integral_value() and "." not in text else number
    else:
        if not text:
            raise UsageError(f"{label(leaf.pointer)} may not be left empty.")
        body[key] = text


def text_edits(files: Mapping[str, bytes], path: str, text: str) -> tuple[Edit, ...]:
    """Find/replace edits that make the text of a file."""
    before = files.get(path, b"")
    if before.decode("utf-8") == text:
        return ()
    return edits_between({path: before}, {path: text.encode()})


def checkpoint_edits(files: Mapping[str, bytes], checkpoint: str, wanted: Mapping[str, Any]) -> tuple[Edit, ...]:
    """One edit of the keys of a checkpoint that are to be other than they are. None = the key goes."""
    table = tomltext.table(files["checkpoints.toml"].decode(), checkpoint)
    present = {key: plain(table.get(key)) for key in wanted}
    changed = [key for key in wanted if plain(wanted[key]) != present[key]]
    if not changed:
        return ()
    return (
        CheckpointEdit(
            checkpoint=checkpoint,
            set={key: wanted[key] for key in changed},
            was={key: present[key] for key in changed},
        ),
    )


def plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def entry(edits: Sequence[Edit], findings: Sequence[str], rationale: str) -> str:
    """A drafted part of a proposal as it is kept."""
    made = [ProposedEdit(edit=one, findings=tuple(findings), rationale=rationale) for one in edits]
    return dump_json([_listed(one.model_dump(mode="python")) for one in made])


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _listed(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_listed(item) for item in value]
    return value


def parsed(kept: str) -> tuple[ProposedEdit, ...]:
    """A drafted part as it was kept."""
    return tuple(ProposedEdit.model_validate(one) for one in parse_json(kept))


def resources_of(files: Mapping[str, bytes], kind: str) -> bytes:
    """The lines of a chart file, or nothing."""
    return next((data for path, data in files.items() if chart_type(path) == kind), b"")
