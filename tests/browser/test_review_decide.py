"""Stage 3 in a real Chromium: by keyboard alone, a veto that stands, decisions that become outdated, hostile text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import Page, TimeoutError, expect

from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
TASK = "nephrology-small"
IDLE = (
    "() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"
    " && document.querySelectorAll('[data-stale=true]').length === 0"
)


@pytest.fixture(scope="module")
def suite(packages: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite")
    packages.write(folder)
    return folder


def text(find: str, replace: str) -> dict[str, Any]:
    return {"kind": "text", "path": "instruction.md", "find": find, "replace": replace}


def ten_edits(reviews: ModuleType, workspace: Workspace) -> tuple[dict[str, Any], ...]:
    """Ten changes: the instruction, eight resources, a checkpoint."""
    edits: list[dict[str, Any]] = [
        {
            "edit": {
                "kind": "text",
                "path": "instruction.md",
                "find": "Please advise.",
                "replace": "Please advise today.",
            },
            "findings": ("f-1",),
            "rationale": "The asker needs an answer today.",
        }
    ]
    at = reviews.desk(workspace, reviews.AUTHOR)
    with at.store.at() as view:
        chart = at.snapshot(view, TASK).task.chart
    for id in ("cr-1", "cr-2", "cr-3", "k-1", "k-2", "w-1", "h-1", "cr-late"):
        value = chart.get(f"Observation/{id}").body["valueQuantity"]["value"]
        operations = (
            {"op": "test", "path": "/valueQuantity/value", "value": value},
            {"op": "replace", "path": "/valueQuantity/value", "value": value + 1},
        )
        edits.append({"edit": {"kind": "resource", "ref": f"Observation/{id}", "operations": operations},
                      "rationale": f"Reason of {id}"})  # fmt: skip
    edits.append(
        {
            "edit": {
                "kind": "checkpoint", "checkpoint": "cp2", "set": {"criticality": "optional"},
                "was": {"criticality": "required"},
            },
            "rationale": "Less strict.",
        }
    )  # fmt: skip
    return tuple(edits)


@pytest.fixture
def workspace(reviews: ModuleType, suite: Path, tmp_path: Path) -> Workspace:
    made = reviews.opened(Workspace(tmp_path / "workspace"), TASK, suite)
    reviews.judged(made, TASK, demo_reviewer_1=(reviews.finding("f-1", "It does not say by when."),))
    return made


@pytest.fixture
def app(serve: Callable[..., Any], workspace: Workspace, playwright: object) -> Iterator[str]:
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url


def at(who: str) -> str:
    return f"/decide?id={TASK}&as={who}"


def on_change(page: Page, number: int) -> None:
    expect(page.get_by_text(f"Change {number} of 10", exact=True)).to_be_visible(timeout=30_000)


def press(page: Page, key: str, then: str) -> None:
    """Press a key, and again as a person would where it came before the change's own buttons stood. Such a key is for
    nobody: the buttons carry the change's id, so that it never reaches a change that is not on the screen."""
    told = page.get_by_text(then, exact=True).first
    for _ in range(4):
        page.wait_for_function(IDLE)
        page.keyboard.press(key)
        # Either it was heard, and the script runs; or it was not, and the page stays idle.
        try:
            told.wait_for(timeout=4_000)
        except TimeoutError:
            page.wait_for_function(IDLE)
        if told.is_visible():
            return
    expect(told).to_be_visible()


