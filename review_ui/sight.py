"""What whoever is at the page may see: the one place that every page asks, and all of it default deny.

Three things are kept apart. Tasks of a data class other than open are for verified people, and those of identified
records for stewards alone. How a task is graded is not for a reviewer who has not locked the own plan of an open round,
or is assigned and was never asked. How agents did on it is not for one who has not submitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from review_ui import frame, identity
from review_ui.identity import Identity
from review_ui.markup import Markup, join, tag
from review_ui.reviewing.sitting import Listed, every, unheard
from tasks.people import Person
from tasks.review.permissions import reads, refuse_unread
from tasks.statedb import StateDb

CLOSED = "Tasks whose data class is not open are not shown: identities are not verified here."
IDENTIFIED = "Tasks of identified records are not shown: only a steward may see those."


@dataclass(frozen=True)
class Sight:
    """What one session may see, made once a run by `sight`.

    `verified`: somebody of the workspace, and checked. `person`: who. `unsolved`, `unsubmitted`: ids of the tasks that
    ask this person, or will, and wait for their plan, for their review. `classes`: the data class of every task of the
    repository.
    """

    verified: bool
    person: Person | None = None
    unsolved: frozenset[str] = frozenset()
    unsubmitted: frozenset[str] = frozenset()
    classes: Mapping[str, str] = field(default_factory=dict)

    def reads(self, data_class: str) -> bool:
        """Whether a task of this data class may be read at all."""
        return reads(self.person, data_class, verified=self.verified)

    @property
    def closed(self) -> str:
        """Why tasks that may not be read are not shown."""
        return IDENTIFIED if self.verified else CLOSED

    def reads_task(self, task_id: str, data_class: str = "open") -> bool:
        """Whether this task may be read: by the class that is given, and by the one that it has in the repository."""
        return self.reads(data_class) and self.reads(self.classes.get(task_id, "open"))

    def grading(self, task_id: str) -> bool:
        """Whether checkpoints, reference plans and gate may be shown."""
        return task_id not in self.unsolved

    def results(self, task_id: str, data_class: str) -> bool:
        """Whether a stored trial of this task may be shown. `data_class`: of the task as it was run."""
        return task_id not in self.unsubmitted and self.reads_task(task_id, data_class)

    def require(self, data_class: str) -> None:
        """Raise NotAllowed where a task of this class may not be read; the message says nothing of the task."""
        refuse_unread(self.person, data_class, verified=self.verified)

    def left_out(self, hidden: Iterable[tuple[str, str]]) -> Markup | None:
        """Says that (task, data class) were left out of what is shown; None where nothing was."""
        hidden = set(hidden)
        blind = {task for task, data_class in hidden if self.reads_task(task, data_class)}
        lines = []
        if blind:
            count = "1 task is" if len(blind) == 1 else f"{len(blind)} tasks are"
            lines.append(f"{count} hidden until you have submitted your review: how agents did comes after that.")
        if len(blind) < len({task for task, _ in hidden}):
            lines.append(self.closed)
        if not lines:
            return None
        return tag("div", join(tag("p", line, cls="sm mute") for line in lines), role="note", cls="left-out")


def sight() -> Sight:
    """What this session may see now. Reads the head of the repository; makes none where there is none."""
    who = identity.current()
    verified = who.verified and who.person is not None
    if not frame.workspace().tasks_git.exists():
        return Sight(verified, who.person)
    listed = every()
    unsolved, unsubmitted = _owed(who, listed)
    return Sight(verified, who.person, unsolved, unsubmitted, {one.task_id: one.data_class for one in listed})


def _owed(who: Identity, listed: Iterable[Listed]) -> tuple[frozenset[str], frozenset[str]]:
    """The tasks that wait for this person's plan, and for their review: in an open round, or in one to come where they
    are assigned and never judged."""
    unsolved, unsubmitted = set(), set()
    db = StateDb(frame.workspace().state_db)
    for one in listed:
        if unheard(one.state, who.id):
            unsolved.add(one.task_id)
            unsubmitted.add(one.task_id)
            continue
        if not one.state.round_is_open or who.id not in one.state.round_reviewers:
            continue
        sealed = {s.kind for s in db.sealed(one.task_id, one.state.round) if s.person == who.id}
        if who.id not in one.state.submitted and "review" not in sealed:
            unsubmitted.add(one.task_id)
            if "plan" not in sealed:
                unsolved.add(one.task_id)
    return frozenset(unsolved), frozenset(unsubmitted)
