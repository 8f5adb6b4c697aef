"""From nodes of a resource to what the index holds: codes, words, ranges, quantities, links.

One function a search parameter type, used alike for a chart's index and for a session's few writes.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, NamedTuple

from tasks.fhir.dates import Span, covering, joined, span_of
from tasks.fhir.fhirpath import Walk

#: ISO 4217 as a FHIR system: the unit system of Money.
_CURRENCY = "urn:iso:std:iso:4217"


class Token(NamedTuple):
    """A coding, identifier, contact or plain code; system "" where the record gives none."""

    system: str
    code: str


class Quantity(NamedTuple):
    """A measured value as searched: the number, and the unit's system and code ("" where not given)."""

    value: float
    system: str
    code: str


def folded(text: str) -> str:
    """Text as string searches compare it: accents and case put aside (HAPI's normalisation: NFD, marks dropped)."""
    if text.isascii():
        return text.upper()
    plain = "".join(char for char in unicodedata.normalize("NFD", text) if not "\u0300" <= char <= "\u036f")
    return plain.upper()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(node: dict[str, Any], *names: str) -> Iterator[str]:
    for name in names:
        value = node.get(name)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str) and item:
                yield item


def _dicts(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield item


def tokens(kind: str, node: Any) -> Iterator[Token]:
    """The codes of a node of FHIR type `kind`."""
    if isinstance(node, bool):
        yield Token("", "true" if node else "false")
    elif isinstance(node, str):
        yield Token("", node)
    elif isinstance(node, dict):
        if kind == "CodeableConcept":
            for coding in _dicts(node.get("coding")):
                yield from tokens("Coding", coding)
        else:
            code = _text(node.get("code" if kind == "Coding" else "value"))
            system = _text(node.get("system"))
            if code or system:
                yield Token(system, code)


def token_texts(kind: str, node: Any) -> Iterator[str]:
    """What `:text` looks at: displays of codings, text of a concept, text of an identifier's type."""
    if not isinstance(node, dict):
        return
    if kind == "Coding":
        yield from _texts(node, "display")
    elif kind == "CodeableConcept":
        yield from _texts(node, "text")
        for coding in _dicts(node.get("coding")):
            yield from _texts(coding, "display")
    elif kind == "Identifier" and isinstance(node.get("type"), dict):
        yield from _texts(node["type"], "text")


def strings(kind: str, node: Any) -> Iterator[str]:
    """The texts of a node: itself, or the parts of a name or an address."""
    if isinstance(node, str):
        if node:
            yield node
    elif isinstance(node, dict):
        if kind == "HumanName":
            yield from _texts(node, "text", "family", "given", "prefix", "suffix")
        elif kind == "Address":
            yield from _texts(node, "text", "line", "city", "district", "state", "postalCode", "country")


def links(kind: str, node: Any) -> Iterator[str]:
    """Where a reference leads: `Type/id` or an absolute URL, without a version; a canonical as written."""
    literal = node if isinstance(node, str) else node.get("reference") if isinstance(node, dict) else None
    if isinstance(literal, str) and literal and not literal.startswith("#"):
        yield literal if kind in ("canonical", "uri") else literal.split("/_history/", 1)[0]


def uris(kind: str, node: Any) -> Iterator[str]:
    """A uri, url or canonical as written."""
    if isinstance(node, str) and node:
        yield node


def spans(kind: str, node: Any) -> Iterator[Span]:
    """The range that a date, Period or Timing covers."""
    span: Span | None = None
    if isinstance(node, str):
        span = span_of(node)
    elif isinstance(node, dict):
        span = _period(node) if kind == "Period" else _timing(node) if kind == "Timing" else None
    if span is not None:
        yield span


def _period(node: dict[str, Any]) -> Span | None:
    return joined(span_of(_text(node.get("start"))), span_of(_text(node.get("end"))))


def _timing(node: dict[str, Any]) -> Span | None:
    found = [span for event in _texts(node, "event") if (span := span_of(event))]
    repeat = node.get("repeat")
    bounds = repeat.get("boundsPeriod") if isinstance(repeat, dict) else None
    if isinstance(bounds, dict) and (span := _period(bounds)):
        found.append(span)
    return covering(found)


def _number(value: object) -> float | None:
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:  # an integer beyond every float; a decimal gives infinity by itself
            return math.inf if value > 0 else -math.inf
    return None


def quantities(kind: str, node: Any) -> Iterator[Quantity]:
    """The value and unit of a Quantity, Age, Duration or Money; low and high of a Range."""
    if not isinstance(node, dict):
        return
    if kind == "Range":
        for side in ("low", "high"):
            yield from quantities("Quantity", node.get(side))
        return
    value = _number(node.get("value"))
    if value is not None:
        if kind == "Money":
            yield Quantity(value, _CURRENCY, _text(node.get("currency")))
        else:
            yield Quantity(value, _text(node.get("system")), _text(node.get("code")))


def numbers(kind: str, node: Any) -> Iterator[float]:
    """A number; low and high of a Range."""
    if kind == "Range" and isinstance(node, dict):
        for side in ("low", "high"):
            if isinstance(part := node.get(side), dict) and (value := _number(part.get("value"))) is not None:
                yield value
    elif (value := _number(node)) is not None:
        yield value


def typed_nodes(walks: tuple[Walk, ...], body: dict[str, Any]) -> list[tuple[str, Any]]:
    """(FHIR type, node) of every value that the walks reach; an `exists` parameter gives its one boolean."""
    if walks and walks[0].exists:
        found = [node for walk in walks for node in walk.values(body)]
        return [("boolean", bool(found) and found[0] is not False)]
    reached: list[tuple[str, Any]] = []
    for walk in walks:
        # Most parameters of a type have no value in most resources: look at the first key before walking.
        if not walk.steps or walk.steps[0].key in body:
            kind = walk.type
            reached += [(kind, node) for node in walk.values(body)]
    return reached
