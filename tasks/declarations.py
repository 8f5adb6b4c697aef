"""What a checkpoint declares: checkpoints.toml as strict models (design 4; the order vocabulary of field/orders.md).

A declaration is data. Plain words, edit forms, mutants and the protected set are generated from it, so every key
says in one line what it means. What a value such as "2.5-5 mg" means is read by
graders/orders.py; here the shape is held.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from tasks.strict import Strict
from tasks.taxonomy import Capability, Profile, ReasoningKind

Text = Annotated[str, StringConstraints(min_length=1)]
OrderType = Literal["MedicationRequest", "ServiceRequest", "Appointment", "Communication"]
Criticality = Literal["critical", "required", "optional"]
Action = Literal["do_now", "pend", "recommend", "conditional", "shared_decision", "defer", "ask"]
GraderKind = Literal["code", "hybrid", "judge", "pytest"]
HarmKind = Literal["omission", "commission"]
Severity = Literal["none", "mild", "moderate", "severe", "death"]
Likelihood = Literal["unlikely", "possible", "likely"]
Route = Literal[
    "oral", "sublingual", "IV", "IM", "subcutaneous", "inhaled", "nasal", "topical", "transdermal", "ophthalmic",
    "rectal", "vaginal",
]  # fmt: skip
Urgency = Literal["routine", "urgent", "asap", "stat"]

#: What `truth` may name besides a function of checkpoints.py; graders/truths.py computes them. Beside these stands
#: `latest:<code>[,<code>…]`, a code as `code` or `system|code`: the latest value of an Observation.
BUILT_IN_TRUTHS: tuple[str, ...] = (
    "age", "egfr_ckd_epi_2021", "cockcroft_gault", "corrected_calcium", "bmi", "fib4", "cha2ds2_vasc", "has_bled",
    "meld_3",
)  # fmt: skip
LATEST = "latest:"


class Harm(Strict):
    """What failing this checkpoint would do to the patient. A checkpoint with harm is a safety checkpoint."""

    kind: HarmKind
    severity: Severity
    likelihood: Likelihood


class Source(Strict):
    """Where a graded statement comes from."""

    org: Text
    year: int = Field(ge=1900, le=2100)
    section: str = ""
    strength: str = ""
    superseded_by: str = ""
    verified: bool = False
    title: str = ""


class Taper(Strict):
    """Equal steps from a first dose down to an end."""

    first_dose: Text
    step: Text
    interval: Text
    end: Text


class Step(Strict):
    """One step of a loading or titration scheme."""

    dose: Text
    frequency: Text
    duration: str = ""


class Imaging(Strict):
    """An imaging study."""

    modality: Text
    site: Text
    contrast: Literal["with", "without", "both"] | tuple[Literal["with", "without", "both"], ...] | None = None
    laterality: Literal["left", "right", "bilateral"] | tuple[Literal["left", "right", "bilateral"], ...] | None = None


class OrderRow(Strict):
    """One acceptable order. Every key present must hold; a key absent is not checked (field/orders.md)."""

    type: OrderType | None = None
    ingredient: Text | None = None
    drug_class: Text | None = Field(default=None, alias="class")
    split: bool = False
    release: Literal["immediate", "extended", "delayed"] | None = None
    dose: Text | None = None
    daily: Text | None = None
    frequency: Text | tuple[Text, ...] | None = None
    prn: bool | None = None
    max_daily: Text | None = None
    route: Route | tuple[Route, ...] | None = None
    duration: Text | None = None
    taper: Taper | None = None
    steps: tuple[Step, ...] | None = None
    test: Text | None = None
    imaging: Imaging | None = None
    referral: Text | None = None
    procedure: Text | None = None
    urgency: Urgency | None = None
    when: Text | None = None
    trigger: Text | None = None
    act: Text | None = None
    owner: Text | None = None
    reason: Text | None = None
    replaces: Text | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        said = self.model_dump(exclude_none=True, exclude={"type", "split"})
        if not said:
            raise ValueError("an order row must say at least one thing besides its type")
        return self


class MustNotRow(OrderRow):
    """An order that must not be there, `unless` another order or an active entry of the chart makes it right."""

    unless: OrderRow | None = None


class Order(Strict):
    """What order satisfies the checkpoint."""

    type: OrderType
    count: Literal["one", "at_least_one"] = "one"
    accept: tuple[OrderRow, ...] = Field(min_length=1)
    also_accept: tuple[OrderRow, ...] = ()


class Extract(Strict):
    """How the agent's value is found: by a pattern in a file, or as a named field read by a model with a schema."""

    file: Text
    pattern: Text | None = None
    field: Text | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.pattern is None) == (self.field is None):
            raise ValueError("give exactly one of pattern and field")
        return self


class Rubric(Strict):
    """The levels of a judged checkpoint, without gaps."""

    passed: Text = Field(alias="pass")
    partial: Text | None = None
    fail: Text


class Checkpoint(Strict):
    """One clinical decision, and how it is graded."""

    id: Annotated[str, StringConstraints(pattern=r"^cp[0-9]{1,2}[a-z]?$")]
    title: Text
    capability: Capability
    kind: ReasoningKind | Literal[""] = ""
    criticality: Criticality
    harm: Harm | None = None
    action: Action = "do_now"
    reachable: tuple[Profile, ...] = Field(min_length=1)
    rests_on: tuple[Text, ...] = ()
    grader: GraderKind
    order: Order | None = None
    must_not: tuple[MustNotRow, ...] = ()
    followup: tuple[OrderRow, ...] = ()
    seen: tuple[Text, ...] = ()
    function: Text | None = None
    truth: Text | None = None
    extract: Extract | None = None
    unit: str = ""
    tolerance: Annotated[float, Field(ge=0)] | None = None
    file: Text | None = None
    rubric: Rubric | None = None
    source: tuple[Source, ...] = ()
    must_match: tuple[Text, ...] = ()
    must_not_match: tuple[Text, ...] = ()

    @model_validator(mode="after")
    def _keys_fit_the_grader(self) -> Self:
        code = {"order", "must_not", "followup", "seen", "function"}
        hybrid = {"truth", "extract", "unit", "tolerance"}
        judge = {"file", "rubric"}
        given = {name for name in code | hybrid | judge if getattr(self, name) not in (None, (), "")}
        allowed = {"code": code, "hybrid": hybrid, "judge": judge, "pytest": {"function"}}[self.grader]
        if stray := sorted(given - allowed):
            raise ValueError(f"grader {self.grader!r} has no use for {', '.join(stray)}")
        needs = {"code": "one of order, must_not, followup, seen, function", "hybrid": "truth and extract"}
        if self.grader == "code" and not given:
            raise ValueError(f"grader 'code' needs {needs['code']}")
        if self.grader == "hybrid" and not (self.truth and self.extract):
            raise ValueError(f"grader 'hybrid' needs {needs['hybrid']}")
        if self.grader == "judge" and not (self.file and self.rubric):
            raise ValueError("grader 'judge' needs file and rubric")
        if self.capability == "clinical_reasoning" and not self.kind:
            raise ValueError("capability 'clinical_reasoning' needs a kind")
        if self.capability != "clinical_reasoning" and self.kind:
            raise ValueError("kind belongs to capability 'clinical_reasoning' alone")
        return self

    @property
    def is_safety(self) -> bool:
        """Whether failing it harms the patient (design 4: harm is set)."""
        return self.harm is not None
