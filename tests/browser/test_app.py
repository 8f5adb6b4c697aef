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


@pytest.mark.skipif(not SUITE.list(), reason="no bundled task yet")
def test_a_new_user_sees_home_and_opens_a_task(address: str, look: Callable[..., Any]) -> None:
    task = SUITE.load(SUITE.list()[0])
    seen = look(address)
    seen.open()
    expect(seen.page.get_by_text("Identity not verified")).to_be_visible()
    expect(seen.page.get_by_text(task.meta.title)).to_be_visible()
    seen.page.locator(f".st-key-open-{task.id} button").click(delay=120)
    expect(seen.page.get_by_role("heading", name=task.meta.title)).to_be_visible(timeout=30_000)
    expect(seen.page.get_by_text("eGFR, CKD-EPI 2021")).to_be_visible(timeout=30_000)
    seen.page.get_by_text("Checkpoints", exact=True).first.click()
    expect(seen.page.get_by_text(task.checkpoints[0].title)).to_be_visible(timeout=30_000)
    seen.settle()
    assert seen.outside == []
    assert own_errors(seen) == []


@pytest.mark.skipif(not SUITE.list(), reason="no bundled task yet")
def test_a_fact_that_a_checkpoint_rests_on_leads_to_its_place_and_survives_a_reload(
    address: str, look: Callable[..., Any]
) -> None:
    task_id = SUITE.list()[0]
    seen = look(address)
    seen.open(f"/task?id={task_id}&view=Checkpoints")
    link = seen.page.locator("article a[href*='at=DocumentReference']").first
    expect(link).to_be_visible(timeout=30_000)
    quoted = re.search(r'"(.+)"|“(.+)”', link.inner_text())
    link.click()
    marked = seen.page.locator(".st-key-record mark.hit").first
    expect(marked).to_be_visible(timeout=30_000)
    assert quoted
    words = quoted[1] or quoted[2]
    assert marked.inner_text().split()[0].casefold() == words.split()[0].casefold()
    seen.page.reload()
    expect(seen.page.locator(".st-key-record mark.hit").first).to_be_visible(timeout=30_000)


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
        "/task?id=hostile-task",
        "/task?id=hostile-task&view=Checkpoints",
        "/task?id=hostile-task&view=Every+resource&at=DocumentReference/hn-2&quote=%3Cimg",
        "/task?id=hostile-task&view=Every+resource&type=Condition",
        "/task?id=hostile-task&note=DocumentReference/hn-4",
        "/task?id=hostile-task&note=DocumentReference/hn-long",
        "/task?id=<script>window.pwned=3</script>",
    ],
)
def test_untrusted_text_is_text_and_nothing_else(hostile: str, look: Callable[..., Any], path: str) -> None:
    seen = look(hostile)
    seen.page.goto(hostile + path)
    seen.page.wait_for_selector(".stHtml div, .stHtml h1", timeout=30_000)
    seen.settle()
    assert seen.page.evaluate("window.pwned") is None
    assert seen.page.title() == "Home" or "pwned" not in seen.page.title()
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
    expect(seen.page.get_by_text("This is not here.")).to_be_visible(timeout=30_000)
