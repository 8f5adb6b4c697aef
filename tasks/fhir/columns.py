"""One search parameter over many resources: its values as sorted keys with postings, or as plain number arrays.

A column is built from a list of resource bodies (row n = body n), written as a handful of arrays, and read back from
a memory map without a copy. Masks are boolean arrays, one entry a row.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tasks.fhir import values
from tasks.fhir.dates import Span
from tasks.fhir.parameters import Parameter
from tasks.fhir.postings import Mask, Order, Parts, Postings, Rows, extreme, packed, unpacked
from tasks.fhir.values import Quantity, Token

Body = dict[str, Any]


class Column:
    """What every kind of column can do."""

    count: int

    @classmethod
    def build(cls, nodes: list[list[tuple[str, Any]]]) -> Self:
        """From the typed nodes of each row."""
        raise NotImplementedError

    @classmethod
    def load(cls, parts: Parts, count: int) -> Self:
        """From what `parts` wrote."""
        raise NotImplementedError

    def parts(self) -> Parts:
        """The arrays that make up the column."""
        raise NotImplementedError

    @property
    def present(self) -> Mask:
        """The rows that have a value."""
        raise NotImplementedError

    def order(self, descending: bool) -> Order:
        """Sort keys."""
        raise NotImplementedError


def _pairs(nodes: list[list[tuple[str, Any]]], take: Callable[[str, Any], Iterable[Any]]) -> Iterable[tuple[Any, int]]:
    for row, found in enumerate(nodes):
        for kind, node in found:
            for value in take(kind, node):
                yield value, row


def _token(key: list[str]) -> Token:
    return Token(key[0], key[1])


def _token_rank(key: Token) -> tuple[bool, Token]:
    """Tokens sort as HAPI sorts them: by system, then code; what has no system comes last."""
    return not key.system, key


class TokenColumn(Column):
    """Codes with their systems, and the words that `:text` looks at."""

    def __init__(self, codes: Postings, texts: Postings) -> None:
        self.codes = codes
        self.texts = texts
        self.count = codes.count

    @classmethod
    def build(cls, nodes: list[list[tuple[str, Any]]]) -> TokenColumn:
        words = ((values.folded(text), row) for text, row in _pairs(nodes, values.token_texts))
        return cls(
            Postings.of(_pairs(nodes, values.tokens), len(nodes), _token_rank),
            Postings.of(words, len(nodes)),
        )

    @classmethod
    def load(cls, parts: Parts, count: int) -> TokenColumn:
        return cls(Postings.load(parts, "codes", count, _token), Postings.load(parts, "texts", count))

    def parts(self) -> Parts:
        return {**self.codes.parts("codes"), **self.texts.parts("texts")}

    @property
    def present(self) -> Mask:
        return self.codes.present

    def order(self, descending: bool) -> Order:
        return self.codes.order(descending, _token_rank)

    @cached_property
    def _by_code(self) -> dict[str, list[int]]:
        held: dict[str, list[int]] = {}
        for place, key in enumerate(self.codes.keys):
            held.setdefault(key.code, []).append(place)
        return held

    @cached_property
    def _by_system(self) -> dict[str, list[int]]:
        held: dict[str, list[int]] = {}
        for place, key in enumerate(self.codes.keys):
            held.setdefault(key.system, []).append(place)
        return held

    def having(self, system: str | None, code: str | None) -> Mask:
        """Rows with the code; system None = any, "" = none; code None = any code of the system."""
        if code is None:
            return self.codes.mask(self._by_system.get(system or "", ()))
        if system is None:
            return self.codes.mask(self._by_code.get(code, ()))
        place = self.codes.places.get(Token(system, code))
        return self.codes.mask(() if place is None else (place,))

    def reading(self, text: str) -> Mask:
        """Rows with a display or text that starts so, case and accents put aside."""
        return self.texts.mask(_starting(self.texts.keys, values.folded(text)))


def _starting(keys: list[str], prefix: str) -> range:
    """The places of the sorted keys that start with a prefix."""
    return range(bisect_left(keys, prefix), bisect_left(keys, prefix + "\U0010ffff"))


class StringColumn(Column):
    """Words, compared folded and as written. Keys are (folded, as written)."""

    def __init__(self, words: Postings) -> None:
        self.words = words
        self.count = words.count

    @classmethod
    def build(cls, nodes: list[list[tuple[str, Any]]]) -> StringColumn:
        pairs = (((values.folded(text), text), row) for text, row in _pairs(nodes, values.strings))
        return cls(Postings.of(pairs, len(nodes)))

    @classmethod
    def load(cls, parts: Parts, count: int) -> StringColumn:
        return cls(Postings.load(parts, "words", count, tuple))

    def parts(self) -> Parts:
        return self.words.parts("words")

    @property
    def present(self) -> Mask:
        return self.words.present

    def order(self, descending: bool) -> Order:
        return self.words.order(descending)

    @cached_property
    def _folded(self) -> list[str]:
        return [key[0] for key in self.words.keys]

    def starting(self, text: str) -> Mask:
        """Rows with a text that starts so, case and accents put aside."""
        return self.words.mask(_starting(self._folded, values.folded(text)))

    def exactly(self, text: str) -> Mask:
        """Rows with just this text, as written."""
        place = self.words.places.get((values.folded(text), text))
        return self.words.mask(() if place is None else (place,))

    def containing(self, text: str) -> Mask:
        """Rows with a text that has this in it, case and accents put aside."""
        wanted = values.folded(text)
        return self.words.mask(place for place, word in enumerate(self._folded) if wanted in word)


class LinkColumn(Column):
    """Where references lead."""

    take = staticmethod(values.links)

    def __init__(self, links: Postings) -> None:
        self.links = links
        self.count = links.count

    @classmethod
    def build(cls, nodes: list[list[tuple[str, Any]]]) -> Self:
        return cls(Postings.of(_pairs(nodes, cls.take), len(nodes)))

    @classmethod
    def load(cls, parts: Parts, count: int) -> Self:
        return cls(Postings.load(parts, "links", count))

    def parts(self) -> Parts:
        return self.links.parts("links")

    @property
    def present(self) -> Mask:
        return self.links.present

    def order(self, descending: bool) -> Order:
        return self.links.order(descending)

    @cached_property
    def _by_id(self) -> dict[str, list[int]]:
        held: dict[str, list[int]] = {}
        for place, link in enumerate(self.links.keys):
            kind, slash, ident = link.partition("/")
            if slash and kind.isalpha() and "/" not in ident:
                held.setdefault(ident, []).append(place)
        return held

    def to(self, link: str) -> Mask:
        """Rows that refer to exactly this."""
        place = self.links.places.get(link)
        return self.links.mask(() if place is None else (place,))

    def to_id(self, ident: str) -> Mask:
        """Rows that refer to a resource of any type with this id."""
        return self.links.mask(self._by_id.get(ident, ()))

    def to_any(self, links: set[str]) -> Mask:
        """Rows that refer to any of these."""
        if len(links) < len(self.links.start):
            places = self.links.places
            return self.links.mask(places[link] for link in links if link in places)
        return self.links.mask(place for place, link in enumerate(self.links.keys) if link in links)

    def targets(self, rows: Iterable[int]) -> set[str]:
        """Everything that these rows refer to."""
        wanted = np.zeros(self.count, np.bool_)
        wanted[np.fromiter(rows, np.int64)] = True
        places = np.repeat(np.arange(len(self.links.start) - 1), np.diff(self.links.start))
        return {self.links.keys[place] for place in np.unique(places[wanted[self.links.rows]])}


class UriColumn(LinkColumn):
    """Uris and canonicals."""

    take = staticmethod(values.uris)

    def below(self, uri: str) -> Mask:
        """Rows with a uri that starts so."""
        return self.links.mask(_starting(self.links.keys, uri))

    def above(self, uri: str) -> Mask:
        """Rows with a uri that this one starts with."""
        return self.links.mask(place for place, key in enumerate(self.links.keys) if uri.startswith(key))


def _row_array(rows: list[int]) -> Rows:
    return np.array(rows, np.int32)


class _Scattered(Column):
    """Columns whose values are number arrays beside a row array."""

    rows: Rows

    @cached_property
    def _dense(self) -> bool:
        """Every row has just one value, so that a test over values is a mask over rows."""
        return len(self.rows) == self.count and bool(np.array_equal(self.rows, np.arange(self.count)))

    def spread(self, hits: Mask) -> Mask:
        """From a test over values to the rows that have any that passes."""
        if self._dense:
            return hits
        found = np.zeros(self.count, np.bool_)
        found[self.rows[hits]] = True
        return found

    @cached_property
    def _present(self) -> Mask:
        found = np.zeros(self.count, np.bool_)
        found[self.rows] = True
        return found

    @property
    def present(self) -> Mask:
        return self._present


class DateColumn(_Scattered):
    """Ranges: instants in microseconds, days as ordinals."""

    def __init__(self, parts: Parts, count: int) -> None:
        self.count = count
        self.rows = parts["rows"]
        self.low, self.high = parts["low"], parts["high"]
        self.low_day, self.high_day = parts["low_day"], parts["high_day"]

    @classmethod
    def build(cls, nodes: list[list[tuple[str, Any]]]) -> DateColumn:
        found: list[tuple[Span, int]] = list(_pairs(nodes, values.spans))
        return cls(
            {
                "rows": _row_array([row for _, row in found]),
                "low": np.array([span.low for span, _ in found], np.int64),
                "high": np.array([span.high for span, _ in found], np.int64),
                "low_day": np.array([span.low_day for span, _ in found], np.int32),
                "high_day": np.array([span.high_day for span, _ in found], np.int32),
            },
            len(nodes),
        )

    @classmethod
    def load(cls, parts: Parts, count: int) -> DateColumn:
        return cls(parts, count)

    def parts(self) -> Parts:
        return {name: getattr(self, name) for name in ("rows", "low", "high", "low_day", "high_day")}

    def compared(self, prefix: str, asked: Span) -> Mask:
        """Rows with a range [l, h] that stands to the range asked for, [L, H], as the prefix says (R4, and HAPI)."""
        if asked.by_day:
            low, high, first, last = self.low_day, self.high_day, asked.low_day, asked.high_day
        else:
            low, high, first, last = self.low, self.high, asked.low, asked.high
        if prefix == "gt":
            hits = high > last
        elif prefix == "lt":
            hits = low < first
        elif prefix == "sa":
            hits = low > last
        elif prefix == "eb":
            hits = high < first
        else:
            equal = (low >= first) & (high <= last)
            hits = {
                "eq": lambda: equal,
                "ne": lambda: ~equal,
                "ge": lambda: (high >= last) | equal,
                "le": lambda: (low <= first) | equal,
            }[prefix]()
        return self.spread(hits)

    def order(self, descending: bool) -> Order:
        # A Period sorts by its start; one that is open there sorts before every date.
        return extreme(self.rows, self.low, self.count, descending, None)


_COMPARED: dict[str, Callable[[NDArray[Any], float], Mask]] = {
    "eq": lambda held, asked: held == asked,
    "ne": lambda held, asked: held != asked,
    "gt": lambda held, asked: held > asked,
    "ge": lambda held, asked: held >= asked,
    "lt": lambda held, asked: held < asked,
    "le": lambda held, asked: held <= asked,
    # "Approximately": within a tenth of the value asked for.
    "ap": lambda held, asked: np.abs(held - asked) <= abs(asked) * 0.1 + 1e-12,
}


class NumberColumn(_Scattered):
    """Plain numbers."""

    def __init__(self, parts: Parts, count: int) -> None:
        self.count = count
        self.rows, self.value = parts["rows"], parts["value"]

    @classmethod
    def build(cls, nodes: list[list[tuple[str, Any]]]) -> NumberColumn:
        found: list[tuple[float, int]] = list(_pairs(nodes, values.numbers))
        rows = _row_array([row for _, row in found])
        return cls({"rows": rows, "value": np.array([value for value, _ in found], np.float64)}, len(nodes))

    @classmethod
    def load(cls, parts: Parts, count: int) -> NumberColumn:
        return cls(parts, count)

    def parts(self) -> Parts:
        return {"rows": self.rows, "value": self.value}

    def compared(self, prefix: str, asked: float) -> Mask:
        """Rows with a number that stands so to the one asked for."""
        return self.spread(_COMPARED[prefix](self.value, asked))

    def order(self, descending: bool) -> Order:
        return extreme(self.rows, self.value, self.count, descending, None)


class QuantityColumn(_Scattered):
    """Numbers with units; the unit is matched on its code, as HAPI does."""

    def __init__(self, parts: Parts, count: int) -> None:
        self.count = count
        self.rows, self.value, self.unit = parts["rows"], parts["value"], parts["unit"]
        self._packed_units = parts["units"]

    @classmethod
    def build(cls, nodes: list[list[tuple[str, Any]]]) -> QuantityColumn:
        found: list[tuple[Quantity, int]] = list(_pairs(nodes, values.quantities))
        units = sorted({(quantity.system, quantity.code) for quantity, _ in found})
        place = {unit: number for number, unit in enumerate(units)}
        return cls(
            {
                "rows": _row_array([row for _, row in found]),
                "value": np.array([quantity.value for quantity, _ in found], np.float64),
                "unit": np.array([place[quantity.system, quantity.code] for quantity, _ in found], np.int32),
                "units": packed(units),
            },
            len(nodes),
        )

    @classmethod
    def load(cls, parts: Parts, count: int) -> QuantityColumn:
        return cls(parts, count)

    def parts(self) -> Parts:
        return {"rows": self.rows, "value": self.value, "unit": self.unit, "units": self._packed_units}

    @cached_property
    def _units(self) -> list[list[str]]:
        return unpacked(self._packed_units)

    def compared(self, prefix: str, asked: float, system: str, code: str) -> Mask:
        """Rows with a quantity that stands so to the one asked for; system or code "" = any."""
        hits = _COMPARED[prefix](self.value, asked)
        if system or code:
            fits = [(not system or unit[0] == system) and (not code or unit[1] == code) for unit in self._units]
            hits = hits & np.array(fits, np.bool_)[self.unit] if fits else hits
        return self.spread(hits)

    def order(self, descending: bool) -> Order:
        return extreme(self.rows, self.value, self.count, descending, None)


class CompositeColumn(Column):
    """A column a component over the occurrences of the composite's node, and the row that owns each occurrence."""

    def __init__(self, owners: Rows, columns: tuple[Column, ...], count: int) -> None:
        self.owners = owners
        self.columns = columns
        self.count = count

    @property
    def present(self) -> Mask:
        """Rows with an occurrence that has every component."""
        whole = np.ones(len(self.owners), np.bool_)
        for column in self.columns:
            whole = whole & column.present
        return self.owned(whole)

    def owned(self, hits: Mask) -> Mask:
        """The rows of these occurrences."""
        found = np.zeros(self.count, np.bool_)
        found[self.owners[hits]] = True
        return found

    def parts(self) -> Parts:
        made: Parts = {"owners": self.owners}
        for number, column in enumerate(self.columns):
            made.update({f"{number}.{name}": part for name, part in column.parts().items()})
        return made

    def order(self, descending: bool) -> Order:
        first = self.columns[0].order(descending)
        known = ~first.missing
        return extreme(self.owners[known], first.keys[known], self.count, descending, first.labels)


