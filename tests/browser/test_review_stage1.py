"""Stage 1 in a real Chromium: nothing typed is lost, one click is one event, and nobody sees the other's review."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tasks.review.checklist import checklist
from tasks.review.events import ReviewSubmitted
from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
TASK = "nephrology-small"
SECRET = "Zebra-striped reasoning that only the first reviewer wrote"


@pytest.fixture(scope="module")
def suite(packages: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite")
    packages.write(folder)
    return folder


@pytest.fixture
def workspace(reviews: ModuleType, suite: Path, tmp_path: Path) -> Workspace:
    return reviews.opened(Workspace(tmp_path / "workspace"), TASK, suite)


@pytest.fixture
def app(serve: Callable[..., Any], workspace: Workspace, playwright: object) -> Iterator[str]:
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url


def at(who: str) -> str:
    return f"/review?id={TASK}&as={who}"


def field(page: Page, label: str) -> Any:
    return page.get_by_role("textbox", name=label)


def saved(page: Page, label: str) -> None:
    """Wait until the field says that it is saved."""
    box = page.locator(".wb-field").filter(has=page.get_by_text(label, exact=True))
    expect(box.locator(".wb-state")).to_contain_text("Saved", timeout=30_000)


def fill_plan(page: Page, reviews: ModuleType, **other: str) -> None:
    for key, label in reviews.LABELS.items():
        field(page, label).fill(other.get(key, reviews.PLAN[key]))
        field(page, label).blur()
        saved(page, label)
    page.get_by_role("radio", name="Fairly sure").click()
    expect(page.get_by_role("button", name="Lock plan")).to_be_enabled(timeout=30_000)


def test_text_survives_a_reload_right_after_the_last_key_and_another_page(
    app: str, look: Callable[..., Any], reviews: ModuleType
) -> None:
    seen = look(app)
    seen.open(at(reviews.ONE))
    seen.page.on("dialog", lambda dialog: dialog.accept())
    answer = field(seen.page, reviews.LABELS["answer"])
    answer.press_sequentially("typed and reloaded a b d x", delay=15)
    seen.page.reload()
    expect(field(seen.page, reviews.LABELS["answer"])).to_have_value("typed and reloaded a b d x", timeout=30_000)
    saved(seen.page, reviews.LABELS["answer"])

    now = field(seen.page, reviews.LABELS["do_now"])
    now.press_sequentially("typed and left", delay=15)
    seen.page.get_by_role("link", name="Trials").click(delay=120)
    expect(seen.page.get_by_text("Nothing has been run")).to_be_visible(timeout=30_000)
    seen.page.go_back()
    seen.open(at(reviews.ONE))
    expect(field(seen.page, reviews.LABELS["do_now"])).to_have_value("typed and left", timeout=30_000)
    expect(field(seen.page, reviews.LABELS["answer"])).to_have_value("typed and reloaded a b d x")


def test_text_survives_a_restart_of_the_server(
    serve: Callable[..., Any], workspace: Workspace, look: Callable[..., Any], reviews: ModuleType, playwright: object
) -> None:
    environment = {"WORKBENCH_WORKSPACE": str(workspace.path)}
    with serve(ROOT / "app.py", environment) as url:
        seen = look(url)
        seen.open(at(reviews.ONE))
        field(seen.page, reviews.LABELS["answer"]).press_sequentially("before the restart", delay=15)
        saved(seen.page, reviews.LABELS["answer"])
    # The server is gone and the reader goes on writing, until Streamlit's own notice takes the keyboard.
    field(seen.page, reviews.LABELS["answer"]).press_sequentially(", and while it was away", delay=15)
    whole = field(seen.page, reviews.LABELS["answer"]).input_value()
    assert whole.startswith("before the restart, and wh")
    with serve(ROOT / "app.py", environment, urlsplit(url).port):
        saved(seen.page, reviews.LABELS["answer"])
        expect(field(seen.page, reviews.LABELS["answer"])).to_have_value(whole)
        kept = reviews.desk(workspace, reviews.ONE).db.drafts(reviews.ONE, TASK, 1)
        assert kept["plan.answer"].value == whole


def test_two_clicks_450_ms_apart_lock_one_plan_with_the_text_typed_right_before(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    seen = look(app)
    seen.open(at(reviews.ONE))
    fill_plan(seen.page, reviews)
    field(seen.page, reviews.LABELS["follow_up"]).press_sequentially(" AND BY PHONE", delay=10)
    lock = seen.page.get_by_role("button", name="Lock plan")
    box = lock.bounding_box()
    assert box
    where = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    seen.page.mouse.click(*where)
    seen.page.wait_for_timeout(450)
    seen.page.mouse.click(*where)
    expect(seen.page.get_by_text("Your plan, locked")).to_be_visible(timeout=30_000)
    sealed = reviews.desk(workspace, reviews.ONE).db.sealed(TASK, 1)
    assert [one.kind for one in sealed] == ["plan"]
    assert b"AND BY PHONE" in sealed[0].events


def test_two_windows_of_one_person_never_overwrite_each_other_unasked(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    first, second = look(app), look(app)
    for seen in (first, second):
        seen.open(at(reviews.ONE))
        expect(field(seen.page, reviews.LABELS["answer"])).to_be_visible(timeout=30_000)
    field(first.page, reviews.LABELS["answer"]).fill("from the first window")
    field(first.page, reviews.LABELS["answer"]).blur()
    saved(first.page, reviews.LABELS["answer"])
    field(second.page, reviews.LABELS["answer"]).fill("from the second window")
    field(second.page, reviews.LABELS["answer"]).blur()
    expect(second.page.get_by_text("Not saved: this was changed in another window.")).to_be_visible(timeout=30_000)
    expect(field(second.page, reviews.LABELS["answer"])).to_have_value("from the second window")
    kept = reviews.desk(workspace, reviews.ONE).db
    assert kept.drafts(reviews.ONE, TASK, 1)["plan.answer"].value == "from the first window"
    second.page.get_by_role("button", name="Keep mine").click()
    saved(second.page, reviews.LABELS["answer"])
    assert kept.drafts(reviews.ONE, TASK, 1)["plan.answer"].value == "from the second window"


def test_nothing_of_how_it_is_graded_is_on_the_page_before_the_lock(
    app: str, look: Callable[..., Any], reviews: ModuleType
) -> None:
    seen = look(app)
    seen.open(at(reviews.ONE))
    expect(seen.page.get_by_text("To lock, still needed")).to_be_visible(timeout=30_000)
    source = seen.page.content()
    assert "Potassium found" not in source
    assert "Potassium checked again" not in source


def test_choices_clicked_faster_than_the_page_runs_are_all_kept(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    reviews.desk(workspace, reviews.ONE).lock_plan(TASK, reviews.PLAN)
    seen = look(app)
    seen.open(at(reviews.ONE))
    expect(seen.page.get_by_role("button", name="Next open item")).to_be_visible(timeout=30_000)
    seen.settle()
    groups = {
        **{f"verdict.{one.id}": f"Verdict: {one.title}" for one in checklist().dimensions},
        "rating.cp1": "Rating of checkpoint 1",
        "rating.cp2": "Rating of checkpoint 2",
    }
    db = reviews.desk(workspace, reviews.ONE).db
    for number in range(4):
        for item, name in groups.items():
            word = (["Acceptable", "Unsafe"] if item.startswith("verdict") else ["Essential", "Optional"])[number % 2]
            group = seen.page.get_by_role("radiogroup", name=name, exact=True)
            group.get_by_role("radio", name=word, exact=True).click()
        # What the page shows is what is kept, once the queue of runs is done.
        shown: dict[str, str] = {}
        kept: dict[str, str] = {}
        for _ in range(80):
            seen.page.wait_for_timeout(500)
            drafts = db.drafts(reviews.ONE, TASK, 1)
            shown = {item: checked(seen.page, name) for item, name in groups.items()}
            kept = {item: drafts[item].value if item in drafts else "" for item in groups}
            if kept == shown and all(shown.values()):
                break
        assert kept == shown
        assert all(shown.values())


def checked(page: Page, group: str) -> str:
    """What a segmented control shows as chosen."""
    chosen = page.get_by_role("radiogroup", name=group, exact=True).locator("[aria-checked=true]")
    return chosen.first.inner_text().strip().lower() if chosen.count() else ""


def rate_all(page: Page) -> None:
    for dimension in checklist().dimensions:
        group = page.get_by_role("radiogroup", name=f"Verdict: {dimension.title}")
        group.get_by_role("radio", name="Acceptable").click()
        expect(group.get_by_role("radio", name="Acceptable")).to_be_checked(timeout=30_000)
    for number in (1, 2):
        group = page.get_by_role("radiogroup", name=f"Rating of checkpoint {number}")
        group.get_by_role("radio", name="Essential").click()
        expect(group.get_by_role("radio", name="Essential")).to_be_checked(timeout=30_000)
    page.get_by_role("radiogroup", name="How sure are you of this review?").get_by_text("Sure", exact=True).click()


def test_two_people_in_two_browsers_review_blind_and_then_see_each_other(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    first, second = look(app), look(app)
    first.open(at(reviews.ONE))
    second.open(at(reviews.TWO))
    fill_plan(first.page, reviews, answer=SECRET)
    fill_plan(second.page, reviews)
    first.page.get_by_role("button", name="Lock plan").click(delay=60)
    expect(first.page.get_by_role("heading", name="New finding")).to_be_visible(timeout=30_000)
    # Submitting says what is missing until nothing is.
    expect(first.page.get_by_text("5 dimensions · 2 checkpoint ratings")).to_be_visible(timeout=30_000)
    expect(first.page.get_by_role("button", name="Submit review")).to_be_disabled()
    rate_all(first.page)
    group = first.page.get_by_role("radiogroup", name="Verdict: Patient safety")
    group.get_by_role("radio", name="Needs change").click()
    expect(first.page.get_by_text("Before you can submit: 1 finding")).to_be_visible(timeout=30_000)

    # A finding on words that are selected on the page.
    first.page.get_by_text("What the agent is asked").click()
    words = first.page.locator(".st-key-asked").get_by_text("is up. Please advise")
    expect(words).to_be_visible(timeout=30_000)
    words.select_text()
    first.page.get_by_role("button", name="Quote the words that I selected").click()
    expect(first.page.locator(".anchor").first).to_contain_text("Please advise", timeout=30_000)
    field(first.page, "What is wrong, and why").fill(SECRET)
    finding = first.page.locator(".st-key-finding")
    finding.get_by_role("combobox", name="Dimension").select_option("Patient safety")
    finding.get_by_role("radio", name="Should").click()
    finding.get_by_role("radiogroup", name="Confidence").get_by_text("Sure", exact=True).click()
    expect(first.page.get_by_role("button", name="Add finding")).to_be_enabled(timeout=30_000)
    first.page.get_by_role("button", name="Add finding").click(delay=60)
    expect(finding.get_by_text("Your findings")).to_be_visible()
    expect(first.page.get_by_role("button", name="Submit review")).to_be_enabled(timeout=30_000)
    first.page.get_by_role("button", name="Submit review").click(delay=60)
    expect(first.page.get_by_text("Your review is in. This is what was stored.")).to_be_visible(timeout=30_000)
    assert SECRET in first.page.inner_text("body")

    # Nothing of the first stands on any page of the second, nor in the repository.
    for path in ("/", at(reviews.TWO), f"/decide?id={TASK}&as={reviews.TWO}", f"/signoff?id={TASK}&as={reviews.TWO}"):
        second.open(path)
        second.page.wait_for_timeout(500)
        assert "Zebra" not in second.page.content(), path
        assert "Needs change</span>" not in second.page.content(), path
    assert "Zebra" not in str(reviews.desk(workspace, reviews.TWO).state(TASK))

    second.open(at(reviews.TWO))
    second.page.get_by_role("button", name="Lock plan").click(delay=60)
    expect(second.page.get_by_role("heading", name="New finding")).to_be_visible(timeout=30_000)
    rate_all(second.page)
    expect(second.page.get_by_role("button", name="Submit review")).to_be_enabled(timeout=30_000)
    second.page.get_by_role("button", name="Submit review").click(delay=60)
    expect(second.page.get_by_text(SECRET).first).to_be_visible(timeout=30_000)
    state = reviews.desk(workspace, reviews.TWO).state(TASK)
    assert state.submitted == (reviews.ONE, reviews.TWO)
    with reviews.desk(workspace, reviews.TWO).store.at() as view:
        events = reviews.desk(workspace, reviews.TWO).snapshot(view, TASK).events
    stored = [one for one in events if isinstance(one, ReviewSubmitted)]
    assert [one.actor for one in stored] == [reviews.ONE, reviews.TWO]
    assert stored[0].findings[0].text == SECRET
    authors = {one.author.name for one in reviews.desk(workspace, reviews.TWO).store.history(TASK)}
    assert {"Demo reviewer 1", "Demo reviewer 2"} <= authors
