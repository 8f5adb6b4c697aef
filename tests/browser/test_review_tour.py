"""The whole loop in the browser alone, on the bundled task: two reviewers, a proposal by hand, a veto, a second round,
adjudication, sign-off, release. With TOUR set to a folder its screenshots are kept there (docs/tour-physician.md)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from review_ui.reviewing.examples import examples
from tasks.package import SUITE
from tasks.review.checklist import checklist
from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
TASK = "nephrology-finerenone-011"
PLAN = {
    "answer": "Start finerenone 10 mg once daily; do not restart empagliflozin after the ketoacidosis.",
    "do_now": "Order finerenone 10 mg daily. Basic metabolic panel in four weeks. Stop the salt substitute.",
    "if_then": "Potassium above 5.5: hold; restart at 10 mg once it is 5.0 or less.",
    "must_not": "Any SGLT2 inhibitor; a second mineralocorticoid antagonist; potassium supplements.",
    "follow_up": "Basic metabolic panel in four weeks, Dr. Alder.",
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("tour") / "workspace")


@pytest.fixture(scope="module")
def app(serve: Callable[..., Any], workspace: Workspace, playwright: object) -> Iterator[str]:
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url


class Person:
    """One person in a browser of their own."""

    def __init__(self, seen: Any, id: str, name: str) -> None:
        self.seen, self.id, self.name = seen, id, name
        self.page: Page = seen.page

    def come(self) -> None:
        """Home, and say who one is."""
        self.seen.open("/")
        self.page.locator(f".st-key-be-{self.id} button").click()
        expect(self.page.get_by_role("button", name="Change who I am")).to_be_visible()

    def go(self, page: str) -> None:
        """A page of the task by its address, as a bookmark."""
        self.seen.open(f"/{page}?id={TASK}&as={self.id}")

    def shot(self, name: str, height: int = 900) -> None:
        """Keep a screenshot for the tour."""
        folder = os.environ.get("TOUR")
        if folder:
            self.page.set_viewport_size({"width": 1280, "height": height})
            self.page.mouse.move(0, 0)
            self.page.wait_for_timeout(1200)
            self.seen.settle()
            self.page.screenshot(path=str(Path(folder) / f"{name}.png"))
            self.page.set_viewport_size({"width": 1280, "height": 900})

    def press(self, name: str, *, exact: bool = False) -> None:
        """Press a button once it can be pressed."""
        button = self.page.get_by_role("button", name=name, exact=exact).first
        expect(button).to_be_enabled()
        button.click(delay=60)

    def write(self, label: str, text: str) -> None:
        """Fill an autosaving field and leave it."""
        box = self.page.get_by_role("textbox", name=label)
        box.fill(text)
        box.blur()

    def choose(self, group: str | Locator, word: str) -> None:
        """Choose in a row of choices."""
        found = self.page.get_by_role("radiogroup", name=group, exact=True) if isinstance(group, str) else group
        radio = found.get_by_role("radio", name=word, exact=True)
        radio.click()
        expect(radio).to_be_checked()

    def said(self, text: str) -> None:
        """Wait for words on the page."""
        expect(self.page.get_by_text(text).first).to_be_visible()


def lock(who: Person, prefix: str = "") -> None:
    """Solve first."""
    labels = {
        "answer": "Answer in one or two sentences", "do_now": "Do now", "if_then": "If-then",
        "must_not": "Must not be done", "follow_up": "Follow-up: test, window, who",
    }  # fmt: skip
    for key, label in labels.items():
        who.write(label, PLAN[key])
    who.choose("How sure are you?", "Sure")
    if prefix:
        who.shot(f"{prefix}-solve", 1100)
    who.press("Lock plan and open checklist")
    who.said("New finding")


def judge(who: Person, verdicts: dict[str, str] | None = None) -> None:
    """Answer everything that a submission needs."""
    for one in checklist().dimensions:
        who.choose(f"Verdict: {one.title}", (verdicts or {}).get(one.title, "Acceptable"))
    for number in range(1, len(SUITE.load(TASK).checkpoints) + 1):
        who.choose(f"Rating of checkpoint {number}", "Essential")
    who.choose("How sure are you of this review?", "Sure")
    # Next open item leads to what is left: the example orders, checkpoint by checkpoint.
    task = SUITE.load(TASK)
    for number, checkpoint in enumerate(task.checkpoints, 1):
        found = examples(task, checkpoint)
        if found:
            who.press("Next open item")
        for place in range(1, len(found) + 1):
            who.choose(f"Order {place} of checkpoint {number}", "Right")


def finding(who: Person, text: str, dimension: str, weight: str) -> None:
    """Write a finding and add it."""
    who.write("What is wrong, and why", text)
    pane = who.page.locator(".st-key-finding")
    pane.get_by_role("combobox", name="Dimension").select_option(dimension)
    who.choose(pane.get_by_role("radiogroup", name="Weight", exact=True), weight)
    who.choose(pane.get_by_role("radiogroup", name="Confidence", exact=True), "Sure")
    who.press("Add finding")
    expect(pane.get_by_text(text)).to_be_visible()


def answers(who: Person) -> None:
    """Name the open finding that a change answers."""
    who.page.get_by_role("group", name="Findings that it answers").get_by_role("checkbox").first.check()


def test_the_whole_loop(app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType) -> None:
    lead = Person(look(app), "demo-lead", "Demo lead")
    one = Person(look(app), "demo-reviewer-1", "Demo reviewer 1")
    two = Person(look(app), "demo-reviewer-2", "Demo reviewer 2")
    judge_ = Person(look(app), "demo-adjudicator", "Demo adjudicator")

    # The lead assigns and opens a round.
    lead.come()
    lead.shot("01-home-lead")
    lead.page.locator(f".st-key-work-{TASK} a").click(delay=60)
    lead.said("What sign-off needs")
    for name in ("Demo reviewer 1 as reviewer", "Demo reviewer 2 as reviewer", "Demo adjudicator as adjudicator"):
        lead.press("Assign somebody")
        lead.press(name)
        lead.said(f"{name.split(' as ')[0]} {name.split(' as ')[1]}")
    lead.shot("02-assign", 1000)
    lead.press("Open round 1")
    lead.said("Waiting for Demo reviewer 1, Demo reviewer 2")

    # Two reviewers, each blind to the other.
    one.come()
    one.page.get_by_role("link", name="Review", exact=True).first.click(delay=60)
    lock(one, "03")
    one.shot("04-checklist", 1100)
    finding(one, "The request does not say by when the first laboratory check is due.", "Instruction clarity", "Should")
    judge(one, {"Instruction clarity": "Needs change"})
    one.shot("05-checkpoint", 1300)
    one.press("Submit review")
    one.said("Your review is in. This is what was stored.")
    one.shot("06-read-back", 1100)
    two.come()
    assert "laboratory check is due" not in two.page.content()
    two.page.get_by_role("link", name="Review", exact=True).first.click(delay=60)
    lock(two)
    assert "laboratory check is due" not in two.page.content()
    judge(two)
    two.press("Submit review")
    two.said("all open now")
    two.shot("07-all-open", 1100)

    # A proposal by hand, by the lead; a veto, an approval: split and blocked, then lifted and adjudicated.
    lead.go("propose")
    box = lead.page.get_by_role("textbox", name="The instruction, as it should read")
    before = box.input_value()
    assert "with the date on which it is due." in before
    box.fill(before.replace("with the date on which it is due.", "with the date on which it is due, within six weeks."))
    box.blur()
    answers(lead)
    lead.write("Why", "The asker needs a date to plan with.")
    lead.press("Add to the proposal")
    lead.said("1 change, not put up yet")
    lead.shot("08-propose", 1100)
    lead.press("Put up for decision")
    lead.said("1 change in 1 proposal")

    one.go("decide")
    one.said("Change 1 of 1")
    one.shot("09-decide")
    one.press("Veto, unsafe")
    one.said("A veto names the harm")
    one.write("Comment", "Six weeks is too long after starting finerenone: potassium can rise in four.")
    one.choose("Kind of harm", "By what is left out")
    one.choose("Severity", "Severe")
    one.choose("Likelihood", "Possible")
    one.shot("10-veto")
    one.press("Summary")
    one.press("Submit 1 decision")
    one.said("Your veto, submitted")
    two.go("decide")
    two.said("Change 1 of 1")
    two.press("Approve")
    two.said("1 of 1 decided in this sitting")
    two.press("Submit 1 decision")
    two.said("Approved, submitted")
    lead.go("signoff")
    lead.said("1 blocked: the veto's owner lifts it")
    lead.shot("11-veto-stands", 1100)

    # The owner lifts the veto and rejects; the other approved: split, settled by the adjudicator.
    one.go("decide")
    one.press("Lift my veto")
    one.write("Why the danger is gone", "It is no danger as long as the first check stays at four weeks; I reject it.")
    one.press("Lift the veto")
    expect(one.page.get_by_role("button", name="Reject")).to_be_enabled()
    one.write("Comment", "Four weeks, not six.")
    one.press("Reject")
    one.said("1 of 1 decided in this sitting")
    one.press("Submit 1 decision")
    one.said("Rejected, submitted")
    judge_.come()
    judge_.page.get_by_role("link", name="Adjudicate").first.click(delay=60)
    judge_.said("Split: Instruction")
    judge_.write("Reason, read by everybody", "Four weeks is the label's check; six is refused.")
    judge_.shot("12-adjudicate")
    judge_.press("Reject the change")
    judge_.said("Nothing is split.")

    # Another change answers the same finding; both approve, the lead applies it.
    lead.go("propose")
    box = lead.page.get_by_role("textbox", name="The instruction, as it should read")
    box.fill(
        before.replace("with the date on which it is due.", "with the date on which it is due, within five weeks.")
    )
    box.blur()
    answers(lead)
    lead.press("Add to the proposal")
    lead.said("1 change, not put up yet")
    lead.press("Put up for decision")
    lead.said("2 changes in 2 proposals")
    for who in (one, two):
        who.go("decide")
        who.said("Change 1 of 1")
        who.press("Approve")
        who.said("1 of 1 decided in this sitting")
        who.press("Submit 1 decision")
        who.said("Approved, submitted")
    lead.go("signoff")
    lead.press("Apply 1 accepted change")
    expect(lead.page.get_by_text("Version 2").first).to_be_visible(timeout=300_000)

    # A second round over what the task is now.
    lead.press("Open round 2")
    # Whom it waits for reads the same before (to sign) and after (to review): the button goes once the round is open.
    expect(lead.page.get_by_role("button", name="Open round 2")).to_have_count(0)
    for who in (one, two):
        who.go("review")
        lock(who)
        judge(who)
        who.press("Submit review")
        who.said("Your review is in.") if who is one else who.said("all open now")

    # Sign-off by both, release by the lead, and the audit holds.
    lead.go("signoff")
    # The gate passed when the change was applied, on the bytes that are still there: it is not asked for again.
    gate = lead.page.locator(".need-row").filter(has_text="The automatic check (the gate) has passed")
    expect(gate.locator("span").last).to_have_text("met")
    for who in (one, two):
        who.go("signoff")
        if who is one:
            who.shot("13-sign", 1000)
        who.press("Sign", exact=True)
        who.said("You have signed")
    lead.go("signoff")
    lead.press("Release", exact=True)
    lead.said("Version 2 is released")
    lead.press("Verify against the repository")
    lead.said("who did each, in which order, and on what, is as it was recorded")
    lead.shot("14-released", 1300)
    assert reviews.desk(workspace, reviews.LEAD).state(TASK).stage == "released"
    one.seen.open(f"/?as={one.id}")
    one.said("Signed · 1")
    one.shot("15-home-signed")
    for who in (lead, one, two, judge_):
        assert who.seen.outside == []
