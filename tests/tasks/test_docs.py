"""docs/task-package.md is true to the code: every key of the format stands in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from tasks.declarations import (
    BUILT_IN_TRUTHS,
    Checkpoint,
    Extract,
    Harm,
    Imaging,
    MustNotRow,
    Order,
    Rubric,
    Source,
    Step,
    Taper,
)
from tasks.manifest import Context, Deliverable, Limits, Provenance, TaskMeta
from tasks.package import faults
from tests.tasks.packages import TINY_ID, tiny_files

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "task-package.md").read_text("utf-8")

MODELS = (
    Checkpoint, Extract, Harm, Imaging, MustNotRow, Order, Rubric, Source, Step, Taper,
    Context, Deliverable, Limits, Provenance, TaskMeta,
)  # fmt: skip


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_key_of_the_format_is_documented(model: type[BaseModel]) -> None:
    keys = [field.alias or name for name, field in model.model_fields.items()]
    assert [key for key in keys if not re.search(rf"\b{key}\b", PAGE)] == []


def test_every_built_in_truth_is_documented() -> None:
    assert [name for name in BUILT_IN_TRUTHS if name not in PAGE] == []


def test_the_documented_task_toml_is_accepted() -> None:
    example = re.search(r"```toml\n(schema_version.*?)```", PAGE, re.DOTALL)
    assert example is not None
    files = tiny_files()
    files["task.toml"] = example[1].replace("nephrology-example-001", TINY_ID).encode()
    assert faults(files, where=TINY_ID, release=True) == []
