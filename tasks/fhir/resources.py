"""FHIR resources as they were written: the raw JSON text beside a body that is parsed when it is first asked for.

A decimal keeps the characters it was written with (5.00, 0.0, 1e3), key order is kept, and duplicate keys are refused,
so that what is loaded, searched and served is byte for byte what stood in the record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from tasks.errors import ChartError

#: R4 `id`: letters, digits, hyphen and dot, at most 64.
ID = re.compile(r"[A-Za-z0-9\-.]{1,64}", re.ASCII)
_TYPE = re.compile(r"[A-Z][A-Za-z]{1,63}", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w{0,63}", re.ASCII)


class Number(Decimal):
    """A decimal that remembers how it was written: `str(Number("1e3")) == "1e3"`."""

    __slots__ = ("text",)

    text: str

    def __new__(cls, text: str) -> Number:
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __str__(self) -> str:
        return self.text

    def __format__(self, spec: str, context: Any = None, /) -> str:
        if not spec:
            return self.text
        return super().__format__(spec) if context is None else super().__format__(spec, context)

    def __reduce__(self) -> tuple[type[Number], tuple[str]]:
        return (Number, (self.text,))

    def __deepcopy__(self, memo: Any) -> Number:
        return self

    def __copy__(self) -> Number:
        return self


class _Refused(ValueError):
    """Raised inside the parser for text that is JSON to Python's own module but not to us."""


def _integer(text: str) -> int | Number:
    # "-0" is the one integer that int() would not give back as written.
    return Number(text) if text == "-0" else int(text)


def _constant(text: str) -> Any:
    raise _Refused(f"{text} is not a JSON number")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _Refused(
                    f"the key {key} stands twice in one object" if _NAME.fullmatch(key) else "a key stands twice"
                )
            seen.add(key)
    return made


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=Number, parse_int=_integer, parse_constant=_constant, strict=True
)


