"""The untrusted-text corpus on every page: it is text and nothing else, and no button is hidden, covered or fooled.

Scripts, styles, a fixed banner, remote images, bidirectional and zero-width characters and a line of a megabyte stand
in titles, charts, notes, findings, plans, proposals, reasons, verdicts and people's names; the parrot copies the chart
into its note, so that they stand in trials too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from playwright.sync_api import expect

from runtime.batch import Item
from tasks.package import FolderSource
from tasks.people import person
from tasks.workspace import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

ROOT = Path(__file__).resolve().parents[2]
#: Person -> the text of the corpus that is their name.
NAMED = {
    "demo-reviewer-1": "script", "demo-reviewer-2": "bidi", "demo-lead": "zero width", "demo-author": "image",
    "demo-adjudicator": "style", "demo-pharmacist": "markdown image", "demo-researcher": "banner",
    "demo-steward": "entity",
}  # fmt: skip
SOLVE, CHECK, DECIDE = "hostile-solve", "hostile-check", "hostile-decide"
R1, LEAD = "as=demo-reviewer-1", "as=demo-lead"
TRIAL = f"/trial?batch=b-1&task={DECIDE}&agent=parrot&run=1"
ADJUDICATOR = "as=demo-adjudicator"
JUDGED = """
[[checkpoint]]
id = "cp3"
title = "The note says what to do"
capability = "documentation"
criticality = "required"
reachable = ["paper"]
rests_on = ['instruction#"potassium"']
grader = "judge"
file = "/workspace/output/note.md"
rubric = {{pass = {words}, fail = "Says neither."}}
"""
#: Address, words that the drawn page shows, and a button or link that has to be there and not covered.
PAGES = {
    "who": ("/", "Who are you?", ("button", "This is me")),
    "home": (f"/?{R1}", "Assigned to me", ("link", "Review")),
    "home-all": (f"/?tab=All&{LEAD}", "All tasks", ("link", "Open")),
    "tasks": (f"/tasks?{LEAD}", "3 tasks", ("link", "Open")),
    "task": (f"/task?id={DECIDE}&{LEAD}", "What the agent is asked", ("link", "All tasks")),
    "task-note": (f"/task?id={DECIDE}&note=DocumentReference/hn-long&{LEAD}", "Notes", ("link", "All tasks")),
    "task-checkpoints": (f"/task?id={DECIDE}&view=Checkpoints&{LEAD}", "Passes with", ("link", "All tasks")),
    "task-resources": (
        f"/task?id={DECIDE}&view=Every+resource&at=DocumentReference/hn-2&{LEAD}", "in the chart", ("button", "Close")
    ),
    "task-plans": (f"/task?id={DECIDE}&view=Reference+plans&{LEAD}", "Plan: repeat", ("link", "All tasks")),
    "solve": (f"/review?id={SOLVE}&{R1}", "Your plan", ("link", "Sign-off")),
    "checklist": (f"/review?id={CHECK}&{R1}", "New finding", ("button", "Next open item")),
    "submitted": (f"/review?id={DECIDE}&{R1}", "Your review", ("link", "Decide")),
    "propose": (f"/propose?id={DECIDE}&{LEAD}", "Your proposal", ("button", "Add to the proposal")),
    "model-draft": (f"/proposals?id={DECIDE}&{LEAD}", "Let a model draft", ("link", "By hand")),
    "decide": (f"/decide?id={DECIDE}&{R1}", "Change 1 of", ("button", "Veto, unsafe")),
    "adjudicate": (f"/decide?id={DECIDE}&{ADJUDICATOR}", "Split: ", ("button", "Reject the change")),
    "signoff": (f"/signoff?id={DECIDE}&{LEAD}", "Audit trail", ("button", "Verify against the repository")),
    "run": (f"/run?{LEAD}", "What this will do", ("button", "Start")),
    "models": (f"/models?{LEAD}", "Models", ("link", "Home")),
    "trials": (f"/trials?{LEAD}", "found", ("link", "Open")),
    "trial": (f"{TRIAL}&{LEAD}", "Orders it wrote", ("button", "Open")),
    "trial-step": (f"{TRIAL}&step=2&{LEAD}", "What the agent saw", ("button", "Close")),
    "trial-chart": (f"{TRIAL}&chart=1&step=2&{LEAD}", "Chart after step 2", ("link", "Back to the trial")),
    "results": (f"/results?batch=b-1&{LEAD}", "Leaderboard", ("link", "Calibrate the judge")),
    "results-rows": (f"/results?batch=b-1&view=Every+task+and+agent&{LEAD}", "A row a task", ("button", "Export")),
    "calibrate": (f"/calibrate?batch=b-1&{R1}", "Calibrate the judge", ("radio", "Fail")),
    "guide": (f"/guide?{R1}", "A worked example", ("link", "Home")),
}  # fmt: skip


#: Pages on which nothing of it stands as text: they name tasks by id, or draw a table on a canvas.
BARE = ("run", "models", "trials", "results-rows", "guide")
#: Pages with all of a text, a plan or a trial; the others show titles and names.
WHOLE = (
    "task", "task-note", "task-checkpoints", "task-resources", "task-plans", "solve", "submitted", "propose",
    "adjudicate", "signoff",
)  # fmt: skip


def planted(name: str) -> tuple[str, ...]:
    """The texts of the corpus that have to stand on a page, for it to be tried at all."""
    if name in BARE:
        return ()
    whole = ("style", "banner", "entity", "directive", "template", "markdown image")
    return ("script", "image", "U+202E", *(whole if name in WHOLE else ()))


@pytest.fixture(scope="module")
def workspace(packages: ModuleType, reviews: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Three tasks full of the corpus, at three stages, judged by people whose names are of it as well."""
    root = tmp_path_factory.mktemp("untrusted")
    corpus = list(packages.CORPUS.values())
    names = {who: packages.CORPUS[text][:99] for who, text in NAMED.items()}
    everything = "\n\n".join(corpus)
    for id in (SOLVE, CHECK, DECIDE):
        folder = packages.write_hostile(root / "suite", id)
        with (folder / "checkpoints.toml").open("a", encoding="utf-8") as file:
            file.write(JUDGED.format(words=json.dumps(everything)))
        plan = folder / "solution" / "repeat"
        plan.mkdir(parents=True)
        written = {
            "tool": "write_file",
            "arguments": {"file_path": "/workspace/output/note.md", "content_file": "note.md"},
        }
        order = {
            "tool": "fhir_medication_request_create",
            "arguments": {
                "patient_reference": "Patient/p-1", "requester_reference": "Practitioner/dr-1",
                "medication_display": corpus[0], "dose_value": 1, "dose_unit": "mg", "frequency_text": corpus[1],
                "route_display": "oral", "reason_display": corpus[2], "note_text": "\n\n".join(corpus[:-1]),
            },
        }  # fmt: skip
        (plan / "actions.jsonl").write_text(f"{json.dumps(order)}\n{json.dumps(written)}\n", "utf-8")
        (plan / "note.md").write_text(everything, "utf-8")
    made = Workspace(root / "workspace")
    assert made.settings.people
    settings = made.settings_file.read_text("utf-8")
    for who, name in names.items():
        was = person(made.settings.people, who).name
        settings = settings.replace(f'name = "{was}"', f"name = {json.dumps(name)}")
    made.settings_file.write_text(settings, "utf-8")
    made = Workspace(root / "workspace")
    assert {who: person(made.settings.people, who).name for who in names} == names
    for id in (SOLVE, CHECK, DECIDE):
        reviews.opened(made, id, root / "suite")
    plan_words = {**dict.fromkeys(reviews.LABELS, everything), "confidence": "sure"}
    reviews.desk(made, reviews.ONE).lock_plan(CHECK, plan_words)
    on_checkpoint = {"kind": "checkpoint", "checkpoint": "cp1"}
    findings = tuple(
        reviews.finding(
            f"f-{n}",
            text,
            source=text,
            alternative_plan=text,
            anchor={"kind": "resource", "ref": f"Condition/hc-{n}"} if n % 2 else on_checkpoint,
        )
        for n, text in enumerate([*corpus, "y" * 900_000])
    )
    for who in (reviews.ONE, reviews.TWO):
        at = reviews.desk(made, who)
        at.lock_plan(DECIDE, plan_words)
        at.amend_plan(DECIDE, everything)
        given = reviews.review(("cp1", "cp2", "cp3"), findings=findings if who == reviews.ONE else ())
        verdicts = tuple({**one, "comment": everything} for one in given["verdicts"])
        ratings = tuple({**one, "rating": "wrong", "comment": everything} for one in given["ratings"])
        at.submit_review(DECIDE, {**given, "verdicts": verdicts, "ratings": ratings})
    edits = [
        {
            "edit": {"kind": "text", "path": "instruction.md", "find": text, "replace": f"{text} now"},
            "findings": (f"f-{n}",),
            "rationale": everything,
        }
        for n, text in enumerate(corpus[:3])
    ]
    prepared = reviews.proposed(made, DECIDE, tuple(edits), made_by=f"model/{corpus[0][:40]}")
    other = reviews.desk(made, reviews.TWO)
    harm = {"kind": "commission", "severity": "severe", "likelihood": "likely"}
    first = prepared.changes[0]
    veto = {"change": first.change, "base": first.base, "result": first.result, "decision": "veto", "harm": harm}
    other.decide(DECIDE, [{**veto, "reason": everything}])
    third = prepared.changes[2]
    same = {"change": third.change, "base": third.base, "result": third.result}
    reviews.desk(made, reviews.ONE).decide(DECIDE, [{**same, "decision": "approve", "reason": everything}])
    other.decide(DECIDE, [{**same, "decision": "reject", "reason": everything}])
    source = FolderSource(root / "suite")
    items = [
        Item(source.load(id), agent, 1, source.root / id)
        for id in (SOLVE, DECIDE)
        for agent in ("parrot", "oracle:repeat")
    ]
    reviews.run(made, items)
    return made


