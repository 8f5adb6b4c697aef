"""The draft that a reviser leaves: jobs/<id>/draft.json, a person's to drop from, to change, and to send to decision.

Nothing of it is in the repository. What the model gave stays as it was; what a person dropped or changed stands beside
it. A changed edit is that person's own work: it goes up as a proposal by hand, on which they do not decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import AwareDatetime, Field, ValidationError

from authoring.edits import Edit, Files
from authoring.jsontext import EditError
from authoring.proposals import Prepared, Proposal, ProposedEdit, Unaddressed, prepare
from authoring.revising.request import Sent
from tasks.errors import PackageError, StoreError, UsageError
from tasks.fhir.resources import dump_json, parse_json
from tasks.review.events import package_hash
from tasks.stored import write_whole
from tasks.strict import Strict
from tasks.trials import Usage
from tasks.workspace import Workspace

if TYPE_CHECKING:
    from authoring.applying import Gate
    from authoring.desk import Desk
    from authoring.gate import GateResult

FILE = "draft.json"


class GateCheck(Strict):
    """One check of the gate."""

    name: str
    state: str
    detail: str = ""


class DraftGate(Strict):
    """The gate on the package with all edits of the draft. `new`: what fails with them and did not without."""

    package: str
    version: str
    passed: bool
    checks: tuple[GateCheck, ...]
    new: tuple[str, ...] = ()


class LeftOut(Strict):
    """An edit of the model that is not in the draft."""

    unit: str
    why: str
    message: str = ""


class DraftEdit(Strict):
    """One edit of a draft, as the model gave it, and what a person made of it."""

    given: ProposedEdit
    dropped: bool = False
    changed: ProposedEdit | None = None

    @property
    def edit(self) -> ProposedEdit:
        """As it would be put up."""
        return self.changed or self.given


class Draft(Strict):
    """A reviser's work on one state of a task."""

    id: str
    proposal: str = Field(description="the id that the model's proposal will have")
    task: str
    title: str = ""
    package: str
    person: str
    at: AwareDatetime
    asked: str
    answered: str
    usage: Usage
    repairs: int
    sent: Sent
    edits: tuple[DraftEdit, ...]
    unaddressed: tuple[Unaddressed, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    gate: DraftGate | None = None
    put_up: tuple[str, ...] = Field(default=(), description="the proposals that it became")

    @property
    def kept(self) -> tuple[tuple[int, DraftEdit], ...]:
        """The edits that would be put up, numbered as in the table (1 = the first)."""
        return tuple((number, one) for number, one in enumerate(self.edits, 1) if not one.dropped)

    @property
    def left_open(self) -> tuple[Unaddressed, ...]:
        """Findings that no kept edit resolves: those the model left open, and those whose edits were dropped."""
        resolved = {id for _, one in self.kept for id in one.edit.findings}
        given = {one.finding for one in self.unaddressed}
        offered = dict.fromkeys(id for one in self.edits for id in one.given.findings)
        dropped = [
            Unaddressed(finding=id, reason="The edit that was offered for it was dropped.")
            for id in offered
            if id not in resolved and id not in given
        ]
        return (*self.unaddressed, *dropped)

    @property
    def rejected_before(self) -> int:
        """Changes that were dropped because they had been rejected."""
        return sum(one.why == "rejected before" for one in self.left_out)

    def edit(self, number: int) -> DraftEdit:
        """The edit of that number. Raises UsageError."""
        if not 1 <= number <= len(self.edits):
            raise UsageError(f"there is no edit {number}.", where=self.id, remedy=f"There are {len(self.edits)}.")
        return self.edits[number - 1]

    def with_dropped(self, numbers: Sequence[int], *, dropped: bool = True) -> Draft:
        """With edits dropped, or taken back in."""
        for number in numbers:
            self.edit(number)
        edits = tuple(
            one.model_copy(update={"dropped": dropped}) if number in numbers else one
            for number, one in enumerate(self.edits, 1)
        )
        return self.model_copy(update={"edits": edits})

    def with_changed(self, number: int, edit: Edit) -> Draft:
        """With one edit as a person wants it; the same edit as given = not changed."""
        given = self.edit(number).given
        changed = None if edit == given.edit else given.model_copy(update={"edit": edit})
        edits = list(self.edits)
        edits[number - 1] = edits[number - 1].model_copy(update={"changed": changed})
        return self.model_copy(update={"edits": tuple(edits)})


@dataclass(frozen=True)
class Composed:
    """What a draft would put up: the model's part, the person's own part, and the package with both."""

    by_model: Prepared | None
    by_hand: Prepared | None
    after: dict[str, bytes]


def compose(draft: Draft, files: Files, *, person: str, rejected: frozenset[str] = frozenset()) -> Composed:
    """The draft on the package. Raises UsageError where the task changed since, EditError for edits that do not go
    together without what was dropped or changed."""
    if package_hash(files) != draft.package:
        raise UsageError(
            "the task changed since this draft was made.", where=draft.id, remedy="Ask for a revision of it as it is."
        )
    given = tuple(one.given for _, one in draft.kept if one.changed is None)
    changed = tuple(one.changed for _, one in draft.kept if one.changed is not None)
    model, hand = _proposal(draft, given, ""), _proposal(draft, changed, person)
    by_model = prepare(files, model, rejected=rejected) if model else None
    by_hand = prepare(files, hand, rejected=rejected) if hand else None
    every = _proposal(draft, tuple(one.edit for _, one in draft.kept), "")
    after = prepare(files, every).after if every else dict(files)
    return Composed(by_model, by_hand, after)


def _proposal(draft: Draft, edits: tuple[ProposedEdit, ...], person: str) -> Proposal | None:
    if not edits:
        return None
    cost = None if draft.usage.cost is None else Decimal(f"{draft.usage.cost:.6f}")
    model: dict[str, Any] = {
        "asked": draft.asked, "answered": draft.answered, "prompt": draft.sent.prompt,
        "prompt_hash": draft.sent.prompt_hash, "cost": cost,
        "repairs": draft.repairs, "job": draft.id,
    }  # fmt: skip
    return Proposal(
        id=f"{draft.proposal}{'-own' if person else ''}",
        task=draft.task, package=draft.package, made_by=person or draft.asked, by_hand=bool(person), at=draft.at,
        edits=edits, unaddressed=() if person else draft.left_open, model=model,
    )  # fmt: skip


def weakening(desk: Desk, draft: Draft) -> dict[int, tuple[str, ...]]:
    """{number of a kept edit: what of a safety checkpoint becomes weaker with it}; {} where the task changed since or
    the edits no longer go together."""
    with desk.store.at() as view:
        at = desk.snapshot(view, draft.task)
        files = at.files
    try:
        composed = compose(draft, files, person=desk.actor.id)
    except (UsageError, EditError):
        return {}
    found: dict[int, tuple[str, ...]] = {}
    for part, numbers in (
        (composed.by_model, [number for number, one in draft.kept if one.changed is None]),
        (composed.by_hand, [number for number, one in draft.kept if one.changed is not None]),
    ):
        for number, ref in zip(numbers, part.changes if part else (), strict=True):
            if part and ref.change in part.weakens:
                found[number] = part.weakens[ref.change]
    return found


def gated(task: str, files: Files, after: Files, gate: Gate) -> DraftGate:
    """The gate on the composed result, and which of its failures are new."""
    result = gate(after, task)
    new = () if result.passed else new_failures(gate(files, task), result)
    return DraftGate(
        package=result.package, version=result.version, passed=result.passed, new=new,
        checks=tuple(GateCheck(name=one.name, state=one.state, detail=one.detail) for one in result.checks),
    )  # fmt: skip


def new_failures(before: GateResult, after: GateResult) -> tuple[str, ...]:
    """What fails after a change and did not before: checks by name; mutants and variants one by one."""
    failed = {check.name for check in before.checks if check.state == "failed"}
    new = [f"{one.name}: {one.detail}" for one in after.checks if one.state == "failed" and one.name not in failed]
    survived = {one.name for one in before.survivors}
    new += [f"survives now: {one.name}" for one in after.survivors if one.name not in survived]
    broken = {one.name for one in before.broken_variants}
    new += [f"is failed now: {one.name}" for one in after.broken_variants if one.name not in broken]
    return tuple(new)


def send(desk: Desk, draft: Draft, *, gate: Gate | None = None) -> Draft:
    """Put the draft up for decision as this person: the model's part, and their own changes as a proposal by hand.

    Raises PackageError where the gate fails with these edits on what it did not fail on before, UsageError where
    nothing is left or the draft was sent already. Nothing is put up then.
    """
    from authoring.reviser import run_gate

    if draft.put_up:
        raise UsageError("this draft was sent to decision already.", where=draft.id)
    if not draft.kept:
        raise UsageError("no edit of the draft is left.", where=draft.id, remedy="Take one back in, or ask again.")
    with desk.store.at() as view:
        at = desk.snapshot(view, draft.task)
        files, state = at.files, at.state
    already = draft.proposal in state.proposals or f"{draft.proposal}-own" in state.proposals
    if already and not _half_sent(draft, state.proposals):
        raise UsageError("this draft was sent to decision already.", where=draft.id)
    composed = compose(draft, files, person=desk.actor.id, rejected=state.rejected)
    if draft.gate is None or draft.gate.package != package_hash(composed.after):
        draft = draft.model_copy(update={"gate": gated(draft.task, files, composed.after, gate or run_gate)})
        store(desk.workspace, draft)
    assert draft.gate is not None
    if draft.gate.new:
        raise PackageError(
            f"the gate fails with these edits; nothing was put up. {'; '.join(draft.gate.new[:5])}",
            where=draft.task,
            remedy="Drop or change the edits that it is due to.",
        )
    put_up = []
    for one in (composed.by_model, composed.by_hand):
        if one is not None:
            if one.proposal.id not in state.proposals:
                desk.propose(draft.task, one.proposal, review_id=one.proposal.id)
            put_up.append(one.proposal.id)
    sent = draft.model_copy(update={"put_up": tuple(put_up)})
    store(desk.workspace, sent)
    return sent


def _half_sent(draft: Draft, proposals: Mapping[str, object]) -> bool:
    """Whether a crash came between the model's part and the person's own."""
    own = any(one.changed for _, one in draft.kept)
    return own and (draft.proposal in proposals) != (f"{draft.proposal}-own" in proposals)


# ---- kept in jobs/<id>/ ---------------------------------------------------------------------------------------------


def store(workspace: Workspace, draft: Draft) -> Path:
    """Write the draft whole; decimals stay as they were written."""
    path = workspace.jobs / draft.id / FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, dump(draft))
    return path


