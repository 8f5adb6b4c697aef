"""The R4 element table: which elements a resource may have, of what type, how often, and with which codes.

Checked: unknown elements, cardinality, primitive formats, codes of required bindings, the type a reference leads to.
Not checked: invariants (a booked Appointment without a start passes), profiles, terminologies beyond the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from tasks.fhir.dates import TIME, span_of


class Issue(NamedTuple):
    """One fault of a resource: where, the OperationOutcome issue code, and a sentence that quotes nothing from it."""

    path: str
    code: str
    message: str


class Element(NamedTuple):
    """One row of the table, as reached by one JSON key (`valueQuantity` and `valueString` are two)."""

    name: str  #: as the table has it, `value[x]`
    minimum: int
    many: bool
    type: str  #: `code`, `CodeableConcept`, `BackboneElement`, `Reference`, `Resource`
    targets: tuple[str, ...]  #: resource types a Reference may lead to; empty = any
    codes: frozenset[str]  #: of a required binding; empty = not bound here
    inside: str  #: the context of its children: a datatype, or a path such as `Observation.component`


class Context(NamedTuple):
    """The elements of a resource, a datatype or a backbone: by JSON key, and the required ones by name."""

    keys: dict[str, Element]
    required: dict[str, tuple[str, ...]]  #: name -> the JSON keys of which one must be there
    choices: dict[str, tuple[str, ...]]  #: name -> the JSON keys of which at most one may be there


_REFERENCE = re.compile(r"(Reference|canonical)\(([A-Za-z|]+)\)")


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads((files("tasks.fhir.definitions") / "elements.json").read_text("utf-8"))
    return table


@cache
def resource_types() -> frozenset[str]:
    """Every concrete R4 resource type."""
    return frozenset(name for name, (kind, _) in _table().items() if kind == "resource")


@cache
def context(path: str) -> Context:
    """The elements below a type (`Period`) or a backbone (`Observation.component`); KeyError if there is none."""
    root, _, below = path.partition(".")
    rows = _table()[root][1]
    prefix = f"{below}." if below else ""
    keys: dict[str, Element] = {}
    required: dict[str, tuple[str, ...]] = {}
    choices: dict[str, tuple[str, ...]] = {}
    for name, (minimum, many, types, codes) in rows.items():
        if not name.startswith(prefix) or "." in name[len(prefix) :]:
            continue
        short = name[len(prefix) :]
        has_children = any(other.startswith(f"{name}.") for other in rows)
        made = []
        for written in types:
            target: tuple[str, ...] = ()
            kind = written
            if match := _REFERENCE.fullmatch(written):
                kind, target = match[1], tuple(t for t in match[2].split("|") if t not in ("Resource", "Any"))
            inside = kind
            if kind.startswith("@"):
                kind, inside = "BackboneElement", kind[1:]
            elif has_children:
                inside = f"{root}.{name}"
            key = short
            if short.endswith("[x]"):
                key = short[:-3] + kind[0].upper() + kind[1:]
            if key in keys:  # several Reference rows of one choice
                target = (*keys[key].targets, *target) if target and keys[key].targets else ()
            else:
                made.append(key)
            keys[key] = Element(short, minimum, bool(many), kind, target, frozenset(codes or ()), inside)
        if minimum:
            required[short] = tuple(made)
        if short.endswith("[x]"):
            choices[short] = tuple(made)
    if root in resource_types() and not below:
        keys["resourceType"] = Element("resourceType", 1, False, "code", (), frozenset(), "code")
    return Context(keys, required, choices)


_URI = re.compile(r"\S+")
_CODE = re.compile(r"[^\s]+( [^\s]+)*")
_BASE64 = re.compile(r"(\s*([0-9a-zA-Z+/=]){4}\s*)+")
_PATTERNS: dict[str, re.Pattern[str]] = {
    "code": _CODE,
    "id": re.compile(r"[A-Za-z0-9\-.]{1,64}", re.ASCII),
    "uri": _URI,
    "url": _URI,
    "canonical": _URI,
    "oid": re.compile(r"urn:oid:[0-2](\.(0|[1-9][0-9]*))+", re.ASCII),
    "uuid": re.compile(r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII),
    "time": TIME,
}
_TEXTS = frozenset({"string", "markdown", "xhtml", "base64Binary"})
_INTEGERS = {"integer": -(2**31), "unsignedInt": 0, "positiveInt": 1}
_DATES = frozenset({"date", "dateTime", "instant"})
PRIMITIVES = frozenset({*_PATTERNS, *_TEXTS, *_INTEGERS, *_DATES, "boolean", "decimal"})


def _date_fits(kind: str, text: str) -> bool:
    span = span_of(text)
    if span is None:
        return False
    if kind == "date":
        return "T" not in text
    if kind == "instant":
        return span.zoned and span.unit in ("second", "fraction")
    return "T" not in text or (span.zoned and span.unit in ("second", "fraction"))


def primitive_fits(kind: str, value: object) -> bool:
    """Whether a JSON value is a valid R4 primitive of this type."""
    if kind == "boolean":
        return isinstance(value, bool)
    if kind in _INTEGERS:
        return type(value) is int and _INTEGERS[kind] <= value < 2**31
    if kind == "decimal":
        return isinstance(value, (int, Decimal)) and not isinstance(value, bool)
    if not isinstance(value, str) or not value:
        return False
    if kind in _DATES:
        return _date_fits(kind, value)
    if kind == "base64Binary":
        packed = "".join(value.split())
        return len(packed) % 4 == 0 and bool(re.fullmatch(r"[0-9a-zA-Z+/]*={0,2}", packed))
    if kind in _TEXTS:
        return not value.isspace()
    return bool(_PATTERNS[kind].fullmatch(value))


def check(body: dict[str, Any]) -> list[Issue]:
    """Every fault that the element table sees in a resource, in the order of the body; [] = none."""
    return list(_resource(body, None, ""))


def _resource(body: Any, within: dict[str, Any] | None, path: str) -> Iterator[Issue]:
    if not isinstance(body, dict):
        yield Issue(path or "resource", "structure", "a resource is a JSON object")
        return
    kind = body.get("resourceType")
    if not isinstance(kind, str) or kind not in resource_types():
        yield Issue(path or "resourceType", "structure", "resourceType is not a FHIR R4 resource type")
        return
    yield from _Walk(body if within is None else within).node(body, kind, path or kind)


class _Walk:
    """One pass over one resource; contained resources are checked against their container's list."""

    def __init__(self, container: dict[str, Any]) -> None:
        self.container = container
        listed = container.get("contained")
        self.contained = {
            item.get("id"): item.get("resourceType")
            for item in (listed if isinstance(listed, list) else [])
            if isinstance(item, dict)
        }

    def node(self, node: dict[str, Any], inside: str, path: str) -> Iterator[Issue]:
        known = context(inside)
        if not node or all(key == "resourceType" for key in node):
            yield Issue(path, "structure", "an object has no element")
            return
        for key, value in node.items():
            element = known.keys.get(key)
            if element is None and key.startswith("_"):
                element = known.keys.get(key[1:])
                if element is not None and element.type in PRIMITIVES:
                    yield from self.shadow(value, element, f"{path}.{key}")
                    continue
                element = None
            if element is None:
                yield Issue(f"{path}.{_shown(key)}", "structure", f"{inside} has no element of this name")
                continue
            if key != "resourceType":
                yield from self.values(value, element, f"{path}.{key}")
        for name, keys in known.required.items():
            if not any(key in node or f"_{key}" in node for key in keys):
                yield Issue(f"{path}.{name}", "required", "the element is required")
        for name, keys in known.choices.items():
            if sum(key in node or f"_{key}" in node for key in keys) > 1:
                yield Issue(f"{path}.{name}", "structure", "only one type of this element may be given")

    def shadow(self, value: Any, element: Element, path: str) -> Iterator[Issue]:
        """`_birthDate` and the like: id and extensions of a primitive."""
        items = value if element.many else [value]
        if not isinstance(items, list):
            yield Issue(path, "structure", "the element repeats, so it is written as an array")
            return
        for number, item in enumerate(items):
            place = f"{path}[{number}]" if element.many else path
            if item is None and element.many:
                continue
            if not isinstance(item, dict):
                yield Issue(place, "structure", "id and extensions of a primitive are an object")
            else:
                yield from self.node(item, "Element", place)

    def values(self, value: Any, element: Element, path: str) -> Iterator[Issue]:
        if not element.many:
            if isinstance(value, list):
                yield Issue(path, "structure", "the element does not repeat, so it is not an array")
            else:
                yield from self.value(value, element, path)
            return
        if not isinstance(value, list):
            yield Issue(path, "structure", "the element repeats, so it is written as an array")
        elif not value:
            yield Issue(path, "structure", "an array is never empty")
        else:
            for number, item in enumerate(value):
                if item is None and element.type in PRIMITIVES:
                    continue
                yield from self.value(item, element, f"{path}[{number}]")

    def value(self, value: Any, element: Element, path: str) -> Iterator[Issue]:
        kind = element.type
        if kind in PRIMITIVES:
            if not primitive_fits(kind, value):
                yield Issue(path, "value", f"the value is not a valid {kind}")
            elif element.codes and value not in element.codes:
                yield Issue(path, "code-invalid", f"the code is not one of: {', '.join(sorted(element.codes))}")
            return
        if kind == "Resource":
            yield from _resource(value, self.container, path)
            return
        if not isinstance(value, dict):
            yield Issue(path, "structure", f"a {kind} is a JSON object")
            return
        yield from self.node(value, element.inside, path)
        if kind == "Reference":
            yield from self.reference(value, element, path)
        elif element.codes and kind == "CodeableConcept":
            codings = value.get("coding")
            codes = [c.get("code") for c in codings if isinstance(c, dict)] if isinstance(codings, list) else []
            if not any(isinstance(code, str) and code in element.codes for code in codes):
                yield Issue(path, "code-invalid", f"no coding is one of: {', '.join(sorted(element.codes))}")
        elif kind == "Extension" and "value" in {key[:5] for key in value} and "extension" in value:
            yield Issue(path, "structure", "an extension has a value or extensions, not both")

    def reference(self, value: dict[str, Any], element: Element, path: str) -> Iterator[Issue]:
        literal = value.get("reference")
        kind: object = value.get("type")
        if isinstance(literal, str) and literal:
            if literal.startswith("#"):
                if literal != "#" and literal[1:] not in self.contained:
                    yield Issue(path, "value", "the reference names a contained resource that is not there")
                    return
                kind = self.contained.get(literal[1:], self.container.get("resourceType"))
            elif not literal.startswith("urn:"):
                kind = reference_type(literal)
                if kind is None and ":" not in literal:
                    yield Issue(path, "value", "a reference reads Type/id, #id or is an absolute URL")
                    return
        if isinstance(kind, str) and element.targets and kind not in element.targets:
            yield Issue(path, "value", f"the reference may lead to: {', '.join(element.targets)}")


def reference_type(literal: str) -> str | None:
    """The resource type in `Type/id`, `Type/id/_history/1` or an absolute URL that ends so; None if it names none."""
    parts = literal.split("?")[0].split("/")
    if len(parts) >= 4 and parts[-2] == "_history":
        parts = parts[:-2]
    if len(parts) >= 2 and parts[-2] in resource_types() and _PATTERNS["id"].fullmatch(parts[-1]):
        return parts[-2]
    return None


def _shown(key: str) -> str:
    """An unknown key as it may be shown: element-like names only, since a key can hold anything."""
    return key if re.fullmatch(r"[A-Za-z_]\w{0,40}", key, re.ASCII) else "(key)"
