"""What a change of a resource bears on, over a real package: lines, right answers, the chart with it on top."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from authoring.bearing import Bearing, bearing, changed_chart, values_of
from authoring.contradictions import texts_of
from authoring.edits import ResourceEdit, apply, unit_bytes
from tasks.package import SUITE, Task, load
from tests.tasks.packages import TINY_ID, tiny_files

TASK = "nephrology-finerenone-011"


def changed(before: Task, ref: str, **values: Any) -> Task:
    """The task with other values of one resource's valueQuantity."""
    held = before.chart.get(ref)
    assert held is not None
    operations = []
    for key, value in values.items():
        path = f"/valueQuantity/{key}"
        operations.append({"op": "test", "path": path, "value": held.body["valueQuantity"][key]})
        operations.append({"op": "replace", "path": path, "value": value})
    return load(apply(before.files, ResourceEdit(ref=ref, operations=tuple(operations))), where=before.id)


def lines(before: Task, after: Task, ref: str) -> tuple[bytes | None, bytes | None]:
    kind, _, id = ref.partition("/")
    unit = f"chart/{kind}.ndjson#{id}"
    return unit_bytes(before.files, unit), unit_bytes(after.files, unit)


def bears(before: Task, ref: str, after: Task) -> Bearing:
    sides = lines(before, after, ref)
    chart = changed_chart(before, after, sides[1])
    title = {"cp3": "Checkpoint 3", "cp6": "Checkpoint 6"}
    return bearing(before, after, chart, sides, ["/valueQuantity"], title, texts_of(after, chart))


def latest(task: Task, code: str) -> tuple[str, Mapping[str, Any]]:
    """The newest result with this LOINC code at the task's clock."""
    assert task.meta.context is not None
    assert task.meta.context.now is not None
    found = [
        one for one in task.chart.resources("Observation")
        if code in json.dumps(one.body.get("code"))
        and one.body.get("status") == "final"
        and task.meta.context.patient in json.dumps(one.body.get("subject"))
        and str(one.body.get("effectiveDateTime"))[:19] < task.meta.context.now.isoformat()[:19]
    ]  # fmt: skip
    newest = max(found, key=lambda one: str(one.body["effectiveDateTime"]))
    return newest.ref, newest.body["valueQuantity"]


def test_a_creatinine_moves_the_right_answer_of_the_checkpoint_that_computes_from_it() -> None:
    before = SUITE.load(TASK)
    ref, quantity = latest(before, "14682-9")
    after = changed(before, ref, value=float(quantity["value"]) + 60)
    found = bears(before, ref, after)
    (answer,) = found.answers
    assert answer.what == "Checkpoint 3, right answer"
    assert answer.crossed
    assert answer.answer == "yes: beyond its tolerance of 1"
    assert Decimal(answer.after.split()[0]) < Decimal(answer.before.split()[0])
    assert found.faults == ()


def test_a_potassium_across_the_checkpoint_s_limit_says_so() -> None:
    before = SUITE.load(TASK)
    ref, _ = latest(before, "2823-3")
    found = bears(before, ref, changed(before, ref, value=5.6))
    crossed = [line for line in found.lines if line.crossed]
    assert "Checkpoint 6: potassium above 5.0" in [line.what for line in crossed]
    assert found.unnamed == ()
    assert found.answers == ()


def test_a_fault_of_the_new_resource_is_told() -> None:
    before = SUITE.load(TASK)
    ref, _ = latest(before, "2823-3")
    found = bears(before, ref, changed(before, ref, value="high"))
    assert any("value" in fault for fault in found.faults)
    assert found.values["/valueQuantity"].new is None


def test_the_chart_with_the_change_is_the_chart_of_the_changed_package() -> None:
    before = SUITE.load(TASK)
    ref, _ = latest(before, "2823-3")
    after = changed(before, ref, value=5.6)
    _, _, id = ref.partition("/")
    chart = changed_chart(before, after, lines(before, after, ref)[1])
    assert {one.ref: one.raw for one in chart.resources()} == {one.ref: one.raw for one in after.chart.resources()}
    assert [one.raw for one in chart.search("Observation", [("_id", id)]).rows] == [
        one.raw for one in after.chart.search("Observation", [("_id", id)]).rows
    ]


