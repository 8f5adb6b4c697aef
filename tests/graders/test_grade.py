"""Grading: kinds, what holds together, trust, and that an error is never a fail."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from graders import VERSION, grade, sandbox, trust
from graders import grade as exported
from graders.evidence import Evidence
from graders.score import task_result
from tasks.errors import EnvironmentFault
from tasks.package import Task, load
from tasks.trials import CallCite, Verdict
from tasks.workspace import Workspace
from tests.graders.trials import AT, apixaban, checkpoint, evidence, read
from tests.tasks.packages import REPLY, TINY_ID, TINY_NOTE, tiny_files

#: The module, whose name in the package is that of the function it exports.
grading = sys.modules["graders.grade"]


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tiny task's code, as if the suite shipped it."""
    monkeypatch.setattr(trust, "shipped", lambda: {TINY_ID: trust.code_digest(tiny_files()["checkpoints.py"])})


def one(found: Evidence, **keys: Any) -> Verdict:
    """The verdict of one checkpoint with these keys."""
    (verdict,) = grade(found, [checkpoint(**keys)], AT)
    return verdict


def coded(code: str, task_id: str = TINY_ID) -> Task:
    """The tiny task with other code."""
    task = load(tiny_files(), where=task_id)
    return replace(task, code=code, files={**task.files, "checkpoints.py": code.encode()})


@pytest.fixture
def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust every code, to see what a function's answer comes to."""
    monkeypatch.setattr(grading, "is_trusted", lambda id, code: True)


# ---- the whole task -------------------------------------------------------------------------------------------------


def everything(task: Task) -> Evidence:
    calls = [read(task, 1, "Observation/o-creatinine", "Observation/o-weight"), read(task, 2, "DocumentReference/n-1")]
    return evidence(task, apixaban(), calls=calls, files={TINY_NOTE: REPLY})


@pytest.mark.usefixtures("shipped")
def test_what_a_right_trial_did_passes_every_checkpoint(tiny_task: Task) -> None:
    verdicts = grade(everything(tiny_task), at=AT)
    assert [(v.checkpoint, v.result) for v in verdicts] == [("cp1", "pass"), ("cp2", "pass"), ("cp3", "pass")], verdicts
    assert {v.grade_digest for v in verdicts} == {tiny_task.grade_digest}
    assert {(v.grader.kind, v.grader.version, v.at) for v in verdicts} == {("code", VERSION, AT)}
    assert task_result(tiny_task.checkpoints, verdicts).result == "pass"


@pytest.mark.usefixtures("shipped")
def test_doing_nothing_fails_every_checkpoint_and_errs_on_none(tiny_task: Task) -> None:
    assert [v.result for v in grade(evidence(tiny_task), at=AT)] == ["fail", "fail", "fail"]


@pytest.mark.usefixtures("shipped")
def test_the_same_evidence_gives_the_same_verdicts(tiny_task: Task) -> None:
    assert grade(everything(tiny_task), at=AT) == grade(everything(tiny_task), at=AT)


def test_no_checkpoints_asked_for_is_none_graded(tiny_task: Task) -> None:
    assert grade(evidence(tiny_task), []) == []
    assert exported is grade


# ---- seen -----------------------------------------------------------------------------------------------------------

FACTS = ("Observation/o-creatinine", 'DocumentReference/n-1#"stopped warfarin"')


def test_facts_seen_count_whatever_tool_found_them(tiny_task: Task) -> None:
    # Weakness 16: the reference asks for tool names. Here the right tool with the fact cut off fails, and another
    # tool that shows the fact passes.
    through_another = read(
        tiny_task, 1, "Observation/o-creatinine", "DocumentReference/n-1", tool="fhir_condition_search_problems"
    )
    found = one(evidence(tiny_task, calls=[through_another]), seen=FACTS)
    assert (found.result, CallCite(n=1) in found.cites) == ("pass", True)
    right_tool = read(tiny_task, 1, "Observation/o-creatinine", shown=40)
    cut = one(evidence(tiny_task, calls=[right_tool]), seen=FACTS[:1])
    assert cut.result == "fail"
    assert "outside the part that the model was shown" in cut.reason


def test_some_facts_seen_are_recorded_as_partial(tiny_task: Task) -> None:
    # Weakness 11: partial is recorded, and counts as not passed.
    verdict = one(evidence(tiny_task, calls=[read(tiny_task, 1, "Observation/o-creatinine")]), seen=FACTS)
    assert verdict.result == "partial"
    assert "never in a tool result" in verdict.reason


