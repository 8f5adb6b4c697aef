"""Submitting a review: no word that somebody wrote goes without their knowing, and none that they left is lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Button

from authoring.desk import Desk
from authoring.library import open_store
from review_ui.autosave import Mark, Memory
from review_ui.reviewing import forms, left_view
from tasks.package import FolderSource
from tasks.people import person
from tasks.review.checklist import checklist
from tasks.review.events import Finding, PlanAmended, ReviewSubmitted, parse_events
from tasks.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
TASK, ME, OTHER = "nephrology-small", "demo-reviewer-1", "demo-reviewer-2"
PLAN = {key: "As said." for key, _, _ in forms.PLAN} | {"confidence": "sure"}
COMPLETE = {
    **{f"verdict.{one.id}": "acceptable" for one in checklist().dimensions},
    "rating.cp1": "essential",
    "rating.cp2": "optional",
    "confidence": "sure",
}
Page = Callable[..., AppTest]
Said = Callable[[AppTest], str]


@pytest.fixture
def desk(packages: ModuleType, tmp_path: Path, workspace: Path) -> Desk:
    """The first reviewer's, with a plan locked in an open round."""
    packages.write(tmp_path / "suite")
    place = Workspace(workspace)
    store = open_store(place, suite=FolderSource(tmp_path / "suite"))
    lead = Desk(place, store, person(place.settings.people, "demo-lead"))
    for who in (ME, OTHER):
        lead.assign(TASK, who, "reviewer")
    lead.open_round(TASK)
    desks = Desk(place, store, person(place.settings.people, ME))
    desks.lock_plan(TASK, PLAN)
    return desks


@pytest.fixture
def page(desk: Desk) -> Page:
    """The Review page with these drafts kept."""

    def opened(**drafts: str) -> AppTest:
        for item, value in {**COMPLETE, **drafts}.items():
            desk.db.save_draft(ME, TASK, 1, item.replace("__", "."), value)
        test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        test.query_params["as"] = ME
        test.run()
        test.switch_page("review_ui/pages/review.py")
        test.query_params.update({"id": TASK, "as": ME})
        test.run()
        assert not test.exception
        return test

    return opened


def button(test: AppTest, label: str) -> Button:
    (found,) = [one for one in test.button if one.label == label]
    return found


def stored(desk: Desk) -> ReviewSubmitted | None:
    sealed = [one for one in desk.db.sealed(TASK, 1) if one.person == ME and one.kind == "review"]
    if not sealed:
        return None
    (event,) = parse_events(sealed[0].events)
    assert isinstance(event, ReviewSubmitted)
    return event


def finding(id: str, text: str = "No time is given.") -> str:
    return Finding.model_validate(
        {"id": id, "dimension": "clinical_reasoning", "anchor": {"kind": "task"}, "weight": "should", "text": text}
    ).model_dump_json()


def unfold(test: AppTest) -> None:
    """Open the list of what is missing."""
    test.session_state[f"missing-{test.session_state['autosave-memory'].leads}"] = True
    test.run()


def test_a_complete_review_is_submitted_and_its_drafts_go(desk: Desk, page: Page, said: Said) -> None:
    test = page(**{"finding.a": finding("a")})
    button(test, "Submit review").click().run()
    event = stored(desk)
    assert event is not None
    assert [one.text for one in event.findings] == ["No time is given."]
    assert desk.db.drafts(ME, TASK, 1) == {}
    assert "Not submitted" not in said(test)


LEFT = {
    "the composer": ({"composer": "b", "new.b.text": "Half a thought."}, "Half a thought."),
    "a finding that waits": ({"composer": "c", "new.b.text": "Half a thought."}, "Half a thought."),
    "only a source": ({"composer": "b", "new.b.source": "A guideline."}, "A guideline."),
    "a correction": ({"amend.0": "And by phone."}, "And by phone."),
    "a reason of another rating": ({"why.cp1": "It was wrong."}, "It was wrong."),
    "a comment that another window could not save": (
        {"comment.patient_safety": "Said here.", "beside.comment.patient_safety": "Said there."},
        "Said there.",
    ),
    "a plan that another window could not save": ({"beside.plan.do_now": "And call the ward."}, "And call the ward."),
    "words for a plan that was locked before": ({"plan.do_now": "And call the ward."}, "And call the ward."),
    "a finding that cannot be read": (
        {"finding.d": '{"id": "d", "text": "Of a later version."}'},
        "Of a later version.",
    ),
}


