"""A chart's resources as rows that can be searched: held in memory, or memory-mapped from a cache folder.

Rows of a type are numbered from 0. Both kinds give the same columns; the stored one is written once per chart digest
and index version, and opened without reading more than a page of metadata.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import mmap
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tasks.errors import SearchError
from tasks.fhir import columns, parameters
from tasks.fhir.columns import Column
from tasks.fhir.elements import resource_types
from tasks.fhir.postings import Order, Parts
from tasks.fhir.resources import Resource, references
from tasks.fhir.source import read_resources

#: What decides which values an index holds and how they are stored: the code and HL7's tables.
_MAKERS = ("dates", "values", "fhirpath", "elements", "parameters", "postings", "columns", "index", "resources")
_TABLES = ("elements.json", "parameters.json")


@cache
def version() -> str:
    """The version of the index format: a hash of all that makes an index, so that none outlives a change of it."""
    whole = hashlib.blake2b(digest_size=6)
    for name in _MAKERS:
        whole.update((files("tasks.fhir") / f"{name}.py").read_bytes())
    for name in _TABLES:
        whole.update((files("tasks.fhir.definitions") / name).read_bytes())
    return whole.hexdigest()


_ID_WIDTH = 64
_ALIGN = 64


class Index(Protocol):
    """Rows by type: what the engine searches."""

    def types(self) -> dict[str, int]:
        """How many rows each type has."""
        ...

    def ids(self, type: str) -> NDArray[np.bytes_]:
        """The ids of a type's rows."""
        ...

    def find(self, type: str, ident: str) -> int | None:
        """The row of an id; None if there is none."""
        ...

    def resource(self, type: str, row: int) -> Resource:
        """The resource of a row."""
        ...

    def column(self, type: str, code: str) -> Column:
        """The column of a search parameter. Raises SearchError for one that the type does not have."""
        ...

    def order(self, type: str, code: str, descending: bool) -> Order:
        """The sort keys of a search parameter."""
        ...


class _Columns:
    """Columns and their sort keys, kept once made."""

    def __init__(self) -> None:
        self._columns: dict[tuple[str, str], Column] = {}
        self._orders: dict[tuple[str, str, bool], Order] = {}

    def column(self, type: str, code: str) -> Column:
        made = self._columns.get((type, code))
        if made is None:
            made = self._columns[type, code] = self._make(type, code)
        return made

    def order(self, type: str, code: str, descending: bool) -> Order:
        made = self._orders.get((type, code, descending))
        if made is None:
            made = self._orders[type, code, descending] = self.column(type, code).order(descending)
        return made

    def _make(self, type: str, code: str) -> Column:
        raise NotImplementedError


class MemoryIndex(_Columns):
    """An index over resources in memory; a column is made when it is first asked for. Rows keep the order given."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        super().__init__()
        self._rows: dict[str, list[Resource]] = {}
        self._ids: dict[str, NDArray[np.bytes_]] = {}
        self._bodies: dict[str, tuple[list[dict[str, Any]], frozenset[str]]] = {}
        for resource in resources:
            self._rows.setdefault(resource.type, []).append(resource)
        self._places = {type: {r.id: row for row, r in enumerate(rows)} for type, rows in self._rows.items()}

    def types(self) -> dict[str, int]:
        return {type: len(rows) for type, rows in self._rows.items()}

    def ids(self, type: str) -> NDArray[np.bytes_]:
        made = self._ids.get(type)
        if made is None:
            made = np.array([r.id.encode("ascii") for r in self._rows.get(type, ())], f"S{_ID_WIDTH}")
            self._ids[type] = made
        return made

    def find(self, type: str, ident: str) -> int | None:
        return self._places.get(type, {}).get(ident)

    def resource(self, type: str, row: int) -> Resource:
        return self._rows[type][row]

    def _make(self, type: str, code: str) -> Column:
        parameter = parameters.required(type, code)
        if type not in self._bodies:
            bodies = [resource.body for resource in self._rows.get(type, ())]
            self._bodies[type] = bodies, frozenset(key for body in bodies for key in body)
        bodies, keys = self._bodies[type]
        if not columns.fits(parameter, keys):
            return columns.empty(parameter, len(bodies))
        return columns.build(parameter, bodies)


def read_sorted(content: Mapping[str, bytes]) -> list[Resource]:
    """The resources of chart files by type and id, as a chart numbers its rows. Raises ChartError."""
    with _collector_paused():
        return sorted((resource for _, resource in read_resources(content)), key=lambda r: (r.type, r.id))


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Parsed JSON has no cycles; walking it for some, over and over while it grows, doubles the time of a build."""
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


