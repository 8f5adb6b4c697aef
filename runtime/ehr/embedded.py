"""The embedded backend: a session is a private overlay over a chart that never changes.

Opening one costs neither a copy nor a server. Searches run in this process; the HTTP side starts when a base URL is
first asked for.
"""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from runtime.ehr import rest
from runtime.ehr.creation import checked, parsed, stamp, stored
from runtime.ehr.outcome import refusal
from runtime.ehr.server import LoopbackServer
from runtime.ehr.session import Response
from tasks.errors import EnvironmentFault, SearchError, UsageError
from tasks.fhir.chart import Chart, Overlay, Page, Records
from tasks.fhir.resources import Resource
from tasks.trials import Write


class EmbeddedSession:
    """A session served by this process; see `Session` for what each member promises.

    One lock makes it safe to call from several threads, the HTTP server's among them.
    """

    def __init__(self, chart: Chart, *, now: datetime | None = None) -> None:
        self._overlay = Overlay(chart)
        self._now = now
        self._ledger: list[Write] = []
        self._lock = threading.RLock()
        self._server: LoopbackServer | None = None
        self._base_url = ""
        self._closed = False
        self._pages = rest.Pages()
        self._ids: deque[str] = deque()

    @property
    def base_url(self) -> str:
        with self._lock:
            self._must_be_open()
            if not self._base_url:
                self._server = LoopbackServer.of_this_process()
                self._base_url = self._server.mount(self._served)
            return self._base_url

    @property
    def ledger(self) -> tuple[Write, ...]:
        with self._lock:
            return tuple(self._ledger)

    @property
    def records(self) -> Records:
        return self._overlay

    @property
    def pages(self) -> rest.Pages:
        return self._pages

    def search(self, type: str, params: Sequence[tuple[str, str]], page_token: str | None = None) -> Page:
        return self.find(type, params, page_token)

    def find(self, type: str, params: Sequence[tuple[str, str]], token: str | None) -> Page:
        """As `search`; what the REST layer calls."""
        with self._lock:
            self._must_be_open()
            try:
                return self._overlay.search(type, params, page_token=token, base_url=self._base_url)
            except SearchError as fault:
                if token is not None:
                    raise rest.expired() from fault
                raise refusal(400, "processing", str(fault)) from fault

    def read(self, ref: str) -> Resource:
        with self._lock:
            self._must_be_open()
            found = self._overlay.get(ref)
        if found is None:
            raise refusal(404, "not-found", f"There is no {ref.partition('/')[0][:64]} with this id.")
        return found

    def create(self, body: Mapping[str, Any], *, call: int | None = None) -> Resource:
        return self._store(parsed(body), type=None, call=call)

    def store(self, body: Mapping[str, Any], *, type: str) -> Resource:
        """A create that came in as a request to the address of `type`."""
        return self._store(dict(body), type=type, call=None)

    def _store(self, body: dict[str, Any], *, type: str | None, call: int | None) -> Resource:
        with self._lock:
            self._must_be_open()
            body = checked(body, self._overlay, type=type, base_url=self._base_url)
            sequence = len(self._ledger) + 1
            made = stored(
                body, id=self._ids.popleft() if self._ids else str(uuid.uuid4()), at=stamp(self._now, sequence)
            )
            entry = Write(sequence=sequence, call=call, reference=made.ref, version=1, resource=made.raw)
            self._overlay.add(made)
            self._ledger.append(entry)
            return made

    def restore(self, writes: Sequence[Write]) -> None:
        """See Restorable. The writes are taken as they are, not checked again: they were stored once."""
        with self._lock:
            self._must_be_open()
            if self._ledger:
                raise UsageError("The EHR session has writes already.", remedy="Restore into a new one.")
            for write in writes:
                self._overlay.add(Resource.parse(write.resource, where=f"ledger entry {write.sequence}"))
                self._ledger.append(write)

    def name_next(self, ids: Sequence[str]) -> None:
        """See Restorable."""
        self._ids.extend(ids)

    def request(
        self,
        method: str,
        path_and_query: str,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        # A link of an answer may be sent back as it stands.
        below = path_and_query.removeprefix(self._base_url) if self._base_url else path_and_query
        path, _, query = below.partition("?")
        sent = body.encode() if isinstance(body, str) else body or b""
        named = {key.lower(): value for key, value in (headers or {}).items()}
        self._must_be_open()
        return self._served(rest.Request(method.upper(), path.strip("/"), query, named, sent))

    def _served(self, request: rest.Request) -> Response:
        with self._lock:
            return rest.answer(self, request)

    def close(self) -> None:
        with self._lock:
            if self._server is not None:
                self._server.unmount(self._base_url)
            self._closed = True

    def _must_be_open(self) -> None:
        if self._closed:
            raise EnvironmentFault("The EHR session is closed.", remedy="Open a new one; its ledger can still be read.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
