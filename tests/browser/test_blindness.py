"""Blindness across all pages: while a round is open, nothing of what must be hidden reaches the browser at all.

Marker words are planted where they must not come from, every page and address is opened as every person, and both the
page's source and every websocket frame are searched.
"""

from __future__ import annotations

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
SOLVE, CHECK, FREE = "nephrology-solve", "nephrology-check", "nephrology-free"
#: As CHECK, for the one test that submits a review.
AFTER = "nephrology-after"
PHARMACIST = "demo-pharmacist"
#: What the co-reviewer wrote: plan, correction, why a rating, verdict's comment, finding, its source, its other plan.
WORDS = ("Osmiumplan", "Osmiumamended", "Osmiumrating", "Osmiumverdict", "Osmiumfinding", "Osmiumsource", "Osmiumother")
#: How each task is graded: a checkpoint's title, what its reference plan writes, and its name, which the gate says.
GRADED = {
    SOLVE: ("Iridiumsolve", "Rheniumsolve", "tantalum-solve"),
    CHECK: ("Iridiumcheck", "Rheniumcheck", "tantalum-check"),
    AFTER: ("Iridiumafter", "Rheniumafter", "tantalum-after"),
}
#: How agents did on it: an agent that only this task was run with.
RESULTS = {
    SOLVE: ("oracle:tantalum-solve",), CHECK: ("oracle:tantalum-check",), AFTER: ("oracle:tantalum-after",)
}  # fmt: skip


def review_addresses(task: str) -> list[str]:
    """The pages on which the review of a task goes on, and two that show what is not hidden from everybody."""
    task_pages = [f"/{page}?id={task}" for page in ("review", "propose", "proposals", "decide", "signoff")]
    shown = [f"/task?id={task}&view={view}" for view in ("Checkpoints", "Reference+plans")]
    return ["/", "/?tab=All", *task_pages, *shown, "/trials"]


def addresses(task: str, agent: str) -> list[str]:
    """Every page of one task, and the pages about all."""
    trial = f"/trial?batch=b-1&task={task}&agent={agent}&run=1"
    return [
        "/",
        "/?tab=All",
        "/tasks",
        f"/task?id={task}",
        f"/task?id={task}&view=Checkpoints",
        f"/task?id={task}&view=Reference+plans",
        f"/review?id={task}",
        f"/propose?id={task}",
        f"/proposals?id={task}",
        f"/decide?id={task}",
        f"/signoff?id={task}",
        "/run?batch=b-1",
        "/trials",
        f"/trials?q={task}&by={agent}",
        "/trials?result=Pass",
        trial,
        f"{trial}&step=1",
        f"{trial}&chart=1&step=1",
        f"/trial?batch=b-1&task={task}&agent=noop&run=1",
        "/results?batch=b-1",
        "/results?batch=b-1&view=By+group+and+workflow",
        "/results?batch=b-1&view=Compare+two",
        "/results?batch=b-1&view=Every+task+and+agent",
        "/calibrate?batch=b-1",
        "/calibrate?batch=b-1&view=Agreement",
        "/models",
        "/guide",
    ]


def package(packages: ModuleType, root: Path, id: str) -> None:
    """A task whose checkpoint and reference plan carry their markers."""
    checkpoint, written, _ = GRADED.get(id, ("Plain", "Plain", ""))
    folder = packages.write(
        root, id, checkpoints=packages.CHECKPOINTS.replace("Potassium found", f"{checkpoint} found")
    )
    plan = folder / "solution" / f"tantalum-{id.split('-')[1]}"
    plan.mkdir(parents=True)
    (plan / "actions.jsonl").write_text(
        '{"tool":"write_file","arguments":{"file_path":"/workspace/output/note.md","content_file":"note.md"}}\n',
        "utf-8",
    )
    (plan / "note.md").write_text(f"{written} note of the agent.\n", "utf-8")


