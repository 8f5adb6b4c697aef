"""Every page as it looks: nothing serious by axe, nothing out of the page at three widths, color never alone.

Each page's pictures (1280, 1920, 640 × 450 = 200%, and in gray) go to the folder that WORKBENCH_PICTURES names, to be
looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import expect

from runtime.batch import Item
from tasks.package import FolderSource
from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

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
    """Four tasks: to solve, in the checklist, to decide, and one that nobody has looked at; two agents' trials."""
    folder = tmp_path_factory.mktemp("suite")
    for id in ("nephrology-solve", "nephrology-check", "nephrology-new", TASK):
        plan = packages.write(folder, id) / "solution" / "repeat"
        plan.mkdir(parents=True)
        (plan / "actions.jsonl").write_text(
            '{"tool":"write_file","arguments":{"file_path":"/workspace/output/note.md","content_file":"note.md"}}\n',
            "utf-8",
        )
        (plan / "note.md").write_text("Repeat the potassium.\n", "utf-8")
    workspace = Workspace(tmp_path_factory.mktemp("looks") / "workspace")
    for id in ("nephrology-solve", "nephrology-check", TASK):
        reviews.opened(workspace, id, folder)
    reviews.desk(workspace, reviews.ONE).lock_plan("nephrology-check", reviews.PLAN)
    reviews.judged(workspace, TASK, demo_reviewer_1=(reviews.finding("f-1", "It does not say by when."),))
    reviews.proposed(
        workspace,
        TASK,
        (
            {
                "edit": {
                    "kind": "text",
                    "path": "instruction.md",
                    "find": "Please advise.",
                    "replace": "Advise today.",
                },
                "findings": ("f-1",),
            },
            {
                "edit": {
                    "kind": "checkpoint",
                    "checkpoint": "cp2",
                    "set": {"criticality": "optional"},
                    "was": {"criticality": "required"},
                }
            },
        ),
    )
    source = FolderSource(folder)
    items = [Item(source.load(id), agent, 2, folder / id) for id in source.list() for agent in ("noop", "parrot")]
    reviews.run(workspace, items)
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url