@pytest.mark.parametrize("case", list(LEFT))
def test_words_that_would_not_go_with_it_stop_it_and_are_named_and_kept(
    desk: Desk, page: Page, said: Said, case: str
) -> None:
    drafts, words = LEFT[case]
    test = page()
    # The page was drawn before the words were saved: the button can be pressed.
    for item, value in drafts.items():
        desk.db.save_draft(ME, TASK, 1, item, value)
    button(test, "Submit review").click().run()
    assert stored(desk) is None
    assert words in said(test)
    # A second click of a double click finds nothing to press, and Submit without it stands elsewhere.
    assert button(test, "Submit review").disabled
    assert [one.label for one in test.button if one.label == "Submit without it"] == []
    unfold(test)
    button(test, "Submit without it").click().run()
    event = stored(desk)
    assert event is not None
    assert event.findings == ()
    assert all(one.comment == "" for one in event.ratings)
    # It stands on the page that follows, and leaves only when that is asked for.
    assert words in said(test)
    test.session_state["discard-1"] = True
    test.run()
    button(test, "Discard these words").click().run()
    assert words not in said(test)
    assert desk.db.tasks_with_drafts(ME) == []


def test_words_written_since_the_list_was_shown_are_not_left_behind_unseen(desk: Desk, page: Page, said: Said) -> None:
    test = page(**{"amend.0": "And by phone."})
    unfold(test)
    desk.db.save_draft(ME, TASK, 1, "new.b.text", "Typed in another window.")
    button(test, "Submit without it").click().run()
    assert stored(desk) is None
    assert "Typed in another window." in said(test)


@pytest.mark.parametrize("item", ["new.b.text", "amend.0", "comment.patient_safety", "why.cp1"])
@pytest.mark.parametrize("what", ["over", "conflict", "failed"])
def test_a_field_that_is_not_saved_as_it_stands_stops_it(
    desk: Desk, page: Page, said: Said, item: str, what: str
) -> None:
    test = page(composer="b")
    memory = test.session_state["autosave-memory"]
    assert isinstance(memory, Memory)
    setattr(memory.mark(f"draft-{ME}-{TASK}-1-x {item}"), what, True)
    button(test, "Submit review").click().run()
    assert stored(desk) is None
    assert "Something is not saved as it stands." in said(test)


def test_a_finding_whose_field_is_not_saved_does_not_leave_the_composer(desk: Desk, page: Page, said: Said) -> None:
    test = page(**{"composer": "b", "finding.a": finding("a")})
    test.session_state["autosave-memory"].marks[f"draft-{ME}-{TASK}-1-x new.b.text"] = Mark(over=True)
    button(test, "Edit").click().run()
    drafts = desk.db.drafts(ME, TASK, 1)
    assert drafts["composer"].value == "b"
    assert "finding.a" in drafts
    assert "Something is not saved as it stands." in said(test)


def test_a_correction_that_was_left_can_be_added_afterwards(desk: Desk, page: Page) -> None:
    test = page(**{"amend.0": "And by phone."})
    unfold(test)
    button(test, "Submit without it").click().run()
    button(test, "Add it to your plan as a correction").click().run()
    events = [event for one in desk.db.sealed(TASK, 1) for event in parse_events(one.events)]
    assert [one.text for one in events if isinstance(one, PlanAmended)] == ["And by phone."]
    assert desk.db.tasks_with_drafts(ME) == []


def test_words_that_came_after_the_lock_become_a_correction(desk: Desk, page: Page, said: Said) -> None:
    # The plan as it was locked is in the drafts as well, and is no word too many.
    drafts = {"plan.answer": "As said.", "beside.plan.do_now": "And call the ward.", "amend.0": "By phone."}
    test = page(**drafts)
    assert "1 text of your plan, written after it was locked" in said(test)
    test.session_state["myplan"] = True
    test.run()
    assert "“Do now” of your plan, written after it was locked" in said(test)
    button(test, "Take it into the correction").click().run()
    assert set(desk.db.drafts(ME, TASK, 1)) >= {"plan.answer", "amend.0"}
    assert "beside.plan.do_now" not in desk.db.drafts(ME, TASK, 1)
    button(test, "Add correction").click().run()
    events = [event for one in desk.db.sealed(TASK, 1) for event in parse_events(one.events)]
    assert [one.text for one in events if isinstance(one, PlanAmended)] == ["By phone.\nAnd call the ward."]
    button(test, "Submit review").click().run()
    assert stored(desk) is not None
    assert desk.db.tasks_with_drafts(ME) == []


