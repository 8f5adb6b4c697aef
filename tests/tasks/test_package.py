"""Loading a whole package."""

from __future__ import annotations

from pathlib import Path

from tasks.package import FolderSource, Task, faults, load
from tasks.workspace import Workspace
from tests.tasks.packages import TINY_ID, tiny_files


def test_the_tiny_package_is_right_and_complete(tiny_package: Path) -> None:
    files = FolderSource(tiny_package.parent).files(TINY_ID)
    assert faults(files, where=TINY_ID, release=True) == []


def test_the_chart_is_indexed_in_the_workspaces_cache(tiny_task: Task, workspace: Workspace) -> None:
    assert len(tiny_task.chart) == 12
    assert tiny_task.chart.types["Observation"] == 4
    assert [path.name for path in workspace.path.iterdir()] == ["cache"]


def test_a_folder_and_a_mapping_of_the_same_files_are_the_same_task(tiny_task: Task) -> None:
    other = load(tiny_files(), where=TINY_ID)
    assert other.agent_digest == tiny_task.agent_digest
    assert other.grade_digest == tiny_task.grade_digest
    assert other.checkpoints == tiny_task.checkpoints