def test_words_that_the_shown_part_of_a_note_does_not_reach_are_not_seen(tiny_task: Task) -> None:
    note = read(tiny_task, 1, "DocumentReference/n-1")
    cut = note.model_copy(update={"shown": note.result.index("stopped") + len("stopped war")})
    assert one(evidence(tiny_task, calls=[cut]), seen=FACTS[1:]).result == "fail"
    assert one(evidence(tiny_task, calls=[note]), seen=FACTS[1:]).result == "pass"


def test_the_instruction_is_always_shown(tiny_task: Task) -> None:
    assert one(evidence(tiny_task), seen=('instruction#"on no anticoagulant now"',)).result == "pass"


# ---- functions and trust --------------------------------------------------------------------------------------------


def test_code_that_does_not_ship_is_never_run_in_this_process(tiny_task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    monkeypatch.setattr(grading, "call_function", lambda name, found: ran.append(name))
    verdict = one(evidence(tiny_task, files={TINY_NOTE: REPLY}), function="reply_gives_dose_reasons")
    assert ran == []
    assert (verdict.result, verdict.grader.name) == ("pass", "function[kernel]")


OWN_CODE = tiny_files()["checkpoints.py"].decode()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("__import__('os')._exit(0)", "ended its process without an answer"),
        ("__import__('os').kill(__import__('os').getppid(), 9)", "PermissionError at checkpoints.py, line "),
        ("return 'pass'", "returned str"),
        ("raise SystemExit('SECRET')", "SystemExit at checkpoints.py, line "),
    ],
)
def test_a_function_that_ends_its_process_costs_its_checkpoint_alone(body: str, words: str) -> None:
    found = evidence(coded(f"{OWN_CODE}\n\ndef bad(evidence):\n    {body}\n"), files={TINY_NOTE: REPLY})
    both = [checkpoint("cp1", function="bad"), checkpoint("cp2", function="reply_gives_dose_reasons")]
    bad, good = grade(found, both, AT)
    assert (bad.result, good.result) == ("error", "pass"), (bad.reason, good.reason)
    assert words in bad.reason
    assert "SECRET" not in bad.reason


def test_where_the_sandbox_does_not_hold_code_is_ungraded_with_the_reason(
    tiny_task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = sandbox.Sandbox()
    monkeypatch.setattr("graders.sandbox.runner.probe", lambda: "read /etc/passwd")
    monkeypatch.setattr(sandbox, "configured", lambda: box)
    verdict = one(evidence(tiny_task), function="reply_gives_dose_reasons")
    assert (verdict.result, "read /etc/passwd" in verdict.reason) == ("ungraded", True)


def test_where_the_sandbox_is_off_code_is_ungraded_with_the_reason(tiny_task: Task, workspace: Workspace) -> None:
    sandboxed(workspace, "off")
    verdict = one(evidence(tiny_task), function="reply_gives_dose_reasons")
    assert (verdict.result, "mode is off" in verdict.reason) == ("ungraded", True)


def test_the_weaker_mode_is_named_in_the_verdict(tiny_task: Task, workspace: Workspace) -> None:
    sandboxed(workspace, "process")
    verdict = one(evidence(tiny_task, files={TINY_NOTE: REPLY}), function="reply_gives_dose_reasons")
    assert (verdict.result, verdict.grader.name) == ("pass", "function[process]")


def sandboxed(workspace: Workspace, mode: str) -> None:
    """Have workbench.toml ask for this sandbox mode."""
    assert workspace.settings.sandbox.mode == "kernel"
    first = workspace.settings_file.read_text("utf-8")
    workspace.settings_file.write_text(first.replace('[sandbox]\nmode = "kernel"', f'[sandbox]\nmode = "{mode}"'))
    assert workspace.settings.sandbox.mode == mode


@pytest.mark.usefixtures("shipped")
def test_one_changed_byte_is_other_code(tiny_task: Task) -> None:
    changed = coded(tiny_files()["checkpoints.py"].decode() + "\n")
    assert one(evidence(tiny_task), function="reply_gives_dose_reasons").result == "fail"
    assert one(evidence(tiny_task), function="reply_gives_dose_reasons").grader.name == "function"
    assert one(evidence(changed), function="reply_gives_dose_reasons").grader.name == "function[kernel]"


def test_the_shipped_code_is_trusted_under_its_own_id_alone() -> None:
    for id, digest in trust.shipped().items():
        code = (trust.Path(trust.tasks.__file__).parent / "suite" / id / "checkpoints.py").read_bytes()
        assert trust.code_digest(code) == digest
        assert trust.is_trusted(id, code)
        assert not trust.is_trusted("another-task", code)
        assert not trust.is_trusted(id, code + b" ")


@pytest.mark.usefixtures("trusting")
@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("return passed('yes')", "pass"),
        ("return partial('half')", "partial"),
        ("return failed('no')", "fail"),
        ("return True", "error"),
        ("return None", "error"),
        ("return 'pass'", "error"),
        ("return Truth(3, 'mg')", "error"),
        ("raise ValueError('SECRET CHART TEXT')", "error"),
        ("raise SystemExit(0)", "error"),
        ("assert False, 'SECRET CHART TEXT'", "error"),
    ],
)
def test_what_a_function_answers(body: str, result: str) -> None:
    task = coded(f"from graders.verdicts import Truth, failed, partial, passed\n\ndef check(evidence):\n    {body}\n")
    verdict = one(evidence(task), function="check")
    assert verdict.result == result
    assert "SECRET" not in verdict.reason