def test_ten_changes_by_keyboard_alone(
    app: str,
    workspace: Workspace,
    look: Callable[..., Any],
    reviews: ModuleType,
) -> None:
    reviews.proposed(workspace, TASK, ten_edits(reviews, workspace))
    seen = look(app)
    seen.open(at(reviews.ONE))
    page = seen.page
    on_change(page, 1)
    seen.settle()
    # Safety first: the checkpoint that becomes weaker stands before everything else.
    assert "May weaken a safety checkpoint" in page.inner_text("body")
    # The model's reason is folded.
    assert "Less strict." not in page.inner_text("body")
    # The veto, with its reason and its harm, all by keyboard.
    press(page, "Shift+V", "Your veto: it still needs a reason and the harm.")
    page.wait_for_function(IDLE)
    page.get_by_role("textbox", name="Comment").focus()
    page.keyboard.type("A missed recheck axdjkun can kill.", delay=5)
    page.get_by_role("textbox", name="Comment").blur()
    for name, word in (("Kind of harm", "By what is left out"), ("Severity", "Severe"), ("Likelihood", "Likely")):
        radio = page.get_by_role("radiogroup", name=name).get_by_role("radio", name=word, exact=True)
        radio.focus()
        page.keyboard.press("Space")
        expect(radio).to_be_checked(timeout=30_000)
    expect(page.get_by_text("it still needs")).to_have_count(0, timeout=30_000)
    page.get_by_role("heading").first.evaluate("() => document.activeElement.blur()")
    press(page, "j", "Change 2 of 10")
    for number in range(2, 8):
        press(page, "a", f"Change {number + 1} of 10")
    press(page, "u", "Change 7 of 10")
    press(page, "a", "Change 8 of 10")
    press(page, "x", "Rejected: it still needs a reason.")
    page.wait_for_function(IDLE)
    page.get_by_role("textbox", name="Comment").focus()
    page.keyboard.type("Not plausible.", delay=5)
    page.get_by_role("textbox", name="Comment").blur()
    expect(page.get_by_text("Rejected: it still needs a reason.")).to_have_count(0, timeout=30_000)
    press(page, "j", "Change 9 of 10")
    page.wait_for_function(IDLE)
    page.get_by_role("textbox", name="Comment").focus()
    page.keyboard.type("Fine by me", delay=5)
    page.get_by_role("textbox", name="Comment").blur()
    expect(page.get_by_role("button", name="Approve with comment")).to_be_visible(timeout=30_000)
    press(page, "a", "Change 10 of 10")
    press(page, "a", "10 of 10 decided in this sitting")
    # Nothing is submitted yet, and a reload keeps all of it.
    assert not any(one.decisions for one in reviews.desk(workspace, reviews.ONE).state(TASK).changes.values())
    page.reload()
    on_change(page, 1)
    assert "10 decided" in page.inner_text(".st-key-rail")
    page.get_by_role("button", name="Summary").focus()
    page.keyboard.press("Enter")
    submit = page.get_by_role("button", name="Submit 10 decisions")
    expect(submit).to_be_enabled(timeout=30_000)
    box = submit.bounding_box()
    assert box
    for _ in range(2):
        page.mouse.click(box["x"] + 20, box["y"] + 10)
        page.wait_for_timeout(450)
    expect(page.get_by_text("submitted").first).to_be_visible(timeout=30_000)
    state = reviews.desk(workspace, reviews.ONE).state(TASK)
    given = [one.decisions[reviews.ONE] for one in state.changes.values()]
    assert sorted(one.decision for one in given) == [*["approve"] * 8, "reject", "veto"]
    assert len({one.submission for one in given}) == 1
    assert {one.reason for one in given} >= {"A missed recheck axdjkun can kill.", "Not plausible.", "Fine by me"}


