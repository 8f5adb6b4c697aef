"""The five dimensions of a review and their sub-questions: data, versioned (checklist.toml)."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from pydantic import Field

from tasks.strict import Strict


class Question(Strict):
    """A sub-question, answered yes, no or unsure. It guides; the dimension carries the verdict."""

    id: str
    text: str


class Dimension(Strict):
    """One of the five dimensions."""

    id: str
    title: str
    asks: str
    questions: tuple[Question, ...] = Field(alias="question", min_length=1)


class Checklist(Strict):
    """A version of the checklist."""

    version: str
    dimensions: tuple[Dimension, ...] = Field(alias="dimension", min_length=1)


@cache
def checklist() -> Checklist:
    """The checklist in use."""
    with Path(__file__).with_name("checklist.toml").open("rb") as handle:
        return Checklist.model_validate(tomllib.load(handle))


#: The ids that a submission must answer.
DIMENSIONS: tuple[str, ...] = tuple(dimension.id for dimension in checklist().dimensions)
