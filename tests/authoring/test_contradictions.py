"""A text that goes on saying the old value is found; one that means something else is not."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from authoring.contradictions import Contradiction, contradictions, texts_of
from tasks.package import Task, load
from tests.tasks.packages import TINY_ID, TINY_PATIENT, tiny_files

SUBJECT = {"reference": TINY_PATIENT}


def result(id: str, number: str, when: str = "2026-03-09", code: str = "2160-0", unit: str = "mg/dL") -> dict[str, Any]:
    return {
        "resourceType": "Observation", "id": id, "status": "final", "subject": SUBJECT,
        "code": {"coding": [{"system": "http://loinc.org", "code": code}]}, "effectiveDateTime": when,
        "valueQuantity": {"value": float(number), "unit": unit},
    }  # fmt: skip


def order(id: str, drug: str, directions: str, when: str = "2026-03-01") -> dict[str, Any]:
    return {
        "resourceType": "MedicationRequest", "id": id, "status": "active", "intent": "order", "subject": SUBJECT,
        "medicationCodeableConcept": {"text": drug}, "authoredOn": when, "dosageInstruction": [{"text": directions}],
    }  # fmt: skip


def note(id: str, text: str, when: str = "2026-03-12", status: str = "current", **more: Any) -> dict[str, Any]:
    data = base64.b64encode(text.encode()).decode()
    return {
        "resourceType": "DocumentReference", "id": id, "status": status, "subject": SUBJECT,
        "date": f"{when}T09:00:00Z",
        "content": [{"attachment": {"contentType": "text/plain", "data": data}}],
    } | more  # fmt: skip


def line(body: dict[str, Any] | None) -> bytes | None:
    return json.dumps(body).encode() if body else None


def task(*more: dict[str, Any], instruction: str = "") -> Task:
    """The tiny task with these resources, and words added to its instruction."""
    files = dict(tiny_files())
    for body in more:
        path = f"chart/{body['resourceType']}.ndjson"
        files[path] = files.get(path, b"") + json.dumps(body).encode() + b"\n"
    for path in files:
        if path.startswith("chart/"):
            rows = [row for row in files[path].split(b"\n") if row]
            files[path] = b"\n".join(sorted(rows, key=lambda row: str(json.loads(row)["id"]))) + b"\n"
    files["instruction.md"] += instruction.encode()
    return load(files, where=TINY_ID)


def found(old: dict[str, Any], new: dict[str, Any] | None, *texts: dict[str, Any], **more: Any) -> list[Contradiction]:
    """What contradicts the change of a result's value."""
    stands = [new] if new else []
    made = task(*stands, *texts, **more)
    return contradictions(texts_of(made, made.chart), made.chart, line(old), line(new), ["/valueQuantity"])


OLD, NEW = result("o-x", "1.72"), result("o-x", "1.81")


@pytest.mark.parametrize(
    "text",
    [
        "Creatinine 1.72 mg/dL on Monday.",
        "Labs reviewed.\nCr of 1.72, up from last year.",
        "His creatinine is now 1.7 mg/dL.",
        "Creatinine 152 µmol/L.",
        "Creatinine was 1.4 in May and 1.72 now.",
    ],
)
def test_a_note_with_the_old_value_contradicts(text: str) -> None:
    (one,) = found(OLD, NEW, note("n-x", text))
    assert (one.ref, one.what, one.maybe) == ("DocumentReference/n-x", "Note of 12 Mar 2026", "")
    assert one.says in text
    assert one.sentence in " ".join(text.split())


@pytest.mark.parametrize(
    "text",
    [
        "Creatinine 1.81 mg/dL.",
        "Creatinine 1.72, corrected to 1.81 the same day.",
        "Creatinine clearance 1.72.",
        "Potassium 1.72.",
        "Creatinine rechecked in 1.72 weeks.",
        "Creatinine 11.72 or 1.725.",
        "Creatinine is stable. Version 1.72 of the form.",
        "Creatinine 2.",
    ],
)
def test_a_note_that_says_something_else_does_not(text: str) -> None:
    assert found(OLD, NEW, note("n-x", text)) == []


