"""A task at each stage of a review: what Home says of it to whom, and that its pages are drawn and say where it is."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from html import unescape
from pathlib import Path
from types import ModuleType

import pytest
from streamlit.testing.v1 import AppTest

from review_ui.reviewing import worklist
from review_ui.reviewing.sitting import Listed
from tasks.people import person
from tasks.workspace import Workspace
from tests.browser import reviews
from tests.browser.reviews import AUTHOR, JUDGE, LEAD, ONE, TWO

ROOT = Path(__file__).resolve().parents[2]
EDIT = {"kind": "text", "path": "instruction.md", "find": "advise.", "replace": "advise today."}
HARM = {"kind": "commission", "severity": "severe", "likelihood": "possible"}
#: Task -> what the two reviewers decided on its one change.
DECIDED: dict[str, tuple[str, ...]] = {
    "task-undecided": ("", "approve"), "task-vetoed": ("veto", "approve"), "task-split": ("approve", "reject"),
    "task-accepted": ("approve", "approve"),
}  # fmt: skip
Said = Callable[[AppTest], str]


@pytest.fixture(scope="module")
def built(packages: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A task at each stage of a review, each with the title that its id says."""
    root = tmp_path_factory.mktemp("home")
    for id in ("task-new", "task-open", "task-half", "task-found", *DECIDED):
        packages.write(root / "suite", id, title=f"Title of {id}")
    made = Workspace(root / "workspace")
    reviews.desk(made, LEAD, root / "suite")
    for id in ("task-open", "task-half"):
        reviews.opened(made, id)
    one = reviews.desk(made, ONE)
    one.lock_plan("task-half", reviews.PLAN)
    one.submit_review("task-half", reviews.review(("cp1", "cp2")))
    for id in ("task-found", *DECIDED):
        reviews.opened(made, id)
        reviews.judged(made, id, demo_reviewer_1=(reviews.finding("f-1", "It does not say by when."),))
    for id, words in DECIDED.items():
        (ref,) = reviews.proposed(made, id, ({"edit": EDIT, "findings": ("f-1",), "rationale": "Today."},)).changes
        for who, word in zip((ONE, TWO), words, strict=True):
            more = {"reason": "It is not right."} if word in ("veto", "reject") else {}
            more |= {"harm": HARM} if word == "veto" else {}
            said = {"change": ref.change, "base": ref.base, "result": ref.result, "decision": word, **more}
            if word:
                reviews.desk(made, who).decide(id, [said])
    return made


@pytest.fixture
def place(built: Workspace, workspace: Path) -> Workspace:
    """A copy of `built`, as the workspace that the app finds."""
    shutil.copytree(built.path, workspace)
    return Workspace(workspace)


def rows(workspace: Workspace, who: str) -> list[worklist.Work]:
    """Every task, as this person needs it."""
    desk = reviews.desk(workspace, who)
    drafts = {task: at for task, _, at in desk.db.tasks_with_drafts(who)}
    found = []
    with desk.store.at() as view:
        for id in sorted({path.partition("/")[0] for path in view.paths()}):
            snap = desk.snapshot(view, id)
            listed = Listed(id, f"Title of {id}", "Nephrology", "", 0, "open", tuple(snap.events), snap.state)
            found.append(worklist.work(listed, person(workspace.settings.people, who), desk.db, drafts))
    return found


#: Person -> tab -> {task: what the door to it says}.
NEEDED: dict[str, dict[str, str]] = {
    ONE: {"task-open": "Review", "task-undecided": "Decide", "task-vetoed": "Lift veto"},
    TWO: {"task-open": "Review", "task-half": "Review"},
    AUTHOR: {"task-accepted": "Apply", "task-found": "Propose"},
    LEAD: {"task-new": "Assign"},
    JUDGE: {"task-split": "Adjudicate"},
    "demo-researcher": {},
}
WAITING: dict[str, set[str]] = {
    ONE: {"task-half", "task-found", "task-split", "task-accepted"},
    TWO: {"task-found", "task-undecided", "task-vetoed", "task-split", "task-accepted"},
    AUTHOR: set(), LEAD: set(), JUDGE: set(), "demo-researcher": set(),
}  # fmt: skip


@pytest.mark.parametrize("who", list(NEEDED))
def test_each_task_needs_whoever_has_the_turn_and_waits_for_others_where_somebody_else_has(
    place: Workspace, who: str
) -> None:
    here = [one for one in rows(place, who) if one.task_id.startswith("task-")]
    assert {one.task_id: one.verb for one in worklist.tab("Needs me", here)} == NEEDED[who]
    assert {one.task_id for one in worklist.tab("Waiting on others", here)} == WAITING[who]
    assert len(worklist.tab("All", here)) == 8
    assert worklist.tab("Signed", here) == []


def test_a_task_with_a_standing_veto_is_first_and_an_open_round_tells_none(place: Workspace) -> None:
    first = worklist.tab("Needs me", rows(place, ONE))[0]
    assert (first.task_id, first.vetoes) == ("task-vetoed", 1)
    blind = {one.task_id: (one.vetoes, one.findings) for one in rows(place, ONE) if one.blind}
    assert blind == {"task-open": (0, 0), "task-half": (0, 0)}
    assert {one.task_id for one in rows(place, ONE) if one.findings} == {"task-found", *DECIDED}