KINDS: dict[str, type[Column]] = {
    "token": TokenColumn,
    "string": StringColumn,
    "reference": LinkColumn,
    "uri": UriColumn,
    "date": DateColumn,
    "number": NumberColumn,
    "quantity": QuantityColumn,
}


def build(parameter: Parameter, bodies: Sequence[Body]) -> Column:
    """The column of a parameter over resource bodies."""
    nodes = [values.typed_nodes(parameter.walks, body) for body in bodies]
    if parameter.type != "composite":
        return KINDS[parameter.type].build(nodes)
    owners = _row_array([row for row, found in enumerate(nodes) for _ in found])
    holders = [node for found in nodes for _, node in found]
    columns = tuple(
        KINDS[part.type].build([values.typed_nodes(part.walks, holder) for holder in holders])
        for part in parameter.components
    )
    return CompositeColumn(owners, columns, len(bodies))


def fits(parameter: Parameter, keys: Collection[str]) -> bool:
    """Whether resources with only these top-level elements can have a value for the parameter."""
    return any(not walk.steps or walk.exists or walk.steps[0].key in keys for walk in parameter.walks)


def load(parameter: Parameter, parts: Parts, count: int) -> Column:
    """The column of a parameter from the arrays that its `parts` wrote."""
    if parameter.type != "composite":
        return KINDS[parameter.type].load(parts, count)
    owners = parts["owners"]
    columns = []
    for number, part in enumerate(parameter.components):
        mark = f"{number}."
        own = {name.removeprefix(mark): array for name, array in parts.items() if name.startswith(mark)}
        columns.append(KINDS[part.type].load(own, len(owners)))
    return CompositeColumn(owners, tuple(columns), count)


def empty(parameter: Parameter, count: int) -> Column:
    """The column of a parameter that none of `count` rows has a value for."""
    return load(parameter, build(parameter, []).parts(), count)
