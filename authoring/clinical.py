"""A change in clinical words: a resource as a table of fields, a checkpoint before and after in plain words.

Nothing that changed may be hidden: each changed JSON path is either told by a row or listed raw below the table.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

from authoring.applying import Consequence
from authoring.diffs import Piece, words
from authoring.jsontext import value_at
from graders.describe import describe
from graders.words import words_in
from tasks.declarations import Checkpoint
from tasks.errors import WorkbenchError
from tasks.fhir.resources import Resource, dump_json, parse_json
from tasks.package import Task

#: Elements in a clinician's words; what is not here is shown by its FHIR name, split at its capitals.
_LABELS = {
    "medicationCodeableConcept": "Drug", "valueQuantity": "Value", "valueString": "Value",
    "valueCodeableConcept": "Value", "effectiveDateTime": "Taken at", "issued": "Resulted at",
    "authoredOn": "Ordered at", "recordedDate": "Recorded at",
    "onsetDateTime": "Onset", "abatementDateTime": "Ended", "referenceRange": "Reference range",
    "clinicalStatus": "Status",
    "verificationStatus": "Certainty", "dosageInstruction": "Directions", "doseQuantity": "Dose", "birthDate": "Born",
    "attachment": "Note text", "bodySite": "Site", "reasonCode": "Reason", "note": "Comment", "code": "What",
    "performedDateTime": "Done at", "occurrenceDateTime": "Due at", "interpretation": "Flag",
}  # fmt: skip
_SYSTEMS = {
    "http://loinc.org": "LOINC", "http://snomed.info/sct": "SNOMED CT",
    "http://www.nlm.nih.gov/research/umls/rxnorm": "RxNorm", "http://hl7.org/fhir/sid/icd-10-cm": "ICD-10-CM",
}  # fmt: skip
_ABSENT = "not there"


@dataclass(frozen=True)
class Row:
    """One field. `old` or `new` "not there" = it is added or removed; `range` is the reference range in force; `prose`
    marks what changed in a text word by word."""

    field: str
    path: str
    old: str
    new: str
    range: str = ""
    prose: tuple[Piece, ...] = ()


@dataclass(frozen=True)
class Raw:
    """A changed path that no row tells of, as JSON."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class FieldTable:
    """A changed resource: what it is, the fields that changed, and whatever else did."""

    title: str
    rows: tuple[Row, ...]
    raw: tuple[Raw, ...]


def field_table(old: bytes | None, new: bytes | None, zone: tzinfo | None = None) -> FieldTable:
    """The difference of two versions of one resource, each its JSON line or None where it is added or removed.

    `zone`: the task's, in which the title's day is told.
    """
    before = parse_json(old.decode()) if old else {}
    after = parse_json(new.decode()) if new else {}
    shown = Resource.parse((new or old or b"{}").decode())
    changed = dict(_changed(before, after))
    told: set[str] = set()
    rows: list[Row] = []
    for path in changed:
        if path in told:
            continue
        row, covers = _row(path, before, after)
        told |= {one for one in changed if one in covers}
        if path in covers:
            rows.append(row)
    raw = tuple(Raw(path, _json(a), _json(b)) for path, (a, b) in changed.items() if path not in told)
    return FieldTable(_title(shown, zone), tuple(rows), raw)


def _title(resource: Resource, zone: tzinfo | None) -> str:
    try:
        return f"{resource.type}: {describe(resource, zone)}"
    except (AttributeError, KeyError, TypeError, ValueError):
        # Not valid R4: the gate says so; here it still has to be shown.
        return resource.type


def _changed(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, tuple[Any, Any]]]:
    """(JSON pointer, (old, new)) of every leaf that differs; None = not there. 5.0 and 5.00 differ."""
    if isinstance(old, (Mapping, list)) or isinstance(new, (Mapping, list)):
        a, b = dict(_members(old)), dict(_members(new))
        if not a and not b and type(old) is not type(new):
            yield path, (old, new)
        for key in {**a, **b}:
            yield from _changed(a.get(key), b.get(key), f"{path}/{key}")
        if a and not isinstance(new, (Mapping, list)) and new is not None:
            yield path, (None, new)
        if b and not isinstance(old, (Mapping, list)) and old is not None:
            yield path, (old, None)
    elif _json(old) != _json(new):
        yield path, (old, new)


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key).replace("~", "~0").replace("/", "~1"), item
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield str(place), item


