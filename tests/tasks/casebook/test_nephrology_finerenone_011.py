"""The finerenone case: what its chart holds, and that its own functions understand usual wording and nothing else."""

from __future__ import annotations

import base64
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tasks
from graders.evidence import Evidence
from graders.truths import compute
from tasks.casebook.nephrology_finerenone_011 import NOW, TASK
from tasks.casebook.nephrology_finerenone_011.labs import DRAWS, age_on, egfr
from tasks.casebook.nephrology_finerenone_011.people import PATIENT
from tasks.fhir.elements import check
from tasks.fhir.resources import Resource, references
from tasks.package import FolderSource, Task

SUITE = Path(tasks.__file__).resolve().parent / "suite"
NOTE = "/workspace/output/nephrology_econsult.md"


@pytest.fixture(scope="module")
def task() -> Task:
    return FolderSource(SUITE).load(TASK)


def text_of(note: Resource) -> str:
    return base64.b64decode(note.body["content"][0]["attachment"]["data"]).decode()


def notes(task: Task) -> dict[str, str]:
    return {note.ref: text_of(note) for note in task.chart.resources("DocumentReference")}


# ---- the chart ------------------------------------------------------------------------------------------------------


def test_the_package_loads_and_lacks_nothing_for_a_release(task: Task) -> None:
    assert not task.is_draft
    assert task.missing_for_release() == []


def test_the_chart_is_valid_r4_of_real_size_over_seven_years(task: Task) -> None:
    assert 300 <= len(task.chart) <= 1500
    assert {(r.ref, issue) for r in task.chart.resources() for issue in check(r.body)} == set()
    assert list(task.chart.dangling()) == []
    drawn = sorted(r.body["effectiveDateTime"] for r in task.chart.resources("Observation"))
    assert drawn[0][:4] == "2019"
    assert drawn[-1][:10] == "2026-03-09"
    assert NOW.isoformat() > drawn[-1]


def test_the_ketoacidosis_stands_in_one_document_under_a_bland_title(task: Task) -> None:
    named = [ref for ref, text in notes(task).items() if re.search("ketoacid|dka", text, re.I)]
    assert named == ["DocumentReference/dr-b9164640a4"]
    note = task.chart.get(named[0])
    assert note is not None
    assert note.body["description"] == "Outside records 08/2024 - scan 2 of 3"
    everything = [r for r in task.chart.resources() if r.type != "DocumentReference"]
    assert not [r.ref for r in everything if re.search("ketoacid|dka", r.raw, re.I)]


def test_no_text_of_the_chart_gives_the_answer_away(task: Task) -> None:
    readable = "\n".join([task.instruction, *notes(task).values()])
    assert not re.search(r"finerenone[^.\n]{0,40}\b(?:10|20)\s*mg|kerendia", readable, re.I)
    assert not re.search(r"5\.5", readable)
    assert "ketoacid" not in task.instruction.lower()
    assert "salt" not in task.instruction.lower()


def test_nothing_in_the_chart_looks_like_an_identifier(task: Task) -> None:
    lines = [*notes(task).values(), *(r.raw for r in task.chart.resources() if r.type != "DocumentReference")]
    text = "\n".join(lines)
    for pattern in (
        r"\b\d{3}-\d{2}-\d{4}\b",
        r"\(\d{3}\)\s*\d{3}-\d{4}",
        r"\b\d{3}-\d{3}-\d{4}\b",
        r"\S+@\S+\.\w+",
        r"\bMRN\b",
    ):
        assert re.search(pattern, text) is None, pattern
    assert "identifier" not in {key for r in task.chart.resources() for key in r.body}


def test_what_is_on_the_lists_is_untidy_on_purpose(task: Task) -> None:
    active = [
        r.body["medicationCodeableConcept"]["text"]
        for r in task.chart.resources("MedicationRequest")
        if r.body["status"] == "active"
    ]
    assert any("diltiazem" in name for name in active)
    assert any("potassium chloride" in name for name in active)
    assert not any("empagliflozin" in name for name in active)
    names = Counter(
        r.body["code"]["coding"][0]["code"]
        for r in task.chart.resources("Condition")
        if r.body["subject"]["reference"] == PATIENT
    )
    assert names["N39.0"] == 2


def test_every_reference_and_encounter_of_the_patient_is_about_the_patient(task: Task) -> None:
    others = {r.ref for r in task.chart.resources() for _, target in references(r.body) if target == "Patient/p-7c41e9"}
    assert len(others) == 2


