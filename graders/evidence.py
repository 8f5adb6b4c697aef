"""What a trial really did, as graders and checkpoint functions read it.

What the agent created is known from the session's ledger, never from a date that the agent wrote. Reading is in
process: the chart and the ledger are searched here, so no server can be down and read as "no orders found".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from graders.shown import ShownEntry, shown_entries
from tasks.fhir.chart import Chart, Overlay, Page, Records
from tasks.fhir.resources import Resource
from tasks.trials import CallCite, QuoteCite, ResourceCite, ToolCall, Write

if TYPE_CHECKING:
    from tasks.package import Task
    from tasks.stored import StoredTrial

#: Where a resource names the patient whom it is about.
_PATIENT_ELEMENTS = ("subject", "patient")


@dataclass(frozen=True)
class Evidence:
    """One trial's evidence.

    `chart`: the record as the agent found it. `created`: the ledger, in the order of writing. `calls`: every tool call
    with its full result and how much of it was shown. `files`: what stands in the trial's workspace, path -> text.
    `missing`: why a part of the evidence could not be read, "" where all of it was; then nothing is graded by it.
    `agent`: whose trial it is, so that no model judges its own work; "" where that is not known.
    """

    task: Task
    chart: Records
    created: tuple[Write, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    missing: str = ""
    agent: str = ""

    @classmethod
    def from_trial(cls, task: Task, trial: StoredTrial) -> Evidence:
        """The evidence of a stored trial: its ledger, trajectory and workspace, over the task's chart.

        A record with damaged lines gives evidence that cannot be graded, never evidence with something left out.
        """
        damaged = [fault for fault in trial.damage() if "verdicts.jsonl" not in fault.place]
        return cls(
            task=task,
            chart=task.chart,
            created=tuple(trial.writes()),
            calls=tuple(trial.calls()),
            files=trial.files(),
            missing=f"the stored record is damaged ({len(damaged)} lines)" if damaged else "",
            agent=trial.key.agent,
        )

    # ---- who and when -------------------------------------------------------------------------------------------

    @property
    def patient(self) -> str:
        """The reference of the task's patient, "" in a draft without context."""
        return self.task.meta.context.patient if self.task.meta.context else ""

    @property
    def now(self) -> datetime | None:
        """The simulated clock, None in a draft without context."""
        return self.task.meta.context.now if self.task.meta.context else None

    # ---- what was written into the record -----------------------------------------------------------------------

    @cached_property
    def written(self) -> tuple[Resource, ...]:
        """The agent's resources in their last version, in the order in which each was first written."""
        last: dict[str, Resource] = {}
        for write in self.created:
            last[write.reference] = Resource.parse(write.resource, where=write.reference)
        return tuple(last.values())

    @cached_property
    def written_refs(self) -> frozenset[str]:
        """The references of everything that the agent wrote."""
        return frozenset(write.reference for write in self.created)

    def orders(self, type: str | None = None, *, any_patient: bool = False) -> tuple[Resource, ...]:
        """The agent's resources of this type about the task's patient; of every type where none is given.

        What was written about another patient is never an order for this one; see `misdirected`.
        """
        return tuple(
            resource
            for resource in self.written
            if (type is None or resource.type == type) and (any_patient or self.is_about_patient(resource))
        )

    @cached_property
    def misdirected(self) -> tuple[Resource, ...]:
        """What the agent wrote about somebody else than the task's patient: a wrong-patient event each."""
        return tuple(resource for resource in self.written if patients_of(resource.body) - {self.patient})

    def is_about_patient(self, resource: Resource) -> bool:
        """Whether the resource is about the task's patient, and about no other."""
        people = patients_of(resource.body)
        return people == {self.patient}

    # ---- the record, searched in process ------------------------------------------------------------------------

    @cached_property
    def records(self) -> Records:
        """The chart together with what the agent wrote, as the record stood at the end."""
        if not isinstance(self.chart, Chart):
            return self.chart
        overlay = Overlay(self.chart)
        for resource in self.written:
            overlay.add(resource)
        return overlay

    def search(self, type: str, *params: tuple[str, str]) -> tuple[Resource, ...]:
        """Every resource of the end state that the FHIR search finds, all pages. SearchError where it is not valid."""
        return tuple(_every_row(self.records, type, params))

    def search_chart(self, type: str, *params: tuple[str, str]) -> tuple[Resource, ...]:
        """As `search`, over the record as the agent found it."""
        return tuple(_every_row(self.chart, type, params))

    def get(self, ref: str) -> Resource | None:
        """The resource of the end state with this reference."""
        return self.records.get(ref)

    # ---- what was said ------------------------------------------------------------------------------------------

    def text(self, path: str) -> str | None:
        """A workspace file's text by the path as the instruction gives it (`/workspace/output/x`, `output/x`)."""
        wanted = workspace_path(path)
        for name, text in self.files.items():
            if workspace_path(name) == wanted:
                return text
        return None

    @property
    def notes(self) -> str:
        """The text of every file that the agent left, one after the other."""
        return "\n\n".join(self.files.values())

    @cached_property
    def messages(self) -> tuple[tuple[Resource, str], ...]:
        """(Communication, its text) for every message about the task's patient."""
        found = []
        for resource in self.orders("Communication"):
            parts = resource.body.get("payload") or []
            found.append((resource, "\n".join(str(part.get("contentString", "")) for part in parts)))
        return tuple(found)

    def quote(self, pattern: str, *, flags: int = re.IGNORECASE) -> QuoteCite | None:
        """The first place in a file or message where the pattern matches, as a citation."""
        for name, text in self.files.items():
            if match := re.search(pattern, text, flags):
                return QuoteCite(file=name, text=match.group(0))
        for resource, text in self.messages:
            if match := re.search(pattern, text, flags):
                return QuoteCite(file=resource.ref, text=match.group(0))
        return None

    # ---- what was seen ------------------------------------------------------------------------------------------

    @cached_property
    def shown(self) -> tuple[ShownEntry, ...]:
        """Every resource of the record that the model was shown, whole or in part, in the order of the calls."""
        return tuple(shown_entries(self.calls, written=self.written_refs))

    def sightings(self, ref: str) -> tuple[ShownEntry, ...]:
        """The showings of one resource."""
        return self._shown_by_ref.get(ref, ())

    @cached_property
    def _shown_by_ref(self) -> dict[str, tuple[ShownEntry, ...]]:
        by_ref: dict[str, tuple[ShownEntry, ...]] = {}
        for entry in self.shown:
            by_ref[entry.ref] = (*by_ref.get(entry.ref, ()), entry)
        return by_ref

    def seen(self, ref: str) -> CallCite | None:
        """The first call that showed the resource whole."""
        return next((CallCite(n=entry.call) for entry in self.sightings(ref) if entry.whole), None)

    def seen_text(self, quote: str, ref: str | None = None) -> CallCite | None:
        """The first call that showed these words: in the named resource, or anywhere in the record."""
        for entry in self.shown if ref is None else self.sightings(ref):
            if entry.holds(quote):
                return CallCite(n=entry.call)
        return None

    def calls_of(self, *tools: str) -> tuple[ToolCall, ...]:
        """The calls of these tools, failed ones too."""
        return tuple(call for call in self.calls if call.tool in tools)

    # ---- whether it can be graded at all ------------------------------------------------------------------------

    @cached_property
    def faults(self) -> tuple[str, ...]:
        """Why this evidence cannot be graded: unreadable parts, a call whose write is not in the ledger."""
        found = [self.missing] if self.missing else []
        sequences = [write.sequence for write in self.created]
        known = set(sequences)
        if sequences != list(range(1, len(sequences) + 1)):
            found.append("the ledger has a gap or a repeated sequence number")
        for call in self.calls:
            if lost := sorted(set(call.writes) - known):
                found.append(f"call {call.n} made write {lost[0]}, which is not in the ledger")
        return tuple(found)

    # ---- citations ----------------------------------------------------------------------------------------------

    @staticmethod
    def cite(resource: Resource, path: str = "", value: str = "") -> ResourceCite:
        """A resource, and where in it, as a citation."""
        return ResourceCite(ref=resource.ref, path=path, value=value)


