"""A workspace with one small task under review, for tests of the desk."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from authoring.desk import Desk
from authoring.edits import Edit
from authoring.gate import Check, GateResult
from authoring.proposals import Prepared, Proposal, ProposedEdit
from tasks.people import Person
from tasks.review import events as ev
from tasks.review.checklist import DIMENSIONS
from tasks.store import Identity, Store, Submission
from tasks.workspace import Workspace
from tests.tasks.packages import TINY_ID, tiny_files

ANN = Person(id="ann", name="Ann", email="ann@example.org", roles=("reviewer",), specialties=("Cardiology",))
BOB = Person(id="bob", name="Bob", email="bob@example.org", roles=("reviewer",), specialties=("Cardiology",))
CLEO = Person(id="cleo", name="Cleo", email="cleo@example.org", roles=("reviewer",), specialties=("Psychiatry",))
JUDY = Person(id="judy", name="Judy", email="judy@example.org", roles=("adjudicator",))
LEAD = Person(id="lead", name="Lee", email="lead@example.org", roles=("lead",))
AUTHOR = Person(id="author", name="Ada", email="ada@example.org", roles=("author",))
PEOPLE = (ANN, BOB, CLEO, JUDY, LEAD, AUTHOR)
PLAN = {
    "answer": "Apixaban.", "do_now": "Order it.", "if_then": "Creatinine up: check.", "must_not": "No NSAID.",
    "follow_up": "Creatinine in 3 months.", "confidence": "sure",
}  # fmt: skip
#: Repository and drafts of rooms in which everybody has judged, by the package and the findings.
_judged: dict[tuple[str, str], Path] = {}
_kept = tempfile.TemporaryDirectory(prefix="rooms-")
HARM = {"kind": "commission", "severity": "severe", "likelihood": "likely"}


class Room:
    """A workspace whose people are PEOPLE, with the tiny task brought in by the author."""

    def __init__(self, workspace: Workspace, files: Mapping[str, bytes] | None = None) -> None:
        self.workspace = workspace
        workspace.make()
        tables = [
            f'[[person]]\nid = "{p.id}"\nname = "{p.name}"\nemail = "{p.email}"\n'
            f"roles = {list(p.roles)}\nspecialties = {list(p.specialties)}\n"
            for p in PEOPLE
        ]
        workspace.settings_file.write_text("\n".join(tables).replace("'", '"'), "utf-8")
        self.files = files or tiny_files()
        self.store = Store.create(workspace.tasks_git, [_first(self.files)])
        self._first_commit = self.store.head()

    def desk(self, who: Person) -> Desk:
        return Desk(self.workspace, self.store, who)

    def opened(self, *people: Person) -> Room:
        """Reviewers assigned, round open."""
        for one in people or (ANN, BOB):
            self.desk(LEAD).assign(TINY_ID, one.id, "reviewer")
        self.desk(LEAD).open_round(TINY_ID)
        return self

    def judged(self, *findings: Mapping[str, Any]) -> Room:
        """Everybody's review is in; the first one has the findings. It is a dozen commits: a room in which nothing has
        been done yet takes them from one that has come as far."""
        fresh = self.store.head() == self._first_commit
        key = (ev.package_hash(self.files), json.dumps(findings))
        if fresh and key in _judged:
            shutil.rmtree(self.workspace.tasks_git)
            shutil.copytree(_judged[key] / "tasks.git", self.workspace.tasks_git)
            shutil.copy(_judged[key] / "state.db", self.workspace.state_db)
            return self
        self.opened()
        for one, found in ((ANN, findings), (BOB, ())):
            self.desk(one).lock_plan(TINY_ID, PLAN)
            self.desk(one).submit_review(TINY_ID, review(found))
        if fresh:
            _judged[key] = Path(_kept.name) / str(len(_judged))
            shutil.copytree(self.workspace.tasks_git, _judged[key] / "tasks.git")
            shutil.copy(self.workspace.state_db, _judged[key] / "state.db")
        return self

    def proposal(self, *edits: Edit, by: str = "some/model", findings: tuple[str, ...] = ()) -> Proposal:
        with self.store.at() as view:
            package = ev.package_hash(view.files(TINY_ID))
        return Proposal(
            task=TINY_ID, package=package, made_by=by, by_hand=by in {p.id for p in PEOPLE}, at=datetime.now(UTC),
            edits=tuple(ProposedEdit(edit=one, findings=findings, rationale="because") for one in edits),
        )  # fmt: skip

    def proposed(self, *edits: Edit, findings: tuple[str, ...] = ()) -> Prepared:
        return self.desk(AUTHOR).propose(TINY_ID, self.proposal(*edits, findings=findings))[1]

    def decided(self, prepared: Prepared, word: str = "approve", *people: Person) -> None:
        for one in people or (ANN, BOB):
            self.desk(one).decide(TINY_ID, [decision(ref, word) for ref in prepared.changes])


def _first(files: Mapping[str, bytes]) -> Submission:
    """The first commit: the task, made by the author."""
    made = ev.Imported(
        submission=ev.new_id(), task=TINY_ID, actor="author", role="author", at=datetime.now(UTC), round=0,
        package=ev.package_hash(files), version="1", makers=("author",),
    )  # fmt: skip
    changes = {f"{TINY_ID}/{path}": data for path, data in files.items()}
    changes[f"{TINY_ID}/{ev.FILE}"] = ev.dump_events([made])
    return Submission(Identity("Ada", "ada@example.org"), "New task", changes, {"Task": TINY_ID})


def decision(ref: ev.ChangeRef, word: str) -> dict[str, Any]:
    out: dict[str, Any] = {"change": ref.change, "base": ref.base, "result": ref.result, "decision": word}
    return out | ({} if word == "approve" else {"reason": "because"}) | ({"harm": HARM} if word == "veto" else {})


def review(findings: Sequence[Mapping[str, Any]] = (), **values: Any) -> dict[str, Any]:
    judged = {one["dimension"] for one in findings}
    return {
        "verdicts": [{"dimension": d, "verdict": "needs change" if d in judged else "acceptable"} for d in DIMENSIONS],
        "ratings": [{"checkpoint": id, "rating": "essential"} for id in ("cp1", "cp2", "cp3")],
        "findings": list(findings),
        "confidence": "sure",
    } | values


def finding(text: str = "Which laboratory is not said.", **values: Any) -> dict[str, Any]:
    anchor = {"kind": "text", "path": "instruction.md", "quote": "follow-up laboratory"}
    return {"dimension": "instruction_clarity", "anchor": anchor, "weight": "should", "text": text} | values


def passing(files: Mapping[str, bytes], task: str) -> GateResult:
    return GateResult(task, ev.package_hash(files), (Check("all", "passed"),))


def ready_files() -> dict[str, bytes]:
    """The tiny package with what the gate asks of a task beyond a valid package: what is graded is asked for, and the
    example orders are whole resources."""
    files = tiny_files()
    asked = (
        ("'DocumentReference/n-1#\"stopped warfarin\"']\ngrader", 'instruction#"Please decide on anticoagulation"'),
        ('["Observation/o-creatinine", "Observation/o-weight"]\ngrader', 'instruction#"the renal function and weight"'),
    )
    text = files["checkpoints.toml"].decode()
    for place, quote in asked:
        assert text.count(place) == 1
        text = text.replace(place, place.replace("]\ngrader", f", '{quote}']\ngrader"))
    files["checkpoints.toml"] = text.encode()
    for path in [path for path in files if path.startswith("examples/")]:
        name = path.removeprefix("examples/").removesuffix(".json").encode()
        kind = b'"resourceType": "MedicationRequest",'
        files[path] = files[path].replace(kind, kind + b'\n  "id": "' + name + b'",', 1)
    return files
