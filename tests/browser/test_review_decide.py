"""Stage 3 in a real Chromium: a veto that stands, decisions that become outdated, hostile text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import expect

from authoring.gate import Check, GateResult
from tasks.errors import UsageError
from tasks.package import SUITE
from tasks.review.events import package_hash
from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
TASK = "nephrology-small"


@pytest.fixture(scope="module")
def suite(packages: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite")
    packages.write(folder)
    return folder


def text(find: str, replace: str) -> dict[str, Any]:
    return {"kind": "text", "path": "instruction.md", "find": find, "replace": replace}


@pytest.fixture
def workspace(reviews: ModuleType, suite: Path, tmp_path: Path) -> Workspace:
    made: Workspace = reviews.opened(Workspace(tmp_path / "workspace"), TASK, suite)
    reviews.judged(made, TASK, demo_reviewer_1=(reviews.finding("f-1", "It does not say by when."),))
    return made


@pytest.fixture
def app(serve: Callable[..., Any], workspace: Workspace, playwright: object) -> Iterator[str]:
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url


def at(who: str) -> str:
    return f"/decide?id={TASK}&as={who}"


def test_a_veto_on_a_change_blocks_sign_off_until_its_owner_lifts_it(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    change = {
        "edit": text("Please advise.", "Please advise today."),
        "findings": ("f-1",),
        "rationale": "The asker needs an answer today.",
    }
    (ref,) = reviews.proposed(workspace, TASK, (change,)).changes
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
    expect(owner.page.get_by_role("button", name="Approve")).to_be_disabled()
    owner.page.get_by_role("button", name="Lift my veto").click()
    expect(owner.page.get_by_role("textbox", name="Why the danger is gone")).to_be_visible()
    assert owner.faults() == []
    owner.page.get_by_role("textbox", name="Why the danger is gone").fill("The wording is right after all.")
    owner.page.get_by_role("button", name="Lift the veto").click(delay=60)
    expect(owner.page.get_by_role("button", name="Approve")).to_be_enabled()
    assert reviews.desk(workspace, reviews.ONE).state(TASK).vetoes == ()


def test_an_approval_is_outdated_after_a_new_proposal_of_the_same_place_is_applied(
    app: str, workspace: Workspace, look: Callable[..., Any], reviews: ModuleType
) -> None:
    (first,) = reviews.proposed(
        workspace, TASK, ({"edit": text("advise.", "advise today."), "rationale": "A."},)
    ).changes
    one, two = (reviews.desk(workspace, who) for who in (reviews.ONE, reviews.TWO))
    two.decide(TASK, [approval(first)])
    # The first reviewer approves and is about to submit.
    seen = look(app)
    seen.open(at(reviews.ONE))
    page = seen.page
    expect(page.get_by_role("button", name="Approve")).to_be_enabled()
    box = page.get_by_role("textbox", name="Comment")
    box.fill("Today is right.")
    box.blur()
    page.get_by_role("button", name="Approve with comment").click(delay=60)
    submit = page.get_by_role("button", name="Submit 1 decision")
    expect(submit).to_be_enabled()
    # Meanwhile another proposal of the same words is put up, approved by both, and applied.
    (second,) = reviews.proposed(
        workspace, TASK, ({"edit": text("advise.", "advise by noon."), "rationale": "B."},)
    ).changes
    for desk in (one, two):
        desk.decide(TASK, [approval(second)])
    reviews.desk(workspace, reviews.LEAD).apply(TASK, [second.change], gate=passing)
    state = one.state(TASK)
    assert (state.changes[first.change].status, state.changes[second.change].status) == ("outdated", "applied")
    # What was seen is not what would be changed: the click is refused, and says what came between.
    submit.click(delay=60)
    expect(page.get_by_text("what you saw is no longer what would be changed")).to_be_visible()
    expect(page.get_by_text("changed instruction.md")).to_be_visible()
    expect(page.get_by_text("Outdated: approved, not submitted")).to_be_visible()
    expect(page.get_by_text("Your comment was: “Today is right.”")).to_be_visible()
    assert reviews.ONE not in one.state(TASK).changes[first.change].decisions
    # What the second reviewer had submitted counts for nothing either, and the table of proposals says so.
    seen.open(f"/propose?id={TASK}&as={reviews.TWO}")
    expect(page.get_by_role("cell", name="Outdated")).to_be_visible()
    seen.open(at(reviews.ONE))
    page.get_by_role("button", name="Take note").click(delay=60)
    expect(page.get_by_text("Outdated: approved, not submitted")).to_have_count(0)


def approval(ref: Any) -> dict[str, Any]:
    return {"change": ref.change, "base": ref.base, "result": ref.result, "decision": "approve"}


def passing(files: Mapping[str, bytes], task: str) -> GateResult:
    """The gate's answer where it is not what is tried; the real one asks more of a task than this small one has."""
    return GateResult(task, package_hash(files), (Check("all", "passed"),))


