"""Sorted keys with the rows that have them, and the sort order of rows: what columns are made of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: One truth value a row.
Mask = NDArray[np.bool_]
Rows = NDArray[np.int32]
#: The arrays that something is stored as, by name.
Parts = dict[str, NDArray[Any]]


class Order(NamedTuple):
    """Sort keys of a column: a number a row; rows without a value are `missing`.

    `labels` is None where the numbers mean themselves (instants, quantities); otherwise they are places in the sorted
    list that it gives, by which two columns' orders can be merged.
    """

    keys: NDArray[Any]
    missing: Mask
    labels: Callable[[], Sequence[Any]] | None


def packed(rows: Iterable[Any]) -> NDArray[Any]:
    """JSON text as bytes, so that words stand in the same file as the arrays."""
    return np.frombuffer(json.dumps(list(rows), ensure_ascii=True, separators=(",", ":")).encode("ascii"), np.uint8)


def unpacked(part: NDArray[Any]) -> list[Any]:
    rows: list[Any] = json.loads(part.tobytes())
    return rows


class Postings:
    """Sorted keys, and for each the rows that have it."""

    def __init__(self, keys: Callable[[], list[Any]], start: Rows, rows: Rows, count: int) -> None:
        self._read = keys
        self.start = start
        self.rows = rows
        self.count = count

    @classmethod
    def of(cls, pairs: Iterable[tuple[Any, int]], count: int, rank: Callable[[Any], Any] | None = None) -> Postings:
        """From (key, row) pairs; keys are sorted by `rank`."""
        held: dict[Any, list[int]] = {}
        for key, row in pairs:
            rows = held.setdefault(key, [])
            if not rows or rows[-1] != row:
                rows.append(row)
        keys = sorted(held, key=rank)
        start = np.zeros(len(keys) + 1, np.int32)
        np.cumsum([len(held[key]) for key in keys], out=start[1:])
        flat = np.array([row for key in keys for row in held[key]], np.int32)
        return cls(lambda: keys, start, flat, count)

    @cached_property
    def keys(self) -> list[Any]:
        """The keys in order; read when first needed."""
        return self._read()

    @cached_property
    def places(self) -> dict[Any, int]:
        """key -> its place among the keys."""
        return {key: place for place, key in enumerate(self.keys)}

    def mask(self, places: Iterable[int]) -> Mask:
        """The rows that have any of the keys at these places."""
        found = np.zeros(self.count, np.bool_)
        start, rows = self.start, self.rows
        for place in places:
            found[rows[start[place] : start[place + 1]]] = True
        return found

    @cached_property
    def present(self) -> Mask:
        """The rows that have a key at all."""
        found = np.zeros(self.count, np.bool_)
        found[self.rows] = True
        return found

    def parts(self, name: str) -> Parts:
        """As arrays, to be written under `name`."""
        return {f"{name}.keys": packed(self.keys), f"{name}.start": self.start, f"{name}.rows": self.rows}

    @classmethod
    def load(cls, parts: Parts, name: str, count: int, made: Callable[[Any], Any] | None = None) -> Postings:
        """From what `parts` wrote."""
        stored = parts[f"{name}.keys"]

        def read() -> list[Any]:
            keys = unpacked(stored)
            return [made(key) for key in keys] if made else keys

        return cls(read, parts[f"{name}.start"], parts[f"{name}.rows"], count)

    def order(self, descending: bool, rank: Callable[[Any], Any] = lambda key: key) -> Order:
        """Rows by the first of their keys, or by the last where the sort descends."""
        places = np.repeat(np.arange(len(self.start) - 1, dtype=np.int64), np.diff(self.start))
        return extreme(self.rows, places, self.count, descending, lambda: [rank(key) for key in self.keys])


def extreme(
    rows: Rows, numbers: NDArray[Any], count: int, descending: bool, labels: Callable[[], Sequence[Any]] | None
) -> Order:
    """The smallest number of each row, or the largest where the sort descends."""
    missing = np.ones(count, np.bool_)
    missing[rows] = False
    keys = np.zeros(count, numbers.dtype)
    ordering = np.argsort(-numbers if not descending else numbers, kind="stable")
    keys[rows[ordering]] = numbers[ordering]  # the last write wins: the extreme one
    return Order(keys, missing, labels)
