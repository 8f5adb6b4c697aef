"""The part of FHIRPath that R4's search parameters are written in, compiled to plain walks over a parsed resource.

An expression becomes a list of walks: the JSON keys to follow, with choice elements spelt out (`value as Quantity` is
`valueQuantity`), the filters on the way, and the FHIR type of what is found there. Covered: paths, `|`, `as T`,
`.as(T)`, `.where(name='text')`, `.where(resolve() is T)`, `[0]`, and `X.exists() and X != false`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from tasks.fhir.elements import context, reference_type


class Filter(NamedTuple):
    """Keeps the nodes whose child `name` is `text`, or references whose target is of type `text` (name "")."""

    name: str
    text: str

    def keeps(self, node: Any) -> bool:
        """Whether the node stays."""
        if not isinstance(node, dict):
            return False
        if self.name:
            return bool(node.get(self.name) == self.text)
        literal = node.get("reference")
        named = reference_type(literal) if isinstance(literal, str) else None
        return (named or node.get("type")) == self.text


class Step(NamedTuple):
    """One key to follow, the filters on what it leads to, and whether only the first is wanted."""

    key: str
    filters: tuple[Filter, ...]
    first: bool


class Walk(NamedTuple):
    """One way from a resource to values of one FHIR type. `exists` walks give one boolean for the whole resource."""

    steps: tuple[Step, ...]
    type: str
    exists: bool = False

    def values(self, body: dict[str, Any]) -> list[Any]:
        """The nodes that the walk reaches, in document order, nulls left out."""
        nodes: list[Any] = [body]
        for key, filters, first in self.steps:
            found: list[Any] = []
            for node in nodes:
                child = node.get(key) if isinstance(node, dict) else None
                if child is None:
                    continue
                if isinstance(child, list):
                    found.extend(item for item in child if item is not None)
                else:
                    found.append(child)
            if filters:
                found = [node for node in found if all(keep.keeps(node) for keep in filters)]
            if not found:
                return found
            nodes = found[:1] if first else found
        return nodes


@cache
def compiled(expression: str, base: str) -> tuple[Walk, ...]:
    """The walks of a search parameter's expression, for resources of type `base`.

    Raises ValueError for FHIRPath beyond the subset, KeyError for a type that the element table does not have.
    """
    walks: list[Walk] = []
    for alternative in expression.split("|"):
        walks.extend(_alternative(alternative.strip(), base))
    return tuple(walks)


def _alternative(text: str, base: str) -> Iterator[Walk]:
    if match := re.fullmatch(r"([\w.]+)\.exists\(\) and \1 != false", text):
        for walk in _alternative(match[1], base):
            yield walk._replace(exists=True)
        return
    if match := re.fullmatch(r"\((.+) as (\w+)\)(.*)", text):
        text = f"{match[1]}.as({match[2]}){match[3]}"
    yield from _follow(_pieces(text), (), base, base)


def _pieces(text: str) -> list[str]:
    """The dotted pieces of a path, brackets kept together."""
    pieces, depth, piece = [], 0, ""
    for char in text:
        if char == "." and not depth:
            pieces.append(piece)
            piece = ""
            continue
        depth += (char in "([") - (char in ")]")
        piece += char
    return [*pieces, piece]


def _follow(pieces: list[str], steps: tuple[Step, ...], inside: str, base: str) -> Iterator[Walk]:
    """Every walk along `pieces` from a context; choices fan out into one walk a type."""
    if not pieces:
        yield Walk(steps, inside)
        return
    piece, rest = pieces[0], pieces[1:]
    if not steps and piece in (base, "Resource", "DomainResource"):
        yield from _follow(rest, steps, inside, base)
        return
    name = piece.removesuffix("[0]")
    if not re.fullmatch(r"\w+", name):
        raise ValueError(f"FHIRPath beyond the subset: {piece}")
    filters: list[Filter] = []
    wanted = None
    while rest and (call := re.fullmatch(r"(as|where)\((.*)\)", rest[0])):
        if call[1] == "as":
            wanted = call[2]
        elif match := re.fullmatch(r"resolve\(\) is (\w+)", call[2]):
            filters.append(Filter("", match[1]))
        elif match := re.fullmatch(r"(\w+)='([^']*)'", call[2]):
            filters.append(Filter(match[1], match[2]))
        else:
            raise ValueError(f"FHIRPath beyond the subset: {rest[0]}")
        rest = rest[1:]
    if inside == "Resource":
        return  # what a Bundle's entry holds has no elements that the table could name
    for key, element in context(inside).keys.items():
        if element.name.removesuffix("[x]") != name or (wanted and element.type != wanted):
            continue
        step = Step(key, tuple(filters), piece.endswith("[0]"))
        yield from _follow(rest, (*steps, step), element.inside, base)