def _row(path: str, before: Any, after: Any) -> tuple[Row, frozenset[str]]:
    """The row that tells of a changed leaf, and the leaves that it tells of."""
    parts = path.split("/")[1:]
    for depth in range(len(parts) - 1, 0, -1):
        place = "/" + "/".join(parts[:depth])
        a, b = value_at(before, place), value_at(after, place)
        for kind in (_quantity, _attachment, _concept):
            told_a, told_b = kind(a), kind(b)
            keys = {key for one in (told_a, told_b) if one for key in one[1]}
            if (told_a or a is None) and (told_b or b is None) and keys:
                covers = frozenset(f"{place}/{key}" for key in keys)
                if path not in covers:
                    break
                texts = [told[0] if told else _ABSENT for told in (told_a, told_b)]
                if texts[0] == texts[1]:
                    break
                prose = words(*(told[0] if told else "" for told in (told_a, told_b))) if kind is _attachment else ()
                range_ = _range(after if b is not None else before) if kind is _quantity else ""
                return Row(label(place), place, texts[0], texts[1], range_, prose), covers
    a, b = value_at(before, path), value_at(after, path)
    texts = [_ABSENT if one is None else one if isinstance(one, str) else _json(one) for one in (a, b)]
    if texts[0] == texts[1]:
        # 5 and "5" read alike and are not.
        texts = [_json(a), _json(b)]
    marked = _words(a, b) if _is_prose(a) or _is_prose(b) else ()
    return Row(label(path), path, texts[0], texts[1], prose=marked), frozenset({path})


def _words(a: Any, b: Any) -> tuple[Piece, ...]:
    return words(*("" if one is None else one if isinstance(one, str) else _json(one) for one in (a, b)))


def _is_prose(value: Any) -> bool:
    return isinstance(value, str) and len(value.split()) > 3


def _quantity(value: Any) -> tuple[str, tuple[str, ...]] | None:
    """A quantity in words, and the members that the words hold."""
    if not isinstance(value, Mapping) or "value" not in value or isinstance(value["value"], (Mapping, list, str)):
        return None
    unit = value.get("unit")
    said = f"{value.get('comparator', '')}{_json(value['value'])} {unit if unit is not None else ''}".strip()
    return said, ("value", "unit", "comparator")


def _concept(value: Any) -> tuple[str, tuple[str, ...]] | None:
    """A coded concept as its text, its display and its code."""
    if (
        not isinstance(value, Mapping)
        or not ({"coding", "text"} & set(value))
        or not set(value) <= {"coding", "text", "id"}
    ):
        return None
    codings = value.get("coding") or []
    if not isinstance(codings, list) or any(not isinstance(one, Mapping) for one in codings):
        return None
    told = ["text"]
    said = []
    for place, one in enumerate(codings):
        told += [f"coding/{place}/{key}" for key in ("display", "code", "system")]
        system = one.get("system", "")
        name = f"{_SYSTEMS.get(system, system)} {one.get('code', '')}".strip()
        said.append(f"{one.get('display', '')} ({name})".strip() if name else str(one.get("display", "")))
    text = str(value["text"]) if "text" in value else ""
    return " · ".join(part for part in (text, *said) if part), tuple(told)


def _attachment(value: Any) -> tuple[str, tuple[str, ...]] | None:
    """The text of a note that stands in it as base64."""
    if not isinstance(value, Mapping) or not isinstance(value.get("data"), str):
        return None
    try:
        return base64.b64decode(value["data"], validate=True).decode(), ("data",)
    except (binascii.Error, UnicodeDecodeError):
        return None


