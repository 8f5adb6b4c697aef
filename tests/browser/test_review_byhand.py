"""A proposal by hand in a real Chromium, of all three kinds: typed in forms, seen as a diff, put up, decided by two,
applied; the bytes are those that were typed, and nothing else is another one."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
TASK = "nephrology-finerenone-011"
DUE = "with the date on which it is due."


@pytest.fixture
def workspace(tmp_path: Path, reviews: ModuleType) -> Workspace:
    made: Workspace = reviews.opened(Workspace(tmp_path / "workspace"), TASK)
    reviews.judged(made, TASK, demo_reviewer_1=(reviews.finding("f-1", "It does not say by when."),))
    return made


@pytest.fixture
def app(serve: Callable[..., Any], workspace: Workspace, playwright: object) -> Iterator[str]:
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url


def files_of(workspace: Workspace, reviews: ModuleType) -> dict[str, bytes]:
    desk = reviews.desk(workspace, reviews.LEAD)
    with desk.store.at() as view:
        found: dict[str, bytes] = desk.snapshot(view, TASK).files
    return {path: data for path, data in found.items() if not path.startswith("reviews/")}


def fill(page: Page, name: str, text: str) -> None:
    box = page.get_by_role("textbox", name=name, exact=True)
    box.fill(text)
    box.blur()


def added(seen: Any, why: str, words: str) -> None:
    """Say why and add it, on a page that has come to rest."""
    page = seen.page
    fill(page, "Why", why)
    seen.settle()
    page.get_by_role("button", name="Add to the proposal").click(delay=60)
    expect(page.get_by_text(words).first).to_be_visible()


def test_instruction_entry_and_checkpoint_are_typed_seen_decided_and_applied(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    before = files_of(workspace, reviews)
    seen = look(app)
    seen.open(f"/propose?id={TASK}&as={reviews.LEAD}")
    page: Page = seen.page

    # The instruction in place, for the finding that it answers.
    box = page.get_by_role("textbox", name="The instruction, as it should read")
    assert DUE in box.input_value()
    box.fill(box.input_value().replace(DUE, f"{DUE[:-1]}, and who looks at it."))
    page.get_by_role("checkbox", name="It does not say by when.").check()
    added(seen, "A date and a name.", "1 change, not put up yet")
    expect(page.locator("ins", has_text="who looks at it")).to_be_visible()

    # An entry of the chart, found by words of it: value with its unit, the date, a comment that was not there.
    page.get_by_role("radio", name="Entry of the chart").click()
    search = page.get_by_role("textbox", name="Which entry? Words of it")
    search.fill("creatinine in serum 2.16")
    search.press("Enter")
    expect(page.get_by_text("No entry of the chart holds these words.")).to_be_visible()
    search.fill("serum or plasma: 2.16")
    search.press("Enter")
    page.get_by_role("button", name="Change", exact=True).click(delay=60)
    fill(page, "Value", "lots")
    added(seen, "It was typed wrong.", "Value: value is a number; “lots” is none.")
    fill(page, "Value", "2.19")
    fill(page, "Taken at", "2025-10-28T06:45")
    page.get_by_role("button", name="Add to the proposal").click(delay=60)
    expect(page.get_by_text("This is no valid entry of a record: Taken at")).to_be_visible()
    fill(page, "Taken at", "2025-10-28T06:45:00-05:00")
    fill(page, "Comment (none so far)", "Not hemolyzed")
    page.get_by_role("button", name="Add to the proposal").click(delay=60)
    expect(page.get_by_text("2 changes, not put up yet").first).to_be_visible()
    expect(page.get_by_role("row", name="Value 2.16 mg/dL (191 µmol/L) 2.19 mg/dL (194 µmol/L)")).to_be_visible()

    # A checkpoint: what it accepts, in fields; what the grader cannot read is refused with what is wrong.
    page.get_by_role("radio", name="Checkpoint").click()
    page.get_by_role("combobox", name="Checkpoint").select_option("cp6")
    fill(page, "Title", "Finerenone begun at 10 mg once daily")
    fill(page, "Accepted: dose", "a handful")
    added(seen, "The label's word.", "The grader cannot read this")
    fill(page, "Accepted: dose", "10 mg")
    page.get_by_role("combobox", name="Likelihood").select_option("possible")
    page.get_by_role("button", name="Add to the proposal").click(delay=60)
    expect(page.get_by_text("3 changes, not put up yet").first).to_be_visible()

    # The same place twice is refused in plain words.
    seen.settle()
    page.get_by_role("combobox", name="Checkpoint").select_option("cp6")
    fill(page, "Title", "Finerenone begun")
    added(seen, "Another title.", "Your proposal changes this place already: take that out first, below.")

    # A part is taken out and made again; a reload loses nothing of it; then it is put up, twice pressed, once put up.
    page.get_by_role("button", name="Take out").nth(2).click(delay=60)
    expect(page.get_by_text("2 changes, not put up yet").first).to_be_visible()
    seen.settle()
    page.get_by_role("combobox", name="Checkpoint").select_option("cp6")
    fill(page, "Title", "Finerenone begun at 10 mg once daily")
    page.get_by_role("combobox", name="Likelihood").select_option("possible")
    added(seen, "The label's word.", "3 changes, not put up yet")
    page.reload()
    expect(page.get_by_text("3 changes, not put up yet").first).to_be_visible()
    assert files_of(workspace, reviews) == before
    reviews.twice(seen, page.get_by_role("button", name="Put up for decision"), workspace)
    expect(page.get_by_text("3 changes in 1 proposal")).to_be_visible()
    state = reviews.desk(workspace, reviews.LEAD).state(TASK)
    assert len(state.proposals) == 1
    assert {one.ref.findings for one in state.changes.values()} == {("f-1",), ()}

    # Both reviewers decide in their own browsers, then it is applied.
    for who in (reviews.ONE, reviews.TWO):
        mine = look(app)
        mine.open(f"/decide?id={TASK}&as={who}")
        for number in (1, 2, 3):
            expect(mine.page.get_by_text(f"Change {number} of 3")).to_be_visible()
            # The list's row of this change and the decision buttons, which are drawn last, carry the same id.
            mine.page.wait_for_function(
                """() => {
                  const id = (name) => [...document.querySelectorAll(`[class*="st-key-${name}"]`)]
                    .map((one) => one.className.split(`st-key-${name}`)[1].slice(0, 16))[0];
                  return id("rail-on-") && id("rail-on-") === id("do-approve-");
                }"""
            )
            mine.settle()
            mine.page.keyboard.press("a")
        mine.page.get_by_role("button", name="Submit 3 decisions").click(delay=60)
        expect(mine.page.get_by_text("Approved, submitted").first).to_be_visible()
    seen.open(f"/signoff?id={TASK}&as={reviews.LEAD}")
    page.get_by_role("button", name="Apply 3 accepted changes").click(delay=60)
    expect(page.get_by_text("Version 2 is applied")).to_be_visible()

    # The bytes are those that were typed.
    after = files_of(workspace, reviews)
    changed = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    expected = {"instruction.md", "chart/Observation.ndjson", "checkpoints.toml", "task.toml", "CHANGELOG.md"}
    assert changed == expected
    assert after["instruction.md"] == before["instruction.md"].replace(
        DUE.encode(), f"{DUE[:-1]}, and who looks at it.".encode()
    )
    old, new = (files["chart/Observation.ndjson"].split(b"\n") for files in (before, after))
    ((was, now),) = [(a, b) for a, b in zip(old, new, strict=True) if a != b]
    entry, made = json.loads(was), json.loads(now)
    entry["valueQuantity"]["value"] = 2.19
    entry["effectiveDateTime"] = "2025-10-28T06:45:00-05:00"
    entry["note"] = [{"text": "Not hemolyzed"}]
    assert made == entry
    assert b"2.19" in now
    tables = [tomllib.loads(files["checkpoints.toml"].decode())["checkpoint"] for files in (before, after)]
    sixth = tables[0][5]
    sixth["title"] = "Finerenone begun at 10 mg once daily"
    sixth["harm"]["likelihood"] = "possible"
    assert tables[1] == tables[0]
    assert [error for error in seen.errors if "404" not in error] == []
