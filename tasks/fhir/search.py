"""The search engine: a parsed query over one or more indexes, merged, sorted, counted and paged.

A chart is one index; a session is a chart's index and a small one of its writes. Each condition is evaluated on each
index by the same code; sorting and totals are exact over all of them.
"""

from __future__ import annotations

import hashlib
import re
import threading
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tasks.errors import SearchError
from tasks.fhir import parameters, query
from tasks.fhir.columns import LinkColumn
from tasks.fhir.elements import resource_types
from tasks.fhir.index import Index
from tasks.fhir.postings import Mask, Order
from tasks.fhir.query import Chain, Condition, Has, Ids, Include, Missing, Query, Where
from tasks.fhir.resources import Resource
from tasks.fhir.subset import trimmed

#: Page chains kept by a chart or session; the oldest is forgotten first.
_KEPT = 256


@dataclass(frozen=True)
class Page:
    """One page of a search: its rows, what _include added, the exact total, and the token of the next page.

    `applied` lists the parameters that shaped the rows, for the self link.
    """

    rows: tuple[Resource, ...]
    included: tuple[Resource, ...]
    total: int
    next: str | None
    applied: tuple[tuple[str, str], ...]


class Found(NamedTuple):
    """Rows found, in order: the number of the index, and the row in it."""

    shard: NDArray[np.int8]
    row: NDArray[np.int32]


class _Snapshot(NamedTuple):
    query: Query
    found: Found


class Snapshots:
    """Results that pages are cut from: a later write changes no page of a chain that has begun."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Snapshot] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, asked: Query, found: Found) -> str:
        """Remember a result; gives its key, the same for the same query and rows."""
        mark = hashlib.sha256(repr((asked.type, asked.applied)).encode("utf-8", "backslashreplace"))
        mark.update(found.shard.tobytes())
        mark.update(found.row.tobytes())
        key = mark.hexdigest()[:32]
        with self._lock:
            self._kept[key] = _Snapshot(asked, found)
            self._kept.move_to_end(key)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return key

    def get(self, key: str) -> _Snapshot | None:
        """What was kept under a key; None if it never was, or is forgotten."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)


