"""Stage 3 by keyboard alone: only keys are pressed, nothing is focused or clicked by the test; Tab leads everywhere, a
decision leaves the keyboard where it was, Esc loses nothing, and a key that is held down decides once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
TASK = "nephrology-small"
#: What has the keyboard, as a person with a screen reader hears it.
HERE = """() => {
  const it = document.activeElement;
  if (!it || it === document.body) return "";
  if (it.dataset.testid === "stMain") return "the page";
  const said = it.cloneNode(true);
  said.querySelectorAll("[data-testid=stIconMaterial], kbd").forEach((one) => one.remove());
  return it.getAttribute("aria-label") || it.labels?.[0]?.textContent || said.textContent.trim();
}"""


@pytest.fixture(scope="module")
def suite(packages: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite")
    packages.write(folder)
    return folder


@pytest.fixture
def page(
    serve: Callable[..., Any], look: Callable[..., Any], reviews: ModuleType, suite: Path, tmp_path: Path,
    playwright: object,
) -> Iterator[tuple[Any, Workspace]]:  # fmt: skip
    """Ten changes up for the first reviewer, on the screen."""
    workspace = reviews.opened(Workspace(tmp_path / "workspace"), TASK, suite)
    reviews.judged(workspace, TASK, demo_reviewer_1=(reviews.finding("f-1", "It does not say by when."),))
    reviews.proposed(workspace, TASK, edits(reviews, workspace))
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        seen = look(url)
        seen.open(f"/decide?id={TASK}&as={reviews.ONE}")
        on(seen, 1)
        yield seen, workspace


def edits(reviews: ModuleType, workspace: Workspace) -> tuple[dict[str, Any], ...]:
    """The instruction, and nine entries of the chart."""
    instruction = {"kind": "text", "path": "instruction.md", "find": "advise.", "replace": "advise today."}
    made: list[dict[str, Any]] = [{"edit": instruction, "findings": ("f-1",), "rationale": "Today."}]
    at = reviews.desk(workspace, reviews.AUTHOR)
    with at.store.at() as view:
        chart = at.snapshot(view, TASK).task.chart
    for id in ("cr-1", "cr-2", "cr-3", "k-1", "k-2", "w-1", "h-1", "cr-late"):
        value = chart.get(f"Observation/{id}").body["valueQuantity"]["value"]
        operations = (
            {"op": "test", "path": "/valueQuantity/value", "value": value},
            {"op": "replace", "path": "/valueQuantity/value", "value": value + 1},
        )
        made.append({"edit": {"kind": "resource", "ref": f"Observation/{id}", "operations": operations}})
    title = {"kind": "checkpoint", "checkpoint": "cp2", "set": {"title": "Again"}}
    made.append({"edit": {**title, "was": {"title": "Potassium checked again"}}})
    return tuple(made)


def on(seen: Any, number: int) -> None:
    """The change is on the screen with its own buttons, and the page is at rest."""
    page = seen.page
    expect(page.get_by_text(f"Change {number} of 10", exact=True)).to_be_visible()
    # The list's row of this change and the decision buttons carry the same id.
    page.wait_for_function(
        """() => {
          const id = (name) => [...document.querySelectorAll(`[class*="st-key-${name}"]`)]
            .map((one) => one.className.split(`st-key-${name}`)[1].slice(0, 16))[0];
          return id("rail-on-") && id("rail-on-") === id("do-approve-");
        }"""
    )
    seen.settle()


def tab_to(page: Page, name: str, most: int = 60) -> list[str]:
    """Press Tab until what is named has the keyboard; what was passed on the way."""
    passed = []
    for _ in range(most):
        page.keyboard.press("Tab")
        here = str(page.evaluate(HERE))
        if here.startswith(name):
            return passed
        passed.append(here)
    raise AssertionError(f"Tab never came to {name!r}: {passed}")


def test_ten_changes_with_the_keyboard_alone_up_to_the_submission(
    page: tuple[Any, Workspace], reviews: ModuleType
) -> None:
    seen, workspace = page
    at: Page = seen.page
    # The order of Tab is that of the page: stages, the list of changes, the change, then the bar.
    passed = tab_to(at, "Comment")
    stages = next(place for place, name in enumerate(passed) if name.endswith("Review"))
    rail = next(place for place, name in enumerate(passed) if name.startswith("Go to change"))
    reasons = next(place for place, name in enumerate(passed) if "Why this is proposed" in name)
    assert stages < rail < reasons, "\n".join(passed)
    assert all(passed), "nothing without a name takes the keyboard"

    # A comment, then Esc: nothing is lost, and the letters of it decide nothing.
    at.keyboard.type("Axd juk: by when is what I asked.", delay=5)
    at.keyboard.press("Escape")
    seen.settle()
    expect(at.get_by_role("textbox", name="Comment")).to_have_value("Axd juk: by when is what I asked.")
    expect(at.get_by_text("Change 1 of 10", exact=True)).to_be_visible()
    tab_to(at, "Approve")
    expect(at.get_by_role("button", name="Approve with comment")).to_be_focused()
    at.keyboard.press("Enter")
    # The keyboard stays on Approve: of the next change.
    on(seen, 2)
    expect(at.locator("[class*='st-key-do-approve-'] button")).to_be_focused()
    at.keyboard.press("Enter")
    on(seen, 3)
    expect(at.locator("[class*='st-key-do-approve-'] button")).to_be_focused()

    # A veto by its key; its fields by Tab and arrows; it goes on by itself to nothing unseen.
    at.keyboard.press("Shift+V")
    expect(at.get_by_text("Your veto: it still needs a reason and the harm.")).to_be_visible()
    seen.settle()
    for group, arrows in (("Kind of harm", 1), ("Severity", 2), ("Likelihood", 1)):
        radio = at.get_by_role("radiogroup", name=group).get_by_role("radio")
        for _ in range(60):
            at.keyboard.press("Shift+Tab")
            if radio.first.evaluate("(it) => it === document.activeElement"):
                break
        for _ in range(arrows):
            at.keyboard.press("ArrowRight")
        expect(at.get_by_role("radiogroup", name=group).get_by_role("radio", checked=True)).to_be_focused()
        at.keyboard.press("Tab")
    tab_to(at, "Comment")
    at.keyboard.type("A missed recheck can kill.", delay=5)
    at.keyboard.press("Tab")
    expect(at.get_by_text("it still needs")).to_have_count(0)
    seen.settle()
    at.keyboard.press("j")
    on(seen, 4)

    # A key that is held down decides once: held until the next change stands there, and longer.
    at.keyboard.down("a")
    deadline = time.monotonic() + 60
    while not at.get_by_text("Change 5 of 10", exact=True).is_visible():
        assert time.monotonic() < deadline
        at.wait_for_timeout(60)
        at.keyboard.down("a")
    on(seen, 5)
    for _ in range(5):
        at.keyboard.down("a")
        at.wait_for_timeout(60)
    at.keyboard.up("a")
    on(seen, 5)
    for number in range(5, 10):
        at.keyboard.press("a")
        on(seen, number + 1)
    at.keyboard.press("u")
    on(seen, 9)
    at.keyboard.press("x")
    expect(at.get_by_text("Rejected: it still needs a reason.")).to_be_visible()
    seen.settle()
    tab_to(at, "Comment")
    at.keyboard.type("Not plausible.", delay=5)
    at.keyboard.press("Tab")
    expect(at.get_by_text("it still needs")).to_have_count(0)
    seen.settle()
    at.keyboard.press("n")
    on(seen, 10)
    at.keyboard.press("a")
    expect(at.get_by_text("10 of 10 decided in this sitting")).to_be_visible()
    seen.settle()
    tab_to(at, "Submit 10 decisions")
    at.keyboard.press("Enter")
    expect(at.get_by_text("submitted").first).to_be_visible()
    seen.settle()
    state = reviews.desk(workspace, reviews.ONE).state(TASK)
    given = [one.decisions[reviews.ONE] for one in state.changes.values()]
    assert sorted(one.decision for one in given) == [*["approve"] * 8, "reject", "veto"]
    assert len({one.submission for one in given}) == 1
    veto = next(one for one in given if one.decision == "veto")
    assert veto.harm is not None
    assert (veto.reason, veto.harm.kind, veto.harm.severity, veto.harm.likelihood) == (
        "A missed recheck can kill.", "omission", "severe", "possible",
    )  # fmt: skip
