"""What happens to a task, as events: reviews/events.ndjson, one a line, appended, never edited (design 11).

A correction is a new event. An event names content by hash: the package it was made on (`package`, over every file
outside reviews/), or the bytes before and after a change (`base`, `result`), never a commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date
from hashlib import sha256
from typing import Annotated, Any, Literal, Self
from uuid import uuid4

from pydantic import AwareDatetime, Field, TypeAdapter, ValidationError, model_validator

from tasks.declarations import Likelihood, Severity
from tasks.errors import StoreError
from tasks.people import Role
from tasks.review.checklist import DIMENSIONS
from tasks.strict import Strict

FILE = "reviews/events.ndjson"

Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Words = Annotated[str, Field(min_length=1, max_length=1_000_000)]
Confidence = Literal["unsure", "fairly sure", "sure"]
Weight = Literal["blocking", "should", "note"]
DimensionId = Annotated[str, Field(pattern="^(" + "|".join(DIMENSIONS) + ")$")]


def new_id() -> str:
    """A random id of an event, a finding or a submission."""
    return uuid4().hex


def package_hash(files: Mapping[str, bytes]) -> str:
    """The content of a package as one SHA-256: every file outside reviews/."""
    rows = sorted((path, sha256(data).hexdigest()) for path, data in files.items() if not path.startswith("reviews/"))
    return sha256(json.dumps(rows, ensure_ascii=False).encode()).hexdigest()


class Base(Strict):
    """What every event says. `submission` is the Review-Id: the events of one submission share it."""

    id: str = Field(default_factory=new_id)
    submission: str
    task: str
    actor: str = Field(description="a person's id, or 'workbench'")
    role: Role | Literal["workbench"]
    at: AwareDatetime
    round: int = Field(ge=0)


class HarmRating(Strict):
    """How bad, and how likely, if this reached the patient."""

    kind: Literal["omission", "commission"]
    severity: Severity
    likelihood: Likelihood


class TextAnchor(Strict):
    """A place in a text file: the quoted words and what stood around them, so that it is found again after an edit."""

    kind: Literal["text"] = "text"
    path: str
    quote: str = Field(min_length=1)
    before: str = Field(default="", description="up to 40 characters before the quote")
    after: str = Field(default="", description="up to 40 characters after it")


class ResourceAnchor(Strict):
    """A resource of the chart, or one element of it, or words in its note."""

    kind: Literal["resource"] = "resource"
    ref: str
    element: str = ""
    quote: str = ""


class CheckpointAnchor(Strict):
    """A checkpoint, or one of its example orders in the words in which it was shown."""

    kind: Literal["checkpoint"] = "checkpoint"
    checkpoint: str
    example: str = ""


class TaskAnchor(Strict):
    """The task as a whole."""

    kind: Literal["task"] = "task"


Anchor = Annotated[TextAnchor | ResourceAnchor | CheckpointAnchor | TaskAnchor, Field(discriminator="kind")]


class Finding(Strict):
    """Something that a reviewer found, where, how much it matters."""

    id: str = Field(default_factory=new_id)
    dimension: DimensionId
    anchor: Anchor
    weight: Weight
    text: Words
    harm: HarmRating | None = None
    source: str = ""
    alternative_plan: str = ""
    confidence: Confidence = "fairly sure"


class OwnPlan(Strict):
    """What the reviewer would do, written before seeing how the task is graded."""

    answer: Words
    do_now: Words
    if_then: Words
    must_not: Words
    follow_up: Words
    confidence: Confidence


class DimensionVerdict(Strict):
    """The judgement of one dimension. "Cannot judge" needs a reason; there is no default."""

    dimension: DimensionId
    verdict: Literal["acceptable", "needs change", "unsafe", "cannot judge"]
    answers: dict[str, Literal["yes", "no", "unsure"]] = Field(default={})
    why_not: Literal["", "missing context", "ambiguous wording", "genuine equipoise", "outside my specialty"] = ""
    comment: str = ""

    @model_validator(mode="after")
    def _reason(self) -> Self:
        if (self.verdict == "cannot judge") != bool(self.why_not):
            raise ValueError("'cannot judge' needs a reason, and only that does")
        return self


class Rating(Strict):
    """What a checkpoint is worth."""

    checkpoint: str
    rating: Literal["essential", "optional", "wrong", "not gradable"]
    comment: str = ""


class Tick(Strict):
    """Whether the grader's verdict on one example order is right."""

    checkpoint: str
    example: str
    right: bool


