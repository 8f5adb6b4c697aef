"""What a trial adds beyond its tool calls: the oracle on each bundled task, beside the same calls made bare.

bare      the plan's calls through the tools on an open session: no loop, no record, no grading
trial     the whole trial: session, loop, every event on the disk, grading, outcome
recorded  the same without grading (a task without its checkpoints)
Ratios are of medians of interleaved runs in one process, so that the machine's load weighs on all alike.
"""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from providers.base import Message, ModelMessage, SystemMessage, ToolResult, ToolResults, UserMessage
from runtime import ehr
from runtime.agents import built_in
from runtime.clock import clock_of
from runtime.tools import Toolbox
from runtime.trial import run_trial
from tasks.package import SUITE, Task
from tasks.trials import TrialKey

REPEATS = 15


def bare(task: Task, output: Path) -> int:
    """The oracle's calls and nothing else; how many there were."""
    oracle = built_in("oracle", task)
    clock = clock_of(task)
    messages: list[Message] = [SystemMessage(""), UserMessage(task.instruction)]
    number = 0
    with ehr.open(task.chart, now=clock.now) as session:
        box = Toolbox(session, output, now=clock.now)
        while (turn := oracle.turn(messages, ())).calls:
            results = []
            for request in turn.calls:
                number += 1
                answered = box.answer(request, number=number, turn=number)
                results.append(ToolResult(request.id, answered.text, answered.call.error))
            messages += [ModelMessage(turn), ToolResults(tuple(results))]
    return number


def seconds(work: Callable[[], object]) -> float:
    """How long one run of `work` takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def measure(task: Task, root: Path) -> tuple[int, float, float, float]:
    """(tool calls, bare, recorded, trial): medians in seconds."""
    ungraded = dataclasses.replace(task, checkpoints=())
    calls = bare(task, root / "warm")
    times: dict[str, list[float]] = {"bare": [], "recorded": [], "trial": []}
    for run in range(1, REPEATS + 1):
        key = TrialKey(task=task.id, agent="oracle", run=run)
        times["bare"].append(seconds(lambda n=run: bare(task, root / f"bare-{n}")))  # type: ignore[misc]
        times["recorded"].append(seconds(lambda k=key: run_trial(ungraded, k, root / "recorded")))  # type: ignore[misc]
        times["trial"].append(seconds(lambda k=key: run_trial(task, k, root / "trial")))  # type: ignore[misc]
    middle = {name: statistics.median(found) for name, found in times.items()}
    return calls, middle["bare"], middle["recorded"], middle["trial"]


def main() -> None:
    """Print a row a task: calls, milliseconds, what is added a call, and the ratio."""
    print(
        f"{'task':32} {'calls':>5} {'bare ms':>8} {'recorded':>9} {'trial ms':>9} {'added/call':>11} {'trial/bare':>11}"
    )
    for id in SUITE.list():
        task = SUITE.load(id)
        if not task.plans:
            continue
        with tempfile.TemporaryDirectory() as folder:
            calls, alone, recorded, whole = measure(task, Path(folder))
        added = (whole - alone) / calls * 1000
        print(
            f"{id:32} {calls:>5} {alone * 1000:>8.1f} {recorded * 1000:>9.1f} {whole * 1000:>9.1f} "
            f"{added:>8.2f} ms {whole / alone:>10.1f}x"
        )


if __name__ == "__main__":
    main()
