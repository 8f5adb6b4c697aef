"""Fixtures that every package's tests share."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from tests.tasks.packages import TINY_ID, tiny_files, write

if TYPE_CHECKING:
    from tasks.package import Task
    from tasks.workspace import Workspace

ROOT = Path(__file__).resolve().parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files first that are given most time: so that no worker is left alone with a long one at the end."""
    most: dict[Path, float] = {}
    for item in items:
        mark = item.get_closest_marker("timeout")
        most[item.path] = max(most.get(item.path, 0.0), float(mark.args[0]) if mark else 0.0)
    items.sort(key=lambda item: -most[item.path])


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The real inputs beside the repository; tests that need them skip where they are absent."""
    path = ROOT.parent / "shared" / "data"
    if not path.is_dir():
        pytest.skip("../shared/data is not on this machine")
    return path


@pytest.fixture(scope="session", autouse=True)
def _no_test_touches_the_real_workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("WORKBENCH_WORKSPACE")
    os.environ["WORKBENCH_WORKSPACE"] = str(tmp_path_factory.mktemp("session") / "workspace")
    yield
    if before is None:
        del os.environ["WORKBENCH_WORKSPACE"]
    else:
        os.environ["WORKBENCH_WORKSPACE"] = before


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace of this test's own, which nothing has been written to."""
    from tasks.workspace import Workspace

    monkeypatch.setenv("WORKBENCH_WORKSPACE", str(tmp_path / "workspace"))
    return Workspace.find()


@pytest.fixture
def tiny_package(tmp_path: Path) -> Path:
    """The folder of a small valid task: 12 resources, three checkpoints (seen, order, function), one plan."""
    return write(tiny_files(), tmp_path / "packages")


@pytest.fixture
def tiny_task(tiny_package: Path) -> Task:
    """The task of `tiny_package`, loaded."""
    from tasks.package import FolderSource

    return FolderSource(tiny_package.parent).load(TINY_ID)


@pytest.fixture(scope="session")
def hapi_rows() -> ModuleType:
    """tests/tasks/fhir/hapi_rows.py: what a real server answered, and how an answer is compared with it."""
    path = ROOT / "tests" / "tasks" / "fhir" / "hapi_rows.py"
    spec = importlib.util.spec_from_file_location("hapi_rows", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
