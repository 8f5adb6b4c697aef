"""What a task still needs before it can be signed and released, and whose turn it is: computed, never stored."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from tasks.review.state import ChangeState, ReviewState


@dataclass(frozen=True)
class Requirement:
    """One thing that must hold. `todo` says what to do where it does not."""

    key: str
    text: str
    met: bool
    todo: str = ""


@dataclass(frozen=True)
class Turn:
    """Somebody's turn. `person` "" = anyone with the role."""

    person: str
    role: str
    what: str
    detail: str = ""


def requirements(
    state: ReviewState,
    *,
    release_faults: Sequence[str] = (),
    reviewers: int = 2,
    name: Callable[[str], str] = str,
    to_come: Collection[str] | None = None,
) -> tuple[Requirement, ...]:
    """Everything that sign-off asks for, met and unmet, in the order that one would work through it.

    `release_faults`: what the package itself still lacks (Task.missing_for_release). `reviewers`: how many must judge.
    `name`: of a person's id. `to_come`: whose review of the open round is not in, where sealed ones are known of; a
    sealed review is in, although the state does not show it yet.
    """
    missing = [person for person in state.round_reviewers if person not in state.submitted]
    waiting = [person for person in missing if to_come is None or person in to_come] or missing
    # Somebody assigned after the last round decides and signs as well, so they have to have judged the task.
    judged = {person for (_, person), review in state.reviews.items() if review.submitted}
    unheard = [person for person in state.reviewers if person not in judged and person not in state.round_reviewers]
    undecided = _with(state, "undecided")
    split, blocked, accepted = _with(state, "split"), _with(state, "blocked"), _with(state, "accepted")
    on_task = [veto for veto in state.vetoes if not veto.change]
    gate = state.gate

    def names(ids: Iterable[str]) -> str:
        return ", ".join(name(id) for id in ids)

    return (
        Requirement(
            "reviewers", f"{reviewers} reviewers are assigned", len(state.reviewers) >= reviewers,
            "The lead assigns reviewers who cover the task's group.",
        ),
        Requirement(
            "reviews", "Everybody who decides has submitted a review",
            bool(state.round) and not waiting and not unheard,
            f"Waiting for: {names(waiting)}." if waiting
            else f"The lead opens a round for {names(unheard) or 'the reviewers'}.",
        ),
        Requirement(
            "findings", "No finding is open", not state.open_findings,
            f"{len(state.open_findings)} open: propose a change, withdraw, or have the lead dismiss with a reason.",
        ),
        Requirement(
            "task-veto", "Nobody holds the task unsafe", not on_task,
            f"Veto by {names(veto.owner for veto in on_task)}: they lift it once the danger is gone.",
        ),
        Requirement(
            "vetoes", "No change stands under a veto", not blocked,
            f"{len(blocked)} blocked: the veto's owner lifts it, or an adjudicator does.",
        ),
        Requirement(
            "decided", "Every change is decided", not undecided,
            f"{len(undecided)} wait for: {names(sorted({p for c in undecided for p in c.waiting_for}))}.",
        ),
        Requirement(
            "split", "No decision is split", not split, f"{len(split)} for the adjudicator.",
        ),
        Requirement(
            "applied", "Every accepted change is applied", not accepted,
            f"{len(accepted)} accepted: apply them.",
        ),
        Requirement(
            "gate", "The gate has passed on exactly these bytes", bool(gate and gate.passed),
            "Run the gate." if gate is None else f"It failed: {'; '.join(gate.failures[:3])}.",
        ),
        Requirement(
            "complete", "The package has all that a release needs", not release_faults,
            "; ".join(release_faults[:5]),
        ),
    )  # fmt: skip


def may_sign(state: ReviewState, *, release_faults: Sequence[str] = (), reviewers: int = 2) -> tuple[Requirement, ...]:
    """The unmet requirements; empty when the task may be signed."""
    found = requirements(state, release_faults=release_faults, reviewers=reviewers)
    return tuple(one for one in found if not one.met)


def turns(state: ReviewState) -> tuple[Turn, ...]:
    """Whose turn it is now."""
    out: list[Turn] = []
    if state.stage == "unassigned":
        return (Turn("", "lead", "assign", "Assign reviewers and open a round"),)
    for person in state.round_reviewers:
        if person not in state.submitted:
            out.append(Turn(person, state.assigned.get(person, "reviewer"), "review", f"Review, round {state.round}"))
    if out:
        return tuple(out)
    if not state.reviewers and state.stage != "released":
        out.append(Turn("", "lead", "assign", "Assign reviewers: nobody is left who decides"))
    for person in state.reviewers:
        mine = [change for change in _with(state, "undecided") if person in change.waiting_for]
        if mine:
            out.append(Turn(person, "reviewer", "decide", f"Decide {_count(len(mine), 'change')}"))
    for veto in state.vetoes:
        out.append(Turn(veto.owner, "reviewer", "veto", "Lift the veto, once the danger is gone"))
    if split := _with(state, "split"):
        adjudicators = [person for person, role in state.assigned.items() if role == "adjudicator"] or [""]
        out += [Turn(one, "adjudicator", "adjudicate", f"Adjudicate {len(split)}") for one in adjudicators]
    if state.stage == "apply":
        out.append(Turn("", "author", "apply", f"Apply {_count(len(state.live_changes), 'accepted change')}"))
    if state.stage == "proposals":
        out.append(Turn("", "author", "propose", f"Answer {_count(len(state.open_findings), 'open finding')}"))
    if state.stage == "sign-off":
        out += [Turn(p, "reviewer", "sign", "Sign off") for p in state.reviewers if p not in state.signatures]
    if state.stage == "release":
        out.append(Turn("", "lead", "release", "Release"))
    return tuple(out)


def _with(state: ReviewState, status: str) -> list[ChangeState]:
    return [change for change in state.changes.values() if change.status == status]


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
