"""The state of a task's review: a pure fold over its events. Nothing here reads a file, a clock or a setting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from tasks.review.events import (
    Adjudicated,
    Applied,
    Assigned,
    ChangeRef,
    Decided,
    DefectReported,
    Event,
    Finding,
    FindingDismissed,
    FindingWithdrawn,
    GateRan,
    Imported,
    OwnPlan,
    PlanAmended,
    PlanLocked,
    Proposed,
    Released,
    ReviewSubmitted,
    RoundOpened,
    Signed,
    Unassigned,
    VetoLifted,
    Waived,
)

#: blocked: a standing veto. split: all have decided, not alike. outdated: the bytes under it changed.
ChangeStatus = Literal["undecided", "accepted", "rejected", "split", "blocked", "applied", "outdated"]
Stage = Literal["unassigned", "review", "proposals", "decide", "apply", "sign-off", "release", "released"]


@dataclass(frozen=True)
class FindingState:
    """A finding and its end, if it has one."""

    finding: Finding
    by: str
    round: int
    end: Literal["", "resolved", "withdrawn", "dismissed"] = ""
    why: str = ""

    @property
    def open(self) -> bool:
        return not self.end


@dataclass(frozen=True)
class Veto:
    """A veto that stands until it is lifted. `change` "" = on the task as a whole."""

    change: str
    owner: str
    reason: str
    round: int


@dataclass(frozen=True)
class ChangeState:
    """A proposed change and what was decided on it. `decisions` are those over its present bytes, by person."""

    ref: ChangeRef
    proposal: str
    made_by: str
    round: int
    status: ChangeStatus
    decisions: Mapping[str, Decided]
    outdated: tuple[Decided, ...]
    waiting_for: tuple[str, ...]
    adjudicated: Adjudicated | None = None


@dataclass(frozen=True)
class Review:
    """One reviewer's part of a round."""

    person: str
    round: int
    plan: OwnPlan | None = None
    amendments: tuple[str, ...] = ()
    submitted: ReviewSubmitted | None = None


@dataclass(frozen=True)
class ReviewState:
    """Everything that the events of one task say. Made by `fold`."""

    task: str
    round: int = 0
    package: str = ""
    makers: frozenset[str] = frozenset()
    assigned: Mapping[str, str] = field(default_factory=dict)  # person -> reviewer | pharmacist | adjudicator
    waivers: tuple[Waived, ...] = ()
    round_reviewers: tuple[str, ...] = ()
    due: date | None = None  # of the round
    reviews: Mapping[tuple[int, str], Review] = field(default_factory=dict)
    findings: Mapping[str, FindingState] = field(default_factory=dict)
    changes: Mapping[str, ChangeState] = field(default_factory=dict)
    proposals: Mapping[str, Proposed] = field(default_factory=dict)
    vetoes: tuple[Veto, ...] = ()
    gate: GateRan | None = None
    signatures: Mapping[str, Signed] = field(default_factory=dict)
    releases: tuple[Released, ...] = ()
    defects: tuple[DefectReported, ...] = ()
    rejected: frozenset[str] = frozenset()
    submissions: frozenset[str] = frozenset()

    @property
    def reviewers(self) -> tuple[str, ...]:
        """Who judges and decides: the assigned reviewers and pharmacists."""
        return tuple(person for person, role in self.assigned.items() if role != "adjudicator")

    @property
    def submitted(self) -> tuple[str, ...]:
        """Whose judgement of this round is in the record."""
        return tuple(
            person
            for person in self.round_reviewers
            if (review := self.reviews.get((self.round, person))) and review.submitted
        )

    @property
    def open_findings(self) -> tuple[FindingState, ...]:
        return tuple(state for state in self.findings.values() if state.open)

    @property
    def live_changes(self) -> tuple[ChangeState, ...]:
        """Changes that still need a decision or an application."""
        return tuple(c for c in self.changes.values() if c.status in ("undecided", "split", "blocked", "accepted"))

    @property
    def released_package(self) -> str:
        return self.releases[-1].package if self.releases else ""

    @property
    def stage(self) -> Stage:
        """Where the task stands. What a later round finds in a released task has to be answered like anything else."""
        live = self.live_changes
        open_ = self.round_is_open or live or self.open_findings or self.vetoes
        if self.releases and self.released_package == self.package and not open_:
            return "released"
        if not self.round:
            return "unassigned"
        if self.round_is_open:
            return "review"
        if any(change.status in ("undecided", "split", "blocked") for change in live):
            return "decide"
        if live:
            return "apply"
        if self.open_findings or any(not veto.change for veto in self.vetoes):
            return "proposals"
        if set(self.signatures) >= set(self.reviewers) and self.reviewers:
            return "release"
        return "sign-off"

    @property
    def round_is_open(self) -> bool:
        """Whether somebody's judgement of this round is still missing."""
        return bool(self.round) and len(self.submitted) < len(self.round_reviewers)


