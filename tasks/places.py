"""Reading text that a person wrote, so that every mistake has a place: file, line, key.

A `Fault` is one mistake. `text()`, `toml()` and `json_value()` return what was read or raise `Misread`, which carries
the fault; `validated()` turns a pydantic error into faults with the line of the key and the nearest valid key.
Values are shown only where a closed vocabulary was expected, so that no chart text reaches a message.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
import typing
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, NoReturn, TypeVar

from pydantic import BaseModel, ValidationError

Location = tuple[str | int, ...]
Model = TypeVar("Model", bound=BaseModel)


class Fault(NamedTuple):
    """One mistake: where it stands, and what is wrong and what to do."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class Misread(Exception):
    """A text that cannot be read; carries the faults. Never reaches a user: callers list the faults or raise theirs."""

    def __init__(self, *faults: Fault) -> None:
        self.faults = faults
        super().__init__("; ".join(str(fault) for fault in faults))


def at(path: str, line: int | None = None) -> str:
    """`path:line`, or the path where no line is known."""
    return path if line is None else f"{path}:{line}"


def text(data: bytes, path: str) -> str:
    """UTF-8 text with line feeds and without a byte order mark; raises Misread for anything else, and for nothing."""
    if not data.strip():
        raise Misread(Fault(path, "the file is empty; fill it or delete it"))
    if data.startswith(b"\xef\xbb\xbf"):
        raise Misread(Fault(at(path, 1), "the file begins with a byte order mark; save it as UTF-8 without BOM"))
    if (cut := data.find(b"\r")) >= 0:
        line = data.count(b"\n", 0, cut) + 1
        raise Misread(Fault(at(path, line), "the line ends in CRLF (or holds a CR); save it with LF line ends"))
    try:
        decoded = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Misread(Fault(at(path, line), "the line is not UTF-8; save the file as UTF-8")) from None
    if "\x00" in decoded:
        line = decoded.count("\n", 0, decoded.index("\x00")) + 1
        raise Misread(Fault(at(path, line), "the line holds a NUL character; remove it"))
    return decoded


def json_value(source: str, path: str, *, line: int | None = None) -> Any:
    """One JSON value; duplicate keys and NaN are refused. Raises Misread without quoting the text.

    `line` is where the value stands in a file of one value a line; without it the value is the whole file.
    """
    place = at(path, line)

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in items:
            if key in seen:
                raise Misread(Fault(place, f"the key {shown(key)} stands twice in one object; keep one"))
            seen[key] = value
        return seen

    def constant(name: str) -> NoReturn:
        raise Misread(Fault(place, f"{name} is not JSON; use a number or null"))

    try:
        return json.loads(source, object_pairs_hook=pairs, parse_constant=constant)
    except json.JSONDecodeError as error:
        said = f"not valid JSON: {error.msg} at column {error.colno}"
        raise Misread(Fault(at(path, line or error.lineno), said)) from None
    except (RecursionError, ValueError):
        raise Misread(Fault(place, "not valid JSON: nested too deeply, or a number with too many digits")) from None


_AT_LINE = re.compile(
    r"^(?P<what>.*) \(at (?:line (?P<line>\d+), column (?P<column>\d+)|end of document)\)$", re.DOTALL
)


def toml(source: str, path: str) -> dict[str, Any]:
    """A TOML document; raises Misread with the line of the mistake."""
    try:
        return tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        found = _AT_LINE.match(str(error))
        line = int(found["line"]) if found and found["line"] else source.count("\n") + 1
        what = found["what"] if found else "the text cannot be read"
        what = re.sub(r"(Illegal character|Unescaped.*?|Found invalid character) .*", r"\1", what, flags=re.DOTALL)
        raise Misread(Fault(at(path, line), f"not valid TOML: {what[:1].lower()}{what[1:]}")) from None
    except (RecursionError, ValueError):
        raise Misread(Fault(path, "not valid TOML: nested too deeply, or a number with too many digits")) from None


