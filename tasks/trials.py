"""What a trial leaves behind: outcomes, tool calls, writes, verdicts (design 9 and 10)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AwareDatetime, Field

from tasks.strict import Strict


class Outcome(StrEnum):
    """How a trial ended. Whether it is retried, graded and counted is in OUTCOMES."""

    finished = "finished"
    turn_limit = "turn_limit"
    token_limit = "token_limit"  # noqa: S105 (an outcome, not a secret)
    time_limit = "time_limit"
    cost_limit = "cost_limit"
    loop_stopped = "loop_stopped"
    refused = "refused"
    context_overflow = "context_overflow"
    provider_error = "provider_error"
    environment_error = "environment_error"
    config_error = "config_error"
    internal_error = "internal_error"
    cancelled = "cancelled"
    running = "running"


class OutcomeRule(NamedTuple):
    """What follows from an outcome."""

    retry: Literal["no", "yes", "resume"]
    grade: bool
    counts_as: Literal["valid", "invalid", "not attempted"]


_VALID = OutcomeRule("no", True, "valid")
_RETRIED = OutcomeRule("yes", False, "invalid")
_BROKEN = OutcomeRule("no", False, "invalid")
_OPEN = OutcomeRule("resume", False, "not attempted")

#: The table of design 9.
OUTCOMES: dict[Outcome, OutcomeRule] = {
    Outcome.finished: _VALID,
    Outcome.turn_limit: _VALID,
    Outcome.token_limit: _VALID,
    Outcome.time_limit: _VALID,
    Outcome.cost_limit: _VALID,
    Outcome.loop_stopped: _VALID,
    Outcome.refused: _VALID,
    Outcome.context_overflow: _VALID,
    Outcome.provider_error: _RETRIED,
    Outcome.environment_error: _RETRIED,
    Outcome.config_error: _BROKEN,
    Outcome.internal_error: _BROKEN,
    Outcome.cancelled: _OPEN,
    Outcome.running: _OPEN,
}


class Write(Strict):
    """One entry of a session's ledger: what the agent wrote into the record."""

    sequence: int = Field(ge=1, description="1 for the session's first write")
    call: int | None = Field(description="the tool call (1 = the trial's first) that made it; None outside a trial")
    reference: str = Field(description="Type/id as stored")
    version: int = Field(ge=1)
    resource: str = Field(description="the stored resource as JSON text, byte for byte")


class ToolCall(Strict):
    """One tool call with its full result, even where the model saw a cut one."""

    n: int = Field(ge=1, description="1 = the trial's first call")
    turn: int = Field(ge=1)
    call_id: str
    tool: str
    arguments: dict[str, Any] | str = Field(description="as parsed; the raw text where it was not a JSON object")
    result: str = Field(description="the full result text")
    shown: int = Field(ge=0, description="how many characters of `result` the model was shown, without the notice")
    error: bool = False
    request: str = Field(default="", description="the FHIR request as sent, e.g. 'GET Observation?...'; empty if none")
    writes: tuple[int, ...] = Field(default=(), description="ledger sequences that this call made")
    seconds: float = Field(default=0.0, ge=0)

    @property
    def seen(self) -> str:
        """The part of the result that the model was shown."""
        return self.result[: self.shown]


class Usage(Strict):
    """Tokens of one turn or of a whole trial, by tier. `cost` in USD; None = unknown."""

    uncached_input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    cost: float | None = None


class ResourceCite(Strict):
    kind: Literal["resource"] = "resource"
    ref: str
    path: str = ""
    value: str = ""


class QuoteCite(Strict):
    kind: Literal["quote"] = "quote"
    file: str
    text: str


class CallCite(Strict):
    kind: Literal["call"] = "call"
    n: int


Cite = Annotated[ResourceCite | QuoteCite | CallCite, Field(discriminator="kind")]
Result = Literal["pass", "partial", "fail", "error", "ungraded"]


class Grader(Strict):
    """Who graded. `version` of our own graders is graders.VERSION."""

    kind: Literal["code", "hybrid", "judge", "person"]
    name: str
    version: str


Vote = Literal["pass", "partial", "fail", "needs_review", "failed"]


class Judging(Strict):
    """How a model came to a verdict. Kept with it, so that flips, cost and the judge itself can be reported."""

    model: str = Field(description="the judge as asked for: provider/name")
    answered: str = Field(default="", description="the model name that the provider answered with")
    key: str = Field(description="SHA-256 over all that the verdict depends on; the same is never asked twice")
    votes: tuple[Vote, ...] = Field(description="one a juror, in order; 'failed' is left out of the count")
    faults: tuple[str, ...] = Field(default=(), description="why jurors failed")
    usage: Usage = Field(description="what was spent for this verdict; nothing where it came from the cache")
    cached: bool = False

    @property
    def counted(self) -> tuple[Vote, ...]:
        """The votes of the jurors that did not fail."""
        return tuple(vote for vote in self.votes if vote != "failed")

    @property
    def dissenting(self) -> int:
        """Votes besides the commonest one: how often another juror would have said something else."""
        return len(self.counted) - max((self.counted.count(vote) for vote in set(self.counted)), default=0)


#: Why an agent went wrong, the earliest cause first; a person says so with a verdict.
ErrorKind = Literal[
    "not retrieved", "truncated", "misread", "retrieved and not used", "wrong threshold", "wrong dose or unit",
    "wrong interval", "contraindication missed", "over-ordering", "recommended and not done",
    "done and not documented", "contradiction", "invented fact", "wrong patient", "urgency", "tool misuse",
    "grader fault", "task fault",
]  # fmt: skip


class Verdict(Strict):
    """One grader's judgement of one checkpoint. Appended, never rewritten."""

    checkpoint: str
    result: Result
    reason: str
    cites: tuple[Cite, ...] = ()
    grader: Grader
    at: AwareDatetime
    grade_digest: str = Field(default="", description="of the checkpoints that were judged by; another digest: stale")
    judging: Judging | None = Field(default=None, description="of a verdict that a model took part in")
    cause: ErrorKind | None = Field(default=None, description="a person's: the earliest cause of what went wrong")


class TrialKey(Strict):
    """Which trial: a task, an agent, a run (1..k), an attempt (1..)."""

    task: str
    agent: str
    run: int = Field(ge=1)
    attempt: int = Field(default=1, ge=1)


class TrialOutcome(Strict):
    """outcome.json: written last, by rename; its presence means the trial is finished."""

    key: TrialKey
    outcome: Outcome
    detail: str = ""
    turns: int = 0
    calls: int = 0
    usage: Usage = Usage()
    seconds: float = Field(default=0.0, description="own time, without waiting for the provider and the EHR")
    wall_seconds: float = 0.0
    started: AwareDatetime
    ended: AwareDatetime
    flags: tuple[str, ...] = Field(default=(), description="e.g. 'no tool calls', 'task is a draft'")
    data_class: Literal["open", "dua", "phi"]
    agent_digest: str
    grade_digest: str
    continues: int | None = Field(
        default=None, ge=1, description="the attempt it went on from; turns, calls, usage and time include that"
    )


class Event(Strict):
    """A line of trajectory.jsonl. The payload keys by type are listed in docs/running.md."""

    n: int = Field(ge=1, description="1 = the trial's first event")
    at: AwareDatetime
    type: Literal["system", "user", "model", "tool", "limit", "error", "resumed"]
    data: dict[str, Any]
