"""A FHIR search as asked for, parsed: which tests a row must pass, in which order rows come, and what goes along.

Everything that would make the answer other than what was meant is refused here with a SearchError: an unknown
parameter, modifier or sort key, an empty value or list member, a value that is not of the parameter's type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np

from tasks.errors import SearchError
from tasks.fhir import parameters
from tasks.fhir.columns import (
    Column,
    CompositeColumn,
    DateColumn,
    LinkColumn,
    NumberColumn,
    QuantityColumn,
    StringColumn,
    TokenColumn,
    UriColumn,
)
from tasks.fhir.dates import span_of
from tasks.fhir.elements import resource_types
from tasks.fhir.parameters import Parameter
from tasks.fhir.postings import Mask

DEFAULT_COUNT = 20
MAX_COUNT = 200

#: Links of a chain or _has: each may fan out over many types, so that a longer one could keep a server busy for long.
MOST_LINKS = 4

#: Parameters that change how an answer is written, not which rows are in it.
PRESENTATION = frozenset({"_format", "_pretty", "_total"})

Test = Callable[[Column], Mask]


class Where(NamedTuple):
    """Rows that pass any of the tests; with `negate`, those that pass none."""

    parameter: Parameter
    tests: tuple[Test, ...]
    negate: bool = False


class Missing(NamedTuple):
    """Rows without a value for the parameter (or with one, if `absent` is false)."""

    parameter: Parameter
    absent: bool


class Ids(NamedTuple):
    """Rows with one of these ids."""

    ids: frozenset[str]


class Chain(NamedTuple):
    """Rows that refer by `parameter` to a resource that meets a condition: one condition a type it may be of."""

    parameter: Parameter
    among: tuple[tuple[str, Condition], ...]


class Has(NamedTuple):
    """Rows that a resource of type `type`, which meets the condition, refers to by `parameter`."""

    type: str
    parameter: Parameter
    condition: Condition


Condition = Where | Missing | Ids | Chain | Has


class Include(NamedTuple):
    """One _include or _revinclude: from which type, by which parameter ("*" = all), to which type ("" = any)."""

    type: str
    code: str
    target: str
    reverse: bool
    iterate: bool


@dataclass(frozen=True)
class Query:
    """A parsed search of one resource type."""

    type: str
    conditions: tuple[Condition, ...] = ()
    sort: tuple[tuple[Parameter, bool], ...] = ()  #: (parameter, descending)
    count: int = DEFAULT_COUNT
    offset: int = 0
    includes: tuple[Include, ...] = ()
    elements: tuple[str, ...] = ()
    applied: tuple[tuple[str, str], ...] = field(default=())


def parse(type: str, params: Sequence[tuple[str, str]], base_url: str = "") -> Query:
    """The query that these parameters ask for. Raises SearchError on the first that cannot be answered as meant."""
    parameters.codes(type)
    conditions: list[Condition] = []
    includes: list[Include] = []
    single: dict[str, str] = {}
    for key, value in params:
        name, _, modifier = key.partition(":")
        if name in ("_include", "_revinclude"):
            includes.append(_include(type, key, name, modifier, value))
        elif name in ("_count", "_offset", "_summary", "_elements", "_sort") or key in PRESENTATION:
            if name == "_sort" and modifier in ("asc", "desc"):
                value = f"-{value}" if modifier == "desc" else value
            elif modifier:
                raise _unknown_modifier(type, key)
            if name == "_sort" and "_sort" in single:
                value = f"{single.pop('_sort')},{value}"
            single.setdefault(name, value)  # the first one wins, as in HAPI
        else:
            conditions.append(condition(type, key, value, base_url))
    if not single.get("_elements", "all").strip():
        raise _refused(type, "_elements", "the value is empty.", "Leave the parameter out to get whole resources.")
    count = DEFAULT_COUNT
    if "_count" in single:
        count = min(_whole(type, "_count", single["_count"]), MAX_COUNT)
    if single.get("_summary") == "count":
        count = 0
    return Query(
        type,
        tuple(conditions),
        tuple(_sort(type, single["_sort"])) if "_sort" in single else (),
        count,
        _whole(type, "_offset", single.get("_offset", "0")),
        tuple(includes),
        tuple(name.strip() for name in single.get("_elements", "").split(",") if name.strip()),
        tuple((key, value) for key, value in params if key not in PRESENTATION),
    )


def _place(type: str, key: str) -> str:
    return f"{type}?{re.sub(r'[^A-Za-z0-9_.:-]', '?', key)[:80]}"


def _refused(type: str, key: str, what: str, remedy: str = "") -> SearchError:
    return SearchError(what, where=_place(type, key), remedy=remedy)


def _unknown_modifier(type: str, key: str) -> SearchError:
    return _refused(
        type,
        key,
        "the modifier does not exist for this parameter.",
        "Modifiers: :missing on any; :not and :text on a token; :exact and :contains on a string; "
        ":[type] on a reference; :above and :below on a uri.",
    )


def _whole(type: str, key: str, value: str) -> int:
    if not re.fullmatch(r"\d{1,9}", value, re.ASCII):
        raise _refused(type, key, f"Invalid {key} value.", "It is a whole number, 0 or more.")
    return int(value)


def _sort(type: str, value: str) -> Iterable[tuple[Parameter, bool]]:
    for key in value.split(","):
        name = key.strip()
        descending = name.startswith("-")
        found = parameters.parameter(type, name.removeprefix("-"))
        if found is None:
            raise parameters.unknown(type, name.removeprefix("-"), role="_sort parameter value")
        yield found, descending


def _include(type: str, key: str, name: str, modifier: str, value: str) -> Include:
    if modifier not in ("", "iterate", "recurse"):
        raise _unknown_modifier(type, key)
    reverse = name == "_revinclude"
    if value == "*":
        return Include("" if reverse else type, "*", "", reverse, bool(modifier))
    source, _, rest = value.partition(":")
    code, _, target = rest.partition(":")
    if source not in resource_types() or not code or (target and target not in resource_types()):
        raise _refused(
            type, key, f"Invalid {name} parameter value.", "It reads Type:parameter or Type:parameter:Target."
        )
    if code != "*":
        found = parameters.required(source, code)
        if found.type != "reference":
            raise _refused(type, key, f'"{code}" of {source} is not a reference, so nothing can be included by it.')
    return Include(source, code, target, reverse, bool(modifier))


def condition(type: str, key: str, value: str, base_url: str = "") -> Condition:
    """One `key=value` of a search as a condition on rows. Raises SearchError."""
    if key.count(".") + key.count("_has:") > MOST_LINKS:
        raise _refused(type, key, f"the chain has more than {MOST_LINKS} links.")
    if key.startswith("_has:"):
        return _has(type, key, value, base_url)
    if "." in key:
        return _chain(type, key, value, base_url)
    name, _, modifier = key.partition(":")
    parameter = parameters.required(type, name)
    if not value.strip():
        raise _refused(type, key, "the value is empty.", "Leave the parameter out to search without it.")
    if modifier == "missing" and name != "_id":
        if value not in ("true", "false"):
            raise _refused(type, key, "the value of :missing is neither true nor false.")
        return Missing(parameter, value == "true")
    members = _split(value, ",")
    if not all(member.strip() for member in members):
        raise _refused(type, key, "a member of the comma list is empty.", r"Write a comma inside a value as \,")
    if name == "_id":
        if modifier:
            raise _unknown_modifier(type, key)
        return Ids(frozenset(_unescaped(member).strip().removeprefix(f"{type}/") for member in members))
    make = _MAKERS[parameter.type]
    tests = tuple(make(_Asked(type, key, parameter, modifier, member, base_url)) for member in members)
    return Where(parameter, tests, negate=modifier == "not")


def _has(type: str, key: str, value: str, base_url: str) -> Has:
    parts = key.split(":", 3)
    if len(parts) < 4 or parts[1] not in resource_types():
        raise _refused(type, key, "_has reads _has:Type:reference:parameter=value.")
    source, code, rest = parts[1:]
    parameter = parameters.required(source, code)
    if parameter.type != "reference":
        raise _refused(type, key, f'"{code}" of {source} is not a reference.')
    return Has(source, parameter, condition(source, rest, value, base_url))


def _chain(type: str, key: str, value: str, base_url: str) -> Chain:
    head, _, rest = key.partition(".")
    name, _, target = head.partition(":")
    parameter = parameters.required(type, name)
    if parameter.type != "reference":
        raise _refused(type, key, f"Invalid parameter chain: {name} is not a reference.")
    if target and (target not in resource_types() or (parameter.targets and target not in parameter.targets)):
        raise _refused(type, key, f"Invalid parameter chain: {name} does not lead to that type.")
    among: list[tuple[str, Condition]] = []
    refusals: list[SearchError] = []
    for candidate in (target,) if target else parameter.targets:
        try:
            among.append((candidate, condition(candidate, rest, value, base_url)))
        except SearchError as error:
            refusals.append(error)
    if not among:
        # Of several refusals, one about the value says more than one about a name that other types do not have.
        reason = next((error.what for error in refusals if not error.what.startswith("Unknown")), "")
        raise _refused(type, key, f"Invalid parameter chain. {reason}".strip())
    return Chain(parameter, tuple(among))


def _split(text: str, mark: str, most: int = -1) -> list[str]:
    r"""Split at a mark that no backslash stands before; the parts keep their escapes."""
    if "\\" not in text:
        return text.split(mark, most)
    parts: list[str] = []
    part, skip = "", False
    for char in text:
        if char == mark and not skip and len(parts) != most:
            parts.append(part)
            part = ""
            continue
        part += char
        skip = char == "\\" and not skip
    return [*parts, part]


def _unescaped(text: str) -> str:
    return re.sub(r"\\([\\,|$])", r"\1", text)


class _Asked(NamedTuple):
    """One value of one parameter, as it stands in the request."""

    type: str
    key: str
    parameter: Parameter
    modifier: str
    text: str
    base_url: str

    def refused(self, what: str, remedy: str = "") -> SearchError:
        return _refused(self.type, self.key, what, remedy)


def _token(asked: _Asked) -> Test:
    if asked.modifier == "text":
        text = _unescaped(asked.text).strip()
        return lambda column: cast(TokenColumn, column).reading(text)
    if asked.modifier not in ("", "not"):
        raise _unknown_modifier(asked.type, asked.key)
    parts = [_unescaped(part).strip() for part in _split(asked.text, "|", 1)]
    system, code = (None, parts[0]) if len(parts) == 1 else (parts[0], parts[1] or None)
    if not system and not code:
        raise asked.refused("a lone | names neither a system nor a code.")
    return lambda column: cast(TokenColumn, column).having(system, code)


def _string(asked: _Asked) -> Test:
    text = _unescaped(asked.text)
    if asked.modifier == "exact":
        return lambda column: cast(StringColumn, column).exactly(text)
    if asked.modifier == "contains":
        return lambda column: cast(StringColumn, column).containing(text)
    if asked.modifier not in ("", "text"):
        raise _unknown_modifier(asked.type, asked.key)
    return lambda column: cast(StringColumn, column).starting(text)


def _reference(asked: _Asked) -> Test:
    link = _unescaped(asked.text).strip()
    base = asked.base_url.rstrip("/")
    if base and link.startswith(f"{base}/"):
        link = link[len(base) + 1 :]
    link = link.split("/_history/", 1)[0]
    if asked.modifier:
        if asked.modifier not in resource_types():
            raise _unknown_modifier(asked.type, asked.key)
        link = link if "/" in link else f"{asked.modifier}/{link}"
        if not link.startswith(f"{asked.modifier}/") and f"/{asked.modifier}/" not in link:
            return lambda column: np.zeros(column.count, np.bool_)
    if "/" in link or ":" in link:
        return lambda column: cast(LinkColumn, column).to(link)
    return lambda column: cast(LinkColumn, column).to_id(link)


def _uri(asked: _Asked) -> Test:
    uri = _unescaped(asked.text).strip()
    if asked.modifier == "below":
        return lambda column: cast(UriColumn, column).below(uri)
    if asked.modifier == "above":
        return lambda column: cast(UriColumn, column).above(uri)
    if asked.modifier:
        raise _unknown_modifier(asked.type, asked.key)
    return lambda column: cast(UriColumn, column).to(uri)


_PREFIXES = ("eq", "ne", "gt", "ge", "lt", "le", "sa", "eb", "ap")
_SIGNS = {">=": "ge", "<=": "le", ">": "gt", "<": "lt", "=": "eq"}


def _prefixed(asked: _Asked) -> tuple[str, str]:
    """(prefix, the rest); "eq" where none is written."""
    if asked.modifier:
        raise _unknown_modifier(asked.type, asked.key)
    text = asked.text.strip()
    if text[:2] in _PREFIXES:
        return text[:2], text[2:]
    for sign, prefix in _SIGNS.items():
        if text.startswith(sign):
            return prefix, text[len(sign) :]
    return "eq", text


def _date(asked: _Asked) -> Test:
    prefix, text = _prefixed(asked)
    span = span_of(text)
    if span is None:
        raise asked.refused(
            "Invalid date/time format.",
            "Write it as 2023, 2023-05, 2023-05-14 or 2023-05-14T09:30:00Z, after a prefix.",
        )
    if prefix == "ap":
        raise asked.refused("Unknown comparator: ap is not defined for dates here.", "Use ge and le.")
    return lambda column: cast(DateColumn, column).compared(prefix, span)


def _decimal(asked: _Asked, text: str) -> float:
    if not re.fullmatch(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", text, re.ASCII):
        raise asked.refused("Invalid number.", "Write a number, after a prefix such as gt.")
    return float(text)


def _number(asked: _Asked) -> Test:
    prefix, text = _prefixed(asked)
    if prefix in ("sa", "eb"):
        raise asked.refused(f"Unable to handle number prefix {prefix}.", "Use gt or lt.")
    value = _decimal(asked, text)
    return lambda column: cast(NumberColumn, column).compared(prefix, value)


def _quantity(asked: _Asked) -> Test:
    prefix, text = _prefixed(asked)
    if prefix in ("sa", "eb"):
        raise asked.refused(f"Unable to handle quantity prefix {prefix}.", "Use gt or lt.")
    parts = [_unescaped(part).strip() for part in _split(text, "|", 2)]
    value = _decimal(asked, parts[0])
    # value|unit (two parts) is taken as HAPI takes it: the unit's code in any system.
    system, code = (parts[1], parts[2]) if len(parts) == 3 else ("", parts[1] if len(parts) == 2 else "")
    return lambda column: cast(QuantityColumn, column).compared(prefix, value, system, code)


def _composite(asked: _Asked) -> Test:
    if asked.modifier:
        raise _unknown_modifier(asked.type, asked.key)
    parts = _split(asked.text, "$")
    components = asked.parameter.components
    if len(parts) != len(components):
        raise asked.refused(f"the parameter takes {len(components)} values with $ between them.")
    tests: list[Test] = []
    for part, component in zip(parts, components, strict=True):
        if not part.strip():
            raise asked.refused("a part of the composite is empty.")
        inner = Parameter(asked.parameter.code, component.type, component.walks)
        tests.append(_MAKERS[component.type](asked._replace(parameter=inner, text=part)))

    def test(column: Column) -> Mask:
        holder = cast(CompositeColumn, column)
        hits = tests[0](holder.columns[0])
        for number in range(1, len(tests)):
            hits = hits & tests[number](holder.columns[number])
        return holder.owned(hits)

    return test


_MAKERS: dict[str, Callable[[_Asked], Test]] = {
    "token": _token,
    "string": _string,
    "reference": _reference,
    "uri": _uri,
    "date": _date,
    "number": _number,
    "quantity": _quantity,
    "composite": _composite,
}
