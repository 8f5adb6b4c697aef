"""Grading from the disk: 700 checkpoints of stored trials of the bundled tasks, beside only reading the records."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from graders.evidence import Evidence
from graders.planned import PlannedSource
from graders.regrade import regrade
from tasks.stored import Batch

#: What the reference system grades in one pass over its 100 tasks, rounded up.
CHECKPOINTS = 700


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
        for _, task in trials:
            assert task.chart.digest  # open and indexed, as in a batch
        graded, started = 0, time.perf_counter()
        while graded < CHECKPOINTS:
            for trial, task in trials:
                graded += len(regrade(trial, task, dry_run=True).verdicts)
        seconds = time.perf_counter() - started
        passes = graded // sum(len(task.checkpoints) for _, task in trials)
        started = time.perf_counter()
        for _ in range(passes):
            for trial, task in trials:
                Evidence.from_trial(task, trial)
        reading = time.perf_counter() - started
    print(f"{graded} checkpoints of {passes * len(trials)} stored trials: {seconds:.2f} s, target 10 s")
    print(f"  {1000 * seconds / graded:.1f} ms a checkpoint; {reading / seconds:.0%} of it reads the records")
