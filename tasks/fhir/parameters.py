"""Which search parameters a resource type has, from HL7's R4 table, and where in a resource their values stand."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from tasks.errors import SearchError
from tasks.fhir.elements import context, resource_types
from tasks.fhir.fhirpath import Walk, compiled


class Parameter(NamedTuple):
    """One search parameter of one resource type."""

    code: str
    type: str  #: token, date, string, reference, quantity, number, uri, composite
    walks: tuple[Walk, ...]
    targets: tuple[str, ...] = ()  #: of a reference: the types that it may lead to
    components: tuple[Component, ...] = ()  #: of a composite, in the order in which a value names them


class Component(NamedTuple):
    """One part of a composite: its type and the ways to it from the composite's own node."""

    type: str
    walks: tuple[Walk, ...]


_USAGE_QUANTITY = (("token", "code"), ("quantity", "(value as Quantity) | (value as Range)"))
_USAGE_VALUE = (("token", "code"), ("token", "(value as CodeableConcept)"))
_CODE_CONCEPT = (("token", "code"), ("token", "(value as CodeableConcept)"))
_CODE_QUANTITY = (("token", "code"), ("quantity", "(value as Quantity)"))

#: The components of R4's composites, which the table leaves out: HL7 R4, "component" of each SearchParameter.
_COMPONENTS: dict[str, tuple[tuple[str, str], ...]] = {
    "context-type-quantity": _USAGE_QUANTITY,
    "context-type-value": _USAGE_VALUE,
    "DocumentReference.relationship": (("reference", "target"), ("token", "code")),
    "Group.characteristic-value": (("token", "code"), ("token", "(value as CodeableConcept) | (value as boolean)")),
    "Observation.code-value-concept": _CODE_CONCEPT,
    "Observation.code-value-date": (("token", "code"), ("date", "(value as dateTime) | (value as Period)")),
    "Observation.code-value-quantity": _CODE_QUANTITY,
    "Observation.code-value-string": (("token", "code"), ("string", "(value as string)")),
    "Observation.combo-code-value-concept": _CODE_CONCEPT,
    "Observation.combo-code-value-quantity": _CODE_QUANTITY,
    "Observation.component-code-value-concept": _CODE_CONCEPT,
    "Observation.component-code-value-quantity": _CODE_QUANTITY,
}


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads((files("tasks.fhir.definitions") / "parameters.json").read_text("utf-8"))
    return table


def codes(type: str) -> list[str]:
    """The names of every parameter that a type can be searched by. Raises SearchError for an unknown type."""
    return [code for code, (kind, _, _) in _of(type).items() if kind != "composite" or _components(type, code)]


def _of(type: str) -> dict[str, Any]:
    if type not in resource_types():
        raise SearchError("there is no FHIR R4 resource type of this name.", where=_shown(type))
    table: dict[str, Any] = _table().get(type, {})
    return table


@cache
def parameter(type: str, code: str) -> Parameter | None:
    """The parameter `code` of a resource type; None if it has none of that name. SearchError: unknown type."""
    row = _of(type).get(code)
    if row is None:
        return None
    kind, expression, targets = row
    walks = compiled(expression, type)
    if named := set(re.findall(r"resolve\(\) is (\w+)", expression)):
        targets = [target for target in targets if target in named] or sorted(named)
    components: tuple[Component, ...] = ()
    if kind == "composite":
        parts = _components(type, code)
        if not parts:
            return None
        components = tuple(
            Component(part, tuple(dict.fromkeys(w for i in sorted({w.type for w in walks}) for w in _from(path, i))))
            for part, path in parts
        )
    return Parameter(code, kind, walks, tuple(targets), components)


def _components(type: str, code: str) -> tuple[tuple[str, str], ...]:
    """(parameter type, expression) of each component; () for MolecularSequence's, which this engine does not have."""
    return _COMPONENTS.get(f"{type}.{code}") or _COMPONENTS.get(code) or ()


def _from(path: str, inside: str) -> tuple[Walk, ...]:
    """Walks that start at a node of the given context rather than at a resource."""
    context(inside)
    return compiled(path, inside)


def required(type: str, code: str) -> Parameter:
    """The parameter, or a SearchError that lists the valid ones, as HAPI words it."""
    found = parameter(type, code)
    if found is None:
        raise unknown(type, code)
    return found


def unknown(type: str, code: str, *, role: str = "search parameter") -> SearchError:
    """The error for a parameter that a type does not have."""
    return SearchError(
        f'Unknown {role} "{_shown(code)}" for resource type "{type}".',
        where=f"{type}?{_shown(code)}",
        remedy=f"Valid search parameters for this search are: [{', '.join(codes(type))}]",
    )


def _shown(text: str) -> str:
    """A name from a request as an error may repeat it: short, and one line."""
    return re.sub(r"[^\w.:\-]", "?", text)[:64]
