"""Results as DataFrames: what `graders report` prints and the Results page draws. Each function takes a `facts.Set`.

Rates come from graders/metrics.py under their formulas. `basis`: "graded" counts the graded runs; "strict" every
attempted one, so that invalid and ungraded runs are runs that did not pass. A rate without a denominator is NaN.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

from graders.facts import CheckpointFact, Set, TrialFact
from graders.intervals import Interval, compare, detectable_difference
from graders.metrics import (
    FEWEST_RANKED,
    Counts,
    all_conventions,
    estimate,
    events_per_task,
    pass_at_1,
    ranks,
    share,
    spread_over_runs,
)
from graders.report import TrialRow
from graders.steps import first_failed

if TYPE_CHECKING:
    import pandas as pd

Basis = Literal["graded", "strict"]
Part = Literal["group", "workflow", "specialty", "task"]
FAILED = ("fail", "partial")


def counts_by_task(facts: Iterable[TrialFact], *, basis: Basis = "graded", critical: bool = False) -> dict[str, Counts]:
    """Task -> n and c of one agent. `critical`: by the critical checkpoints alone, over the tasks that have one."""
    runs: dict[str, list[bool]] = {}
    for fact in facts:
        result = fact.row.critical if critical else fact.row.result
        if result in ("pass", "fail"):
            runs.setdefault(fact.row.task, []).append(result == "pass")
        elif basis == "strict" and fact.row.counts_as != "not attempted" and result != "none":
            runs.setdefault(fact.row.task, []).append(False)
    return {task: Counts(len(found), sum(found)) for task, found in sorted(runs.items())}


def _of_agent(found: Set) -> dict[str, list[TrialFact]]:
    grouped: dict[str, list[TrialFact]] = {agent: [] for agent in found.agents}
    for fact in found.facts:
        grouped[fact.row.agent].append(fact)
    return grouped


def _ends(interval: Interval | None) -> dict[str, float | None]:
    return {"low": interval.low if interval else None, "high": interval.high if interval else None}


def _frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], floats: Sequence[str] = ()) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame([dict(row) for row in rows], columns=list(columns))
    return frame.astype(dict.fromkeys(floats, float))


# ---- agents ---------------------------------------------------------------------------------------------------------

_AGENTS = (
    "agent", "rank", "pass_at_1", "low", "high", "sd_over_runs", "tasks", "attempted", "graded", "ungraded", "invalid",
    "open", "strict", "critical_pass", "severe_harm_per_task", "severe_harm_events", "calls", "turns", "tokens_in",
    "tokens_out", "cost", "judge_cost", "unequal_runs", "draft",
)  # fmt: skip


def agents(found: Set) -> pd.DataFrame:
    """A row an agent: pass@1 (c/n) with its interval over tasks and the spread over runs, denominators, harm, cost.

    `rank` is missing under 20 tasks. `calls`, `turns`, tokens: means of a graded run. `cost`, `judge_cost`: sums in
    USD, NaN where a part is unknown. `strict`: pass@1 over all attempted runs.
    """
    rows = []
    values: dict[str, float | None] = {}
    for agent, facts in _of_agent(found).items():
        counts = counts_by_task(facts)
        one = pass_at_1(counts.values())
        values[agent] = one.value
        graded = [fact for fact in facts if fact.row.result in ("pass", "fail")]
        attempted = [fact for fact in facts if fact.row.counts_as != "not attempted"]
        spread = spread_over_runs({(f.row.task, f.row.run): f.row.result == "pass" for f in graded})
        harm, _ = _harm(graded)
        rows.append(
            {
                "agent": agent,
                "pass_at_1": one.value,
                **_ends(one.interval),
                "sd_over_runs": spread.sd,
                "tasks": one.tasks,
                "attempted": len(attempted),
                "graded": len(graded),
                "ungraded": sum(fact.row.result == "ungraded" for fact in facts),
                "invalid": sum(fact.row.counts_as == "invalid" for fact in facts),
                "open": len(facts) - len(attempted),
                "strict": pass_at_1(counts_by_task(facts, basis="strict").values()).value,
                "critical_pass": pass_at_1(counts_by_task(facts, critical=True).values()).value,
                "severe_harm_per_task": harm,
                "severe_harm_events": sum(fact.row.severe_harm_events for fact in graded),
                "calls": _mean([fact.calls for fact in graded]),
                "turns": _mean([fact.turns for fact in graded]),
                "tokens_in": _mean([fact.tokens_in for fact in graded]),
                "tokens_out": _mean([fact.tokens_out for fact in graded]),
                "cost": _sum([fact.cost for fact in attempted]),
                "judge_cost": _sum([fact.judge_cost for fact in attempted]),
                "unequal_runs": one.unequal,
                "draft": any(fact.row.draft for fact in facts),
            }
        )
    placed = ranks(values, len(found.tasks))
    for row in rows:
        row["rank"] = placed[str(row["agent"])]
    rows.sort(key=lambda row: (-(values[str(row["agent"])] or 0.0) if row["rank"] else 0.0, row["agent"]))
    floats = [
        "rank", "pass_at_1", "low", "high", "sd_over_runs", "strict", "critical_pass", "severe_harm_per_task", "calls",
        "turns", "tokens_in", "tokens_out", "cost", "judge_cost",
    ]  # fmt: skip
    return _frame(rows, _AGENTS, floats)


def _harm(graded: Sequence[TrialFact]) -> tuple[float | None, Interval | None]:
    events: dict[str, list[int]] = {}
    most: dict[str, int] = {}
    for fact in graded:
        events.setdefault(fact.row.task, []).append(fact.row.severe_harm_events)
        most[fact.row.task] = fact.severe_most
    return events_per_task(list(events.values()), [most[task] for task in events])


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


_FIGURES = ("agent", "basis", "figure", "formula", "k", "value", "low", "high", "tasks", "left_out", "unequal_runs")


def figures(found: Set, k: int = 3) -> pd.DataFrame:
    """A row an agent and figure, every convention by its formula: pass@1, pass@k and pass^k both ways, strict pass@1,
    critical-pass, severe-harm events a task. `left_out`: tasks with fewer than k runs, which give nothing."""
    rows: list[dict[str, Any]] = []
    for agent, facts in _of_agent(found).items():
        counts = list(counts_by_task(facts).values())
        strict = list(counts_by_task(facts, basis="strict").values())
        critical = list(counts_by_task(facts, critical=True).values())
        named = [("graded", one) for one in all_conventions(counts, k)]
        named.append(("strict", estimate("pass@1 strict", "c/n", 1, strict)))
        named.append(("graded", estimate("critical-pass@1", "c/n", 1, critical)))
        for basis, one in named:
            rows.append(
                {
                    "agent": agent,
                    "basis": basis,
                    "figure": one.name,
                    "formula": one.formula,
                    "k": one.k,
                    "value": one.value,
                    **_ends(one.interval),
                    "tasks": one.tasks,
                    "left_out": one.left_out,
                    "unequal_runs": one.unequal,
                }
            )
        graded = [fact for fact in facts if fact.row.result in ("pass", "fail")]
        value, interval = _harm(graded)
        rows.append(
            {
                "agent": agent,
                "basis": "graded",
                "figure": "severe-harm events a task",
                "formula": "events/n",
                "k": 1,
                "value": value,
                **_ends(interval),
                "tasks": len({fact.row.task for fact in graded}),
                "left_out": 0,
                "unequal_runs": len({one.n for one in counts}) > 1,
            }
        )
    return _frame(rows, _FIGURES, ["value", "low", "high"])


_COMPARED = (
    "first", "second", "tasks", "first_rate", "second_rate", "difference", "low", "high", "p", "detectable", "better",
    "worse",
)  # fmt: skip


def comparisons(found: Set, *, seed: int = 0) -> pd.DataFrame:
    """A row a pair of agents, over the tasks that both have graded runs on: the difference of their pass@1 with its
    interval, the p of the sign-flip test over tasks, and the smallest difference that this set would find."""
    rates = {
        agent: {task: one.c / one.n for task, one in counts_by_task(facts).items()}
        for agent, facts in _of_agent(found).items()
    }
    rows = []
    for first, second in combinations(found.agents, 2):
        shared = sorted(set(rates[first]) & set(rates[second]))
        one = compare([rates[first][task] for task in shared], [rates[second][task] for task in shared], seed=seed)
        if one is None:
            continue
        rows.append(
            {
                "first": first,
                "second": second,
                "tasks": one.tasks,
                "first_rate": one.first,
                "second_rate": one.second,
                "difference": one.difference,
                **_ends(one.interval),
                "p": one.p,
                "detectable": one.detectable,
                "better": one.better,
                "worse": one.worse,
            }
        )
    return _frame(rows, _COMPARED, ["first_rate", "second_rate", "difference", "low", "high", "p", "detectable"])


def detectable(found: Set) -> float:
    """The smallest difference of two agents that a set of so many tasks finds, by the planning value, 0 to 1."""
    return detectable_difference(len(found.tasks))


# ---- parts ----------------------------------------------------------------------------------------------------------


def by_part(found: Set, part: Part) -> pd.DataFrame:
    """A row an agent and part (group, workflow, specialty, task) with pass@1, its interval, and no rank under 20 tasks.

    Columns: part, agent, tasks, runs, value, low, high, rank, ranked (whether the part has enough tasks).
    """
    rows: list[dict[str, Any]] = []
    for name in sorted({_part(fact, part) for fact in found.facts}):
        inside = found.only(lambda fact, name=name: _part(fact, part) == name)  # type: ignore[misc]
        made: list[dict[str, Any]] = []
        for agent, facts in _of_agent(inside).items():
            counts = counts_by_task(facts).values()
            one = pass_at_1(counts)
            runs = sum(count.n for count in counts)
            made.append(
                {"part": name, "agent": agent, "tasks": one.tasks, "runs": runs, "value": one.value}
                | _ends(one.interval)
            )
        placed = ranks({row["agent"]: row["value"] for row in made}, len(inside.tasks))
        rows += [row | {"rank": placed[row["agent"]], "ranked": len(inside.tasks) >= FEWEST_RANKED} for row in made]
    columns = ("part", "agent", "tasks", "runs", "value", "low", "high", "rank", "ranked")
    return _frame(rows, columns, ["value", "low", "high", "rank"])


def _part(fact: TrialFact, part: Part) -> str:
    named = {"group": fact.group, "workflow": fact.workflow, "specialty": fact.specialty, "task": fact.row.task}
    return named[part] or "unknown"


def heat(found: Set) -> pd.DataFrame:
    """A row a task and agent: passed, graded, attempted, critical passes, severe-harm events."""
    rows: dict[tuple[str, str], Counter[str]] = {}
    for fact in found.facts:
        cell = rows.setdefault((fact.row.task, fact.row.agent), Counter())
        cell["passed"] += fact.row.result == "pass"
        cell["graded"] += fact.row.result in ("pass", "fail")
        cell["attempted"] += fact.row.counts_as != "not attempted"
        cell["critical_passed"] += fact.row.critical == "pass"
        cell["severe_harm_events"] += fact.row.severe_harm_events
    columns = ("task", "agent", "passed", "graded", "attempted", "critical_passed", "severe_harm_events")
    return _frame([{"task": task, "agent": agent, **cell} for (task, agent), cell in sorted(rows.items())], columns)


# ---- failures -------------------------------------------------------------------------------------------------------


def failure_shares(found: Set, by: Literal["capability", "kind", "criticality"] = "capability") -> pd.DataFrame:
    """Of all failed checkpoints of an agent's graded runs (fail or partial; errors are none), the share of each
    capability, or of each kind of reasoning. Columns: agent, part, failed, of, share, low, high, failed_rate."""
    rows = []
    for agent, facts in _of_agent(found).items():
        failed: dict[str, Counter[str]] = {}
        seen: Counter[str] = Counter()
        for fact in facts:
            if fact.row.result not in ("pass", "fail"):
                continue
            task = failed.setdefault(fact.row.task, Counter())
            for one in fact.checkpoints:
                part = getattr(one, by)
                if part and one.result in ("pass", *FAILED):
                    seen[part] += 1
                    task[part] += one.result in FAILED
        totals = [sum(task.values()) for task in failed.values()]
        for part in sorted(seen):
            parts = [task[part] for task in failed.values()]
            value, interval = share(part, parts, totals)
            row = {"agent": agent, "part": part, "failed": sum(parts), "of": sum(totals), "share": value}
            rows.append(row | _ends(interval) | {"failed_rate": sum(parts) / seen[part]})
    columns = ("agent", "part", "failed", "of", "share", "low", "high", "failed_rate")
    return _frame(rows, columns, ["share", "low", "high", "failed_rate"])


def first_failures(found: Set) -> pd.DataFrame:
    """How often each checkpoint is the first, in clinical order, that a run failed. Columns: agent, task, checkpoint,
    title, capability, runs."""
    rows: Counter[tuple[str, str, str, str, str]] = Counter()
    for fact in found.facts:
        first = first_failed(fact.checkpoints) if fact.row.result == "fail" else None
        if first is not None:
            rows[(fact.row.agent, fact.row.task, first.checkpoint, first.title, first.capability)] += 1
    columns = ("agent", "task", "checkpoint", "title", "capability", "runs")
    return _frame([dict(zip(columns, (*key, runs), strict=True)) for key, runs in sorted(rows.items())], columns)


def causes(found: Set) -> pd.DataFrame:
    """What persons said was the earliest cause of a failure. Columns: agent, cause, verdicts."""
    rows = Counter((fact.row.agent, one.cause) for fact in found.facts for one in fact.checkpoints if one.cause)
    columns = ("agent", "cause", "verdicts")
    return _frame([{"agent": a, "cause": c, "verdicts": n} for (a, c), n in sorted(rows.items())], columns)


# ---- judge ----------------------------------------------------------------------------------------------------------


def judges(found: Set) -> pd.DataFrame:
    """A row a judge, capability and kind: verdicts, votes, how many verdicts were not unanimous, the flip rate (votes
    besides the commonest one / votes, of verdicts with two votes or more), errors. One vote shows no flips."""
    rows: dict[tuple[str, str, str], Counter[str]] = {}
    for fact in found.facts:
        for one in fact.checkpoints:
            if not one.judge:
                continue
            cell = rows.setdefault((one.judge, one.capability, one.kind), Counter())
            cell["verdicts"] += 1
            cell["errors"] += one.result == "error"
            cell["needs_review"] += one.result == "ungraded"
            if one.votes > 1:
                cell["voted"] += 1
                cell["votes"] += one.votes
                cell["contested"] += one.dissenting > 0
                cell["dissenting"] += one.dissenting
    made = [
        {"judge": judge, "capability": capability, "kind": kind, **cell,
         "flip_rate": cell["dissenting"] / cell["votes"] if cell["votes"] else None}
        for (judge, capability, kind), cell in sorted(rows.items())
    ]  # fmt: skip
    columns = (
        "judge", "capability", "kind", "verdicts", "errors", "needs_review", "voted", "contested", "votes",
        "dissenting", "flip_rate",
    )  # fmt: skip
    return _frame([dict.fromkeys(columns[3:10], 0) | row for row in made], columns, ["flip_rate"])


# ---- rows -----------------------------------------------------------------------------------------------------------


def trials(found: Set) -> pd.DataFrame:
    """A row a trial, with everything but its checkpoints."""
    rows = []
    for fact in found.facts:
        row = asdict(fact)
        del row["checkpoints"]
        own = row.pop("row")
        rows.append({**own, "outcome": str(own["outcome"]), **row})
    own_columns = [one.name for one in fields(TrialFact) if one.name not in ("row", "checkpoints")]
    columns = [*(one.name for one in fields(TrialRow)), *own_columns]
    return _frame(rows, columns, ["cost", "judge_cost"])


def verdicts(found: Set) -> pd.DataFrame:
    """A row a checkpoint of a trial, by the verdict that counts."""
    rows = [
        {"batch": fact.row.batch, "task": fact.row.task, "agent": fact.row.agent, "run": fact.row.run, **asdict(one)}
        for fact in found.facts
        for one in fact.checkpoints
    ]
    columns = ("batch", "task", "agent", "run", *(one.name for one in fields(CheckpointFact)))
    return _frame(rows, columns)
