"""How long a reviewer waits: 100 tasks, 2,000 commits, a chart of 30,720 resources, a proposal of 200 edits.

    python -m benchmarks.review_pages [--rounds N] [--folder DIR] [--tasks N] [--commits N] [--resources N] [--edits N]

`load` = a fresh tab on the page's address with a warm server; `act` = a key of Decide to the next change on the
screen. Targets: p95 under 1 s for a page, under 0.4 s from a decision key to the next change.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from authoring.desk import Desk
from authoring.library import open_store
from authoring.proposals import Proposal
from benchmarks.pages import Round, Watch, over, serve, settle, told, write_tasks
from tasks.package import FolderSource
from tasks.people import person
from tasks.review.checklist import checklist
from tasks.statedb import StateDb
from tasks.workspace import Workspace

PLAN = {
    "answer": "a", "do_now": "b", "if_then": "c", "must_not": "d", "follow_up": "e", "confidence": "sure",
}  # fmt: skip
#: The change of this number is on the screen with all that is said of it, and the decision buttons are its own: the
#: list's row and the buttons carry the same id, and nothing of the one before stands there any more.
ON_SCREEN = """(number) => {
  const id = (name) => [...document.querySelectorAll(`[class*="st-key-${name}"]`)]
    .map((one) => one.className.split(`st-key-${name}`)[1].slice(0, 16))[0];
  return document.body.innerText.includes(`Change ${number} of `) && document.querySelector(".diff") !== null
    && id("rail-on-") && id("rail-on-") === id("do-approve-")
    && document.querySelectorAll("[data-stale=true]").length === 0;
}"""
ONE, TWO = "demo-reviewer-1", "demo-reviewer-2"


def write_reviews(workspace: Workspace, tasks: Path, ids: list[str], commits: int, edits: int) -> None:
    """Every task under review; the first to solve, the second to decide on `edits` changes; `commits` in all."""
    store = open_store(workspace, suite=FolderSource(tasks))

    def desk(who: str) -> Desk:
        return Desk(workspace, store, person(workspace.settings.people, who))

    lead = desk("demo-lead")
    for id in ids:
        for who in (ONE, TWO):
            lead.assign(id, who, "reviewer")
        lead.open_round(id)
    for who in (ONE, TWO):
        at = desk(who)
        at.lock_plan(ids[1], PLAN)
        with store.at() as view:
            checkpoints = at.snapshot(view, ids[1]).task.checkpoints
        at.submit_review(
            ids[1],
            {
                "verdicts": tuple({"dimension": d.id, "verdict": "acceptable"} for d in checklist().dimensions),
                "ratings": tuple({"checkpoint": c.id, "rating": "essential"} for c in checkpoints),
                "confidence": "sure",
            },
        )
    author = desk("demo-author")
    with store.at() as view:
        at_ = author.snapshot(view, ids[1])
        package, chart = at_.package, at_.task.chart
        made = []
        for resource in chart.resources("Observation"):
            value = (resource.body.get("valueQuantity") or {}).get("value")
            if value is None:
                continue
            operations = (
                {"op": "test", "path": "/valueQuantity/value", "value": value},
                {"op": "replace", "path": "/valueQuantity/value", "value": value + 1},
            )
            edit = {"kind": "resource", "ref": resource.ref, "operations": operations}
            made.append({"edit": edit, "rationale": "A benchmark."})
            if len(made) == edits:
                break
    author.propose(
        ids[1],
        Proposal.model_validate(
            {"task": ids[1], "package": package, "made_by": "model/bench", "by_hand": False, "at": datetime.now(UTC),
             "edits": tuple(made)}
        ),
    )  # fmt: skip
    turn = itertools.cycle(ids[2:])
    for number in range(max(0, commits - len(store.history(limit=1_000_000)))):
        id = next(turn)
        if number // (len(ids) - 2) % 2:
            lead.unassign(id, "demo-pharmacist", "A benchmark.")
        else:
            lead.assign(id, "demo-pharmacist", "pharmacist")
    store.maintain()


def measure(address: str, watch: Watch, ids: list[str], rounds: int) -> list[dict[str, Any]]:
    """Pages, then decision keys."""
    pages = [
        ("Home of a reviewer", f"/?as={ONE}", ".st-key-rowhead-work"),
        ("Stage 1, solve first", f"/review?id={ids[0]}&as={ONE}", ".st-key-plan textarea"),
        ("Stage 3, decide", f"/decide?id={ids[1]}&as={ONE}", ".stApp:has(.st-key-decidebar button) .wb-area"),
        ("Sign-off", f"/signoff?id={ids[1]}&as=demo-lead", ".event-row"),
        ("Propose", f"/propose?id={ids[1]}&as=demo-lead", ".wb-area"),
    ]
    rows = []
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox", "--disable-gpu"]
        )
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        for name, path, seen in pages:
            page = context.new_page()

            def load(page: Any = page, path: str = path, seen: str = seen) -> None:
                page.goto(address + path)
                settle(page, seen)

            rows.append(told(f"load  {name}", watch.times(load, rounds), 1.0))
            page.close()
        page = context.new_page()
        page.goto(f"{address}/decide?id={ids[1]}&as={ONE}")
        settle(page, ".st-key-decidebar button")
        times: list[Round] = []
        for number in range(2, rounds + 3):

            def decide(number: int = number) -> None:
                page.keyboard.press("a")
                page.wait_for_function(ON_SCREEN, arg=number, timeout=60_000)

            page.wait_for_timeout(300)
            times.append(watch.once(decide))
            settle(page, ".st-key-decidebar button")
        rows.append(told("act   a decision key to the next change", times, 0.4))
        browser.close()
    return rows


def main() -> int:
    """Build the data, measure, print the table; 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--commits", type=int, default=2_000)
    parser.add_argument("--resources", type=int, default=30_720)
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--folder", type=Path, help="keep the data here, and use it again where it is there")
    parser.add_argument("--json", type=Path, help="write the figures here")
    given, _ = parser.parse_known_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="bench-review-"))
    workspace = Workspace(folder / "workspace")
    if not workspace.tasks_git.exists():
        folder.mkdir(parents=True, exist_ok=True)
        ids = write_tasks(folder / "tasks", given.tasks, given.resources)
        began = time.perf_counter()
        write_reviews(workspace, folder / "tasks", ids, given.commits, given.edits)
        print(f"{len(ids)} tasks, {given.commits:,} commits in {time.perf_counter() - began:.0f} s, {folder}")
    ids = sorted(path.name for path in (folder / "tasks").iterdir())
    # Decisions of an earlier run over this folder are drafts: without them it begins at the first change again.
    StateDb(workspace.state_db).drop_drafts(ONE, ids[1], 1)
    process, address = serve(folder, workspace.path)
    try:
        rows = measure(address, Watch(process.pid), ids, given.rounds)
    finally:
        process.terminate()
        process.wait(timeout=30)
        if given.folder is None:
            shutil.rmtree(folder)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1), "utf-8")
    return over(rows)


if __name__ == "__main__":
    sys.exit(main())
