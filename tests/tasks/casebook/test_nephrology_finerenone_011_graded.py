"""The finerenone case, graded through the whole house: both plans pass, agents that do not think fail, and so does
each plan with one thing wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tasks
from graders.evidence import Evidence
from graders.grade import grade
from runtime import trial
from runtime.agents import Oracle
from runtime.trial import run_trial
from tasks.casebook.nephrology_finerenone_011 import TASK
from tasks.fhir.resources import Resource
from tasks.package import FolderSource, Task
from tasks.plans import Action, Plan
from tasks.stored import StoredTrial
from tasks.trials import Outcome, TrialKey, Write

SUITE = Path(tasks.__file__).resolve().parent / "suite"
PLANS = ("finerenone-and-semaglutide", "finerenone-first")
MEDICATION, SERVICE, WRITE = "fhir_medication_request_create", "fhir_service_request_create", "write_file"
#: What a judge model would grade; nothing else may be left open.
JUDGED = {"cp12"}
WRONG_MAN = "Patient/p-7c41e9"

Verdicts = dict[str, tuple[str, str]]
Change = Callable[[dict[str, Any]], dict[str, Any] | None]


@pytest.fixture(scope="module")
def task() -> Task:
    return FolderSource(SUITE).load(TASK)


def graded(task: Task, folder: Path, agent: str, plan: Plan | None = None) -> Verdicts:
    key = TrialKey(task=TASK, agent=agent, run=1)
    outcome = run_trial(task, key, folder, model=Oracle(plan) if plan else None)
    assert outcome.outcome is Outcome.finished, outcome.detail
    return {v.checkpoint: (v.result, v.reason) for v in _stored(folder, key).verdicts()}


def _stored(folder: Path, key: TrialKey) -> StoredTrial:
    (done,) = folder.rglob("outcome.json")
    return StoredTrial(done.parent, key)


def failing(verdicts: Verdicts) -> set[str]:
    return {name for name, (result, _) in verdicts.items() if result in ("fail", "partial")}


def changed(plan: Plan, drug_or_test: str, change: Change) -> Plan:
    """The plan with the one create whose display names `drug_or_test` changed; left out where `change` gives None."""
    actions: list[Action] = []
    hits = 0
    for action in plan.actions:
        shown = str(action.arguments.get("medication_display") or action.arguments.get("code_display") or "")
        if action.tool in (MEDICATION, SERVICE) and drug_or_test in shown:
            hits += 1
            arguments = change(dict(action.arguments))
            if arguments is None:
                continue
            action = action.model_copy(update={"arguments": arguments})
        actions.append(action)
    assert hits == 1, drug_or_test
    return replace(plan, actions=tuple(actions))


def added(plan: Plan, tool: str, **arguments: Any) -> Plan:
    whom = {"patient_reference": "Patient/p-7c41d9", "requester_reference": "Practitioner/dr-linden"}
    return replace(plan, actions=(*plan.actions, Action(tool=tool, arguments=whom | arguments)))


def noted(plan: Plan, rewrite: Callable[[str], str]) -> Plan:
    (name,) = plan.files
    return replace(plan, files={name: rewrite(plan.files[name].decode()).encode()})


# ---- the agents -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANS)
def test_each_plan_passes_every_checkpoint_that_needs_no_model(task: Task, tmp_path: Path, name: str) -> None:
    verdicts = graded(task, tmp_path, f"oracle:{name}")
    assert {cp: verdict for cp, verdict in verdicts.items() if verdict[0] != "pass" and cp not in JUDGED} == {}
    assert set(verdicts) == {checkpoint.id for checkpoint in task.checkpoints}
    assert len(task.plans[name].actions) >= 15


def test_no_call_of_a_plan_is_refused_or_cut(task: Task, tmp_path: Path) -> None:
    for name in PLANS:
        folder = tmp_path / name
        graded(task, folder, f"oracle:{name}")
        calls = _stored(folder, TrialKey(task=TASK, agent=f"oracle:{name}", run=1)).calls()
        assert [call.n for call in calls if call.error or call.shown < len(call.result)] == []


def test_doing_nothing_fails_for_what_was_left_undone(task: Task, tmp_path: Path) -> None:
    verdicts = graded(task, tmp_path, "noop")
    assert failing(verdicts) >= {"cp1", "cp2", "cp3", "cp4", "cp6", "cp7", "cp8", "cp11"}
    assert verdicts["cp5"][0] == "pass"


def test_ordering_everything_fails_for_what_must_not_be_ordered(task: Task, tmp_path: Path) -> None:
    verdicts = graded(task, tmp_path, "shotgun")
    assert failing(verdicts) >= {"cp1", "cp4", "cp5", "cp8", "cp9", "cp11"}
    assert "empagliflozin" in verdicts["cp5"][1].lower() or "dapagliflozin" in verdicts["cp5"][1].lower()


@pytest.mark.timeout(900)
def test_copying_the_chart_into_the_note_fails_for_the_missing_orders_and_reasons(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The copied note has a million characters, which every order checkpoint reads again: only one is asked here.
    monkeypatch.setattr(trial, "grade", lambda evidence: [])
    graded(task, tmp_path, "parrot")
    evidence = Evidence.from_trial(task, _stored(tmp_path, TrialKey(task=TASK, agent="parrot", run=1)))
    asked = [one for one in task.checkpoints if one.id in ("cp1", "cp2", "cp3", "cp4", "cp6", "cp8", "cp11")]
    results = {verdict.checkpoint: verdict.result for verdict in grade(evidence, asked)}
    assert results == {name: "pass" if name in ("cp1", "cp2") else "fail" for name in results}
    assert len(results) == 7


# ---- the examples ---------------------------------------------------------------------------------------------------


def test_each_example_order_placed_alone_passes_or_fails_as_the_declaration_says(task: Task) -> None:
    checked = 0
    for checkpoint in task.checkpoints:
        said = [(path, "pass") for path in checkpoint.must_match] + [(p, "fail") for p in checkpoint.must_not_match]
        for path, expected in said:
            body = task.examples[path].decode()
            order = Write(sequence=1, call=None, reference=Resource.parse(body).ref, version=1, resource=body)
            (verdict,) = grade(Evidence(task=task, chart=task.chart, created=(order,)), [checkpoint])
            assert (path, verdict.result) == (path, expected), verdict.reason
            checked += 1
    assert checked == len([path for path in task.examples if path.endswith(".json")]) == 16


def test_the_judged_checkpoint_has_a_text_for_each_level(task: Task) -> None:
    texts = {path for path in task.examples if path.endswith(".md")}
    assert texts == {f"examples/cp12-{level}.md" for level in ("pass", "partial", "fail")}
    for path in texts:
        # What the judge must tell apart is usefulness, not the value that another checkpoint reads.
        assert "Current eGFR (CKD-EPI 2021): 33 mL/min/1.73 m2" in task.examples[path].decode()


# ---- one thing wrong ------------------------------------------------------------------------------------------------


def left_out(_: dict[str, Any]) -> None:
    return None


def setting(**values: Any) -> Change:
    return lambda arguments: arguments | values


MUTANTS: dict[str, tuple[Callable[[Plan], Plan], set[str]]] = {
    "finerenone left out": (lambda p: changed(p, "finerenone", left_out), {"cp6"}),
    "finerenone 20 mg": (
        lambda p: changed(p, "finerenone", setting(dose_value=20, medication_display="finerenone 20 mg tablet")),
        {"cp6", "cp9"},
    ),
    "finerenone ten-fold": (
        lambda p: changed(p, "finerenone", setting(dose_value=100, medication_display="finerenone")),
        {"cp6", "cp9"},
    ),
    "finerenone in another unit": (
        lambda p: changed(p, "finerenone", setting(dose_unit="mcg", medication_display="finerenone")),
        {"cp6"},
    ),
    "finerenone twice daily": (lambda p: changed(p, "finerenone", setting(frequency_text="BID")), {"cp6", "cp9"}),
    "finerenone for the wrong man": (
        lambda p: changed(p, "finerenone", setting(patient_reference=WRONG_MAN)),
        {"cp6"},
    ),
    "finerenone as a draft": (lambda p: changed(p, "finerenone", setting(status="draft")), {"cp6"}),
    "finerenone cancelled": (lambda p: changed(p, "finerenone", setting(status="cancelled")), {"cp6"}),
    "finerenone negated": (
        lambda p: changed(p, "finerenone", setting(note_text="Do not start finerenone.")),
        {"cp6"},
    ),
    "finerenone twice": (
        lambda p: added(
            p, MEDICATION, medication_display="finerenone 10 mg tablet", dose_value=10, dose_unit="mg",
            frequency_text="daily", route_display="oral",
        ),
        {"cp6"},
    ),
    "empagliflozin added": (
        lambda p: added(
            p, MEDICATION, medication_display="empagliflozin 10 mg tablet", dose_value=10, dose_unit="mg",
            frequency_text="daily",
        ),
        {"cp5"},
    ),
    "a combination with an SGLT2 inhibitor added": (
        lambda p: added(p, MEDICATION, medication_display="Synjardy 5 mg / 500 mg", frequency_text="BID"),
        {"cp5"},
    ),
    "spironolactone added": (
        lambda p: added(
            p, MEDICATION, medication_display="spironolactone 25 mg tablet", dose_value=25, dose_unit="mg",
            frequency_text="daily",
        ),
        {"cp9"},
    ),
    "losartan stopped": (
        lambda p: added(p, MEDICATION, medication_display="losartan 100 mg tablet", status="stopped"),
        {"cp9"},
    ),
    "potassium left out": (lambda p: changed(p, "Basic metabolic panel", left_out), {"cp7"}),
    "potassium in three months": (
        lambda p: changed(
            p, "Basic metabolic panel",
            setting(occurrence_datetime="2026-06-11T08:00:00-05:00", reason_display="", note_text="In three months."),
        ),
        {"cp7"},
    ),
    "potassium of the wrong man": (
        lambda p: changed(p, "Basic metabolic panel", setting(patient_reference=WRONG_MAN)),
        {"cp7"},
    ),
    "hold rule left out": (
        lambda p: noted(p, lambda text: "\n".join(line for line in text.splitlines() if "5.5" not in line)),
        {"cp8"},
    ),
    "note recommends empagliflozin": (
        lambda p: noted(p, lambda text: text + "\nRecommend starting empagliflozin 10 mg daily after 3 months.\n"),
        {"cp5"},
    ),
    "eGFR wrong": (
        lambda p: noted(p, lambda text: text.replace("(CKD-EPI 2021): 33", "(CKD-EPI 2021): 39")),
        {"cp3"},
    ),
    "orders without a note": (
        lambda p: replace(p, actions=tuple(a for a in p.actions if a.tool != WRITE), files={}),
        {"cp3", "cp4", "cp8"},
    ),
    "a note without orders": (
        lambda p: replace(p, actions=tuple(a for a in p.actions if a.tool not in (MEDICATION, SERVICE))),
        {"cp6", "cp7"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_plan_with_one_thing_wrong_fails_where_it_is_wrong(
    task: Task, tmp_path: Path, name: str, mutant: str
) -> None:
    change, expected = MUTANTS[mutant]
    verdicts = graded(task, tmp_path, "oracle", change(task.plans[name]))
    assert failing(verdicts) >= expected, verdicts
    assert not [cp for cp, (result, _) in verdicts.items() if result == "error"]


HARMLESS: dict[str, Callable[[Plan], Plan]] = {
    "brand name and Latin": lambda p: changed(
        p, "finerenone", setting(medication_display="Kerendia 10 mg tab", frequency_text="qd", route_display="PO")
    ),
    "grams": lambda p: changed(
        p, "finerenone", setting(dose_value=0.01, dose_unit="g", medication_display="finerenone")
    ),
    "every morning": lambda p: changed(p, "finerenone", setting(frequency_text="every morning")),
    "potassium alone, in words": lambda p: changed(
        p, "Basic metabolic panel",
        lambda a: {k: v for k, v in a.items() if k != "occurrence_datetime"}
        | {"code_code": "2823-3", "code_display": "Potassium", "note_text": "Draw in 4 weeks."},
    ),
    "a day earlier": lambda p: changed(
        p, "Basic metabolic panel",
        setting(occurrence_datetime="2026-04-08", code_display="Comprehensive metabolic panel", code_code="24323-8"),
    ),
    "an extra early potassium": lambda p: added(
        p, SERVICE, code_code="2823-3", code_display="Potassium", occurrence_datetime="2026-03-26"
    ),
    "a note of the order that times other things": lambda p: changed(
        p, "Basic metabolic panel",
        setting(note_text="Finerenone 10 mg started today. If hemolyzed, recollect the same day."),
    ),
    "the allergy list in other words": lambda p: noted(
        p, lambda text: text + "\nPlease document empagliflozin as an intolerance.\n"
        "- Allergy list: enter empagliflozin (ketoacidosis).\n"
    ),
    "old entries cleaned up": lambda p: added(
        added(p, MEDICATION, medication_display="potassium chloride 20 mEq tablet", status="stopped",
              note_text="Not taken since 2023."),
        MEDICATION, medication_display="empagliflozin 10 mg tablet", status="stopped",
        note_text="Do not resume. Euglycemic ketoacidosis 08/2024.",
    ),
    "referral to nephrology": lambda p: added(
        p, SERVICE, code_code="3457005", code_system="http://snomed.info/sct", code_display="Referral to nephrology"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("variant", HARMLESS)
def test_a_plan_said_otherwise_still_passes(task: Task, tmp_path: Path, name: str, variant: str) -> None:
    verdicts = graded(task, tmp_path, "oracle", HARMLESS[variant](task.plans[name]))
    assert {cp: verdict for cp, verdict in verdicts.items() if verdict[0] != "pass" and cp not in JUDGED} == {}
