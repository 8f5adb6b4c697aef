"""task.toml as strict models (design 4)."""

from __future__ import annotations

import posixpath
from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, StringConstraints

from tasks.places import nearest, shown
from tasks.strict import Strict
from tasks.taxonomy import SPECIALTIES, Authority, DataClass, Workflow

#: What an id of a task looks like.
TASK_ID = r"^[a-z0-9][a-z0-9-]{2,63}$"
#: Where an agent's files land; write_file maps `output/x` and `x` to it as well.
OUTPUT = "/workspace/output/"


def _specialty(name: str) -> str:
    if name not in SPECIALTIES:
        hint = nearest(name, SPECIALTIES) or f" They are: {', '.join(SPECIALTIES)}."
        raise ValueError(f"{shown(name)} is not one of the 21 specialties.{hint}")
    return name


def inside_output(path: str) -> str:
    """The path of a file below /workspace/output/; ValueError for anything that leaves it or is written oddly."""
    if not path.startswith(OUTPUT) or path.endswith("/") or posixpath.normpath(path) != path or "\\" in path:
        raise ValueError(f"{shown(path)} is not a file inside the workspace; write it as {OUTPUT}<file>")
    if any(ord(letter) < 32 for letter in path):
        raise ValueError("the path holds a control character; write plain text")
    return path


def _reference(kind: str) -> AfterValidator:
    def check(value: str) -> str:
        head, _, tail = value.partition("/")
        if head != kind or not tail or "/" in tail:
            raise ValueError(f"not a reference of the form {kind}/<id>")
        return value

    return AfterValidator(check)


def _not_text(value: object) -> object:
    if isinstance(value, str):
        raise ValueError("written as text; write the date-time without quotes, like 2025-03-14T08:30:00-05:00")
    if not isinstance(value, datetime):
        raise ValueError("not a date-time with an offset; write it like 2025-03-14T08:30:00-05:00")
    return value


Line = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^\S(.*\S)?$")]
OffsetDateTime = Annotated[AwareDatetime, BeforeValidator(_not_text)]


class Context(Strict):
    """Who the agent acts for, when, and with what authority. A draft may lack all but the patient."""

    patient: Annotated[str, _reference("Patient")]
    practitioner: Annotated[str, _reference("Practitioner")] | None = None
    now: OffsetDateTime | None = Field(default=None, description="the simulated clock, with its offset")
    authority: Authority | None = None


class Deliverable(Strict):
    """A file that the agent is asked to write."""

    path: Annotated[str, AfterValidator(inside_output)]


class Limits(Strict):
    """What a trial may use; a key absent leaves the runner's own limit. Reaching one ends the trial, gradable."""

    turns: int | None = Field(default=None, ge=1, description="model responses")
    tokens: int | None = Field(default=None, ge=1, description="input and output together")
    seconds: float | None = Field(default=None, gt=0, description="own time, without waiting for provider and EHR")
    cost: float | None = Field(default=None, gt=0, description="USD of the agent's model")


class Provenance(Strict):
    """Where the chart and the text come from."""

    source: Line = Field(description="e.g. 'synthetic', a warehouse, an e-consult")
    generator: str = Field(default="", description="program and version that made the background")
    seed: int | None = None
    contamination_guid: str = Field(default="", description="a canary: a model that knows it has seen the task")
    deidentification_audit: str = Field(default="", description="id of the audit that released the record")


class TaskMeta(Strict):
    """task.toml."""

    schema_version: Literal[1]
    id: Annotated[str, StringConstraints(pattern=TASK_ID)]
    version: int = Field(ge=1)
    title: Line
    specialty: Annotated[str, AfterValidator(_specialty)]
    workflow: Workflow
    data_class: DataClass
    split: Literal["public", "held_out"] = "public"
    estimated_minutes: int | None = Field(default=None, ge=1, description="a physician's own minutes")
    context: Context | None = None
    deliverables: tuple[Deliverable, ...] = Field(default=(), alias="deliverable")
    limits: Limits = Limits()
    provenance: Provenance | None = None

    @property
    def group(self) -> str:
        """The group of specialties that results are reported by."""
        return SPECIALTIES[self.specialty]
