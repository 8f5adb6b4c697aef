"""The stored runs of a workspace as rows and tables, kept as long as the files behind them stay the same. No page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from graders.report import Cell, TrialRow, cells, trial_rows
from tasks.stored import Batch, batches

Print = tuple[int, int, int]


def fingerprint(batch: Batch) -> Print:
    """(files, newest change in ns, bytes) of a batch's outcomes, verdicts and plan: changes when a result does.

    Walks the folders by scandir: 3,600 trials take about a tenth of a second.
    """
    count = newest = size = 0
    stack = [str(batch.path)]
    while stack:
        with os.scandir(stack.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != "workspace":
                        stack.append(entry.path)
                elif entry.name in ("outcome.json", "verdicts.jsonl", "plan.jsonl"):
                    state = entry.stat(follow_symlinks=False)
                    count, newest, size = count + 1, max(newest, state.st_mtime_ns), size + state.st_size
    return count, newest, size


def known(runs: Path) -> list[Batch]:
    """The batches, newest first."""
    return list(reversed(batches(runs)))


def rows(batch: Batch) -> list[TrialRow]:
    """A row a trial, as reports count it."""
    return trial_rows([batch])


@dataclass(frozen=True)
class AgentLine:
    """One agent over all its tasks in the chosen batches: counts, and nothing estimated from them."""

    agent: str
    tasks: int
    attempted: int
    graded: int
    ungraded: int
    invalid: int
    passed: int
    critical_passed: int
    severe_harm_events: int

    @property
    def pass_rate(self) -> float | None:
        """passed / graded; None without a denominator."""
        return self.passed / self.graded if self.graded else None

    @property
    def strict_rate(self) -> float | None:
        """passed / attempted: invalid and ungraded count as not passed; None without a denominator."""
        return self.passed / self.attempted if self.attempted else None


def by_agent(found: Sequence[Cell]) -> list[AgentLine]:
    """A line an agent, the one with the most passed first. Cells of one agent must share their settings."""
    groups: dict[str, list[Cell]] = {}
    for cell in found:
        groups.setdefault(cell.agent, []).append(cell)
    lines = [
        AgentLine(
            agent=agent,
            tasks=len({cell.task for cell in group}),
            attempted=sum(cell.attempted for cell in group),
            graded=sum(cell.graded for cell in group),
            ungraded=sum(cell.ungraded for cell in group),
            invalid=sum(cell.invalid for cell in group),
            passed=sum(cell.passed for cell in group),
            critical_passed=sum(cell.critical_passed for cell in group),
            severe_harm_events=sum(cell.severe_harm_events for cell in group),
        )
        for agent, group in groups.items()
    ]
    return sorted(lines, key=lambda line: (-(line.pass_rate or 0.0), line.agent))


def counted(every: Iterable[TrialRow]) -> list[Cell]:
    """Tasks x agents with their denominators (graders.report)."""
    return cells(every)


def next_name(day: str, taken: Iterable[str]) -> str:
    """A batch's name for the day that is not taken: 2026-03-14-a, -b, ... -z, -aa."""
    names = set(taken)
    number = 0
    while True:
        letters, left = "", number
        while True:
            letters = chr(ord("a") + left % 26) + letters
            left = left // 26 - 1
            if left < 0:
                break
        if f"{day}-{letters}" not in names:
            return f"{day}-{letters}"
        number += 1


def current(found: Sequence[Cell], batch: Batch) -> tuple[list[Cell], list[Cell]]:
    """(the cells of each task's latest planned version, the others): versions are different tasks, never averaged."""
    planned = {
        (str(line.get("task")), str(line.get("agent"))): str(line.get("agent_digest"))
        for line in batch.plan()
        if line.get("kind") == "planned"
    }
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in found:
        groups.setdefault((cell.task, cell.agent), []).append(cell)
    kept, older = [], []
    for key, group in groups.items():
        ranked = sorted(group, key=lambda cell: (cell.agent_digest == planned.get(key), cell.attempted), reverse=True)
        kept.append(ranked[0])
        older += ranked[1:]
    return kept, older
