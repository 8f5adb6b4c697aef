"""One trial: an agent on a task, in an EHR session of its own, recorded step by step and graded at the end.

Whatever happens becomes an outcome; the trial's folder is readable at every moment (tasks/stored.py).
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graders.evidence import Evidence
from graders.grade import grade
from graders.judge import Judge
from graders.report import DRAFT_FLAG
from providers.base import KeepsExchange, Model, ModelConfigError
from providers.exchange import EXCHANGE
from providers.pricing import add
from runtime import ehr
from runtime.agent import AgentRun, prompt_hash, run_agent
from runtime.agents import built_in, is_built_in
from runtime.clock import Clock, clock_of
from runtime.resume import CannotContinue, Earlier, turn_of
from runtime.resume import earlier as earlier_of
from runtime.tools import Toolbox
from tasks.errors import EnvironmentFault, SettingsError, UsageError, WorkbenchError
from tasks.manifest import Limits
from tasks.package import Task
from tasks.stored import EventType, StoredTrial, TrialWriter
from tasks.strict import Strict
from tasks.taxonomy import Profile
from tasks.trials import OUTCOMES, Outcome, TrialKey, TrialOutcome, Usage
from tasks.workspace import Workspace

#: Makes the model that an agent's name stands for, for one task. Raises ModelConfigError, UsageError.
ModelMaker = Callable[[str, Task], Model]


class Settings(Strict):
    """What all trials of a batch share, besides task and agent."""

    profile: Profile = "paper"
    backend: str = "embedded"
    limits: Limits = Limits()
    seed: int = 0


def make_model(agent: str, task: Task) -> Model:
    """The model behind an agent's name: a built-in agent, or a provider's model as provider/name, by workbench.toml.

    Raises UsageError for a name that is neither, ModelConfigError for a model that is not configured, has no key, or is
    not cleared for the task's data class.
    """
    if is_built_in(agent) or "/" not in agent:
        return built_in(agent, task)
    from providers import chat

    workspace = Workspace.find()
    configured = workspace.settings.models.get(agent)
    if configured is None:
        raise ModelConfigError(
            "this model is not configured.", where=agent, remedy=f'Add [model."{agent}"] to {workspace.settings_file}.'
        )
    return chat(agent, configured, data_class=task.meta.data_class, slots=workspace.cache / "slots")


@dataclass
class _Record:
    """Puts every event on disk, each new ledger entry before the event of the call that made it, and counts."""

    writer: TrialWriter
    session: ehr.Session | None = None
    turns: int = 0
    calls: int = 0
    written: int = 0
    usage: Usage = field(default_factory=lambda: Usage(cost=0.0))

    @classmethod
    def after(cls, writer: TrialWriter, earlier: Earlier | None) -> _Record:
        """A record that begins where an earlier attempt ended."""
        record = cls(writer)
        if earlier is not None:
            turns = [turn_of(event.data) for event in earlier.events if event.type == "model"]
            record.turns, record.calls, record.written = len(turns), len(earlier.calls), len(earlier.writes)
            for turn in turns:
                record.usage = add(record.usage, turn.usage)
        return record

    def __call__(self, type: EventType, data: dict[str, Any]) -> None:
        self.ledger()
        self.turns += type == "model"
        self.calls += type == "tool"
        self.writer.event(type, data)
        if type == "model":
            self.usage = add(self.usage, Usage.model_validate(data["usage"]))

    def ledger(self) -> None:
        """Write what the session's ledger holds beyond what is on disk."""
        if self.session is not None:
            for write in self.session.ledger[self.written :]:
                self.writer.write(write)
                self.written += 1


def run_trial(
    task: Task,
    key: TrialKey,
    batch: Path,
    settings: Settings | None = None,
    *,
    model: Model | None = None,
    maker: ModelMaker = make_model,
    cancelled: Callable[[], bool] = lambda: False,
    after: StoredTrial | None = None,
    ids: Sequence[str] = (),
) -> TrialOutcome:
    """Run one attempt and leave it in `batch` (a folder of runs/). `model` overrules what `maker` makes of the key.

    `after`: an attempt to go on from, inside its conversation (runtime/resume.py); where its record does not allow
    that, the trial starts anew and a flag says why. `ids`: the ids of the next resources created, for a replay.

    Raises UsageError where the attempt is on the disk already, PackageError where the task's files changed since it was
    loaded, and EnvironmentFault where the outcome itself cannot be written; everything else is an outcome.
    """
    settings = settings or Settings()
    # Before anything runs: a task edited during the trial must not change what the trial says that it ran on.
    agent_digest, grade_digest = task.agent_digest, task.grade_digest
    started, began = datetime.now(UTC), time.monotonic()
    earlier, flags = _earlier(after, task, settings)
    with TrialWriter(batch, key, carried=earlier.carried if earlier else None) as writer:
        record = _Record.after(writer, earlier)
        clock: Clock | None = None
        try:
            clock = clock_of(task)
            run = _run(task, key, settings, writer, record, clock, model, maker, cancelled, earlier, ids)
        except (ModelConfigError, UsageError) as fault:
            run = _stopped(Outcome.config_error, fault, record)
        except EnvironmentFault as fault:
            run = _stopped(Outcome.environment_error, fault, record)
        except WorkbenchError as fault:
            run = _stopped(Outcome.config_error, fault, record)
        except Exception as fault:  # noqa: BLE001 (a bug of ours must not lose the trial, nor count against the agent)
            run = _stopped(Outcome.internal_error, fault, record)
        wall = time.monotonic() - began
        flags += [*run.flags, *_task_flags(task, clock)]
        if OUTCOMES[run.outcome].grade:
            flags += _graded(task, writer)
        outcome = TrialOutcome(
            key=key,
            outcome=run.outcome,
            detail=run.detail,
            turns=run.turns,
            calls=run.calls,
            usage=run.usage,
            seconds=round(max(0.0, wall - run.waited) + (earlier.own_seconds if earlier else 0.0), 6),
            wall_seconds=round(wall + (earlier.wall_seconds if earlier else 0.0), 6),
            started=started,
            ended=datetime.now(UTC),
            flags=tuple(flags),
            data_class=task.meta.data_class,
            agent_digest=agent_digest,
            grade_digest=grade_digest,
            continues=earlier.trial.key.attempt if earlier else None,
        )
        writer.finish(outcome)
    return outcome


