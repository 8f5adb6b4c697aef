"""Every fault of a package's chart, with file and line: not JSON, not R4, not sorted, not resolving."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tasks.errors import ChartError
from tasks.fhir.elements import check, reference_type, resource_types
from tasks.fhir.resources import Resource, parse_json, references
from tasks.places import Fault, Misread, at, nearest, shown, text
from tasks.structure import chart_type

#: A resource larger than this many bytes is no note that anybody reads: an agent is shown 10,000 characters a result,
#: and every copy, search and diff would carry it. The largest whole chart of the reference set has 31.5 MB.
LARGEST = 4_000_000
#: Faults told of one file before the rest is counted.
TOLD = 20

_RELATIVE = re.compile(r"^([A-Z][A-Za-z]{1,63}/[A-Za-z0-9.-]{1,64})(?:/_history/[A-Za-z0-9.-]{1,64})?$", re.ASCII)
_ABSOLUTE = re.compile(r"^https?://", re.IGNORECASE)


class ChartCheck(NamedTuple):
    """What a chart holds. `whole` is False where a line could not be read: then what is missing may stand in it."""

    resources: dict[str, Resource]
    places: dict[str, str]
    faults: list[Fault]
    whole: bool


def check_chart(files: Mapping[str, bytes]) -> ChartCheck:
    """The chart of a package ({path: bytes}) with every fault of its lines and references."""
    resources: dict[str, Resource] = {}
    places: dict[str, str] = {}
    found: list[Fault] = []
    whole = True
    for path in sorted(files):
        kind = chart_type(path)
        if kind is None:
            continue
        if kind not in resource_types():
            found.append(Fault(path, f"{shown(kind)} is no R4 resource type.{nearest(kind, resource_types())}"))
            whole = False
            continue
        try:
            source = text(files[path], path)
        except Misread as error:
            found += error.faults
            whole = False
            continue
        faults: list[Fault] = []
        last = ""
        for number, line in enumerate(source.removesuffix("\n").split("\n"), start=1):
            place = at(path, number)
            try:
                resource = _resource(line, kind, place)
            except Misread as error:
                faults += error.faults
                whole = False
                continue
            if resource.ref in resources:
                faults.append(Fault(place, f"{resource.ref} stands twice, first in {places[resource.ref]}; keep one"))
                continue
            if resource.id < last:
                faults.append(Fault(place, f"{resource.ref} is out of order; sort the file's lines by id"))
            last = max(last, resource.id)
            resources[resource.ref] = resource
            places[resource.ref] = place
            faults += [
                Fault(place, f"{resource.ref} is not valid R4: {issue.path}: {issue.message}")
                for issue in check(resource.body)
            ]
        found += _few(faults, path)
    if whole:
        found += _references(resources, places)
    return ChartCheck(resources, places, found, whole)


def _few(faults: list[Fault], path: str) -> list[Fault]:
    if len(faults) <= TOLD:
        return faults
    return [*faults[:TOLD], Fault(path, f"{len(faults) - TOLD} more faults in this file")]


def _resource(line: str, kind: str, place: str) -> Resource:
    if not line.strip():
        raise Misread(Fault(place, "the line is blank; remove it"))
    if len(line) > LARGEST:
        raise Misread(
            Fault(place, f"the resource has {len(line):,} characters; {LARGEST:,} are the most. Shorten or split it")
        )
    try:
        resource = Resource.parse(line)
    except ChartError as error:
        raise Misread(Fault(place, error.what.rstrip("."))) from None
    if resource.type != kind:
        raise Misread(
            Fault(place, f"a {shown(resource.type)} in the file of {kind}; move it to {resource.type}.ndjson")
        )
    return resource


def _references(resources: Mapping[str, Resource], places: Mapping[str, str]) -> Iterator[Fault]:
    by_file: dict[str, list[Fault]] = {}
    for ref, resource in resources.items():
        for path, target in references(resource.body):
            if said := _reference_fault(target, resources):
                file = places[ref].rsplit(":", 1)[0]
                by_file.setdefault(file, []).append(Fault(places[ref], f"{ref}: {path}: {said}"))
    for file, faults in by_file.items():
        yield from _few(faults, file)


def _reference_fault(target: str, resources: Mapping[str, Resource]) -> str | None:
    """Why a literal leads nowhere. Its form, and what is contained, are the element table's business."""
    if _ABSOLUTE.match(target) or target.startswith("#"):
        return None
    if ":" in target:
        return "leads out of the chart; write Type/id of a resource that is in it"
    relative = _RELATIVE.match(target)
    if relative is None or reference_type(target) is None or relative[1] in resources:
        return None
    return f"leads to {relative[1]}, which is not in the chart"


def check_example(data: bytes, path: str) -> list[Fault]:
    """The faults of a must-match or must-not-match order: one FHIR resource of an order's type, valid R4."""
    try:
        body = parse_json(data)
    except ChartError as error:
        return [Fault(path, error.what.rstrip("."))]
    orders = ("MedicationRequest", "ServiceRequest", "Appointment", "Communication")
    kind = body.get("resourceType") if isinstance(body, dict) else None
    if kind not in orders:
        return [Fault(path, f"not an order; write one FHIR resource of type {', '.join(orders)}")]
    return [Fault(path, f"not valid R4: {issue.path}: {issue.message}") for issue in check(body)]
