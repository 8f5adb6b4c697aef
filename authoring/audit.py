"""The audit of a task: its history replayed from git, each claim of an event held against the commit that brought it.

Nothing is taken from the state as it is now: every commit of the task is read in order, its new events are what it
appended, and authors, times, hashes and the order of events are checked on the bytes of that very commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256

from authoring.proposals import path_in_package
from authoring.releasing import manifest_path
from authoring.seat import identity_of
from tasks.errors import StoreError
from tasks.people import Person
from tasks.review import events as ev
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
class Audit:
    """The entries in the order of the history, and everything that is wrong with it (empty = it holds)."""

    entries: tuple[Entry, ...]
    commits: int
    faults: tuple[str, ...]


def audit(store: Store, task: str, people: Mapping[str, Person] | None = None) -> Audit:
    """Replay a task's history. Raises StoreError where the repository cannot be read."""
    commits = list(reversed(store.history(task, limit=1_000_000)))
    entries: list[Entry] = []
    faults: list[str] = []
    before = b""
    seen: set[str] = set()
    for commit in commits:
        with store.at(commit.hash) as view:
            data = view.read(f"{task}/{ev.FILE}") or b""
            short = commit.hash[:10]
            if not data.startswith(before):
                faults.append(f"{short}: earlier events were edited or removed")
                before = data
                continue
            try:
                new = ev.parse_events(data[len(before) :], where=f"{task}/{ev.FILE} at {short}")
            except StoreError as fault:
                faults.append(f"{short}: {fault}")
                before = data
                continue
            before = data
            if not new:
                faults.append(f"{short}: it changed the task without an event")
                continue
            entries += [Entry(one, commit.hash, commit.author.name) for one in new]
            for one in new:
                if one.id in seen:
                    faults.append(f"{short}: event {one.id[:8]} stands twice")
                seen.add(one.id)
            faults += [f"{short}: {what}" for what in _authored(commit, new, people or {})]
            files = view.files(task) if any(isinstance(one, _BOUND) for one in new) else {}
            faults += [f"{short}: {what}" for what in _bound(new, files)]
    faults += store.check()
    faults += _in_order(entries)
    return Audit(tuple(entries), len(commits), tuple(faults))


_BOUND = (ev.Imported, ev.RoundOpened, ev.Proposed, ev.GateRan, ev.Applied, ev.Signed, ev.Released)


def _authored(commit: Commit, new: tuple[ev.Event, ...], people: Mapping[str, Person]) -> list[str]:
    out = []
    actors = {one.actor for one in new}
    if len({one.submission for one in new}) != 1 or commit.trailers.get("Review-Id") != new[0].submission:
        out.append("its Review-Id is not that of its events")
    if len(actors) != 1:
        out.append("its events have several authors")
    actor = new[0].actor
    known = people.get(actor)
    if actor == "workbench":
        if commit.author != WORKBENCH:
            out.append(f"an event of the workbench was committed by {commit.author.name}")
    elif known is not None and identity_of(known) != commit.author:
        out.append(f"an event of {known.name} was committed by {commit.author.name} <{commit.author.email}>")
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
                    out.append(f"{one.type} names another package than the commit holds")
            case ev.Proposed():
                stored = files.get(path_in_package(one.proposal), b"")
                if sha256(stored).hexdigest() != one.file or one.package != package:
                    out.append("the proposal's file or package is not what its event names")
        if isinstance(one, ev.Released):
            manifest = files.get(manifest_path(one.version), b"")
            if sha256(manifest).hexdigest() != one.manifest:
                out.append("the release's manifest is not what its event names")
    return out


def _in_order(entries: list[Entry]) -> list[str]:
    """What must have happened before an event may."""
    out = []
    locked: set[tuple[str, int]] = set()
    proposed: set[str] = set()
    decided: set[str] = set()
    signed = False
    for entry in entries:
        one, short = entry.event, entry.commit[:10]
        match one:
            case ev.PlanLocked():
                locked.add((one.actor, one.round))
            case ev.ReviewSubmitted():
                if (one.actor, one.round) not in locked:
                    out.append(f"{short}: a review of {one.actor} without a locked plan before it")
            case ev.Proposed():
                proposed |= {ref.change for ref in one.changes}
            case ev.Decided():
                if one.change not in proposed:
                    out.append(f"{short}: a decision on a change that was not proposed before")
                decided.add(one.change)
            case ev.Applied():
                if missing := set(one.changes) - decided:
                    out.append(f"{short}: {len(missing)} changes were applied that nobody decided on before")
                signed = False
            case ev.Signed():
                signed = True
            case ev.Released():
                if not signed:
                    out.append(f"{short}: released without a signature before it")
    return out


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
