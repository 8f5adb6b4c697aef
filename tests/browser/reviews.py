"""A workspace with tasks under review, for the tests of the review pages: made through the desk, as a script would."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from authoring.desk import Desk
from authoring.library import open_store
from authoring.proposals import Proposal
from runtime.batch import Item, run_batch
from runtime.executors import LocalExecutor
from runtime.trial import Settings
from tasks.package import FolderSource
from tasks.people import person
from tasks.review.checklist import checklist
from tasks.stored import Batch
from tasks.workspace import Workspace

ONE, TWO, LEAD, AUTHOR, JUDGE = "demo-reviewer-1", "demo-reviewer-2", "demo-lead", "demo-author", "demo-adjudicator"
PLAN = {
    "answer": "Repeat the potassium before any change.",
    "do_now": "Order a potassium today.",
    "if_then": "If above 6.0, send to the emergency department.",
    "must_not": "A second drug that raises potassium.",
    "follow_up": "Potassium in one week, primary care.",
    "confidence": "sure",
}
LABELS = {
    "answer": "Answer in one or two sentences",
    "do_now": "Do now",
    "if_then": "If-then",
    "must_not": "Must not be done",
    "follow_up": "Follow-up: test, window, who",
}


def desk(workspace: Workspace, who: str, suite: Path | None = None) -> Desk:
    """A person's desk; the repository is made of `suite` at first."""
    store = open_store(workspace, suite=FolderSource(suite)) if suite else open_store(workspace)
    return Desk(workspace, store, person(workspace.settings.people, who))


def opened(workspace: Workspace, task: str, suite: Path | None = None) -> Workspace:
    """The workspace with a round open for both reviewers."""
    lead = desk(workspace, LEAD, suite)
    for who in (ONE, TWO):
        lead.assign(task, who, "reviewer")
    lead.open_round(task)
    return workspace


def review(checkpoints: tuple[str, ...], verdict: str = "acceptable", **more: Any) -> dict[str, Any]:
    """A complete submission."""
    return {
        "verdicts": tuple({"dimension": one.id, "verdict": verdict} for one in checklist().dimensions),
        "ratings": tuple({"checkpoint": id, "rating": "essential"} for id in checkpoints),
        "confidence": "sure",
        **more,
    }


def judged(workspace: Workspace, task: str, **findings: tuple[dict[str, Any], ...]) -> None:
    """Both reviewers lock and submit; `findings` by person with - as _."""
    for who in (ONE, TWO):
        at = desk(workspace, who)
        with at.store.at() as view:
            ids = tuple(one.id for one in at.snapshot(view, task).task.checkpoints)
        at.lock_plan(task, PLAN)
        at.submit_review(task, review(ids, findings=findings.get(who.replace("-", "_"), ())))


def finding(id: str, text: str, dimension: str = "clinical_reasoning", **more: Any) -> dict[str, Any]:
    """A finding of a submission."""
    return {"id": id, "dimension": dimension, "weight": "should", "text": text, "anchor": {"kind": "task"}, **more}


def proposed(workspace: Workspace, task: str, edits: tuple[dict[str, Any], ...], made_by: str = "model/reviser") -> Any:
    """A model's proposal, put up by the author; the changes as they were prepared."""
    at = desk(workspace, AUTHOR)
    with at.store.at() as view:
        package = at.snapshot(view, task).package
    proposal = Proposal.model_validate(
        {"task": task, "package": package, "made_by": made_by, "by_hand": False, "at": datetime.now(UTC),
         "edits": edits}
    )  # fmt: skip
    _, prepared = at.propose(task, proposal)
    return prepared


def run(workspace: Workspace, items: list[Item]) -> None:
    """These trials, as the batch b-1 of the workspace."""
    with pytest.MonkeyPatch.context() as patched, LocalExecutor(2) as executor:
        patched.setenv("WORKBENCH_WORKSPACE", str(workspace.path))
        run_batch(Batch.create(workspace.runs, "b-1"), items, Settings(), executor)