_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*((?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'))*)\s*=")
_PART = re.compile(r"\"([^\"]*)\"|'([^']*)'|([A-Za-z0-9_-]+)")


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(quoted or single or bare for quoted, single, bare in _PART.findall(dotted))


def toml_line(source: str, location: Location) -> int | None:
    """The first line (1-based) that is about as much of `location` as any line is, or None.

    Inline tables and arrays have the line of the key that holds them. Text inside multi-line strings is not read.
    """
    best: tuple[int, int | None] = (0, None)
    table: Location = ()
    counts: dict[Location, int] = {}
    fence = ""
    for number, line in enumerate(source.split("\n"), start=1):
        if fence:
            if line.count(fence) % 2:
                fence = ""
            continue
        if header := _HEADER.match(line):
            names = _parts(header[2])
            table = _indexed(names[:-1], counts)
            if header[1] == "[[":
                whole: Location = (*table, names[-1])
                counts[whole] = counts.get(whole, -1) + 1
                table = (*whole, counts[whole])
            else:
                table = _indexed(names, counts)
            here = table
        elif key := _KEY.match(line):
            here = (*table, *_parts(key[1]))
        else:
            here = ()
        for mark in ('"""', "'''"):
            if line.count(mark) % 2:
                fence = mark
        shared = next((n for n, pair in enumerate(zip(here, location, strict=False)) if pair[0] != pair[1]), None)
        depth = min(len(here), len(location)) if shared is None else shared
        if depth > best[0]:
            best = (depth, number)
    return best[1]


def _indexed(names: tuple[str, ...], counts: Mapping[Location, int]) -> Location:
    path: Location = ()
    for name in names:
        path = (*path, name)
        if path in counts:
            path = (*path, counts[path])
    return path


def tupled(value: Any) -> Any:
    """The value with every list as a tuple, as strict models want it."""
    if isinstance(value, dict):
        return {key: tupled(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return tuple(tupled(inner) for inner in value)
    return value


def validated(model: type[Model], data: Any, path: str, *, source: str = "", line: int | None = None) -> Model:
    """`data` as the model, strictly: no coercion, no unknown key, aliases only.

    Raises Misread with a fault for every mistake; its place is the key's line in the TOML `source`, or `line`.
    """
    try:
        return model.model_validate(tupled(data), strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        found = []
        for location, detail in _told(model, data, error):
            row = line if line is not None else toml_line(source, location)
            found.append((row or 0, Fault(at(path, row), _sentence(model, location, detail))))
        in_order = [fault for _, fault in sorted(found, key=lambda row: row[0])]
        raise Misread(*_unions_joined(in_order)) from None


def _told(model: type[BaseModel], data: Any, error: ValidationError) -> list[tuple[Location, Any]]:
    """The errors that a person must be told, without those that only follow from another one."""
    details = [(_plain(detail["loc"], data), detail) for detail in error.errors(include_url=False)]
    misspelt = {
        (*location[:-1], *difflib.get_close_matches(str(location[-1]), valid_keys(model, location[:-1]), n=1))
        for location, detail in details
        if detail["type"] == "extra_forbidden"
    }
    return [
        (location, detail)
        for location, detail in details
        # A missing key that stands there misspelt, and a list that is too short only because its items are wrong.
        if not (detail["type"] == "missing" and location in misspelt)
        and not (detail["type"] == "too_short" and len(detail["input"]) >= detail["ctx"]["min_length"])
    ]


def _plain(location: Location, data: Any) -> Location:
    """The location without the names that pydantic adds for members of a union."""
    kept: list[str | int] = []
    here = data
    location = tuple(part for part in location if part != "[key]")
    for index, part in enumerate(location):
        if isinstance(here, dict):
            if part in here:
                here = here[part]
            elif index < len(location) - 1:
                continue  # a union member's name
            kept.append(part)
        elif isinstance(here, list | tuple) and isinstance(part, int) and part < len(here):
            here = here[part]
            kept.append(part)
    return tuple(kept)


def _unions_joined(found: list[Fault]) -> list[Fault]:
    """One fault a key: the members of a union each complain, the first says enough."""
    first: dict[tuple[str, str], Fault] = {}
    for fault in found:
        first.setdefault((fault.place, fault.message.split(":", 1)[0]), fault)
    return list(first.values())


def key_path(location: Location) -> str:
    """`checkpoint[2].order.accept[1].dose`; array positions count from 1, as a person does."""
    written = ""
    for part in location:
        key = f"[{part + 1}]" if isinstance(part, int) else _printable(part)
        written += f".{key}" if written and not isinstance(part, int) else key
    return written


def _printable(written: str) -> str:
    """On one line, cut at 60 characters."""
    cut = written if len(written) <= 60 else f"{written[:60]}…"
    return "".join(letter if letter.isprintable() else f"\\x{ord(letter):02x}" for letter in cut)


def shown(value: object) -> str:
    """A short value in quotes."""
    return f"'{_printable(str(value))}'"


def nearest(word: str, options: Iterable[str]) -> str:
    """` Did you mean 'x'?` or nothing."""
    close = difflib.get_close_matches(word, list(options), n=1, cutoff=0.6)
    return f" Did you mean '{close[0]}'?" if close else ""


def valid_keys(model: type[BaseModel], location: Location) -> list[str]:
    """The keys that the (nested) model at `location` knows; empty where the location leads to no model."""
    here: Any = model
    for part in location:
        if isinstance(part, int):
            continue
        inner = _model_in(here)
        if _is_table_of(here):
            here = typing.get_args(here)[1]
        elif inner is not None:
            here = next((f.annotation for n, f in inner.model_fields.items() if (f.alias or n) == part), None)
        else:
            return []
    found = None if _is_table_of(here) else _model_in(here)
    return [field.alias or name for name, field in found.model_fields.items()] if found else []


def _is_table_of(annotation: Any) -> bool:
    return typing.get_origin(annotation) is dict


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for inner in typing.get_args(annotation):
        if found := _model_in(inner):
            return found
    return None


def _sentence(model: type[BaseModel], location: Location, detail: Any) -> str:
    kind, key = detail["type"], key_path(location) or "the table"
    context = detail.get("ctx", {})
    if kind == "extra_forbidden":
        options = valid_keys(model, location[:-1])
        hint = nearest(str(location[-1]), options) or (f" Valid here: {', '.join(options)}." if options else "")
        return f"{key}: unknown key.{hint}"
    if kind == "missing":
        return f"{key}: the key is missing; add it"
    if kind == "literal_error":
        options = re.findall(r"'([^']*)'", context["expected"]) or [context["expected"]]
        said = f"{shown(detail['input'])} is" if isinstance(detail["input"], str | int) else "the value is"
        return f"{key}: {said} not one of {context['expected']}.{nearest(str(detail['input']), options)}"
    if kind == "timezone_aware":
        return f"{key}: the date-time has no offset; write it like 2025-03-14T08:30:00-05:00"
    if kind in ("datetime_type", "date_type"):
        return f"{key}: not a date-time; write it without quotes and with an offset, like 2025-03-14T08:30:00-05:00"
    if kind == "value_error":
        return f"{key}: {context['error']}"
    if kind == "string_pattern_mismatch":
        return f"{key}: does not have the form {context['pattern']}"
    if kind == "too_short":
        return f"{key}: too few; give at least {context['min_length']}"
    if kind in ("model_type", "dict_type", "tuple_type"):
        return f"{key}: not {'a list' if kind == 'tuple_type' else 'a table'}; write it as one"
    said = detail["msg"].replace("Input should", "the value should")
    return f"{key}: {said[:1].lower()}{said[1:]}"
