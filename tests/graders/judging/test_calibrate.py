"""Calibration: physicians' verdicts blind to the judge, agreement by kind, example texts put to the judge."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.calibrate import (
    Pair,
    agreement,
    agreement_frame,
    agreement_text,
    give,
    pairs_of,
    queue,
    tried_text,
    try_examples,
    without_examples,
)
from graders.regrade import regrade
from providers.wire import Heard, Reply
from tasks.errors import NotAllowed, UsageError
from tasks.package import Task, load
from tasks.people import Person
from tasks.stored import Batch
from tests.graders.judging.conftest import GOOD_NOTE, Bench, said
from tests.graders.judging.test_graded import ByPoint, judged_task
from tests.graders.trials import stored
from tests.tasks.packages import TINY_ID

Benches = Callable[..., Bench]
REVIEWER = Person(id="rev-1", name="Rev One", email="one@x.invalid", roles=("reviewer",), specialties=("Cardiology",))
OTHER = REVIEWER.model_copy(update={"id": "rev-2", "name": "Rev Two", "email": "two@x.invalid"})
RESEARCHER = Person(id="res-1", name="Res", email="res@x.invalid", roles=("researcher",))


class Held:
    """A source of one task."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def list(self) -> list[str]:
        return [self.task.id]

    def load(self, id: str, at: str | None = None) -> Task:
        return self.task


@pytest.mark.parametrize("face", ["openai"], indirect=True)
def test_a_physician_judges_blind_and_the_verdict_is_kept_with_the_trial(bench: Benches, tmp_path: Path) -> None:
    task = judged_task("Drug", "Plan")
    runs = tmp_path / "runs"
    trials = [stored(runs, task, files={"reply.md": GOOD_NOTE}, run=run) for run in (1, 2)]
    judge = bench(player=ByPoint(Drug="pass", Plan="fail")).judge()
    for trial in trials:
        regrade(trial, task, judge=judge)
    waiting = queue([Batch(runs / "b1")], lambda batch: Held(task), REVIEWER)
    assert sorted((case.trial.key.run, case.checkpoint.id) for case in waiting) == [
        (1, "cp4"), (1, "cp5"), (2, "cp4"), (2, "cp5"),
    ]  # fmt: skip
    case = waiting[0]
    assert case.text == GOOD_NOTE
    assert not hasattr(case, "verdict")
    given = give(case.trial, task, case.checkpoint.id, "fail", "No follow-up.", REVIEWER, cause="wrong interval")
    assert case.trial.verdicts()[-1] == given
    assert case.trial.latest_verdicts()[case.checkpoint.id] == given
    assert len(queue([Batch(runs / "b1")], lambda batch: Held(task), REVIEWER)) == 3
    assert len(queue([Batch(runs / "b1")], lambda batch: Held(task), OTHER)) == 4


@pytest.mark.parametrize(
    ("changed", "error", "said_"),
    [
        ({"person": RESEARCHER}, NotAllowed, "may not grade by hand"),
        ({"checkpoint": "cp99"}, UsageError, "no checkpoint 'cp99'"),
        ({"reason": "  "}, UsageError, "needs a reason"),
        ({"result": "PASS"}, UsageError, "is no verdict"),
        ({"result": "partial"}, UsageError, "no level between"),
        ({"person": REVIEWER.model_copy(update={"conflicts": (TINY_ID,)})}, UsageError, "conflict"),
    ],
)
def test_what_is_no_verdict_is_refused_and_nothing_is_written(
    tmp_path: Path, changed: dict[str, Any], error: type[Exception], said_: str
) -> None:
    task = judged_task("Drug")
    trial = stored(tmp_path / "runs", task, files={"reply.md": GOOD_NOTE})
    base: dict[str, Any] = {"checkpoint": "cp4", "result": "pass", "reason": "All there.", "person": REVIEWER}
    with pytest.raises(error, match=said_):
        give(trial, task, **(base | changed))
    assert trial.verdicts() == []