class Imported(Base):
    """The package came in, or a newer bundled version replaced it."""

    type: Literal["imported"] = "imported"
    package: Sha
    version: str
    makers: tuple[str, ...] = Field(default=(), description="ids of those who wrote it")


class Assigned(Base):
    type: Literal["assigned"] = "assigned"
    person: str
    as_role: Literal["reviewer", "pharmacist", "adjudicator"]


class Unassigned(Base):
    type: Literal["unassigned"] = "unassigned"
    person: str
    reason: Words


class Waived(Base):
    """A rule is waived for one person, by the lead, with a reason; printed in the release."""

    type: Literal["waived"] = "waived"
    person: str
    rule: Literal["same_group"]
    reason: Words


class RoundOpened(Base):
    type: Literal["round_opened"] = "round_opened"
    package: Sha
    reviewers: tuple[str, ...] = Field(min_length=1)
    due: date | None = Field(default=None, description="the day by which the lead asks for the reviews")


class PlanLocked(Base):
    type: Literal["plan_locked"] = "plan_locked"
    package: Sha
    plan: OwnPlan


class PlanAmended(Base):
    """A correction of a locked plan; both stay visible."""

    type: Literal["plan_amended"] = "plan_amended"
    text: Words


class ReviewSubmitted(Base):
    type: Literal["review_submitted"] = "review_submitted"
    package: Sha
    checklist: str
    verdicts: tuple[DimensionVerdict, ...]
    ratings: tuple[Rating, ...] = ()
    ticks: tuple[Tick, ...] = ()
    findings: tuple[Finding, ...] = ()
    confidence: Confidence
    active_minutes: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        given = [verdict.dimension for verdict in self.verdicts]
        if sorted(given) != sorted(DIMENSIONS):
            missing = [name for name in DIMENSIONS if name not in given]
            raise ValueError(
                f"each dimension is judged once; missing: {', '.join(missing) or 'none, one stands twice'}"
            )
        return self


class FindingWithdrawn(Base):
    type: Literal["finding_withdrawn"] = "finding_withdrawn"
    finding: str
    reason: Words


class FindingDismissed(Base):
    type: Literal["finding_dismissed"] = "finding_dismissed"
    finding: str
    reason: Words


class ChangeRef(Strict):
    """A change as events know it. The edit itself stands in reviews/proposals/<proposal>.json.

    `unit` is what it changes: a file, or one resource ("chart/Condition.ndjson#c-12"). `base` and `result` are the
    hashes of the unit's bytes before and after the change alone ("" = absent).
    """

    change: Sha
    unit: str
    base: Sha | Literal[""]
    result: Sha | Literal[""]
    group: str = Field(default="", description="changes of one group are decided and applied together")
    findings: tuple[str, ...] = ()
    made_by_hand: bool = False
    weakens_safety: bool = False


class Proposed(Base):
    """A proposal was put up for decision. `made_by` is a person's id or a model's name."""

    type: Literal["proposed"] = "proposed"
    proposal: str
    file: Sha
    package: Sha
    made_by: str
    changes: tuple[ChangeRef, ...] = Field(min_length=1)
    unaddressed: tuple[str, ...] = Field(default=(), description="findings that it leaves open")


