"""Stage 1 in a real Chromium: nothing typed is lost, one click is one event, and nobody sees the other's review."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from review_ui.reviewing import forms
from review_ui.reviewing.examples import examples
from tasks.package import SUITE
from tasks.review.checklist import checklist
from tasks.review.events import ReviewSubmitted, parse_events
from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
TASK = "nephrology-small"
BUNDLED = "nephrology-finerenone-011"
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
    expect(box.locator(".wb-state")).to_contain_text("Saved")


def fill_plan(page: Page, reviews: ModuleType, **other: str) -> None:
    for key, label in reviews.LABELS.items():
        field(page, label).fill(other.get(key, reviews.PLAN[key]))
        field(page, label).blur()
        saved(page, label)
    page.get_by_role("radio", name="Fairly sure").click()
    expect(page.get_by_role("button", name="Lock plan")).to_be_enabled()


def choose(page: Page, group: str, word: str) -> None:
    page.get_by_role("radiogroup", name=group, exact=True).get_by_role("radio", name=word, exact=True).click()


def checklist_of(seen: Any, workspace: Workspace, reviews: ModuleType, who: str) -> None:
    """The checklist, with the plan locked at the desk."""
    reviews.desk(workspace, who).lock_plan(TASK, reviews.PLAN)
    seen.open(at(who))
    expect(seen.page.get_by_role("button", name="Next open item")).to_be_visible()


def test_text_survives_a_reload_right_after_the_last_key_and_another_page(
    app: str, look: Callable[..., Any], reviews: ModuleType
) -> None:
    seen = look(app)
    seen.open(at(reviews.ONE))
    seen.page.on("dialog", lambda dialog: dialog.accept())
    answer = field(seen.page, reviews.LABELS["answer"])
    answer.press_sequentially("typed and reloaded a b d x", delay=15)
    seen.page.reload()
    expect(field(seen.page, reviews.LABELS["answer"])).to_have_value("typed and reloaded a b d x")
    saved(seen.page, reviews.LABELS["answer"])

    now = field(seen.page, reviews.LABELS["do_now"])
    now.press_sequentially("typed and left", delay=15)
    seen.page.get_by_role("link", name="Trials").click(delay=120)
    expect(seen.page.get_by_text("Nothing has been run")).to_be_visible()
    seen.page.go_back()
    seen.open(at(reviews.ONE))
    expect(field(seen.page, reviews.LABELS["do_now"])).to_have_value("typed and left")
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
    # The server is gone and the reader goes on writing: by script, since Streamlit's own notice takes the keyboard.
    field(seen.page, reviews.LABELS["answer"]).evaluate(
        "box => { box.value += ', and while it was away'; box.dispatchEvent(new Event('input', {bubbles: true})); }"
    )
    whole = "before the restart, and while it was away"
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
    # What does not fit in a field is not locked away unseen, and neither is what stood there before.
    now = field(seen.page, reviews.LABELS["do_now"])
    now.fill("x" * 100_001)
    seen.page.get_by_role("button", name="Lock plan").click()
    expect(seen.page.get_by_text("Something is not saved as it stands.")).to_be_visible()
    assert seen.faults() == []
    assert reviews.desk(workspace, reviews.ONE).db.sealed(TASK, 1) == []
    now.fill(reviews.PLAN["do_now"])
    saved(seen.page, reviews.LABELS["do_now"])
    seen.settle()
    field(seen.page, reviews.LABELS["follow_up"]).press_sequentially(" AND BY PHONE", delay=10)
    reviews.twice(seen, seen.page.get_by_role("button", name="Lock plan"), at_rest=False)
    expect(seen.page.get_by_text("Your plan, locked")).to_be_visible()
    sealed = reviews.desk(workspace, reviews.ONE).db.sealed(TASK, 1)
    assert [one.kind for one in sealed] == ["plan"]
    assert b"AND BY PHONE" in sealed[0].events


def test_two_windows_of_one_person_never_overwrite_each_other_unasked(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    first, second = look(app), look(app)
    for seen in (first, second):
        seen.open(at(reviews.ONE))
        expect(field(seen.page, reviews.LABELS["answer"])).to_be_visible()
    field(first.page, reviews.LABELS["answer"]).fill("from the first window")
    field(first.page, reviews.LABELS["answer"]).blur()
    saved(first.page, reviews.LABELS["answer"])
    field(second.page, reviews.LABELS["answer"]).fill("from the second window")
    field(second.page, reviews.LABELS["answer"]).blur()
    expect(second.page.get_by_text("Not saved: this was changed in another window.")).to_be_visible()
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
    expect(seen.page.get_by_text("To lock, still needed")).to_be_visible()
    source = seen.page.content()
    assert "Potassium found" not in source
    assert "Potassium checked again" not in source


class Clicker:
    """Somebody who clicks five times a second, and knows what was chosen."""

    PACE = 0.2

    def __init__(self, page: Page) -> None:
        self.page = page
        self.chosen: dict[str, tuple[str, str, str]] = {}  # item -> (group, word, value)
        self.at: dict[str, float] = {}
        self.next = time.monotonic()

    def wait(self) -> None:
        """Until the next click is due."""
        time.sleep(max(0.0, self.next - time.monotonic()))
        self.next = time.monotonic() + self.PACE

    def choose(self, item: str, group: str, word: str, value: str) -> None:
        self.wait()
        radio = self.page.get_by_role("radiogroup", name=group, exact=True).get_by_role("radio", name=word, exact=True)
        radio.click()
        # On the screen at once: nothing is waited for.
        assert radio.get_attribute("aria-checked") == "true"
        self.chosen[item] = (group, word, value)
        self.at[item] = time.time()

    def write(self, label: str, text: str) -> None:
        """Type; the next click takes the field its focus."""
        self.wait()
        box = self.page.get_by_role("textbox", name=label, exact=True)
        box.click()
        box.press_sequentially(text, delay=20)
        if len(text) % 2:
            box.press("Tab")

    def shown(self) -> dict[str, str]:
        return {item: checked(self.page, group) for item, (group, _, _) in self.chosen.items()}


def test_five_clicks_a_second_with_typing_between_lose_no_choice_and_no_word(
    serve: Callable[..., Any], tmp_path: Path, look: Callable[..., Any], reviews: ModuleType, playwright: object
) -> None:
    workspace = reviews.opened(Workspace(tmp_path / "bundled"), BUNDLED)
    reviews.desk(workspace, reviews.ONE).lock_plan(BUNDLED, reviews.PLAN)
    task = SUITE.load(BUNDLED)
    orders = {one.id: examples(task, one) for one in task.checkpoints}
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        seen = look(url)
        seen.open(f"/review?id={BUNDLED}&as={reviews.ONE}")
        page = seen.page
        expect(page.get_by_role("button", name="Next open item")).to_be_visible()
        who = Clicker(page)
        rng = random.Random(8)
        for one in checklist().dimensions[1:]:
            who.wait()
            page.get_by_role("button", name=one.title, exact=True).click()
        numbers = {one.id: number for number, one in enumerate(task.checkpoints, 1)}
        for id, found in orders.items():
            if found:
                page.get_by_role("button", name=f"Checkpoint {numbers[id]}", exact=True).click()
                first = page.get_by_role("radiogroup", name=f"Order 1 of checkpoint {numbers[id]}", exact=True)
                expect(first).to_be_visible()
        jobs: list[Callable[[], None]] = []
        words: dict[str, str] = {}

        def plan(item: str, group: str, options: dict[str, str]) -> None:
            value = rng.choice(sorted(options))
            jobs.append(partial(who.choose, item, group, options[value], value))

        def write(item: str, label: str, said: str) -> None:
            words[item] = said
            jobs.append(partial(who.write, label, said))

        for _ in range(2):  # each chosen twice: the second time it is changed, or clicked once more
            for one in checklist().dimensions:
                plan(f"verdict.{one.id}", f"Verdict: {one.title}", {"acceptable": "Acceptable", "unsafe": "Unsafe"})
            for id, number in numbers.items():
                ratings = {"essential": "Essential", "optional": "Optional"}
                plan(f"rating.{id}", f"Rating of checkpoint {number}", ratings)
        for one in checklist().dimensions:
            for question in one.questions:
                plan(f"q.{one.id}.{question.id}", question.text, forms.ANSWERS)
            name = forms.within(one.title)
            write(f"comment.{one.id}", f"Comment on {name}", f"What I think of {name}.")
        for id, found in orders.items():
            for place, example in enumerate(found, 1):
                group = f"Order {place} of checkpoint {numbers[id]}"
                plan(f"tick.{id}.{example.key}", group, {"right": "Right", "wrong": "Wrong"})
        plan("confidence", "How sure are you of this review?", forms.CONFIDENCE)
        rng.shuffle(jobs)
        write_source = "Label, section 2.1, and what the nurse said 🙂"
        who.write("Source", write_source)
        for job in jobs:
            job()
        assert len(who.chosen) > 70
        for item in words:
            title = next(one.title for one in checklist().dimensions if item.endswith(one.id))
            saved(page, f"Comment on {forms.within(title)}")
        seen.settle()
        drafts = reviews.desk(workspace, reviews.ONE).db.drafts(reviews.ONE, BUNDLED, 1)
        kept = {item: drafts[item].value if item in drafts else "" for item in who.chosen}
        assert kept == {item: value for item, (_, _, value) in who.chosen.items()}
        assert who.shown() == {item: word.lower() for item, (_, word, _) in who.chosen.items()}
        assert {item: drafts[item].value for item in words} == words
        assert drafts[f"new.{drafts['composer'].value}.source"].value == write_source
        late = sorted(drafts[item].saved_at.timestamp() - at for item, at in who.at.items())
        # A sign of a stuck queue, not a measure of speed: that is benchmarks.review_pages.
        assert late[-1] < 60, late


def checked(page: Page, group: str) -> str:
    """What a segmented control shows as chosen."""
    chosen = page.get_by_role("radiogroup", name=group, exact=True).locator("[aria-checked=true] > span:last-child")
    return chosen.first.inner_text().strip().lower() if chosen.count() else ""


def test_two_clicks_450_ms_apart_add_one_correction_one_finding_and_submit_once(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    seen = look(app)
    checklist_of(seen, workspace, reviews, reviews.ONE)
    page = seen.page
    page.get_by_role("button", name="Your plan, locked").click()
    field(page, "Add a correction").press_sequentially("Potassium the same day.", delay=10)
    reviews.twice(seen, page.get_by_role("button", name="Add correction"), at_rest=False)
    expect(page.get_by_text("Potassium the same day.").first).to_be_visible()
    page.keyboard.press("Escape")
    rate_all(page)
    field(page, "What is wrong, and why").press_sequentially("No time is given.", delay=10)
    page.get_by_role("combobox", name="Dimension").select_option("Patient safety")
    choose(page, "Weight", "Should")
    choose(page, "Confidence", "Sure")
    expect(page.get_by_role("button", name="Add finding")).to_be_enabled()
    seen.settle()
    # Typed right before the click: it belongs to the finding.
    field(page, "What is wrong, and why").press_sequentially(" AND NO PERSON.", delay=10)
    reviews.twice(seen, page.get_by_role("button", name="Add finding"), at_rest=False)
    expect(page.locator(".st-key-finding").get_by_text("No time is given. AND NO PERSON.")).to_be_visible()
    expect(field(page, "What is wrong, and why")).to_have_value("")
    expect(page.get_by_role("button", name="Submit review")).to_be_enabled()
    reviews.twice(seen, page.get_by_role("button", name="Submit review"), workspace)
    expect(page.get_by_text("Your review is in. This is what was stored.")).to_be_visible()
    # The read-back holds it all, and how agents did has its door now.
    for words in ("Potassium the same day.", "No time is given. AND NO PERSON.", "How agents did on this task"):
        expect(page.get_by_text(words).first).to_be_visible()
    sealed = reviews.desk(workspace, reviews.ONE).db.sealed(TASK, 1)
    events = [event for one in sealed for event in parse_events(one.events)]
    assert [one.type for one in events] == ["plan_locked", "plan_amended", "review_submitted"]
    submitted = events[-1]
    assert isinstance(submitted, ReviewSubmitted)
    assert [one.text for one in submitted.findings] == ["No time is given. AND NO PERSON."]


def test_what_is_missing_has_a_door_to_each_place_and_a_finding_is_put_at_a_row_of_the_chart(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    seen = look(app)
    checklist_of(seen, workspace, reviews, reviews.ONE)
    page = seen.page
    assert "How agents did" not in page.content()
    # Next leads to what is open when it is pressed, not to what was open when the page was drawn.
    choose(page, "Verdict: Instruction clarity", "Acceptable")
    page.get_by_role("button", name="Next open item").click()
    opened = page.get_by_role("radiogroup", name="Verdict: Clinical reasoning").get_by_role("radio", name="Acceptable")
    expect(opened).to_be_focused()
    expect(page.get_by_role("button", name="Clinical reasoning", exact=True)).to_have_attribute("aria-expanded", "true")
    # By keyboard alone from there: arrows choose.
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("radiogroup", name="Verdict: Clinical reasoning").get_by_role("radio", name="Needs change")
           ).to_be_checked()  # fmt: skip
    choose(page, "Rating of checkpoint 2", "Wrong")
    page.get_by_role("button", name="What is missing").click()
    expect(page.get_by_role("button", name="Why checkpoint 2 is wrong")).to_be_visible()
    assert seen.faults() == []
    page.get_by_role("button", name="Why checkpoint 2 is wrong").click()
    expect(field(page, "Why checkpoint 2 is wrong or not gradable")).to_be_focused()
    page.keyboard.type("It forgets the repeat.")
    # The list shuts itself once it has led somewhere; a press before that would shut it, as the reader sees.
    expect(page.locator(".st-key-missing")).to_have_count(0)
    page.get_by_role("button", name="What is missing").click()
    expect(page.locator(".st-key-missing")).to_be_visible()
    expect(page.get_by_role("button", name="Why checkpoint 2 is wrong")).to_have_count(0)
    page.get_by_role("button", name="A finding that says what is wrong in clinical reasoning").click()
    expect(field(page, "What is wrong, and why")).to_be_focused()
    expect(page.get_by_role("combobox", name="Dimension")).to_have_value("clinical_reasoning")

    # The finding is about a row of the page that is pointed at: a checkpoint, an example order, what it rests on.
    anchor = page.locator(".st-key-finding .anchor")
    page.get_by_role("button", name="Checkpoint 1", exact=True).click()
    about = page.locator(".wb-card.wb-checkpoint").first.get_by_role("button", name="Finding about")
    expect(about).to_have_count(3)
    about.nth(1).click()
    expect(anchor).to_contain_text("Lab: Potassium")
    about.first.click()
    expect(anchor).to_contain_text("Checkpoint 1: ")
    expect(page.get_by_role("button", name="Checkpoint 1", exact=True)).to_have_attribute("aria-expanded", "true")

    # Or about a row of the chart, pointed at there; or found by words.
    page.get_by_role("radio", name="Chart", exact=True).click()
    row = page.locator(".rows .pair").filter(has=page.locator("[data-about]")).first
    row.hover()
    row.get_by_role("button", name="Finding about").click()
    expect(anchor).to_contain_text("Problem: Type 2 diabetes")
    page.get_by_role("button", name="Change what it is about").click()
    words = page.get_by_role("textbox", name="An entry of the chart, by words of it")
    words.fill("potassium")
    page.get_by_role("button", name="Take").first.click()
    expect(anchor).to_contain_text("otassium")
    drafts = reviews.desk(workspace, reviews.ONE).db.drafts(reviews.ONE, TASK, 1)
    assert '"kind":"resource"' in drafts[f"new.{drafts['composer'].value}.anchor"].value
    assert drafts["why.cp2"].value == "It forgets the repeat."


def test_choices_made_while_the_server_is_away_are_kept_when_it_is_back(
    serve: Callable[..., Any], workspace: Workspace, look: Callable[..., Any], reviews: ModuleType, playwright: object
) -> None:
    environment = {"WORKBENCH_WORKSPACE": str(workspace.path)}
    with serve(ROOT / "app.py", environment) as url:
        seen = look(url)
        checklist_of(seen, workspace, reviews, reviews.ONE)
        choose(seen.page, "Verdict: Patient safety", "Unsafe")
        seen.settle()
    for group, word in (("Verdict: Patient safety", "Needs change"), ("Rating of checkpoint 1", "Optional")):
        # The notice of a lost connection lies over the page; a keyboard still reaches it.
        radio = seen.page.get_by_role("radiogroup", name=group).get_by_role("radio", name=word)
        radio.evaluate("button => button.click()")
        assert radio.get_attribute("aria-checked") == "true"
    db = reviews.desk(workspace, reviews.ONE).db
    assert db.drafts(reviews.ONE, TASK, 1)["verdict.patient_safety"].value == "unsafe"
    # Meanwhile another window, of another machine, rated the second checkpoint: that stands.
    db.save_draft(reviews.ONE, TASK, 1, "rating.cp2", "essential")
    with serve(ROOT / "app.py", environment, urlsplit(url).port):
        expect(seen.page.get_by_text("1 of 5 dimensions judged")).to_be_visible()
        expect(seen.page.get_by_text("2 of 2 rated")).to_be_visible()
        kept = db.drafts(reviews.ONE, TASK, 1)
        assert kept["verdict.patient_safety"].value == "needs change"
        assert kept["rating.cp1"].value == "optional"
        assert kept["rating.cp2"].value == "essential"
        assert checked(seen.page, "Rating of checkpoint 2") == "essential"


def test_a_field_takes_any_text_and_says_what_does_not_fit(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    seen = look(app)
    seen.open(at(reviews.ONE))
    page = seen.page
    page.on("dialog", lambda dialog: dialog.accept())
    db = reviews.desk(workspace, reviews.ONE).db
    label = reviews.LABELS["answer"]
    answer = field(page, label)

    def paste(text: str) -> None:
        answer.focus()
        page.evaluate("text => document.execCommand('insertText', false, text)", text)

    paste("Kalium 5,9 🙂\r\n\tzweite Zeile \u202e und \ud83d halb")
    answer.blur()
    saved(page, label)
    kept = db.drafts(reviews.ONE, TASK, 1)["plan.answer"].value
    assert kept == "Kalium 5,9 🙂\n\tzweite Zeile \u202e und \ufffd halb"
    answer.fill("")
    paste("x" * 1_000_000)
    box = page.locator(".wb-field").filter(has=page.get_by_text(label, exact=True))
    expect(box.locator(".wb-state")).to_contain_text("Not saved: 900,000 characters too many (100,000 fit)")
    assert len(answer.input_value()) == 1_000_000
    page.reload()
    # Nothing of it was cut off or lost: it is there again, and says so again.
    expect(box.locator(".wb-state")).to_contain_text("900,000 characters too many")
    assert len(answer.input_value()) == 1_000_000
    answer.fill("x" * 100_000)
    saved(page, label)
    assert db.drafts(reviews.ONE, TASK, 1)["plan.answer"].value == "x" * 100_000


def rate_all(page: Page) -> None:
    for dimension in checklist().dimensions:
        group = page.get_by_role("radiogroup", name=f"Verdict: {dimension.title}")
        group.get_by_role("radio", name="Acceptable").click()
        expect(group.get_by_role("radio", name="Acceptable")).to_be_checked()
    for number in (1, 2):
        group = page.get_by_role("radiogroup", name=f"Rating of checkpoint {number}")
        group.get_by_role("radio", name="Essential").click()
        expect(group.get_by_role("radio", name="Essential")).to_be_checked()
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
    expect(first.page.get_by_role("heading", name="New finding")).to_be_visible()
    # Submitting says what is missing until nothing is.
    expect(first.page.get_by_text("5 dimensions · 2 checkpoint ratings")).to_be_visible()
    expect(first.page.get_by_role("button", name="Submit review")).to_be_disabled()
    rate_all(first.page)
    group = first.page.get_by_role("radiogroup", name="Verdict: Patient safety")
    group.get_by_role("radio", name="Needs change").click()
    expect(first.page.get_by_text("Before you can submit: 1 finding")).to_be_visible()

    # A finding on words that are selected on the page.
    first.page.get_by_text("What the agent is asked").click()
    words = first.page.locator(".st-key-asked").get_by_text("is up. Please advise")
    expect(words).to_be_visible()
    words.select_text()
    first.page.get_by_role("button", name="Quote the words that I selected").click()
    expect(first.page.locator(".anchor").first).to_contain_text("Please advise")
    field(first.page, "What is wrong, and why").fill(SECRET)
    finding = first.page.locator(".st-key-finding")
    finding.get_by_role("combobox", name="Dimension").select_option("Patient safety")
    finding.get_by_role("radio", name="Should").click()
    finding.get_by_role("radiogroup", name="Confidence").get_by_text("Sure", exact=True).click()
    expect(first.page.get_by_role("button", name="Add finding")).to_be_enabled()
    first.page.get_by_role("button", name="Add finding").click(delay=60)
    expect(finding.get_by_text("Your findings")).to_be_visible()
    expect(first.page.get_by_role("button", name="Submit review")).to_be_enabled()
    first.page.get_by_role("button", name="Submit review").click(delay=60)
    expect(first.page.get_by_text("Your review is in. This is what was stored.")).to_be_visible()
    assert SECRET in first.page.inner_text("body")

    # Nothing of the first stands on any page of the second, nor in the repository.
    for path in ("/", at(reviews.TWO), f"/decide?id={TASK}&as={reviews.TWO}", f"/signoff?id={TASK}&as={reviews.TWO}"):
        second.open(path)
        assert "Zebra" not in second.page.content(), path
    assert "Zebra" not in str(reviews.desk(workspace, reviews.TWO).state(TASK))

    second.open(at(reviews.TWO))
    second.page.get_by_role("button", name="Lock plan").click(delay=60)
    expect(second.page.get_by_role("heading", name="New finding")).to_be_visible()
    rate_all(second.page)
    expect(second.page.get_by_role("button", name="Submit review")).to_be_enabled()
    second.page.get_by_role("button", name="Submit review").click(delay=60)
    expect(second.page.get_by_text(SECRET).first).to_be_visible()
    state = reviews.desk(workspace, reviews.TWO).state(TASK)
    assert state.submitted == (reviews.ONE, reviews.TWO)
    with reviews.desk(workspace, reviews.TWO).store.at() as view:
        events = reviews.desk(workspace, reviews.TWO).snapshot(view, TASK).events
    stored = [one for one in events if isinstance(one, ReviewSubmitted)]
    assert [one.actor for one in stored] == [reviews.ONE, reviews.TWO]
    assert stored[0].findings[0].text == SECRET
    authors = {one.author.name for one in reviews.desk(workspace, reviews.TWO).store.history(TASK)}
    assert {"Demo reviewer 1", "Demo reviewer 2"} <= authors
