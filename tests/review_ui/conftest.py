"""Packages for the pages' tests."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from streamlit.testing.v1 import AppTest


def _load(name: str, folder: Path = Path(__file__).parent) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def packages() -> ModuleType:
    """tests/review_ui/packages.py: small task packages, one of them full of hostile text."""
    return _load("packages")


@pytest.fixture(scope="session")
def reviews() -> ModuleType:
    """tests/browser/reviews.py: tasks under review, made through the desk."""
    return _load("reviews", Path(__file__).parents[1] / "browser")


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace of the test's own."""
    monkeypatch.setenv("WORKBENCH_WORKSPACE", str(tmp_path / "workspace"))
    return tmp_path / "workspace"


@pytest.fixture(scope="session")
def said() -> Callable[[AppTest], str]:
    """Everything that a page shows as HTML."""

    def words(test: AppTest) -> str:
        return "\n".join(
            str(element.value if hasattr(element, "value") else element.proto.body) for element in test.get("html")
        )

    return words
