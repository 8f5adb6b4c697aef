"""The audit of a task: its history replayed from git, each claim of an event held against the commit that brought it.

Nothing is taken from the state as it is now: every commit of the task is read in order, its new events are what it
appended, and authors, times, hashes and the order of events are checked on the bytes of that very commit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from authoring.proposals import path_in_package
from authoring.releasing import manifest_path
from authoring.seat import identity_of
from tasks.errors import StoreError
from tasks.people import Person
from tasks.review import events as ev
from tasks.review.signoff import may_sign
from tasks.review.state import Folding, ReviewState
from tasks.store import WORKBENCH, Commit, Store
from tasks.wording import counted

#: How far an author's date, kept in whole seconds, may lie from the event's own time.
_SLACK = timedelta(minutes=10)


@dataclass(frozen=True)
class Entry:
    """One event and the commit that brought it, as it was found."""

    event: ev.Event
    commit: str
    author: str


@dataclass(frozen=True)
class Fault:
    """Something that is wrong: in words for a reader, and the commit that it stands in ("" = the repository)."""

    commit: str
    words: str

    def __str__(self) -> str:
        return f"{self.commit[:10]}: {self.words}" if self.commit else self.words


@dataclass(frozen=True)
class Audit:
    """The entries in the order of the history, and everything that is wrong with it (empty = it holds)."""

    entries: tuple[Entry, ...]
    commits: int
    faults: tuple[Fault, ...]


def audit(store: Store, task: str, people: Mapping[str, Person] | None = None) -> Audit:
    """Replay a task's history. Raises StoreError where the repository cannot be read."""
    commits = list(reversed(store.history(task, limit=1_000_000)))
    entries: list[Entry] = []
    faults: list[Fault] = []
    before = b""
    seen: set[str] = set()
    for commit in commits:
        found: list[str] = []
        with store.at(commit.hash) as view:
            data = view.read(f"{task}/{ev.FILE}") or b""
            new: tuple[ev.Event, ...] = ()
            if not data.startswith(before):
                found.append("earlier events were edited or removed")
            else:
                try:
                    new = ev.parse_events(data[len(before) :])
                    if not new:
                        found.append("it changed the task without an event that says so")
                except StoreError as fault:
                    found.append(fault.what)
            before = data
            if new:
                entries += [Entry(one, commit.hash, commit.author.name) for one in new]
                if any(one.id in seen for one in new):
                    found.append("an event stands twice")
                seen |= {one.id for one in new}
                found += _authored(commit, new, people or {})
                files = view.files(task) if any(isinstance(one, _BOUND) for one in new) else {}
                found += _bound(new, files)
        faults += [_fault(commit.hash, commit.at, commit.author.name, what) for what in found]
    faults += [Fault("", f"the repository is damaged: {said}") for said in store.check()]
    faults += _in_order(task, entries)
    return Audit(tuple(entries), len(commits), tuple(faults))


_BOUND = (ev.Imported, ev.RoundOpened, ev.Proposed, ev.GateRan, ev.Applied, ev.Signed, ev.Released)
_CALLED = {
    "imported": "the version that came in", "round_opened": "the round", "gate_ran": "the gate",
    "applied": "what was applied", "signed": "the signature", "released": "the release",
}  # fmt: skip


def _fault(commit: str, at: datetime, author: str, what: str) -> Fault:
    return Fault(commit, f"{at.astimezone():%-d %b %Y, %H:%M}, {author}: {what}")


def _authored(commit: Commit, new: tuple[ev.Event, ...], people: Mapping[str, Person]) -> list[str]:
    out = []
    actors = {one.actor for one in new}
    if len({one.submission for one in new}) != 1 or commit.trailers.get("Review-Id") != new[0].submission:
        out.append("what stands here is not one submission, or not the one that it is stored as")
    if len(actors) != 1:
        out.append("its events have several authors")
    actor = new[0].actor
    known = people.get(actor)
    if actor == "workbench":
        if commit.author != WORKBENCH:
            out.append(f"an event of the workbench is stored under the name of {commit.author.name}")
    elif known is not None and identity_of(known) != commit.author:
        other = f"{commit.author.name} <{commit.author.email}>"
        out.append(f"an event of {known.name} is stored under the name of {other}")
    if abs(commit.at - new[-1].at) > _SLACK:
        out.append(f"its date {commit.at:%Y-%m-%d %H:%M} is not that of its event, {new[-1].at:%Y-%m-%d %H:%M}")
    return out


