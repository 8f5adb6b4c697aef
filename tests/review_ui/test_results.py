"""Leaderboard, breakdown and what a run would do: the values behind the pages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as some

from graders import frames
from graders.facts import CheckpointFact, Set, TrialFact
from graders.metrics import Counts
from graders.report import CHANGED_CHECKPOINTS, CHANGED_TASK, NOT_GRADED, TrialRow
from review_ui import planning
from review_ui.results import breakdown, leaderboard
from review_ui.results.narrow import narrowed, to_regrade
from runtime.batch import Item, run_batch
from runtime.executors import LocalExecutor
from runtime.trial import Settings
from tasks.package import FolderSource
from tasks.stored import Batch
from tasks.trials import Outcome


def fact(task: str, agent: str, run: int, result: str, **changed: object) -> TrialFact:
    row = TrialRow(
        batch="b", task=task, agent=agent, run=run, attempt=1, outcome=Outcome.finished, counts_as="valid",
        result=result, critical=result if result in ("pass", "fail") else "ungraded", severe_harm_events=0, draft=False,
        agent_digest="a", grade_digest="g", settings="", note="",
    )  # type: ignore[arg-type]  # fmt: skip
    row = replace(row, **{name: value for name, value in changed.items() if name in row.__dict__})
    made = TrialFact(
        row=row, specialty="Nephrology", group="Nephrology & Urology", workflow="Treatment Planning",
        authority="orders", calls=10, turns=5, tokens_in=100, tokens_out=10, seconds=2.0, cost=0.5, judge_cost=0.0,
        severe_most=1,
        checkpoints=(),
    )  # fmt: skip
    return replace(made, **{name: value for name, value in changed.items() if name not in row.__dict__})


def checkpoint(
    id: str, capability: str, result: str, criticality: str = "required", severity: str = ""
) -> CheckpointFact:
    return CheckpointFact(id, id, 0, capability, "", criticality, severity, result, "code", "", 0, 0, "")


def test_every_convention_is_named_and_of_its_formula() -> None:
    found = Set(tuple(fact("t", "x/m", run, "pass" if run < 3 else "fail") for run in (1, 2, 3)), 0)
    (line,) = leaderboard.lines(found, k=2)
    values = [one.value for one in line.figures]
    assert values == pytest.approx([2 / 3, 1 - 0, 1 - (1 / 3) ** 2, 1 / 3, (2 / 3) ** 2])
    table = leaderboard.table([line], 2)
    assert "1 − C(n−c,2)/C(n,2)" in table
    assert "C(c,2)/C(n,2)" in table
    assert "(c/n)^2" in leaderboard.formulas(2)
    assert "pass^2 plug-in" in leaderboard.conventions([line], 2)


def test_a_trial_of_older_checkpoints_needs_grading_and_no_physician() -> None:
    trials = [
        fact("t", "x/m", 1, "ungraded", note=CHANGED_CHECKPOINTS),
        fact("t", "x/m", 2, "ungraded", note=NOT_GRADED),
        fact("t", "x/m", 3, "ungraded"),
        fact("t", "x/m", 4, "ungraded", note=CHANGED_TASK),
        fact("t", "x/m", 5, "pass"),
    ]
    assert [to_regrade(one.row) for one in trials] == [True, True, False, False, False]
    (line,) = leaderboard.lines(Set(tuple(trials), 0), k=1)
    assert (line.attempted, line.graded, line.to_regrade, line.to_run_again, line.ungraded) == (5, 1, 2, 1, 1)
    chips = "".join(leaderboard.chips([line]))
    assert "2 to regrade" in chips
    assert "1 to run again" in chips
    assert "1 need a physician" in chips


def test_denominators_add_up_and_strict_counts_the_rest_as_failed() -> None:
    trials = [
        fact("t", "x/m", 1, "pass"),
        fact("t", "x/m", 2, "ungraded"),
        fact("t", "x/m", 3, "", outcome=Outcome.provider_error, counts_as="invalid"),
        fact("t", "x/m", 4, "", outcome=Outcome.running, counts_as="not attempted"),
    ]
    (line,) = leaderboard.lines(Set(tuple(trials), 0), k=1)
    waiting = line.ungraded + line.to_regrade + line.to_run_again
    assert line.attempted == line.graded + waiting + line.invalid == 3
    assert line.unfinished == 1
    assert line.figures[0].value == 1.0
    assert line.strict.value == pytest.approx(1 / 3)
    (strict,) = leaderboard.lines(Set(tuple(trials), 0), k=1, basis="strict")
    assert strict.figures[0].value == pytest.approx(1 / 3)


def test_under_twenty_tasks_nobody_is_ranked_and_controls_never_are() -> None:
    def of(tasks: int) -> list[leaderboard.Line]:
        trials = [fact(f"t{n}", agent, 1, result) for n in range(tasks)
                  for agent, result in (("a/weak", "fail"), ("z/strong", "pass"), ("noop", "fail"))]  # fmt: skip
        return leaderboard.lines(Set(tuple(trials), 0), k=1)

    assert [(one.agent, one.rank) for one in of(19)] == [("a/weak", None), ("z/strong", None), ("noop", None)]
    assert [(one.agent, one.rank) for one in of(20)] == [("z/strong", 1), ("a/weak", 2), ("noop", None)]
    assert "not ranked" in leaderboard.difference_words(19)
    assert "too small" in leaderboard.difference_words(1)
    assert "not told apart" in leaderboard.difference_words(100)


def test_a_capability_is_passed_by_its_own_checkpoints() -> None:
    mixed = (
        checkpoint("cp1", "data_retrieval", "pass"),
        checkpoint("cp2", "action_execution", "fail", "critical", "severe"),
    )
    other = (checkpoint("cp1", "data_retrieval", "error"),)
    found = Set((fact("t", "x/m", 1, "fail", checkpoints=mixed), fact("u", "x/m", 1, "ungraded", checkpoints=other)), 0)
    retrieval = narrowed(found, capability="data_retrieval")
    assert {one.row.task: one.row.result for one in retrieval.facts} == {"t": "pass", "u": "ungraded"}
    action = narrowed(found, capability="action_execution")
    assert [(one.row.task, one.row.result, one.row.severe_harm_events) for one in action.facts] == [("t", "fail", 1)]
    assert narrowed(found, group="Cardiology").facts == ()


def test_two_agents_are_compared_over_the_tasks_that_both_ran() -> None:
    cells = {
        ("t1", "a"): Counts(3, 3), ("t1", "b"): Counts(3, 0), ("t2", "a"): Counts(3, 1), ("t2", "b"): Counts(3, 1),
        ("t3", "a"): Counts(3, 3), ("t3", "b"): Counts(0, 0),
    }  # fmt: skip
    told, rows = breakdown.paired(cells, "a", "b")
    assert told is not None
    assert [task for task, _, _ in rows] == ["t1", "t2"]
    assert told.difference == pytest.approx(0.5)
    words = breakdown.comparison_words(told, "a", "b")
    assert "do not tell the two apart" in words[0]
    assert "a is ahead on 1 tasks, b on 0, equal on 1" in words[2]
    assert breakdown.paired(cells, "a", "c") == (None, [])


def test_tables_escape_what_tasks_and_agents_are_called() -> None:
    evil = "<img src=x onerror=y>\u202e"
    trials = [fact(evil, evil, 1, "fail", checkpoints=(checkpoint(evil, "data_retrieval", "fail"),))]
    found = Set(tuple(trials), 0)
    lines = leaderboard.lines(found, k=1)
    cells = breakdown.cells(found, basis="graded", critical=False)
    drawn = [
        leaderboard.table(lines, 1), leaderboard.denominators(lines), leaderboard.conventions(lines, 1),
        breakdown.heat_map(cells, [evil], [evil], lambda *_: "/trials"),
        breakdown.failures(frames.failure_shares(found)), breakdown.parts(frames.by_part(found, "task")),
        breakdown.first_steps(frames.first_failures(found), lambda *_: "/trials"), breakdown.plain(frames.heat(found)),
    ]  # fmt: skip
    for markup in drawn:
        assert "<img" not in markup
        assert "\u202e" not in markup
        assert "onerror" in markup


@given(some.lists(some.sampled_from(["pass", "fail", "ungraded"]), min_size=1, max_size=12), some.integers(1, 5))
def test_figures_stay_between_0_and_1_with_an_interval_around_them(results: list[str], k: int) -> None:
    trials = tuple(fact(f"t{n % 4}", "x/m", n, result) for n, result in enumerate(results))
    (line,) = leaderboard.lines(Set(trials, 0), k=k)
    for one in (*line.figures, line.strict, line.critical):
        if one.value is not None:
            assert one.interval is not None
            assert 0 <= one.interval.low <= one.value <= one.interval.high <= 1
            assert one.interval.low < one.interval.high


# ---- what a run would do ---------------------------------------------------------------------------------------------


@pytest.fixture
def stored(packages: ModuleType, tmp_path: Path, workspace: Path) -> tuple[Path, Batch]:
    folder = packages.write(tmp_path / "tasks")
    batch = Batch.create(workspace / "runs", "b-1")
    source = FolderSource(tmp_path / "tasks")
    with LocalExecutor(1) as executor:
        run_batch(batch, [Item(source.load("nephrology-small"), "noop", 2, folder)], Settings(), executor)
    return folder, batch


def test_a_stored_trial_is_reused_regraded_or_run_again_by_what_has_changed(stored: tuple[Path, Batch]) -> None:
    folder, batch = stored
    there = planning.attempts_of(batch)

    def work(runs: int = 3) -> planning.Work:
        return planning.work([FolderSource(folder.parent).load("nephrology-small")], ["noop"], runs, there)

    assert (work().reuse, work().regrade, work().run) == (2, 0, 1)
    toml = folder / "checkpoints.toml"
    toml.write_text(toml.read_text("utf-8").replace("Potassium found", "Potassium was found"), "utf-8")
    assert (work().reuse, work().regrade, work().run) == (0, 2, 1)
    (folder / "instruction.md").write_text("Another question.\n\npotassium\n", "utf-8")
    assert (work().reuse, work().regrade, work().run) == (0, 0, 3)
    assert work().to_run == {"noop": 3}
    assert work().total == 3


def test_cost_and_time_come_from_earlier_trials_or_are_unknown() -> None:
    work = planning.Work(0, 0, 10, 0, {"x/m": 4, "noop": 6})
    known = [fact("t", "x/m", n, "pass", cost=float(n), seconds=10.0) for n in range(1, 6)]
    known += [fact("t", "noop", 1, "fail", cost=0.0, seconds=1.0)]
    assert planning.cost(work, known) == planning.Range(8.0, 16.0)
    assert planning.money_words(planning.cost(work, known)) == "$8.00 to $16.00"
    assert planning.seconds(work, known, 2) == pytest.approx((4 * 10 + 6 * 1) / 2)
    assert planning.cost(work, []) is None
    assert planning.money_words(None) == "unknown before its first run"
    assert planning.money_words(None, ["x/m"]) == "unknown: no price is set for x/m"
    assert planning.money_words(planning.cost(work, known), ["x/m"]) == "$8.00 to $16.00"
    assert planning.time_words(3000) == "about 50 min"


def test_what_broke_off_says_nothing_of_what_a_trial_costs() -> None:
    work = planning.Work(0, 0, 4, 0, {"x/m": 4})
    broken = [
        fact("t", "x/m", 1, "", cost=0.0, outcome=Outcome.config_error, counts_as="invalid"),
        fact("t", "x/m", 2, "", cost=0.0, outcome=Outcome.cancelled, counts_as="not attempted"),
        fact("t", "x/m", 3, "", cost=0.0, outcome=Outcome.provider_error, counts_as="invalid"),
    ]
    assert planning.money_words(planning.cost(work, broken)) == "unknown before its first run"
    assert planning.seconds(work, broken, 1) is None
    assert planning.money_words(planning.cost(work, [*broken, fact("t", "x/m", 9, "fail", cost=2.0)])) == "$8.00"


def test_what_the_judge_costs_comes_from_trials_that_it_judged() -> None:
    work = planning.Work(0, 0, 4, 0, {"x/m": 4}, {"x/m": 3})
    judged = replace(checkpoint("cp1", "documentation", "pass"), judge="x/judge")
    unjudged = [
        fact("t", "x/m", n, "ungraded", checkpoints=(checkpoint("cp1", "documentation", "ungraded"),)) for n in (1, 2)
    ]
    assert planning.judge_cost(work, unjudged) is None
    known = [fact("t", "x/m", 3, "pass", judge_cost=0.5, checkpoints=(judged,))]
    cached = [fact("t", "x/m", n, "pass", judge_cost=0.0, checkpoints=(judged,)) for n in (4, 5, 6)]
    assert planning.judge_cost(work, [*unjudged, *known, *cached]) == planning.Range(1.5, 1.5)
    assert planning.judge_cost(work, cached) == planning.Range(0.0, 0.0)
    assert planning.money_words(planning.judge_cost(planning.Work(0, 0, 4, 0, {"x/m": 4}), unjudged)) == "nothing"


def test_the_output_gap_stands_beside_the_trials_that_were_read() -> None:
    found = Set(
        (
            fact("t", "x/m [reasoning=low]", 1, "fail"),
            fact("t", "x/m [reasoning=high]", 2, "ungraded"),
            fact("t", "x/m [reasoning=high]", 3, "ungraded", note=CHANGED_TASK),
            fact("t", "x/m [reasoning=high]", 4, "", outcome=Outcome.cancelled, counts_as="not attempted"),
        ),
        0,
    )
    case = {"case": "recommended and not done"}
    told = pd.DataFrame([{"task": "t", "agent": "x/m", "run": run, **case} for run in (1, 2, 2, 9)])
    mine, read = breakdown.gaps_of(found, told)
    assert read == {"x/m [reasoning=low]": 1, "x/m [reasoning=high]": 1}
    assert mine["agent"].tolist() == ["x/m [reasoning=low]", "x/m [reasoning=high]", "x/m [reasoning=high]"]
    drawn = breakdown.gaps(mine, read)
    assert "Trials read" in drawn
    assert "Graded runs" not in drawn
    none, read = breakdown.gaps_of(found, told.iloc[:0])
    assert len(none) == 0
    assert sum(read.values()) == 2