@pytest.fixture(scope="module")
def app(serve: Callable[..., Any], workspace: Workspace, playwright: object) -> Iterator[str]:
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url


def is_only_text(page: Any) -> None:
    """What was planted has become nothing but text."""
    assert page.evaluate("window.pwned") is None
    assert "pwned" not in page.title()
    assert page.locator("img[src*='evil']").count() == 0
    assert page.locator("a[href*='evil'], a[href*='javascript']").count() == 0
    assert page.locator(".stHtml script, .stHtml iframe, .stHtml form").count() == 0
    assert page.locator(".stHtml style").count() == 1  # ours
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 0, 0)"
    fixed = "e => getComputedStyle(e).position === 'fixed'"
    assert page.evaluate(f"() => [...document.querySelectorAll('.stHtml *')].filter({fixed}).length") == 0
    body = page.inner_text("body")
    assert not any(unseen in body for unseen in "\u202e\u202c\u200b\u2060\ufeff")
    assert not re.search(r"49 \$\{7\*7\}|\{\{7\*7\}\} \$?49|49 \$?49", body)


@pytest.mark.parametrize("name", list(PAGES))
def test_what_people_and_charts_say_is_text_and_the_pages_buttons_work(
    app: str, one_by_one: Callable[[str, str], Any], packages: ModuleType, name: str
) -> None:
    path, words, (role, label) = PAGES[name]
    seen = one_by_one(app, path)
    page = seen.page
    expect(page.get_by_text(words).first).to_be_visible()
    seen.settle()
    is_only_text(page)
    shown = page.inner_text("body")
    assert [text for text in planted(name) if packages.CORPUS.get(text, text) not in shown] == []
    assert seen.faults() == []
    for width in (1280, 640):
        seen.fits(width)
        # A trial click: scrolled to, at rest, and hit at its middle, so that nothing covers it. The bar's own links are
        # in a menu where it is narrow.
        if width == 1280 or label != "Home":
            page.get_by_role(role, name=label).first.click(trial=True)
    assert seen.outside == []


