"""Every pair of role and action, and who may not judge what."""

from __future__ import annotations

import pytest

from tasks.errors import NotAllowed
from tasks.people import ROLES, Person, Role
from tasks.review.permissions import (
    ACTIONS,
    TABLE,
    Action,
    allowed,
    conflict,
    covers,
    reads,
    refuse_unread,
    refuse_unverified,
    require,
)

#: Written out a second time, by action, so that a slip in the table shows.
EXPECTED: dict[str, set[str]] = {
    "propose": {"author", "reviewer", "pharmacist", "lead"},
    "assign": {"lead"},
    "waive": {"lead"},
    "open_round": {"lead"},
    "review": {"reviewer", "pharmacist"},
    "withdraw_finding": {"reviewer", "pharmacist"},
    "dismiss_finding": {"lead"},
    "run_gate": {"author", "reviewer", "pharmacist", "adjudicator", "lead", "researcher"},
    "decide": {"reviewer", "pharmacist"},
    "lift_veto": {"reviewer", "pharmacist", "adjudicator"},
    "adjudicate": {"adjudicator"},
    "apply": {"author", "lead"},
    "sign": {"reviewer", "pharmacist"},
    "release": {"lead"},
    "report_defect": {"author", "reviewer", "pharmacist", "adjudicator", "lead", "researcher", "steward"},
    "run_trials": {"author", "reviewer", "lead", "researcher"},
    "grade_by_hand": {"reviewer", "pharmacist", "adjudicator"},
    "see_identified": {"steward"},
    "deidentify": {"steward"},
}


def one(*roles: Role, **values: object) -> Person:
    return Person.model_validate({"id": "ann", "name": "Ann", "email": "ann@example.org", "roles": roles} | values)


@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("role", ROLES)
def test_every_pair_of_role_and_action(role: Role, action: Action) -> None:
    person = one(role)
    if role in EXPECTED[action]:
        assert allowed(person, action)
        assert require(person, action) == role
    else:
        assert not allowed(person, action)
        with pytest.raises(NotAllowed, match="may not") as refused:
            require(person, action)
        assert sorted(EXPECTED[action])[0] in refused.value.remedy or EXPECTED[action]


def test_the_table_knows_every_role_and_every_action_is_somebodys() -> None:
    assert set(TABLE) == set(ROLES)
    assert set().union(*TABLE.values()) == set(ACTIONS) == set(EXPECTED)


def test_two_roles_add_up() -> None:
    person = one("author", "lead")
    assert require(person, "release") == "lead"
    with pytest.raises(NotAllowed):
        require(person, "review")


@pytest.mark.parametrize(
    ("person", "words"),
    [
        (one("reviewer"), "wrote this task"),
        (one("reviewer", id="bob", conflicts=("demo-task",)), "conflict with this task"),
        (one("reviewer", id="bob", conflicts=("ann",)), "conflict with ann"),
    ],
)
def test_who_may_not_judge(person: Person, words: str) -> None:
    assert words in (conflict(person, "demo-task", makers=["ann"]) or "")


def test_a_stranger_to_the_task_may_judge_it() -> None:
    assert conflict(one("reviewer", id="bob"), "demo-task", makers=["ann"]) is None


def test_a_reviewer_covers_the_group_not_only_the_specialty() -> None:
    person = one("reviewer", specialties=("Nephrology",))
    assert covers(person, "Urology")
    assert not covers(person, "Cardiology")


def test_unverified_identities_are_for_open_data() -> None:
    refuse_unverified("open", verified=False)
    refuse_unverified("phi", verified=True)
    for data_class in ("dua", "phi"):
        with pytest.raises(NotAllowed, match="not verified"):
            refuse_unverified(data_class, verified=False)  # type: ignore[arg-type]


def test_who_may_read_a_task_of_which_data_class() -> None:
    reviewer = one("reviewer")
    steward = one("reviewer", "steward")
    may = {
        (who, data_class, verified): reads(who, data_class, verified=verified)
        for who in (None, reviewer, steward)
        for data_class in ("open", "dua", "phi", "something new")
        for verified in (False, True)
    }
    assert {key for key, value in may.items() if value and key[1] != "open"} == {
        (reviewer, "dua", True), (steward, "dua", True), (steward, "phi", True), (steward, "something new", True),
    }  # fmt: skip
    assert all(value for key, value in may.items() if key[1] == "open")
    refuse_unread(None, "open", verified=False)
    with pytest.raises(NotAllowed, match="not verified here"):
        refuse_unread(steward, "phi", verified=False)
    with pytest.raises(NotAllowed, match="only a steward may see"):
        refuse_unread(reviewer, "phi", verified=True)