def test_words_that_came_after_the_lock_can_be_added_once_the_review_is_in(desk: Desk, page: Page, said: Said) -> None:
    test = page(**{"plan.do_now": "And call the ward."})
    unfold(test)
    button(test, "Submit without it").click().run()
    assert "Of your plan, written after it was locked" in said(test)
    button(test, "Add it to your plan as a correction").click().run()
    events = [event for one in desk.db.sealed(TASK, 1) for event in parse_events(one.events)]
    assert [one.text for one in events if isinstance(one, PlanAmended)] == ["And call the ward."]
    assert desk.db.tasks_with_drafts(ME) == []


def test_submitting_leaves_drafts_that_are_of_another_stage(desk: Desk, page: Page) -> None:
    test = page(**{f"comment.{'a' * 64}": "On a change.", "hand.why.instruction": "By when."})
    button(test, "Submit review").click().run()
    assert stored(desk) is not None
    assert set(desk.db.drafts(ME, TASK, 1)) == {f"comment.{'a' * 64}", "hand.why.instruction"}


def test_the_corrections_of_two_people_in_one_window_are_two(desk: Desk, page: Page) -> None:
    test = page(**{"amend.0": "By the first."})
    test.session_state["myplan"] = True
    test.run()
    button(test, "Add correction").click().run()
    # Locked in another minute, which stands on the button: to Streamlit it is another one.
    later = datetime.now(UTC) + timedelta(minutes=1)
    other = Desk(desk.workspace, desk.store, person(desk.workspace.settings.people, OTHER), now=lambda: later)
    other.lock_plan(TASK, PLAN)
    desk.db.save_draft(OTHER, TASK, 1, "amend.0", "By the second.")
    test.session_state["person"] = OTHER
    test.query_params["as"] = OTHER
    test.run()
    test.session_state["myplan"] = True
    test.run()
    button(test, "Add correction").click().run()
    events = [event for one in desk.db.sealed(TASK, 1) for event in parse_events(one.events)]
    added = [(one.actor, one.text) for one in events if isinstance(one, PlanAmended)]
    assert added == [(ME, "By the first."), (OTHER, "By the second.")]
    # What was added is left over nowhere.
    assert not {"amend.0"} & {*desk.db.drafts(ME, TASK, 1), *desk.db.drafts(OTHER, TASK, 1)}


def test_what_is_left_is_what_stands_in_no_submission() -> None:
    drafts = {
        "plan.answer": "Repeat it.",
        "plan.confidence": "sure",
        "verdict.patient_safety": "unsafe",
        "comment.patient_safety": "It is sent.",
        "finding.a": finding("a", "Sent too."),
        "finding.b": finding("b", "Not sent."),
        "new.c.text": " ",
        "new.c.source": "A label.",
        "new.c.dimension": "patient_safety",
        "amend.0": "Sent before.",
    }
    sent = frozenset({"It is sent.", "Sent too.", "Sent before."})
    left = {"finding.b": "Not sent.", "new.c.source": "A label."}
    assert left_view.unsent(drafts, sent | {"Repeat it."}) == left
    assert left_view.unsent(drafts, sent) == {"plan.answer": "Repeat it.", **left}


def test_what_is_left_of_an_earlier_round_stands_on_the_page_of_the_next(desk: Desk, page: Page, said: Said) -> None:
    test = page(**{"new.b.text": "Half a thought."})
    unfold(test)
    button(test, "Submit without it").click().run()
    other = Desk(desk.workspace, desk.store, person(desk.workspace.settings.people, OTHER))
    other.lock_plan(TASK, PLAN)
    review = forms.ReviewForm(checklist(), ("cp1", "cp2"), {}, COMPLETE).submission()
    other.submit_review(TASK, review)
    lead = Desk(desk.workspace, desk.store, person(desk.workspace.settings.people, "demo-lead"))
    lead.open_round(TASK)
    test.run()
    assert "Half a thought." in said(test)
    assert [one.label for one in test.button if one.label.startswith("Lock plan")]
    test.session_state["discard-1"] = True
    test.run()
    button(test, "Discard these words").click().run()
    assert "Half a thought." not in said(test)
    assert desk.db.tasks_with_drafts(ME) == []