def test_a_veto_on_the_task_stands_across_a_round_until_its_owner_lifts_it(
    serve: Callable[..., Any], tmp_path: Path, look: Callable[..., Any], reviews: ModuleType, playwright: object
) -> None:
    task = "nephrology-finerenone-011"
    workspace = reviews.opened(Workspace(tmp_path / "workspace"), task)
    ids = tuple(one.id for one in SUITE.load(task).checkpoints)
    one, two, lead = (reviews.desk(workspace, who) for who in (reviews.ONE, reviews.TWO, reviews.LEAD))
    # Round 1: one holds it unsafe; a change answers the finding, is approved by both and applied.
    unsafe = reviews.review(ids)
    unsafe["verdicts"] = tuple(
        {**verdict, "verdict": "unsafe"} if verdict["dimension"] == "patient_safety" else verdict
        for verdict in unsafe["verdicts"]
    )
    found = reviews.finding("f-1", "Nothing says when to stop.", "patient_safety", weight="blocking")
    for desk, review in ((one, {**unsafe, "findings": (found,)}), (two, reviews.review(ids))):
        desk.lock_plan(task, reviews.PLAN)
        desk.submit_review(task, review)
    edit = text("with the date on which it is due.", "with the date on which it is due, and when to stop.")
    proposal = ({"edit": edit, "findings": ("f-1",), "rationale": "It says so now."},)
    (ref,) = reviews.proposed(workspace, task, proposal).changes
    for desk in (one, two):
        desk.decide(task, [approval(ref)])
    lead.apply(task)
    # Round 2: both hold it acceptable. The veto is still there.
    lead.open_round(task)
    for desk in (one, two):
        desk.lock_plan(task, reviews.PLAN)
        desk.submit_review(task, reviews.review(ids))
    (veto,) = one.state(task).vetoes
    assert (veto.owner, veto.change, one.state(task).round) == (reviews.ONE, "", 2)
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        owner, other = look(url), look(url)
        other.open(f"/signoff?id={task}&as={reviews.TWO}")
        expect(other.page.get_by_text("Veto by Demo reviewer 1: they lift it once the danger is gone.")).to_be_visible()
        expect(other.page.get_by_role("button", name="Sign", exact=True)).to_be_disabled()
        with pytest.raises(UsageError, match="Nobody holds the task unsafe"):
            two.sign(task, "I sign all the same.")
        owner.open(f"/signoff?id={task}&as={reviews.ONE}")
        lift = owner.page.get_by_role("button", name="Lift my veto")
        lift.click(delay=60)
        expect(owner.page.get_by_text("It needs a reason.")).to_be_visible()
        box = owner.page.get_by_role("textbox", name="Why the danger is gone")
        box.fill("It says when to stop.")
        box.blur()
        lift.click(delay=60)
        expect(lift).to_have_count(0)
        other.open(f"/signoff?id={task}&as={reviews.TWO}")
        for seen in (owner, other):
            seen.page.get_by_role("button", name="Sign", exact=True).click(delay=60)
            expect(seen.page.get_by_text("You have signed")).to_be_visible()
    state = one.state(task)
    assert state.stage == "release"
    assert set(state.signatures) == {reviews.ONE, reviews.TWO}


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
            dialogs: list[str] = []
            seen.page.on("dialog", lambda dialog, said=dialogs: (said.append(dialog.message), dialog.dismiss()))
            seen.open(path)
            assert dialogs == [], path
            assert seen.page.evaluate("window.pwned") is None, path
            assert seen.page.locator("img[src*='evil'], a[href*='evil'], a[href*='javascript']").count() == 0, path
            assert seen.page.locator(".stHtml script, .stHtml iframe, .stHtml form").count() == 0, path
            assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 0, 0)", path
            assert "\u202e" not in seen.page.inner_text("body"), path
            assert seen.outside == [], path
            if path.startswith("/decide"):
                veto = seen.page.get_by_role("button", name="Veto, unsafe")
                expect(veto).to_be_visible()
                veto.click(delay=60)
                expect(seen.page.get_by_text("A veto names the harm")).to_be_visible()
                seen.page.get_by_text("Why this is proposed").click()
                expect(seen.page.get_by_text("<script>window.pwned=1").first).to_be_visible()
                assert seen.page.evaluate("window.pwned") is None


def test_a_review_page_that_breaks_shows_an_id_and_sends_no_patient_text(
    serve: Callable[..., Any], packages: ModuleType, reviews: ModuleType, look: Callable[..., Any], tmp_path: Path,
    load: Callable[[str], ModuleType], playwright: object,
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
        wire = load("wire").Wire(seen.page)
        seen.page.goto(f"{url}/review?id={TASK}&as={reviews.ONE}")
        expect(seen.page.get_by_text(re.compile("This page stopped. Error [0-9a-f]{8}"))).to_be_visible()
        seen.settle()
        assert wire.found("Somebody", "This page stopped") == ["This page stopped"]