def test_values_are_read_from_lines_alone() -> None:
    body = {"resourceType": "Observation", "valueQuantity": {"value": 5.6, "unit": "mmol/L"}}
    found = values_of(None, json.dumps(body | {"id": "o"}).encode(), ["/valueQuantity", "/status"])
    assert list(found) == ["/valueQuantity"]
    assert found["/valueQuantity"].old is None
    assert found["/valueQuantity"].second == ("", "")


# ---- right answers, as the grader compares them ---------------------------------------------------------------------


def hybrid(truth: str, unit: str = "", tolerance: str = "", **observations: tuple[str, Any, str]) -> Task:
    """The tiny task with one more checkpoint, that computes from results (LOINC code, value, unit) by their ids."""
    files = tiny_files()
    files["checkpoints.toml"] += (
        '\n[[checkpoint]]\nid = "cp4"\ntitle = "Said right"\ncapability = "documentation"\ncriticality = "required"\n'
        f'reachable = ["paper"]\ngrader = "hybrid"\ntruth = "{truth}"\nunit = "{unit}"\n'
        + (f"tolerance = {tolerance}\n" if tolerance else "")
        + 'extract = {file = "/workspace/output/reply.md", pattern = "x ([0-9.]+)"}\n'
    ).encode()
    for id, (code, value, written) in observations.items():
        body = {
            "resourceType": "Observation", "id": id, "status": "final",
            "code": {"coding": [{"system": "http://loinc.org", "code": code}]},
            "subject": {"reference": "Patient/p-7001"}, "effectiveDateTime": "2025-03-10T09:00:00-05:00",
            "valueQuantity": {"value": value, "unit": written, "system": "http://unitsofmeasure.org", "code": written},
        }  # fmt: skip
        files["chart/Observation.ndjson"] += json.dumps(body, separators=(",", ":")).encode() + b"\n"
    return load(files, where=TINY_ID)


def moved(before: Task, id: str, **values: Any) -> list[tuple[str, str, str, bool]]:
    found = bears(before, f"Observation/{id}", changed(before, f"Observation/{id}", **values))
    return [(one.before, one.after, one.answer, one.crossed) for one in found.answers]


def test_a_creatinine_that_only_changes_its_unit_moves_no_right_answer_beyond_the_tolerance() -> None:
    before = hybrid("latest:2160-0", "mg/dL", "0.05", z=("2160-0", 1.72, "mg/dL"))
    assert moved(before, "z", value=152, unit="umol/L", code="umol/L") == [
        ("1.72 mg/dL", "1.72 mg/dL", "no, within its tolerance of 0.05", False)
    ]
    # 180 µmol/L = 2.04 mg/dL.
    assert moved(before, "z", value=180, unit="umol/L", code="umol/L") == [
        ("1.72 mg/dL", "2.04 mg/dL", "yes: beyond its tolerance of 0.05", True)
    ]


def test_without_a_unit_of_the_checkpoint_s_own_the_value_is_told_as_the_chart_has_it() -> None:
    before = hybrid("latest:2160-0", tolerance="0.05", z=("2160-0", 1.72, "mg/dL"))
    ((old, new, answer, crossed),) = moved(before, "z", value=152.05, unit="umol/L", code="umol/L")
    assert (old, new, crossed) == ("1.72 mg/dL", "152.05 µmol/L", True)
    assert answer == "yes: the same value, but a number without a unit is read as µmol/L"


