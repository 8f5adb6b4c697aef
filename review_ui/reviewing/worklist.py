"""What Home lists: tasks under review as one person needs them, safety first, then the longest wait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from review_ui.reviewing.sitting import Listed
from review_ui.theme import Tone
from tasks.people import Person
from tasks.review.signoff import Turn, turns
from tasks.review.state import ReviewState, Stage
from tasks.statedb import StateDb

TABS = ("Needs me", "Drafts", "Waiting on others", "Signed", "All")
_PAGES = {
    "assign": "signoff.py", "review": "review.py", "decide": "decide.py", "veto": "decide.py",
    "adjudicate": "decide.py", "apply": "signoff.py", "propose": "propose.py", "sign": "signoff.py",
    "release": "signoff.py",
}  # fmt: skip
_VERBS = {
    "assign": "Assign", "review": "Review", "decide": "Decide", "veto": "Lift veto", "adjudicate": "Adjudicate",
    "apply": "Apply", "propose": "Propose", "sign": "Sign", "release": "Release",
}  # fmt: skip
STAGES: dict[Stage, tuple[str, Tone, str]] = {
    "unassigned": ("Not assigned", "plain", "person_add"),
    "review": ("1 · Review", "blue", "rate_review"),
    "proposals": ("2 · Proposals", "blue", "edit_note"),
    "decide": ("3 · Decide", "blue", "checklist"),
    "apply": ("3 · Apply", "blue", "commit"),
    "sign-off": ("4 · Sign-off", "blue", "draw"),
    "release": ("4 · Release", "violet", "verified"),
    "released": ("Released", "green", "verified"),
}


@dataclass(frozen=True)
class Work:
    """One task for one person. `page` and `verb`: where its button leads; `days`: how long it has waited; `solved`: the
    own plan of the open round is locked; `to_decide`: changes that wait for this person."""

    listed: Listed
    state: ReviewState
    mine: tuple[Turn, ...]
    drafted: bool
    page: str
    verb: str
    since: datetime | None
    signed: bool
    assigned: bool
    blind: bool
    solved: bool = False
    to_decide: int = 0

    @property
    def task_id(self) -> str:
        return self.listed.task_id

    @property
    def vetoes(self) -> int:
        """Standing vetoes; none is told while the round is blind to this person."""
        return 0 if self.blind else len(self.state.vetoes)

    @property
    def findings(self) -> int:
        return 0 if self.blind else len(self.state.open_findings)

    def days(self, now: datetime) -> int:
        return max(0, (now - self.since).days) if self.since else 0


def work(listed: Listed, who: Person | None, db: StateDb, drafts: Mapping[tuple[str, int], datetime]) -> Work:
    """The task as this person needs it. `drafts`: (task, round) -> when the person saved there last."""
    state = listed.state
    # What was left in an earlier round is not what this round goes on with.
    drafted = (listed.task_id, state.round) in drafts
    coming = db.sealed(state.task, state.round) if state.round_is_open else []
    sealed = {one.person for one in coming if one.kind == "review"}
    all_turns = [t for t in turns(state) if not (t.what == "review" and t.person in sealed)]
    mine = tuple(turn for turn in all_turns if who is not None and _is_for(turn, who))
    first = mine[0] if mine else None
    asked = who is not None and who.id in state.round_reviewers
    return Work(
        listed=listed,
        state=state,
        mine=mine,
        drafted=drafted,
        page=page_of(first, state) if first else where(state.stage),
        verb=("Resume" if drafted and first.what in ("review", "decide") else _VERBS[first.what]) if first else "Open",
        since=listed.events[-1].at if listed.events else None,
        signed=who is not None and who.id in state.signatures,
        assigned=who is not None and who.id in state.assigned,
        blind=asked and state.round_is_open,
        solved=any(one.kind == "plan" and who is not None and one.person == who.id for one in coming),
        to_decide=sum(
            who is not None and who.id in change.waiting_for and change.status == "undecided"
            for change in state.changes.values()
        ),
    )


def page_of(turn: Turn, state: ReviewState) -> str:
    """Where a turn is taken. A veto on a change is lifted where its owner decides on it; any other on Sign-off."""
    decides = turn.person in state.reviewers
    if turn.what == "veto" and not any(one.change and decides for one in state.vetoes if one.owner == turn.person):
        return "signoff.py"
    return _PAGES[turn.what]


def _is_for(turn: Turn, who: Person) -> bool:
    return turn.person == who.id if turn.person else turn.role in who.roles


def where(stage: Stage) -> str:
    """The page of a stage, for somebody whose turn it is not."""
    return {"review": "review.py", "decide": "decide.py", "proposals": "propose.py"}.get(stage, "signoff.py")


def tab(name: str, rows: Iterable[Work]) -> list[Work]:
    """The rows of a tab, vetoes on top, then the longest wait."""
    keep: dict[str, Callable[[Work], bool]] = {
        "Needs me": lambda one: bool(one.mine),
        "Drafts": lambda one: one.drafted,
        "Waiting on others": lambda one: one.assigned and not one.mine and one.state.stage != "released",
        "Signed": lambda one: one.signed,
        "All": lambda one: True,
    }
    epoch = datetime.min.replace(tzinfo=UTC)
    return sorted((one for one in rows if keep[name](one)), key=lambda one: (-one.vetoes, one.since or epoch))


def progress(rows: Sequence[Work]) -> dict[str, int]:
    """Tasks assigned to the person, by how far they are."""
    mine = [one for one in rows if one.assigned]
    held = [one for one in mine if one.vetoes and not one.signed]
    signed = [one for one in mine if one.signed or one.state.stage == "released"]
    open_ = [one for one in mine if one not in held and one not in signed and one.state.stage != "unassigned"]
    return {
        "signed": len(signed),
        "in review": len(open_),
        "held by a veto": len(held),
        "not started": len(mine) - len(signed) - len(open_) - len(held),
    }


def overall(rows: Sequence[Work]) -> dict[str, int]:
    """All tasks, by how far they are. A veto of an open round is not told."""
    released = [one for one in rows if one.state.stage == "released"]
    held = [one for one in rows if one.vetoes and one not in released and not one.state.round_is_open]
    idle = [one for one in rows if one.state.stage == "unassigned"]
    return {
        "released": len(released),
        "in review": len(rows) - len(released) - len(held) - len(idle),
        "held by a veto": len(held),
        "not started": len(idle),
    }


def verdict_items(rows: Sequence[Work], me: str) -> tuple[dict[str, str], ...]:
    """What the person and their co-reviewers said of each dimension of each task in each round, all of them open."""
    found: dict[tuple[str, int, str], dict[str, str]] = {}
    for one in rows:
        for (round, person), review in one.state.reviews.items():
            if (round, me) in one.state.reviews:
                for verdict in review.submitted.verdicts if review.submitted else ():
                    found.setdefault((one.task_id, round, verdict.dimension), {})[person] = verdict.verdict
    return tuple(item for item in found.values() if len(item) > 1)
