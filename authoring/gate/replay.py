"""Plans carried out in process: the real tools over a real session, without a trial's folder on the disk.

A step is a tool call as an agent would make it: write_file carries its content, later arguments may hold
`{{name.reference}}`. Reads before the first write are answered once for all replays of a task.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from graders.evidence import Evidence
from graders.grade import grade
from providers.base import ToolRequest
from runtime import ehr
from runtime.agent import run_agent
from runtime.agents import built_in
from runtime.clock import clock_of
from runtime.tools import Toolbox
from tasks.declarations import Checkpoint
from tasks.fhir.resources import dump_json, parse_json
from tasks.package import Task
from tasks.plans import Plan, filled
from tasks.stored import EventType
from tasks.toolnames import CREATE_TOOLS, READ_TOOLS, WRITE_FILE
from tasks.trials import Outcome, ToolCall, Verdict

_OUTPUT = "/workspace/output/"


@dataclass(frozen=True)
class Step:
    """One tool call. `save_as`: the name under which later steps know what it created."""

    tool: str
    arguments: dict[str, Any]
    save_as: str | None = None

    @property
    def creates(self) -> bool:
        return self.tool in CREATE_TOOLS

    @property
    def writes_file(self) -> bool:
        return self.tool == WRITE_FILE

    def changed(self, **arguments: Any) -> Step:
        """The step with other arguments; None takes one out."""
        merged = {key: value for key, value in (self.arguments | arguments).items() if value is not None}
        return Step(self.tool, merged, self.save_as)


def steps_of(plan: Plan) -> tuple[Step, ...]:
    """A plan's actions, each deliverable's text in its write_file."""
    made = []
    for action in plan.actions:
        arguments = dict(action.arguments)
        if action.tool == WRITE_FILE:
            arguments.pop("content_file", None)
            arguments["content"] = plan.content(action)
        made.append(Step(action.tool, arguments, action.save_as))
    return tuple(made)


@dataclass(frozen=True)
class Played:
    """What came of a replay. `references`: step number -> reference of what it created. `refused`: step -> error."""

    evidence: Evidence
    references: dict[int, str] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)


class Stage:
    """One task, on which plans are carried out. Each replay has its own session and its own files."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._reads: dict[tuple[str, str], ToolCall] = {}

    @cached_property
    def gradable(self) -> tuple[Checkpoint, ...]:
        """The checkpoints that can be graded without a model."""
        return tuple(one for one in self.task.checkpoints if one.grader not in ("judge", "pytest"))

    @cached_property
    def changeable(self) -> tuple[Checkpoint, ...]:
        """Those whose verdict depends on what was written, and not only on what was read."""

        def only_reads(one: Checkpoint) -> bool:
            return bool(one.seen) and not (one.order or one.must_not or one.followup or one.function)

        return tuple(one for one in self.gradable if not only_reads(one))

    def play(self, steps: Sequence[Step]) -> Played:
        """Carry out the steps. Raises EnvironmentFault where the session fails; a refused call is no error."""
        clock = clock_of(self.task)
        calls: list[ToolCall] = []
        saved: dict[str, str] = {}
        references: dict[int, str] = {}
        refused: dict[int, str] = {}
        with (
            tempfile.TemporaryDirectory(prefix="workbench-replay-") as folder,
            ehr.open(self.task.chart, now=clock.now) as session,
        ):
            output = Path(folder)
            box = Toolbox(session, output, now=clock.now)
            for place, step in enumerate(steps):
                call = self._call(box, step, saved, len(calls) + 1)
                calls.append(call)
                if call.error:
                    refused[place] = call.result
                elif step.creates:
                    body = parse_json(call.result)
                    references[place] = f"{body['resourceType']}/{body['id']}"
                if step.save_as:
                    saved[step.save_as] = references.get(place, f"refused-{step.save_as}")
            evidence = Evidence(self.task, self.task.chart, session.ledger, tuple(calls), _written(output))
        return Played(evidence, references, refused)

    def act(self, agent: str) -> tuple[Evidence, str]:
        """(what a built-in agent did, "" or why it ended otherwise than by itself). Nothing is put on the disk."""
        clock = clock_of(self.task)
        calls: list[ToolCall] = []

        def record(type: EventType, data: dict[str, Any]) -> None:
            if type == "tool":
                calls.append(ToolCall.model_validate(data))

        with (
            tempfile.TemporaryDirectory(prefix="workbench-replay-") as folder,
            ehr.open(self.task.chart, now=clock.now) as session,
        ):
            output = Path(folder)
            run = run_agent(
                built_in(agent, self.task),
                Toolbox(session, output, now=clock.now),
                instruction=self.task.instruction,
                record=record,
            )
            evidence = Evidence(self.task, self.task.chart, session.ledger, tuple(calls), _written(output))
        return evidence, "" if run.outcome is Outcome.finished else f"{run.outcome.value}: {run.detail}"

    def _call(self, box: Toolbox, step: Step, saved: dict[str, str], number: int) -> ToolCall:
        known = {name: saved.get(name, f"refused-{name}") for name in saved}
        arguments = step.arguments if step.writes_file else filled(step.arguments, _Saved(known))
        text = dump_json(arguments)
        key = (step.tool, text)
        before_writes = step.tool in READ_TOOLS and not box.session.ledger
        if before_writes and key in self._reads:
            return self._reads[key].model_copy(update={"n": number, "turn": number, "call_id": f"replay-{number}"})
        answered = box.answer(ToolRequest(f"replay-{number}", step.tool, text), number=number, turn=number)
        if before_writes:
            self._reads[key] = answered.call
        return answered.call

    def verdicts(self, played: Played, checkpoints: Sequence[Checkpoint] | None = None) -> dict[str, Verdict]:
        """Checkpoint -> verdict, of the gradable ones by default."""
        wanted = self.gradable if checkpoints is None else checkpoints
        return {verdict.checkpoint: verdict for verdict in grade(played.evidence, wanted)}


def _written(output: Path) -> dict[str, str]:
    """Path as the instruction gives it -> text, as a stored trial gives them."""
    return {
        _OUTPUT + path.relative_to(output).as_posix(): path.read_bytes().decode("utf-8", errors="replace")
        for path in sorted(output.rglob("*"))
        if path.is_file()
    }


class _Saved(dict[str, str]):
    """References by name; what a mutant left out leads to nothing, which the server will refuse."""

    def __missing__(self, key: str) -> str:
        return f"refused-{key}"