def dump(draft: Draft) -> str:
    """The draft as JSON, decimals as they were written."""
    return dump_json(_plain(draft.model_dump(mode="python"))) + "\n"


def find(workspace: Workspace, id: str) -> Draft:
    """The draft of a job. Raises UsageError where there is none, StoreError where it cannot be read."""
    if not id.isascii() or not id.isalnum() or len(id) > 32:
        raise UsageError("there is no such draft.", remedy="Name the job that made it.")
    path = workspace.jobs / id / FILE
    try:
        data = path.read_bytes()
    except OSError:
        raise UsageError("there is no draft of that job.", where=id, remedy="Ask for a revision first.") from None
    try:
        return Draft.model_validate(parse_json(data, where=str(path)))
    except ValidationError as fault:
        first = fault.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise StoreError(f"the draft cannot be read: {place}: {first['msg']}.", where=str(path)) from None


def drafts(workspace: Workspace, task: str) -> list[Draft]:
    """The drafts for a task that were not damaged, newest first."""
    found = []
    for path in workspace.jobs.glob(f"*/{FILE}") if workspace.jobs.is_dir() else ():
        try:
            draft = find(workspace, path.parent.name)
        except (UsageError, StoreError, EditError):
            continue
        if draft.task == task:
            found.append(draft)
    return sorted(found, key=lambda one: one.at, reverse=True)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return parse_json(repr(value)) if value == value else None
    return value.isoformat() if hasattr(value, "isoformat") else value
