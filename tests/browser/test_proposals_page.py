"""Stage 2 with a model in a real Chromium: ask, watch, cancel, drop, word otherwise, send; nothing is committed before.

With TOUR set to a folder its screenshots are kept there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from authoring.demo import Story, with_model
from authoring.demonstration.story import AUTHOR, JUDGE, MODEL, ONE, TASK, Reviser
from authoring.reviser import drafts
from providers.wire import Fault, Reply, WireServer
from providers.wire.script import Heard
from runtime import jobs
from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "<img src=x onerror=alert(1)><style>button{display:none}</style>"


class Moody:
    """The demonstration's reviser, who writes markup into its reasons and may be slow."""

    def __init__(self) -> None:
        self.delay = 0.0
        self.refuses = False

    def reply(self, heard: Heard) -> Reply:
        if self.refuses:
            return Reply(stop="refusal")
        reply = Reviser().reply(heard)
        call = reply.calls[0]
        assert isinstance(call.arguments, dict)
        for one in call.arguments["edits"]:
            one["risk"] = HOSTILE
        faults = (Fault(kind="slow", delay=self.delay, times=99),) if self.delay else ()
        return reply.model_copy(update={"faults": faults})


@pytest.fixture
def model() -> Moody:
    return Moody()


@pytest.fixture
def story(tmp_path: Path, model: Moody) -> Iterator[Story]:
    """The demonstration's task with everybody's judgement in, and its scripted model at the other end of the wire."""
    workspace = Workspace(tmp_path / "workspace")
    workspace.make()
    with WireServer({MODEL: model}, key="none") as wire:
        with_model(workspace, wire.anthropic_url)
        told = Story(workspace, lambda step: None)
        told.brought_in()
        told.judged(first=True)
        yield told


@pytest.fixture
def page(
    serve: Callable[..., Any], story: Story, look: Callable[..., Any], playwright: object
) -> Iterator[tuple[Any, Page]]:
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(story.workspace.path)}) as url:
        seen = look(url)
        seen.open(f"/proposals?id={TASK}&as={AUTHOR}")
        yield seen, seen.page


def shot(page: Page, name: str) -> None:
    if folder := os.environ.get("TOUR"):
        page.mouse.move(0, 0)
        page.wait_for_timeout(1000)
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def unfold(page: Page, number: int) -> Locator:
    """One edit, unfolded."""
    one = page.locator("details").filter(has=page.get_by_text(f"Edit {number} ·"))
    one.locator("summary").click(delay=120)
    opened(one)
    return one


def opened(one: Locator) -> None:
    """Wait until it has opened: that takes half a second, and a button that still moves takes no click."""
    expect(one).to_have_attribute("open", "")
    one.evaluate(
        """async (it) => {
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          await Promise.all(it.getAnimations({subtree: true}).map((one) => one.finished.catch(() => null)));
        }"""
    )


def test_a_draft_is_asked_for_shaped_and_sent_by_a_person(story: Story, page: tuple[Any, Page]) -> None:
    seen, at = page
    head = story.store.head()
    expect(at.get_by_text("What would be sent")).to_be_visible()
    expect(at.get_by_text("18 resources whole")).to_be_visible()
    shot(at, "model-1-ask")
    # Two clicks are one job.
    at.get_by_role("button", name="Ask the model").dblclick(delay=30)
    expect(at.get_by_text("The draft", exact=True)).to_be_visible()
    assert len(jobs.jobs(story.workspace)) == 1
    (draft,) = drafts(story.workspace, TASK)
    assert (len(draft.edits), draft.repairs) == (5, 1)

    # What is left open stands before the edits; the table says place, dimension, findings, applies, checks.
    seen.settle()
    body = at.locator("body").inner_text()
    assert body.index("Should HLA-B*5801 be tested") < body.index("as they would be decided on")
    expect(at.get_by_text("May weaken a safety checkpoint").first).to_be_visible()
    shot(at, "model-2-draft")

    # The model's words are text.
    fourth = unfold(at, 4)
    expect(fourth.get_by_text(HOSTILE)).to_be_visible()
    assert at.locator("img[src='x']").count() == 0
    expect(fourth.locator("ins").first).to_be_visible()

    # Drop one; word another otherwise.
    unfold(at, 5).get_by_role("button", name="Drop this edit").click(delay=120)
    expect(at.get_by_text("Dropped").first).to_be_visible()
    expect(at.get_by_text("The edit that was offered for it was dropped.")).to_be_visible()
    expect(at.get_by_role("button", name="Send 4 edits to decision")).to_be_visible()
    fourth.get_by_text("Word it otherwise").click()
    box = at.get_by_role("textbox", name="Edit 4: The new text")
    box.fill("You may order: place the orders as active ones, today.")
    box.blur()
    expect(at.locator(".wb-state").last).to_contain_text("Saved")
    at.get_by_role("button", name="Keep this wording").click(delay=120)
    expect(at.get_by_text("Applies, your wording")).to_be_visible()
    shot(at, "model-3-shaped")

    # Nothing was committed by any of it. It survives a reload.
    assert story.store.head() == head
    seen.open(f"/proposals?id={TASK}&as={AUTHOR}")
    expect(at.get_by_text("Applies, your wording")).to_be_visible()
    at.get_by_role("button", name="Send 4 edits to decision").dblclick(delay=30)
    expect(at.get_by_text("This draft was sent to decision.")).to_be_visible()
    state = story.state
    by = {one.ref.unit: (one.made_by, one.ref.made_by_hand) for one in state.changes.values()}
    assert by["instruction.md"] == (AUTHOR, True)
    assert by["checkpoints.toml#cp3"] == (f"anthropic/{MODEL}", False)
    assert "checkpoints.toml#cp5" not in by
    assert len(by) == 4
    assert len(state.proposals) == 2
    assert len(jobs.jobs(story.workspace)) == 2
    assert seen.outside == []
    # Streamlit probes its own server below the page's address.
    assert [error for error in seen.errors if "404" not in error] == []


