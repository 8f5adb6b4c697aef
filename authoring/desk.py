"""What people do to a task under review: each function asks whether they may, checks, and commits one submission.

A `Desk` is one person at one workspace. Every change of a task's state goes through here, from a page or a shell
alike. A submission has a Review-Id that its caller mints once: the same submission twice is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from authoring.gate import GateResult
from authoring.proposals import Prepared, Proposal, dump_proposal, file_hash, path_in_package, prepare
from tasks.errors import NotAllowed, UsageError
from tasks.package import Task, load
from tasks.people import Person, Role, person
from tasks.review import events as ev
from tasks.review.checklist import checklist
from tasks.review.permissions import Action, conflict, covers, refuse_unverified, require
from tasks.review.signoff import may_sign
from tasks.review.state import ChangeState, ReviewState, fold
from tasks.statedb import Sealed, StateDb
from tasks.store import Identity, Store, Submission, View
from tasks.workspace import Workspace


@dataclass(frozen=True)
class Snapshot:
    """One task as it stands at one commit. Files are read when asked for."""

    task_id: str
    view: View

    @cached_property
    def events(self) -> tuple[ev.Event, ...]:
        data = self.view.read(f"{self.task_id}/{ev.FILE}") or b""
        return ev.parse_events(data, where=f"{self.task_id}/{ev.FILE}")

    @cached_property
    def state(self) -> ReviewState:
        return fold(self.task_id, self.events)

    @cached_property
    def files(self) -> dict[str, bytes]:
        return self.view.files(self.task_id)

    @cached_property
    def task(self) -> Task:
        return load(self.files, where=self.task_id)


@dataclass(frozen=True)
class Done:
    """What a submission came to. `commit` "" where it stays sealed; `again` where it had been there before."""

    commit: str
    events: tuple[ev.Event, ...]
    again: bool = False


#: Makes the events of a submission on the state it will stand on, and the files that change with them.
Build = Callable[[Snapshot, "Stamp"], "tuple[Sequence[ev.Event], Mapping[str, bytes | None]]"]


@dataclass(frozen=True)
class Stamp:
    """The fields that every event of a submission shares."""

    submission: str
    task: str
    actor: str
    role: Role
    at: datetime
    round: int

    @property
    def fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("submission", "task", "actor", "role", "at", "round")}


class Desk:
    """A person at a workspace. Every method raises NotAllowed, UsageError or StoreError with nothing written."""

    def __init__(
        self,
        workspace: Workspace,
        store: Store,
        actor: Person,
        *,
        verified: bool = False,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.workspace, self.store, self.actor = workspace, store, actor
        self.db = StateDb(workspace.state_db)
        self._verified, self._now = verified, now

    # Reading

    def state(self, task: str) -> ReviewState:
        """The state of a task's review, as far as the repository shows it to everybody."""
        with self.store.at() as view:
            return self._snapshot(view, task).state

    def my_review(self, task: str) -> tuple[ev.Event, ...]:
        """One's own events of this round, sealed or not: what the submission reads back."""
        state = self.state(task)
        sealed = [s for s in self.db.sealed(task, state.round) if s.person == self.actor.id]
        return tuple(event for one in sealed for event in ev.parse_events(one.events))

    def waiting_for(self, task: str) -> tuple[str, ...]:
        """Who has not submitted in this round, sealed submissions counted."""
        state = self.state(task)
        sealed = {s.person for s in self.db.sealed(task, state.round) if s.kind == "review"}
        return tuple(p for p in state.round_reviewers if p not in sealed and p not in state.submitted)

    # The lead

    def assign(self, task: str, person_id: str, as_role: str, *, review_id: str | None = None) -> Done:
        """Assign a reviewer, pharmacist or adjudicator. They may not have made the task, nor declared a conflict; a
        reviewer covers the task's group unless that was waived."""
        other = person(self._people, person_id)

        def build(at: Snapshot, stamp: Stamp) -> tuple[Sequence[ev.Event], Mapping[str, bytes | None]]:
            if as_role not in ("reviewer", "pharmacist", "adjudicator") or as_role not in other.roles:
                raise UsageError(f"{other.name} is no {as_role}.", remedy=f"Roles: {', '.join(other.roles)}.")
            self._no_conflict(other, at)
            waived = any(w.person == other.id and w.rule == "same_group" for w in at.state.waivers)
            same_group = self.workspace.settings.review.same_group
            if as_role == "reviewer" and same_group and not waived and not covers(other, at.task.meta.specialty):
                raise NotAllowed(
                    f"{other.name} does not cover {at.task.meta.group}.",
                    remedy="Choose another reviewer, or waive the rule with a reason.",
                )
            if at.state.assigned.get(other.id) == as_role:
                raise UsageError(f"{other.name} is assigned as {as_role} already.")
            return [ev.Assigned(**stamp.fields, person=other.id, as_role=as_role)], {}

        return self._submit(task, "assign", f"Assign {other.name} as {as_role}", build, review_id)

    def unassign(self, task: str, person_id: str, reason: str, *, review_id: str | None = None) -> Done:
        """Take an assignment back, with a reason."""

        def build(at: Snapshot, stamp: Stamp) -> tuple[Sequence[ev.Event], Mapping[str, bytes | None]]:
            if person_id not in at.state.assigned:
                raise UsageError(f"{person_id} is not assigned to this task.")
            return [_event(ev.Unassigned, stamp, person=person_id, reason=reason)], {}

        return self._submit(task, "assign", f"Unassign {person_id}", build, review_id)

    def waive(self, task: str, person_id: str, reason: str, *, review_id: str | None = None) -> Done:
        """Let somebody review who does not cover the task's group; printed in the release."""
        other = person(self._people, person_id)

        def build(at: Snapshot, stamp: Stamp) -> tuple[Sequence[ev.Event], Mapping[str, bytes | None]]:
            return [_event(ev.Waived, stamp, person=other.id, rule="same_group", reason=reason)], {}

        return self._submit(task, "waive", f"Waive the group rule for {other.name}", build, review_id)

    def open_round(self, task: str, *, review_id: str | None = None) -> Done:
        """Ask all assigned reviewers for their judgement of the task as it stands."""

        def build(at: Snapshot, stamp: Stamp) -> tuple[Sequence[ev.Event], Mapping[str, bytes | None]]:
            state, wanted = at.state, self.workspace.settings.review.reviewers
            if state.round_is_open:
                raise UsageError(f"round {state.round} is open; waiting for {', '.join(self.waiting_for(task))}.")
            if len(state.reviewers) < wanted:
                raise UsageError(
                    f"{len(state.reviewers)} of {wanted} reviewers are assigned.", remedy="Assign more, then open."
                )
            if state.live_changes:
                raise UsageError("changes wait for decisions or application.", remedy="Finish them first.")
            opened = {**stamp.fields, "round": state.round + 1}
            package = ev.package_hash(at.files)
            return [ev.RoundOpened(**opened, package=package, reviewers=state.reviewers)], {}

        return self._submit(task, "open_round", "Open a round of review", build, review_id)

    def dismiss(self, task: str, finding: str, reason: str, *, review_id: str | None = None) -> Done:
        """End a finding without a change, with a reason."""

        def build(at: Snapshot, stamp: Stamp) -> tuple[Sequence[ev.Event], Mapping[str, bytes | None]]:
            self._open_finding(at.state, finding)
            return [_event(ev.FindingDismissed, stamp, finding=finding, reason=reason)], {}

        return self._submit(task, "dismiss_finding", "Dismiss a finding", build, review_id)

    # Stage 1: sealed until all are in

    def lock_plan(self, task: str, plan: Mapping[str, Any], *, review_id: str | None = None) -> Done:
        """Lock one's own plan before the checkpoints open. It cannot be changed, only amended."""

        def build(state: ReviewState, stamp: Stamp) -> ev.Event:
            return _event(ev.PlanLocked, stamp, package=state.package, plan=plan)

        return self._seal(task, "plan", build, review_id)

    def amend_plan(self, task: str, text: str, *, review_id: str | None = None) -> Done:
        """Add a correction to the locked plan; both stay visible."""
        if not self._sealed(task, "plan"):
            raise UsageError("there is no locked plan to amend.", remedy="Lock your plan first.")
        count = sum(one.kind.startswith("amendment") for one in self._sealed_all(task))
        return self._seal(
            task, f"amendment-{count + 1}", lambda state, stamp: _event(ev.PlanAmended, stamp, text=text), review_id
        )

    def submit_review(self, task: str, review: Mapping[str, Any], *, review_id: str | None = None) -> Done:
        """Submit the checklist. It stays sealed until the last reviewer of the round has submitted; then all are
        committed, each under its own author, in one move of the branch."""
        if not self._sealed(task, "plan"):
            raise UsageError("the plan is not locked yet.", remedy="Lock your plan, then judge the task.")

        def build(state: ReviewState, stamp: Stamp) -> ev.Event:
            minutes = self.db.active_minutes(self.actor.id, task, state.round)
            event: ev.Event = _event(
                ev.ReviewSubmitted, stamp,
                package=state.package, checklist=checklist().version,
                **({"active_minutes": minutes} | {**review}),
            )  # fmt: skip
            self._complete(task, event)
            return event

        done = self._seal(task, "review", build, review_id)
        opened = self.open_sealed(task)
        return Done(opened, done.events, done.again)

    def open_sealed(self, task: str) -> str:
        """Commit the sealed submissions of this round if all are in; the new head, or "". Safe to call at any time:
        after a crash it finishes what was begun, and what is committed already is not committed again."""
        sealed: list[Sealed] = []

        def build(view: View) -> Sequence[Submission]:
            at = self._snapshot(view, task)
            sealed[:] = self.db.sealed(task, at.state.round)
            in_hand = {one.person for one in sealed if one.kind == "review"}
            if not at.state.round_reviewers or set(at.state.round_reviewers) - in_hand - set(at.state.submitted):
                sealed.clear()
                return []
            lines = view.read(f"{task}/{ev.FILE}") or b""
            submissions = []
            for one in sealed:
                if one.submission in at.state.submissions:
                    continue
                lines += one.events
                submissions.append(self._unsealed(one, lines))
            return submissions

        hashes = self.store.submit(build)
        self.db.mark_opened([one.submission for one in sealed])
        return hashes[-1] if hashes else ""

    def withdraw(self, task: str, finding: str, reason: str, *, review_id: str | None = None) -> Done:
        """Take one's own finding back, with a reason."""

        def build(at: Snapshot, stamp: Stamp) -> tuple[Sequence[ev.Event], Mapping[str, bytes | None]]:
            found = self._open_finding(at.state, finding)
            if found != self.actor.id:
                raise NotAllowed("this finding is somebody else's.", remedy="Only its author withdraws it.")
            return [_event(ev.FindingWithdrawn, stamp, finding=finding, reason=reason)], {}

        return self._submit(task, "withdraw_finding", "Withdraw a finding", build, review_id)

    # Stages 2 and 3

    def propose(self, task: str, proposal: Proposal, *, review_id: str | None = None) -> tuple[Done, Prepared]:
        """Put a proposal up for decision. Raises CompositionError for edits that do not apply to the task as it is."""
        prepared: list[Prepared] = []

        def build(at: Snapshot, stamp: Stamp) -> tuple[Sequence[ev.Event], Mapping[str, bytes | None]]:
            if at.state.round_is_open:
                raise UsageError("reviews are still coming in.", remedy="Propose when all have submitted.")
            package = ev.package_hash(at.files)
            if proposal.package != package:
                raise UsageError(
                    "the proposal was made on an earlier state of the task.", remedy="Make it again on the present one."
                )
            unknown = {f for one in proposal.edits for f in one.findings} - set(at.state.findings)
            if unknown:
                raise UsageError(f"no such finding: {', '.join(sorted(unknown))}.")
            ready = prepare(at.files, proposal, rejected=at.state.rejected)
            prepared[:] = [ready]
            event = _event(
                ev.Proposed, stamp,
                proposal=proposal.id, file=file_hash(proposal), package=package, made_by=proposal.made_by,
                changes=ready.changes, unaddressed=tuple(one.finding for one in proposal.unaddressed),
            )  # fmt: skip
            return [event], {path_in_package(proposal.id): dump_proposal(proposal)}

        count = len(proposal.edits)
        subject = f"Propose {count} change{'s' if count != 1 else ''} by {proposal.made_by}"
        done = self._submit(task, "propose", subject, build, review_id, {"Proposal": proposal.id})
        if not prepared:
            raise UsageError("this proposal was put up before.")
        return done, prepared[0]

    def decide(self, task: str, decisions: Sequence[Mapping[str, Any]], *, review_id: str | None = None) -> Done:
        """Decide on changes, all in one submission: `change`, `base`, `result` (as seen), `decision`, `reason`, `harm`.

        Raises UsageError for a change that is no longer what was seen, saying so, and for a veto that stands.
        """

        def build(at: Snapshot, stamp: Stamp) -> tuple[Sequence[ev.Event], Mapping[str, bytes | None]]:
            if self.actor.id not in at.state.reviewers:
                raise NotAllowed(f"{self.actor.name} is not assigned to this task.")
            self._no_conflict(self.actor, at)
            events = [_event(ev.Decided, stamp, **one) for one in decisions]
            if not events:
                raise UsageError("nothing was decided.")
            for event in events:
                self._may_decide(at.state, event)
            return events, {}

        words = [str(one.get("decision")) for one in decisions]
        subject = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
        return self._submit(task, "decide", f"Decide: {subject}", build, review_id)

    def lift_veto(
        self, task: str, change: str, owner: str, owner_says: str, reason: str, *, review_id: str | None = None
    ) -> Done:
        """Lift one's own veto, or as adjudicator another's, with what its owner answered. `change` "" = on the task."""

        def build(at: Snapshot, stamp: Stamp) -> tuple[Sequence[ev.Event], Mapping[str, bytes | None]]:
            if not any((veto.change, veto.owner) == (change, owner) for veto in at.state.vetoes):
                raise UsageError("there is no such veto.", remedy="`authoring status` lists those that stand.")
            mine = owner == self.actor.id
            if not mine and not self.actor.has("adjudicator"):
                raise NotAllowed("a veto is lifted by its owner, or by an adjudicator.")
            if mine != (owner_says == "lifted it"):
                raise UsageError("say 'lifted it' for your own veto, and for another's what its owner answered.")
            role: Role = stamp.role if mine else "adjudicator"
            fields = {**stamp.fields, "role": role}
            return [_made(ev.VetoLifted, fields, change=change, owner=owner, owner_says=owner_says, reason=reason)], {}

        return self._submit(task, "lift_veto", f"Lift the veto of {owner}", build, review_id)

    def adjudicate(self, task: str, change: str, decision: str, reason: str, *, review_id: str | None = None) -> Done:
        """Settle a split decision."""

        def build(at: Snapshot, stamp: Stamp) -> tuple[Sequence[ev.Event], Mapping[str, bytes | None]]:
            self._no_conflict(self.actor, at)
            found = self._change(at.state, change)
            if found.status != "split":
                raise UsageError(f"this change is {found.status}, not split.")
            if found.made_by == self.actor.id or self.actor.id in found.decisions:
                raise NotAllowed("who made a change or decided on it does not adjudicate it.")
            ref = found.ref
            members = [c for c in at.state.changes.values() if ref.group and c.ref.group == ref.group
                       and c.proposal == found.proposal and c.status == "split"] or [found]  # fmt: skip
            return [
                _event(
                    ev.Adjudicated, stamp, change=one.ref.change, base=one.ref.base, result=one.ref.result,
                    decision=decision, reason=reason,
                )
                for one in members
            ], {}  # fmt: skip

        return self._submit(task, "adjudicate", f"Adjudicate: {decision}", build, review_id)

    # Sign-off and after

    def record_gate(self, task: str, result: GateResult, *, review_id: str | None = None) -> Done:
        """Record a gate's result on the task as it stands."""

        def build(at: Snapshot, stamp: Stamp) -> tuple[Sequence[ev.Event], Mapping[str, bytes | None]]:
            if result.package != ev.package_hash(at.files):
                raise UsageError("the task changed while the gate ran.", remedy="Run it again.")
            return [
                _event(
                    ev.GateRan, stamp, package=result.package, gate=result.version, passed=result.passed,
                    failures=result.failures,
                )
            ], {}  # fmt: skip

        word = "passed" if result.passed else "failed"
        return self._submit(task, "run_gate", f"Gate {word}", build, review_id, {"Verdict": word})

    def sign(self, task: str, statement: str, *, review_id: str | None = None) -> Done:
        """Sign exactly these bytes. Raises UsageError that lists what is still missing."""

        def build(at: Snapshot, stamp: Stamp) -> tuple[Sequence[ev.Event], Mapping[str, bytes | None]]:
            if self.actor.id not in at.state.reviewers:
                raise NotAllowed(f"{self.actor.name} is not assigned to this task.")
            self._no_conflict(self.actor, at)
            if unmet := may_sign(at.state, release_faults=at.task.missing_for_release()):
                raise UsageError("not yet: " + "; ".join(f"{one.text}: {one.todo}" for one in unmet))
            if self.actor.id in at.state.signatures:
                raise UsageError(f"{self.actor.name} has signed this already.")
            return [_event(ev.Signed, stamp, package=ev.package_hash(at.files), statement=statement)], {}

        return self._submit(task, "sign", "Sign off", build, review_id)

    def report_defect(
        self, task: str, version: str, text: str, checkpoint: str = "", *, review_id: str | None = None
    ) -> Done:
        """Report a fault of a released version. It marks results; it changes none."""

        def build(at: Snapshot, stamp: Stamp) -> tuple[Sequence[ev.Event], Mapping[str, bytes | None]]:
            released = [one.version for one in at.state.releases]
            if version not in released:
                raise UsageError(f"version {version} was never released.", remedy=f"Released: {', '.join(released)}.")
            return [_event(ev.DefectReported, stamp, version=version, text=text, checkpoint=checkpoint)], {}

        return self._submit(task, "report_defect", f"Report a defect of version {version}", build, review_id)

    # What all of them share

    @cached_property
    def _people(self) -> tuple[Person, ...]:
        return self.workspace.settings.people

    def _snapshot(self, view: View, task: str) -> Snapshot:
        if task not in view.tasks():
            raise UsageError(f"there is no task '{task}'.", remedy=f"There are: {', '.join(view.tasks())}.")
        return Snapshot(task, view)

    def _submit(
        self,
        task: str,
        action: Action,
        subject: str,
        build: Build,
        review_id: str | None,
        trailers: Mapping[str, str] | None = None,
    ) -> Done:
        """One submission by this person: permission, checks on the newest state, events appended, one commit."""
        role = require(self.actor, action)
        submission = review_id or ev.new_id()
        made: list[ev.Event] = []
        again: list[bool] = []

        def make(view: View) -> Sequence[Submission]:
            at = self._snapshot(view, task)
            again[:] = [submission in at.state.submissions]
            if again[0]:
                made[:] = [event for event in at.events if event.submission == submission]
                return []
            refuse_unverified(at.task.meta.data_class, verified=self._verified)
            stamp = Stamp(submission, task, self.actor.id, role, self._now(), at.state.round)
            events, files = build(at, stamp)
            made[:] = events
            lines = (view.read(f"{task}/{ev.FILE}") or b"") + ev.dump_events(events)
            changes = {f"{task}/{path}": data for path, data in files.items()} | {f"{task}/{ev.FILE}": lines}
            rounds = str(max((event.round for event in events), default=at.state.round))
            marks = {"Task": task, "Round": rounds, "Review-Id": submission} | {**(trailers or {})}
            return [Submission(self._identity(self.actor), f"{task}: {subject}", changes, marks)]

        hashes = self.store.submit(make)
        return Done(hashes[-1] if hashes else "", tuple(made), again[0])

    def _seal(
        self, task: str, kind: str, build: Callable[[ReviewState, Stamp], ev.Event], review_id: str | None
    ) -> Done:
        role = require(self.actor, "review")
        with self.store.at() as view:
            at = self._snapshot(view, task)
            state = at.state
            refuse_unverified(at.task.meta.data_class, verified=self._verified)
            self._no_conflict(self.actor, at)
        if self.actor.id not in state.round_reviewers:
            raise NotAllowed(f"{self.actor.name} is not asked in round {state.round} of this task.")
        submission = review_id or ev.new_id()
        before = next((s for s in self._sealed_all(task) if s.kind == kind), None)
        if before:
            if before.submission != submission:
                raise UsageError(f"your {kind} of round {state.round} is in already; it cannot be changed.")
            return Done("", ev.parse_events(before.events), again=True)
        event = build(state, Stamp(submission, task, self.actor.id, role, self._now(), state.round))
        sealed = Sealed(
            submission, self.actor.id, task, state.round, kind, ev.dump_events([event]), event.at, opened=False
        )
        self.db.seal(sealed)
        kept = next(s for s in self._sealed_all(task) if s.kind == kind)
        if kept.submission != submission:
            raise UsageError(f"your {kind} of round {state.round} is in already; it cannot be changed.")
        return Done("", ev.parse_events(kept.events))

    def _sealed_all(self, task: str) -> list[Sealed]:
        round = self.state(task).round
        return [one for one in self.db.sealed(task, round) if one.person == self.actor.id]

    def _sealed(self, task: str, kind: str) -> bool:
        return any(one.kind == kind for one in self._sealed_all(task))

    def _unsealed(self, one: Sealed, lines: bytes) -> Submission:
        author = next((p for p in self._people if p.id == one.person), None)
        identity = self._identity(author) if author else Identity(one.person, f"{one.person}@workbench.invalid")
        words = {"plan": "Lock own plan", "review": "Submit review"}.get(one.kind, "Amend own plan")
        marks = {"Task": one.task, "Round": str(one.round), "Review-Id": one.submission}
        return Submission(identity, f"{one.task}: {words}, round {one.round}", {f"{one.task}/{ev.FILE}": lines}, marks)

    def _complete(self, task: str, event: Any) -> None:
        """Every checkpoint is rated, every rating is of a checkpoint, a wrong one says why."""
        with self.store.at() as view:
            ids = [checkpoint.id for checkpoint in self._snapshot(view, task).task.checkpoints]
        rated = [rating.checkpoint for rating in event.ratings]
        if missing := [id for id in ids if id not in rated]:
            raise UsageError(f"not rated yet: {', '.join(missing)}.")
        if strange := sorted({id for id in rated if id not in ids} | {id for id in rated if rated.count(id) > 1}):
            raise UsageError(f"rated twice, or no checkpoint of this task: {', '.join(strange)}.")
        for verdict in event.verdicts:
            has_finding = any(finding.dimension == verdict.dimension for finding in event.findings)
            if verdict.verdict in ("needs change", "unsafe") and not has_finding:
                name = verdict.dimension.replace("_", " ")
                raise UsageError(f"{name} is judged '{verdict.verdict}' without a finding that says what is wrong.")

    def _no_conflict(self, who: Person, at: Snapshot) -> None:
        if why := conflict(who, at.task_id, makers=at.state.makers):
            raise NotAllowed(f"{why}.", remedy="Somebody else has to.")

    def _open_finding(self, state: ReviewState, finding: str) -> str:
        found = state.findings.get(finding)
        if found is None:
            raise UsageError("there is no such finding.", remedy="`authoring status` lists those that are open.")
        if not found.open:
            raise UsageError(f"this finding was {found.end} already.")
        return found.by

    def _change(self, state: ReviewState, change: str) -> ChangeState:
        if change not in state.changes:
            raise UsageError("there is no such change.", remedy="`authoring show` lists them.")
        return state.changes[change]

    def _may_decide(self, state: ReviewState, event: Any) -> None:
        found = self._change(state, event.change)
        ref = found.ref
        if found.status in ("applied", "rejected", "outdated"):
            why = {
                "outdated": f"{ref.unit} was changed since this was proposed; what you saw is no longer what would be "
                "changed",
                "applied": "this change is applied already",
                "rejected": "this change was rejected by all",
            }[found.status]
            raise UsageError(f"{why}.", where=ref.unit, remedy="Look at the task as it stands.")
        if (event.base, event.result) != (ref.base, ref.result):
            raise UsageError(
                "your decision is on other bytes than the change has now.", where=ref.unit, remedy="Look at it again."
            )
        if ref.made_by_hand and found.made_by == self.actor.id:
            raise NotAllowed("nobody decides on a change that they made by hand.", where=ref.unit)
        if event.decision != "veto" and any(
            (veto.change, veto.owner) == (event.change, self.actor.id) for veto in state.vetoes
        ):
            raise UsageError("your veto on this change stands.", where=ref.unit, remedy="Lift it first.")

    @staticmethod
    def _identity(who: Person) -> Identity:
        return Identity(who.name, who.email)


def _event(kind: type[ev.Base], stamp: Stamp, **values: Any) -> Any:
    return _made(kind, stamp.fields, **values)


def _made(kind: type[ev.Base], fields: Mapping[str, Any], **values: Any) -> Any:
    """An event, or one message about what in it is wrong."""
    try:
        return kind.model_validate({**fields, **values})
    except ValidationError as fault:
        said = []
        for error in fault.errors()[:5]:
            place = ".".join(str(part) for part in error["loc"])
            message = error["msg"].removeprefix("Value error, ")
            said.append(f"{place}: {message}" if place else message)
        raise UsageError("; ".join(said) + ".") from None
