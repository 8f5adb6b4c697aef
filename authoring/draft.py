"""A new task from one patient's record: their resources, and what those refer to, as a draft package.

A draft has an instruction to be written, the chart, and a task.toml that names the patient; checkpoints, reference
plans and the clock come later. It may hold one person's data only: another patient's resource is never taken along.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit

from tasks.errors import UsageError
from tasks.fhir.intake import as_chart_files, attachments, leads_to, read_records
from tasks.fhir.resources import Resource, references
from tasks.manifest import TASK_ID
from tasks.places import nearest
from tasks.taxonomy import SPECIALTIES, WORKFLOWS

#: The top-level elements that say whose resource it is.
_WHOSE = ("subject", "patient", "beneficiary", "individual", "candidate")
#: What a reference says that had neither a display nor an identifier when its target was left out.
_NOT_HERE = "not in this record"

_INSTRUCTION = """\
# {title}

Draft. Write here what the agent reads, and nothing of the answer: who asks, why now, what is to be decided, done and
written down.

- Patient: {patient}
- Practitioner: to be named
- Now: to be set
- Authority: to be set (orders, pends or recommends)
- Deliverable: to be named, below /workspace/output/
"""


@dataclass(frozen=True)
class Selection:
    """One patient's resources with what they refer to.

    `others` counts resources of the input that were left out, by reason; `unlinked` counts references that were
    reduced to their display, since the target is not in the record or is another patient's.
    """

    resources: tuple[Resource, ...]
    others: Counter[str]
    unlinked: Counter[str]


@dataclass(frozen=True)
class Draft:
    """A draft package as written to `folder`, and the counts of what went in and what did not."""

    folder: Path
    files: Mapping[str, bytes]
    taken: Counter[str]
    dropped: Counter[str]
    notes: Counter[str]
    others: Counter[str]
    unlinked: Counter[str]


def select(resources: Iterable[Resource], patient: str) -> Selection:
    """The resources of `Patient/id`, what they refer to through any number of steps, and what refers to them alone.

    Raises UsageError, listing some that are there, if the patient is not.
    """
    by_ref = {resource.ref: resource for resource in resources}
    if patient not in by_ref:
        there = [ref.partition("/")[2] for ref in by_ref if ref.startswith("Patient/")]
        more = f" and {len(there) - 10} more" if len(there) > 10 else ""
        some = f"Patients there: {', '.join(there[:10])}{more}." if there else ""
        raise UsageError("This record has no such patient.", where=patient, remedy=some or "It has no patient at all.")
    targets = {
        ref: [to for _, target in (*references(resource.body), *attachments(resource.body)) if (to := leads_to(target))]
        for ref, resource in by_ref.items()
    }
    mine = {ref for ref, resource in by_ref.items() if _belongs(resource, patient, targets[ref])}
    mine |= _about(mine, targets)
    taken = _with_targets(mine, targets, by_ref)
    unlinked: Counter[str] = Counter()
    kept = tuple(_unlinked(by_ref[ref], taken, unlinked) for ref in sorted(taken))
    others: Counter[str] = Counter()
    for ref in by_ref.keys() - taken:
        others[_why_not(ref, patient, targets[ref])] += 1
    return Selection(kept, others, unlinked)


def new_draft(
    chart: Path,
    patient: str,
    out: Path,
    *,
    title: str = "",
    specialty: str = "Internal Medicine",
    workflow: str = "Workup & Risk Stratification",
    data_class: str = "phi",
) -> Draft:
    """Write a draft package for one patient of `chart` to the new folder `out`, whose name becomes the task's id.

    `chart` is whatever `tasks.fhir.intake.read_records` reads; `patient` an id or `Patient/id`. The folder appears
    whole or not at all. data_class is phi until somebody who knows says otherwise.

    Raises UsageError for a patient who is not there, a folder that is, or a value outside its vocabulary; ChartError
    for a file that cannot be read.
    """
    out = out.parent.resolve() / out.name
    _refuse(out, specialty, workflow, data_class)
    patient = patient if patient.startswith("Patient/") else f"Patient/{patient}"
    intake = read_records(chart)
    selection = select(intake.resources, patient)
    title = " ".join(title.split()) or "Untitled draft"
    meta: dict[str, Any] = {
        "schema_version": 1,
        "id": out.name,
        "version": 1,
        "title": title,
        "specialty": specialty,
        "workflow": workflow,
        "data_class": data_class,
        "context": {"patient": patient},
        "provenance": {"source": "a patient record", "generator": "authoring new"},
    }
    files = {f"chart/{name}": data for name, data in as_chart_files(selection.resources).items()}
    files["task.toml"] = tomlkit.dumps(meta).encode()
    files["instruction.md"] = _INSTRUCTION.format(title=title, patient=patient).encode()
    _write_whole(out, files)
    taken = Counter(resource.type for resource in selection.resources)
    return Draft(out, files, taken, intake.dropped, intake.notes, selection.others, selection.unlinked)


def _refuse(out: Path, specialty: str, workflow: str, data_class: str) -> None:
    if os.path.lexists(out):
        raise UsageError("The folder for the draft exists already.", where=str(out), remedy="Name a new one.")
    if not re.fullmatch(TASK_ID, out.name):
        raise UsageError(
            "The folder's name becomes the task's id and cannot be one.",
            where=out.name,
            remedy="Use 3 to 64 small letters, digits and hyphens.",
        )
    for what, value, known in (
        ("specialty", specialty, tuple(SPECIALTIES)),
        ("workflow", workflow, WORKFLOWS),
        ("data class", data_class, ("open", "dua", "phi")),
    ):
        if value not in known:
            hint = nearest(value, known).strip() or f"They are: {', '.join(known)}."
            raise UsageError(f"There is no {what} {value!r}.", remedy=hint)


def _write_whole(out: Path, files: Mapping[str, bytes]) -> None:
    """Build the folder beside its place and rename it there, so that a draft is never half there."""
    making = out.parent / f".{out.name}.{secrets.token_hex(4)}"
    try:
        for name, data in files.items():
            path = making / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        making.rename(out)
    except OSError as fault:
        shutil.rmtree(making, ignore_errors=True)
        raise UsageError(f"The draft cannot be written: {fault.strerror}.", where=str(out)) from None
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise


def _belongs(resource: Resource, patient: str, targets: list[str]) -> bool:
    """Whether this is the patient's own: it names them, and the element that says whose it is names nobody else."""
    if resource.ref == patient:
        return True
    patients = {target for target in targets if target.startswith("Patient/")}
    if resource.type == "Patient" or patient not in patients:
        return False
    return patients == {patient} or _owners(resource) == {patient}