def test_a_veto_is_placed_over_any_text(
    app: str, look: Callable[..., Any], reviews: ModuleType, workspace: Workspace
) -> None:
    seen = look(app)
    seen.open(f"/decide?id={DECIDE}&{R1}")
    page = seen.page
    for button in ("Approve", "Reject", "Discuss", "Veto, unsafe"):
        expect(page.get_by_role("button", name=button)).to_be_in_viewport()
    page.keyboard.press("j")
    expect(page.get_by_text("Change 2 of 3")).to_be_visible()
    seen.settle()
    page.get_by_role("button", name="Veto, unsafe").click(delay=60)
    expect(page.get_by_text("A veto names the harm")).to_be_visible()
    seen.settle()
    assert seen.faults() == []
    for group, word in (("Kind of harm", "By what is left out"), ("Severity", "Severe"), ("Likelihood", "Possible")):
        page.get_by_role("radiogroup", name=group).get_by_role("radio", name=word, exact=True).click()
    comment = page.get_by_role("textbox", name="Comment")
    comment.fill("It reads as an order.")
    comment.blur()
    expect(page.get_by_text("it still needs")).to_have_count(0)
    page.get_by_role("button", name="Summary").click(delay=60)
    page.get_by_role("button", name="Submit 1 decision").click(delay=60)
    expect(page.get_by_text("Your veto, submitted").first).to_be_visible()
    vetoes = reviews.desk(workspace, reviews.ONE).state(DECIDE).vetoes
    assert [one.reason for one in vetoes if one.owner == reviews.ONE] == ["It reads as an order."]
    assert seen.outside == []


def test_a_task_that_cannot_be_read_shows_an_id_and_sends_no_patient_text(
    serve: Callable[..., Any], packages: ModuleType, look: Callable[..., Any], load: Callable[[str], ModuleType],
    tmp_path: Path,
) -> None:  # fmt: skip
    folder = packages.write(tmp_path / "tasks")
    chart = folder / "chart" / "Condition.ndjson"
    chart.write_text(
        chart.read_text("utf-8") + '{"resourceType": "Condition", "id": "Mr. Somebody, born 1964"\n', "utf-8"
    )
    environment = {"TASKS": str(tmp_path / "tasks"), "WORKBENCH_WORKSPACE": str(tmp_path / "workspace")}
    with serve(Path(__file__).with_name("hostile_app.py"), environment) as url:
        seen = look(url)
        wire = load("wire").Wire(seen.page)
        seen.open("/task?id=nephrology-small")
        expect(seen.page.get_by_text(re.compile("This page stopped. Error [0-9a-f]{8}"))).to_be_visible()
        assert wire.found("Somebody", "Condition.ndjson") == ["Condition.ndjson"]
        assert seen.faults() == []
