"""The past of a task at the shell."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from tasks.__main__ import app
from tasks.store import WORKBENCH, Identity, Store, Submission
from tasks.workspace import Workspace
from tests.tasks.packages import TINY_ID, tiny_files


def seeded(workspace: Workspace) -> Store:
    changes = {f"{TINY_ID}/{path}": data for path, data in tiny_files().items()}
    workspace.make()
    store = Store.create(workspace.tasks_git, [Submission(WORKBENCH, "Import", changes, {"Task": TINY_ID})])
    text = tiny_files()["instruction.md"].replace(b"hypertension", b"asthma")
    ann = Identity("Ann", "ann@example.org")
    changed = Submission(
        ann, f"{TINY_ID}: Apply 1 change",
        {f"{TINY_ID}/instruction.md": text, f"{TINY_ID}/reviews/events.ndjson": b"{}\n"},
        {"Task": TINY_ID, "Round": "1", "Verdict": "RERUN", "Change-Id": ("a1", "b2")},
    )  # fmt: skip
    store.submit(lambda view: [changed])
    return store


def test_history_tells_who_did_what(workspace: Workspace) -> None:
    store = seeded(workspace)
    said = CliRunner().invoke(app, ["history", TINY_ID])
    assert said.exit_code == 0
    first, second = said.output.splitlines()
    assert first.endswith("Ann: Apply 1 change  (Round 1, Verdict RERUN)")
    assert second.endswith("PhysicianBench Workbench: Import")
    rows = json.loads(CliRunner().invoke(app, ["history", TINY_ID, "--json"]).output)
    assert rows[0]["commit"] == store.head()
    assert rows[0]["trailers"]["Change-Id"] == "a1 b2"


def test_diff_shows_the_package_and_not_its_reviews(workspace: Workspace) -> None:
    store = seeded(workspace)
    old = store.history(TINY_ID)[-1].hash
    said = CliRunner().invoke(app, ["diff", TINY_ID, old[:12]])
    assert said.exit_code == 0
    assert "asthma" in said.output
    assert "events.ndjson" not in said.output
    assert CliRunner().invoke(app, ["diff", TINY_ID, "ab"]).exit_code == 2


def test_what_is_not_there_is_one_message(workspace: Workspace) -> None:
    said = CliRunner().invoke(app, ["history", TINY_ID])
    assert said.exit_code == 3
    assert "authoring status" in said.output
    seeded(workspace)
    assert CliRunner().invoke(app, ["history", "no-such-task"]).exit_code == 2
