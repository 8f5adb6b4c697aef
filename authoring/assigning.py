"""The lead's part: who judges a task, when they are asked, and which rule is waived for whom."""

from __future__ import annotations

from datetime import date, timedelta

from authoring.seat import Done, Made, Seat, Snapshot, Stamp, event
from tasks.errors import NotAllowed, UsageError
from tasks.people import person
from tasks.review import events as ev
from tasks.review.permissions import covers


class Assigning(Seat):
    """Assignments, waivers, rounds, dismissed findings."""

    def assign(self, task: str, person_id: str, as_role: str, *, review_id: str | None = None) -> Done:
        """Assign a reviewer, pharmacist or adjudicator. They may not have made the task, nor declared a conflict; a
        reviewer covers the task's group unless that was waived."""
        other = person(self.people, person_id)

        def build(at: Snapshot, stamp: Stamp) -> Made:
            if as_role not in ("reviewer", "pharmacist", "adjudicator") or as_role not in other.roles:
                raise UsageError(f"{other.name} is no {as_role}.", remedy=f"Roles: {', '.join(other.roles)}.")
            self.no_conflict(other, at)
            waived = any(w.person == other.id and w.rule == "same_group" for w in at.state.waivers)
            same_group = self.workspace.settings.review.same_group
            if as_role == "reviewer" and same_group and not waived and not covers(other, at.meta.specialty):
                raise NotAllowed(
                    f"{other.name} does not cover {at.meta.group}.",
                    remedy="Choose another reviewer, or waive the rule with a reason.",
                )
            if at.state.assigned.get(other.id) == as_role:
                raise UsageError(f"{other.name} is assigned as {as_role} already.")
            return [ev.Assigned(**stamp.fields, person=other.id, as_role=as_role)], {}

        return self.submit(task, "assign", f"Assign {other.name} as {as_role}", build, review_id)

    def unassign(self, task: str, person_id: str, reason: str, *, review_id: str | None = None) -> Done:
        """Take an assignment back, with a reason."""

        def build(at: Snapshot, stamp: Stamp) -> Made:
            if person_id not in at.state.assigned:
                raise UsageError(f"{person_id} is not assigned to this task.")
            return [event(ev.Unassigned, stamp, person=person_id, reason=reason)], {}

        done = self.submit(task, "assign", f"Unassign {person_id}", build, review_id)
        # The others may have been waiting for just this one.
        self.finish_round(task)
        return done

    def waive(self, task: str, person_id: str, reason: str, *, review_id: str | None = None) -> Done:
        """Let somebody review who does not cover the task's group; printed in the release."""
        other = person(self.people, person_id)

        def build(at: Snapshot, stamp: Stamp) -> Made:
            return [event(ev.Waived, stamp, person=other.id, rule="same_group", reason=reason)], {}

        return self.submit(task, "waive", f"Waive the group rule for {other.name}", build, review_id)

    def open_round(self, task: str, *, due: date | None = None, review_id: str | None = None) -> Done:
        """Ask all assigned reviewers for their judgement of the task as it stands, by a day if one is given."""

        def build(at: Snapshot, stamp: Stamp) -> Made:
            state, wanted = at.state, self.workspace.settings.review.reviewers
            if state.round_is_open:
                raise UsageError(f"round {state.round} is open; waiting for {', '.join(self.still_to_come(state))}.")
            if len(state.reviewers) < wanted:
                raise UsageError(
                    f"{len(state.reviewers)} of {wanted} reviewers are assigned.", remedy="Assign more, then open."
                )
            if state.live_changes:
                raise UsageError("changes wait for decisions or application.", remedy="Finish them first.")
            # A day is over when it is over everywhere.
            if due is not None and due < stamp.at.date() - timedelta(days=1):
                raise UsageError(f"{due.isoformat()} is over.", remedy="Name a day to come, or none.")
            for one in state.reviewers:
                self.no_conflict(person(self.people, one), at)
            opened = {**stamp.fields, "round": state.round + 1}
            package = at.package
            return [ev.RoundOpened(**opened, package=package, reviewers=state.reviewers, due=due)], {}

        return self.submit(task, "open_round", "Open a round of review", build, review_id)

    def dismiss(self, task: str, finding: str, reason: str, *, review_id: str | None = None) -> Done:
        """End a finding without a change, with a reason. Whoever made the task does not: it is a judgement of it."""

        def build(at: Snapshot, stamp: Stamp) -> Made:
            self.no_conflict(self.actor, at)
            self.open_finding(at.state, finding)
            return [event(ev.FindingDismissed, stamp, finding=finding, reason=reason)], {}

        return self.submit(task, "dismiss_finding", "Dismiss a finding", build, review_id)
