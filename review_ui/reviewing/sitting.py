"""One person at one task under review: what every review page starts from.

The task is read from the workspace's repository once for as long as its bytes stay the same; events are read anew
where a commit touched them. Everything that changes something goes through `Sitting.desk`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

import streamlit as st

from authoring.desk import Desk
from authoring.library import open_store
from authoring.seat import Snapshot
from review_ui import frame, identity
from review_ui.autosave import Notebook
from review_ui.chartview import ChartView
from review_ui.kept import kept
from review_ui.reviewing.forms import of_stage_1
from tasks.errors import UsageError
from tasks.package import Task, TaskMeta, load
from tasks.review import events as ev
from tasks.review.events import FILE, Event, new_id, parse_events
from tasks.review.permissions import refuse_unread
from tasks.review.signoff import Turn, turns
from tasks.review.state import ReviewState, fold
from tasks.store import Store, View


@dataclass(frozen=True)
class Standing:
    """A task as it stands at the head of the repository."""

    task_id: str
    head: str
    package: str  # changes exactly when a file outside reviews/ does
    files: dict[str, bytes]
    events: tuple[Event, ...]
    state: ReviewState

    @property
    def meta(self) -> TaskMeta:
        return self.task.meta

    @property
    def task(self) -> Task:
        """The package, loaded once for as long as it stays the same."""
        return _task(self.task_id, self.package, self.files)

    @property
    def chart(self) -> ChartView:
        """Its chart at its clock. Raises UsageError for a draft without a patient."""
        return _chart(self.task_id, self.package, self.files)


@kept(64)
def _task(task_id: str, package: str, _files: dict[str, bytes]) -> Task:
    return load(_files, where=task_id)


@kept(16, "Reading the chart, once …")
def _chart(task_id: str, package: str, _files: dict[str, bytes]) -> ChartView:
    task = _task(task_id, package, _files)
    if task.meta.context is None:
        raise UsageError("this draft names no patient.", where=task_id)
    view = ChartView(task.chart, task.meta.context.patient, task.meta.context.now)
    view.labs()  # seconds on a chart of 30,000 resources: told as reading, and not again on the page
    return view


@kept(64)
def _blobs(place: str, task_id: str, package: str, _view: View) -> dict[str, bytes]:
    prefix = f"{task_id}/reviews/"
    return {
        path[len(task_id) + 1 :]: _view.blob(blob)
        for path, blob in _view.paths(task_id).items()
        if not path.startswith(prefix)
    }


@kept(4000)
def _folded(place: str, task_id: str, blob: str, _view: View) -> tuple[tuple[Event, ...], ReviewState]:
    events = parse_events(_view.blob(blob), where=f"{task_id}/{FILE}") if blob else ()
    return events, fold(task_id, events)


@kept(256)
def _proposals(place: str, task_id: str, blobs: tuple[tuple[str, str], ...], _view: View) -> dict[str, bytes]:
    return {path: _view.blob(blob) for path, blob in blobs}


def store() -> Store:
    """The workspace's task repository, made at first use."""
    return open_store(frame.workspace())


def standing(task_id: str, view: View) -> Standing:
    """The task at a commit. Raises UsageError where there is none of that id."""
    place = str(store().path)
    paths = view.paths(task_id) if task_id else {}
    if not paths:
        raise UsageError("there is no task of that id under review.", remedy="Choose one on the Home page.")
    inside = {path[len(task_id) + 1 :]: blob for path, blob in paths.items()}
    package = sha256(repr(sorted((p, b) for p, b in inside.items() if not p.startswith("reviews/"))).encode())
    files = _blobs(place, task_id, package.hexdigest(), view)
    kept = tuple(sorted((p, b) for p, b in inside.items() if p.startswith("reviews/") and p != FILE))
    events, state = _folded(place, task_id, inside.get(FILE, ""), view)
    reviews = _proposals(place, task_id, kept, view)
    return Standing(task_id, view.at, package.hexdigest(), {**files, **reviews}, events, state)


@dataclass(frozen=True)
class Listed:
    """A task as the worklist needs it: no chart is read for it. `data_class` "" where task.toml cannot be read."""

    task_id: str
    title: str
    specialty: str
    workflow: str
    minutes: int
    data_class: str
    events: tuple[Event, ...]
    state: ReviewState