class Searcher:
    """Searches over a sequence of indexes, of which a later one may replace rows of an earlier one."""

    def __init__(self, indexes: Sequence[Index], snapshots: Snapshots) -> None:
        self.indexes = indexes
        self.snapshots = snapshots
        self._replaced: dict[str, list[list[int]]] = {}

    def search(
        self, type: str, params: Sequence[tuple[str, str]], *, page_token: str | None = None, base_url: str = ""
    ) -> Page:
        """One page of a search. Raises SearchError for what cannot be answered as meant."""
        if page_token is not None:
            return self._later_page(type, page_token)
        asked = query.parse(type, params, base_url)
        found = self._sorted(asked, self._matches(type, asked.conditions))
        return self._page(asked, found, asked.offset, asked.count, None)

    def get(self, ref: str) -> Resource | None:
        """The resource of a reference `Type/id`; None if there is none."""
        type, _, ident = ref.partition("/")
        for index in reversed(self.indexes):
            row = index.find(type, ident)
            if row is not None:
                return index.resource(type, row)
        return None

    # Conditions

    def _matches(self, type: str, conditions: Iterable[Condition]) -> list[Mask]:
        """A mask for each index: the rows that meet every condition and are not replaced."""
        masks: list[Mask | None] = [None] * len(self.indexes)
        for condition in conditions:
            for number, hits in enumerate(self._meeting(type, condition)):
                held = masks[number]
                masks[number] = hits if held is None else held & hits
        made = []
        for index, mask in zip(self.indexes, masks, strict=True):
            made.append(np.ones(index.types().get(type, 0), np.bool_) if mask is None else mask)
        self._hide_replaced(type, made)
        return made

    def _hide_replaced(self, type: str, masks: list[Mask]) -> None:
        for number, rows in enumerate(self._replaced_rows(type)):
            if rows and masks[number][rows].any():
                masks[number] = masks[number].copy()
                masks[number][rows] = False

    def _replaced_rows(self, type: str) -> list[list[int]]:
        """For each index, the rows of a type that a later index has anew."""
        held = self._replaced.get(type)
        if held is None:
            held = [[] for _ in self.indexes]
            for later in range(1, len(self.indexes)):
                for ident in self.indexes[later].ids(type).tolist():
                    for earlier in range(later):
                        row = self.indexes[earlier].find(type, ident.decode("ascii"))
                        if row is not None:
                            held[earlier].append(row)
            self._replaced[type] = held
        return held

    def _meeting(self, type: str, condition: Condition) -> list[Mask]:
        if isinstance(condition, Ids):
            return [self._with_ids(index, type, condition.ids) for index in self.indexes]
        if isinstance(condition, Chain):
            targets: set[str] = set()
            for target, inner in condition.among:
                targets |= self._refs(target, self._matches(target, [inner]))
            code = condition.parameter.code
            return [cast(LinkColumn, index.column(type, code)).to_any(targets) for index in self.indexes]
        if isinstance(condition, Has):
            holders = self._matches(condition.type, [condition.condition])
            named: set[str] = set()
            for index, mask in zip(self.indexes, holders, strict=True):
                column = cast(LinkColumn, index.column(condition.type, condition.parameter.code))
                named |= column.targets(np.flatnonzero(mask))
            ids = frozenset(ref.partition("/")[2] for ref in named if ref.startswith(f"{type}/"))
            return [self._with_ids(index, type, ids) for index in self.indexes]
        return [_column_mask(index, type, condition) for index in self.indexes]

    @staticmethod
    def _with_ids(index: Index, type: str, ids: frozenset[str]) -> Mask:
        found = np.zeros(index.types().get(type, 0), np.bool_)
        for ident in ids:
            row = index.find(type, ident)
            if row is not None:
                found[row] = True
        return found

    def _refs(self, type: str, masks: list[Mask]) -> set[str]:
        return {
            f"{type}/{ident.decode('ascii')}"
            for index, mask in zip(self.indexes, masks, strict=True)
            for ident in index.ids(type)[mask]
        }

    # Order

    def _sorted(self, asked: Query, masks: list[Mask]) -> Found:
        """The rows in order: as sorted, ties by id; unsorted: the chart's rows by id, then writes as they came."""
        rows = [np.flatnonzero(mask).astype(np.int32) for mask in masks]
        found = Found(np.repeat(np.arange(len(rows), dtype=np.int8), [len(r) for r in rows]), np.concatenate(rows))
        if not asked.sort or len(found.row) < 2:
            return found
        levels: list[NDArray[np.int64] | NDArray[np.float64]] = [self._by_id(asked.type, rows)]
        for parameter, descending in reversed(asked.sort):
            if parameter.code == "_id":
                levels.append(-levels[0] if descending else levels[0])
                continue
            orders = [index.order(asked.type, parameter.code, descending) for index in self.indexes]
            keys = _merged(orders, rows)
            levels.append(-keys if descending else keys)
            # Missing values come last, whichever way the sort goes.
            levels.append(np.concatenate([o.missing[r] for o, r in zip(orders, rows, strict=True)]).astype(np.int64))
        ordering = np.lexsort(levels)
        return Found(found.shard[ordering], found.row[ordering])

    def _by_id(self, type: str, rows: list[NDArray[np.int32]]) -> NDArray[np.int64]:
        """A number a row that goes with its id. The first index has its rows by id; the others are small."""
        base = len(rows[0])
        others = [
            ident for index, r in zip(self.indexes[1:], rows[1:], strict=True) for ident in index.ids(type)[r].tolist()
        ]
        step = len(others) + 1
        first = np.arange(1, base + 1, dtype=np.int64) * step
        if not others:
            return first
        held = self.indexes[0].ids(type)[rows[0]]
        own = {ident: place for place, ident in enumerate(sorted(others))}
        at = np.searchsorted(held, np.array(others, held.dtype)) if base else np.zeros(len(others), np.int64)
        between = [int(place) * step + 1 + own[ident] for place, ident in zip(at, others, strict=True)]
        return np.concatenate([first, np.array(between, np.int64)])

    # Pages

    def _later_page(self, type: str, token: str) -> Page:
        match = re.fullmatch(r"([0-9a-f]{32})-(\d{1,9})-(\d{1,9})", token, re.ASCII)
        held = self.snapshots.get(match[1]) if match else None
        if match is None or held is None or held.query.type != type:
            raise SearchError(
                "the page token is not known, or its search is forgotten.", where=type, remedy="Search again."
            )
        return self._page(held.query, held.found, int(match[2]), int(match[3]), match[1])

    def _page(self, asked: Query, found: Found, offset: int, count: int, key: str | None) -> Page:
        total = len(found.row)
        if not count:
            return Page((), (), total, None, asked.applied)
        pairs = list(
            zip(found.shard[offset : offset + count].tolist(), found.row[offset : offset + count].tolist(), strict=True)
        )
        rows = [self._current(asked.type, shard, row) for shard, row in pairs]
        included = self._included(asked, pairs) if asked.includes else []
        if asked.elements:
            rows = [trimmed(resource, asked.elements) for resource in rows]
        after = None
        if offset + count < total:
            after = f"{key or self.snapshots.keep(asked, found)}-{offset + count}-{count}"
        return Page(tuple(rows), tuple(included), total, after, asked.applied)

    def _current(self, type: str, shard: int, row: int) -> Resource:
        resource = self.indexes[shard].resource(type, row)
        if shard + 1 < len(self.indexes) and self.indexes[-1].types().get(type):
            return self.get(resource.ref) or resource
        return resource

    # Includes

    def _included(self, asked: Query, pairs: list[tuple[int, int]]) -> list[Resource]:
        matches = {self.indexes[shard].resource(asked.type, row).ref for shard, row in pairs}
        found: dict[str, Resource] = {}
        fresh = matches
        first = True
        while fresh:
            reached: set[str] = set()
            for include in asked.includes:
                if first or include.iterate:
                    reached |= self._reached(include, fresh)
            fresh = set()
            for ref in sorted(reached - matches - found.keys()):
                resource = self.get(ref)
                if resource is not None:
                    found[ref] = resource
                    fresh.add(ref)
            first = False
        return [found[ref] for ref in sorted(found)]

    def _reached(self, include: Include, refs: set[str]) -> set[str]:
        return self._pointing_at(include, refs) if include.reverse else self._pointed_at(include, refs)

    def _pointed_at(self, include: Include, refs: set[str]) -> set[str]:
        reached: set[str] = set()
        ids = frozenset(ref.partition("/")[2] for ref in refs if ref.startswith(f"{include.type}/"))
        if not ids:
            return set()
        masks = [self._with_ids(index, include.type, ids) for index in self.indexes]
        self._hide_replaced(include.type, masks)
        for index, mask in zip(self.indexes, masks, strict=True):
            rows = np.flatnonzero(mask)
            for code in _reference_codes(include.type, include.code):
                reached |= cast(LinkColumn, index.column(include.type, code)).targets(rows)
        return {ref for ref in reached if not include.target or ref.startswith(f"{include.target}/")}

    def _pointing_at(self, include: Include, refs: set[str]) -> set[str]:
        reached: set[str] = set()
        wanted = {ref for ref in refs if not include.target or ref.startswith(f"{include.target}/")}
        held = {type for index in self.indexes for type in index.types()}
        sources = {include.type} if include.type else held & resource_types()
        for source in sources:
            for code in _reference_codes(source, include.code):
                masks = [cast(LinkColumn, index.column(source, code)).to_any(wanted) for index in self.indexes]
                self._hide_replaced(source, masks)
                reached |= self._refs(source, masks)
        return reached