def test_the_printed_egfr_agrees_with_a_hand_calculation() -> None:
    # 2.21 / 0.9 = 2.4556; ln = 0.89835; x -1.2 = -1.07802; e^ = 0.34027; 0.9938^57 = 0.70152; 142 x both = 33.90.
    analyte, value = egfr(2.21, "2026-03-05")
    assert analyte.code.code == "98979-8"
    assert value == pytest.approx(33.90, abs=0.02)
    # 1.45 in 2021 by CKD-EPI 2009 at 52 years: 141 x 1.6111^-1.209 x 0.993^52 = 141 x 0.5618 x 0.6941 = 54.98.
    analyte, value = egfr(1.45, "2021-03-11")
    assert analyte.code.code == "62238-1"
    assert value == pytest.approx(54.98, abs=0.05)
    assert age_on("2026-03-09") == 57


def test_the_notes_quote_the_results_that_the_laboratory_printed(task: Task) -> None:
    by_day = {draw.day: draw for draw in DRAWS}
    checked = 0
    for note in task.chart.resources("DocumentReference"):
        text = text_of(note)
        day = (note.body.get("context") or {}).get("encounter") and note.body["date"][:10]
        draw = by_day.get(str(day))
        if draw is None:
            continue
        for pattern, value in (
            (r"\bCr (\d\.\d\d)", draw.creatinine),
            (r"\bK (\d\.\d)\b", draw.potassium),
            (r"A1c (\d\.\d)", draw.a1c),
        ):
            found = [float(said) for said in re.findall(pattern, text)]
            if found and value is not None:
                assert value in found, (note.ref, pattern, found, value)
                checked += 1
        for said in re.findall(r"eGFR (\d\d)\b", text):
            assert int(said) == round(egfr(draw.creatinine, draw.day)[1]), note.ref
    assert checked > 25


# ---- the functions --------------------------------------------------------------------------------------------------


def call(task: Task, name: str, note: str | None) -> Any:
    evidence = Evidence(task=task, chart=task.chart, files={} if note is None else {"nephrology_econsult.md": note})
    namespace: dict[str, Any] = {"__name__": "checkpoints"}
    exec(compile(task.code or "", "checkpoints.py", "exec"), namespace)
    return namespace[name](evidence)


def test_the_truth_is_the_latest_creatinine_in_either_unit(task: Task) -> None:
    truth = compute("egfr_ckd_epi_2021", Evidence(task=task, chart=task.chart))
    # 199 / 88.4 = 2.2511; / 0.9 = 2.5012; ln = 0.91678; x -1.2 = -1.10014; e^ = 0.33283; x 142 x 0.70152 = 33.155.
    assert truth.value == pytest.approx(33.155, abs=0.01)
    assert truth.unit == "mL/min/1.73m2"
    assert "Observation/o-de9c7fd888" in {getattr(cite, "ref", "") for cite in truth.cites}


DECLINED = [
    "Do not restart empagliflozin: he had euglycemic DKA on it in August 2024.",
    "SGLT2i: contraindicated for him. Outside hospital record 8/2024 shows euglycaemic ketoacidosis (pH 7.14).",
    "## SGLT2 inhibitor\nNo re-challenge.\nEmpagliflozin stays off for good; the outside summary says severe euDKA.",
    "| SGLT2 inhibitor | No, avoid | prior euglycemic DKA on empagliflozin, 08/2024 |",
    "Avoid Jardiance and the whole SGLT-2 class permanently (history of ketoacidosis while on empagliflozin).",
    "He was admitted in August 2024 with euglycemic ketoacidosis.\n\nSo I would not use an SGLT2 inhibitor again.",
    "**SGLT2 inhibitors are contraindicated.** The ED summary says diabetic keto-acidosis, not UTI.",
]
NOT_DECLINED = [
    "Restart empagliflozin 10 mg. A single UTI is not a contraindication.",
    "Do not restart empagliflozin because of the UTI in 2024.",
    "SGLT2 inhibitors: not restarted, there is a class risk of DKA.",
    "There is no history of DKA. Do not restart empagliflozin for now, given the UTI of 2024.",
    "He had DKA in 2024.\nFinerenone is indicated.",
    "Empagliflozin caused DKA in August 2024. Restart it with ketone checks.",
    "",
]


@pytest.mark.parametrize("note", DECLINED)
def test_a_refusal_because_of_the_ketoacidosis_is_understood(task: Task, note: str) -> None:
    assert call(task, "declines_sglt2_because_of_ketoacidosis", note).result == "pass"


@pytest.mark.parametrize("note", NOT_DECLINED)
def test_another_reason_or_no_refusal_does_not_pass(task: Task, note: str) -> None:
    assert call(task, "declines_sglt2_because_of_ketoacidosis", note).result == "fail"


