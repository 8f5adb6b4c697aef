"""The ways from Home and Tasks into a task, in a real Chromium: links that the browser follows, by mouse, key and in a
tab of their own; the session stays, and a click right after typing is not lost."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
TASK = "nephrology-small"


@pytest.fixture(scope="module")
def app(
    serve: Callable[..., Any],
    packages: ModuleType,
    reviews: ModuleType,
    tmp_path_factory: pytest.TempPathFactory,
    playwright: object,
) -> Iterator[str]:
    root = tmp_path_factory.mktemp("doors")
    packages.write(root / "suite")
    workspace = reviews.opened(Workspace(root / "workspace"), TASK, root / "suite")
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url


def at_the_task(page: Page, who: str) -> None:
    """The task's review, as this person."""
    expect(page.get_by_text("To lock, still needed")).to_be_visible()
    where = urlsplit(page.url)
    assert (where.path, parse_qs(where.query)) == ("/review", {"id": [TASK], "as": [who]})


def test_a_row_is_followed_by_mouse_by_key_and_into_a_tab_without_loading_the_page_anew(
    app: str, look: Callable[..., Any], reviews: ModuleType
) -> None:
    seen = look(app)
    page, me = seen.page, reviews.ONE
    door = page.locator(f".st-key-work-{TASK}").get_by_role("link", name="Review")
    seen.open(f"/?as={me}")
    page.evaluate("window.stays = true")
    with page.context.expect_page() as opened:
        door.click(button="middle")
    at_the_task(opened.value, me)
    opened.value.close()
    door.click(delay=60)
    at_the_task(page, me)
    page.go_back()
    expect(door).to_be_visible()
    seen.settle()
    door.focus()
    page.keyboard.press("Enter")
    at_the_task(page, me)
    page.go_back()
    expect(door).to_be_visible()
    seen.settle()
    page.locator(".st-key-resume").get_by_role("link", name="Review").click(delay=60)
    at_the_task(page, me)
    assert page.evaluate("window.stays"), "the browser has loaded the page anew"
    assert [error for error in seen.errors if "404" not in error] == []


@pytest.mark.parametrize("start", ["/", "/tasks"])
def test_a_click_right_after_typing_in_the_search_leads_there(
    app: str, look: Callable[..., Any], reviews: ModuleType, start: str
) -> None:
    seen = look(app)
    page = seen.page
    for _ in range(5):
        seen.open(f"{start}?as={reviews.ONE}")
        search = page.get_by_role("textbox", name="Search title")
        # The last letter is sent in the same moment as the click.
        search.press_sequentially("potassium", delay=30)
        page.locator(f".st-key-work-{TASK} a, .st-key-open-{TASK} a").click()
        expect(page).to_have_url(re.compile(r"/(review|task)\?"))
        expect(page.get_by_role("heading", name="Potassium 5.6 on losartan")).to_be_visible()
