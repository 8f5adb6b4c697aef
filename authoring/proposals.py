"""Proposals: edits with what they answer and why, composed, grouped and put up for decision.

A proposal stands in reviews/proposals/<id>.json and never changes. Its edits are always composed in the order in which
they stand there, whatever the order of approvals, so that the same subset always gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from pydantic import AwareDatetime, Field, ValidationError

from authoring.edits import (
    AddCheckpoint,
    AddFile,
    AddResource,
    CheckpointEdit,
    Edit,
    Files,
    Package,
    ResourceEdit,
    TextEdit,
    identity,
    path_of,
    unit_of,
)
from authoring.jsontext import EditError
from authoring.safety import weakened
from tasks.errors import StoreError
from tasks.fhir.resources import dump_json, parse_json
from tasks.package import Task, load
from tasks.review.events import ChangeRef, new_id
from tasks.strict import Strict


class ProposedEdit(Strict):
    """One edit, what it answers, and why."""

    edit: Edit
    findings: tuple[str, ...] = Field(default=(), description="ids of the findings that it resolves")
    dimension: str = ""
    rationale: str = ""
    evidence: tuple[str, ...] = Field(default=(), description="references, quoted lines, sources")
    risk: str = Field(default="", description="what could go wrong with it")


class Unaddressed(Strict):
    """A finding that a proposal leaves open, and why."""

    finding: str
    reason: str


class Proposal(Strict):
    """A set of edits on one state of a task."""

    id: str = Field(default_factory=new_id)
    task: str
    package: str = Field(description="hash of the package that the edits were made on")
    made_by: str = Field(description="a person's id, or a model's name")
    by_hand: bool
    at: AwareDatetime
    edits: tuple[ProposedEdit, ...] = Field(min_length=1)
    unaddressed: tuple[Unaddressed, ...] = ()
    model: dict[str, Any] = Field(default={}, description="as answered: name, prompt version and hash, cost, repairs")


@dataclass(frozen=True)
class Prepared:
    """A proposal checked against a package: what each edit does, and the package with all of them."""

    proposal: Proposal
    changes: tuple[ChangeRef, ...]
    after: dict[str, bytes]
    weakens: Mapping[str, tuple[str, ...]]  # change id -> what of a safety checkpoint becomes weaker


@dataclass(frozen=True)
class Failure:
    """An edit that does not apply."""

    number: int  # 1 = the proposal's first
    edit: Edit
    message: str


class CompositionError(EditError):
    """Edits that do not go together; `failures` names each."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        self.failures = tuple(failures)
        super().__init__("; ".join(f"edit {one.number}: {one.message}" for one in failures))

    def __reduce__(self) -> tuple[object, ...]:
        return (CompositionError, (self.failures,))


def compose(files: Files, edits: Iterable[tuple[int, Edit]]) -> dict[str, bytes]:
    """The package after edits, (number, edit) each, in order. Raises CompositionError naming each that fails."""
    return _composed(Package(files), edits).files()


def _composed(after: Package, edits: Iterable[tuple[int, Edit]]) -> Package:
    failures = list[Failure]()
    for number, edit in edits:
        try:
            after = after.apply(edit)
        except EditError as fault:
            failures.append(Failure(number, edit, str(fault)))
    if failures:
        raise CompositionError(failures)
    return after


