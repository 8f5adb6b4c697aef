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
TASK = "nephrology-small"
INSTRUCTION = "The instruction, as it should read"
OTHER = "this was changed in another window"


@pytest.fixture
def workspace(packages: ModuleType, reviews: ModuleType, tmp_path: Path) -> Workspace:
    packages.write(tmp_path / "suite")
    made: Workspace = reviews.opened(Workspace(tmp_path / "workspace"), TASK, tmp_path / "suite")
    reviews.judged(made, TASK)
    return made


@pytest.fixture
def app(serve: Callable[..., Any], workspace: Workspace, playwright: object) -> Iterator[str]:
    expect.set_options(timeout=30_000)
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
