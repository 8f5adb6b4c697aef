"""FHIR's REST interface over one session: a request in, a response out.

This is the only place that makes an answer. The HTTP server is a shell around `answer`, and so is Session.request;
that is why both give the same bytes. Rows are served as the text they are stored as.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Protocol
from urllib.parse import parse_qsl, quote, unquote, urlencode

from runtime.ehr.capability import WITHOUT_ADDRESS, capability_statement
from runtime.ehr.creation import parsed
from runtime.ehr.outcome import operation_outcome, refusal
from runtime.ehr.session import EhrError, Response
from tasks.fhir.chart import Page, Records
from tasks.fhir.elements import Issue, resource_types
from tasks.fhir.resources import Resource, dump_json

#: The largest body taken. The largest note seen in a record is some hundred kilobytes.
MAX_BODY = 16 * 1024 * 1024
#: Result pages that can still be followed, a session. A page asked for after that many others answers 410.
MAX_PAGES = 1000
FHIR_JSON = "application/fhir+json;charset=UTF-8"
_FORM = "application/x-www-form-urlencoded"
_JSON_TYPES = ("application/fhir+json", "application/json", "application/json+fhir", "text/json")
#: Parameters of the representation: taken wherever a resource is asked for.
_REPRESENTATION = ("_format", "_pretty")
#: Parameters of which the first one holds.
_ONCE = ("_count", "_offset", "_elements", "_sort")
_ID = re.compile(r"[A-Za-z0-9\-.]{1,64}", re.ASCII)


@dataclass(frozen=True)
class Request:
    """One HTTP request below a session's base URL.

    `path` and `query` are as sent, percent-encoding and all; header names are lower case.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Pages:
    """The pages that this session's links lead to, by the token in the link: the type, and the link of the page before.

    The latest MAX_PAGES of them; a link that is older has expired.
    """

    def __init__(self) -> None:
        self._held: OrderedDict[str, tuple[str, str]] = OrderedDict()

    def keep(self, token: str, type: str, previous: str) -> None:
        self._held[token] = (type, previous)
        self._held.move_to_end(token)
        if len(self._held) > MAX_PAGES:
            self._held.popitem(last=False)

    def get(self, token: str) -> tuple[str, str] | None:
        return self._held.get(token)


class Served(Protocol):
    """What `answer` needs of a session."""

    @property
    def base_url(self) -> str: ...
    @property
    def records(self) -> Records: ...
    @property
    def pages(self) -> Pages: ...
    def find(self, type: str, params: Sequence[tuple[str, str]], token: str | None) -> Page: ...
    def store(self, body: Mapping[str, object], *, type: str) -> Resource: ...


def answer(session: Served, request: Request) -> Response:
    """The response to a request. Every refusal is a response too: nothing is raised for what a client sent."""
    method = "GET" if request.method == "HEAD" else request.method
    try:
        if len(request.body) > MAX_BODY:
            response = too_large()
        else:
            _acceptable(request)
            _unpacked(request)
            response = _route(session, request, method)
    except _WrongMethod as refused:
        response = _json(refused.status, refused.outcome, ("Allow", refused.allow))
    except EhrError as refused:
        response = _json(refused.status, refused.outcome)
    if request.method == "HEAD":
        length = (("Content-Length", str(len(response.body))),) if response.body else ()
        return Response(response.status, response.headers + length, b"")
    return response


def too_large() -> Response:
    """413, for a body over MAX_BODY."""
    return failure(413, "too-long", f"The body is larger than {MAX_BODY // (1024 * 1024)} MB.")


def failure(status: int, code: str, message: str) -> Response:
    """A response with one issue."""
    return _json(status, operation_outcome([Issue("", code, message)]))


def _route(session: Served, request: Request, method: str) -> Response:
    parts = [unquote(part) for part in request.path.split("/") if part]
    query = _pairs(request.query)
    match parts:
        case []:
            return _root(session, method, query)
        case ["metadata"]:
            _allowed(method, "GET")
            _nothing_but(query, (*_REPRESENTATION, "mode"), "metadata")
            return _json(200, capability_statement(session.base_url))
        case [type, *rest]:
            if type not in resource_types() or type in WITHOUT_ADDRESS:
                if type.startswith("$") or type == "_history":
                    raise refusal(404, "not-supported", f"{type} is not offered by this server; see metadata.")
                raise refusal(
                    404, "not-supported", f"{type[:64]!r} is not a resource type that this server has addresses for."
                )
            return _of_type(session, request, method, type, rest, query)
    raise AssertionError(parts)