def prepare(files: Files, proposal: Proposal, *, rejected: frozenset[str] = frozenset()) -> Prepared:
    """Check a proposal against the package it was made on.

    Raises CompositionError for edits that do not apply, stand twice, or were rejected before.
    """
    edits = [one.edit for one in proposal.edits]
    package = Package(files)
    after = _composed(package, enumerate(edits, 1))
    alone = [_applied(package, edit) for edit in edits]
    groups = _groups(package, edits, alone, proposal.task)
    ids: set[str] = set()
    failures: list[Failure] = []
    refs: list[ChangeRef] = []
    so_far = package
    for number, (one, stands_alone) in enumerate(zip(proposal.edits, alone, strict=True), 1):
        base = package if stands_alone is not None else so_far
        so_far = so_far.apply(one.edit)
        result = stands_alone if stands_alone is not None else so_far
        id = identity(one.edit, base, result)
        if id in ids:
            failures.append(Failure(number, one.edit, "the same change stands in this proposal twice"))
        if id in rejected:
            failures.append(Failure(number, one.edit, "this change was rejected before and is not proposed again"))
        ids.add(id)
        unit = unit_of(one.edit)
        refs.append(
            ChangeRef(
                change=id,
                unit=unit,
                base=base.unit_hash(unit),
                result=result.unit_hash(unit),
                group=groups[number - 1],
                findings=one.findings,
                made_by_hand=proposal.by_hand,
            )
        )
    if failures:
        raise CompositionError(failures)
    weakens = _weakens(package, proposal, refs)
    return Prepared(
        proposal,
        tuple(ref.model_copy(update={"weakens_safety": ref.change in weakens}) for ref in refs),
        after.files(),
        weakens,
    )


def _applied(package: Package, edit: Edit) -> Package | None:
    try:
        return package.apply(edit)
    except EditError:
        return None


def _groups(package: Package, edits: Sequence[Edit], alone: Sequence[Package | None], task: str) -> list[str]:
    """A group's name for each edit ("" = stands by itself): edits that need each other are decided as one."""
    parent = list(range(len(edits)))

    def root(one: int) -> int:
        while parent[one] != one:
            one = parent[one]
        return one

    units = [unit_of(edit) for edit in edits]
    introduced = [_introduced(edit) for edit in edits]
    words = [_words(edit) for edit in edits] if any(introduced) else []
    for later, edit in enumerate(edits):
        if alone[later] is None:
            needed = [n for n in range(later) if path_of(edits[n]) == path_of(edit)] or list(range(later))
            # The nearest earlier edit after which it applies; all of them where no single one suffices.
            enough = next(
                (n for n in reversed(needed) if (one := alone[n]) is not None and _applied(one, edit) is not None), None
            )
            for n in [enough] if enough is not None else needed:
                parent[root(n)] = root(later)
        for earlier in range(later):
            same_part = units[earlier] == units[later] and not isinstance(edit, TextEdit)
            if same_part or any(
                _mentions(words[one], introduced[other])
                for one, other in ((earlier, later), (later, earlier))
                if introduced[other]
            ):
                parent[root(earlier)] = root(later)
    members: dict[int, frozenset[int]] = {}
    for n in range(len(edits)):
        members[root(n)] = members.get(root(n), frozenset()) | {n}
    names = [""] * len(edits)
    for group in _readable_groups(package, edits, list(members.values()), task):
        for n in group if len(group) > 1 else ():
            names[n] = f"g{max(group) + 1}"
    return names


def _readable_groups(
    package: Package, edits: Sequence[Edit], groups: list[frozenset[int]], task: str
) -> list[frozenset[int]]:
    """The groups, those made one that can only be read together: a checkpoint that quotes words which another edit
    brings in, a function or an example that comes with it. What is unreadable with all of them stays as it is."""
    known: dict[frozenset[int], bool] = {frozenset(): _reads(package, (), task)}
    if not known[frozenset()]:
        return groups

    def reads(numbers: frozenset[int]) -> bool:
        mine = frozenset(n for n in numbers if not path_of(edits[n]).startswith("chart/"))
        if mine not in known:
            known[mine] = _reads(package, [edits[n] for n in sorted(mine)], task)
        return known[mine]

    for start in list(groups):
        group = next((one for one in groups if start <= one), None)
        if group is None or reads(group):
            continue
        others = [
            one for one in groups if one != group and any(not path_of(edits[n]).startswith("chart/") for n in one)
        ]
        needed = next(([one] for one in others if reads(group | one)), others)
        if not reads(group.union(*needed)):
            continue
        for one in others if len(needed) > 1 else ():
            if reads(group.union(*(left := [other for other in needed if other != one]))):
                needed = left
        groups = [one for one in groups if one != group and one not in needed] + [group.union(*needed)]
    return groups


