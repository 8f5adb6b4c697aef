"""Which of a model's edits hold on the real bytes, and in what words the others go back to it.

An edit holds where it applies exactly, names findings that are there, and its evidence stands where it says. What was
rejected before, or is up for decision already, is dropped and counted; it is no fault to be mended.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from authoring.edits import Edit, Files, Package, TextEdit, identity, unit_of
from authoring.jsontext import EditError
from authoring.proposals import ProposedEdit, Unaddressed
from authoring.revising.answer import ModelEdit, NoteEdit, RevisedEdit, RevisionAnswer, edit_of, note_texts, unit_named
from authoring.revising.fence import Fence
from authoring.revising.request import shown
from tasks.anchors import Anchor, holds
from tasks.checking import faults
from tasks.errors import WorkbenchError
from tasks.fhir.resources import Resource, parse_json
from tasks.package import Task
from tasks.review.state import ReviewState
from tasks.structure import chart_type

Why = Literal["does not hold", "rejected before", "up for decision already"]
_QUOTE = re.compile(r'^(?P<path>[\w./-]+)#"(?P<quote>.+)"$', re.DOTALL)
_MOST_SHOWN = 4_000
_MOST_PLACES = 5
#: Characters in one piece that make a place worth showing.
_LEAST_ALIKE = 8


@dataclass(frozen=True)
class Fallen:
    """An edit that is not kept. `number`: 1 = the answer's first. `real`: the nearest real text, for the model."""

    number: int
    unit: str
    why: Why
    message: str
    findings: tuple[str, ...]
    real: str = ""


@dataclass(frozen=True)
class Tried:
    """An answer tried on the package. `silent`: findings of which it says nothing."""

    kept: tuple[tuple[int, ProposedEdit], ...]
    fallen: tuple[Fallen, ...]
    unaddressed: tuple[Unaddressed, ...]
    strange: tuple[str, ...]
    silent: tuple[str, ...]
    after: dict[str, bytes]

    @property
    def wrong(self) -> tuple[Fallen, ...]:
        """Edits that the model can mend."""
        return tuple(one for one in self.fallen if one.why == "does not hold")

    @property
    def holds(self) -> bool:
        """Whether there is nothing to send back."""
        return not (self.wrong or self.strange or self.silent)