def _of_type(
    session: Served, request: Request, method: str, type: str, rest: list[str], query: list[tuple[str, str]]
) -> Response:
    match rest:
        case []:
            _allowed(method, "GET", "POST")
            if method == "POST":
                return _create(session, request, type, query)
            return _search(session, type, query)
        case ["_search"]:
            _allowed(method, "GET", "POST")
            return _search(session, type, query + (_form(request) if method == "POST" else []))
        case [ident]:
            if ident.startswith(("$", "_")):
                raise refusal(404, "not-supported", f"{type}/{ident} is not offered by this server; see metadata.")
            _allowed(method, "GET")
            _nothing_but(query, _REPRESENTATION, f"{type}/id")
            return _read(session, request, type, ident, None)
        case [ident, "_history", version]:
            _allowed(method, "GET")
            _nothing_but(query, _REPRESENTATION, f"{type}/id/_history/version")
            return _read(session, request, type, ident, version)
    raise refusal(
        404, "not-supported", "There is nothing at this address: compartments, operations and history are not offered."
    )


def _root(session: Served, method: str, query: list[tuple[str, str]]) -> Response:
    _allowed(method, "GET")
    named = dict(query)
    if "_getpages" not in named:
        raise refusal(
            400,
            "processing",
            "This is the base URL of the server. Add a resource type, as in Patient?_id=..., or /metadata.",
        )
    _nothing_but(query, (*_REPRESENTATION, "_getpages", "_bundletype"), "a page link")
    token = named["_getpages"]
    held = session.pages.get(token)
    if held is None:
        raise expired()
    type, previous = held
    page = session.find(type, (), token)
    return _page(session, type, page, f"{session.base_url}?_getpages={token}&_bundletype=searchset", previous)


def expired() -> EhrError:
    """410, for a page link that leads to nothing (any more)."""
    return refusal(410, "processing", "This page link does not exist or has expired; send the search again.")


def _search(session: Served, type: str, params: list[tuple[str, str]]) -> Response:
    page = session.find(type, params, None)
    if _count_alone(page.applied):
        return _json(200, {"resourceType": "Bundle", "type": "searchset", "total": page.total})
    query = urlencode(_self_query(page.applied), quote_via=quote, safe="/:,")
    return _page(session, type, page, f"{session.base_url}/{type}{'?' if query else ''}{query}", "")


def _page(session: Served, type: str, page: Page, self_link: str, previous: str) -> Response:
    base = session.base_url
    links = [("self", self_link)]
    if page.next is not None:
        session.pages.keep(page.next, type, self_link)
        links.append(("next", f"{base}?_getpages={page.next}&_bundletype=searchset"))
    if previous:
        links.append(("previous", previous))
    return Response(200, (("Content-Type", FHIR_JSON),), _bundle(base, page, links).encode())


