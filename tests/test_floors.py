"""The tower of design 2: who may import what. Read from the source, not from a running program."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: From the top floor to the ground. A file imports from its own floor and from those below.
FLOORS = ("app", "review_ui", "authoring", "deidentify", "runtime", "graders", "providers", "tasks")

#: Third-party package -> the places that alone may import it.
KEEPERS = {
    "streamlit": ("app.py", "review_ui/"),
    "git": ("tasks/store.py",),
    "anthropic": ("providers/",),
    "openai": ("providers/",),
    "docker": ("runtime/ehr/",),
    "dask": ("runtime/executors.py",),
    "distributed": ("runtime/executors.py",),
}


def sources() -> list[str]:
    """Every Python file of the project's packages, as paths from the root. Task code in the suite is data."""
    return ["app.py", *(path for floor in FLOORS[1:] for path in on(floor))]


def on(floor: str) -> list[str]:
    """The Python files of one floor."""
    return sorted(
        str(path.relative_to(ROOT))
        for path in (ROOT / floor).rglob("*.py")
        if not path.is_relative_to(ROOT / "tasks" / "suite")
    )


def imports(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """(line, absolute module) of every import in the file, those inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = package.split(".")[: len(package.split(".")) - node.level + 1]
                yield node.lineno, ".".join([*base, node.module or ""]).rstrip(".")
            else:
                yield node.lineno, node.module or ""


def faults(path: str, text: str) -> list[str]:
    """What in this file breaks the tower, a line each."""
    floor = path.removesuffix(".py").split("/")[0]
    package = path.rsplit("/", 1)[0].replace("/", ".") if "/" in path else ""
    found = []
    for line, module in imports(ast.parse(text), package):
        top = module.split(".")[0]
        if top in FLOORS and FLOORS.index(top) < FLOORS.index(floor):
            found.append(f"{path}:{line}: {floor} may not import {module}: it stands higher")
        if top in KEEPERS and not path.startswith(KEEPERS[top]):
            found.append(f"{path}:{line}: only {' and '.join(KEEPERS[top])} may import {top}")
    return found


@pytest.mark.parametrize("floor", FLOORS[1:])
def test_every_floor_is_there(floor: str) -> None:
    assert on(floor)


@pytest.mark.parametrize("path", sources())
def test_a_file_imports_only_from_its_own_floor_and_below(path: str) -> None:
    assert faults(path, (ROOT / path).read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tasks/package.py", "import graders.orders"),
        ("graders/orders.py", "def f():\n    from runtime import trial"),
        ("graders/orders.py", "from ..review_ui import pages"),
        ("runtime/trial.py", "import anthropic"),
        ("authoring/edits.py", "from git import Repo"),
        ("authoring/edits.py", "import streamlit as st"),
    ],
)
def test_a_broken_floor_is_seen(path: str, text: str) -> None:
    assert faults(path, text)


def test_every_package_says_what_it_is() -> None:
    for floor in FLOORS[1:]:
        for path in sorted((ROOT / floor).rglob("__init__.py")):
            if path.is_relative_to(ROOT / "tasks" / "suite"):
                continue
            doc = ast.get_docstring(ast.parse(path.read_text("utf-8")))
            assert doc, f"{path.relative_to(ROOT)} has no docstring"
