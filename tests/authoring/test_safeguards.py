"""What must not happen by accident: a signature on what was not seen, a veto lifted by a colleague, a comment lost."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from authoring.edits import AddResource, CheckpointEdit, TextEdit
from authoring.gate import Changed, Check, GateResult
from tasks.errors import NotAllowed, UsageError
from tasks.review import events as ev
from tasks.workspace import Workspace
from tests.authoring.rooms import ANN, AUTHOR, BOB, JUDY, LEAD, PLAN, Room, decision, finding, passing, review
from tests.tasks.packages import TINY_ID

LAB = TextEdit(path="instruction.md", find="follow-up laboratory", replace="creatinine in 3 months")


@pytest.fixture
def room(workspace: Workspace) -> Room:
    return Room(workspace)


def given(room: Room, person: str, **values: str) -> None:
    """Other values in a person's table of workbench.toml."""
    lines = room.workspace.settings_file.read_text("utf-8").split("[[person]]\n")
    for number, table in enumerate(lines):
        if f'id = "{person}"' in table:
            kept = [line for line in table.splitlines() if line.partition(" = ")[0] not in values]
            lines[number] = "\n".join([*kept, *(f"{name} = {value}" for name, value in values.items())]) + "\n"
    room.workspace.settings_file.write_text("[[person]]\n".join(lines), "utf-8")


def gated(room: Room) -> str:
    """A gate has passed; the package that it passed on."""
    with room.store.at() as view:
        files = view.files(TINY_ID)
    room.desk(LEAD).record_gate(TINY_ID, passing(files, TINY_ID))
    return ev.package_hash(files)


# A signature, a release


def test_nobody_signs_or_releases_a_version_that_they_did_not_see(room: Room) -> None:
    room.judged()
    seen = gated(room)
    room.decided(room.proposed(LAB))
    room.desk(AUTHOR).apply(TINY_ID, gate=passing)
    with pytest.raises(UsageError, match=r"changed after you opened it: version 2 stands now; nothing was signed"):
        room.desk(ANN).sign(TINY_ID, "Sound.", package=seen)
    now = room.desk(ANN).state(TINY_ID).package
    for who in (ANN, BOB):
        room.desk(who).sign(TINY_ID, "Sound.", package=now)
    with pytest.raises(UsageError, match="nothing was released"):
        room.desk(LEAD).release(TINY_ID, package=seen)
    room.desk(LEAD).release(TINY_ID, package=now)
    assert room.desk(LEAD).state(TINY_ID).stage == "released"


# A veto


def test_who_decides_on_a_task_does_not_lift_the_veto_of_a_colleague(room: Room) -> None:
    given(room, "bob", roles='["reviewer", "adjudicator"]')
    bob = BOB.model_copy(update={"roles": ("reviewer", "adjudicator")})
    room.judged()
    room.desk(LEAD).waive(TINY_ID, "cleo", "Knows anticoagulation.")
    room.desk(LEAD).assign(TINY_ID, "cleo", "reviewer")
    prepared = room.proposed(LAB)
    room.decided(prepared, "veto", ANN)
    change = prepared.changes[0].change
    with pytest.raises(NotAllowed, match="who reviews this task does not lift"):
        room.desk(bob).lift_veto(TINY_ID, change, "ann", "does not agree", "I see no danger.")
    room.decided(prepared, "approve", bob)
    room.desk(LEAD).unassign(TINY_ID, "bob", "To adjudicate.")
    with pytest.raises(NotAllowed, match="who decided on a change does not lift"):
        room.desk(bob).lift_veto(TINY_ID, change, "ann", "does not agree", "I see no danger.")
    room.desk(JUDY).lift_veto(TINY_ID, change, "ann", "does not agree", "Asked; she keeps to it.")
    assert room.desk(LEAD).state(TINY_ID).changes[change].decisions["ann"].decision == "reject"


def test_a_veto_on_the_task_is_not_lifted_by_somebody_who_judged_it(room: Room) -> None:
    given(room, "bob", roles='["reviewer", "adjudicator"]')
    bob = BOB.model_copy(update={"roles": ("reviewer", "adjudicator")})
    room.opened()
    for who in (ANN, bob):
        room.desk(who).lock_plan(TINY_ID, PLAN)
    found = finding(dimension="patient_safety")
    unsafe = review([found])
    for one in unsafe["verdicts"]:
        if one["dimension"] == "patient_safety":
            one["verdict"] = "unsafe"
    room.desk(ANN).submit_review(TINY_ID, unsafe)
    room.desk(bob).submit_review(TINY_ID, review())
    with pytest.raises(NotAllowed, match="who reviews this task"):
        room.desk(bob).lift_veto(TINY_ID, "", "ann", "agrees", "It is safe.")
    room.desk(LEAD).unassign(TINY_ID, "bob", "To adjudicate.")
    with pytest.raises(NotAllowed, match="who judged this task"):
        room.desk(bob).lift_veto(TINY_ID, "", "ann", "agrees", "It is safe.")
    room.desk(JUDY).lift_veto(TINY_ID, "", "ann", "agrees", "She has seen the new potassium.")
    assert room.desk(LEAD).state(TINY_ID).vetoes == ()