def _reference_codes(type: str, code: str) -> list[str]:
    if code != "*":
        return [code]
    found = (parameters.parameter(type, name) for name in parameters.codes(type))
    return [p.code for p in found if p is not None and p.type == "reference"]


def _column_mask(index: Index, type: str, condition: Where | Missing) -> Mask:
    column = index.column(type, condition.parameter.code)
    if isinstance(condition, Missing):
        return ~column.present if condition.absent else column.present
    hits = condition.tests[0](column)
    for test in condition.tests[1:]:
        hits = hits | test(column)
    return ~hits if condition.negate else hits


def _merged(orders: list[Order], rows: list[NDArray[np.int32]]) -> NDArray[np.int64] | NDArray[np.float64]:
    """The sort keys of the rows of all indexes on one scale."""
    keys = [order.keys[r] for order, r in zip(orders, rows, strict=True)]
    busy = [number for number, r in enumerate(rows) if len(r)]
    if orders[0].labels is None or len(busy) < 2:
        return np.concatenate(keys)
    # Labels of the small indexes are set between those of the first: 2n + 1 is its n-th, 2n lies just before it.
    base = orders[0].labels()
    extra = sorted({label for order in orders[1:] if order.labels for label in order.labels()})
    step = len(extra) + 1
    scaled = [(keys[0].astype(np.int64) + 1) * step]
    for order, own in zip(orders[1:], keys[1:], strict=True):
        labels = order.labels() if order.labels else []
        places = []
        for label in labels:
            at = bisect_left(base, label)
            same = at < len(base) and base[at] == label
            places.append((at + 1) * step if same else at * step + 1 + bisect_left(extra, label))
        scaled.append(np.array(places, np.int64)[own] if len(own) and places else np.zeros(len(own), np.int64))
    return np.concatenate(scaled)