HOLD = [
    "Hold finerenone if K > 5.5; restart at 10 mg once K is 5.0 or less.",
    "- K >5.5: withhold finerenone.\n- Resume 10 mg daily when K <=5.0.",
    "| > 5.5 | Stop finerenone, repeat in 3 days; restart 10 mg when ≤ 5.0 |",
    "If potassium exceeds 5.5 mmol/L, hold the drug. Restart at 10 mg when it falls to 5.0 or below.",
    "Potassium above 5.5 mEq/L: stop finerenone and recheck. When K is at or below 5.0, restart finerenone 10 mg.",
    "K ≥5.5 - hold; re-start 10 mg when K ≤5",
    "K 5.6 or higher: pause finerenone, restart 10 mg once K < 5.0",
    "K > 5.5: hold finerenone. Do not stop losartan. Resume 10 mg at K <= 5.0.",
    "Withhold finerenone (but do not stop losartan) if K > 5.5, reinstate 10 mg once K is 5.0 mmol/L or lower.",
    "K 5.6-5.9: hold finerenone. Re-initiate 10 mg at K no higher than 5.0.",
]
NO_RESTART = ["Hold finerenone if K > 5.5.", "Withhold above 5.5 and call us. Restart as you see fit."]
NO_HOLD = [
    "Do not hold finerenone even if K > 5.5; restart is not needed.",
    "Hold finerenone if K > 6.0; restart when K <= 5.0.",
    "Check K in 4 weeks. If K > 5.5 call us.",
    "Hold losartan if systolic pressure is below 90.",
    "K was 5.6 on 5 March (hemolyzed). Restart nothing.",
    "",
]


@pytest.mark.parametrize("note", HOLD)
def test_a_hold_and_restart_rule_is_understood(task: Task, note: str) -> None:
    assert call(task, "states_the_hold_rule", note).result == "pass"


@pytest.mark.parametrize("note", NO_RESTART)
def test_a_hold_rule_without_restart_is_partial(task: Task, note: str) -> None:
    assert call(task, "states_the_hold_rule", note).result == "partial"


@pytest.mark.parametrize("note", NO_HOLD)
def test_what_is_no_hold_rule_fails(task: Task, note: str) -> None:
    assert call(task, "states_the_hold_rule", note).result == "fail"


@pytest.mark.parametrize(
    "note",
    [
        "Salt substitute: stop today.",
        "Please have him stop the lite salt (potassium chloride).",
        "He uses a potassium-based salt substitute at every meal. Discontinue it before the first tablet.",
        "- He should quit the salt substitute from the dietitian's note.",
        "Avoid potassium chloride salt substitutes.",
        "Replace the salt substitute with herbs.",
        "Stop the lite salt and continue low salt cooking.",
    ],
)
def test_stopping_the_salt_substitute_is_understood(task: Task, note: str) -> None:
    assert call(task, "stops_the_salt_substitute", note).result == "pass"


@pytest.mark.parametrize(
    "note",
    [
        "",
        "He may continue the salt substitute.",
        "Salt substitute noted on 27 January.",
        "Stop NSAIDs. Low potassium diet.",
        "Remove potassium chloride tablets from the list.",
    ],
)
def test_a_salt_substitute_that_is_not_stopped_fails(task: Task, note: str) -> None:
    assert call(task, "stops_the_salt_substitute", note).result == "fail"


@pytest.mark.parametrize(
    ("note", "result"),
    [
        ("GLP-1 RA: start semaglutide after the overdue eye exam (moderate NPDR).", "pass"),
        ("Semaglutide 0.25 mg weekly ordered. Retinopathy: dilated exam before the next step.", "pass"),
        ("GLP-1 RA deferred. A1c 8.1%.", "partial"),
        ("Finerenone only. Eye exam overdue.", "fail"),
        ("", "fail"),
    ],
)
def test_a_glp1_agonist_is_weighed_with_the_eyes_in_mind(task: Task, note: str, result: str) -> None:
    assert call(task, "weighs_a_glp1_agonist", note).result == result


@pytest.mark.parametrize(
    ("note", "result"),
    [
        ("Continue losartan 100 mg.", "pass"),
        ("If vomiting, stop losartan and finerenone until eating.", "pass"),
        ("Do not stop losartan.", "pass"),
        ("Stop losartan and start finerenone.", "fail"),
        ("Reduce losartan to 50 mg.", "fail"),
    ],
)
def test_losartan_is_not_stopped_by_the_note(task: Task, note: str, result: str) -> None:
    assert call(task, "losartan_is_kept", note).result == result


# ---- what is said about the case ------------------------------------------------------------------------------------


def test_the_page_for_reviewers_gives_the_figures_of_the_chart(task: Task) -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "bundled-tasks.md").read_text("utf-8")
    counts = task.chart.types
    assert (
        f"{len(task.chart):,} resources over seven years: {counts['DocumentReference']} notes, two laboratories, "
        f"{counts['Encounter']} encounters."
    ) in page
    for ref in re.findall(r"`((?:Observation|DocumentReference)/[a-z0-9-]+)`", page):
        assert task.chart.get(ref) is not None, ref
    for checkpoint in task.checkpoints:
        assert f"\n| {checkpoint.id.removeprefix('cp')} " in page
