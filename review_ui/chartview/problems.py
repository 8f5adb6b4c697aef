"""The problem list, as listed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, tzinfo

from review_ui.chartview.elements import When, codings, concept, time_of
from tasks.fhir.resources import Resource

_DOUBT = {"differential": "differential diagnosis"}


@dataclass(frozen=True)
class Problem:
    """One entry of the list. `active` follows its clinical status, unless it was refuted: what a note says is not here.
    `doubt`: how sure it is, "" where it is confirmed or nothing is said."""

    ref: str
    words: str
    active: bool
    status: str
    onset: When | None
    doubt: str = ""


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
        over = any(key.startswith("abatement") for key in body)
        doubt = next((code for _, code, _ in codings(body.get("verificationStatus"))), "")
        refuted = "refuted" in verification
        found.append(
            Problem(
                ref=resource.ref,
                words=concept(body.get("code")) or "no name",
                active=not refuted and (status in {"active", "recurrence", "relapse"} or (not status and not over)),
                status="refuted" if refuted else status or "status not stated",
                onset=onset,
                doubt="" if doubt == "confirmed" or refuted else _DOUBT.get(doubt, doubt),
            )
        )
    return sorted(
        found, key=lambda one: (not one.active, -(one.onset.start.timestamp()) if one.onset else 0.0, one.ref)
    )