@pytest.fixture(scope="module")
def workspace(packages: ModuleType, reviews: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Three rounds open for three; the second reviewer has submitted all, the first has locked the plan of two."""
    root = tmp_path_factory.mktemp("blind")
    for id in (SOLVE, CHECK, AFTER, FREE):
        package(packages, root / "suite", id)
    made = Workspace(root / "workspace")
    lead = reviews.desk(made, reviews.LEAD, root / "suite")
    for id in (SOLVE, CHECK, AFTER):
        lead.assign(id, PHARMACIST, "pharmacist")
        reviews.opened(made, id)
        other = reviews.desk(made, reviews.TWO)
        other.lock_plan(id, {**reviews.PLAN, "answer": WORDS[0]})
        other.amend_plan(id, WORDS[1])
        given = reviews.review(("cp1", "cp2"))
        finding = reviews.finding("f-osmium", WORDS[4], source=WORDS[5], alternative_plan=WORDS[6])
        ratings = ({"checkpoint": "cp1", "rating": "wrong", "comment": WORDS[2]}, given["ratings"][1])
        verdicts = ({**given["verdicts"][0], "verdict": "unsafe", "comment": WORDS[3]}, *given["verdicts"][1:])
        finding["dimension"] = verdicts[0]["dimension"]
        other.submit_review(id, {**given, "ratings": ratings, "verdicts": verdicts, "findings": (finding,)})
    for id in (CHECK, AFTER):
        reviews.desk(made, reviews.ONE).lock_plan(id, reviews.PLAN)
    assert not lead.gate(SOLVE)[1].passed
    source = FolderSource(root / "suite")
    items = [
        Item(source.load(id), agent, 1, source.root / id)
        for id in (SOLVE, CHECK, AFTER, FREE)
        for agent in ("noop", f"oracle:tantalum-{id.split('-')[1]}")
    ]
    reviews.run(made, items)
    return made


@pytest.fixture(scope="module")
def app(serve: Callable[..., Any], workspace: Workspace, playwright: object) -> Iterator[str]:
    with serve(ROOT / "app.py", {"WORKBENCH_WORKSPACE": str(workspace.path)}) as url:
        yield url


def crawl(app: str, look: Callable[..., Any], load: Callable[[str], ModuleType], who: str, paths: list[str]) -> Any:
    """These addresses as one person; what reached the browser."""
    seen = look(app)
    wire = load("wire").Wire(seen.page)
    for path in paths:
        seen.open(f"{path}{'&' if '?' in path else '?'}as={who}")
        # The source is searched page by page, so that a finding tells where.
        wire.pages[path] = seen.page.content()
    return wire


ASKED = pytest.mark.parametrize(
    ("who", "task", "hidden"),
    [
        ("demo-reviewer-1", SOLVE, (*RESULTS[SOLVE], *GRADED[SOLVE])),
        ("demo-reviewer-1", CHECK, RESULTS[CHECK]),
        (PHARMACIST, CHECK, (*RESULTS[CHECK], *GRADED[CHECK])),
    ],
)


@ASKED
def test_nothing_hidden_reaches_a_reviewer_of_an_open_round_on_any_page(
    app: str, look: Callable[..., Any], load: Callable[[str], ModuleType], who: str, task: str, hidden: tuple[str, ...]
) -> None:
    wire = crawl(app, look, load, who, addresses(task, RESULTS[task][0]))
    assert wire.where(*WORDS, *hidden) == {}
    assert wire.found(*WORDS, *hidden) == []
    # The search does find what is not hidden from them.
    shown = ("oracle:tantalum-free", *(GRADED[CHECK] if hidden == RESULTS[CHECK] else ()))
    assert wire.found(*shown) == list(shown)


def exported(seen: Any, path: str, who: str) -> dict[str, bytes]:
    """{file: bytes} of every export that this page offers to this person."""
    seen.open(f"{path}&as={who}")
    page = seen.page
    if path.startswith("/results"):
        page.get_by_role("button", name="Export", exact=True).click(delay=60)
    expect(page.get_by_test_id("stDownloadButton").first).to_be_visible()
    seen.settle()
    found = {}
    for button in page.get_by_test_id("stDownloadButton").get_by_role("button").all():
        if button.is_enabled():
            with page.expect_download() as download:
                button.click(delay=60)
            found[download.value.suggested_filename] = download.value.path().read_bytes()
    return found


@ASKED
def test_no_file_that_a_page_offers_holds_what_is_hidden(
    app: str, look: Callable[..., Any], who: str, task: str, hidden: tuple[str, ...]
) -> None:
    seen = look(app)
    tables = exported(seen, "/results?batch=b-1", who)
    assert sorted(tables) == ["b-1-figures.csv", "b-1-trials.csv", "b-1-verdicts.csv"]
    assert all(b"oracle:tantalum-free" in data for data in tables.values())
    trail = exported(seen, f"/signoff?id={task}", who)
    # What the gate says names checkpoints and plans: before the own plan is locked there is no export.
    shut = GRADED[task][0] in hidden
    assert sorted(trail) == ([] if shut else [f"{task}-audit.csv", f"{task}-events.ndjson"])
    assert all(b"round_opened" in data or b"Round" in data for data in trail.values())
    for name, data in {**tables, **trail}.items():
        assert [one for one in (*WORDS, *hidden) if one.encode() in data] == [], name


def test_the_lead_exports_how_agents_did_and_no_reviewers_words(app: str, look: Callable[..., Any]) -> None:
    seen = look(app)
    tables = exported(seen, "/results?batch=b-1", "demo-lead")
    assert all(RESULTS[SOLVE][0].encode() in data for data in tables.values())
    trail = exported(seen, f"/signoff?id={SOLVE}", "demo-lead")
    assert sorted(trail) == [f"{SOLVE}-audit.csv", f"{SOLVE}-events.ndjson"]
    assert [one for one in WORDS for data in trail.values() if one.encode() in data] == []


@pytest.mark.parametrize("who", ["demo-lead", "demo-adjudicator", "demo-author", "demo-researcher"])
def test_a_reviewers_words_reach_nobody_else_while_the_round_is_open(
    app: str, look: Callable[..., Any], load: Callable[[str], ModuleType], who: str
) -> None:
    wire = crawl(app, look, load, who, review_addresses(SOLVE))
    assert wire.where(*WORDS) == {}
    assert wire.found(*WORDS) == []
    # Nobody asks them to judge: how it is graded and how agents did is theirs to see.
    assert wire.found(*RESULTS[SOLVE], *GRADED[SOLVE]) == [*RESULTS[SOLVE], *GRADED[SOLVE]]


def test_the_one_who_wrote_it_reads_it(app: str, look: Callable[..., Any], load: Callable[[str], ModuleType]) -> None:
    wire = crawl(app, look, load, "demo-reviewer-2", review_addresses(SOLVE))
    assert wire.found(*WORDS) == list(WORDS)
    assert wire.found(*RESULTS[SOLVE]) == list(RESULTS[SOLVE])


def test_results_leave_the_hidden_tasks_out_and_say_so(app: str, look: Callable[..., Any]) -> None:
    seen = look(app)
    seen.open(f"/results?batch=b-1&as={PHARMACIST}")
    expect(seen.page.get_by_role("heading", name="Results: b-1, 1 task × 2 agents")).to_be_visible()
    expect(seen.page.get_by_text("3 tasks are hidden until you have submitted your review")).to_be_visible()
    seen.open("/results?batch=b-1&as=demo-lead")
    expect(seen.page.get_by_role("heading", name="Results: b-1, 4 tasks × 5 agents")).to_be_visible()
    assert seen.page.get_by_text("hidden until").count() == 0


def test_after_submission_how_agents_did_opens_and_the_others_words_do_not(
    app: str, look: Callable[..., Any], load: Callable[[str], ModuleType], reviews: ModuleType, workspace: Workspace
) -> None:
    reviews.desk(workspace, reviews.ONE).submit_review(AFTER, reviews.review(("cp1", "cp2")))
    wire = crawl(app, look, load, "demo-reviewer-1", addresses(AFTER, RESULTS[AFTER][0]))
    assert wire.found(*RESULTS[AFTER]) == list(RESULTS[AFTER])
    assert wire.where(*WORDS) == {}
    assert wire.found(*WORDS, *RESULTS[SOLVE], *GRADED[SOLVE]) == []
