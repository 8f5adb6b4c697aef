"""The problem list, as listed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo

from review_ui.chartview.elements import When, codings, concept, time_of, when
from tasks.fhir.resources import Resource


@dataclass(frozen=True)
class Problem:
    """One entry of the list. `active` follows clinicalStatus alone: what a note says is not in here."""

    ref: str
    words: str
    active: bool
    status: str
    onset: When | None
    ended: When | None


def problems(conditions: Iterable[Resource], *, now: datetime, zone: tzinfo) -> list[Problem]:
    """The conditions recorded at or before the clock: active ones first, newest onset first."""
    found = []
    for resource in conditions:
        body = resource.body
        verification = {code for _, code, _ in codings(body.get("verificationStatus"))}
        if "entered-in-error" in verification:
            continue
        onset = time_of(body, zone)
        if onset and onset.start > now:
            continue
        status = next((code for _, code, _ in codings(body.get("clinicalStatus"))), "")
        ended = when(body.get("abatementDateTime"), zone)
        found.append(
            Problem(
                ref=resource.ref,
                words=concept(body.get("code")) or "no name",
                active=status in {"active", "recurrence", "relapse"} or (not status and ended is None),
                status="refuted" if "refuted" in verification else status or "status not stated",
                onset=onset,
                ended=ended,
            )
        )
    return sorted(
        found, key=lambda one: (not one.active, -(one.onset.start.timestamp()) if one.onset else 0.0, one.ref)
    )
