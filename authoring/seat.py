"""One person's seat at a workspace: what every stage of a review shares.

A submission has a Review-Id that its caller mints once: the same submission twice is one. `Seat.submit` asks whether
the person may, checks on the newest state, appends the events and commits once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tasks.errors import NotAllowed, PackageError, UsageError
from tasks.package import Task, TaskMeta, load
from tasks.people import Person, Role
from tasks.review import events as ev
from tasks.review.permissions import Action, conflict, refuse_unverified, require
from tasks.review.state import ReviewState, fold
from tasks.statedb import Sealed, StateDb
from tasks.store import Identity, Store, Submission, View
from tasks.structure import read
from tasks.workspace import Workspace

if TYPE_CHECKING:
    from authoring.gate import GateResult

#: The events of a submission, and the files that change with them (None = removed).
Made = tuple[Sequence[ev.Event], Mapping[str, bytes | None]]


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

    @cached_property
    def meta(self) -> TaskMeta:
        """task.toml alone, without reading a chart."""
        paths = ("task.toml", "instruction.md")
        parts, found = read({p: self.view.read(f"{self.task_id}/{p}") or b"" for p in paths}, self.task_id)
        if parts is None:
            raise PackageError(found[0].message, where=found[0].place)
        return parts.meta

    @cached_property
    def package(self) -> str:
        """The hash of the package: what its events say, which is computed wherever bytes are about to be bound."""
        return ev.package_hash(self.files)


@dataclass(frozen=True)
class Done:
    """What a submission came to. `commit` "" where it stays sealed; `again` where it had been there before."""

    commit: str
    events: tuple[ev.Event, ...]
    again: bool = False


#: Makes the events of a submission on the state it will stand on, and the files that change with them.
Build = Callable[[Snapshot, "Stamp"], Made]


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


class Seat:
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
        self.verified, self.now = verified, now

    def submit(
        self,
        task: str,
        action: Action,
        subject: str,
        build: Build,
        review_id: str | None,
        trailers: Mapping[str, str | Sequence[str]] | None = None,
        body: str = "",
    ) -> Done:
        """One submission by this person: permission, checks on the newest state, events appended, one commit."""
        require(self.actor, action)
        self.finish_round(task)
        submission = review_id or ev.new_id()
        events_made: list[ev.Event] = []
        again: list[bool] = []

        def make(view: View) -> Sequence[Submission]:
            at = self.snapshot(view, task)
            again[:] = [submission in at.state.submissions]
            if again[0]:
                events_made[:] = [event for event in at.events if event.submission == submission]
                return []
            refuse_unverified(at.meta.data_class, verified=self.verified)
            role = require(self.actor, action, assigned=at.state.assigned.get(self.actor.id))
            stamp = Stamp(submission, task, self.actor.id, role, self.now(), at.state.round)
            events, files = build(at, stamp)
            events_made[:] = events
            if not events:
                return []
            lines = (view.read(f"{task}/{ev.FILE}") or b"") + ev.dump_events(events)
            changes = {f"{task}/{path}": data for path, data in files.items()} | {f"{task}/{ev.FILE}": lines}
            rounds = str(max((event.round for event in events), default=at.state.round))
            marks: dict[str, str | Sequence[str]] = {"Task": task, "Round": rounds, "Review-Id": submission}
            marks |= trailers or {}
            return [Submission(identity_of(self.actor), f"{task}: {subject}", changes, marks, body)]

        hashes = self.store.submit(make)
        return Done(hashes[-1] if hashes else "", tuple(events_made), again[0])

    def finish_round(self, task: str) -> str:
        """Commit the sealed submissions of this round if all are in; the new head, or "". It is called at every
        submission, so that what a crash left sealed comes out; what is committed already is not committed again."""
        if not self.db.unopened(task):
            return ""
        sealed: list[Sealed] = []

        def build(view: View) -> Sequence[Submission]:
            at = self.snapshot(view, task)
            sealed[:] = self.db.sealed(task, at.state.round)
            # Where nobody of the round is left, what is sealed opens too: it would never come out otherwise.
            if self.still_to_come(at.state):
                sealed.clear()
                return []
            lines = view.read(f"{task}/{ev.FILE}") or b""
            submissions = []
            for one in sealed:
                if one.submission not in at.state.submissions:
                    lines += one.events
                    submissions.append(self._unsealed(one, lines))
            return submissions

        hashes = self.store.submit(build)
        self.db.mark_opened([one.submission for one in sealed])
        return hashes[-1] if hashes else ""

    def _unsealed(self, one: Sealed, lines: bytes) -> Submission:
        author = next((p for p in self.people if p.id == one.person), None)
        identity = identity_of(author) if author else Identity(one.person, f"{one.person}@workbench.invalid")
        words = {"plan": "Lock own plan", "review": "Submit review"}.get(one.kind, "Amend own plan")
        marks = {"Task": one.task, "Round": str(one.round), "Review-Id": one.submission}
        subject = f"{one.task}: {words}, round {one.round}"
        return Submission(identity, subject, {f"{one.task}/{ev.FILE}": lines}, marks, at=one.sealed_at)

    # Reading

    def state(self, task: str) -> ReviewState:
        """The state of a task's review, as far as the repository shows it to everybody."""
        with self.store.at() as view:
            return self.snapshot(view, task).state

    def my_review(self, task: str) -> tuple[ev.Event, ...]:
        """One's own events of this round, sealed or not: what the submission reads back."""
        state = self.state(task)
        sealed = [s for s in self.db.sealed(task, state.round) if s.person == self.actor.id]
        return tuple(event for one in sealed for event in ev.parse_events(one.events))

    def waiting_for(self, task: str) -> tuple[str, ...]:
        """Who has not submitted in this round, sealed submissions counted."""
        return self.still_to_come(self.state(task))

    def still_to_come(self, state: ReviewState) -> tuple[str, ...]:
        """`waiting_for` where the state is at hand."""
        sealed = {s.person for s in self.db.sealed(state.task, state.round) if s.kind == "review"}
        return tuple(p for p in state.round_reviewers if p not in sealed and p not in state.submitted)

    # What the stages share

    @cached_property
    def people(self) -> tuple[Person, ...]:
        """Everybody of the workspace."""
        return self.workspace.settings.people

    def snapshot(self, view: View, task: str) -> Snapshot:
        """The task at that commit. Raises UsageError where there is none."""
        if task not in view.tasks():
            raise UsageError(f"there is no task '{task}'.", remedy=f"There are: {', '.join(view.tasks())}.")
        return Snapshot(task, view)

    def open_finding(self, state: ReviewState, finding: str) -> str:
        """Whose finding this is. Raises UsageError where it is not there or has ended."""
        found = state.findings.get(finding)
        if found is None:
            raise UsageError("there is no such finding.", remedy="`authoring status` lists those that are open.")
        if not found.open:
            raise UsageError(f"this finding was {found.end} already.")
        return found.by

    def no_conflict(self, who: Person, at: Snapshot) -> None:
        """Raise NotAllowed where the person made the task or declared a conflict."""
        if why := conflict(who, at.task_id, makers=at.state.makers):
            raise NotAllowed(f"{why}.", remedy="Somebody else has to.")


def identity_of(who: Person) -> Identity:
    """Who a commit of this person is by."""
    return Identity(who.name, who.email)


def event(kind: type[ev.Base], stamp: Stamp, **values: Any) -> Any:
    """An event of this submission. Raises UsageError that says what in it is wrong."""
    return made(kind, stamp.fields, **values)


def gate_ran(stamp: Stamp, result: GateResult, package: str) -> ev.GateRan:
    """The record of a gate over this package, with what it tried and what got past it."""
    found: ev.GateRan = event(
        ev.GateRan, stamp,
        package=package, gate=result.version, passed=result.passed, failures=result.failures,
        mutants=len(result.mutants), variants=len(result.variants),
        survivors=tuple(one.name for one in result.survivors),
        broken_variants=tuple(one.name for one in result.broken_variants),
    )  # fmt: skip
    return found


def made(kind: type[ev.Base], fields: Mapping[str, Any], **values: Any) -> Any:
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
