"""Stage 1: own plan, checklist, findings; sealed until everybody's is in, then committed each under its author."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from authoring.edits import unit_bytes
from authoring.seat import Done, Made, Seat, Snapshot, Stamp, event
from tasks.errors import NotAllowed, UsageError
from tasks.review import events as ev
from tasks.review.anchoring import locate
from tasks.review.checklist import checklist
from tasks.review.permissions import refuse_unverified, require
from tasks.review.state import ReviewState
from tasks.statedb import Sealed


class Judging(Seat):
    """A reviewer's judgement of a task."""

    def lock_plan(self, task: str, plan: Mapping[str, Any], *, review_id: str | None = None) -> Done:
        """Lock one's own plan before the checkpoints open. It cannot be changed, only amended."""

        def build(state: ReviewState, stamp: Stamp) -> ev.Event:
            locked: ev.PlanLocked = event(ev.PlanLocked, stamp, package=state.package, plan=plan)
            return locked

        return self._seal(task, "plan", build, review_id)

    def amend_plan(self, task: str, text: str, *, review_id: str | None = None) -> Done:
        """Add a correction to the locked plan; both stay visible."""
        if not self._sealed(task, "plan"):
            raise UsageError("there is no locked plan to amend.", remedy="Lock your plan first.")
        count = sum(one.kind.startswith("amendment") for one in self._sealed_all(task))
        return self._seal(
            task, f"amendment-{count + 1}", lambda state, stamp: event(ev.PlanAmended, stamp, text=text), review_id
        )

    def submit_review(self, task: str, review: Mapping[str, Any], *, review_id: str | None = None) -> Done:
        """Submit the checklist. It stays sealed until the last reviewer of the round has submitted; then all are
        committed, each under its own author, in one move of the branch."""
        if not self._sealed(task, "plan"):
            raise UsageError("the plan is not locked yet.", remedy="Lock your plan, then judge the task.")

        def build(state: ReviewState, stamp: Stamp) -> ev.Event:
            minutes = self.db.active_minutes(self.actor.id, task, state.round)
            submitted: ev.ReviewSubmitted = event(
                ev.ReviewSubmitted, stamp,
                package=state.package, checklist=checklist().version,
                **({"active_minutes": minutes} | {**review}),
            )  # fmt: skip
            self._complete(task, submitted)
            return submitted

        return self._seal(task, "review", build, review_id)

    def withdraw(self, task: str, finding: str, reason: str, *, review_id: str | None = None) -> Done:
        """Take one's own finding back, with a reason."""

        def build(at: Snapshot, stamp: Stamp) -> Made:
            found = self.open_finding(at.state, finding)
            if found != self.actor.id:
                raise NotAllowed("this finding is somebody else's.", remedy="Only its author withdraws it.")
            return [event(ev.FindingWithdrawn, stamp, finding=finding, reason=reason)], {}

        return self.submit(task, "withdraw_finding", "Withdraw a finding", build, review_id)

    def _seal(
        self, task: str, kind: str, build: Callable[[ReviewState, Stamp], ev.Event], review_id: str | None
    ) -> Done:
        require(self.actor, "review")
        with self.store.at() as view:
            at = self.snapshot(view, task)
            state = at.state
            refuse_unverified(at.meta.data_class, verified=self.verified)
            self.no_conflict(self.actor, at)
        if self.actor.id not in state.round_reviewers:
            raise NotAllowed(f"{self.actor.name} is not asked in round {state.round} of this task.")
        role = require(self.actor, "review", assigned=state.assigned.get(self.actor.id))
        submission = review_id or ev.new_id()
        before = next((s for s in self._sealed_all(task) if s.kind == kind or s.submission == submission), None)
        if before:
            if before.kind.partition("-")[0] != kind.partition("-")[0]:
                raise UsageError("this Review-Id is that of another submission.", remedy="Mint a new one.")
            if before.submission != submission:
                raise UsageError(f"your {kind} of round {state.round} is in already; it cannot be changed.")
            return Done(self.finish_round(task), ev.parse_events(before.events), again=True)
        made = build(state, Stamp(submission, task, self.actor.id, role, self.now(), state.round))
        sealed = Sealed(
            submission, self.actor.id, task, state.round, kind, ev.dump_events([made]), made.at, opened=False
        )
        self.db.seal(sealed)
        kept = next((s for s in self._sealed_all(task) if s.kind == kind), None)
        if kept is None or kept.submission != submission:
            raise UsageError(f"your {kind} of round {state.round} is in already; it cannot be changed.")
        return Done(self.finish_round(task), ev.parse_events(kept.events))

    def _sealed_all(self, task: str) -> list[Sealed]:
        round = self.state(task).round
        return [one for one in self.db.sealed(task, round) if one.person == self.actor.id]

    def _sealed(self, task: str, kind: str) -> bool:
        return any(one.kind == kind for one in self._sealed_all(task))

    def _complete(self, task: str, submitted: ev.ReviewSubmitted) -> None:
        """Raise UsageError that lists everything a submission still lacks, so that it is mended in one go."""
        with self.store.at() as view:
            at = self.snapshot(view, task)
            ids = {checkpoint.id for checkpoint in at.task.checkpoints}
            wrong = [*_ratings(submitted, ids), *_verdicts(submitted)]
            wrong += [why for finding in submitted.findings if (why := _misplaced(finding, at, ids))]
        if wrong:
            raise UsageError("not complete: " + "; ".join(wrong) + ".")