def dangling(resources: Sequence[Resource]) -> list[tuple[str, str, str]]:
    """(reference of the holder, path, target) of every reference that leads to no resource of the chart.

    Relative and urn: references are looked at; an absolute URL leads out of the chart, `#x` to a contained resource.
    """
    known = {resource.ref for resource in resources}
    found = []
    for resource in resources:
        for path, target in references(resource.body):
            relative = target.split("/_history/", 1)[0]
            outside = target.startswith("#") or (":" in target and not target.startswith("urn:"))
            if not outside and relative not in known:
                found.append((resource.ref, path, target))
    return found


class _Writer:
    """Arrays one after the other in one file, each at a multiple of 64 bytes, and where they stand."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._at = 0

    def add(self, array: NDArray[Any]) -> list[Any]:
        """Append an array; gives [offset, dtype, length]."""
        data = np.ascontiguousarray(array)
        place = [self._at, data.dtype.str, len(data)]
        self._file.write(data.tobytes())
        self._at += data.nbytes
        pad = -self._at % _ALIGN
        self._file.write(b"\0" * pad)
        self._at += pad
        return place

    def close(self) -> None:
        """Finish; a file is never empty, since nothing maps an empty file."""
        if not self._at:
            self._file.write(b"\0" * _ALIGN)
        self._file.close()


def write(folder: Path, digest: str, resources: Sequence[Resource]) -> None:
    """Store an index of sorted resources in a folder, whole or not at all.

    Builders in several processes do not disturb each other: each works in its own folder, and the first to finish
    puts it in place. Raises OSError if the disk refuses.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    _sweep(folder.parent)
    made = Path(tempfile.mkdtemp(prefix=".building-", dir=folder.parent))
    try:
        with _collector_paused():
            _fill(made, digest, resources)
        _put(made, folder, digest)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _sweep(parent: Path) -> None:
    """Remove what builders that were killed left behind: nothing is under way for a day."""
    for left in [*parent.glob(".building-*"), *parent.glob(".torn-*")]:
        with contextlib.suppress(OSError):
            if left.stat().st_mtime < time.time() - 86_400:
                shutil.rmtree(left, ignore_errors=True)


