"""What a create must be before it is stored: valid R4, of the right type, about a patient who exists.

The same check stands before every backend: a server such as HAPI would drop an unknown element and answer 201.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from runtime.ehr.outcome import refusal, refusals
from tasks.errors import ChartError
from tasks.fhir.chart import Records
from tasks.fhir.elements import Issue, check
from tasks.fhir.intake import too_deep
from tasks.fhir.resources import Resource, dump_json, parse_json, references

_RELATIVE = re.compile(r"([A-Z][A-Za-z]+)/([A-Za-z0-9\-.]{1,64})(?:/_history/[A-Za-z0-9\-.]{1,64})?", re.ASCII)
#: The elements that say whose record a resource is part of.
_WHOSE = ("subject", "patient", "beneficiary", "individual")


def parsed(body: bytes | str | Mapping[str, Any]) -> dict[str, Any]:
    """The body as our own parse of JSON text, so that in-process and HTTP creates store the same bytes.

    Raises EhrError 400 for what is not one JSON object.
    """
    try:
        value = parse_json(dump_json(dict(body)) if isinstance(body, Mapping) else body)
    except ChartError as fault:
        raise refusal(400, "structure", f"The body is {fault.what}") from None
    except (TypeError, ValueError, RecursionError) as fault:
        raise refusal(400, "structure", f"The body cannot be written as JSON: {fault}.") from None
    if not isinstance(value, dict):
        raise refusal(400, "structure", "The body is not a JSON object.")
    if too_deep(value):
        raise refusal(400, "structure", "The body is nested too deeply to be FHIR.")
    return value


def checked(body: dict[str, Any], records: Records, *, type: str | None, base_url: str) -> dict[str, Any]:
    """The body ready to be stored (this server's own absolute references made relative), or EhrError naming elements.

    `type` is the one of the URL, None where there is none. 400: not valid R4, or a reference to a type that its
    element does not allow. 422: a reference that leads to no patient of this record.
    """
    kind = body.get("resourceType")
    if not isinstance(kind, str):
        raise refusal(400, "required", "The body has no resourceType.", path="resourceType")
    if type is not None and kind != type:
        raise refusal(
            400,
            "invariant",
            f"A {kind} was sent to the address of {type}; the two must agree.",
            path="resourceType",
        )
    body = {key: value for key, value in body.items() if key != "id"}
    if base_url:
        body = _made_relative(body, base_url + "/")
    issues = list(check(body))
    if issues:
        raise refusals(400, issues)
    dangling = [*_unnamed(body)]
    dangling += [issue for path, target in references(body) if (issue := _astray(path, target, records))]
    if dangling:
        raise refusals(422, dangling)
    return body


def stored(body: dict[str, Any], *, id: str, at: datetime) -> Resource:
    """The resource as it is kept: id and meta.versionId, meta.lastUpdated set by the server, all else as sent."""
    sent = body.get("meta")
    meta = {"versionId": "1", "lastUpdated": _instant(at)}
    meta |= {key: value for key, value in (sent or {}).items() if key not in meta}
    rest = {key: value for key, value in body.items() if key not in ("resourceType", "id", "meta")}
    return Resource.parse(dump_json({"resourceType": body["resourceType"], "id": id, "meta": meta, **rest}))


def stamp(now: datetime | None, sequence: int) -> datetime:
    """When the n-th write happened: `now` + n seconds, or the wall clock where the session has no simulated now."""
    return datetime.now(UTC) if now is None else now + timedelta(seconds=sequence)


def _instant(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _made_relative(node: Any, prefix: str) -> Any:
    if isinstance(node, dict):
        return {
            key: value.removeprefix(prefix)
            if key == "reference" and isinstance(value, str)
            else _made_relative(value, prefix)
            for key, value in node.items()
        }
    if isinstance(node, list):
        return [_made_relative(item, prefix) for item in node]
    return node


def _unnamed(body: dict[str, Any]) -> Iterator[Issue]:
    """The elements that should say whose record this is and name nobody: a display or an identifier is no patient."""
    for key in _WHOSE:
        value = body.get(key)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict) and "reference" not in item:
                path = f"{body['resourceType']}.{key}"
                yield Issue(path, "not-found", "write a reference of this record, such as Patient/id")


def _astray(path: str, target: str, records: Records) -> Issue | None:
    """Why this reference may not be stored, or None.

    A reference to a patient, and the element that says whose record this is, must lead somewhere. Others may dangle,
    as they do on a real server, and are searchable all the same.
    """
    if target.startswith("#"):
        return None
    whose = path.count(".") == 1 and path.rpartition(".")[2].partition("[")[0] in _WHOSE
    relative = _RELATIVE.fullmatch(target)
    if relative is None:
        return Issue(path, "not-found", "write a reference of this record, such as Patient/id") if whose else None
    kind, ident = relative.groups()
    if (whose or kind == "Patient") and records.get(f"{kind}/{ident}") is None:
        return Issue(path, "not-found", f"the reference leads to a {kind} that this record does not have")
    return None
