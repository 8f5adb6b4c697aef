"""Every review page as it looks: axe finds nothing serious, nothing is cut off at 200%, and color is never alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

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
    """Three tasks: one to solve, one in the checklist, one to decide."""
    folder = tmp_path_factory.mktemp("suite")
    for id in ("nephrology-solve", "nephrology-check", TASK):
        packages.write(folder, id)
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
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url


PAGES = {
    "home": ("/?as=demo-reviewer-1", "Assigned to me"),
    "solve": ("/review?id=nephrology-solve&as=demo-reviewer-1", "To lock, still needed"),
    "checklist": ("/review?id=nephrology-check&as=demo-reviewer-1", "New finding"),
    "submitted": (f"/review?id={TASK}&as=demo-reviewer-1", "all open now"),
    "decide": (f"/decide?id={TASK}&as=demo-reviewer-1", "Change 1 of 2"),
    "propose": (f"/propose?id={TASK}&as=demo-lead", "Your proposal"),
    "signoff": (f"/signoff?id={TASK}&as=demo-lead", "Audit trail"),
    "guide": ("/guide?as=demo-reviewer-1", "A worked example"),
}


@pytest.mark.parametrize("name", list(PAGES))
def test_axe_finds_nothing_serious(app: str, look: Callable[..., Any], name: str) -> None:
    path, words = PAGES[name]
    seen = look(app)
    seen.open(path)
    expect(seen.page.get_by_text(words).first).to_be_visible(timeout=60_000)
    seen.settle()
    found = Axe().run(seen.page).response["violations"]
    # What Streamlit draws itself, and we cannot change, is named here and nowhere else.
    ours = [
        (one["id"], node["target"], node["html"][:160])
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
        if not any(own in node["html"] for own in ("stLogo", "stToolbar", "stMainMenu", "stPopoverButton"))
    ]
    assert ours == []


@pytest.mark.parametrize("name", list(PAGES))
def test_at_200_percent_nothing_runs_out_of_the_page(app: str, look: Callable[..., Any], name: str) -> None:
    path, words = PAGES[name]
    seen = look(app, width=640)
    seen.open(path)
    expect(seen.page.get_by_text(words).first).to_be_visible(timeout=60_000)
    seen.settle()
    wide = seen.page.evaluate(
        "() => { const main = document.querySelector('[data-testid=stMain]');"
        " return [main.scrollWidth - main.clientWidth, document.documentElement.scrollWidth - innerWidth]; }"
    )
    assert max(wide) <= 1
    if name == "decide":
        for button in ("Approve", "Reject", "Discuss", "Veto, unsafe"):
            expect(seen.page.get_by_role("button", name=button)).to_be_in_viewport()
    if name == "solve":
        expect(seen.page.get_by_role("button", name="Lock plan")).to_be_in_viewport()


def test_a_diff_reads_without_color(app: str, look: Callable[..., Any]) -> None:
    path, _ = PAGES["decide"]
    seen = look(app)
    seen.open(path)
    expect(seen.page.get_by_role("button", name="Approve")).to_be_enabled(timeout=60_000)
    seen.settle()
    seen.page.keyboard.press("j")
    expect(seen.page.get_by_text("Change 2 of 2")).to_be_visible(timeout=30_000)
    removed, added = seen.page.locator(".diff-line.removed").first, seen.page.locator(".diff-line.added").first
    assert "−" in removed.inner_text()
    assert "+" in added.inner_text()
    style = "e => { const s = getComputedStyle(e); return [s.textDecorationLine, s.borderLeftStyle]; }"
    assert removed.locator("del").first.evaluate(style)[0] == "line-through"
    assert added.locator("ins").first.evaluate(style)[0] == "underline"
    assert removed.evaluate(style)[1] == "dashed"
    assert added.evaluate(style)[1] == "solid"
