"""Grading: every checkpoint of a task against one trial's evidence, one verdict each.

A grader that stops is an error, never a fail. What only a model or the sandbox could grade is ungraded, and says so.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

from graders import sandbox
from graders.evidence import Evidence
from graders.hybrid import agent_value, judge_value
from graders.judge import Judge
from graders.judging.rulings import Ruling
from graders.orders import OrderContext, check_declaration
from graders.orders import judge as judge_orders
from graders.seen import judge_seen
from graders.trust import CODE_FILE, is_trusted
from graders.verdicts import AnyCite, Judgement, Truth
from graders.version import VERSION
from tasks.declarations import Checkpoint
from tasks.errors import WorkbenchError
from tasks.structure import functions
from tasks.trials import Grader, Judging, Result, Verdict

NO_LEGACY = "a legacy pytest checkpoint is not run yet"
NO_JUDGE = "no judge configured"

#: Which part decides where several code keys hold together: a proven fail before what could not be established.
_WORST_FIRST: tuple[Result, ...] = ("fail", "error", "ungraded", "partial", "pass")


class Part(NamedTuple):
    """What one key of a checkpoint came to."""

    name: str
    result: Result
    reason: str
    cites: tuple[AnyCite, ...] = ()
    judging: Judging | None = None


def grade(
    evidence: Evidence,
    checkpoints: Sequence[Checkpoint] | None = None,
    at: datetime | None = None,
    *,
    judge: Judge | None = None,
) -> list[Verdict]:
    """A verdict for each checkpoint (all of the task's by default), in their order, stamped `at` (now by default).

    The same evidence always gives the same verdicts apart from `at`; those of a `judge` as long as its cache is kept.
    Without a judge, what only a model can tell is ungraded.
    """
    stamp = at or datetime.now(UTC)
    wanted = evidence.task.checkpoints if checkpoints is None else checkpoints
    return [_verdict(checkpoint, evidence, stamp, judge) for checkpoint in wanted]


def _verdict(checkpoint: Checkpoint, evidence: Evidence, at: datetime, judge: Judge | None) -> Verdict:
    if evidence.faults:
        parts = [Part("evidence", "error", f"The evidence cannot be read: {'; '.join(evidence.faults)}.")]
    else:
        parts = [_guarded(name, work, evidence) for name, work in _work(checkpoint, evidence, judge)]
    result = min((part.result for part in parts), key=_WORST_FIRST.index)
    ordered = sorted(parts, key=lambda part: _WORST_FIRST.index(part.result))
    kind = "code" if checkpoint.grader == "pytest" else checkpoint.grader
    return Verdict(
        checkpoint=checkpoint.id,
        result=result,
        reason=ordered[0].reason if len(ordered) == 1 else " ".join(_sentence(part.reason) for part in ordered),
        cites=tuple(dict.fromkeys(cite for part in ordered for cite in part.cites)),
        grader=Grader(kind=kind, name="+".join(part.name for part in parts), version=VERSION),
        at=at,
        grade_digest=evidence.task.grade_digest,
        judging=next((part.judging for part in parts if part.judging is not None), None),
    )


def _sentence(reason: str) -> str:
    """A reason that can stand beside another one."""
    return reason if reason.endswith((".", "!", "?")) else f"{reason}."


def _work(checkpoint: Checkpoint, evidence: Evidence, judge: Judge | None) -> Iterable[tuple[str, Callable[[], Part]]]:
    """(key, how it is judged) for every key that the checkpoint declares."""
    if checkpoint.grader == "judge":
        yield "judge", lambda: _judged(checkpoint, evidence, judge)
    elif checkpoint.grader == "pytest":
        yield "pytest", lambda: Part("pytest", "ungraded", f"ungraded: {NO_LEGACY}")
    elif checkpoint.grader == "hybrid":
        yield "hybrid", lambda: _hybrid(checkpoint, evidence, judge)
    else:
        if checkpoint.order or checkpoint.must_not or checkpoint.followup:
            yield "orders", lambda: _orders(checkpoint, evidence)
        if checkpoint.seen:
            yield "seen", lambda: Part("seen", *judge_seen(checkpoint.seen, evidence))
        if checkpoint.function:
            yield "function", lambda: _function(checkpoint.function or "", evidence)


def _guarded(name: str, work: Callable[[], Part], evidence: Evidence) -> Part:
    try:
        return work()
    except WorkbenchError as fault:
        # These build their own sentence and carry no chart text (tasks/errors.py).
        return Part(name, "error", f"The grader stopped: {fault}")
    except (Exception, SystemExit) as fault:  # noqa: BLE001 (a broken grader is an error verdict, never a fail or a crash)
        # An exception's message can quote the chart; its type and place cannot.
        return Part(name, "error", f"The grader stopped: {type(fault).__name__} at {_place(fault)}.")


def _place(fault: BaseException) -> str:
    """File and line: the task's own code where it was in it, else where the exception was raised."""
    frames = traceback.extract_tb(fault.__traceback__)
    place = next((frame for frame in reversed(frames) if frame.filename.endswith(f"/{CODE_FILE}")), frames[-1])
    return f"{place.filename.rsplit('/', 1)[-1]}, line {place.lineno}"


# ---- orders ---------------------------------------------------------------------------------------------------------


def _orders(checkpoint: Checkpoint, evidence: Evidence) -> Part:
    context = evidence.task.meta.context
    if context is None or context.practitioner is None or context.now is None or context.authority is None:
        return Part("orders", "ungraded", "ungraded: [context] does not yet give patient, practitioner, now, authority")
    if faults := _unreadable(checkpoint):
        # A row that cannot be read would never match and never forbid: grading would be off without anybody knowing.
        return Part("orders", "error", f"The declaration cannot be read: {'; '.join(faults)}.")
    judgement = judge_orders(
        checkpoint,
        OrderContext(
            patient=context.patient,
            practitioner=context.practitioner,
            now=context.now,
            authority=context.authority,
        ),
        evidence.written,
        evidence.chart,
        evidence.files,
    )
    return Part("orders", judgement.result, judgement.reason, tuple(judgement.cites))


@lru_cache(maxsize=1024)
def _unreadable(checkpoint: Checkpoint) -> tuple[str, ...]:
    return tuple(check_declaration(checkpoint))


# ---- judge ----------------------------------------------------------------------------------------------------------


def _judged(checkpoint: Checkpoint, evidence: Evidence, judge: Judge | None) -> Part:
    if judge is None:
        return Part("judge", "ungraded", f"ungraded: {NO_JUDGE}")
    return _part("judge", judge.rule(checkpoint, evidence, agent=evidence.agent))


def _part(name: str, ruling: Ruling) -> Part:
    return Part(name, ruling.result, ruling.reason, ruling.cites, ruling.judging)


# ---- functions ------------------------------------------------------------------------------------------------------


def _function(name: str, evidence: Evidence) -> Part:
    ran = _run_function("function", name, evidence)
    if isinstance(ran, Part):
        return ran
    if not isinstance(ran.answer, Judgement):
        return Part(
            ran.part,
            "error",
            f"The function {name} returned {ran.returned}, not passed(), partial() or failed().",
        )
    return Part(ran.part, ran.answer.result, ran.answer.reason, ran.answer.cites)


def _hybrid(checkpoint: Checkpoint, evidence: Evidence, judge: Judge | None) -> Part:
    by_model = checkpoint.extract is not None and checkpoint.extract.pattern is None
    if by_model and judge is None:
        return Part("hybrid", "ungraded", f"ungraded: {NO_JUDGE}")
    truth_name = checkpoint.truth or ""
    truth: Truth | None = None
    part = "hybrid"
    if truth_name in functions(evidence.task.code or ""):
        ran = _run_function("hybrid", truth_name, evidence)
        if isinstance(ran, Part):
            return ran
        if not isinstance(ran.answer, Truth):
            return Part(
                ran.part, "error", f"The function {truth_name} returned {ran.returned}, not Truth(value, unit)."
            )
        truth, part = ran.answer, ran.part
    if judge is None or not by_model:
        judgement = judge_value(checkpoint, evidence, truth)
        return Part(part, judgement.result, judgement.reason, judgement.cites)
    ruling = judge.read_value(checkpoint, evidence, agent_value(checkpoint, evidence, truth).unit, agent=evidence.agent)
    if ruling.result != "pass":
        return _part(part, ruling)
    written = [(one.quote, one.number, one.unit) for one in ruling.values]
    judgement = judge_value(checkpoint, evidence, truth, written)
    return Part(part, judgement.result, judgement.reason, judgement.cites, ruling.judging)


class Ran(NamedTuple):
    """What a function answered; `part` says where it ran: `function`, `function[kernel]`, `function[process]`."""

    part: str
    answer: object
    returned: str


def _run_function(part: str, name: str, evidence: Evidence) -> Ran | Part:
    """The answer of a function of checkpoints.py: here if it is our own code, else in the sandbox.

    A function that ends or is ended without an answer is an error of this checkpoint alone; where the sandbox cannot
    hold it, it is not run.
    """
    if _may_run(evidence):
        answer = call_function(name, evidence)
        return Ran(part, answer, type(answer).__name__)
    try:
        box = sandbox.configured()
    except sandbox.SandboxUnavailable as fault:
        return Part(part, "ungraded", f"ungraded: {fault}")
    part = f"{part}[{box.mode}]"
    try:
        said = box.call(name, evidence)
    except sandbox.SandboxUnavailable as fault:
        return Part(part, "ungraded", f"ungraded: {fault}")
    except sandbox.SandboxFault as fault:
        return Part(part, "error", f"The function {name} gave no answer: {fault}.")
    return Ran(part, said, said if isinstance(said, str) else type(said).__name__)


def _code(evidence: Evidence) -> bytes:
    data = evidence.task.files.get(CODE_FILE)
    return data if data is not None else (evidence.task.code or "").encode("utf-8")


def _may_run(evidence: Evidence) -> bool:
    return is_trusted(evidence.task.id, _code(evidence))


def call_function(name: str, evidence: Evidence) -> object:
    """The answer of a trusted function of checkpoints.py, run in a fresh namespace.

    Raises LookupError where the code has no such function, and whatever the function raises. The caller has made sure
    that the code is trusted.
    """
    namespace: dict[str, Any] = {"__name__": "checkpoints"}
    exec(_compiled(_code(evidence), evidence.task.id), namespace)  # noqa: S102 (our own shipped code, by hash)
    function = namespace.get(name)
    if not callable(function):
        raise LookupError(name)
    return function(evidence)


@lru_cache(maxsize=256)
def _compiled(code: bytes, task_id: str) -> CodeType:
    return compile(code, f"{task_id}/{CODE_FILE}", "exec", dont_inherit=True)