def test_a_job_is_canceled_and_leaves_no_draft(story: Story, model: Moody, page: tuple[Any, Page]) -> None:
    model.delay = 2.0
    _, at = page
    at.get_by_role("button", name="Ask the model").click(delay=120)
    expect(at.get_by_text("Asking anthropic")).to_be_visible()
    at.get_by_role("button", name="Cancel").click(delay=120)
    expect(at.get_by_text("Canceled")).to_be_visible()
    expect(at.get_by_role("button", name="Ask the model")).to_be_enabled()
    assert drafts(story.workspace, TASK) == []


def test_asking_is_not_lost_to_the_next_click_and_the_key_is_kept_nowhere(
    serve: Callable[..., Any], look: Callable[..., Any], tmp_path: Path, model: Moody, playwright: object
) -> None:
    workspace = Workspace(tmp_path / "workspace")
    workspace.make()
    key = "key-that-nobody-may-read-4711"
    with WireServer({MODEL: model}, key=key) as wire:
        with_model(workspace, wire.anthropic_url)
        story = Story(workspace, lambda step: None)
        story.brought_in()
        story.judged(first=True)
        environment = {"WORKBENCH_WORKSPACE": str(workspace.path), "ANTHROPIC_API_KEY": key}
        with serve(ROOT / "app.py", environment) as url:
            seen = look(url)
            seen.open(f"/proposals?id={TASK}&as={AUTHOR}")
            # The next message comes while the first is being answered.
            seen.page.get_by_role("button", name="Ask the model").click(delay=30)
            seen.page.get_by_role("link", name="Trials").click()
            expect(seen.page.get_by_text("Nothing has been run")).to_be_visible()
            seen.open(f"/proposals?id={TASK}&as={AUTHOR}")
            expect(seen.page.get_by_text("The draft", exact=True)).to_be_visible()
    (job,) = jobs.jobs(workspace)
    (draft,) = drafts(workspace, TASK)
    assert draft.id == job.id
    assert key not in " ".join(job.command)
    holding = [path for path in workspace.path.rglob("*") if path.is_file() and key.encode() in path.read_bytes()]
    assert holding == []


def test_a_model_that_refuses_is_told_in_plain_words_and_the_draft_that_was_there_stays(
    story: Story, model: Moody, page: tuple[Any, Page]
) -> None:
    seen, at = page
    at.get_by_role("button", name="Ask the model").click(delay=60)
    expect(at.get_by_text("The draft", exact=True)).to_be_visible()
    unfold(at, 5).get_by_role("button", name="Drop this edit").click(delay=120)
    expect(at.get_by_role("button", name="Send 4 edits to decision")).to_be_enabled()
    model.refuses = True
    at.get_by_text("Ask again, or another model").click()
    opened(at.locator("details").filter(has=at.get_by_text("Ask again, or another model")))
    at.get_by_role("button", name="Ask the model").click(delay=60)
    expect(at.get_by_text("The model gave no draft.")).to_be_visible()
    expect(at.get_by_text("what you dropped or worded otherwise is kept")).to_be_visible()
    expect(at.get_by_text("refused to answer")).to_be_visible()
    expect(at.get_by_role("button", name="Send 4 edits to decision")).to_be_enabled()
    assert len(jobs.jobs(story.workspace)) == 2
    (draft,) = drafts(story.workspace, TASK)
    assert len(draft.kept) == 4
    assert [error for error in seen.errors if "404" not in error] == []


def test_who_may_not_propose_is_told(story: Story, page: tuple[Any, Page]) -> None:
    seen, at = page
    seen.open(f"/proposals?id={TASK}&as={JUDGE}")
    expect(at.get_by_text("let a model draft changes")).to_be_visible()
    assert at.get_by_role("button", name="Ask the model").count() == 0


def test_no_model_text_is_shown_while_reviews_come_in(story: Story, page: tuple[Any, Page]) -> None:
    seen, at = page
    story.desk("demo-lead").open_round(TASK)
    seen.open(f"/proposals?id={TASK}&as={ONE}")
    expect(at.get_by_text("Reviews are still coming in.")).to_be_visible()
    assert at.get_by_role("button", name="Ask the model").count() == 0