class GateRan(Base):
    type: Literal["gate_ran"] = "gate_ran"
    package: Sha
    gate: str = Field(description="version of the gate")
    passed: bool
    failures: tuple[str, ...] = ()
    mutants: int = Field(default=0, ge=0, description="plans made wrong in one thing that were tried")
    survivors: tuple[str, ...] = Field(default=(), description="those that no checkpoint caught")
    variants: int = Field(default=0, ge=0, description="plans changed in what does not matter that were tried")
    broken_variants: tuple[str, ...] = Field(default=(), description="those that a checkpoint failed")


class Decided(Base):
    """One person's decision on one change, bound to the bytes they saw."""

    type: Literal["decided"] = "decided"
    change: Sha
    base: Sha | Literal[""]
    result: Sha | Literal[""]
    decision: Literal["approve", "reject", "veto", "discuss"]
    reason: str = ""
    harm: HarmRating | None = None

    @model_validator(mode="after")
    def _reasons(self) -> Self:
        if self.decision in ("reject", "veto", "discuss") and not self.reason.strip():
            raise ValueError(f"{self.decision} needs a reason")
        if self.decision == "veto" and self.harm is None:
            raise ValueError("a veto names the harm: kind, severity, likelihood")
        return self


class VetoLifted(Base):
    """A veto was lifted by its owner, or by an adjudicator who records the owner's answer or absence.

    `change` "" is a veto on the task as a whole (a dimension judged unsafe).
    """

    type: Literal["veto_lifted"] = "veto_lifted"
    change: Sha | Literal[""]
    owner: str
    owner_says: Literal["lifted it", "agrees", "does not agree", "could not be reached"]
    reason: Words


class Adjudicated(Base):
    type: Literal["adjudicated"] = "adjudicated"
    change: Sha
    base: Sha | Literal[""]
    result: Sha | Literal[""]
    decision: Literal["approve", "reject"]
    reason: Words


class Applied(Base):
    """The accepted changes became the task, in one commit. `units`: the hash of each unit afterwards."""

    type: Literal["applied"] = "applied"
    changes: tuple[Sha, ...] = Field(min_length=1)
    before: Sha
    package: Sha
    version: str
    units: dict[str, Sha | Literal[""]]
    resolved: tuple[str, ...] = Field(default=(), description="findings that this resolves")


class Signed(Base):
    type: Literal["signed"] = "signed"
    package: Sha
    statement: Words


class Released(Base):
    type: Literal["released"] = "released"
    package: Sha
    version: str
    tag: str
    manifest: Sha


class DefectReported(Base):
    """A fault found after release. It marks results; it changes none."""

    type: Literal["defect_reported"] = "defect_reported"
    defect: str = Field(default_factory=new_id)
    version: str
    checkpoint: str = ""
    text: Words


Event = Annotated[
    Imported | Assigned | Unassigned | Waived | RoundOpened | PlanLocked | PlanAmended | ReviewSubmitted
    | FindingWithdrawn | FindingDismissed | Proposed | GateRan | Decided | VetoLifted | Adjudicated | Applied
    | Signed | Released | DefectReported,
    Field(discriminator="type"),
]  # fmt: skip
_EVENT: TypeAdapter[Event] = TypeAdapter(Event)


def parse_events(data: bytes, *, where: str = FILE) -> tuple[Event, ...]:
    """The events of a file. Raises StoreError with the line: a history that cannot be read is never skipped over."""
    events = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            events.append(_EVENT.validate_json(line))
        except ValidationError as failure:
            first = failure.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise StoreError(
                f"an event cannot be read: {place}: {first['msg']}.",
                where=f"{where}:{number}",
                remedy="Nothing may edit this file; restore it from an earlier commit.",
            ) from None
    return tuple(events)


def dump_events(events: Iterable[Event]) -> bytes:
    """Events as the lines that are appended."""
    return b"".join(_line(event) for event in events)


def _line(event: Any) -> bytes:
    return json.dumps(event.model_dump(mode="json"), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
