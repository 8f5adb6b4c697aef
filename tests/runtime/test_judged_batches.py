"""A batch whose judge is down, and comes back: trials stand, and a resume grades exactly what the judge failed at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from providers.wire import KEY, Fault, Heard, Reply, ToolUse, WireServer
from runtime.batch import Item, Need, run_batch
from runtime.executors import LocalExecutor
from runtime.slot import load_folder
from runtime.trial import Settings
from tasks.stored import Batch
from tasks.workspace import Workspace
from tests.tasks.packages import TINY_ID, TINY_NOTE, tiny_files, write

JUDGED = """
[[checkpoint]]
id = "cp{n}"
title = "{title}"
capability = "documentation"
criticality = "required"
reachable = ["paper"]
rests_on = ["Observation/o-creatinine"]
grader = "judge"
file = "{file}"
rubric = {{pass = "It is named.", fail = "It is not named."}}
"""


class ByPoint:
    """Passes every point with a quotation of the reply; points in `down` end as an overload that asks to wait long."""

    def __init__(self) -> None:
        self.down: set[str] = set()

    def reply(self, heard: Heard) -> Reply:
        point = heard.first_user.split("\n")[1]
        faults = (Fault(kind="status", status=529, retry_after=3600, times=99),) if point in self.down else ()
        quotes = [{"source": "answer", "text": "weight 84 kg"}]
        arguments = {"quotes": quotes, "reason": "As quoted.", "verdict": "pass"}
        return Reply(calls=(ToolUse(name="answer", arguments=arguments),), faults=faults)


@pytest.fixture
def player(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ByPoint, WireServer]]:
    """A judge in the workspace's settings, on the wire."""
    made = ByPoint()
    with WireServer({"scripted": made}) as server:
        workspace.make()
        workspace.settings_file.write_text(
            f'[model."openai/scripted"]\nendpoint = "{server.openai_url}"\nkey_env = "JUDGE_KEY"\n'
            '[use]\njudge = "openai/scripted"\n',
            "utf-8",
        )
        monkeypatch.setenv("JUDGE_KEY", KEY)
        yield made, server


def test_a_resume_grades_exactly_what_the_judge_failed_at(
    player: tuple[ByPoint, WireServer], workspace: Workspace, tmp_path: Path
) -> None:
    judge, server = player
    files = dict(tiny_files())
    points = {"cp4": "Drug", "cp5": "Weight"}
    files["checkpoints.toml"] += "".join(
        JUDGED.format(n=id[2:], title=title, file=TINY_NOTE) for id, title in points.items()
    ).encode()
    folder = write(files, tmp_path / "packages")
    batch = Batch.create(workspace.runs, "b")
    item = Item(load_folder(folder), "oracle", 2, folder)

    def run() -> dict[Need, int]:
        executor = LocalExecutor(1)
        try:
            return dict(run_batch(batch, [item], Settings(), executor).needs)
        finally:
            executor.close()

    judge.down = {"Weight"}
    assert run() == {Need.run: 2}
    for trial in batch.trials():
        latest = trial.latest_verdicts()
        assert (latest["cp4"].result, latest["cp5"].result) == ("pass", "error")
        assert trial.key.task == TINY_ID
    asked, stood = len(server.heard), {trial.path: trial.verdicts() for trial in batch.trials()}

    judge.down = set()
    assert run() == {Need.regrade: 2}
    # Both trials left the same reply, so the question is one, and it is asked once.
    assert [heard.first_user.split("\n")[1] for heard in server.heard[asked:]] == ["Weight"]
    for trial in batch.trials():
        before = stood[trial.path]
        assert trial.verdicts()[: len(before)] == before
        assert [(one.checkpoint, one.result) for one in trial.verdicts()[len(before) :]] == [("cp5", "pass")]
    asked = len(server.heard)
    assert run() == {Need.reuse: 2}
    assert len(server.heard) == asked