def _ratings(submitted: ev.ReviewSubmitted, ids: set[str]) -> list[str]:
    rated = [rating.checkpoint for rating in submitted.ratings]
    on_checkpoint = {f.anchor.checkpoint for f in submitted.findings if isinstance(f.anchor, ev.CheckpointAnchor)}
    out = []
    if missing := sorted(ids - set(rated)):
        out.append(f"not rated yet: {', '.join(missing)}")
    if strange := sorted({id for id in rated if id not in ids or rated.count(id) > 1}):
        out.append(f"rated twice, or no checkpoint of this task: {', '.join(strange)}")
    if unsaid := [
        rating.checkpoint
        for rating in submitted.ratings
        if rating.rating in ("wrong", "not gradable")
        and not rating.comment.strip()
        and rating.checkpoint not in on_checkpoint
    ]:
        out.append(f"rated wrong or not gradable without saying why: {', '.join(unsaid)}")
    if unknown := sorted({tick.checkpoint for tick in submitted.ticks} - ids):
        out.append(f"examples ticked of what is no checkpoint: {', '.join(unknown)}")
    return out


def _verdicts(submitted: ev.ReviewSubmitted) -> list[str]:
    questions = {one.id: {question.id for question in one.questions} for one in checklist().dimensions}
    out = []
    for verdict in submitted.verdicts:
        name = verdict.dimension.replace("_", " ")
        found = any(finding.dimension == verdict.dimension for finding in submitted.findings)
        if verdict.verdict in ("needs change", "unsafe") and not found:
            out.append(f"{name} is judged '{verdict.verdict}' without a finding that says what is wrong")
        if strange := sorted(set(verdict.answers) - questions[verdict.dimension]):
            out.append(f"{name} has no question {', '.join(strange)}")
    return out


def _misplaced(finding: ev.Finding, at: Snapshot, checkpoints: set[str]) -> str:
    """Why a finding's anchor holds on to nothing, or ""; a comment whose place is lost would be a lost comment."""
    match finding.anchor:
        case ev.TextAnchor() as anchor:
            data = at.files.get(anchor.path)
            if data is None or locate(anchor, data.decode("utf-8", "replace")) is None:
                return f"a finding quotes words that do not stand in {anchor.path}"
        case ev.ResourceAnchor() as anchor:
            kind, _, id = anchor.ref.partition("/")
            if unit_bytes(at.files, f"chart/{kind}.ndjson#{id}") is None:
                return f"a finding is on {anchor.ref}, which is not in the chart"
        case ev.CheckpointAnchor() as anchor:
            if anchor.checkpoint not in checkpoints:
                return f"a finding is on checkpoint {anchor.checkpoint}, which is not there"
    return ""
