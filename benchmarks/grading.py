"""Grading from the disk: 700 checkpoints of stored trials of the bundled tasks, in this process and in the sandbox.

Every pass begins with empty caches, as if each trial were another one. The parrot's note is a copy of the chart, some
hundred times as long as any note; it is timed apart.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from graders import sandbox, trust
from graders.evidence import Evidence
from graders.orders import reading, statements
from graders.planned import PlannedSource
from graders.regrade import regrade
from tasks.package import Task
from tasks.stored import Batch, StoredTrial

#: What the reference system grades in one pass over its 100 tasks, rounded up.
CHECKPOINTS = 700
TARGET_SECONDS = 10

Trials = Sequence[tuple[StoredTrial, Task]]


def main() -> None:
    """Run every built-in agent on the suite once, then grade the stored trials again and again."""
    with tempfile.TemporaryDirectory() as folder:
        place = {**os.environ, "WORKBENCH_WORKSPACE": folder}
        agents = [word for agent in ("oracle", "noop", "shotgun", "parrot") for word in ("--agent", agent)]
        run = [sys.executable, "-m", "runtime", "run", "--all", *agents, "--batch", "bench"]
        subprocess.run(run, env=place, check=True, capture_output=True)
        os.environ["WORKBENCH_WORKSPACE"] = folder
        batch = Batch(Path(folder) / "runs" / "bench")
        source = PlannedSource(batch)
        trials = [(trial, source.load(trial.key.task)) for trial in batch.trials()]
        usual = [one for one in trials if one[0].key.agent != "parrot"]
        copied = [one for one in trials if one[0].key.agent == "parrot"]
        for _, task in trials:
            assert task.chart.digest  # open and indexed, as in a batch

        busy = time.process_time()
        graded, passes, seconds = timed(usual, CHECKPOINTS)
        busy = time.process_time() - busy
        print(
            f"{graded} checkpoints of {passes * len(usual)} stored trials: {seconds:.2f} s, target {TARGET_SECONDS} s"
        )
        print(
            f"  {1000 * seconds / graded:.1f} ms a checkpoint; {seconds / TARGET_SECONDS:.0%} of the target; "
            f"{busy:.2f} s of processor"
        )

        started = time.perf_counter()
        for _ in range(passes):
            for trial, task in usual:
                Evidence.from_trial(task, trial)
        print(f"  {(time.perf_counter() - started) / seconds:.0%} of it reads the records")

        with_own = trust.shipped
        trust.shipped = dict  # type: ignore[assignment]  # as if no code had shipped
        try:
            first = time.perf_counter()
            timed(usual, 1)
            first = time.perf_counter() - first
            held_graded, held_passes, held = timed(usual, CHECKPOINTS)
        finally:
            trust.shipped = with_own
            sandbox.sandbox("kernel").close()
        calls = held_passes * sum(bool(checkpoint.function) for _, task in usual for checkpoint in task.checkpoints)
        print(
            f"{held_graded} checkpoints with their functions in the sandbox: {held:.2f} s, {held / seconds:.2f} times"
        )
        print(f"  {1000 * (held - seconds) / calls:.1f} ms more a call; the first pass, with the start, {first:.2f} s")

        graded, passes, seconds = timed(copied, 1)
        print(f"{graded} checkpoints of {passes * len(copied)} copied charts: {seconds:.2f} s")


def timed(trials: Trials, least: int) -> tuple[int, int, float]:
    """(verdicts, passes, seconds) of grading all trials until at least so many verdicts were given."""
    graded = passes = 0
    started = time.perf_counter()
    while graded < least:
        passes += 1
        reading._read_alone.cache_clear()
        statements.read_note.cache_clear()
        for trial, task in trials:
            graded += len(regrade(trial, task, dry_run=True).verdicts)
    return graded, passes, time.perf_counter() - started