class Bench:
    """What an answer is tried on: the package as it was sent, with its findings and earlier decisions."""

    def __init__(self, task: Task, files: Files, state: ReviewState, handles: Mapping[str, str], fence: Fence) -> None:
        self._task, self._files, self._handles, self._fence = task, files, handles, fence
        self._rejected = state.rejected
        self._live = {one.ref.change for one in state.live_changes}

    def try_(self, answer: RevisionAnswer) -> Tried:
        """Try every edit in order; one that does not hold is left out, and the next is tried without it."""
        package = start = Package(self._files)
        kept: list[tuple[int, ProposedEdit]] = []
        fallen: list[Fallen] = []
        ids: set[str] = set()
        for number, one in enumerate(answer.edits, 1):
            unit = unit_named(one.edit)
            findings = tuple(self._handles[handle] for handle in one.findings if handle in self._handles)
            try:
                self._check_words(one)
                edit = edit_of(one.edit, package)
                after = package.apply(edit)
                id = _identity(edit, start, package, after)
                if id in ids:
                    raise EditError("the same edit stands in this answer twice", where=unit)
            except EditError as fault:
                real = self._real(one.edit, package)
                fallen.append(Fallen(number, unit, "does not hold", str(fault), findings, real))
                continue
            except WorkbenchError as fault:
                fallen.append(Fallen(number, unit, "does not hold", str(fault), findings))
                continue
            if id in self._rejected or id in self._live:
                why: Why = "rejected before" if id in self._rejected else "up for decision already"
                fallen.append(Fallen(number, unit_of(edit), why, "", findings))
                continue
            ids.add(id)
            package = after
            kept.append((number, self._proposed(one, edit, findings)))
        return self._tried(answer, kept, fallen, package)

    def _proposed(self, one: RevisedEdit, edit: Edit, findings: tuple[str, ...]) -> ProposedEdit:
        evidence = tuple(self._with_ids(text) for text in one.evidence)
        return ProposedEdit(
            edit=edit, findings=findings, dimension=one.dimension, rationale=one.rationale, evidence=evidence,
            risk=one.risk,
        )  # fmt: skip

    def _with_ids(self, evidence: str) -> str:
        handle = evidence.removeprefix("finding:").strip()
        return f"finding: {self._handles[handle]}" if evidence.startswith("finding:") else evidence

    def _check_words(self, one: RevisedEdit) -> None:
        if unknown := [handle for handle in one.findings if handle not in self._handles]:
            raise EditError(f"there is no finding {', '.join(map(_short, unknown))}")
        for place, text in enumerate(one.evidence, 1):
            if why := self._missing(text):
                raise EditError(f"evidence {place} does not stand: {why}")

    def _missing(self, evidence: str) -> str:
        """Why this evidence is none, or ""."""
        if evidence.startswith("source:"):
            return "" if evidence.removeprefix("source:").strip() else "it names no source"
        if evidence.startswith("finding:"):
            return "" if evidence.removeprefix("finding:").strip() in self._handles else "there is no such finding"
        found = _QUOTE.match(evidence)
        if found and found["path"] in self._files:
            text = self._files[found["path"]].decode("utf-8", "replace")
            return "" if holds(found["quote"], text) else f"{found['path']} does not say the quoted words"
        try:
            return Anchor.parse(evidence).holds(self._task) or ""
        except WorkbenchError as fault:
            return str(fault)

    def _tried(
        self, answer: RevisionAnswer, kept: list[tuple[int, ProposedEdit]], fallen: list[Fallen], package: Package
    ) -> Tried:
        resolved = {id for _, one in kept for id in one.findings}
        named = resolved | {id for one in fallen for id in one.findings}
        unaddressed: dict[str, str] = {}
        strange = []
        for one in answer.unaddressed:
            id = self._handles.get(one.finding)
            if id is None:
                strange.append(f"unaddressed names {_short(one.finding)}, which is no finding")
            elif id in resolved:
                strange.append(f"{one.finding} stands in an edit and under unaddressed; it can be in one of them")
            else:
                unaddressed[id] = one.reason
        silent = tuple(h for h, id in self._handles.items() if id not in named and id not in unaddressed)
        for id in self._handles.values():
            if id not in resolved and id not in unaddressed:
                unaddressed[id] = _reason(id, fallen)
        order = list(self._handles.values())
        left = tuple(Unaddressed(finding=id, reason=unaddressed[id]) for id in sorted(unaddressed, key=order.index))
        return Tried(tuple(kept), tuple(fallen), left, tuple(strange), silent, package.files())

    def words(self, tried: Tried, turn: int, of: int, gate: Sequence[str] = ()) -> str:
        """What goes back to the model. Text of the package stands in fences here too."""
        numbers = ", ".join(str(number) for number, _ in tried.kept)
        parts = [f"Repair {turn} of {of}. " + (f"These edits hold: {numbers}." if numbers else "No edit holds.")]
        for one in tried.wrong:
            parts.append(f"Edit {one.number} ({_short(one.unit)}) does not hold:")
            parts.append(self._fence.told(f"why edit {one.number} fails", one.message))
            if one.real:
                parts.append(self._fence.exact(f"the real text nearest to edit {one.number}", one.real))
        dropped = [str(one.number) for one in tried.fallen if one.why != "does not hold"]
        if dropped:
            parts.append(f"Edits {', '.join(dropped)} were rejected before or are up already; leave them out.")
        parts += [f"{one}." for one in tried.strange]
        if tried.silent:
            parts.append(f"Of these findings nothing is said: {', '.join(tried.silent)}.")
        if gate:
            parts.append("All edits hold, but the checks of the package with them fail:")
            parts.append(self._fence.told("failed checks", "\n".join(gate)))
        parts.append(
            "Give the whole answer again: the edits that hold as they are, the others mended, or left out and their "
            "findings under unaddressed. Never guess at text; copy it."
        )
        return "\n".join(parts)

    def _real(self, edit: ModelEdit, package: Package) -> str:
        """The real text that the edit should have quoted, cut to what helps."""
        match edit:
            case TextEdit():
                data = package.read(edit.path)
                return "" if data is None else _window(data.decode("utf-8", "replace"), edit.find)
            case NoteEdit():
                line = package.unit(unit_named(edit))
                texts = [text for _, text in note_texts(parse_json(line))] if line else []
                return "\n".join(_window(text, edit.find) for text in texts)[:_MOST_SHOWN]
        unit = unit_named(edit)
        found = package.unit(unit)
        if found is None:
            return ""
        text = found.decode("utf-8", "replace")
        return (shown(Resource.parse(text)) if chart_type(unit.partition("#")[0]) else text)[:_MOST_SHOWN]


def composed_faults(files: Files, before: Files, *, where: str) -> tuple[str, ...]:
    """What is wrong with a package that was not wrong before: cheap, asked before the gate is."""
    known = {fault.message for fault in faults(before, where=where)}
    return tuple(str(fault) for fault in faults(files, where=where) if fault.message not in known)


def _reason(id: str, fallen: Sequence[Fallen]) -> str:
    for one in fallen:
        if id in one.findings:
            return {
                "does not hold": "An edit was offered for it that does not hold; it was left out.",
                "rejected before": "Only a change that was rejected before was offered for it.",
                "up for decision already": "The change that was offered for it is up for decision already.",
            }[one.why]
    return "The model said nothing about it."


def _identity(edit: Edit, start: Package, before: Package, after: Package) -> str:
    """As `prepare` gives it: over the package as it is where the edit applies alone, else over the edits before it."""
    try:
        return identity(edit, start, start.apply(edit))
    except EditError:
        return identity(edit, before, after)


def _window(text: str, find: str) -> str:
    """The real lines where the text stands (each place of several), or where most of it in one piece does; "" where
    nothing of it is to be found."""
    places = list[tuple[int, int]]()
    at = text.find(find)
    while at >= 0 and len(places) < _MOST_PLACES:
        places.append((at, at + len(find)))
        at = text.find(find, at + 1)
    if not places:
        match = difflib.SequenceMatcher(None, find, text, autojunk=False).find_longest_match()
        if match.size < max(_LEAST_ALIKE, len(find) // 5):
            return ""
        start = max(0, match.b - match.a)
        places = [(start, min(len(text), start + len(find)))]
    return "\n".join(_lines_at(text, *place) for place in places)[:_MOST_SHOWN]


def _lines_at(text: str, start: int, end: int) -> str:
    """The whole lines that a span touches, with the number of the first."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", max(first, end - 1))
    return f"line {text.count(chr(10), 0, first) + 1}:\n{text[first : last if last >= 0 else len(text)]}"


def _short(text: str) -> str:
    """A name the model gave, safe outside a fence."""
    return re.sub(r"[^\w./#:-]", "?", text)[:80]