def parse_json(text: str | bytes, *, where: str = "") -> Any:
    """The value of a JSON text: fractional numbers as `Number` (a Decimal), integers as int, key order kept.

    Raises ChartError for text that is not UTF-8 or not JSON, a duplicate key, NaN, or half of a surrogate pair; the
    message gives the position and never the text.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        if text.startswith("\ufeff"):
            text = text[1:]
        value = _DECODER.decode(text)
        if "\\ud" in text or "\\uD" in text:
            dump_json(value).encode("utf-8")
    except json.JSONDecodeError as fault:
        reason = f"not JSON: {fault.msg} at line {fault.lineno}, column {fault.colno}."
    except UnicodeDecodeError as fault:
        reason = f"not UTF-8 at byte {fault.start}."
    except UnicodeEncodeError:
        reason = "a text holds half of a surrogate pair, which is not Unicode."
    except _Refused as fault:
        reason = f"{fault}."
    except RecursionError:
        reason = "nested too deeply to be FHIR."
    except ValueError:
        reason = "not JSON: a number is too long."
    else:
        return value
    raise ChartError(reason, where=where, remedy="Write one JSON value in UTF-8 there.") from None


def dump_json(value: Any) -> str:
    """Compact JSON, key order kept, non-ASCII as it is, and every `Number` as it was read.

    Raises TypeError for what JSON does not have, ValueError for NaN and infinity.
    """
    out: list[str] = []
    _write(value, out)
    return "".join(out)


def _write(value: Any, out: list[str]) -> None:
    if isinstance(value, str):
        out.append(encode_basestring(value))
    elif isinstance(value, dict):
        opening = "{"
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError("a JSON key is text")
            out.append(f"{opening}{encode_basestring(key)}:")
            _write(item, out)
            opening = ","
        out.append("}" if opening == "," else "{}")
    elif isinstance(value, (list, tuple)):
        opening = "["
        for item in value:
            out.append(opening)
            _write(item, out)
            opening = ","
        out.append("]" if opening == "," else "[]")
    elif value is None:
        out.append("null")
    elif value is True or value is False:
        out.append("true" if value else "false")
    elif isinstance(value, int):
        out.append(int.__repr__(value))
    elif isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError("JSON has no NaN and no infinity")
        out.append(str(value))
    elif isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise ValueError("JSON has no NaN and no infinity")
        out.append(repr(value))
    else:
        raise TypeError(f"JSON has no {type(value).__name__}")


class Resource:
    """One FHIR resource: its type, its id, its text as written, and its body (parsed once, when first asked for).

    Immutable: treat `body` as read-only, and make a changed resource with `Resource.from_body`.
    """

    __slots__ = ("_body", "id", "raw", "type")

    type: str
    id: str
    raw: str
    _body: dict[str, Any] | None

    def __init__(self, type: str, id: str, raw: str, body: dict[str, Any] | None = None) -> None:
        object.__setattr__(self, "type", type)
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "raw", raw)
        object.__setattr__(self, "_body", body)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Resource is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Resource is immutable")

    @classmethod
    def parse(cls, raw: str, *, where: str = "") -> Resource:
        """The resource written in `raw`.

        Raises ChartError, naming `where`, if it is not JSON, has a duplicate key, or lacks a valid resourceType or id.
        """
        raw = raw.strip(" \t\r\n\ufeff")
        body = parse_json(raw, where=where)
        if "\n" in raw or "\r" in raw:
            raw = dump_json(body)  # a resource is one line wherever it is stored
        return cls._checked(body, raw, where)

    @classmethod
    def from_body(cls, body: dict[str, Any], *, where: str = "") -> Resource:
        """The resource that a parsed body stands for, written compactly. Raises ChartError as `parse` does."""
        return cls._checked(body, dump_json(body), where)

    @classmethod
    def _checked(cls, body: Any, raw: str, where: str) -> Resource:
        if not isinstance(body, dict):
            raise ChartError("a resource is a JSON object.", where=where)
        kind, ident = body.get("resourceType"), body.get("id")
        if not isinstance(kind, str) or not _TYPE.fullmatch(kind):
            raise ChartError("the resource has no resourceType.", where=where, remedy="Name its FHIR R4 type.")
        if not isinstance(ident, str) or not ID.fullmatch(ident):
            raise ChartError(
                f"the {kind} has no valid id.",
                where=where,
                remedy="An id is 1 to 64 letters, digits, hyphens or dots.",
            )
        return cls(kind, ident, raw, body)

    @property
    def body(self) -> dict[str, Any]:
        """The parsed body; decimals are `Number`s. Read-only by agreement: it is shared."""
        body = self._body
        if body is None:
            body = parse_json(self.raw, where=self.ref)
            object.__setattr__(self, "_body", body)
        return body

    @property
    def ref(self) -> str:
        """`Type/id`."""
        return f"{self.type}/{self.id}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resource) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash((self.type, self.id))

    def __repr__(self) -> str:
        return f"Resource({self.ref})"

    def __reduce__(self) -> tuple[object, tuple[str, str, str]]:
        return (Resource, (self.type, self.id, self.raw))


def references(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every literal reference in a body: (path of the Reference such as `Observation.performer[0]`, the text of it).

    Fragments (`#x`) and absolute URLs are given too; the caller decides which of them should lead somewhere.
    """
    root = body.get("resourceType")
    stack: list[tuple[str, Any]] = [(root if isinstance(root, str) else "", body)]
    while stack:
        path, node = stack.pop()
        if isinstance(node, dict):
            target = node.get("reference")
            if isinstance(target, str) and target:
                yield path, target
            stack.extend((f"{path}.{k}", v) for k, v in reversed(node.items()) if isinstance(v, (dict, list)))
        elif isinstance(node, list):
            stack.extend((f"{path}[{n}]", node[n]) for n in range(len(node) - 1, -1, -1))