def test_a_change_under_a_veto_that_nobody_wants_does_not_hold_the_task_up(room: Room) -> None:
    room.judged()
    prepared = room.proposed(LAB)
    room.decided(prepared, "veto", ANN)
    with pytest.raises(UsageError, match="Finish them first"):
        room.desk(LEAD).open_round(TINY_ID)
    room.decided(prepared, "reject", BOB)
    assert room.desk(LEAD).state(TINY_ID).live_changes == ()
    room.desk(LEAD).open_round(TINY_ID)


def test_a_change_is_not_applied_without_the_one_that_it_needs(room: Room) -> None:
    room.judged()
    prepared = room.proposed(
        AddResource(resource={"resourceType": "Observation", "id": "o-new", "status": "final"}),
        CheckpointEdit(
            checkpoint="cp3", set={"rests_on": ["Observation/o-new"]},
            was={"rests_on": ["Observation/o-creatinine", "Observation/o-weight"]},
        ),
    )  # fmt: skip
    room.desk(ANN).decide(TINY_ID, [decision(prepared.changes[0], "approve"), decision(prepared.changes[1], "veto")])
    room.desk(BOB).decide(TINY_ID, [decision(ref, "approve") for ref in prepared.changes])
    was = {"title": "The reply says what the dose rests on"}
    other = room.proposed(CheckpointEdit(checkpoint="cp3", set={"title": "Said why"}, was=was))
    room.decided(other)
    room.desk(AUTHOR).apply(TINY_ID, [other.changes[0].change], gate=passing)
    states = room.desk(LEAD).state(TINY_ID).changes
    assert [states[ref.change].status for ref in prepared.changes] == ["outdated", "outdated"]
    with pytest.raises(UsageError, match="nothing to apply"):
        room.desk(AUTHOR).apply(TINY_ID, gate=passing)
    with pytest.raises(UsageError, match=r"version 2, applied by author on .* changed checkpoints\.toml#cp3"):
        room.desk(BOB).decide(TINY_ID, [decision(prepared.changes[0], "approve")])


# A comment


def test_what_is_sealed_comes_out_when_the_last_of_the_round_is_unassigned(room: Room) -> None:
    room.opened()
    room.desk(ANN).lock_plan(TINY_ID, PLAN)
    room.desk(ANN).submit_review(TINY_ID, review([finding("The dose is not said.")]))
    lead = room.desk(LEAD)
    lead.unassign(TINY_ID, "ann", "On leave.")
    assert lead.state(TINY_ID).findings == {}, "the other one is still blind"
    lead.unassign(TINY_ID, "bob", "On leave too.")
    assert [one.finding.text for one in lead.state(TINY_ID).open_findings] == ["The dose is not said."]
    assert not lead.db.unopened(TINY_ID)


def test_who_made_a_task_does_not_end_what_was_found_in_it(room: Room) -> None:
    given(room, "author", roles='["author", "lead"]')
    room.judged(finding())
    author = AUTHOR.model_copy(update={"roles": ("author", "lead")})
    (id,) = room.desk(LEAD).state(TINY_ID).findings
    with pytest.raises(NotAllowed, match="wrote this task"):
        room.desk(author).dismiss(TINY_ID, id, "It is fine as it is.")
    room.desk(LEAD).dismiss(TINY_ID, id, "Out of scope.")


# The record


def test_the_gate_of_an_application_is_recorded_with_what_it_tried(room: Room) -> None:
    room.judged()
    room.decided(room.proposed(LAB))
    caught, missed = Changed("p", "left out", "the order", ("cp2",)), Changed("p", "ten-fold dose", "the order")
    unhurt = Changed("p", "brand name", "the order")

    def gate(files: Mapping[str, bytes], task: str) -> GateResult:
        mutants, variants = (caught, missed), (unhurt,)
        return GateResult(task, ev.package_hash(files), (Check("all", "passed"),), mutants=mutants, variants=variants)

    room.desk(AUTHOR).apply(TINY_ID, gate=gate)
    found = room.desk(LEAD).state(TINY_ID).gate
    assert found is not None
    assert (found.mutants, found.survivors, found.variants) == (2, ("p: ten-fold dose: the order",), 1)


def test_a_pharmacist_who_may_review_as_well_speaks_as_the_pharmacist(room: Room) -> None:
    given(room, "bob", roles='["reviewer", "pharmacist"]')
    bob = BOB.model_copy(update={"roles": ("reviewer", "pharmacist")})
    lead = room.desk(LEAD)
    lead.assign(TINY_ID, "ann", "reviewer")
    lead.assign(TINY_ID, "bob", "pharmacist")
    lead.open_round(TINY_ID)
    for who in (ANN, bob):
        room.desk(who).lock_plan(TINY_ID, PLAN)
        room.desk(who).submit_review(TINY_ID, review())
    room.decided(room.proposed(LAB), "approve", ANN, bob)
    with room.store.at() as view:
        events = lead.snapshot(view, TINY_ID).events
    kinds = (ev.PlanLocked, ev.ReviewSubmitted, ev.Decided)
    roles = {(one.actor, one.role) for one in events if isinstance(one, kinds)}
    assert roles == {("ann", "reviewer"), ("bob", "pharmacist")}
