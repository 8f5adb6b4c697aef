"""Verify reads a history that somebody wrote past the desk: each thing that the desk would have refused is told."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from authoring.audit import audit
from authoring.edits import TextEdit
from authoring.seat import identity_of
from tasks.people import Person
from tasks.review import events as ev
from tasks.store import Submission, View
from tasks.workspace import Workspace
from tests.authoring.rooms import ANN, AUTHOR, BOB, CLEO, JUDY, LEAD, PEOPLE, PLAN, Room, finding, passing, review
from tests.tasks.packages import TINY_ID

LAB = TextEdit(path="instruction.md", find="follow-up laboratory", replace="creatinine in 3 months")
OTHER = "3" * 64


@pytest.fixture
def room(workspace: Workspace) -> Room:
    return Room(workspace).judged()


def forge(
    room: Room,
    who: Person,
    kind: type[ev.Base],
    files: dict[str, bytes] | None = None,
    *,
    role: str = "",
    **values: Any,
) -> None:
    """One event written past the desk, in a commit that is in order in everything else."""

    def build(view: View) -> list[Submission]:
        lines = view.read(f"{TINY_ID}/{ev.FILE}") or b""
        state = room.desk(LEAD).snapshot(view, TINY_ID).state
        event = kind.model_validate(
            {
                "submission": ev.new_id(), "task": TINY_ID, "actor": who.id, "role": role or who.roles[0],
                "at": datetime.now(UTC), "round": state.round,
            } | values
        )  # fmt: skip
        changes: dict[str, bytes | None] = {f"{TINY_ID}/{path}": data for path, data in (files or {}).items()}
        changes[f"{TINY_ID}/{ev.FILE}"] = lines + ev.dump_events([event])  # type: ignore[list-item]
        return [Submission(identity_of(who), "x", changes, {"Task": TINY_ID, "Review-Id": event.submission})]

    room.store.submit(build)


def faults(room: Room) -> list[str]:
    # The first commit of such a room carries no id of its submission; that is told, and is not what is asked here.
    found = audit(room.store, TINY_ID, {one.id: one for one in PEOPLE}).faults
    return [one.words for one in found if "not one submission" not in one.words]


def package(room: Room) -> str:
    with room.store.at() as view:
        return ev.package_hash(view.files(TINY_ID))


def gated(room: Room) -> str:
    with room.store.at() as view:
        room.desk(LEAD).record_gate(TINY_ID, passing(view.files(TINY_ID), TINY_ID))
    return package(room)


def applied(room: Room, ref: ev.ChangeRef) -> None:
    """The change is applied past the desk, with the very bytes that it makes."""
    with room.store.at() as view:
        files = view.files(TINY_ID)
    before = ev.package_hash(files)
    files["instruction.md"] = files["instruction.md"].replace(LAB.find.encode(), LAB.replace.encode())
    forge(
        room, AUTHOR, ev.Applied, {"instruction.md": files["instruction.md"]},
        changes=(ref.change,), before=before, package=ev.package_hash(files), version="1", units={ref.unit: ref.result},
    )  # fmt: skip


def test_a_history_with_everything_in_it_holds(room: Room) -> None:
    lead, prepared = room.desk(LEAD), room.proposed(LAB)
    change = prepared.changes[0].change
    room.decided(prepared, "veto", ANN)
    room.decided(prepared, "approve", BOB)
    room.desk(JUDY).lift_veto(TINY_ID, change, "ann", "does not agree", "Asked; she keeps to it.")
    room.desk(JUDY).adjudicate(TINY_ID, change, "approve", "The label says so.")
    room.desk(AUTHOR).apply(TINY_ID, gate=passing)
    lead.open_round(TINY_ID)
    for who in (ANN, BOB):
        room.desk(who).lock_plan(TINY_ID, PLAN)
        room.desk(who).submit_review(TINY_ID, review())
    for who in (ANN, BOB):
        room.desk(who).sign(TINY_ID, "Sound.")
    lead.release(TINY_ID)
    assert faults(room) == []


@pytest.mark.parametrize(
    ("words", "status"),
    [(("veto", "approve"), "blocked"), (("reject", "reject"), "rejected"), (("approve", ""), "undecided")],
)
def test_what_was_not_accepted_was_not_applied(room: Room, words: tuple[str, str], status: str) -> None:
    prepared = room.proposed(LAB)
    for who, word in zip((ANN, BOB), words, strict=True):
        if word:
            room.decided(prepared, word, who)
    applied(room, prepared.changes[0])
    (fault,) = faults(room)
    assert "Ada: 1 change applied without being accepted before" in fault
    assert fault.endswith(f"1 {status}")


def test_a_change_that_was_never_put_up_was_not_applied(room: Room) -> None:
    ref = ev.ChangeRef(change=OTHER, unit="instruction.md", base=OTHER, result=OTHER)
    applied(room, ref)
    assert "1 not proposed" in faults(room)[0]


def test_a_signature_is_by_who_reviews_the_task_and_when_nothing_is_open(room: Room) -> None:
    sound = gated(room)
    forge(room, CLEO, ev.Signed, package=sound, statement="Sound.")
    assert [fault.partition(": ")[2] for fault in faults(room)] == ["signed by cleo, who does not review this task"]
    room.proposed(LAB)
    forge(room, ANN, ev.Signed, package=sound, statement="Sound.")
    assert "signed while this did not hold: Every change is decided" in faults(room)[-1]


def released(room: Room, sound: str) -> list[str]:
    forge(room, LEAD, ev.Released, package=sound, version="1", tag="release/x/1", manifest=OTHER)
    return [one for one in faults(room) if "the list of what was released" not in one]


def test_a_release_needs_the_signature_of_everybody(room: Room) -> None:
    sound = gated(room)
    room.desk(ANN).sign(TINY_ID, "Sound.")
    forge(room, CLEO, ev.Signed, package=sound, statement="Sound.")
    assert "released without the signature of bob on it" in released(room, sound)[-1]


def test_a_signature_from_before_another_round_is_none(room: Room) -> None:
    sound = gated(room)
    for who in (ANN, BOB):
        room.desk(who).sign(TINY_ID, "Sound.")
    room.desk(LEAD).open_round(TINY_ID)
    told = released(room, sound)
    assert any("released without the signature of ann, bob on it" in one for one in told)
    assert any("released while this did not hold: Everybody who decides has submitted" in one for one in told)


def test_a_decision_and_a_ruling_are_on_what_was_put_up(room: Room) -> None:
    ref = room.proposed(LAB).changes[0]
    values = {"change": ref.change, "base": ref.base, "result": OTHER, "decision": "approve"}
    forge(room, ANN, ev.Decided, **values)
    forge(room, CLEO, ev.Decided, **values | {"result": ref.result})
    forge(room, JUDY, ev.Adjudicated, **values, reason="It is right.")
    assert [fault.partition(": ")[2] for fault in faults(room)] == [
        "a decision on something else than was put up",
        "a decision by cleo, who does not review this task",
        "a ruling on something else than was put up",
        "a ruling on a change that was undecided, not split",
    ]


def test_a_ruling_is_by_nobody_who_decided(room: Room) -> None:
    prepared = room.proposed(LAB)
    room.decided(prepared, "approve", ANN)
    room.decided(prepared, "reject", BOB)
    ref = prepared.changes[0]
    forge(
        room, ANN, ev.Adjudicated, role="adjudicator",
        change=ref.change, base=ref.base, result=ref.result, decision="approve", reason="It is right.",
    )  # fmt: skip
    assert "a ruling by ann, who made the change or decided on it" in faults(room)[-1]


def test_a_veto_is_lifted_by_its_owner_or_an_adjudicator(room: Room) -> None:
    prepared = room.proposed(LAB)
    room.decided(prepared, "veto", ANN)
    values = {"change": prepared.changes[0].change, "owner": "ann", "owner_says": "agrees", "reason": "No danger."}
    forge(room, BOB, ev.VetoLifted, **values)
    assert "the veto of ann was lifted by bob, who is no adjudicator" in faults(room)[-1]


def test_a_review_comes_after_its_plan(room: Room) -> None:
    found = review([finding()])
    forge(room, CLEO, ev.ReviewSubmitted, package=package(room), checklist="1", **found)
    assert "a review of cleo without a locked plan before it" in faults(room)[-1]