def test_a_veto_stands_across_a_round_and_blocks_sign_off_until_its_owner_lifts_it(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    prepared = reviews.proposed(workspace, TASK, ten_edits(reviews, workspace)[:1])
    ref = prepared.changes[0]
    harm = {"kind": "commission", "severity": "severe", "likelihood": "possible"}
    common = {"change": ref.change, "base": ref.base, "result": ref.result}
    reviews.desk(workspace, reviews.ONE).decide(
        TASK, [{**common, "decision": "veto", "reason": "Unsafe as it reads.", "harm": harm}]
    )
    reviews.desk(workspace, reviews.TWO).decide(TASK, [{**common, "decision": "approve"}])
    seen = look(app)
    seen.open(f"/signoff?id={TASK}&as={reviews.TWO}")
    expect(seen.page.get_by_text("1 blocked: the veto's owner lifts it, or an adjudicator does.")).to_be_visible()
    expect(seen.page.get_by_role("button", name="Sign", exact=True)).to_be_disabled()
    owner = look(app)
    owner.open(at(reviews.ONE))
    expect(owner.page.get_by_role("button", name="Approve")).to_be_disabled(timeout=30_000)
    owner.page.get_by_role("button", name="Lift my veto").click()
    owner.page.get_by_role("textbox", name="Why the danger is gone").fill("The wording is right after all.")
    owner.page.get_by_role("button", name="Lift the veto").click(delay=60)
    expect(owner.page.get_by_role("button", name="Approve")).to_be_enabled(timeout=30_000)
    assert reviews.desk(workspace, reviews.ONE).state(TASK).vetoes == ()


def test_a_decision_in_the_drafts_is_outdated_once_other_bytes_are_up(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    prepared = reviews.proposed(workspace, TASK, ten_edits(reviews, workspace)[:2])
    seen = look(app)
    seen.open(at(reviews.ONE))
    expect(seen.page.get_by_text("Change 1 of 2")).to_be_visible(timeout=30_000)
    expect(seen.page.get_by_role("button", name="Approve")).to_be_enabled(timeout=30_000)
    seen.settle()
    seen.page.keyboard.press("a")
    expect(seen.page.get_by_text("Change 2 of 2")).to_be_visible(timeout=30_000)
    # What was drafted names the bytes that were seen; other bytes are another decision.
    drafts = reviews.desk(workspace, reviews.ONE).db
    kept = next(d for name, d in drafts.drafts(reviews.ONE, TASK, 1).items() if name.startswith("decision."))
    drafts.save_draft(reviews.ONE, TASK, 1, kept.item, kept.value.replace(prepared.changes[0].base[:8], "0" * 8))
    seen.open(at(reviews.ONE))
    expect(seen.page.get_by_text("outdated: it was put up again")).to_be_visible(timeout=30_000)
    seen.page.get_by_role("button", name="Summary").click(delay=60)
    expect(seen.page.get_by_role("button", name="Submit 0 decisions")).to_be_disabled(timeout=30_000)


def test_hostile_text_hides_no_button_and_sends_no_request(
    serve: Callable[..., Any], packages: ModuleType, reviews: ModuleType, look: Callable[..., Any], tmp_path: Path,
    playwright: object,
) -> None:  # fmt: skip
    suite = tmp_path / "suite"
    packages.write_hostile(suite)
    workspace = reviews.opened(Workspace(tmp_path / "workspace"), "hostile-task", suite)
    everything = " ".join(packages.CORPUS.values())
    reviews.judged(workspace, "hostile-task", demo_reviewer_1=(reviews.finding("f-1", everything, source=everything),))
    reviews.proposed(
        workspace,
        "hostile-task",
        (
            {
                "edit": {
                    "kind": "text",
                    "path": "instruction.md",
                    "find": "potassium\n",
                    "replace": everything + "\npotassium\n",
                },
                "findings": ("f-1",),
                "rationale": everything,
            },
            {
                "edit": {
                    "kind": "text",
                    "path": "instruction.md",
                    "find": "potassium",
                    "replace": "potassium " + "y" * 200_000,
                },
                "rationale": "one long line",
            },
        ),
        made_by=everything[:90],
    )
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        for path in (
            f"/decide?id=hostile-task&as={reviews.ONE}",
            f"/review?id=hostile-task&as={reviews.ONE}",
            f"/propose?id=hostile-task&as={reviews.TWO}",
            f"/signoff?id=hostile-task&as={reviews.TWO}",
            f"/?as={reviews.TWO}",
        ):
            seen = look(url)
            seen.page.on("dialog", lambda dialog: dialog.dismiss())
            seen.open(path)
            seen.page.wait_for_timeout(1500)
            assert seen.page.evaluate("window.pwned") is None, path
            assert seen.page.locator("img[src*='evil'], a[href*='evil'], a[href*='javascript']").count() == 0, path
            assert seen.page.locator(".stHtml script, .stHtml iframe, .stHtml form").count() == 0, path
            assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 0, 0)", path
            assert "\u202e" not in seen.page.inner_text("body"), path
            assert seen.outside == [], path
            if path.startswith("/decide"):
                veto = seen.page.get_by_role("button", name="Veto, unsafe")
                expect(veto).to_be_visible()
                veto.click(delay=60, timeout=10_000)
                expect(seen.page.get_by_text("A veto names the harm")).to_be_visible(timeout=30_000)
                seen.page.get_by_text("Why this is proposed").click()
                expect(seen.page.get_by_text("<script>window.pwned=1").first).to_be_visible(timeout=30_000)
                assert seen.page.evaluate("window.pwned") is None


def test_an_error_page_shows_an_id_and_no_patient_text(
    serve: Callable[..., Any], packages: ModuleType, reviews: ModuleType, look: Callable[..., Any], tmp_path: Path,
    playwright: object,
) -> None:  # fmt: skip
    suite = tmp_path / "suite"
    packages.write(suite)
    workspace = reviews.opened(Workspace(tmp_path / "workspace"), TASK, suite)
    broken = tmp_path / "broken_app.py"
    broken.write_text(
        "from review_ui import chart_sections, frame\n"
        "def breaks(*_):\n    raise KeyError('Mr. Somebody, born 1964, potassium 5.6')\n"
        "chart_sections.facts_strip = breaks\nframe.serve()\n",
        "utf-8",
    )
    with serve(broken, {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        seen = look(url)
        seen.page.goto(f"{url}/review?id={TASK}&as={reviews.ONE}")
        expect(seen.page.get_by_text("This page stopped. Error")).to_be_visible(timeout=60_000)
        assert "Somebody" not in seen.page.content()
