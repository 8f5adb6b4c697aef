"""Words of a review: none goes with a double click unasked, and a quote is of the text that it was selected in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import expect

from tasks.review.checklist import checklist
from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
TASK = "nephrology-small"
SAME = "losartan was held"


@pytest.fixture
def workspace(packages: ModuleType, reviews: ModuleType, tmp_path: Path) -> Workspace:
    folder = packages.write(tmp_path / "suite")
    notes = folder / "chart" / "DocumentReference.ndjson"
    more = [packages.note("n-old", "Older note", "2025-03-10T09:00:00+00:00", f"In March {SAME}; {SAME} again."),
            packages.note("n-new", "Newer note", "2025-04-10T09:00:00+00:00", f"In April {SAME}.")]  # fmt: skip
    notes.write_text(notes.read_text("utf-8") + "".join(f"{json.dumps(one)}\n" for one in more), "utf-8")
    made: Workspace = reviews.opened(Workspace(tmp_path / "workspace"), TASK, tmp_path / "suite")
    desk = reviews.desk(made, reviews.ONE)
    desk.lock_plan(TASK, reviews.PLAN)
    answers = {f"verdict.{one.id}": "acceptable" for one in checklist().dimensions}
    for item, value in {**answers, "rating.cp1": "essential", "rating.cp2": "essential", "confidence": "sure"}.items():
        desk.db.save_draft(reviews.ONE, TASK, 1, item, value)
    return made


@pytest.fixture
def app(serve: Callable[..., Any], workspace: Workspace, playwright: object) -> Iterator[str]:
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url


def test_a_double_click_on_submit_leaves_no_finding_behind_and_leaving_it_behind_is_a_button_of_its_own(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    seen = look(app)
    seen.open(f"/review?id={TASK}&as={reviews.ONE}")
    page, db = seen.page, reviews.desk(workspace, reviews.ONE).db
    submit = page.get_by_role("button", name="Submit review")
    expect(submit).to_be_enabled()
    box = submit.bounding_box()
    assert box
    # Pressed while the page does not know of the words yet.
    page.get_by_role("textbox", name="What is wrong, and why").press_sequentially("Half a thought.", delay=5)
    for _ in range(2):
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.wait_for_timeout(450)
    expect(page.get_by_text("Before you can submit: 1 finding not added")).to_be_visible()
    expect(submit).to_be_disabled()
    seen.settle()
    assert [one.kind for one in db.sealed(TASK, 1)] == ["plan"]

    page.get_by_role("button", name="What is missing").click()
    page.get_by_role("button", name="Submit without it").click(delay=60)
    expect(page.get_by_text("Your review is in. This is what was stored.")).to_be_visible()
    assert [one.kind for one in db.sealed(TASK, 1)] == ["plan", "review"]
    left = page.locator(".st-key-left-1")
    expect(left.get_by_text("Half a thought.")).to_be_visible()
    page.reload()
    expect(left.get_by_text("Half a thought.")).to_be_visible()
    left.get_by_role("button", name="Discard").click()
    page.get_by_role("button", name="Discard these words").click(delay=60)
    expect(left).to_have_count(0)
    seen.settle()
    assert db.tasks_with_drafts(reviews.ONE) == []
    assert [error for error in seen.errors if "404" not in error] == []


def test_a_quote_is_of_the_note_that_was_read_and_of_nothing_else(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    seen = look(app)
    page, db = seen.page, reviews.desk(workspace, reviews.ONE).db
    anchor = page.locator(".st-key-finding .anchor").first
    quote = page.get_by_role("button", name="Quote the words that I selected")

    def select(words: str, within: str) -> None:
        """Select the first place of the words in what the selector finds, as a mouse would."""
        page.locator(within).first.evaluate(
            """(element, words) => {
                const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
                for (let node = walker.nextNode(); node; node = walker.nextNode()) {
                    const at = node.data.indexOf(words);
                    if (at < 0) continue;
                    const range = document.createRange();
                    range.setStart(node, at);
                    range.setEnd(node, at + words.length);
                    getSelection().removeAllRanges();
                    getSelection().addRange(range);
                    return;
                }
                throw new Error("these words are not there");
            }""",
            words,
        )

    def kept() -> dict[str, str]:
        drafts = db.drafts(reviews.ONE, TASK, 1)
        found: dict[str, str] = json.loads(drafts[f"new.{drafts['composer'].value}.anchor"].value)
        return found

    for id, title in (("n-old", "Older note"), ("n-new", "Newer note")):
        seen.open(f"/review?id={TASK}&as={reviews.ONE}&door=Chart&note=DocumentReference/{id}")
        text = f'[data-source="DocumentReference/{id}"]'
        expect(page.locator(text)).to_be_visible()
        select(SAME, text)
        quote.click()
        expect(anchor).to_contain_text(title)
        assert kept() == {"kind": "resource", "ref": f"DocumentReference/{id}", "element": "", "quote": SAME}
    # Words that stand in no text that can be quoted: said, and the finding stays where it was.
    select("Not in this chart", ".stMain")
    quote.click()
    expect(page.get_by_text("press About this in that row")).to_be_visible()
    assert kept()["ref"] == "DocumentReference/n-new"
    assert [error for error in seen.errors if "404" not in error] == []