def _every_row(records: Records, type: str, params: Sequence[tuple[str, str]]) -> Iterator[Resource]:
    page: Page = records.search(type, params)
    yield from page.rows
    while page.next is not None:
        page = records.search(type, params, page_token=page.next)
        yield from page.rows


def patients_of(body: Mapping[str, Any]) -> set[str]:
    """The references of the patients that a resource says it is about; of a Patient, its own."""
    if body.get("resourceType") == "Patient":
        return {f"Patient/{body.get('id')}"}
    return {_relative(ref) for ref in _patient_references(body)}


def _patient_references(body: Mapping[str, Any]) -> Iterator[str]:
    for element in _PATIENT_ELEMENTS:
        value = body.get(element)
        if isinstance(value, dict) and isinstance(value.get("reference"), str):
            yield value["reference"]
    participants: Sequence[Any] = body.get("participant") or []
    for participant in participants:
        actor = participant.get("actor") if isinstance(participant, dict) else None
        reference = actor.get("reference") if isinstance(actor, dict) else None
        if isinstance(reference, str) and "Patient/" in reference:
            yield reference


def _relative(reference: str) -> str:
    """`Type/id` of a reference, absolute or with a version."""
    match = re.search(r"([A-Z][A-Za-z]+/[A-Za-z0-9.-]{1,64})(?:/_history/\S+)?$", reference)
    return match.group(1) if match else reference


def workspace_path(path: str) -> str:
    """A file's path from the workspace's output folder: `/workspace/output/x`, `output/x` and `x` are one file."""
    parts = [part for part in path.replace("\\", "/").split("/") if part not in ("", ".")]
    if parts[:1] == ["workspace"]:
        parts = parts[1:]
    if parts[:1] == ["output"]:
        parts = parts[1:]
    return "/".join(parts)