@pytest.mark.usefixtures("trusting")
def test_a_function_that_is_not_there_is_an_error() -> None:
    assert one(evidence(coded("x = 1\n")), function="check").result == "error"


@pytest.mark.usefixtures("trusting")
def test_functions_share_no_state() -> None:
    task = coded(
        "from graders.verdicts import failed, passed\nseen = []\n\ndef check(evidence):\n    seen.append(1)\n"
        "    return passed('first') if len(seen) == 1 else failed('again')\n"
    )
    assert [one(evidence(task), function="check").result for _ in range(3)] == ["pass"] * 3


# ---- errors and outages ---------------------------------------------------------------------------------------------


class Down:
    """Records behind a server that is down."""

    def get(self, ref: str) -> Any:
        raise EnvironmentFault("the server does not answer.")

    def resources(self, type: str | None = None) -> Any:
        return self.get("")

    def search(self, type: str, params: Any, *, page_token: str | None = None, base_url: str = "") -> Any:
        return self.get("")


@pytest.mark.usefixtures("trusting")
def test_an_outage_is_an_error_and_never_no_orders(tiny_task: Task) -> None:
    task = coded(
        "from graders.verdicts import failed, passed\n\ndef check(evidence):\n"
        "    return passed('x') if evidence.search('MedicationRequest', ('patient', 'p-7001')) else failed('none')\n"
    )
    found = replace(evidence(task), chart=Down())
    verdict = one(found, function="check")
    assert verdict.result == "error"
    assert "does not answer" in verdict.reason


def test_damaged_evidence_is_an_error_for_every_checkpoint(tiny_task: Task) -> None:
    found = replace(everything(tiny_task), missing="the stored record is damaged (1 lines)")
    assert [v.result for v in grade(found, at=AT)] == ["error"] * 3
    assert task_result(tiny_task.checkpoints, grade(found, at=AT)).result == "ungraded"


def test_a_rule_that_cannot_be_read_is_an_error_and_never_a_silent_pass(tiny_task: Task) -> None:
    verdict = one(evidence(tiny_task), must_not=({"class": "no such class"},))
    assert (verdict.result, "no such class" in verdict.reason) == ("error", True)


@pytest.mark.parametrize(
    ("order", "result"),
    [
        (apixaban(), "pass"),
        (apixaban(authoredOn="1999-01-01"), "pass"),
        (apixaban(subject={"reference": "Patient/p-7002"}), "fail"),
        (apixaban(status="draft"), "fail"),
        (apixaban(dosageInstruction=[{"text": "50 mg PO BID"}]), "fail"),
        (apixaban(status="cancelled"), "fail"),
    ],
)
def test_an_order_counts_by_the_ledger_the_patient_and_its_state(
    tiny_task: Task, order: dict[str, Any], result: str
) -> None:
    # Weakness 15: the date that the agent wrote decides nothing. Weakness 13: a ten-fold dose fails.
    (verdict,) = grade(evidence(tiny_task, order), [tiny_task.checkpoints[1]], AT)
    assert verdict.result == result, verdict.reason


@pytest.mark.usefixtures("trusting")
@pytest.mark.parametrize(
    ("body", "facts", "result"),
    [
        ("return passed('x')", FACTS[:1], "pass"),
        ("return partial('x')", FACTS[:1], "partial"),
        ("return failed('x')", FACTS[:1], "fail"),
        ("raise ValueError", FACTS[:1], "error"),
        ("return passed('x')", ("Observation/o-weight",), "fail"),
        ("return passed('x')", (FACTS[0], "Observation/o-weight"), "partial"),
        # A proven fail stays one beside a part that could not be judged; a part that passed does not hide the error.
        ("raise ValueError", ("Observation/o-weight",), "fail"),
        ("raise ValueError", (FACTS[0], "Observation/o-weight"), "error"),
    ],
)
def test_several_keys_hold_together(body: str, facts: tuple[str, ...], result: str) -> None:
    task = coded(f"from graders.verdicts import failed, partial, passed\n\ndef check(evidence):\n    {body}\n")
    found = evidence(task, calls=[read(task, 1, "Observation/o-creatinine")])
    assert one(found, function="check", seen=facts).result == result