def _put(made: Path, folder: Path, digest: str) -> None:
    try:
        made.rename(folder)
    except OSError:
        # Somebody was faster, or a torn index stands there: keep a good one, push a bad one aside.
        if StoredIndex.open(folder, digest) is not None:
            return
        aside = Path(tempfile.mkdtemp(prefix=".torn-", dir=folder.parent))
        try:
            with contextlib.suppress(OSError):
                folder.replace(aside)
            made.rename(folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def _fill(folder: Path, digest: str, resources: Sequence[Resource]) -> None:
    by_type: dict[str, list[Resource]] = {}
    for resource in resources:
        by_type.setdefault(resource.type, []).append(resource)
    offsets = [0]
    with (folder / "bodies").open("wb") as bodies:
        for resource in resources:
            offsets.append(offsets[-1] + bodies.write(resource.raw.encode("utf-8")))
        if not offsets[-1]:
            bodies.write(b"\0")
    rows = _Writer(folder / "rows")
    places = {
        "offsets": rows.add(np.array(offsets, np.int64)),
        "ids": rows.add(np.array([r.id.encode("ascii") for r in resources], f"S{_ID_WIDTH}")),
    }
    rows.close()
    for type, held in by_type.items():
        memory = MemoryIndex(held)
        writer = _Writer(folder / f"{type}.columns")
        listed: dict[str, dict[str, list[Any]]] = {}
        for code in parameters.codes(type) if type in resource_types() else ():
            if code == "_id" or parameters.parameter(type, code) is None:
                continue
            column = memory.column(type, code)
            if any(len(part) for name, part in column.parts().items() if name.endswith("rows")):
                listed[code] = {name: writer.add(part) for name, part in column.parts().items()}
        writer.close()
        (folder / f"{type}.json").write_text(json.dumps(listed), "ascii")
    (folder / "dangling.json").write_text(json.dumps(dangling(resources)), "utf-8")
    meta = {
        "version": version(),
        "digest": digest,
        "types": {type: len(held) for type, held in by_type.items()},
        "rows": places,
        "sizes": {path.name: path.stat().st_size for path in sorted(folder.iterdir())},
    }
    (folder / "meta.json").write_text(json.dumps(meta), "ascii")


class StoredIndex(_Columns):
    """An index in a folder, memory-mapped: nothing is read before it is asked for."""

    def __init__(self, folder: Path, meta: dict[str, Any]) -> None:
        super().__init__()
        self._folder = folder
        self._meta = meta
        self._types: dict[str, int] = meta["types"]
        self._first: dict[str, int] = {}
        at = 0
        for type, count in self._types.items():
            self._first[type] = at
            at += count
        self._lists: dict[str, tuple[dict[str, Any], mmap.mmap]] = {}
        # Mapped at once: if the folder is replaced, what is mapped stays whole.
        self._bodies = _mapped(folder / "bodies")
        rows = _mapped(folder / "rows")
        self._offsets = _array(rows, meta["rows"]["offsets"])
        self._ids: NDArray[np.bytes_] = _array(rows, meta["rows"]["ids"])

    @classmethod
    def open(cls, folder: Path, digest: str) -> StoredIndex | None:
        """The index in a folder; None if it is not there, not whole, of another version, or of another chart."""
        try:
            meta = json.loads((folder / "meta.json").read_bytes())
            if meta["version"] != version() or meta["digest"] != digest:
                return None
            sizes: dict[str, int] = meta["sizes"]
            if any(os.stat(folder / name).st_size != size for name, size in sizes.items()):  # noqa: PTH116 (speed)
                return None
            return cls(folder, meta)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def folder(self) -> Path:
        """Where the index is stored."""
        return self._folder

    def types(self) -> dict[str, int]:
        return dict(self._types)

    def ids(self, type: str) -> NDArray[np.bytes_]:
        first = self._first.get(type, 0)
        return self._ids[first : first + self._types.get(type, 0)]

    def find(self, type: str, ident: str) -> int | None:
        held = self.ids(type)
        key = ident.encode("utf-8", "replace")
        if not len(held) or len(key) > _ID_WIDTH:
            return None
        row = int(np.searchsorted(held, np.bytes_(key)))
        return row if row < len(held) and held[row] == key else None

    def resource(self, type: str, row: int) -> Resource:
        place = self._first[type] + row
        raw = self._bodies[self._offsets[place] : self._offsets[place + 1]].decode("utf-8")
        return Resource(type, self._ids[place].decode("ascii"), raw)

    @cached_property
    def dangling(self) -> list[tuple[str, str, str]]:
        """As `dangling` found them when the index was made."""
        found = json.loads((self._folder / "dangling.json").read_text("utf-8"))
        return [(holder, path, target) for holder, path, target in found]

    def _make(self, type: str, code: str) -> Column:
        parameter = parameters.required(type, code)
        count = self._types.get(type, 0)
        if not count:
            return columns.empty(parameter, 0)
        if code == "_id":
            raise SearchError("ids are looked up, not searched.", where=type)
        if type not in self._lists:
            listed = json.loads((self._folder / f"{type}.json").read_bytes())
            self._lists[type] = (listed, _mapped(self._folder / f"{type}.columns"))
        listed, mapped = self._lists[type]
        if code not in listed:
            return columns.empty(parameter, count)
        parts: Parts = {name: _array(mapped, place) for name, place in listed[code].items()}
        return columns.load(parameter, parts, count)


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _array(mapped: mmap.mmap, place: Sequence[Any]) -> NDArray[Any]:
    offset, dtype, length = place
    kind = np.dtype(dtype)
    if offset + length * kind.itemsize > len(mapped):
        raise ValueError("the index file is shorter than it should be")
    return np.frombuffer(mapped, kind, length, offset)