#: Name -> address, words that it shows once drawn, and buttons that have to be reachable at 200%.
PAGES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "who": ("/", "Who are you?", ()),
    "home": ("/?as=demo-reviewer-1", "Assigned to me", ()),
    "home-of-the-lead": ("/?as=demo-lead&tab=All", "All tasks", ()),
    "tasks": ("/tasks?as=demo-reviewer-1", "tasks", ()),
    "task": (f"/task?id={TASK}&as=demo-lead", "What the agent is asked", ()),
    "task-checkpoints": (f"/task?id={TASK}&view=Checkpoints&as=demo-lead", "Passes with", ()),
    "task-resources": (f"/task?id={TASK}&view=Every+resource&at=Observation/k-2&as=demo-lead", "in the chart", ()),
    "task-plans": (f"/task?id={TASK}&view=Reference+plans&as=demo-lead", "Plan: repeat", ()),
    "solve": ("/review?id=nephrology-solve&as=demo-reviewer-1", "To lock, still needed", ("Lock plan",)),
    "checklist": ("/review?id=nephrology-check&as=demo-reviewer-1", "New finding", ()),
    "submitted": (f"/review?id={TASK}&as=demo-reviewer-1", "all open now", ()),
    "propose": (f"/propose?id={TASK}&as=demo-lead", "Your proposal", ()),
    "model-draft": (f"/proposals?id={TASK}&as=demo-lead", "Model", ()),
    "decide": (
        f"/decide?id={TASK}&as=demo-reviewer-1", "Change 1 of 2", ("Approve", "Reject", "Discuss", "Veto, unsafe")
    ),
    "signoff": (f"/signoff?id={TASK}&as=demo-lead", "Audit trail", ()),
    "signoff-new": ("/signoff?id=nephrology-new&as=demo-lead", "Not under review yet", ()),
    "run": ("/run?as=demo-lead", "What this will do", ()),
    "models": ("/models?as=demo-lead", "Models", ()),
    "trials": ("/trials?as=demo-lead", "found", ()),
    "trial": (f"/trial?batch=b-1&task={TASK}&agent=parrot&run=1&as=demo-lead", "Orders it wrote", ()),
    "trial-step": (f"/trial?batch=b-1&task={TASK}&agent=parrot&run=1&step=2&as=demo-lead", "What the agent saw", ()),
    "trial-chart": (
        f"/trial?batch=b-1&task={TASK}&agent=parrot&run=1&chart=1&step=2&as=demo-lead", "Chart after step 2", ()
    ),
    "results": ("/results?batch=b-1&as=demo-lead", "Leaderboard", ()),
    "results-hidden": ("/results?batch=b-1&as=demo-reviewer-1", "hidden until you have submitted", ()),
    "results-parts": ("/results?batch=b-1&view=By+group+and+workflow&as=demo-lead", "By workflow", ()),
    "results-two": ("/results?batch=b-1&view=Compare+two&as=demo-lead", "Paired over the same tasks", ()),
    "results-rows": ("/results?batch=b-1&view=Every+task+and+agent&as=demo-lead", "A row a task", ()),
    "calibrate": ("/calibrate?batch=b-1&as=demo-reviewer-1", "Calibrate the judge", ()),
    "guide": ("/guide?as=demo-reviewer-1", "A worked example", ()),
    "not-here": ("/task?id=nothing&as=demo-lead", "This is not here.", ()),
}  # fmt: skip
WIDTHS = (1280, 1920, 640)


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where each page's pictures go: WORKBENCH_PICTURES, else a folder of the test's own."""
    named = os.environ.get("WORKBENCH_PICTURES")
    folder = Path(named) if named else tmp_path_factory.mktemp("pictures")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("name", list(PAGES))
def test_a_page_is_whole_legible_and_reachable(
    app: str, one_by_one: Callable[[str, str], Any], pictures: Path, name: str
) -> None:
    path, words, buttons = PAGES[name]
    seen = one_by_one(app, path)
    page = seen.page
    expect(page.get_by_text(words).first).to_be_visible()
    seen.settle()
    assert seen.faults() == []
    assert page.locator("h1").count() == 1
    for width in WIDTHS:
        seen.fits(width)
        for button in buttons:
            one = page.get_by_role("button", name=button)
            if name == "decide":
                # Whole on the screen without scrolling, and nothing over its middle.
                expect(one).to_be_in_viewport(ratio=1)
                one.click(trial=True)
            one.scroll_into_view_if_needed()
            expect(one).to_be_in_viewport(ratio=1)
        if width == 1920 and "WORKBENCH_PICTURES" not in os.environ:
            continue  # nobody looks at the picture
        # The page scrolls inside the window: a window as tall as the page shows all of it.
        tall = page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
        page.set_viewport_size({"width": width, "height": max(900, min(tall + 80, 6_000))})
        seen.settle()
        page.screenshot(path=pictures / f"{name}-{width}.png")
        if width == 1280:
            page.add_style_tag(content=".gray { filter: grayscale(1) }")
            page.evaluate("document.documentElement.classList.add('gray')")
            page.screenshot(path=pictures / f"{name}-gray.png")
            page.evaluate("document.documentElement.classList.remove('gray')")
    assert seen.outside == []


def test_a_diff_reads_without_color(app: str, look: Callable[..., Any]) -> None:
    path, _, _ = PAGES["decide"]
    seen = look(app)
    seen.open(path)
    expect(seen.page.get_by_role("button", name="Approve")).to_be_enabled()
    seen.settle()
    seen.page.keyboard.press("j")
    expect(seen.page.get_by_text("Change 2 of 2")).to_be_visible()
    # Asked until it stands: what is drawn anew is not in the page for a moment.
    removed, added = seen.page.locator(".diff-line.removed").first, seen.page.locator(".diff-line.added").first
    expect(removed).to_contain_text("−")
    expect(added).to_contain_text("+")
    expect(removed.locator("del").first).to_have_css("text-decoration-line", "line-through")
    expect(added.locator("ins").first).to_have_css("text-decoration-line", "underline")
    expect(removed).to_have_css("border-left-style", "dashed")
    expect(added).to_have_css("border-left-style", "solid")


def test_whom_to_assign_is_legible(app: str, look: Callable[..., Any]) -> None:
    seen = look(app)
    seen.open("/signoff?id=nephrology-new&as=demo-lead")
    seen.page.get_by_role("button", name="Assign somebody").click(delay=60)
    expect(seen.page.get_by_role("button", name="Demo adjudicator as adjudicator")).to_be_visible()
    seen.settle()
    assert seen.faults() == []
