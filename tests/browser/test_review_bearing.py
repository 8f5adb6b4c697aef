"""What a changed value means, on Decide in a real Chromium: both units, lines that decide, a note that contradicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
TASK = "nephrology-small"
NOTE = "Spoke with him. Potassium 5.6 on Friday <script>window.pwned=1</script>, no symptoms. Creatinine 1.72 before."


def replaced(ref: str, path: str, old: Any, new: Any) -> dict[str, Any]:
    operations = ({"op": "test", "path": path, "value": old}, {"op": "replace", "path": path, "value": new})
    return {"edit": {"kind": "resource", "ref": ref, "operations": operations}, "rationale": "Unambiguous."}


@pytest.fixture(scope="module")
def app(
    serve: Callable[..., Any], packages: ModuleType, reviews: ModuleType, tmp_path_factory: pytest.TempPathFactory,
    playwright: object,
) -> Iterator[str]:  # fmt: skip
    folder = tmp_path_factory.mktemp("bearing")
    chart = [*packages.resources(), packages.note("n-9", "Phone note", "2025-06-21T10:00:00-05:00", NOTE)]
    declared = packages.CHECKPOINTS.replace('section = "4.3"', 'section = "4.3: potassium above 5.0 does not start"')
    packages.write(folder / "suite", TASK, chart=chart, checkpoints=declared)
    workspace: Workspace = reviews.opened(Workspace(folder / "workspace"), TASK, folder / "suite")
    reviews.judged(workspace, TASK)
    edits = (
        replaced("Observation/k-2", "/valueQuantity/value", 5.6, 4.9),
        replaced("Observation/cr-3", "/valueQuantity/value", 152, 188),
        replaced("Observation/w-1", "/valueQuantity/value", 80, 82),
    )
    reviews.proposed(workspace, TASK, edits)
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url


def lines(page: Page) -> list[list[str]]:
    """The rows of "Follows from it"."""
    rows = page.locator(".follows tbody tr")
    return [[cell.strip() for cell in row.locator("th,td").all_inner_texts()] for row in rows.all()]


def test_a_changed_value_says_what_it_decides_and_which_note_contradicts_it(app: str, look: Callable[..., Any]) -> None:
    seen = look(app)
    page: Page = seen.page
    seen.open(f"/decide?id={TASK}&as=demo-reviewer-1")
    expect(page.get_by_text("Change 1 of 3")).to_be_visible()
    expect(page.locator(".follows")).to_contain_text("Reference range")
    seen.settle()
    found = {row[0]: row[1:] for row in lines(page)}
    assert found["Reference range"][:2] == ["above it", "within it"]
    assert "yes: from above to within the range" in found["Reference range"][2]
    (threshold,) = [row for what, row in found.items() if "potassium above 5.0" in what]
    assert threshold[:2] == ["met", "not met"]
    expect(page.locator(".field-diff .chip", has_text="within").first).to_be_visible()

    chip = page.get_by_role("link", name="Note of 21 Jun 2025 still says 5.6")
    expect(chip).to_be_visible()
    expect(page.locator(".quotes mark").first).to_have_text("5.6")
    expect(page.locator(".quotes")).to_contain_text("<script>window.pwned=1</script>")
    assert page.evaluate("window.pwned") is None
    assert seen.faults() == []

    page.keyboard.press("j")
    expect(page.get_by_text("Change 2 of 3")).to_be_visible()
    expect(page.locator(".field-diff td.was").first).to_have_text("152 µmol/L (1.72 mg/dL)")
    expect(page.locator(".field-diff td.now").first).to_have_text("188 µmol/L (2.13 mg/dL)")
    expect(page.locator(".follows")).to_contain_text("Threshold for creatinine")
    seen.settle()
    said = {row[0]: row[-1] for row in lines(page)}
    assert said["Threshold for creatinine"] == "no threshold named"
    assert "yes: G3a to G3b" in said["eGFR, CKD-EPI 2021"]
    expect(page.get_by_role("link", name="Note of 21 Jun 2025 still says 1.72")).to_be_visible()

    seen.settle()
    page.keyboard.press("j")
    expect(page.get_by_text("Change 3 of 3")).to_be_visible()
    expect(page.locator(".field-diff td.now").first).to_have_text("82 kg (181 lb)")
    expect(page.locator(".quotes")).to_have_count(0)
    assert seen.outside == []


def test_the_chip_leads_to_the_note(app: str, look: Callable[..., Any]) -> None:
    seen = look(app)
    seen.open(f"/decide?id={TASK}&as=demo-reviewer-1")
    seen.page.get_by_role("link", name="Note of 21 Jun 2025 still says 5.6").click()
    expect(seen.page.locator(".st-key-record mark").first).to_contain_text("Potassium 5.6", timeout=60_000)
