"""Who may do what: one table of role and action, default deny, asked by every function that changes something."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from tasks.errors import NotAllowed
from tasks.people import ROLES, Person, Role
from tasks.taxonomy import SPECIALTIES, DataClass

Action = Literal[
    "propose",
    "assign",
    "waive",
    "open_round",
    "review",
    "withdraw_finding",
    "dismiss_finding",
    "run_gate",
    "decide",
    "lift_veto",
    "adjudicate",
    "apply",
    "sign",
    "release",
    "report_defect",
    "run_trials",
    "grade_by_hand",
    "see_identified",
    "deidentify",
]
ACTIONS: tuple[str, ...] = get_args(Action)

#: What each role may do. What is not here is refused. Holding two roles adds up, but see `conflict`.
TABLE: dict[Role, frozenset[Action]] = {
    "author": frozenset({"propose", "run_gate", "apply", "run_trials", "report_defect"}),
    "reviewer": frozenset(
        {"review", "withdraw_finding", "propose", "run_gate", "decide", "lift_veto", "sign", "grade_by_hand",
         "run_trials", "report_defect"}
    ),
    "pharmacist": frozenset(
        {"review", "withdraw_finding", "propose", "run_gate", "decide", "lift_veto", "sign", "grade_by_hand",
         "report_defect"}
    ),
    "adjudicator": frozenset({"adjudicate", "lift_veto", "run_gate", "grade_by_hand", "report_defect"}),
    "lead": frozenset(
        {"assign", "waive", "open_round", "dismiss_finding", "propose", "run_gate", "apply", "release",
         "run_trials", "report_defect"}
    ),
    "researcher": frozenset({"run_gate", "run_trials", "report_defect"}),
    "steward": frozenset({"see_identified", "deidentify", "report_defect"}),
}  # fmt: skip


def allowed(person: Person, action: Action) -> bool:
    """Whether any role of the person covers the action."""
    return any(action in TABLE.get(role, frozenset()) for role in person.roles)


def require(person: Person, action: Action, *, assigned: str | None = None) -> Role:
    """The role that the person acts in: the one that they are assigned in on this task where it covers the action, so
    that a pharmacist who may review as well speaks as the pharmacist. Raises NotAllowed, naming the roles that would
    do."""
    for role in sorted(ROLES, key=lambda one: one != assigned):
        if person.has(role) and action in TABLE[role]:
            return role
    may = [role for role in ROLES if action in TABLE[role]]
    words = action.replace("_", " ")
    raise NotAllowed(
        f"{person.name} may not {words} ({', '.join(person.roles)}).", remedy=f"That is for: {', '.join(may)}."
    )


def conflict(person: Person, task: str, *, makers: Iterable[str]) -> str | None:
    """Why this person may not judge this task, or None.

    `makers` are the ids of those who wrote it: nobody reviews, signs or adjudicates their own task.
    """
    makers = set(makers)
    if person.id in makers:
        return f"{person.name} wrote this task"
    if task in person.conflicts:
        return f"{person.name} has declared a conflict with this task"
    if declared := sorted(makers & set(person.conflicts)):
        return f"{person.name} has declared a conflict with {', '.join(declared)}, who wrote it"
    return None


def covers(person: Person, specialty: str) -> bool:
    """Whether the person covers the group that this specialty belongs to."""
    return SPECIALTIES[specialty] in person.groups


def reads(person: Person | None, data_class: str, *, verified: bool) -> bool:
    """Whether a task of this data class may be read. A class that is not known counts as identified records."""
    if data_class == "open":
        return True
    if person is None or not verified:
        return False
    return data_class == "dua" or allowed(person, "see_identified")


def refuse_unread(person: Person | None, data_class: str, *, verified: bool) -> None:
    """Raise NotAllowed where a task of this data class may not be read; the message says nothing of the task."""
    if reads(person, data_class, verified=verified):
        return
    if person is None or not verified:
        raise NotAllowed(
            "identities are not verified here, and this task's data class is not open.",
            remedy="Sign in where single sign-on is configured.",
        )
    raise NotAllowed(
        "this task's data class is phi: identified records, which only a steward may see.",
        remedy="Whoever wrote it sets its data class to open or dua, once the record is known to be de-identified.",
    )


def refuse_unverified(data_class: DataClass, *, verified: bool) -> None:
    """Identities that nobody verified are enough for open data only. Raises NotAllowed."""
    if data_class != "open" and not verified:
        raise NotAllowed(
            f"identities are not verified here, and this task's data class is {data_class}.",
            remedy="Configure single sign-on (st.login), or use a task of data class open.",
        )
