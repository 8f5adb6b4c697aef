"""A session on the tiny chart with its tools, and a model that says what a test tells it to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from providers.base import Message, ToolRequest, ToolSpec, Turn
from runtime import ehr
from runtime.tools import Toolbox
from tasks.fhir.chart import Chart
from tasks.trials import ToolCall, Usage
from tests.tasks.packages import chart as tiny_chart
from tests.tasks.packages import ndjson

NOW = datetime.fromisoformat("2025-03-14T08:30:00-05:00")
PATIENT = "Patient/p-7001"
PRACTITIONER = "Practitioner/d-20"


def chart_of(resources: list[dict[str, Any]]) -> Chart:
    """A chart of these resources."""
    return Chart.open({path.removeprefix("chart/"): data for path, data in ndjson(resources).items()})


@pytest.fixture(scope="session")
def chart() -> Chart:
    return chart_of(tiny_chart())


@pytest.fixture
def session(chart: Chart) -> Iterator[ehr.Session]:
    with ehr.open(chart, now=NOW) as opened:
        yield opened


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "workspace" / "output"


@pytest.fixture
def box(session: ehr.Session, output: Path) -> Toolbox:
    return Toolbox(session, output, now=NOW)


@dataclass
class Caller:
    """Calls tools by number, as the loop does."""

    box: Toolbox
    calls: list[ToolCall] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def __call__(self, tool: str, arguments: Mapping[str, Any] | str) -> Any:
        """The result as JSON."""
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        number = len(self.calls) + 1
        answered = self.box.answer(ToolRequest(f"c{number}", tool, text), number=number, turn=1)
        self.calls.append(answered.call)
        self.texts.append(answered.text)
        return json.loads(answered.call.result)


@pytest.fixture
def call(box: Toolbox) -> Caller:
    return Caller(box)


#: What a scripted model does in one turn: calls as (tool, arguments), or a whole turn.
Step = Turn | Sequence[tuple[str, Mapping[str, Any] | str]]


def turn(
    calls: Sequence[tuple[str, Mapping[str, Any] | str]] = (),
    *,
    stop: str = "",
    usage: Usage | None = None,
    text: str = "",
    prefix: str = "x",
) -> Turn:
    """A turn with these calls."""
    requests = tuple(
        ToolRequest(f"{prefix}-{n}", tool, arguments if isinstance(arguments, str) else json.dumps(arguments))
        for n, (tool, arguments) in enumerate(calls)
    )
    blocks = ({"type": "opaque", "signature": "sig", "text": text},)
    why: Any = stop or ("tools" if requests else "end")
    return Turn(blocks, requests, usage or Usage(cost=0.0), why, text=text, model="scripted-1")


@dataclass
class Scripted:
    """A model that plays a list of steps, or a function of the turn's number; ends when they do. Remembers messages."""

    steps: Sequence[Step] | Callable[[int], Step | Exception]
    name: str = "scripted"
    has_price: bool = True
    seen: list[tuple[Message, ...]] = field(default_factory=list)

    def turn(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Turn:
        self.seen.append(tuple(messages))
        number = len(self.seen) - 1
        if callable(self.steps):
            step = self.steps(number)
            if isinstance(step, Exception):
                raise step
        else:
            step = self.steps[number] if number < len(self.steps) else turn()
        return step if isinstance(step, Turn) else turn(step, prefix=f"t{number}")

    def close(self) -> None:
        """Nothing is open."""
