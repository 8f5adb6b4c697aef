"""How long results take over 3,600 stored trials (100 tasks, 12 agents, 3 runs): `python -m benchmarks results`.

Read cold (every trial from the disk) and warm (from the cache, as a page does), then every frame and the static page.
The target is the Results page's: what it needs in well under a second.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.pages import write_tasks, write_trials
from graders import frames, report_page
from graders.facts import comparable, trial_facts
from tasks.package import FolderSource
from tasks.stored import batches

ROUNDS = 10


def timed(work: Callable[[], object], rounds: int = ROUNDS) -> tuple[float, float]:
    """(median, 95th percentile) of the seconds that it takes."""
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return statistics.median(took), sorted(took)[max(0, round(0.95 * len(took)) - 1)]


def main() -> None:
    """Print a line a step."""
    with tempfile.TemporaryDirectory() as folder:
        tasks, workspace, cache = Path(folder, "tasks"), Path(folder, "workspace"), Path(folder, "cache")
        ids = write_tasks(tasks, 100, 1000)
        write_trials(workspace, tasks, ids, 3, 10)
        source, found = FolderSource(tasks), batches(workspace / "runs")
        began = time.perf_counter()
        facts = trial_facts(found, source, cache=cache)
        print(f"{len(facts)} trials read cold: {time.perf_counter() - began:.2f} s")
        chosen = comparable(facts)
        steps: dict[str, Callable[[], object]] = {
            "read warm": lambda: trial_facts(found, source, cache=cache),
            "agents": lambda: frames.agents(chosen),
            "figures": lambda: frames.figures(chosen),
            "comparisons": lambda: frames.comparisons(chosen),
            "heat": lambda: frames.heat(chosen),
            "failure shares": lambda: frames.failure_shares(chosen),
            "by group": lambda: frames.by_part(chosen, "group"),
            "first failures": lambda: frames.first_failures(chosen),
            "static page": lambda: report_page.page("Benchmark", chosen),
        }
        for name, work in steps.items():
            median, late = timed(work)
            print(f"{name}: {1000 * median:.0f} ms median, {1000 * late:.0f} ms p95")


if __name__ == "__main__":
    main()
