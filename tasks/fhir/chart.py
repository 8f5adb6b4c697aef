"""A patient's chart: FHIR resources that are searched but never change, and an overlay of private writes on top.

`Chart` is immutable and shared; `Overlay` is one session's view of it. Both are `Records`, which is all that graders,
tools and pages ask for.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

from tasks.fhir import index
from tasks.fhir import source as written
from tasks.fhir.index import Index, MemoryIndex, StoredIndex
from tasks.fhir.resources import Resource
from tasks.fhir.search import Page, Searcher, Snapshots

__all__ = ["Chart", "Overlay", "Page", "Records", "every"]


class Records(Protocol):
    """What can be read and searched: a chart, or a chart with a session's writes."""

    def get(self, ref: str) -> Resource | None:
        """The resource of a reference `Type/id`; None if there is none."""
        ...

    def resources(self, type: str | None = None) -> Iterator[Resource]:
        """Every resource, or every one of a type."""
        ...

    def search(
        self, type: str, params: Sequence[tuple[str, str]], *, page_token: str | None = None, base_url: str = ""
    ) -> Page:
        """One page of a FHIR search. Raises SearchError."""
        ...


def every(records: Records, type: str, params: Sequence[tuple[str, str]] = ()) -> Iterator[Resource]:
    """All matches of a search, over all of its pages."""
    asked = [*params, ("_count", "200")]
    page = records.search(type, asked)
    yield from page.rows
    while page.next is not None:
        page = records.search(type, asked, page_token=page.next)
        yield from page.rows


def _folder(memory: Path, digest: str) -> Path:
    return memory / f"{digest[:40]}-{index.version()}"


class Chart:
    """An immutable set of FHIR resources, indexed once per digest.

    Rows stand by type and id. With a cache folder the index is written there once and memory-mapped; without one it
    is made in memory, column by column, as searches ask for it.
    """

    def __init__(self, digest: str, held: Index, dangling: list[tuple[str, str, str]] | None = None) -> None:
        self.digest = digest
        self._index = held
        self._dangling = dangling
        self._searcher = Searcher([held], Snapshots())

    @classmethod
    def open(cls, source: str | Path | Mapping[str, bytes], *, cache: Path | None = None) -> Chart:
        """The chart in a folder of NDJSON files, in one NDJSON or Bundle file (also .gz), or in bytes by file name.

        Raises ChartError, naming file and line, for what cannot be read; nothing is left out in silence.
        """
        paths = written.chart_files(Path(source)) if isinstance(source, (str, Path)) else None
        memory = cache / "charts" if cache is not None else None
        if paths is not None and memory is not None:
            # The common case of a session: nothing but a few small files is read.
            known = written.remembered_digest(paths, memory)
            if known is not None and (stored := StoredIndex.open(_folder(memory, known), known)) is not None:
                return cls(known, stored)
        files = written.read_files(paths) if paths is not None else cast(Mapping[str, bytes], source)
        digest = written.digest_of(files)
        if memory is None:
            return cls(digest, MemoryIndex(index.read_sorted(files)))
        stored = StoredIndex.open(_folder(memory, digest), digest)
        if stored is None:
            held = index.read_sorted(files)
            try:
                index.write(_folder(memory, digest), digest, held)
            except OSError:
                # A cache is a convenience: without room for it, the chart is searched from memory.
                return cls(digest, MemoryIndex(held))
            stored = StoredIndex.open(_folder(memory, digest), digest)
            if stored is None:
                return cls(digest, MemoryIndex(held))
        if paths is not None:
            written.remember_digest(paths, memory, digest)
        return cls(digest, stored)

    @property
    def index(self) -> Index:
        """The rows and columns that searches run on."""
        return self._index

    @property
    def types(self) -> dict[str, int]:
        """How many resources there are of each type."""
        return self._index.types()

    def __len__(self) -> int:
        return sum(self._index.types().values())

    def get(self, ref: str) -> Resource | None:
        """The resource of a reference `Type/id`; None if there is none."""
        return self._searcher.get(ref)

    def resources(self, type: str | None = None) -> Iterator[Resource]:
        """Every resource by type and id, or every one of a type."""
        counts = self._index.types()
        for kind in [type] if type is not None else counts:
            for row in range(counts.get(kind, 0)):
                yield self._index.resource(kind, row)

    def search(
        self, type: str, params: Sequence[tuple[str, str]], *, page_token: str | None = None, base_url: str = ""
    ) -> Page:
        """One page of a FHIR search. Raises SearchError for what cannot be answered as meant."""
        return self._searcher.search(type, params, page_token=page_token, base_url=base_url)

    def dangling(self) -> list[tuple[str, str, str]]:
        """(reference of the holder, path, target) of every relative reference that leads to nothing in the chart."""
        if isinstance(self._index, StoredIndex):
            return self._index.dangling
        if self._dangling is None:
            self._dangling = index.dangling(list(self.resources()))
        return self._dangling


class Overlay:
    """A chart with private writes on top: one session's record. The chart itself is never touched."""

    def __init__(self, chart: Chart) -> None:
        self.base = chart
        self._lock = threading.Lock()
        self._writes: dict[str, Resource] = {}
        self._snapshots = Snapshots()
        self._searcher = Searcher([chart.index], self._snapshots)

    def add(self, resource: Resource) -> None:
        """Put a resource on top: a new one, or in the place of the one with the same type and id."""
        with self._lock:
            self._writes[resource.ref] = resource
            self._searcher = Searcher([self.base.index, MemoryIndex(self._writes.values())], self._snapshots)

    def get(self, ref: str) -> Resource | None:
        """The resource of a reference `Type/id`; None if there is none."""
        return self._writes.get(ref) or self.base.get(ref)

    def resources(self, type: str | None = None) -> Iterator[Resource]:
        """Every resource, or every one of a type: the chart's by type and id, then the writes as they came."""
        for resource in self.base.resources(type):
            if resource.ref not in self._writes:
                yield resource
        for resource in list(self._writes.values()):
            if type in (None, resource.type):
                yield resource

    def search(
        self, type: str, params: Sequence[tuple[str, str]], *, page_token: str | None = None, base_url: str = ""
    ) -> Page:
        """One page of a FHIR search over chart and writes. Raises SearchError."""
        return self._searcher.search(type, params, page_token=page_token, base_url=base_url)