def _reads(package: Package, edits: Iterable[Edit], task: str) -> bool:
    """Whether the package can be read with these edits; its chart and its reviews have no part in that."""
    try:
        files = _composed(package, enumerate(edits, 1)).files()
        load({path: data for path, data in files.items() if not path.startswith(("chart/", "reviews/"))}, where=task)
    except Exception:  # noqa: BLE001 (whatever makes it unreadable)
        return False
    return True


def _mentions(text: str, names: Sequence[str]) -> bool:
    """Whether an edit speaks of what another one brings in: a resource, a checkpoint's example, a file, a function."""
    return any(name in text and re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w./-])", text) for name in names)


def _introduced(edit: Edit) -> tuple[str, ...]:
    match edit:
        case AddResource():
            return (f"{edit.resource.get('resourceType')}/{edit.resource.get('id')}",)
        case AddFile():
            return (edit.path,)
        case TextEdit() if edit.path == "checkpoints.py":
            names = set(re.findall(r"^def (\w+)", edit.replace, re.MULTILINE))
            return tuple(sorted(names - set(re.findall(r"^def (\w+)", edit.find, re.MULTILINE))))
    return ()


def _words(edit: Edit) -> str:
    match edit:
        case TextEdit():
            return edit.replace
        case AddFile():
            return edit.content
        case AddResource():
            return dump_json(edit.resource)
        case ResourceEdit():
            return dump_json([operation.get("value") for operation in edit.operations])
        case AddCheckpoint():
            return dump_json(edit.table)
        case CheckpointEdit():
            return dump_json(edit.set)
    return ""


def _weakens(package: Package, proposal: Proposal, refs: Sequence[ChangeRef]) -> dict[str, tuple[str, ...]]:
    """Which changes make a safety checkpoint weaker: each is asked alone, after the group members before it; with all
    of them where it cannot be read otherwise."""
    before = load(package.files(), where=proposal.task)
    if not any(checkpoint.is_safety for checkpoint in before.checkpoints):
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for number, (one, ref) in enumerate(zip(proposal.edits, refs, strict=True)):
        if path_of(one.edit) not in ("checkpoints.toml", "checkpoints.py", "task.toml"):
            continue
        members = [n for n in range(len(refs)) if n == number or (ref.group and refs[n].group == ref.group)]
        sets = ([n for n in members if n <= number], members)
        now = next((task for numbers in sets if (task := _loaded(package, proposal, numbers)) is not None), None)
        if now is None:
            # Whatever makes it unreadable, it is not shown to be as strict as before.
            found[ref.change] = ("the checkpoints cannot be read with this change alone",)
            continue
        reasons = weakened(
            before.checkpoints,
            now.checkpoints,
            code=(before.code or "", now.code or ""),
            context=(before.meta.context, now.meta.context),
        )
        if reasons:
            found[ref.change] = tuple(f"{id}: {why}" for id, whys in reasons.items() for why in whys)
    return found


def _loaded(package: Package, proposal: Proposal, numbers: Iterable[int]) -> Task | None:
    """The task with some edits of a proposal; None where it cannot be read with them."""
    try:
        after = _composed(package, [(n + 1, proposal.edits[n].edit) for n in numbers])
        return load(after.files(), where=proposal.task)
    except Exception:  # noqa: BLE001 (whatever makes it unreadable)
        return None


def dump_proposal(proposal: Proposal) -> bytes:
    """The bytes of reviews/proposals/<id>.json."""
    return (dump_json(_plain(proposal.model_dump(mode="python"))) + "\n").encode()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.isoformat() if hasattr(value, "isoformat") else value


def parse_proposal(data: bytes, *, where: str) -> Proposal:
    """A stored proposal. Raises StoreError where it cannot be read."""
    try:
        return Proposal.model_validate(parse_json(data, where=where))
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise StoreError(f"the proposal cannot be read: {place}: {first['msg']}.", where=where) from None


def path_in_package(proposal_id: str) -> str:
    """Where a proposal stands in its package."""
    return f"reviews/proposals/{proposal_id}.json"


def file_hash(proposal: Proposal) -> str:
    """SHA-256 of the stored file."""
    return sha256(dump_proposal(proposal)).hexdigest()
