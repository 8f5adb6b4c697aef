"""The CapabilityStatement: what this server does, and nothing that it does not."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tasks.fhir.elements import resource_types
from tasks.fhir.parameters import codes, parameter

#: Types that only exist inside a request or an answer, and have no address of their own.
WITHOUT_ADDRESS = frozenset({"Parameters", "OperationOutcome"})


def capability_statement(base_url: str) -> dict[str, Any]:
    """metadata of one session. Its date is the day on which this code last changed what it says."""
    return {
        "resourceType": "CapabilityStatement",
        "status": "active",
        "date": "2026-11-30",
        "kind": "instance",
        "software": {"name": "PhysicianBench Workbench, embedded EHR"},
        "implementation": {"description": "One agent's private view of one chart", "url": base_url},
        "fhirVersion": "4.0.1",
        "format": ["application/fhir+json", "json"],
        "rest": [{"mode": "server", "resource": _resources()}],
    }


@lru_cache(maxsize=1)
def _resources() -> list[dict[str, Any]]:
    return [_resource(type) for type in sorted(resource_types() - WITHOUT_ADDRESS)]


def _resource(type: str) -> dict[str, Any]:
    known = [found for code in codes(type) if (found := parameter(type, code)) is not None]
    includes = [f"{type}:{found.code}" for found in known if found.type == "reference"]
    return {
        "type": type,
        "interaction": [{"code": code} for code in ("read", "vread", "create", "search-type")],
        "versioning": "versioned",
        "readHistory": False,
        "updateCreate": False,
        "conditionalCreate": False,
        "conditionalRead": "not-match",
        **({"searchInclude": includes} if includes else {}),
        "searchParam": [{"name": found.code, "type": found.type} for found in known],
    }
