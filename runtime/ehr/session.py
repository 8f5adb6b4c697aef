"""What an EHR session is, on every backend, and how one is opened.

A session is one agent's private, writable view of one chart. It keeps a ledger of every write; what an agent did is
known from the ledger, never from a date that the agent wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from tasks.errors import UsageError, WorkbenchError
from tasks.fhir.chart import Chart, Page, Records
from tasks.fhir.resources import Resource
from tasks.trials import Write


class EhrError(WorkbenchError):
    """The server refused a request: a 4xx `status` with an OperationOutcome in `outcome`.

    A server that cannot be reached, or that answers 5xx, is an EnvironmentFault instead.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        remedy: str = "",
        status: int = 400,
        outcome: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.status = status
        self.outcome = dict(outcome or {})

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.what, self.where, self.remedy, self.status, self.outcome))


def _rebuild(what: str, where: str, remedy: str, status: int, outcome: Mapping[str, Any]) -> EhrError:
    return EhrError(what, where=where, remedy=remedy, status=status, outcome=outcome)


@dataclass(frozen=True)
class Response:
    """What a FHIR server answered. `headers` are as sent, names in the case of the standard."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """The first header of that name, whatever its case."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class Session(Protocol):
    """One agent's view of one chart, as a FHIR R4 server and as Python calls.

    Use it as a context manager: leaving the block closes it. After that its `ledger` and `records` can still be read,
    every request is refused, and its base URL answers 404.
    """

    @property
    def base_url(self) -> str:
        """Where any FHIR client on this machine reaches the session, without a trailing slash."""

    @property
    def ledger(self) -> tuple[Write, ...]:
        """Every write of this session, in order."""

    @property
    def records(self) -> Records:
        """The chart with this session's writes, for graders and pages."""

    def search(self, type: str, params: Sequence[tuple[str, str]], page_token: str | None = None) -> Page:
        """One page of a search; `page_token` is the `next` of the page before. Raises EhrError (400, 404, 410)."""

    def read(self, ref: str) -> Resource:
        """The resource `Type/id`. Raises EhrError (404)."""

    def create(self, body: Mapping[str, Any], *, call: int | None = None) -> Resource:
        """Store a new resource and give it as stored; `call` is the tool call that made it (1 = the trial's first).

        Raises EhrError (400 or 422), naming the element, for what is not valid R4 or leads to no known patient.
        """

    def request(
        self,
        method: str,
        path_and_query: str,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """One FHIR request, relative to the base URL or a link of an earlier answer; the same bytes as over HTTP."""

    def close(self) -> None:
        """End the session. Closing twice is fine."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None: ...


#: Opens a session on a chart; the second argument is the session's simulated now, None for the wall clock.
Backend = Callable[[Chart, datetime | None], Session]


def _embedded(chart: Chart, now: datetime | None) -> Session:
    from runtime.ehr.embedded import EmbeddedSession

    return EmbeddedSession(chart, now=now)


@runtime_checkable
class Restorable(Protocol):
    """A session that can take over what an earlier one wrote, for a trial that is resumed or replayed."""

    def restore(self, writes: Sequence[Write]) -> None:
        """Put an earlier ledger in place, ids, versions and bytes as they were. Raises UsageError after a write."""

    def name_next(self, ids: Sequence[str]) -> None:
        """Give these ids to the next creates, in order."""


#: Backends whose sessions are Restorable.
RESTORING = frozenset({"embedded"})

#: Backend by name. `hapi` (a container a session) and `url` (any R4 base URL) join here.
BACKENDS: dict[str, Backend] = {"embedded": _embedded}


def open(chart: Chart, *, backend: str = "embedded", now: datetime | None = None) -> Session:
    """A new session on `chart`. With `now`, the n-th write is stamped `now` + n seconds, else with the wall clock.

    Raises UsageError for a backend that does not exist or a `now` without a time zone.
    """
    maker = BACKENDS.get(backend)
    if maker is None:
        raise UsageError(
            f"There is no EHR backend named {backend!r}.", remedy=f"Choose one of: {', '.join(sorted(BACKENDS))}."
        )
    if now is not None and now.tzinfo is None:
        raise UsageError("The session's now has no time zone.", remedy="Give an aware datetime.")
    return maker(chart, now)