@kept(4000)
def _manifest(place: str, blob: str, _view: View) -> dict[str, str]:
    try:
        said = tomllib.loads(_view.blob(blob).decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return {}
    return {
        key: str(said.get(key, "")) for key in ("title", "specialty", "workflow", "estimated_minutes", "data_class")
    }


def every() -> list[Listed]:
    """All tasks of the repository, with their state, whether this person may read them or not: ask review_ui.sight."""
    opened = store()
    place = str(opened.path)
    out = []
    with opened.at() as view:
        paths = view.paths()
        for task in sorted({path.partition("/")[0] for path in paths}):
            blob = paths.get(f"{task}/{FILE}", "")
            manifest = paths.get(f"{task}/task.toml", "")
            said = _manifest(place, manifest, view) if manifest else {}
            minutes = said.get("estimated_minutes", "")
            out.append(
                Listed(
                    task,
                    said.get("title", "") or task,
                    said.get("specialty", ""),
                    said.get("workflow", ""),
                    int(minutes) if minutes.isdecimal() else 0,
                    said.get("data_class", ""),
                    *_folded(place, task, blob, view),
                )
            )
    return out


@dataclass(frozen=True)
class Sitting:
    """A person at a task."""

    who: identity.Identity
    desk: Desk
    at: Standing

    @property
    def state(self) -> ReviewState:
        return self.at.state

    @property
    def task(self) -> Task:
        return self.at.task

    @property
    def me(self) -> str:
        return self.who.id

    @cached_property
    def book(self) -> Notebook:
        """The person's drafts on this task in this round."""
        return self.book_of(self.state.round)

    def book_of(self, round: int) -> Notebook:
        """The drafts of another round; those of stage 3 and of a proposal are of the round that they follow."""
        open_data = self.at.meta.data_class == "open"
        return Notebook(self.desk.db, self.me, self.at.task_id, round, open_data, of_stage_1)

    @cached_property
    def mine(self) -> tuple[Event, ...]:
        """One's own events of this round, sealed or not."""
        sealed = [s for s in self.desk.db.sealed(self.at.task_id, self.state.round) if s.person == self.me]
        return tuple(event for one in sealed for event in parse_events(one.events))

    @property
    def plan(self) -> ev.PlanLocked | None:
        """One's own locked plan of this round."""
        return next((one for one in self.mine if isinstance(one, ev.PlanLocked)), None)

    @property
    def submitted(self) -> ev.ReviewSubmitted | None:
        """One's own submitted review of this round."""
        return next((one for one in self.mine if isinstance(one, ev.ReviewSubmitted)), None)

    @property
    def asked(self) -> bool:
        """Whether the person's judgement is asked for in this round."""
        return self.me in self.state.round_reviewers

    @cached_property
    def to_come(self) -> tuple[str, ...]:
        """Who has not submitted in this round."""
        return self.desk.still_to_come(self.state)

    @property
    def blind(self) -> bool:
        """Whether others' judgements of this round are still hidden."""
        return self.state.round_is_open

    def name(self, id: str) -> str:
        """A person's name, or the id where nobody of the workspace has it."""
        return next((one.name for one in self.desk.people if one.id == id), id)

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """Whose turn it is, sealed submissions counted."""
        return tuple(
            turn for turn in turns(self.state) if not (turn.what == "review" and turn.person not in self.to_come)
        )

    @property
    def unheard(self) -> bool:
        """Whether the person is to judge this task and has not been asked yet."""
        return unheard(self.state, self.me)

    @property
    def fresh(self) -> bool:
        """Whether the person is to judge this task, never did, and has locked no plan: what others wrote of it is not
        theirs to read yet."""
        return self.unheard or (self.asked and self.plan is None and not judged(self.state, self.me))

    @property
    def may_read(self) -> bool:
        """Whether how the task is graded may be shown: not to a reviewer who has yet to lock the own plan."""
        return not (self.unheard or (self.asked and self.state.round_is_open and self.plan is None))


def unheard(state: ReviewState, person: str) -> bool:
    """Whether this person is assigned to judge the task, never did, and is not asked in an open round: what others
    wrote, and how the task is graded, would be in the plan that is still to come."""
    if person not in state.reviewers or (state.round_is_open and person in state.round_reviewers):
        return False
    return not judged(state, person)


def judged(state: ReviewState, person: str) -> bool:
    """Whether a review of this person is in the record, of whatever round."""
    return any(who == person and one.submitted for (_, who), one in state.reviews.items())


def sit(task_id: str) -> Sitting:
    """The person at the page at this task. Raises UsageError, NotAllowed."""
    who = identity.current()
    if who.person is None:
        raise UsageError("nobody is chosen here.", remedy="Say who you are on the Home page.")
    opened = store()
    desk = Desk(frame.workspace(), opened, who.person, verified=who.verified)
    with opened.at() as view:
        at = standing(task_id, view)
    if at.state.round_is_open and not desk.still_to_come(at.state) and desk.finish_round(task_id):
        # A crash had left the round sealed although everybody is in.
        with opened.at() as view:
            at = standing(task_id, view)
    refuse_unread(who.person, at.meta.data_class, verified=who.verified)
    return Sitting(who, desk, at)


def snapshot(at: Standing, view: View) -> Snapshot:
    """The same task as the desk's functions want it."""
    return Snapshot(at.task_id, view)


def minted(name: str) -> str:
    """The Review-Id of what this page would submit next: minted once, the same for a second click, new after
    `used`."""
    ids: dict[str, str] = st.session_state.setdefault("review-ids", {})
    return ids.setdefault(name, new_id())


def used(name: str) -> None:
    """A submission went through: the next one is another."""
    st.session_state.setdefault("review-ids", {}).pop(name, None)


def names(at: Sitting, ids: Iterable[str]) -> str:
    """ "Demo reviewer 1, Demo reviewer 2"."""
    return ", ".join(at.name(id) for id in ids)