def _bound(new: tuple[ev.Event, ...], files: Mapping[str, bytes]) -> list[str]:
    """Hashes that events name, against the bytes of the commit."""
    out = []
    package = ev.package_hash(files) if files else ""
    for one in new:
        match one:
            case ev.Imported() | ev.RoundOpened() | ev.GateRan() | ev.Applied() | ev.Signed() | ev.Released():
                if one.package != package:
                    out.append(f"{_CALLED[one.type]} is about another state of the task than the one stored with it")
            case ev.Proposed():
                stored = files.get(path_in_package(one.proposal), b"")
                if sha256(stored).hexdigest() != one.file or one.package != package:
                    out.append("the proposal that is stored is not the one that was put up")
        if isinstance(one, ev.Released):
            manifest = files.get(manifest_path(one.version), b"")
            if sha256(manifest).hexdigest() != one.manifest:
                out.append("the list of what was released is not the one that was made at the release")
    return out


def _in_order(task: str, entries: Sequence[Entry]) -> list[Fault]:
    """What must have held before an event: each is judged on the fold of all those before it."""
    out = []
    folding = Folding(task)
    for entry in entries:
        one = entry.event
        out += [_fault(entry.commit, one.at, entry.author, what) for what in _unallowed(one, folding)]
        folding.take(one)
    return out


def _unallowed(one: ev.Event, before: Folding) -> list[str]:
    """Why this event could not come about as the desk does it, on what stood before it. The state is folded out only
    where the event rests on it: a history has thousands of others."""
    match one:
        case ev.ReviewSubmitted():
            review = before.reviews.get((one.round, one.actor))
            return [] if review and review.plan else [f"a review of {one.actor} without a locked plan before it"]
        case ev.Decided():
            return _decision(one, before)
        case ev.VetoLifted():
            wrong = one.actor != one.owner and one.role != "adjudicator"
            return [f"the veto of {one.owner} was lifted by {one.actor}, who is no adjudicator"] if wrong else []
        case ev.Adjudicated():
            return _ruling(one, before)
        case ev.Applied():
            changes = before.state().changes
            stood = [changes[id].status if id in changes else "not proposed" for id in one.changes]
            wrongly = [status for status in stood if status != "accepted"]
            told = ", ".join(f"{count} {status}" for status, count in sorted(Counter(wrongly).items()))
            return [f"{counted(len(wrongly), 'change')} applied without being accepted before: {told}"] if told else []
        case ev.Signed():
            state = before.state()
            out = [] if one.actor in state.reviewers else [f"signed by {one.actor}, who does not review this task"]
            return out + _still_open(state, "signed")
        case ev.Released():
            state = before.state()
            unsigned = [
                person
                for person in state.reviewers
                if person not in state.signatures or state.signatures[person].package != one.package
            ]
            out = [f"released without the signature of {', '.join(unsigned)} on it"] if unsigned else []
            out += [] if state.reviewers else ["released without anybody who reviews it"]
            return out + _still_open(state, "released")
        case _:
            return []


def _decision(one: ev.Decided, before: Folding) -> list[str]:
    ref = before.ref(one.change)
    if ref is None:
        return ["a decision on a change that was not proposed before"]
    out = [] if (one.base, one.result) == (ref.base, ref.result) else ["a decision on something else than was put up"]
    if before.assigned.get(one.actor) not in ("reviewer", "pharmacist"):
        out.append(f"a decision by {one.actor}, who does not review this task")
    return out


