"""`_elements`: a resource cut down to what was asked for, and tagged as such."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tasks.fhir.resources import Resource

#: The tag that FHIR puts on an incomplete resource.
SUBSETTED = {
    "system": "http://terminology.hl7.org/CodeSystem/v3-ObservationValue",
    "code": "SUBSETTED",
    "display": "Resource encoded in summary mode",
}


def trimmed(resource: Resource, elements: Collection[str]) -> Resource:
    """The resource with its id, its meta tagged SUBSETTED, and the top-level elements named; values as written."""
    meta = resource.body.get("meta")
    tagged: dict[str, Any] = dict(meta) if isinstance(meta, dict) else {}
    tags = tagged.get("tag")
    tagged["tag"] = [*(tags if isinstance(tags, list) else []), SUBSETTED]
    body: dict[str, Any] = {"resourceType": resource.type, "id": resource.id, "meta": tagged}
    wanted = {name.split(".", 1)[0] for name in elements}
    for key, value in resource.body.items():
        if key not in body and key.removeprefix("_") in wanted:
            body[key] = value
    return Resource.from_body(body)