@pytest.mark.parametrize("face", ["openai"], indirect=True)
def test_agreement_of_stored_trials_by_kind(bench: Benches, tmp_path: Path) -> None:
    task = judged_task("Drug", "Plan")
    trial = stored(tmp_path / "runs", task, files={"reply.md": GOOD_NOTE})
    wire = bench(player=ByPoint(Drug="pass", Plan="fail"))
    regrade(trial, task, judge=wire.judge())
    give(trial, task, "cp4", "pass", "Named.", REVIEWER)
    give(trial, task, "cp5", "fail", "Missing.", REVIEWER)
    give(trial, task, "cp5", "pass", "On a second look it is there.", REVIEWER)
    give(trial, task, "cp5", "fail", "Missing.", OTHER)
    found = pairs_of(trial, task)
    assert [(pair.first, pair.one, pair.other) for pair in found] == [
        (wire.name, "pass", "pass"), (wire.name, "fail", "pass"), (wire.name, "fail", "fail"),
        ("physicians", "pass", "fail"),
    ]  # fmt: skip


def test_agreement_by_hand_and_never_only_pooled() -> None:
    pairs = [
        *[Pair(f"t{n}", "synthesis", "j/m", "pass", "pass") for n in range(6)],
        *[Pair(f"t{n}", "synthesis", "j/m", "pass", "fail") for n in range(2)],
        *[Pair(f"t{n}", "documentation", "j/m", "fail", "fail") for n in range(4)],
        Pair("t9", "documentation", "j/m", "error", "pass"),
        Pair("t9", "documentation", "j/m", "ungraded", "fail"),
    ]
    found = {row.kind: row for row in agreement(pairs)}
    assert list(found) == ["documentation", "synthesis", "all"]
    synthesis = found["synthesis"]
    assert (synthesis.pairs, synthesis.same, synthesis.too_kind, synthesis.too_hard) == (8, 0.75, 1.0, 0.0)
    assert synthesis.same_interval is not None
    assert synthesis.same_interval.low < 0.75 < synthesis.same_interval.high
    assert (found["documentation"].pairs, found["documentation"].silent) == (4, 2)
    # All: 10 of 12 the same; by chance (8 x 6 + 4 x 6) / 144 = 0.5; kappa = (10/12 - 1/2) / (1/2) = 2/3.
    assert found["all"].kappa == pytest.approx(2 / 3)
    assert len(agreement_frame(found.values())) == 3
    assert "synthesis" in agreement_text(list(found.values()))
    assert "No checkpoint" in agreement_text([])


levels = st.sampled_from(["pass", "partial", "fail", "error", "ungraded"])


physicians = st.sampled_from(["pass", "partial", "fail"])
pairs_made = st.builds(Pair, st.sampled_from("abc"), st.sampled_from("xy"), st.just("j/m"), levels, physicians)


@given(st.lists(pairs_made, max_size=40))
def test_shares_are_shares_and_kinds_add_up(pairs: list[Pair]) -> None:
    rows = agreement(pairs)
    if not pairs:
        assert rows == []
        return
    *kinds, pooled = rows
    assert sum(row.pairs for row in kinds) == pooled.pairs
    assert sum(row.silent for row in kinds) == pooled.silent
    for row in rows:
        for share in (row.same, row.too_kind, row.too_hard):
            assert share is None or 0 <= share <= 1


# ---- example texts --------------------------------------------------------------------------------------------------


def with_examples(**texts: str) -> Task:
    base = judged_task("Drug")
    files = dict(base.files) | {f"examples/{name.replace('_', '-')}.md": text.encode() for name, text in texts.items()}
    return load(files, where=TINY_ID)


class ByWord:
    """Passes what names apixaban."""

    def reply(self, heard: Heard) -> Reply:
        return said("pass", "Apixaban") if "| Apixaban" in heard.first_user else said("fail")


@pytest.mark.parametrize("face", ["openai"], indirect=True)
def test_example_texts_are_put_to_the_judge(bench: Benches) -> None:
    task = with_examples(cp4_pass="Apixaban.", cp4_fail="Nothing.", cp4_fail_praise="Apixaban is not for him.")
    tried = try_examples(task, bench(player=ByWord()).judge())
    assert [(one.path, one.wanted, one.got, one.right) for one in tried] == [
        ("examples/cp4-fail-praise.md", "fail", "pass", False),
        ("examples/cp4-fail.md", "fail", "fail", True),
        ("examples/cp4-pass.md", "pass", "pass", True),
    ]
    assert without_examples(task) == []
    assert "2 of 3" in tried_text(tried, [])


def test_levels_without_an_example_are_named() -> None:
    assert without_examples(with_examples(cp4_pass="Apixaban.")) == [f"{TINY_ID} cp4: no example text of fail"]