# ---- judge and hybrid -----------------------------------------------------------------------------------------------


def test_without_a_judge_a_judged_checkpoint_is_ungraded(tiny_task: Task) -> None:
    # Weakness 11: never a clinical fail.
    verdict = one(evidence(tiny_task), grader="judge", file=TINY_NOTE, rubric={"pass": "a", "fail": "b"})
    assert (verdict.result, verdict.reason, verdict.grader.kind) == (
        "ungraded",
        "ungraded: no judge configured",
        "judge",
    )


def test_a_legacy_checkpoint_is_not_run(tiny_task: Task) -> None:
    assert one(evidence(tiny_task), grader="pytest", function="test_x").result == "ungraded"


def hybrid(task: Task, text: str | None, **keys: Any) -> Verdict:
    files = {} if text is None else {TINY_NOTE: text}
    declared = {
        "grader": "hybrid",
        "truth": "latest:2160-0",
        "unit": "mg/dL",
        "tolerance": 0.05,
        "extract": {
            "file": TINY_NOTE,
            "pattern": r"creatinine (?:is )?(?P<value>[\d.,]+)(?: ?(?P<unit>mg/dL|umol/L))?",
        },
    }
    return one(evidence(task, files=files), **(declared | keys))


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("Creatinine is 1.1 mg/dL.", "pass"),
        ("Creatinine 1.10", "pass"),
        ("creatinine 97 umol/L", "pass"),
        ("creatinine 97 mg/dL", "fail"),
        ("Creatinine is 1.3 mg/dL.", "fail"),
        ("No value here", "fail"),
        (None, "fail"),
        ("creatinine 1.1 mg/dL, later creatinine 1.4 mg/dL", "ungraded"),
        ("creatinine 1.1 mg/dL, again creatinine 1.10 mg/dL", "pass"),
    ],
)
def test_a_value_is_compared_in_its_unit(tiny_task: Task, text: str | None, result: str) -> None:
    verdict = hybrid(tiny_task, text)
    assert (verdict.result, verdict.grader.kind) == (result, "hybrid"), verdict.reason


def test_several_values_of_which_one_is_right_wait_for_a_physician(tiny_task: Task) -> None:
    assert "needs review" in hybrid(tiny_task, "creatinine 1.1 mg/dL or creatinine 9 mg/dL").reason


@pytest.mark.parametrize("pattern", [r"(\d+)+x", r"((a*)b?)*", "(", r"(?:(?:[a-z]+ ?)+)*$"])
def test_a_pattern_that_is_none_or_never_ends_is_an_error(tiny_task: Task, pattern: str) -> None:
    verdict = hybrid(tiny_task, "a" * 40, extract={"file": TINY_NOTE, "pattern": pattern})
    assert verdict.result == "error"


def test_a_value_that_only_a_model_could_extract_waits_for_one(tiny_task: Task) -> None:
    verdict = hybrid(tiny_task, "x", extract={"file": TINY_NOTE, "field": "creatinine"})
    assert verdict.reason == "ungraded: no judge configured"


def test_a_truth_that_the_chart_does_not_give_is_an_error_and_not_a_fail(tiny_task: Task) -> None:
    assert hybrid(tiny_task, "creatinine 1.1", truth="latest:0000-0").result == "error"


TRUTH = "from graders.verdicts import Truth\n\ndef dose(evidence):\n    return Truth(1.1, 'mg/dL')\n"


def test_a_truth_function_of_foreign_code_runs_in_the_sandbox() -> None:
    verdict = hybrid(coded(f"{OWN_CODE}\n{TRUTH}"), "creatinine 1.1", truth="dose")
    assert (verdict.result, verdict.grader.name) == ("pass", "hybrid[kernel]"), verdict.reason


@pytest.mark.usefixtures("trusting")
@pytest.mark.parametrize(("code", "result"), [(TRUTH, "pass"), (TRUTH.replace("Truth(1.1, 'mg/dL')", "1.1"), "error")])
def test_a_truth_function_returns_a_truth(code: str, result: str) -> None:
    assert hybrid(coded(code), "creatinine 1.1", truth="dose").result == result


# ---- cost -----------------------------------------------------------------------------------------------------------


def test_grading_imports_neither_pandas_nor_pint() -> None:
    import subprocess

    program = "import sys, graders, graders.regrade; print(sorted({'pandas', 'pint', 'numpy'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pandas" not in found.stdout
    assert "pint" not in found.stdout