def fold(task: str, events: Iterable[Event]) -> ReviewState:
    """The state that the events add up to, in their order. Unknown references are ignored, never an error: what may
    be written is checked before it is, and what was written stays readable."""
    f = Folding(task)
    for event in events:
        f.take(event)
    return f.state()


class Folding:
    """A fold that is under way: `take` events in their order, ask for the `state` after any of them."""

    def __init__(self, task: str) -> None:
        self.task = task
        self.round = 0
        self.package = ""
        self.makers: set[str] = set()
        self.assigned: dict[str, str] = {}
        self.waivers: list[Waived] = []
        self.round_reviewers: tuple[str, ...] = ()
        self.due: date | None = None
        self.reviews: dict[tuple[int, str], Review] = {}
        self.findings: dict[str, FindingState] = {}
        self.refs: dict[str, tuple[ChangeRef, Proposed]] = {}
        self.decisions: dict[str, list[Decided]] = {}
        self.adjudications: dict[str, Adjudicated] = {}
        self.applied: set[str] = set()
        self.units: dict[str, str] = {}  # unit -> hash of its bytes, as far as events tell
        self.replaced: set[str] = set()  # changes that were proposed on a package that was replaced whole
        self.order: list[str] = []
        self.vetoes: list[Veto] = []
        self.gate: GateRan | None = None
        self.signatures: dict[str, Signed] = {}
        self.releases: list[Released] = []
        self.defects: list[DefectReported] = []
        self.submissions: set[str] = set()

    def take(self, event: Event) -> None:
        self.submissions.add(event.submission)
        match event:
            case Imported():
                self._new_package(event.package)
                self.makers |= set(event.makers)
                self.replaced = set(self.order)
            case Assigned():
                self.assigned[event.person] = event.as_role
            case Unassigned():
                self.assigned.pop(event.person, None)
                self.round_reviewers = tuple(p for p in self.round_reviewers if p != event.person)
            case Waived():
                self.waivers.append(event)
            case RoundOpened():
                self.round = event.round
                self.round_reviewers = event.reviewers
                self.due = event.due
                self.signatures.clear()
            case PlanLocked() | PlanAmended() | ReviewSubmitted():
                self._reviewed(event)
            case FindingWithdrawn():
                self._end(event.finding, "withdrawn", event.reason)
            case FindingDismissed():
                self._end(event.finding, "dismissed", event.reason)
            case Proposed():
                for ref in event.changes:
                    self._put_up(ref, event)
            case GateRan():
                self.gate = event
            case Decided():
                self._decided(event)
            case VetoLifted():
                self._lifted(event)
            case Adjudicated():
                self.adjudications[event.change] = event
            case Applied():
                self.applied |= set(event.changes)
                self.units |= event.units
                self._new_package(event.package)
                for finding in event.resolved:
                    self._end(finding, "resolved", "applied")
            case Signed():
                if event.package == self.package:
                    self.signatures[event.actor] = event
            case Released():
                self.releases.append(event)
            case DefectReported():
                self.defects.append(event)

    def ref(self, change: str) -> ChangeRef | None:
        """The change as it was last put up; None where it never was."""
        found = self.refs.get(change)
        return found[0] if found else None

    def _put_up(self, ref: ChangeRef, event: Proposed) -> None:
        if ref.change in self.refs:
            # Put up again, for instance after it was applied and taken back: it is decided anew; a veto still stands.
            self.order.remove(ref.change)
            self.applied.discard(ref.change)
            self.replaced.discard(ref.change)
            self.decisions.pop(ref.change, None)
            self.adjudications.pop(ref.change, None)
            self.units.pop(ref.unit, None)
        self.order.append(ref.change)
        self.refs[ref.change] = (ref, event)

    def _new_package(self, package: str) -> None:
        if package != self.package:
            # A signature is for the bytes that were signed.
            self.signatures.clear()
        self.package = package

    def _reviewed(self, event: PlanLocked | PlanAmended | ReviewSubmitted) -> None:
        key = (event.round, event.actor)
        before = self.reviews.get(key, Review(event.actor, event.round))
        plan = event.plan if isinstance(event, PlanLocked) else before.plan
        words = (*before.amendments, event.text) if isinstance(event, PlanAmended) else before.amendments
        submitted = event if isinstance(event, ReviewSubmitted) else before.submitted
        self.reviews[key] = Review(event.actor, event.round, plan, words, submitted)
        if isinstance(event, ReviewSubmitted):
            for finding in event.findings:
                self.findings.setdefault(finding.id, FindingState(finding, event.actor, event.round))
            for verdict in event.verdicts:
                if verdict.verdict == "unsafe" and not self._has_veto("", event.actor):
                    reason = verdict.comment or f"{verdict.dimension.replace('_', ' ')} judged unsafe"
                    self.vetoes.append(Veto("", event.actor, reason, event.round))

    def _decided(self, event: Decided) -> None:
        self.decisions.setdefault(event.change, []).append(event)
        # What was settled was what had been said until then.
        self.adjudications.pop(event.change, None)
        if event.decision == "veto" and not self._has_veto(event.change, event.actor):
            self.vetoes.append(Veto(event.change, event.actor, event.reason, event.round))

    def _lifted(self, event: VetoLifted) -> None:
        self.vetoes = [v for v in self.vetoes if (v.change, v.owner) != (event.change, event.owner)]
        if not event.change:
            return
        self.adjudications.pop(event.change, None)
        # Lifted by its owner: they decide anew. Lifted over their head: what is left of the veto is their rejection.
        kept = []
        for decision in self.decisions.get(event.change, ()):
            if decision.actor == event.owner and decision.decision == "veto":
                if event.actor == event.owner:
                    continue
                decision = decision.model_copy(update={"decision": "reject"})
            kept.append(decision)
        self.decisions[event.change] = kept

    def _has_veto(self, change: str, owner: str) -> bool:
        return any((veto.change, veto.owner) == (change, owner) for veto in self.vetoes)

    def _end(self, finding: str, end: Literal["resolved", "withdrawn", "dismissed"], why: str) -> None:
        state = self.findings.get(finding)
        if state and state.open:
            self.findings[finding] = FindingState(state.finding, state.by, state.round, end, why)

    def state(self) -> ReviewState:
        changes = {id: self._change(id) for id in self.order}
        # A change that fell with its group was not rejected itself: it may come again without what it needed.
        rejected = frozenset(id for id, change in changes.items() if change.status == "rejected")
        _decide_groups(changes)
        return ReviewState(
            task=self.task,
            round=self.round,
            package=self.package,
            makers=frozenset(self.makers),
            assigned=dict(self.assigned),
            waivers=tuple(self.waivers),
            round_reviewers=self.round_reviewers,
            due=self.due,
            reviews=dict(self.reviews),
            findings=dict(self.findings),
            changes=changes,
            proposals={proposed.proposal: proposed for _, proposed in self.refs.values()},
            # A veto on a change that was overtaken by other bytes, or that nobody wants, has nothing left to hold up.
            vetoes=tuple(
                v
                for v in self.vetoes
                if not v.change
                or (v.change in changes and changes[v.change].status != "outdated" and v.change not in rejected)
            ),
            gate=self.gate if self.gate and self.gate.package == self.package else None,
            signatures=dict(self.signatures),
            releases=tuple(self.releases),
            defects=tuple(self.defects),
            rejected=rejected,
            submissions=frozenset(self.submissions),
        )

    def _change(self, id: str) -> ChangeState:
        ref, proposed = self.refs[id]
        over_these_bytes: dict[str, Decided] = {}
        outdated: list[Decided] = []
        for decision in self.decisions.get(id, ()):
            if (decision.base, decision.result) == (ref.base, ref.result):
                over_these_bytes[decision.actor] = decision
            else:
                outdated.append(decision)
        adjudicated = self.adjudications.get(id)
        if adjudicated and (adjudicated.base, adjudicated.result) != (ref.base, ref.result):
            adjudicated = None
        # Nobody decides on a change that they made by hand.
        must = [person for person in self._deciders() if not (ref.made_by_hand and person == proposed.made_by)]
        waiting = tuple(p for p in must if p not in over_these_bytes or over_these_bytes[p].decision == "discuss")
        status = self._status(id, ref, {p: over_these_bytes[p] for p in must if p in over_these_bytes}, waiting)
        # A ruling against the change also holds where those who were against it are not assigned any more; what all had
        # approved, and what was ruled on with its group only, was not rejected itself.
        differed = any(decision.decision != "approve" for decision in over_these_bytes.values())
        against = adjudicated is not None and adjudicated.decision == "reject" and differed
        if adjudicated and (status == "split" or (status == "accepted" and against)):
            status = "accepted" if adjudicated.decision == "approve" else "rejected"
        return ChangeState(
            ref, proposed.proposal, proposed.made_by, proposed.round, status, over_these_bytes, tuple(outdated),
            waiting if status in ("undecided", "blocked") else (), adjudicated,
        )  # fmt: skip

    def _deciders(self) -> list[str]:
        return [person for person, role in self.assigned.items() if role != "adjudicator"]

    def _status(
        self, id: str, ref: ChangeRef, decisions: Mapping[str, Decided], waiting: tuple[str, ...]
    ) -> ChangeStatus:
        if id in self.applied:
            return "applied"
        words = [decision.decision for decision in decisions.values()]
        done = bool(words) and not waiting
        # A veto is a rejection too: what nobody wants is closed, without its owner having to say that it is safe now.
        if done and all(word in ("reject", "veto") for word in words):
            return "rejected"
        if id in self.replaced or self.units.get(ref.unit, ref.base) != ref.base:
            return "outdated"
        if self._vetoed(id):
            return "blocked"
        if not done:
            return "undecided"
        return "accepted" if all(word == "approve" for word in words) else "split"

    def _vetoed(self, change: str) -> bool:
        return any(veto.change == change for veto in self.vetoes)


def _decide_groups(changes: dict[str, ChangeState]) -> None:
    """Dependent changes stand or fall together: a group is as far as its least decided member, and what is left of it
    where other bytes have overtaken one of them is outdated too."""
    order: tuple[ChangeStatus, ...] = ("outdated", "blocked", "undecided", "split", "rejected", "accepted")
    groups: dict[tuple[str, str], list[str]] = {}
    for id, change in changes.items():
        if change.ref.group:
            groups.setdefault((change.proposal, change.ref.group), []).append(id)
    for members in groups.values():
        found = [changes[id].status for id in members]
        if "applied" in found or len(set(found)) == 1:
            continue
        worst = next(status for status in order if status in found)
        for id in members:
            c = changes[id]
            if worst == "outdated" and c.status == "rejected":
                continue
            waiting = c.waiting_for if worst in ("undecided", "blocked") else ()
            changes[id] = ChangeState(
                c.ref, c.proposal, c.made_by, c.round, worst, c.decisions, c.outdated, waiting, c.adjudicated
            )
