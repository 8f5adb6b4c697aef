"""A bundled task under review in a workspace of its own, with or without faults put into it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from authoring.desk import Desk
from authoring.gate import Check, GateResult
from authoring.library import open_store
from authoring.reviser import Draft, revise
from providers.wire import KEY, Reply, Script, WireServer
from tasks.package import FolderSource
from tasks.people import person
from tasks.review import events as ev
from tasks.review.checklist import DIMENSIONS
from tasks.workspace import Workspace

ONE, TWO, LEAD, AUTHOR = "demo-reviewer-1", "demo-reviewer-2", "demo-lead", "demo-author"
PLAN = {
    "answer": "As the chart says.", "do_now": "Order it.", "if_then": "If worse, call.", "must_not": "Nothing else.",
    "follow_up": "In four weeks.", "confidence": "sure",
}  # fmt: skip


class Review:
    """One task of a suite, judged, with findings of the first reviewer."""

    def __init__(self, workspace: Workspace, suite: FolderSource, task: str, findings: Sequence[Mapping[str, Any]]):
        self.workspace, self.task = workspace, task
        self.store = open_store(workspace, suite=suite)
        for who in (ONE, TWO):
            # A bundled task may be of a group that neither covers; the lead may waive that.
            self.desk(LEAD).waive(task, who, "for this test")
            self.desk(LEAD).assign(task, who, "reviewer")
        self.desk(LEAD).open_round(task)
        with self.store.at() as view:
            checkpoints = [one.id for one in self.desk(LEAD).snapshot(view, task).task.checkpoints]
        for who in (ONE, TWO):
            mine = list(findings) if who == ONE else []
            judged = {one["dimension"] for one in mine}
            self.desk(who).lock_plan(task, PLAN)
            self.desk(who).submit_review(
                task,
                {
                    "verdicts": [
                        {"dimension": d, "verdict": "needs change" if d in judged else "acceptable"} for d in DIMENSIONS
                    ],
                    "ratings": [{"checkpoint": id, "rating": "essential"} for id in checkpoints],
                    "findings": mine,
                    "confidence": "sure",
                },
            )

    def desk(self, who: str) -> Desk:
        return Desk(self.workspace, self.store, person(self.workspace.settings.people, who))

    @property
    def files(self) -> dict[str, bytes]:
        with self.store.at() as view:
            return view.files(self.task)

    def revised(self, face: str, *replies: Reply, **more: Any) -> Draft:
        """The draft that a scripted model leaves; asked through settings and the environment, as a person would."""
        import os

        with WireServer({"scripted": Script(replies)}) as server:
            url = server.anthropic_url if face == "anthropic" else server.openai_url
            with self.workspace.settings_file.open("a", encoding="utf-8") as file:
                file.write(f'\n[model."{face}/scripted"]\nendpoint = "{url}"\nkey_env = "WIRE_KEY"\n')
            os.environ["WIRE_KEY"] = KEY
            try:
                return revise(self.desk(AUTHOR), self.task, model=f"{face}/scripted", **more)
            finally:
                del os.environ["WIRE_KEY"]


def written(files: Mapping[str, bytes], root: Path, task: str) -> FolderSource:
    """A suite of one task on the disk."""
    for path, data in files.items():
        target = root / task / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return FolderSource(root)


def passing(files: Mapping[str, bytes], task: str) -> GateResult:
    return GateResult(task, ev.package_hash(files), (Check("all", "passed"),))


def first(files: Mapping[str, bytes], path: str) -> dict[str, Any]:
    """The first resource of a chart file."""
    return dict(json.loads(files[path].split(b"\n")[0]))