def _ruling(one: ev.Adjudicated, before: Folding) -> list[str]:
    ref = before.ref(one.change)
    if ref is None:
        return ["a ruling on a change that was not proposed before"]
    out = [] if (one.base, one.result) == (ref.base, ref.result) else ["a ruling on something else than was put up"]
    change = before.state().changes[one.change]
    if change.status != "split":
        out.append(f"a ruling on a change that was {change.status}, not split")
    if one.actor in change.decisions or one.actor == change.made_by:
        out.append(f"a ruling by {one.actor}, who made the change or decided on it")
    return out


def _still_open(state: ReviewState, done: str) -> list[str]:
    """What sign-off asks for and did not hold; how many must judge is a setting, and may be another one now."""
    unmet = may_sign(state, reviewers=0)
    return [f"{done} while this did not hold: {'; '.join(one.text for one in unmet)}"] if unmet else []


def change_id(change: str) -> str:
    """A change's id, cut to what a reader can compare."""
    return change[:10]


def timeline_csv(found: Audit) -> str:
    """The audit as a table: time, who, role, round, what, commit."""
    import csv
    import io

    out = io.StringIO()
    rows = csv.writer(out)
    rows.writerow(("at", "person", "role", "round", "event", "says", "commit", "event id"))
    for entry in found.entries:
        one = entry.event
        # A cell that begins like a formula is text to whoever opens the table.
        said = event_words(one)
        said = f"'{said}" if said[:1] in ("=", "+", "-", "@") else said
        rows.writerow((one.at.isoformat(), one.actor, one.role, one.round, one.type, said, entry.commit, one.id))
    return out.getvalue()


def event_words(one: ev.Event, name: Callable[[str], str] = str, place: Callable[[str], str] = change_id) -> str:
    """What an event says, in one line, in the field's words. `name`: of a person's id; `place`: where a change of that
    id stands, in the reader's words (its id cut short where nothing better is known)."""
    match one:
        case ev.Imported():
            return f"Version {one.version} came in"
        case ev.Assigned():
            return f"Assigned {name(one.person)} as {one.as_role}"
        case ev.Unassigned():
            return f"Unassigned {name(one.person)}: {one.reason}"
        case ev.Waived():
            return f"Waived {one.rule.replace('_', ' ')} for {name(one.person)}: {one.reason}"
        case ev.RoundOpened():
            due = f", due {one.due:%-d %b %Y}" if one.due else ""
            return f"Opened round {one.round} for {', '.join(name(id) for id in one.reviewers)}{due}"
        case ev.PlanLocked():
            return "Locked the own plan"
        case ev.PlanAmended():
            return f"Corrected the own plan: {one.text}"
        case ev.ReviewSubmitted():
            worst = sorted({verdict.verdict for verdict in one.verdicts})
            return f"Submitted a review: {', '.join(worst)}; {counted(len(one.findings), 'finding')}"
        case ev.FindingWithdrawn():
            return f"Withdrew a finding: {one.reason}"
        case ev.FindingDismissed():
            return f"Dismissed a finding: {one.reason}"
        case ev.Proposed():
            return f"Put up {counted(len(one.changes), 'change')} by {name(one.made_by)}"
        case ev.GateRan():
            return "Gate passed" if one.passed else f"Gate failed: {'; '.join(one.failures[:3])}"
        case ev.Decided():
            return f"{one.decision.capitalize()}, {place(one.change)}" + (f": {one.reason}" if one.reason else "")
        case ev.VetoLifted():
            return f"Lifted the veto of {name(one.owner)} ({one.owner_says}): {one.reason}"
        case ev.Adjudicated():
            return f"Adjudicated, {place(one.change)}: {one.decision}, {one.reason}"
        case ev.Applied():
            return f"Applied {counted(len(one.changes), 'change')}: version {one.version}"
        case ev.Signed():
            return f"Signed: {one.statement}"
        case ev.Released():
            return f"Released version {one.version}"
        case ev.DefectReported():
            return f"Reported a defect of version {one.version}: {one.text}"
