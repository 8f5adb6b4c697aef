"""The sheet of choices alone, in a real Chromium: slow runs of the page, other windows, every kind of row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tasks.statedb import StateDb
from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

APP = Path(__file__).with_name("sheet_app.py")


@pytest.fixture
def db(tmp_path: Path) -> StateDb:
    return StateDb(Workspace(tmp_path / "workspace").state_db)


@pytest.fixture
def app(serve: Callable[..., Any], db: StateDb, playwright: object) -> Iterator[str]:
    with serve(APP, {"WORKBENCH_WORKSPACE": str(db.path.parent)}) as url:
        yield url


def kept(db: StateDb) -> dict[str, str]:
    return {item: draft.value for item, draft in db.drafts("p", "t", 1).items()}


def radio(page: Page, group: str, word: str) -> Any:
    return page.get_by_role("radiogroup", name=group, exact=True).get_by_role("radio", name=word, exact=True)


def test_clicks_far_faster_than_the_page_runs_are_all_kept_and_never_taken_back(
    app: str, db: StateDb, look: Callable[..., Any]
) -> None:
    seen = look(app)
    seen.open("/?slow=1")
    page = seen.page
    # Forty clicks in a burst while each run takes a second: no run comes to its end before the last click.
    for word in ("One", "Two"):
        for n in range(20):
            radio(page, f"Kept {n}", word).click()
            assert radio(page, f"Kept {n}", word).get_attribute("aria-checked") == "true"
    field = page.get_by_role("textbox", name="Words")
    field.press_sequentially("typed, then pressed", delay=10)
    page.get_by_role("button", name="Press").click()
    seen.settle()
    expect(page.locator(".wb-field .wb-state")).to_contain_text("Saved")
    assert kept(db) == {
        **{f"kept.{n}": "two" for n in range(20)},
        "words": "typed, then pressed",
        "pressed": f"[typed, then pressed{' two' * 20}]",
    }
    for n in range(20):
        assert radio(page, f"Kept {n}", "Two").get_attribute("aria-checked") == "true"


def test_a_press_acts_on_what_was_chosen_right_before_it(app: str, db: StateDb, look: Callable[..., Any]) -> None:
    seen = look(app)
    seen.open("/?slow=1")
    page = seen.page
    expect(page.get_by_role("button", name="Press")).to_be_visible()
    # In one breath, as no hand does it: the third choice is still waiting for its turn when the button is pressed.
    page.evaluate(
        """() => {
            const click = (element) => {
                element.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
                element.click();
            };
            for (const n of [0, 1, 2]) click(document.querySelector(`[aria-label="Kept ${n}"] [role=radio]`));
            click([...document.querySelectorAll("button")].find((one) => one.innerText.includes("Press")));
        }"""
    )
    seen.settle()
    assert kept(db) == {"kept.0": "one", "kept.1": "one", "kept.2": "one", "pressed": "[ one one one]"}


def test_each_kind_of_row_keeps_what_is_chosen_and_shows_it_again(
    app: str, db: StateDb, look: Callable[..., Any]
) -> None:
    seen = look(app)
    seen.open()
    page = seen.page
    # Text of data is text, and what cannot be seen is shown.
    expect(page.get_by_text("Row <b>3</b> ⟨U+202E⟩")).to_be_visible()
    radio(page, "Free", "Yes").click()
    expect(page.get_by_text("1 of 2 answered")).to_be_visible()
    page.get_by_role("combobox", name="Pick").select_option("Blue")
    expect(page.get_by_text("2 of 2 answered")).to_be_visible()
    # An optional answer is taken back by a second click; one that must stand is not.
    radio(page, "Free", "Yes").click()
    radio(page, "Kept 0", "One").click()
    radio(page, "Kept 0", "One").click()
    page.get_by_role("checkbox", name="C").check()
    page.get_by_role("checkbox", name="A").check()
    page.get_by_role("button", name="Fold it").click()
    expect(page.get_by_text("What is <i>folded</i>")).to_be_visible()
    line = page.get_by_role("textbox", name="Line")
    expect(line).to_have_value("as it was")
    line.fill("5 mg")
    line.blur()
    # By keyboard: the group is one stop, arrows choose.
    radio(page, "Kept 1", "Two").click()
    page.keyboard.press("ArrowLeft")
    expect(radio(page, "Kept 1", "One")).to_be_focused()
    page.keyboard.press("Tab")
    expect(radio(page, "Kept 2", "One")).to_be_focused()
    page.keyboard.press("Space")
    seen.settle()
    expected = {
        "free": "", "kept.0": "one", "kept.1": "one", "kept.2": "one", "pick": "blue", "many": "a\nc", "fold": "open",
        "line": "5 mg",
    }  # fmt: skip
    assert kept(db) == expected
    seen.open()
    assert radio(page, "Kept 2", "One").get_attribute("aria-checked") == "true"
    assert radio(page, "Free", "Yes").get_attribute("aria-checked") == "false"
    expect(page.get_by_role("combobox", name="Pick")).to_have_value("blue")
    expect(page.get_by_role("checkbox", name="C")).to_be_checked()
    expect(page.get_by_role("checkbox", name="B")).not_to_be_checked()
    expect(page.get_by_text("What is <i>folded</i>")).to_be_visible()
    expect(page.get_by_role("textbox", name="Line")).to_have_value("5 mg")


def test_a_list_stays_open_while_the_page_is_drawn_anew(app: str, look: Callable[..., Any]) -> None:
    seen = look(app)
    seen.open("/?slow=1")
    page = seen.page
    page.get_by_role("textbox", name="Words").press_sequentially("typed", delay=10)
    pick = page.get_by_role("combobox", name="Pick")
    pick.focus()
    page.evaluate("() => { window.list = document.querySelector('.wb-select'); }")
    expect(page.locator(".wb-field .wb-state")).to_contain_text("Saved")
    # The element is the same one and has kept the keyboard: its list was not shut by the run that saved the text.
    assert page.evaluate("() => window.list.isConnected && document.activeElement === window.list")


def test_another_windows_line_is_never_overwritten_unasked_and_what_is_too_long_is_said(
    app: str, db: StateDb, look: Callable[..., Any]
) -> None:
    first, second = look(app), look(app)
    for seen in (first, second):
        seen.open()
        expect(seen.page.get_by_role("textbox", name="Line")).to_have_value("as it was")
    mine = second.page.get_by_role("textbox", name="Line")
    first.page.get_by_role("textbox", name="Line").fill("from the first")
    first.page.get_by_role("textbox", name="Line").blur()
    first.settle()
    mine.fill("from the second")
    mine.blur()
    expect(second.page.get_by_text("Not saved: another window wrote “from the first”.")).to_be_visible()
    expect(mine).to_have_value("from the second")
    assert kept(db)["line"] == "from the first"
    second.page.get_by_role("button", name="Keep mine").click()
    second.settle()
    assert kept(db)["line"] == "from the second"
    mine.fill("x" * 4_100)
    expect(second.page.get_by_text("Not saved: 100 characters too many (4000 fit).")).to_be_visible()
    radio(second.page, "Kept 5", "Three").click()
    second.settle()
    assert len(mine.input_value()) == 4_100
    assert kept(db) == {"line": "from the second", "kept.5": "three"}
    # A choice that another window made later is what this one shows at its next run.
    radio(first.page, "Kept 5", "One").click()
    first.settle()
    radio(second.page, "Kept 6", "One").click()
    expect(radio(second.page, "Kept 5", "One")).to_be_checked()