def home(who: str, tab: str = "") -> AppTest:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    test.query_params["as"] = who
    test.run()
    if tab:
        (tabs,) = [one for one in test.button_group if one.key == "tab"]
        tabs.set_value(tab).run()
    assert not test.exception
    return test


def listed(text: str) -> set[str]:
    """The tasks that have a row."""
    return set(re.findall(r"<div class=\"h3\">Title of (task-[a-z]+)</div>", text))


def news(text: str) -> list[tuple[str, str]]:
    """("Decided", task) of each line of what others did."""
    found = re.findall(r'class="since-row">.*?<span class="b">(.*?)</span>.*?Title of (task-[a-z]+)<', text)
    return [(what, task) for what, task in found]


def test_each_tab_of_home_has_its_rows_and_says_how_many(place: Workspace, said: Said) -> None:
    reviews.desk(place, ONE).db.save_draft(ONE, "task-open", 1, "plan.do_now", "Order a potassium.")
    expected = {
        "Needs me": set(NEEDED[ONE]), "Drafts": {"task-open"}, "Waiting on others": WAITING[ONE], "Signed": set(),
        "All": {"task-new", "task-open", "task-half", "task-found", *DECIDED},
    }  # fmt: skip
    assert tuple(expected) == worklist.TABS
    for tab, tasks in expected.items():
        test = home(ONE, tab)
        assert listed(said(test)) == tasks, tab
        (tabs,) = [one for one in test.button_group if one.key == "tab"]
        assert tabs.options == [f"{name} · {len(rows)}" for name, rows in expected.items()]
        doors = {(one.proto.label, one.proto.page) for one in test.get("page_link")}
        assert ("Resume", "review") in doors
        assert ("Lift veto", "decide") in doors or tab not in ("Needs me", "All")
    text = said(home(ONE))
    assert "3 tasks need you." in text
    assert "1 held by a veto" in text
    assert "You were at “Do now”" in text


def test_home_says_what_others_did_since_one_last_looked(place: Workspace, said: Said) -> None:
    desk = reviews.desk(place, TWO)
    text = said(home(TWO))
    proposed = {("Changes proposed", task) for task in DECIDED}
    decided = {("Decided", "task-accepted"), ("Decided", "task-split"), ("Veto placed", "task-vetoed")}
    opened = {("Round opened", task) for task in ("task-found", *DECIDED)}
    # The newest eight are told; of the two rounds that are open and blind nothing is.
    assert set(news(text)) <= proposed | decided | opened
    assert set(news(text)) >= proposed | decided
    assert f"{len(proposed | decided | opened)} by others" in text
    for task in ("task-found", *DECIDED):
        desk.db.mark_seen(TWO, task, "")
    assert news(said(home(TWO))) == []
    assert "Nothing new on your tasks." in said(home(TWO))
    # What happens then is new: to those whom the task is assigned to, and not to whoever did it.
    reviews.desk(place, JUDGE).adjudicate(*_split(place), "approve", "Today is right.")
    assert news(said(home(TWO))) == [("Adjudicated", "task-split")]
    assert ("Adjudicated", "task-split") in news(said(home(ONE)))
    assert news(said(home(JUDGE))) == []


def _split(place: Workspace) -> tuple[str, str]:
    (change,) = reviews.desk(place, LEAD).state("task-split").changes
    return "task-split", change


#: (page, task, who) -> words of the page as it then is.
PAGES = {
    ("guide", "", ONE): "A worked example",
    ("review", "task-new", ONE): "The lead assigns reviewers and opens a round",
    ("review", "task-open", ONE): "To lock, still needed",
    ("review", "task-half", ONE): "Waiting for Demo reviewer 2",
    ("review", "task-half", TWO): "To lock, still needed",
    ("review", "task-found", TWO): "all open now",
    ("propose", "task-open", ONE): "Reviews are still coming in.",
    ("propose", "task-found", AUTHOR): "Your proposal",
    ("propose", "task-undecided", LEAD): "1 change in 1 proposal",
    ("proposals", "task-found", AUTHOR): "Let a model draft",
    ("proposals", "task-half", TWO): "Reviews are still coming in.",
    ("decide", "task-half", TWO): "Reviews are still coming in.",
    ("decide", "task-undecided", ONE): "Change 1 of 1",
    ("decide", "task-vetoed", ONE): "Your veto",
    ("decide", "task-split", JUDGE): "Split: Instruction",
    ("decide", "task-accepted", TWO): "Approved, submitted",
    ("signoff", "task-new", LEAD): "Not under review yet",
    ("signoff", "task-open", ONE): "Shown when your own plan is locked.",
    ("signoff", "task-vetoed", TWO): "1 blocked: the veto's owner lifts it",
    ("signoff", "task-split", TWO): "1 for the adjudicator.",
    ("signoff", "task-accepted", AUTHOR): "1 accepted: apply them.",
}  # fmt: skip


@pytest.mark.parametrize(("page", "task", "who"), list(PAGES))
def test_a_page_says_where_the_task_stands(place: Workspace, said: Said, page: str, task: str, who: str) -> None:
    test = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60).run()
    test.switch_page(f"review_ui/pages/{page}.py")
    test.query_params.update({"as": who, **({"id": task} if task else {})})
    test.run()
    assert not test.exception
    text = said(test)
    assert "This page stopped" not in text
    plain = unescape(re.sub("<[^>]+>", "", re.sub("(?s)<style.*?</style>", "", text)))
    assert PAGES[page, task, who] in plain
