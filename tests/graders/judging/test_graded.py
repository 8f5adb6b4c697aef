"""The judge in grading: stored trials, a judge that is down and comes back, model-read values, real batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graders.evidence import Evidence
from graders.grade import grade
from graders.judge import Judge
from graders.regrade import lacks_judge, regrade
from graders.score import task_result
from providers.wire import Fault, Heard, Reply, Tokens, ToolUse
from tasks.package import Task, load
from tasks.trials import Grader, Verdict
from tests.graders.judging.conftest import GOOD_NOTE, Bench, said
from tests.graders.trials import AT, evidence, stored
from tests.tasks.packages import TINY_ID, TINY_NOTE, tiny_files

Benches = Callable[..., Bench]
_JUDGED = """
[[checkpoint]]
id = "cp{n}"
title = "{title}"
capability = "documentation"
criticality = "required"
reachable = ["paper"]
rests_on = ["Observation/o-creatinine"]
grader = "judge"
file = "{file}"

[checkpoint.rubric]
pass = "It is named."
fail = "It is not named."
"""
_READ = """
[[checkpoint]]
id = "cp8"
title = "The creatinine clearance that the dose rests on"
capability = "clinical_reasoning"
kind = "score_calculation"
criticality = "required"
reachable = ["paper"]
rests_on = ["Observation/o-creatinine"]
grader = "hybrid"
truth = "cockcroft_gault"
unit = "mL/min"
tolerance = 3