def test_a_note_older_than_the_value_cannot_be_about_it() -> None:
    assert found(OLD, NEW, note("n-x", "Creatinine 1.72.", when="2026-02-01")) == []


def test_a_superseded_note_and_another_patient_s_are_not_read() -> None:
    other = {"reference": "Patient/p-other"}
    stranger = {"resourceType": "Patient", "id": "p-other"}
    assert found(OLD, NEW, note("n-x", "Creatinine 1.72.", status="superseded")) == []
    assert found(OLD, NEW, stranger, note("n-x", "Creatinine 1.72.", subject=other)) == []


def test_a_text_that_may_mean_another_result_says_which() -> None:
    (one,) = found(OLD, NEW, result("o-y", "1.72", when="2026-01-05"), note("n-x", "Creatinine 1.72."))
    assert one.maybe == "the result of 5 Jan 2026"


def test_the_instruction_is_read_and_notes_come_first() -> None:
    both = found(OLD, NEW, note("n-x", "Creatinine 1.72."), instruction="\nHis creatinine is 1.72.\n")
    assert [one.what for one in both] == ["Note of 12 Mar 2026", "The instruction"]


def test_a_result_that_is_taken_out_is_still_said() -> None:
    assert [one.says for one in found(OLD, None, note("n-x", "Creatinine 1.72."))] == ["1.72"]


def test_a_change_of_the_unit_alone_contradicts_nothing() -> None:
    same = result("o-x", "152", code="14682-9", unit="umol/L")
    moved = OLD | {"valueQuantity": {"value": 1.720, "unit": "mg/dL", "code": "mg/dL"}}
    assert found(OLD, moved, note("n-x", "Creatinine 1.72.")) == []
    assert found(OLD, same, note("n-x", "Creatinine 1.72.")) == []


def dosed(old: dict[str, Any], new: dict[str, Any], *texts: dict[str, Any]) -> list[Contradiction]:
    made = task(new, *texts)
    return contradictions(
        texts_of(made, made.chart), made.chart, line(old), line(new), ["/medicationCodeableConcept/text"]
    )


@pytest.mark.parametrize("text", ["Takes losartan 100 mg daily.", "Cozaar 0.1 g each morning."])
def test_a_note_with_the_old_dose_contradicts(text: str) -> None:
    old, new = order("m-x", "Losartan 100 mg tablet", "1 daily"), order("m-x", "Losartan 50 mg tablet", "1 daily")
    assert [one.ref for one in dosed(old, new, note("n-x", text))] == ["DocumentReference/n-x"]


@pytest.mark.parametrize("text", ["Losartan 50 mg daily.", "Metoprolol 100 mg daily.", "Losartan; metoprolol 100 mg."])
def test_another_dose_or_another_drug_does_not(text: str) -> None:
    old, new = order("m-x", "Losartan 100 mg tablet", "1 daily"), order("m-x", "Losartan 50 mg tablet", "1 daily")
    assert dosed(old, new, note("n-x", text)) == []


def test_what_has_no_value_and_no_name_is_not_looked_for() -> None:
    nameless = OLD | {"code": {"text": "Something"}}
    assert (
        found(nameless, nameless | {"valueQuantity": {"value": 2, "unit": "mg/dL"}}, note("n", "Something 1.72.")) == []
    )
    made = task(NEW)
    assert contradictions(texts_of(made, made.chart), made.chart, None, line(NEW), ["/valueQuantity"]) == []


# Each example indexes two charts, which is no thing to be timed.
@settings(deadline=None, max_examples=30)
@given(st.decimals(min_value="0.5", max_value="9.9", places=2), st.decimals(min_value="0.5", max_value="9.9", places=2))
def test_the_old_value_is_found_and_the_new_one_never(old: Decimal, new: Decimal) -> None:
    before, after = result("o-x", str(old)), result("o-x", str(new))
    says_old = [one.ref for one in found(before, after, note("n-x", f"Creatinine {old} mg/dL."))]
    assert ("DocumentReference/n-x" in says_old) == (old != new)
    says_new = [one.ref for one in found(before, after, note("n-x", f"Creatinine {new} mg/dL."))]
    assert "DocumentReference/n-x" not in says_new