def _owners(resource: Resource) -> set[str]:
    found: set[str] = set()
    for name in _WHOSE:
        value = resource.body.get(name)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict) and isinstance(item.get("reference"), str):
                found.add(leads_to(item["reference"]) or item["reference"])
    return found


def _about(mine: set[str], targets: Mapping[str, list[str]]) -> set[str]:
    """Resources that name no patient but are about the patient's resources and nobody else's, such as Provenance."""
    found: set[str] = set()
    while True:
        more = {
            ref
            for ref, named in targets.items()
            if ref not in mine
            and ref not in found
            and not ref.startswith("Patient/")
            and not any(target.startswith("Patient/") for target in named)
            and any(target in mine or target in found for target in named)
            and not any(_anothers(target, mine, targets) for target in named)
        }
        if not more:
            return found
        found |= more


def _anothers(ref: str, mine: set[str], targets: Mapping[str, list[str]]) -> bool:
    return ref not in mine and any(target.startswith("Patient/") for target in targets.get(ref, ()))


def _with_targets(mine: set[str], targets: Mapping[str, list[str]], by_ref: Mapping[str, Resource]) -> set[str]:
    taken = set(mine)
    queue = list(mine)
    while queue:
        for target in targets[queue.pop()]:
            if target in by_ref and target not in taken and not target.startswith("Patient/"):
                if any(name.startswith("Patient/") for name in targets[target]):
                    continue
                taken.add(target)
                queue.append(target)
    return taken


def _why_not(ref: str, patient: str, targets: list[str]) -> str:
    if patient in targets:
        return "another patient's, though it names this one"
    if ref.startswith("Patient/") or any(target.startswith("Patient/") for target in targets):
        return "another patient's"
    return "nothing of this patient refers to it"


def _unlinked(resource: Resource, taken: set[str], unlinked: Counter[str]) -> Resource:
    """The resource with every reference that leads nowhere reduced to what it says about its target."""
    astray = {
        target: re.sub(r"\[\d+\]", "", path)
        for path, target in references(resource.body)
        if not target.startswith("#") and leads_to(target) not in taken
    }
    if not astray:
        return resource

    def mended(node: Any) -> Any:
        if isinstance(node, list):
            return [mended(item) for item in node]
        if not isinstance(node, dict):
            return node
        if node.get("reference") not in astray:
            return {key: mended(value) for key, value in node.items()}
        unlinked[astray[node["reference"]]] += 1
        kept = {key: mended(value) for key, value in node.items() if key not in ("reference", "_reference")}
        return kept if "display" in kept or "identifier" in kept else {**kept, "display": _NOT_HERE}

    return Resource.from_body(mended(resource.body), where=resource.ref)