def _range(body: Any) -> str:
    """The reference range of a result, as the record has it."""
    ranges = body.get("referenceRange") if isinstance(body, Mapping) else None
    if not isinstance(ranges, list) or not ranges or not isinstance(ranges[0], Mapping):
        return ""
    if ranges[0].get("text"):
        return str(ranges[0]["text"])
    low, high = (_quantity(ranges[0].get(side)) for side in ("low", "high"))
    if low and high:
        return f"{low[0]} to {high[0]}"
    return f"at least {low[0]}" if low else f"at most {high[0]}" if high else ""


def label(path: str) -> str:
    """ "/dosageInstruction/0/doseAndRate/0/doseQuantity" -> "Directions: dose"."""
    parts = [part for part in path.split("/")[1:] if not part.isdigit() and part not in ("content", "doseAndRate")]
    said = []
    for part in parts:
        spoken = re.sub(r"(?<=[a-z])([A-Z])", lambda found: f" {found[1].lower()}", part)
        said.append(_LABELS.get(part, spoken[:1].upper() + spoken[1:]))
    numbers = [part for part in path.split("/")[1:] if part.isdigit() and part != "0"]
    where = f" (no. {', '.join(str(int(n) + 1) for n in numbers)})" if numbers else ""
    return said[0] + "".join(f": {one[:1].lower() + one[1:]}" for one in said[1:]) + where if said else path


def _json(value: Any) -> str:
    return _ABSENT if value is None else dump_json(value)


# Checkpoints


@dataclass(frozen=True)
class CheckpointChange:
    """A checkpoint before and after, in plain words; `raw` = keys whose change the words do not show."""

    checkpoint: str
    title: str
    rows: tuple[Row, ...]
    raw: tuple[Raw, ...]


#: What a key of the declaration comes out as in plain words. A key that is not here is always listed raw.
_SAID = {
    "title": "Title", "criticality": "Criticality", "harm": "Harm", "rests_on": "Rests on", "source": "Sources",
    "order": "Passes", "must_not": "Fails", "followup": "Passes", "seen": "Passes",
}  # fmt: skip


def checkpoint_change(before: Task, after: Task, checkpoint: str) -> CheckpointChange:
    """What would pass and fail before and after. Raises WorkbenchError where neither task has the checkpoint."""
    old, new = (_find(task, checkpoint) for task in (before, after))
    if old is None and new is None:
        raise WorkbenchError("there is no such checkpoint.", where=checkpoint)
    said_a, said_b = _said(before, old), _said(after, new)
    rows = tuple(
        Row(label, checkpoint, said_a.get(label, _ABSENT), said_b.get(label, _ABSENT))
        for label in {**said_a, **said_b}
        if said_a.get(label) != said_b.get(label)
    )
    shown = {row.field for row in rows}
    a = old.model_dump(mode="json") if old else {}
    b = new.model_dump(mode="json") if new else {}
    raw = tuple(
        Raw(f"{checkpoint}.{key}", _json(a.get(key)), _json(b.get(key)))
        for key in {**a, **b}
        if a.get(key) != b.get(key) and _SAID.get(key) not in shown
    )
    code = () if before.code == after.code else (Raw("checkpoints.py", "as before", "changed: see its diff"),)
    known = new or old
    uses_code = known is not None and bool(known.function or known.truth)
    return CheckpointChange(checkpoint, known.title if known else checkpoint, rows, raw + (code if uses_code else ()))


def _find(task: Task, id: str) -> Checkpoint | None:
    return next((one for one in task.checkpoints if one.id == id), None)


def _said(task: Task, checkpoint: Checkpoint | None) -> dict[str, str]:
    if checkpoint is None:
        return {}
    told = words_in(task, checkpoint)
    parts = {
        "Title": (told.title,), "Passes": (*told.passes, *told.also), "Partial": (told.partial,), "Fails": told.fails,
        "Harm": (told.harm,), "Rests on": told.rests_on, "Sources": told.sources,
        "Criticality": (checkpoint.criticality,),
    }  # fmt: skip
    return {label: "\n".join(lines) for label, lines in parts.items() if any(lines)}


def consequence(before: Task, after: Task) -> Consequence:
    """What a change means for stored trials: run again, grade again, or neither."""
    return Consequence(before.agent_digest != after.agent_digest, before.grade_digest != after.grade_digest)