def _self_query(applied: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """What shaped the answer. Of the parameters that count once the first did; a summary other than count did not."""
    kept: dict[str, tuple[str, str]] = {}
    for number, (name, value) in enumerate(applied):
        if name != "_summary":
            kept.setdefault(name if name in _ONCE else f"{number}", (name, value))
    return list(kept.values())


def _bundle(base: str, page: Page, links: list[tuple[str, str]]) -> str:
    """The searchset as text: rows are joined as they are stored, never parsed and written again."""
    head = dump_json(
        {
            "resourceType": "Bundle",
            "type": "searchset",
            "total": page.total,
            "link": [{"relation": relation, "url": url} for relation, url in links],
        }
    )
    entries = [
        f'{{"fullUrl":"{base}/{row.type}/{row.id}","resource":{row.raw},"search":{{"mode":"{mode}"}}}}'
        for mode, rows in (("match", page.rows), ("include", page.included))
        for row in rows
    ]
    return f'{head[:-1]},"entry":[{",".join(entries)}]}}' if entries else head


def _count_alone(params: Sequence[tuple[str, str]]) -> bool:
    named: dict[str, str] = {}
    for key, value in params:
        named.setdefault(key, value)
    return named.get("_summary") == "count" or named.get("_count", "").strip() == "0"


def _read(session: Served, request: Request, type: str, ident: str, version: str | None) -> Response:
    found = session.records.get(f"{type}/{ident}") if _ID.fullmatch(ident) else None
    if found is None:
        raise refusal(404, "not-found", f"There is no {type} with this id.")
    current, updated = _version(found)
    if version is not None and version != current:
        raise refusal(404, "not-found", f"There is no version {version[:64]} of this {type}.")
    headers = (("Content-Type", FHIR_JSON), ("ETag", f'W/"{current}"'), *_last_modified(updated))
    wanted = {tag.strip() for tag in request.headers.get("if-none-match", "").split(",")}
    if wanted & {f'W/"{current}"', f'"{current}"', "*"}:
        return Response(304, headers[1:], b"")
    return Response(200, headers, found.raw.encode())


def _create(session: Served, request: Request, type: str, query: list[tuple[str, str]]) -> Response:
    _nothing_but(query, _REPRESENTATION, f"a create of {type}")
    sent = _content_type(request)
    if sent and sent not in _JSON_TYPES:
        raise refusal(415, "not-supported", "Send the resource as application/fhir+json.")
    if "if-none-exist" in request.headers:
        raise refusal(412, "not-supported", "Conditional creates are not offered by this server; search, then create.")
    made = session.store(parsed(request.body), type=type)
    version, updated = _version(made)
    headers = (
        ("Content-Type", FHIR_JSON),
        ("Location", f"{session.base_url}/{made.ref}/_history/{version}"),
        ("ETag", f'W/"{version}"'),
        *_last_modified(updated),
    )
    prefer = {part.strip() for part in request.headers.get("prefer", "").replace(";", ",").split(",")}
    if "return=minimal" in prefer:
        return Response(201, headers[1:], b"")
    if "return=OperationOutcome" in prefer:
        said = operation_outcome([Issue("", "informational", f"Created {made.ref}.")], severity="information")
        return Response(201, headers, dump_json(said).encode())
    return Response(201, headers, made.raw.encode())


def _form(request: Request) -> list[tuple[str, str]]:
    sent = _content_type(request)
    if sent and sent != _FORM:
        raise refusal(415, "not-supported", f"Send the parameters of _search as {_FORM}.")
    try:
        return _pairs(request.body.decode("utf-8"))
    except UnicodeDecodeError:
        raise refusal(400, "structure", "The form is not UTF-8.") from None


def _pairs(query: str) -> list[tuple[str, str]]:
    if not query:
        return []
    try:
        return parse_qsl(query, keep_blank_values=True, encoding="utf-8", errors="strict")
    except UnicodeDecodeError:
        raise refusal(400, "value", "The query is not UTF-8 after percent-decoding.") from None
    except ValueError:
        raise refusal(400, "value", "The query cannot be read.") from None


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _acceptable(request: Request) -> None:
    """This server writes JSON. A client that takes nothing but XML is told so instead of being handed JSON."""
    asked = dict(_pairs(request.query)).get("_format", request.headers.get("accept", "")).lower()
    if ("xml" in asked or "turtle" in asked) and not any(
        word in asked for word in ("json", "*/*", "application/*", "text/html")
    ):
        raise refusal(406, "not-supported", "This server answers in application/fhir+json only.")


def _unpacked(request: Request) -> None:
    if request.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise refusal(415, "not-supported", "Send the body as it is, without Content-Encoding.")


class _WrongMethod(EhrError):
    """405; `allow` is the header that HTTP asks for with it."""

    allow: str = ""


def _allowed(method: str, *methods: str) -> None:
    if method not in methods:
        allow = ", ".join(("HEAD", *methods) if "GET" in methods else methods)
        said = f"{method[:16]} is not offered at this address; only {allow}."
        fault = _WrongMethod(said, status=405, outcome=operation_outcome([Issue("", "not-supported", said)]))
        fault.allow = allow
        raise fault


def _nothing_but(query: list[tuple[str, str]], names: Sequence[str], where: str) -> None:
    other = sorted({key for key, _ in query} - set(names))
    if other:
        raise refusal(400, "not-supported", f"{other[0][:64]!r} is not a parameter of {where}.")


def _version(resource: Resource) -> tuple[str, str]:
    """(version, lastUpdated) of a resource; a chart's own resources may have neither and are then version 1."""
    meta = resource.body.get("meta") if '"meta"' in resource.raw else None
    if not isinstance(meta, dict):
        return "1", ""
    version = meta.get("versionId")
    return version if isinstance(version, str) and _ID.fullmatch(version) else "1", str(meta.get("lastUpdated", ""))


def _last_modified(updated: str) -> tuple[tuple[str, str], ...]:
    try:
        at = datetime.fromisoformat(updated)
        return (("Last-Modified", format_datetime(at.astimezone(UTC), usegmt=True)),) if at.tzinfo else ()
    except (ValueError, OverflowError):
        return ()


def _json(status: int, body: Mapping[str, object], *more: tuple[str, str]) -> Response:
    return Response(status, (("Content-Type", FHIR_JSON), *more), dump_json(dict(body)).encode())
