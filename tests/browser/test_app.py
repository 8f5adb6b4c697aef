"""What a new user meets, in a real Chromium."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import expect

from tasks.package import SUITE

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

#: Streamlit asks these of a deep link's folder before it finds its base path; the 404 is its own and harmless.
_PROBES = re.compile(r"Failed to load resource: the server responded with a status of 404")


def own_errors(seen: Any) -> list[str]:
    return [error for error in seen.errors if not _PROBES.search(error)]


def test_a_new_user_is_asked_who_they_are_looks_around_and_opens_a_task(address: str, look: Callable[..., Any]) -> None:
    task = SUITE.load(SUITE.list()[0])
    seen = look(address)
    seen.open()
    expect(seen.page.get_by_role("heading", name="Who are you?")).to_be_visible()
    expect(seen.page.get_by_text("Identity not verified")).to_be_visible()
    seen.page.get_by_role("link", name="Only look at the tasks").click(delay=120)
    expect(seen.page.get_by_text(task.meta.title)).to_be_visible()
    seen.page.locator(f".st-key-open-{task.id} a").click(delay=120)
    expect(seen.page.get_by_role("heading", name=task.meta.title)).to_be_visible()
    expect(seen.page.get_by_text("eGFR, CKD-EPI 2021")).to_be_visible()
    seen.page.get_by_text("Checkpoints", exact=True).first.click()
    expect(seen.page.get_by_text(task.checkpoints[0].title).first).to_be_visible()
    seen.settle()
    assert seen.outside == []
    assert own_errors(seen) == []


def test_a_fact_that_a_checkpoint_rests_on_leads_to_its_place_and_survives_a_reload(
    address: str, look: Callable[..., Any]
) -> None:
    task_id = SUITE.list()[0]
    seen = look(address)
    seen.open(f"/task?id={task_id}&view=Checkpoints")
    link = seen.page.locator("article a[href*='at=DocumentReference']").first
    expect(link).to_be_visible()
    quoted = re.search(r'"(.+)"|“(.+)”', link.inner_text())
    link.click()
    marked = seen.page.locator(".st-key-record mark.hit").first
    expect(marked).to_be_visible()
    assert quoted
    words = quoted[1] or quoted[2]
    assert marked.inner_text().split()[0].casefold() == words.split()[0].casefold()
    seen.page.reload()
    expect(seen.page.locator(".st-key-record mark.hit").first).to_be_visible()


@pytest.fixture(scope="module")
def hostile(
    serve: Callable[..., Any], packages: ModuleType, tmp_path_factory: pytest.TempPathFactory, playwright: object
) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("tasks")
    packages.write(folder)
    packages.write_hostile(folder)
    environment = {"TASKS": str(folder), "WORKBENCH_WORKSPACE": str(tmp_path_factory.mktemp("ws") / "workspace")}
    with serve(Path(__file__).with_name("hostile_app.py"), environment) as url:
        yield url


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/tasks",
        "/task?id=hostile-task",
        "/task?id=hostile-task&view=Checkpoints",
        "/task?id=hostile-task&view=Every+resource&at=DocumentReference/hn-2&quote=%3Cimg",
        "/task?id=hostile-task&view=Every+resource&type=Condition",
        "/task?id=hostile-task&note=DocumentReference/hn-4",
        "/task?id=hostile-task&note=DocumentReference/hn-long",
        "/task?id=<script>window.pwned=3</script>",
    ],
)
def test_untrusted_text_is_text_and_nothing_else(
    hostile: str, one_by_one: Callable[[str, str], Any], path: str
) -> None:
    seen = one_by_one(hostile, path)
    assert seen.page.evaluate("window.pwned") is None
    assert "pwned" not in seen.page.title()
    assert seen.page.locator("img[src*='evil']").count() == 0
    assert seen.page.locator("a[href*='evil'], a[href*='javascript']").count() == 0
    assert seen.page.locator(".stHtml script, .stHtml iframe, .stHtml form").count() == 0
    assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 0, 0)"
    assert "\u202e" not in seen.page.inner_text("body")
    assert seen.outside == []


def test_the_corpus_can_be_read(hostile: str, packages: ModuleType, look: Callable[..., Any]) -> None:
    seen = look(hostile)
    seen.open("/task?id=hostile-task&view=Checkpoints")
    said = seen.page.inner_text("body")
    for name in ("script", "style", "image", "banner", "template"):
        assert packages.CORPUS[name] in said, name
    assert "U+202E" in said
    assert "U+200B" in said


def test_a_page_that_does_not_exist_says_so(hostile: str, look: Callable[..., Any]) -> None:
    seen = look(hostile)
    seen.page.goto(f"{hostile}/task?id=no-such-task")
    expect(seen.page.get_by_text("This is not here.")).to_be_visible()


def test_run_oracle_and_noop_from_the_page_leave_come_back_and_read_why_noop_failed(
    hostile: str, look: Callable[..., Any]
) -> None:
    seen = look(hostile)
    seen.open("/run")
    page = seen.page
    page.get_by_test_id("stMultiSelect").get_by_label("Remove hostile-task · version 1, draft").click()
    seen.settle()
    # What it will do is drawn anew and shorter: before that the button is not where it will be.
    start = page.get_by_role("button", name="Start 2 trials")
    expect(start).to_be_enabled()
    seen.settle()
    start.dblclick(delay=60)
    expect(page.get_by_text(re.compile(r"^Batch \d{4}-\d\d-\d\d-a"))).to_be_visible()
    # Leave while it runs, come back by the bar, reload: it is there each time.
    page.get_by_role("link", name="Tasks").first.click(delay=120)
    expect(page.get_by_text("Potassium 5.6 on losartan")).to_be_visible()
    page.get_by_role("link", name="Run").first.click(delay=120)
    expect(page.locator(".stHtml .chip", has_text="Done")).to_be_visible(timeout=120_000)
    page.reload()
    expect(page.locator(".stHtml .chip", has_text="Done")).to_be_visible()
    # A double click has started one batch.
    assert page.get_by_text(re.compile(r"^Batch \d{4}-\d\d-\d\d-b")).count() == 0
    page.locator("[class*='st-key-door-results-'] a").click(delay=120)
    expect(page.locator(".heat-map")).to_be_visible()
    page.locator(".heat-map a", has_text="0 of 1").first.click()
    expect(page.get_by_text("1 found")).to_be_visible()
    page.locator("[class*='st-key-open-'] a").first.click(delay=120)
    expect(page.get_by_role("heading", name=re.compile("failed, 2 of 2 checkpoints missed"))).to_be_visible()
    expect(page.get_by_text("Not done:")).to_be_visible()
    seen.settle()
    assert seen.outside == []
    assert own_errors(seen) == []


@pytest.mark.parametrize(
    "path",
    ["/", "/tasks", "/task?id=nephrology-small", "/task?id=nephrology-small&view=Checkpoints", "/run", "/trials",
     "/results"],
)  # fmt: skip
def test_axe_finds_nothing_serious_and_nothing_has_to_be_scrolled_sideways_at_200_percent(
    hostile: str, one_by_one: Callable[[str, str], Any], path: str
) -> None:
    seen = one_by_one(hostile, path)
    assert seen.faults() == []
    seen.fits(640)


def test_the_task_can_be_opened_by_keyboard_alone(hostile: str, look: Callable[..., Any]) -> None:
    seen = look(hostile)
    seen.open("/tasks?q=losartan")
    seen.page.locator(".st-key-open-nephrology-small a").focus()
    seen.page.keyboard.press("Enter")
    expect(seen.page.get_by_role("heading", name="Potassium 5.6 on losartan: what now?")).to_be_visible()
