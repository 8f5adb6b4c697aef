"""Every fault of a package, its chart included, and what a release still needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from tasks.anchors import Anchor
from tasks.declarations import BUILT_IN_TRUTHS, LATEST, Checkpoint
from tasks.errors import DeclarationError
from tasks.places import Fault, at, nearest, shown, toml_line
from tasks.structure import Parts, functions, read

if TYPE_CHECKING:
    from tasks.fhir.resources import Resource

_LATEST = re.compile(rf"^{LATEST}[^,\s]+(,[^,\s]+)*$")


def faults(files: Mapping[str, bytes], *, where: str, release: bool = False) -> list[Fault]:
    """All faults, one message each, file by file; empty = right. `release` asks for completeness too.

    `where` names the folder in front of every place. What depends on a file that cannot be read is not judged, so
    that one mistake gives one message. Raises PackageError where a file changes while it is read.
    """
    # Here and not above: the element table takes a moment to load, and `load` does without it.
    from tasks.chart_check import check_chart, check_example

    parts, found = read(files, where)
    misread = {re.sub(r":\d+$", "", fault.place) for fault in found}
    chart = check_chart(files)
    more = list(chart.faults)
    for path in sorted(files):
        place = f"{where}/{path}"
        if path.startswith("examples/") and path.endswith(".json") and place not in misread:
            more += check_example(files[path], path)
    if parts is not None:
        more += contradictions(parts, files)
        if chart.whole:
            more += _strangers(parts, files, chart.resources)
            more += _unfounded(parts, files, chart.resources)
        if release:
            more += [Fault(_place_of(said), said) for said in missing_for_release(parts, files)]
    return found + placed(more, where)


def placed(found: Iterable[Fault], where: str) -> list[Fault]:
    """The faults with the folder in front of their places."""
    return [Fault("/".join(filter(None, (where, fault.place))), fault.message) for fault in found]


def _strangers(parts: Parts, files: Mapping[str, bytes], resources: Mapping[str, Resource]) -> Iterator[Fault]:
    """Patient and practitioner of the context who are not in the chart. A draft without a chart has none."""
    if parts.meta.context is None or not resources:
        return
    source = files["task.toml"].decode()
    for key in ("patient", "practitioner"):
        ref = getattr(parts.meta.context, key)
        if ref is not None and ref not in resources:
            place = at("task.toml", toml_line(source, ("context", key)))
            yield Fault(place, f"context.{key}: {ref} is not in the chart")


def _place_of(missing: str) -> str:
    """The file that a sentence of `missing_for_release` begins with."""
    return missing.split(" ", 1)[0].rstrip("/")


def contradictions(parts: Parts, files: Mapping[str, bytes]) -> Iterator[Fault]:
    """Where checkpoints.toml names what the package does not have; needs no chart."""
    if not parts.checkpoints:
        return
    source = files["checkpoints.toml"].decode()
    known = functions(parts.code) if parts.code is not None else {}
    readable = parts.code is not None or "checkpoints.py" not in files
    for index, checkpoint in enumerate(parts.checkpoints):
        for key, said in _stray_names(checkpoint, parts, files, known, readable):
            place = at("checkpoints.toml", toml_line(source, ("checkpoint", index, *key)))
            yield Fault(place, f"{checkpoint.id}: {'.'.join(key)}{said}")


def _stray_names(
    checkpoint: Checkpoint, parts: Parts, files: Mapping[str, bytes], known: Mapping[str, int], readable: bool
) -> Iterator[tuple[tuple[str, ...], str]]:
    """(key, what is wrong) for every name of a checkpoint that leads nowhere."""
    if readable and checkpoint.grader == "code" and checkpoint.function and checkpoint.function not in known:
        yield ("function",), _no_function(checkpoint.function, known)
    truth = checkpoint.truth
    if readable and truth and truth not in BUILT_IN_TRUTHS and not _LATEST.match(truth) and truth not in known:
        built_in = f" Built in are: {', '.join(BUILT_IN_TRUTHS)}, {LATEST}<code>."
        yield ("truth",), _no_function(truth, [*known, *BUILT_IN_TRUTHS]) + built_in
    paths = [deliverable.path for deliverable in parts.meta.deliverables]
    extract = checkpoint.extract
    named = ((("file",), checkpoint.file), (("extract", "file"), extract.file if extract else None))
    for location, file in named:
        if file is not None and file not in paths:
            hint = nearest(file, paths) or f" Declared are: {', '.join(paths) or 'none'}."
            yield location, f": {shown(file)} is no [[deliverable]] of task.toml.{hint}"
    if extract is not None and extract.pattern is not None:
        try:
            re.compile(extract.pattern)
        except re.error as error:
            yield ("extract", "pattern"), f": not a regular expression: {error.msg} at character {error.pos}"
    for key in ("must_match", "must_not_match"):
        for number, path in enumerate(getattr(checkpoint, key)):
            if path not in parts.examples:
                yield (key,), f"[{number + 1}]: {shown(path)} is not in examples/.{nearest(path, parts.examples)}"
            elif not path.endswith(".json"):
                yield (key,), f"[{number + 1}]: {shown(path)} is no order; name a .json file with one FHIR resource"
            elif path in checkpoint.must_match and key == "must_not_match":
                yield (key,), f"[{number + 1}]: {shown(path)} stands in must_match too; remove one"
    for key in ("rests_on", "seen"):
        for number, entry in enumerate(getattr(checkpoint, key)):
            try:
                anchor = Anchor.parse(entry)
            except DeclarationError as error:
                yield (key,), f"[{number + 1}]: {error.what} {error.remedy}"
                continue
            if key == "seen" and entry not in checkpoint.rests_on:
                yield (key,), f"[{number + 1}]: stands not in rests_on; add it there word for word"
            elif key == "rests_on" and anchor.is_instruction and anchor.missing_from(parts.instruction, _nothing):
                yield (key,), f"[{number + 1}]: instruction.md does not say the quoted words"


def _nothing(ref: str) -> None:
    return None


def _no_function(name: str, known: Iterable[str]) -> str:
    return f": checkpoints.py has no function {shown(name)} that takes one argument.{nearest(name, known)}"


def _unfounded(parts: Parts, files: Mapping[str, bytes], resources: Mapping[str, Resource]) -> Iterator[Fault]:
    """Anchors into the chart that lead nowhere."""
    source = files["checkpoints.toml"].decode() if parts.checkpoints else ""
    for index, checkpoint in enumerate(parts.checkpoints):
        for number, entry in enumerate(checkpoint.rests_on):
            try:
                anchor = Anchor.parse(entry)
            except DeclarationError:
                continue  # told by contradictions()
            reason = None if anchor.is_instruction else anchor.missing_from(parts.instruction, resources.get)
            if reason:
                place = at("checkpoints.toml", toml_line(source, ("checkpoint", index, "rests_on")))
                yield Fault(place, f"{checkpoint.id}: rests_on[{number + 1}]: {reason}")


def missing_for_release(parts: Parts, files: Mapping[str, bytes]) -> list[str]:
    """What a release still needs, one sentence each."""
    meta, context = parts.meta, parts.meta.context
    missing = []
    if context is None:
        missing.append("task.toml lacks [context] with patient, practitioner, now and authority")
    else:
        missing += [
            f"task.toml lacks {key} in [context]"
            for key in ("practitioner", "now", "authority")
            if getattr(context, key) is None
        ]
    if not meta.deliverables:
        missing.append("task.toml lacks a [[deliverable]]")
    if meta.estimated_minutes is None:
        missing.append("task.toml lacks estimated_minutes")
    if meta.provenance is None or not meta.provenance.contamination_guid:
        missing.append("task.toml lacks contamination_guid in [provenance]")
    if not any(path.startswith("chart/") for path in files):
        missing.append("chart/ is missing")
    if not any(checkpoint.criticality != "optional" for checkpoint in parts.checkpoints):
        missing.append("checkpoints.toml lacks a checkpoint that is critical or required")
    if not parts.plans:
        missing.append("solution/ lacks a plan")
    for name, plan in sorted(parts.plans.items()):
        written = {str(action.arguments.get("file_path")) for action in plan.actions if action.tool == "write_file"}
        missing += [
            f"solution/{name}/actions.jsonl lacks a write_file to {deliverable.path}"
            for deliverable in meta.deliverables
            if deliverable.path not in written
        ]
    told = [ref for ref in (context.patient, context.practitioner) if ref] if context else []
    missing += [
        f"instruction.md lacks {name}, which the agent is to know"
        for name in (*told, *(deliverable.path for deliverable in meta.deliverables))
        if name not in parts.instruction
    ]
    changes = files.get("CHANGELOG.md", b"").decode("utf-8", errors="replace")
    if not re.search(rf"^##\s+(?:v|version )?{meta.version}\b", changes, re.MULTILINE | re.IGNORECASE):
        missing.append(f"CHANGELOG.md lacks an entry '## {meta.version}' for this version")
    return missing