def _run(
    task: Task,
    key: TrialKey,
    settings: Settings,
    writer: TrialWriter,
    record: _Record,
    clock: Clock,
    model: Model | None,
    maker: ModelMaker,
    cancelled: Callable[[], bool],
    earlier: Earlier | None,
    ids: Sequence[str],
) -> AgentRun:
    with ExitStack() as opened:
        if model is None:
            model = maker(key.agent, task)
            opened.callback(model.close)
        session = opened.enter_context(ehr.open(task.chart, backend=settings.backend, now=clock.now))
        if isinstance(session, ehr.Restorable):
            session.restore(earlier.writes if earlier else ())
            session.name_next(ids)
        record.session = session
        toolbox = Toolbox(session, writer.workspace / "output", now=clock.now, profile=settings.profile)
        toolbox.rewrite(earlier.calls if earlier else ())
        if isinstance(model, KeepsExchange):
            model.keep_exchange(writer.path / EXCHANGE)
        run = run_agent(
            model,
            toolbox,
            instruction=task.instruction,
            record=record,
            limits=stricter(task.meta.limits, settings.limits),
            profile=settings.profile,
            cancelled=cancelled,
            task_digest=task.agent_digest,
            earlier=earlier,
        )
        record.ledger()
    return run


def _earlier(after: StoredTrial | None, task: Task, settings: Settings) -> tuple[Earlier | None, list[str]]:
    """What can be gone on with, or a flag that says why nothing can."""
    if after is None:
        return None, []
    try:
        found = earlier_of(after, task, profile=settings.profile, backend=settings.backend, prompt_sha256=prompt_hash())
    except CannotContinue as fault:
        return None, [f"attempt {after.key.attempt} could not be gone on with: {fault.what}"]
    return found, []


def stricter(one: Limits, other: Limits) -> Limits:
    """The smaller of the two limits, key by key; None where neither sets one."""
    merged = {}
    for name in Limits.model_fields:
        given = [value for limits in (one, other) if (value := getattr(limits, name)) is not None]
        merged[name] = min(given) if given else None
    return Limits(**merged)


def _stopped(outcome: Outcome, fault: Exception, record: _Record) -> AgentRun:
    """An ending outside the loop. A message of our own tree carries no chart text; any other exception's might."""
    detail = str(fault) if isinstance(fault, WorkbenchError) else _place(fault)
    record("error", {"outcome": outcome.value, "detail": detail})
    return AgentRun(outcome, detail, record.turns, record.calls, record.usage, 0.0, ())


def _place(fault: Exception) -> str:
    frame = traceback.extract_tb(fault.__traceback__)[-1]
    return f"{type(fault).__name__} at {Path(frame.filename).name}, line {frame.lineno}"


def _graded(task: Task, writer: TrialWriter) -> list[str]:
    """Grade what is on the disk, as a regrade will read it: the same evidence, so the same verdicts."""
    flags = []
    judge = None
    try:
        judge = Judge.configured(Workspace.find())
    except SettingsError as fault:
        flags.append(f"no judge: {fault}")
    try:
        writer.verdicts(grade(Evidence.from_trial(task, writer.stored), judge=judge))
    except EnvironmentFault:
        raise
    except Exception as fault:  # noqa: BLE001 (the trial is whole and can be graded again; losing it would be worse)
        flags.append(f"grading stopped: {_place(fault)}")
    finally:
        if judge is not None:
            judge.close()
    return flags


def _task_flags(task: Task, clock: Clock | None) -> list[str]:
    flags = []
    if task.is_draft:
        flags.append(DRAFT_FLAG)
    context = task.meta.context
    if clock is not None and (context is None or context.now is None):
        flags.append(f"clock: {clock.now.isoformat(timespec='seconds')} = {clock.source}")
    return flags
