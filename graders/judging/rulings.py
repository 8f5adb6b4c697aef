"""Rulings: what a jury came to, and the cache that never asks the same thing twice.

The key is a hash over everything that the ruling depends on: the judge and its settings, how many votes, the rules, the
rubric, the evidence and the agent's text (all of them as sent), and the shape of the answer. Errors are never kept.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from graders.judging.prompt import Question
from providers.base import SystemMessage, UserMessage
from tasks.errors import EnvironmentFault
from tasks.settings import ModelSettings
from tasks.stored import write_whole
from tasks.strict import Strict
from tasks.taxonomy import DataClass
from tasks.trials import Cite, Judging, Result, Usage

#: Part of the key beside the texts: raise it when votes are counted or quotations checked in another way.
PROCEDURE = 1


class Stated(Strict):
    """A value that a model read in a deliverable."""

    quote: str
    number: str
    unit: str


class Ruling(Strict):
    """The judge's part of a verdict. `values`: of a hybrid checkpoint's field, what the text states."""

    result: Result
    reason: str
    cites: tuple[Cite, ...] = ()
    judging: Judging | None = None
    values: tuple[Stated, ...] = ()


class Kept(Strict):
    """A ruling in the cache; its data class goes with it."""

    data_class: DataClass
    ruling: Ruling


#: What of a model's settings changes how it answers.
_SETTINGS = {"endpoint", "reasoning", "max_output"}


def key_of(model: str, settings: ModelSettings, votes: int, question: Question, schema: type[BaseModel]) -> str:
    """The key of a question put to this judge."""
    texts = [message.text for message in question.messages if isinstance(message, SystemMessage | UserMessage)]
    parts: dict[str, Any] = {
        "procedure": PROCEDURE,
        "model": model,
        "settings": settings.model_dump(include=_SETTINGS),
        "votes": votes,
        "texts": texts,
        "schema": schema.model_json_schema(),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")).hexdigest()


def remembered(folder: Path | None, key: str) -> Ruling | None:
    """The ruling under this key, as a cached one that cost nothing; None where there is none that can be read."""
    if folder is None:
        return None
    try:
        ruling = Kept.model_validate_json(_place(folder, key).read_bytes()).ruling
    except (OSError, ValidationError):
        return None
    if ruling.judging is None or ruling.judging.key != key:
        return None
    judging = ruling.judging.model_copy(update={"cached": True, "usage": Usage(cost=0.0)})
    return ruling.model_copy(update={"judging": judging})


def remember(folder: Path | None, key: str, ruling: Ruling, data_class: DataClass) -> None:
    """Keep a ruling. A cache that cannot be written costs money, never a verdict."""
    if folder is None or ruling.result == "error":
        return
    place = _place(folder, key)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, Kept(data_class=data_class, ruling=ruling).model_dump_json() + "\n")
    except (OSError, EnvironmentFault):
        return


def _place(folder: Path, key: str) -> Path:
    return folder / key[:2] / f"{key}.json"