[checkpoint.extract]
file = "{file}"
field = "creatinine clearance"
"""


def judged_task(*titles: str, more: str = "") -> Task:
    files = dict(tiny_files())
    tables = "".join(_JUDGED.format(n=4 + n, title=title, file=TINY_NOTE) for n, title in enumerate(titles))
    files["checkpoints.toml"] = files["checkpoints.toml"] + (tables + more).encode()
    return load(files, where=TINY_ID)


class ByPoint:
    """Answers by the point that is asked about; `faulty` points fail with HTTP 529 until they are taken out."""

    def __init__(self, **verdicts: str) -> None:
        self.verdicts, self.faulty = verdicts, set[str]()

    def reply(self, heard: Heard) -> Reply:
        point = heard.first_user.split("\n")[1]
        faults = (Fault(kind="status", status=529, times=10**6),) if point in self.faulty else ()
        verdict = self.verdicts[point]
        return said(verdict, *(["weight 84 kg"] if verdict == "pass" else []), faults=faults)


def by_checkpoint(verdicts: Any) -> dict[str, str]:
    return {verdict.checkpoint: verdict.result for verdict in verdicts}


@pytest.mark.parametrize("face", ["openai"], indirect=True)
def test_a_resume_grades_exactly_what_the_judge_failed_at(bench: Benches, tmp_path: Path) -> None:
    task = judged_task("Drug", "Weight", "Plan")
    player = ByPoint(Drug="pass", Weight="pass", Plan="fail")
    wire = bench(player=player)
    trial = stored(tmp_path / "runs", task, files={"reply.md": GOOD_NOTE})
    player.faulty = {"Weight", "Plan"}
    first = regrade(trial, task, judge=wire.judge())
    assert by_checkpoint(first.verdicts) | {"cp2": "", "cp1": "", "cp3": ""} == {
        "cp1": "", "cp2": "", "cp3": "", "cp4": "pass", "cp5": "error", "cp6": "error",
    }  # fmt: skip
    assert lacks_judge(task, trial.verdicts())
    before = len(wire.server.requests)
    stood = len(trial.verdicts())

    player.faulty = set()
    wire.cache = tmp_path / "another cache"  # what stands with the trial needs no cache
    second = regrade(trial, task, judge=wire.judge())
    assert sorted(text.split("\n")[1] for text in wire.asked[before:]) == ["Plan", "Weight"]
    assert sorted(change.checkpoint for change in second.changes) == ["cp5", "cp6"]
    assert [verdict.checkpoint for verdict in trial.verdicts()[stood:]] == ["cp5", "cp6"]
    assert by_checkpoint(second.verdicts)["cp6"] == "fail"
    assert not lacks_judge(task, trial.verdicts())

    asked = len(wire.server.requests)
    assert regrade(trial, task, judge=wire.judge()).changes == ()
    assert len(wire.server.requests) == asked


@pytest.mark.parametrize("face", ["openai"], indirect=True)
def test_a_judge_error_is_never_a_clinical_fail(bench: Benches) -> None:
    # Weakness 11 of the reference: there an exception of the judge is a failed checkpoint.
    task = judged_task("Drug")
    player = ByPoint(Drug="pass")
    player.faulty = {"Drug"}
    verdicts = grade(
        evidence(task, files={TINY_NOTE: GOOD_NOTE}), [task.checkpoints[-1]], judge=bench(player=player).judge()
    )
    assert by_checkpoint(verdicts) == {"cp4": "error"}
    assert task_result([task.checkpoints[-1]], verdicts).result == "ungraded"


@pytest.mark.parametrize("face", ["openai"], indirect=True)
def test_partial_is_recorded_and_counts_as_not_passed(bench: Benches) -> None:
    # Weakness 11 again: there partial is not recorded.
    task = judged_task("Drug")
    rubric = task.checkpoints[-1].rubric
    assert rubric is not None
    with_partial = task.checkpoints[-1].model_copy(update={"rubric": rubric.model_copy(update={"partial": "Half."})})
    verdicts = grade(
        evidence(task, files={TINY_NOTE: GOOD_NOTE}),
        [with_partial],
        judge=bench(said("partial", "Apixaban 5 mg")).judge(),
    )
    assert by_checkpoint(verdicts) == {"cp4": "partial"}
    assert task_result([with_partial], verdicts).result == "fail"


@pytest.mark.parametrize("face", ["openai"], indirect=True)
def test_without_a_judge_what_one_said_stands_and_a_changed_text_does_not(bench: Benches, tmp_path: Path) -> None:
    task = judged_task("Drug")
    wire = bench(player=ByPoint(Drug="pass"))
    trial = stored(tmp_path / "runs", task, files={"reply.md": GOOD_NOTE})
    regrade(trial, task, judge=wire.judge())
    assert regrade(trial, task, judge=None).changes == ()
    # Another judge is another question.
    other = wire.judge(reasoning="low")
    assert [change.checkpoint for change in regrade(trial, task, judge=other).changes] == ["cp4"]


@pytest.mark.parametrize("face", ["openai"], indirect=True)
def test_the_judge_never_grades_its_own_trial(bench: Benches, tmp_path: Path) -> None:
    task = judged_task("Drug")
    wire = bench(player=ByPoint(Drug="pass"))
    trial = stored(tmp_path / "runs", task, files={"reply.md": GOOD_NOTE}, agent=wire.name)
    done = regrade(trial, task, judge=wire.judge())
    assert by_checkpoint(done.verdicts)["cp4"] == "ungraded"
    assert wire.server.requests == []


@pytest.mark.parametrize("face", ["openai"], indirect=True)
def test_a_persons_verdict_stands_above_the_judge(bench: Benches, tmp_path: Path) -> None:
    task = judged_task("Drug")
    trial = stored(tmp_path / "runs", task, files={"reply.md": GOOD_NOTE})
    person = Verdict(
        checkpoint="cp4", result="fail", reason="Wrong drug for him.", at=AT, grade_digest=task.grade_digest,
        grader=Grader(kind="person", name="demo-reviewer-1", version="1"), cause="contraindication missed",
    )  # fmt: skip
    trial.add_verdicts([person])
    regrade(trial, task, judge=bench(player=ByPoint(Drug="pass")).judge())
    assert task_result(task.checkpoints, trial.verdicts()).deciding["cp4"] == person


# ---- values read by a model -----------------------------------------------------------------------------------------


def states(*values: tuple[str, str, str]) -> Reply:
    rows = [{"quote": quote, "number": number, "unit": unit} for quote, number, unit in values]
    return Reply(calls=(ToolUse(name="answer", arguments={"values": rows}),), tokens=Tokens())


NOTE = "Cockcroft-Gault 76 mL/min (she had 91 mL/min in 2019), so the full dose."


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        (states(("Cockcroft-Gault 76 mL/min", "76", "mL/min")), "pass"),
        (states(("Cockcroft-Gault 76 mL/min", "76", "")), "pass"),
        (states(("she had 91 mL/min in 2019", "91", "mL/min")), "fail"),
        (states(), "fail"),
        (states(("Cockcroft-Gault 67 mL/min", "67", "mL/min")), "error"),
        (states(("Cockcroft-Gault 76 mL/min", "78", "mL/min")), "error"),
        (Reply(text="76"), "error"),
    ],
    ids=["right", "no unit", "other value", "none stated", "invented words", "number not in the words", "prose"],
)
def test_a_value_is_read_by_a_model_and_compared_by_code(bench: Benches, reply: Reply, result: str) -> None:
    task = judged_task(more=_READ.format(file=TINY_NOTE))
    judge = bench(reply).judge()
    (verdict,) = grade(evidence(task, files={TINY_NOTE: NOTE}), [task.checkpoints[-1]], judge=judge)
    assert (verdict.result, verdict.grader.kind) == (result, "hybrid")
    assert verdict.judging is not None


@pytest.mark.parametrize("face", ["openai"], indirect=True)
def test_readings_are_voted_on_too(bench: Benches) -> None:
    task = judged_task(more=_READ.format(file=TINY_NOTE))
    right, other = states(("Gault 76 mL/min", "76", "mL/min")), states(("91 mL/min in 2019", "91", "mL/min"))
    found = evidence(task, files={TINY_NOTE: NOTE})
    (verdict,) = grade(found, [task.checkpoints[-1]], judge=bench(right, other, right).judge(votes=3))
    assert verdict.result == "pass"
    (verdict,) = grade(found, [task.checkpoints[-1]], judge=bench(right, other).judge(votes=2))
    assert verdict.result == "ungraded"
    assert "needs review" in verdict.reason
    (verdict,) = grade(evidence(task), [task.checkpoints[-1]], judge=bench(right).judge())
    assert verdict.result == "fail"


# ---- configured in the workspace ------------------------------------------------------------------------------------


def test_the_workspace_names_the_judge(workspace: Any) -> None:
    assert Judge.configured(workspace) is None
    assert not workspace.settings_file.exists()
    workspace.make()
    workspace.settings_file.write_text(
        '[model."openai/judging"]\nendpoint = "http://127.0.0.1:9/v1"\n'
        '[use]\njudge = "openai/judging"\njudge_votes = 3\n',
        "utf-8",
    )
    judge = Judge.configured(workspace)
    assert judge is not None
    assert (judge.name, judge.votes) == ("openai/judging", 3)


def test_a_trial_says_whose_it_is(tmp_path: Path, tiny_task: Task) -> None:
    assert Evidence.from_trial(tiny_task, stored(tmp_path, tiny_task, agent="x/y")).agent == "x/y"
