"""Stages 2 and 3: proposals are put up, decided change by change, vetoed, lifted and adjudicated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from authoring.edits import unit_of
from authoring.proposals import (
    Prepared,
    Proposal,
    dump_proposal,
    file_hash,
    parse_proposal,
    path_in_package,
    prepare,
)
from authoring.seat import Done, Made, Seat, Snapshot, Stamp, event, identity_of, made
from tasks.errors import NotAllowed, PackageError, UsageError
from tasks.package import faults, load
from tasks.people import Role
from tasks.review import events as ev
from tasks.review.permissions import refuse_unverified, require
from tasks.review.state import ChangeState, ReviewState
from tasks.store import Submission, View


class Deciding(Seat):
    """Proposals and what is decided on them."""

    def bring_in(self, files: Mapping[str, bytes], *, where: str, review_id: str | None = None) -> Done:
        """A new task into the repository; whoever brings it in made it, and so may never judge it.

        Raises PackageError for what is no package, UsageError where there is such a task already.
        """
        role = require(self.actor, "propose")
        kept = {path: data for path, data in files.items() if not path.startswith("reviews/")}
        if wrong := faults(kept, where=where):
            raise PackageError(wrong[0].message, where=wrong[0].place)
        task = load(kept, where=where)
        refuse_unverified(task.meta.data_class, verified=self.verified)
        submission = review_id or ev.new_id()
        imported: list[ev.Event] = []

        def build(view: View) -> Sequence[Submission]:
            if task.id in view.tasks():
                at = self.snapshot(view, task.id)
                imported[:] = [one for one in at.events if one.submission == submission]
                if imported:
                    return []
                raise UsageError(f"there is a task '{task.id}' already.", remedy="Propose changes to it.")
            stamp = Stamp(submission, task.id, self.actor.id, role, self.now(), 0)
            package, version = ev.package_hash(kept), str(task.meta.version)
            imported[:] = [event(ev.Imported, stamp, package=package, version=version, makers=(self.actor.id,))]
            changes = {f"{task.id}/{path}": data for path, data in kept.items()}
            changes[f"{task.id}/{ev.FILE}"] = ev.dump_events(imported)
            marks = {"Task": task.id, "Round": "0", "Review-Id": submission}
            return [Submission(identity_of(self.actor), f"{task.id}: New task: {task.meta.title}", changes, marks)]

        hashes = self.store.submit(build)
        return Done(hashes[-1] if hashes else "", tuple(imported), again=not hashes)

    def propose(self, task: str, proposal: Proposal, *, review_id: str | None = None) -> tuple[Done, Prepared]:
        """Put a proposal up for decision. Raises CompositionError for edits that do not apply to the task as it is.

        Where this Review-Id has put one up already, `again` is set and its changes are given as they were put up then,
        without the package that they came to.
        """
        prepared: list[Prepared] = []

        def build(at: Snapshot, stamp: Stamp) -> Made:
            if at.state.round_is_open:
                raise UsageError("reviews are still coming in.", remedy="Propose when all have submitted.")
            if proposal.by_hand != (proposal.made_by == self.actor.id):
                # Whoever made a change by hand may not decide on it, so that nobody's hand is passed off as another's.
                raise NotAllowed("a proposal by hand is put up by the person who made it, and by nobody else.")
            if not proposal.by_hand and any(one.id == proposal.made_by for one in self.people):
                raise UsageError(f"{proposal.made_by} is a person; a proposal by a person is by hand.")
            package = at.package
            if proposal.package != package:
                raise UsageError(
                    "the proposal was made on an earlier state of the task.", remedy="Make it again on the present one."
                )
            unknown = {f for one in proposal.edits for f in one.findings} - set(at.state.findings)
            if unknown:
                raise UsageError(f"no such finding: {', '.join(sorted(unknown))}.")
            ready = prepare(at.files, proposal, rejected=at.state.rejected)
            prepared[:] = [ready]
            live = {one.ref.change for one in at.state.live_changes}
            if twice := [ref.unit for ref in ready.changes if ref.change in live]:
                raise UsageError(f"this change is up for decision already: {', '.join(twice)}.")
            proposed = event(
                ev.Proposed, stamp,
                proposal=proposal.id, file=file_hash(proposal), package=package, made_by=proposal.made_by,
                changes=ready.changes, unaddressed=tuple(one.finding for one in proposal.unaddressed),
            )  # fmt: skip
            return [proposed], {path_in_package(proposal.id): dump_proposal(proposal)}

        count = len(proposal.edits)
        body = "\n".join(f"- {unit_of(one.edit)}: {one.rationale or 'no reason given'}" for one in proposal.edits)
        subject = f"Propose {count} change{'s' if count != 1 else ''} by {proposal.made_by}"
        done = self.submit(task, "propose", subject, build, review_id, {"Proposal": proposal.id}, body)
        if prepared:
            return done, prepared[0]
        before = next((one for one in done.events if isinstance(one, ev.Proposed)), None)
        if before is None:
            raise UsageError("this Review-Id stands for something else.", where=review_id or "")
        with self.store.at() as view:
            where = path_in_package(before.proposal)
            kept = parse_proposal(view.read(f"{task}/{where}") or b"", where=where)
        return done, Prepared(kept, before.changes, {}, {})

    def decide(self, task: str, decisions: Sequence[Mapping[str, Any]], *, review_id: str | None = None) -> Done:
        """Decide on changes, all in one submission: `change`, `base`, `result` (as seen), `decision`, `reason`, `harm`.

        Raises UsageError for a change that is no longer what was seen, saying so, and for a veto that stands.
        """

        def build(at: Snapshot, stamp: Stamp) -> Made:
            if self.actor.id not in at.state.reviewers:
                raise NotAllowed(f"{self.actor.name} is not assigned to this task.")
            self.no_conflict(self.actor, at)
            events = [event(ev.Decided, stamp, **one) for one in decisions]
            if not events:
                raise UsageError("nothing was decided.")
            for one in events:
                self._may_decide(at, one)
            return events, {}

        words = [str(one.get("decision")) for one in decisions]
        body = "\n".join(
            f"- {one.get('decision')} {str(one.get('change'))[:12]}: {one.get('reason') or 'no comment'}"
            for one in decisions
        )
        marks = {"Verdict": words, "Change-Id": [str(one.get("change")) for one in decisions]}
        subject = ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
        return self.submit(task, "decide", f"Decide: {subject}", build, review_id, marks, body)

    def lift_veto(
        self, task: str, change: str, owner: str, owner_says: str, reason: str, *, review_id: str | None = None
    ) -> Done:
        """Lift one's own veto, or as adjudicator another's, with what its owner answered. `change` "" = on the task."""

        def build(at: Snapshot, stamp: Stamp) -> Made:
            if not any((veto.change, veto.owner) == (change, owner) for veto in at.state.vetoes):
                raise UsageError("there is no such veto.", remedy="`authoring status` lists those that stand.")
            mine = owner == self.actor.id
            if not mine and not self.actor.has("adjudicator"):
                raise NotAllowed("a veto is lifted by its owner, or by an adjudicator.")
            if mine != (owner_says == "lifted it"):
                raise UsageError("say 'lifted it' for your own veto, and for another's what its owner answered.")
            if not mine:
                self.no_conflict(self.actor, at)
                if why := kept_from_lifting(at.state, self.actor.id, change):
                    raise NotAllowed(f"{why}.", remedy="Its owner does, or an adjudicator who has no part in it.")
            role: Role = stamp.role if mine else "adjudicator"
            fields = {**stamp.fields, "role": role}
            return [made(ev.VetoLifted, fields, change=change, owner=owner, owner_says=owner_says, reason=reason)], {}

        return self.submit(
            task, "lift_veto", f"Lift the veto of {owner}", build, review_id, {"Verdict": owner_says}, reason
        )

    def adjudicate(self, task: str, change: str, decision: str, reason: str, *, review_id: str | None = None) -> Done:
        """Settle a split decision."""

        def build(at: Snapshot, stamp: Stamp) -> Made:
            self.no_conflict(self.actor, at)
            found = self._change(at.state, change)
            if found.status != "split":
                raise UsageError(f"this change is {found.status}, not split.")
            if found.made_by == self.actor.id or self.actor.id in found.decisions:
                raise NotAllowed("who made a change or decided on it does not adjudicate it.")
            ref = found.ref
            members = [c for c in at.state.changes.values() if ref.group and c.ref.group == ref.group
                       and c.proposal == found.proposal and c.status == "split"] or [found]  # fmt: skip
            return [
                event(
                    ev.Adjudicated, stamp, change=one.ref.change, base=one.ref.base, result=one.ref.result,
                    decision=decision, reason=reason,
                )
                for one in members
            ], {}  # fmt: skip

        return self.submit(
            task,
            "adjudicate",
            f"Adjudicate: {decision}",
            build,
            review_id,
            {"Verdict": decision, "Change-Id": change},
            reason,
        )

    def _change(self, state: ReviewState, change: str) -> ChangeState:
        if change not in state.changes:
            raise UsageError("there is no such change.", remedy="`authoring show` lists them.")
        return state.changes[change]

    def _may_decide(self, at: Snapshot, decided: ev.Decided) -> None:
        state = at.state
        found = self._change(state, decided.change)
        ref = found.ref
        if found.status in ("applied", "rejected", "outdated"):
            why = {
                "outdated": f"what you saw is no longer what would be changed: {_overtaken(at, found)}",
                "applied": "this change is applied already",
                "rejected": "this change was rejected by all",
            }[found.status]
            raise UsageError(f"{why}.", where=ref.unit, remedy="Look at the task as it stands.")
        if (decided.base, decided.result) != (ref.base, ref.result):
            raise UsageError(
                f"your decision is on other bytes than the change has now: it was put up again on "
                f"{state.proposals[found.proposal].at:%Y-%m-%d %H:%M} by {found.made_by}.",
                where=ref.unit,
                remedy="Look at it again.",
            )
        if ref.made_by_hand and found.made_by == self.actor.id:
            raise NotAllowed("nobody decides on a change that they made by hand.", where=ref.unit)
        if decided.decision != "veto" and any(
            (veto.change, veto.owner) == (decided.change, self.actor.id) for veto in state.vetoes
        ):
            raise UsageError("your veto on this change stands.", where=ref.unit, remedy="Lift it first.")


def kept_from_lifting(state: ReviewState, person: str, change: str) -> str:
    """Why this person does not lift another's veto on the change ("" = on the task), or "": who judges or decides with
    its owner is not above them."""
    if person in state.reviewers:
        return "who reviews this task does not lift another's veto on it"
    if not change:
        judged = any(who == person and one.submitted for (_, who), one in state.reviews.items())
        return "who judged this task does not lift another's veto on it" if judged else ""
    held = state.changes.get(change)
    if held and (person in held.decisions or any(one.actor == person for one in held.outdated)):
        return "who decided on a change does not lift another's veto on it"
    if held and held.ref.made_by_hand and held.made_by == person:
        return "who made a change does not lift another's veto on it"
    return ""


def _overtaken(at: Snapshot, change: ChangeState) -> str:
    """What came between a change, or one that it needs, and its bytes: who changed them, when, with what."""
    unit, needs = change.ref.unit, (change.proposal, change.ref.group)
    others = [one for one in at.state.changes.values() if one.ref.group and (one.proposal, one.ref.group) == needs]
    paths = {one.ref.unit.partition("#")[0] for one in (change, *others)}
    for one in reversed(at.events):
        if isinstance(one, ev.Imported):
            return f"a newer bundled version came in on {one.at:%Y-%m-%d}"
        if isinstance(one, ev.Applied) and any(name.partition("#")[0] in paths for name in one.units):
            names = ", ".join(sorted(name for name in one.units if name.partition("#")[0] in paths))
            return f"version {one.version}, applied by {one.actor} on {one.at:%Y-%m-%d %H:%M}, changed {names}"
    return f"{unit} was changed"
