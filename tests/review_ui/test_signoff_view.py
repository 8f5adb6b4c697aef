"""Sign-off and adjudication as a person sees them: what is offered, what a stale page can still do, in whose words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from authoring.audit import Audit, Fault
from authoring.edits import TextEdit
from review_ui.autosave import Notebook
from review_ui.reviewing import worklist
from review_ui.reviewing.signoff_view import verified
from tasks.people import Person
from tasks.review.signoff import Turn
from tasks.review.state import ReviewState, Veto
from tasks.workspace import Workspace
from tests.authoring.rooms import ANN, AUTHOR, BOB, JUDY, LEAD, PLAN, Room, decision, finding, passing, review
from tests.tasks.packages import TINY_ID

ROOT = Path(__file__).resolve().parents[2]
LAB = TextEdit(path="instruction.md", find="follow-up laboratory", replace="creatinine in 3 months")
Said = Callable[[AppTest], str]


@pytest.fixture
def room(workspace: Path) -> Room:
    return Room(Workspace(workspace))


def page(who: Person, name: str = "signoff") -> AppTest:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    test.switch_page(f"review_ui/pages/{name}.py")
    test.query_params.update({"id": TINY_ID, "as": who.id})
    test.run()
    assert not test.exception
    return test


def labels(test: AppTest) -> list[str]:
    return [one.label for one in test.button]


def press(test: AppTest, label: str) -> None:
    next(one for one in test.button if one.label == label).click().run()
    assert not test.exception


def ready_to_sign(room: Room) -> None:
    room.judged()
    with room.store.at() as view:
        room.desk(LEAD).record_gate(TINY_ID, passing(view.files(TINY_ID), TINY_ID))


def test_a_page_that_showed_an_earlier_version_signs_nothing(room: Room, said: Said) -> None:
    ready_to_sign(room)
    stale = page(ANN)
    assert "Sign version 1" in said(stale)
    room.decided(room.proposed(LAB))
    room.desk(AUTHOR).apply(TINY_ID, gate=passing)
    press(stale, "Sign")
    assert room.desk(LEAD).state(TINY_ID).signatures == {}
    assert "changed after you opened it: version 2 stands now" in said(stale)
    press(stale, "Sign")
    assert set(room.desk(LEAD).state(TINY_ID).signatures) == {"ann"}


def test_the_lead_takes_a_reviewer_off_with_a_reason(room: Room) -> None:
    room.opened()
    room.desk(ANN).lock_plan(TINY_ID, PLAN)
    room.desk(ANN).submit_review(TINY_ID, review([finding()]))
    test = page(LEAD)
    press(test, "Take off")
    assert room.desk(LEAD).state(TINY_ID).round_is_open, "neither a person nor a reason was given"
    book = Notebook(room.desk(LEAD).db, "lead", TINY_ID, 1, True)
    book.save("unassign.who", "bob")
    book.save("unassign.reason", "On leave.")
    test = page(LEAD)
    press(test, "Take off")
    state = room.desk(LEAD).state(TINY_ID)
    assert (state.reviewers, state.submitted, len(state.open_findings)) == (("ann",), ("ann",), 1)


def test_nobody_but_the_lead_takes_anybody_off(room: Room) -> None:
    room.opened()
    assert "Take off" not in labels(page(ANN))


def test_who_is_waited_for_is_named_and_a_sealed_review_is_in(room: Room, said: Said) -> None:
    room.opened()
    room.desk(ANN).lock_plan(TINY_ID, PLAN)
    room.desk(ANN).submit_review(TINY_ID, review())
    words = said(page(LEAD))
    assert "Waiting for: Bob." in words


def test_a_colleague_is_not_offered_to_lift_a_veto_and_an_adjudicator_is(room: Room, said: Said) -> None:
    text = room.workspace.settings_file.read_text("utf-8")
    table = 'name = "Bob"\nemail = "bob@example.org"\nroles = ["reviewer"'
    assert table in text
    room.workspace.settings_file.write_text(text.replace(table, table + ', "adjudicator"'), "utf-8")
    room.judged()
    prepared = room.proposed(LAB)
    (change,) = prepared.changes
    room.decided(prepared, "veto", ANN)
    assert "Veto on" not in said(page(BOB, "decide"))
    judge = page(JUDY, "decide")
    assert "Veto on" in said(judge)
    assert "Lift the veto" in labels(judge)
    room.desk(LEAD).waive(TINY_ID, "cleo", "Knows anticoagulation.")
    room.desk(LEAD).assign(TINY_ID, "cleo", "reviewer")
    room.desk(LEAD).unassign(TINY_ID, "bob", "To adjudicate.")
    assert "Lift the veto" in labels(page(BOB, "decide")), "he has not decided on the change"
    room.desk(LEAD).assign(TINY_ID, "bob", "reviewer")
    room.desk(BOB).decide(TINY_ID, [decision(change, "approve")])
    room.desk(LEAD).unassign(TINY_ID, "bob", "To adjudicate.")
    test = page(BOB, "decide")
    assert "What is open here is for another adjudicator." in said(test)
    assert "Lift the veto" not in labels(test)


def test_a_veto_of_somebody_who_was_taken_off_can_still_be_lifted_by_them(room: Room, said: Said) -> None:
    room.judged()
    room.decided(room.proposed(LAB), "veto", ANN)
    assert "Lift my veto" not in labels(page(ANN))
    room.desk(LEAD).unassign(TINY_ID, "ann", "On leave.")
    test = page(ANN)
    assert "Your veto on" in said(test)
    assert "Lift my veto" in labels(test)


def test_why_accepted_changes_cannot_be_applied_yet_stands_beside_the_button(room: Room, said: Said) -> None:
    room.judged()
    one = room.proposed(LAB)
    room.proposed(TextEdit(path="instruction.md", find="Please decide", replace="Decide"))
    room.decided(one)
    test = page(AUTHOR)
    assert next(one for one in test.button if one.label.startswith("Apply")).disabled
    assert "Every change has to be decided first." in said(test)


def test_what_verify_came_to_is_in_words() -> None:
    assert "who did each, in which order, and on what" in verified(Audit((), 3, ()))
    told = verified(Audit((), 3, (Fault("f" * 40, "3 Mar 2026, 09:00, Ann: an event stands twice"),)))
    assert "1 fault<" in told
    assert "Ann: an event stands twice" in told
    assert "fffff" not in told


def test_who_made_the_task_is_not_offered_to_dismiss_what_was_found(room: Room) -> None:
    room.judged(finding())
    assert "Dismiss this finding" in labels(page(LEAD))
    text = room.workspace.settings_file.read_text("utf-8")
    room.workspace.settings_file.write_text(text.replace('roles = ["author"]', 'roles = ["author", "lead"]'), "utf-8")
    assert "Dismiss this finding" not in labels(page(AUTHOR))


@pytest.mark.parametrize(("change", "place"), [("", "signoff.py"), ("a" * 64, "decide.py")])
def test_a_veto_is_lifted_where_it_can_be(change: str, place: str) -> None:
    turn, veto = Turn("ann", "reviewer", "veto"), Veto(change, "ann", "Unsafe.", 1)
    assert worklist.page_of(turn, ReviewState("t", assigned={"ann": "reviewer"}, vetoes=(veto,))) == place
    assert worklist.page_of(turn, ReviewState("t", vetoes=(veto,))) == "signoff.py", "she decides no more"
