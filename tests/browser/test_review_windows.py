"""Words typed in a moment in which something else happens to them: right after they were added to a proposal, in two
windows at once, and with characters in them that nobody sees."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
TASK, SOLVE = "nephrology-small", "nephrology-solve"
INSTRUCTION = "The instruction, as it should read"
OTHER = "this was changed in another window"


@pytest.fixture
def workspace(packages: ModuleType, reviews: ModuleType, tmp_path: Path) -> Workspace:
    for id in (TASK, SOLVE):
        packages.write(tmp_path / "suite", id)
    made: Workspace = reviews.opened(Workspace(tmp_path / "workspace"), TASK, tmp_path / "suite")
    reviews.judged(made, TASK)
    return made


@pytest.fixture
def app(serve: Callable[..., Any], workspace: Workspace, playwright: object) -> Iterator[str]:
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url


def at(reviews: ModuleType) -> str:
    return f"/propose?id={TASK}&as={reviews.LEAD}"


def field(page: Page, label: str) -> Any:
    return page.get_by_role("textbox", name=label, exact=True)


def says(page: Page, label: str) -> Any:
    """What stands beside the label of a text area."""
    return page.locator(".wb-field").filter(has=page.get_by_text(label, exact=True)).locator(".wb-state")


def kept(workspace: Workspace, reviews: ModuleType) -> dict[str, str]:
    drafts = reviews.desk(workspace, reviews.LEAD).db.drafts(reviews.LEAD, TASK, 1)
    return {item: draft.value for item, draft in drafts.items()}


@pytest.mark.parametrize("pause", [0, 40, 120, 300])
def test_what_is_typed_right_after_adding_to_the_proposal_is_saved_and_asks_nothing(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType, pause: int
) -> None:
    seen = look(app)
    # The reason is from an earlier sitting: this window has only read it.
    reviews.desk(workspace, reviews.LEAD).db.save_draft(reviews.LEAD, TASK, 1, "hand.why.instruction", "By when.")
    seen.open(at(reviews))
    page = seen.page
    text = field(page, INSTRUCTION)
    text.fill(f"{text.input_value()}\nSay by when.")
    text.blur()
    expect(says(page, INSTRUCTION)).to_contain_text("Saved")
    expect(field(page, "Why")).to_have_value("By when.")
    page.get_by_role("button", name="Add to the proposal").click(delay=60)
    page.wait_for_timeout(pause)
    why = field(page, "Why")
    why.focus()
    page.keyboard.type("And who.", delay=15)
    expect(page.get_by_text("1 change, not put up yet").first).to_be_visible()
    expect(says(page, "Why")).to_contain_text("Saved")
    expect(page.get_by_text(OTHER)).to_have_count(0)
    # All that was typed stands there, and is kept as it stands.
    assert "And who." in why.input_value()
    assert kept(workspace, reviews)["hand.why.instruction"] == why.input_value()
    assert [error for error in seen.errors if "404" not in error] == []


def test_characters_that_nobody_sees_are_told_beside_the_field_with_count_and_place(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    seen = look(app)
    seen.open(at(reviews))
    page = seen.page
    text, told = field(page, INSTRUCTION), page.locator(".wb-unseen:not(.wb-none)")
    expect(text).to_be_visible()
    expect(told).to_have_count(0)
    typed = "Start apixaban\u200b 5\ufeff mg.\nDose \u202e5 gm\u202c, then \u2066again\u2069."
    text.fill(typed)
    expect(told).to_have_count(1)
    expect(told.locator("p")).to_contain_text("6 characters of this text cannot be seen here.")
    assert told.locator("li").all_inner_texts() == [
        "line 1, after “Start apixaban”: has no width (U+200B)",
        "line 1, after “Start apixaban 5”: has no width (U+FEFF)",
        "line 2, after “Dose”: changes the reading direction (U+202E)",
        "line 2, after “Dose 5 gm”: ends a change of the reading direction (U+202C)",
        "line 2, after “Dose 5 gm, then”: changes the reading direction (U+2066)",
        "and 1 more",
    ]
    expect(text).to_have_accessible_description(re.compile("6 characters of this text cannot be seen"))
    # Nothing was done about it, and it stands there after a reload as well.
    text.blur()
    expect(says(page, INSTRUCTION)).to_contain_text("Saved")
    (kept_,) = [value for item, value in kept(workspace, reviews).items() if item.startswith("hand.instruction")]
    assert kept_ == typed
    page.reload()
    expect(told.locator("li")).to_have_count(6)
    # Whoever writes takes them out.
    text.fill("Start apixaban 5 mg.")
    expect(told).to_have_count(0)
    # A line of a form tells as well.
    page.get_by_role("radio", name="Checkpoint").click()
    page.get_by_role("combobox", name="Checkpoint").select_option("cp1")
    field(page, "Title").fill("Potassium\u200e found")
    expect(told.locator("li")).to_have_text("after “Potassium”: marks a reading direction (U+200E)")
    assert [error for error in seen.errors if "404" not in error] == []


def test_of_two_windows_the_second_takes_the_words_of_the_first_and_loses_them_no_more(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    first, second = look(app), look(app)
    for seen in (first, second):
        seen.open(at(reviews))
        expect(field(seen.page, "Why")).to_be_visible()
    field(first.page, "Why").fill("from the first window")
    field(first.page, "Why").blur()
    expect(says(first.page, "Why")).to_contain_text("Saved")
    mine = field(second.page, "Why")
    mine.fill("from the second window")
    mine.blur()
    expect(says(second.page, "Why")).to_contain_text(OTHER)
    # Nothing is decided for whoever writes: both texts are there, and an action waits.
    expect(mine).to_have_value("from the second window")
    assert kept(workspace, reviews)["hand.why.instruction"] == "from the first window"

    # By keyboard, as everything.
    take = second.page.get_by_role("button", name="Take the other")
    take.focus()
    # The page is drawn anew meanwhile; the keyboard stays on the answer.
    second.page.evaluate("() => { window.asked = document.activeElement; }")
    field(second.page, INSTRUCTION).evaluate(
        "element => { element.value += ' '; element.dispatchEvent(new Event('input')); }"
    )
    expect(says(second.page, INSTRUCTION)).to_contain_text("Saved")
    assert second.page.evaluate("() => window.asked.isConnected && document.activeElement === window.asked")
    second.page.keyboard.press("Enter")
    expect(mine).to_have_value("from the first window")
    expect(says(second.page, "Why")).to_contain_text("Saved")
    expect(second.page.get_by_text(OTHER)).to_have_count(0)
    assert kept(workspace, reviews)["hand.why.instruction"] == "from the first window"

    # It is this window's text from now on: typed on, kept, and there after a reload; nothing of the refused one is.
    mine.press("End")
    mine.press_sequentially(", typed on in the second", delay=10)
    mine.blur()
    expect(says(second.page, "Why")).to_contain_text("Saved")
    whole = "from the first window, typed on in the second"
    assert kept(workspace, reviews)["hand.why.instruction"] == whole
    second.page.reload()
    expect(field(second.page, "Why")).to_have_value(whole)
    # And now the first is the one that is asked.
    field(first.page, "Why").press_sequentially("!", delay=10)
    expect(says(first.page, "Why")).to_contain_text(OTHER)
    first.page.get_by_role("button", name="Take the other").click()
    expect(field(first.page, "Why")).to_have_value(whole)
    expect(says(first.page, "Why")).to_contain_text("Saved")


def test_what_a_window_could_not_save_is_there_once_the_plan_is_locked_in_the_other(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    reviews.opened(workspace, SOLVE)
    first, second = look(app), look(app)
    for seen in (first, second):
        seen.open(f"/review?id={SOLVE}&as={reviews.ONE}")
        expect(field(seen.page, "Do now")).to_be_visible()
    for key, label in reviews.LABELS.items():
        field(first.page, label).fill(reviews.PLAN[key])
    first.page.get_by_role("radio", name="Fairly sure").click()
    lock = first.page.get_by_role("button", name="Lock plan and open checklist")
    expect(lock).to_be_enabled()
    field(second.page, "Do now").fill("Call the ward, too.")
    field(second.page, "Do now").blur()
    expect(second.page.get_by_text(OTHER)).to_be_visible()
    first.settle()
    lock.click(delay=60)
    expect(first.page.get_by_text("New finding")).to_be_visible()
    # Whatever is done there now, the second window goes on without the field in which the words stand.
    second.page.get_by_role("radio", name="Unsure").click()
    expect(second.page.get_by_text("New finding")).to_be_visible()
    expect(second.page.get_by_text("1 text of your plan, written after it was locked")).to_be_visible()
    second.settle()
    second.page.get_by_role("button", name="Your plan, locked").click(delay=60)
    second.page.get_by_role("button", name="Take it into the correction").click(delay=60)
    expect(field(second.page, "Add a correction; both stay visible")).to_have_value("Call the ward, too.")
    second.settle()
    second.page.get_by_role("button", name="Add correction").click(delay=60)
    expect(second.page.get_by_text(re.compile(r"^Correction, \d\d:\d\d: "))).to_be_visible()
    expect(second.page.get_by_text("written after it was locked")).to_have_count(0)
    sealed = reviews.desk(workspace, reviews.ONE).db.sealed(SOLVE, 1)
    assert [one.events.count(b"Call the ward, too.") for one in sealed if one.person == reviews.ONE] == [0, 1]


def test_a_line_of_a_form_takes_what_another_window_wrote(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    first, second = look(app), look(app)
    for seen in (first, second):
        seen.open(at(reviews))
        seen.page.get_by_role("radio", name="Checkpoint").click()
    first.page.get_by_role("combobox", name="Checkpoint").select_option("cp1")
    for seen in (first, second):
        if seen is second:
            seen.page.reload()
            seen.page.get_by_role("radio", name="Checkpoint").click()
        expect(field(seen.page, "Title")).to_have_value("Potassium found")
    field(first.page, "Title").fill("Potassium is found")
    field(first.page, "Title").blur()
    first.settle()
    mine = field(second.page, "Title")
    mine.fill("Potassium was found")
    mine.blur()
    expect(second.page.get_by_text("Not saved: another window wrote “Potassium is found”.")).to_be_visible()
    second.page.get_by_role("button", name="Take the other").click()
    second.settle()
    expect(mine).to_have_value("Potassium is found")
    expect(second.page.get_by_text("another window wrote")).to_have_count(0)
    (title,) = [value for item, value in kept(workspace, reviews).items() if item.endswith(".title")]
    assert title == "Potassium is found"
    mine.fill("Potassium is found and named")
    mine.blur()
    second.settle()
    (title,) = [value for item, value in kept(workspace, reviews).items() if item.endswith(".title")]
    assert title == "Potassium is found and named"
