"""Facts and frames: the cache never outlives what it was made of, versions are never averaged, figures by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from graders import facts, frames, report_files, report_page
from graders.facts import Set, comparable, trial_facts
from graders.report import trial_rows
from tasks.errors import UsageError
from tasks.package import FolderSource, Task
from tasks.stored import Batch, StoredTrial
from tasks.trials import Grader, Judging, Outcome, Usage, Verdict
from tests.graders.trials import stored

AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def source(tiny_package: Path) -> FolderSource:
    return FolderSource(tiny_package.parent)


def judged(trial: StoredTrial, task: Task, *results: Any, kind: str = "code", **keys: Any) -> StoredTrial:
    trial.add_verdicts(
        Verdict(
            checkpoint=checkpoint.id, result=result, reason="", at=AT, grade_digest=task.grade_digest,
            grader=Grader(kind=kind, name="n", version="1"), **keys,  # type: ignore[arg-type]
        )
        for checkpoint, result in zip(task.checkpoints, results, strict=True)
    )  # fmt: skip
    return trial


@pytest.fixture
def runs(tmp_path: Path, tiny_task: Task) -> Path:
    """Two agents: a/x passes 2 of 3 graded (one invalid), b/y fails twice and once critically."""
    folder = tmp_path / "runs"
    judged(stored(folder, tiny_task, agent="a/x", run=1), tiny_task, "pass", "pass", "pass")
    judged(stored(folder, tiny_task, agent="a/x", run=2), tiny_task, "pass", "pass", "pass")
    judged(stored(folder, tiny_task, agent="a/x", run=3), tiny_task, "pass", "pass", "partial")
    stored(folder, tiny_task, agent="a/x", run=4, outcome=Outcome.provider_error)
    judged(stored(folder, tiny_task, agent="b/y", run=1), tiny_task, "fail", "fail", "fail")
    judged(stored(folder, tiny_task, agent="b/y", run=2), tiny_task, "pass", "fail", "error")
    judged(stored(folder, tiny_task, agent="b/y", run=3), tiny_task, "pass", "pass", "ungraded")
    return folder


def found(runs: Path, source: FolderSource, cache: Path | None = None) -> Set:
    return comparable(trial_facts([Batch(runs / "b1")], source, cache=cache))


def test_facts_count_as_rows_do(runs: Path, source: FolderSource, tmp_path: Path) -> None:
    batch = [Batch(runs / "b1")]
    rows = trial_rows(batch, source)
    assert [fact.row for fact in trial_facts(batch, source)] == rows
    cold = trial_facts(batch, source, cache=tmp_path / "cache")
    from_memory = trial_facts(batch, source, cache=tmp_path / "cache")
    facts._memory.clear()
    from_the_file = trial_facts(batch, source, cache=tmp_path / "cache")
    assert cold == from_memory == from_the_file == trial_facts(batch, source)
    assert sum(name.startswith(str(runs)) for name in facts._memory) == 7


def test_the_cache_sees_a_new_verdict_a_new_attempt_and_its_own_damage(
    runs: Path, source: FolderSource, tiny_task: Task, tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    batch = [Batch(runs / "b1")]
    before = trial_facts(batch, source, cache=cache)
    judged(batch[0].trials()[0], tiny_task, "fail", "fail", "fail", kind="person", cause="misread")
    after = trial_facts(batch, source, cache=cache)
    assert (before[0].row.result, after[0].row.result) == ("pass", "fail")
    assert frames.causes(comparable(after)).to_numpy().tolist() == [["a/x", "misread", 3]]
    stored(runs, tiny_task, agent="a/x", run=4, attempt=2)
    assert trial_facts(batch, source, cache=cache)[3].row.attempt == 2
    (kept,) = (cache / "results").iterdir()
    kept.write_text("{", "utf-8")
    facts._memory.clear()
    assert trial_facts(batch, source, cache=cache) == trial_facts(batch, source)


def test_agents_by_hand(runs: Path, source: FolderSource) -> None:
    first, second = frames.agents(found(runs, source)).to_dict("records")
    assert (first["agent"], first["attempted"], first["graded"], first["invalid"]) == ("a/x", 4, 3, 1)
    assert (first["pass_at_1"], first["strict"], first["critical_pass"]) == (pytest.approx(2 / 3), 0.5, 1.0)
    assert (second["agent"], second["graded"], second["ungraded"]) == ("b/y", 2, 1)
    assert (second["pass_at_1"], second["critical_pass"]) == (0.0, pytest.approx(1 / 3))
    assert (second["severe_harm_events"], second["severe_harm_per_task"]) == (2, 1.0)
    assert pd.isna(first["rank"])  # one task ranks nobody
    assert first["low"] < first["pass_at_1"] < first["high"]


def test_every_convention_is_named_by_its_formula(runs: Path, source: FolderSource) -> None:
    frame = frames.figures(found(runs, source), k=3)
    mine = frame[frame.agent == "a/x"].set_index("figure")
    assert mine.loc["pass@3 unbiased", "value"] == 1.0
    assert mine.loc["pass@3 plug-in", "value"] == pytest.approx(1 - (1 / 3) ** 3)
    assert mine.loc["pass^3 unbiased", "value"] == 0.0
    assert mine.loc["pass^3 plug-in", "value"] == pytest.approx((2 / 3) ** 3)
    assert mine.loc["pass@1 strict", "value"] == 0.5
    assert mine.loc["pass^3 plug-in", "formula"] == "(c/n)^k"
    other = frame[frame.agent == "b/y"].set_index("figure")
    assert pd.isna(other.loc["pass@3 unbiased", "value"])  # 2 graded runs: nothing, and it is said
    assert other.loc["pass@3 unbiased", "left_out"] == 1


def test_shares_first_failures_heat_and_parts_by_hand(runs: Path, source: FolderSource) -> None:
    mine = found(runs, source)
    shares = frames.failure_shares(mine).set_index(["agent", "part"])
    assert shares.loc[("b/y", "action_execution"), "failed"] == 2
    assert shares.loc[("b/y", "action_execution"), "share"] == 0.5  # 4 failed in graded runs; the error is none
    assert shares.loc[("a/x", "documentation"), "share"] == 1.0
    first = frames.first_failures(mine)
    assert first[["agent", "checkpoint", "runs"]].to_numpy().tolist() == [
        ["a/x", "cp3", 1],
        ["b/y", "cp1", 1],
        ["b/y", "cp2", 1],
    ]
    heat = frames.heat(mine).set_index("agent")
    assert (heat.loc["a/x", "passed"], heat.loc["a/x", "graded"], heat.loc["a/x", "attempted"]) == (2, 3, 4)
    groups = frames.by_part(mine, "group")
    assert set(groups.part) == {"Cardiology"}
    assert groups["rank"].isna().all()
    assert not groups["ranked"].any()
    (pair,) = frames.comparisons(mine).to_dict("records")
    assert (pair["first"], pair["difference"], pair["tasks"]) == ("a/x", pytest.approx(2 / 3), 1)


def test_flips_of_a_judge_are_told(runs: Path, source: FolderSource, tiny_task: Task) -> None:
    judging = Judging(model="j/m", key="k", votes=("pass", "fail", "pass"), usage=Usage(cost=0.25))
    trial = Batch(runs / "b1").trials()[0]
    judged(trial, tiny_task, "pass", "pass", "pass", judging=judging)
    mine = found(runs, source)
    frame = frames.judges(mine)
    assert frame["verdicts"].sum() == 3
    assert frame["flip_rate"].tolist() == [pytest.approx(1 / 3)] * 3
    assert frames.agents(mine).set_index("agent").loc["a/x", "judge_cost"] == 0.75


def test_versions_are_set_aside_and_settings_told_apart(runs: Path, source: FolderSource, tiny_task: Task) -> None:
    stored(runs, tiny_task, agent="a/x", run=9, agent_digest="0" * 64)
    mine = found(runs, source)
    assert mine.aside == 1
    assert len(mine.facts) == 7
    for name, profile in (("b2", "paper"), ("b3", "extended")):
        judged(stored(runs, tiny_task, agent="c/z", batch=name), tiny_task, "pass", "pass", "pass")
        Batch(runs / name).add_plan(
            {"kind": "planned", "task": tiny_task.id, "agent": "c/z", "settings": {"profile": profile, "seed": 1}}
        )
    both = comparable(trial_facts([Batch(runs / "b2"), Batch(runs / "b3")], source))
    assert both.agents == ["c/z [profile=extended]", "c/z [profile=paper]"]


# ---- forms ----------------------------------------------------------------------------------------------------------


VIEWS = (
    "cells", "agents", "figures", "comparisons", "groups", "workflows", "heat", "failures", "first-failures", "judges",
    "causes", "gaps", "trials", "verdicts",
)  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_in_every_form(runs: Path, source: FolderSource, tmp_path: Path, view: str) -> None:
    batches = [Batch(runs / "b1")]
    for form in ("table", "csv", "json"):
        assert isinstance(report_files.made(batches, source, view=view, form=form), str)
    data = report_files.made(batches, source, view=view, form="parquet")
    assert isinstance(data, bytes)
    path = tmp_path / "made.parquet"
    report_files.written(path, data)
    again = report_files.made(batches, source, view=view, form="csv")
    assert isinstance(again, str)
    assert list(pd.read_parquet(path).columns) == again.splitlines()[0].split(",")


def test_what_is_no_view_or_form_is_named(runs: Path, source: FolderSource) -> None:
    with pytest.raises(UsageError, match="no view"):
        report_files.made([Batch(runs / "b1")], source, view="pie", form="csv")
    with pytest.raises(UsageError, match="no form"):
        report_files.made([Batch(runs / "b1")], source, view="agents", form="docx")


def test_the_page_is_whole_escapes_every_text_and_fetches_nothing(
    runs: Path, source: FolderSource, tiny_task: Task
) -> None:
    mine = found(runs, source)
    text = report_page.page('<script>alert("x")</script>', mine)
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "http" not in text.replace("http-equiv", "")
    assert "src=" not in text
    assert text.count("<svg") == text.count("</svg>") == 2
    for word in ("1 - C(n-c,k)/C(n,k)", "(c/n)^k", "not ranked", "2 of 3", "First failed step"):
        assert word in text
    hostile = Set(
        tuple(
            type(fact)(**{**fact.__dict__, "row": type(fact.row)(**{**fact.row.__dict__, "agent": "<img src=x>"})})
            for fact in mine.facts
        ),
        0,
    )
    assert "<img" not in report_page.page("t", hostile)
    assert "Nothing" not in report_page.page("empty", Set((), 0))