def test_a_right_answer_is_told_in_the_checkpoint_s_unit() -> None:
    labs = {"za": ("17861-6", 8.0, "mg/dL"), "zb": ("1751-7", 3.0, "g/dL")}
    before = hybrid("corrected_calcium", "mmol/L", "0.05", **labs)
    # 8.0 + 0.8 x (4 - 3) = 8.8 mg/dL = 2.196 mmol/L; with 8.1: 8.9 = 2.221 mmol/L.
    assert moved(before, "za", value=8.1) == [("2.20 mmol/L", "2.22 mmol/L", "no, within its tolerance of 0.05", False)]
    assert moved(before, "za", value=9.0) == [("2.20 mmol/L", "2.45 mmol/L", "yes: beyond its tolerance of 0.05", True)]


def test_the_digits_that_decide_are_shown() -> None:
    labs = {"za": ("1920-8", 80, "U/L"), "zb": ("1742-6", 60, "U/L"), "zc": ("777-3", 262, "10*9/L")}
    before = hybrid("fib4", tolerance="0.05", **labs)
    ((old, new, answer, crossed),) = moved(before, "zc", value=256)
    assert (answer, crossed) == ("yes: beyond its tolerance of 0.05", True)
    assert Decimal(new) - Decimal(old) > Decimal("0.05")


def test_a_right_answer_that_is_gone_is_told() -> None:
    before = hybrid("latest:2160-0", "mg/dL", "0.05", z=("2160-0", 1.72, "mg/dL"))
    assert moved(before, "z", unit="furlong", code="furlong") == [
        ("1.72 mg/dL", "cannot be computed", "yes: there is none any more", True)
    ]


# ---- units and ranges -----------------------------------------------------------------------------------------------


def observation(**more: Any) -> bytes:
    body = {
        "resourceType": "Observation", "id": "o-creatinine", "status": "final",
        "code": {"coding": [{"system": "http://loinc.org", "code": "2160-0"}]},
        "subject": {"reference": "Patient/p-7001"}, "effectiveDateTime": "2025-03-03T09:12:00-05:00",
        "valueQuantity": {"value": 1.4, "unit": "mg/dL", "system": "http://unitsofmeasure.org", "code": "mg/dL"},
        "referenceRange": [{"high": {"value": 1.3, "unit": "mg/dL"}}],
    }  # fmt: skip
    return json.dumps(body | more).encode()


def of_lines(was: bytes | None, now: bytes | None, *pointers: str) -> Bearing:
    task = load(tiny_files(), where=TINY_ID)
    return bearing(task, task, changed_chart(task, task, now), (was, now), pointers, {}, ())


def test_a_range_that_changes_alone_says_whether_the_flag_of_its_value_moves() -> None:
    wider = observation(referenceRange=[{"high": {"value": 1.5, "unit": "mg/dL"}}])
    found = of_lines(observation(), wider, "/referenceRange/0")
    assert [(one.what, one.answer) for one in found.lines] == [
        ("Reference range, now up to 1.5 mg/dL", "yes: from above to within the range")
    ]
    assert found.unnamed == ()


def test_a_unit_whose_code_is_another_one_is_told() -> None:
    quantity = {"value": 1.4, "unit": "mg/dL", "system": "http://unitsofmeasure.org", "code": "umol/L"}
    assert of_lines(observation(), observation(valueQuantity=quantity), "/valueQuantity").units == (
        ("mg/dL", "umol/L"),
    )
    assert of_lines(observation(), observation(), "/valueQuantity").units == ()


def test_a_dose_is_asked_for_no_threshold() -> None:
    def order(dose: int) -> bytes:
        quantity = {"value": dose, "unit": "mg"}
        body = {
            "resourceType": "MedicationRequest", "id": "m-1", "status": "active", "intent": "order",
            "medicationCodeableConcept": {"text": "lisinopril 10 mg tablet"},
            "subject": {"reference": "Patient/p-7001"},
            "dosageInstruction": [{"doseAndRate": [{"doseQuantity": quantity}]}],
        }  # fmt: skip
        return json.dumps(body).encode()

    found = of_lines(order(10), order(20), "/dosageInstruction/0/doseAndRate/0/doseQuantity")
    assert found.values
    assert (found.lines, found.unnamed) == ((), ())
