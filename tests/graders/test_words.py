"""Every key of the order vocabulary has its words, and every kind of checkpoint reads as a sentence."""

from __future__ import annotations

from datetime import timedelta, timezone
from typing import Any

import pytest

from graders.describe import describe
from graders.words import harm_words, must_not_words, order_words, plain_words, source_words
from tasks.declarations import Checkpoint, Harm, MustNotRow, OrderRow, Source
from tasks.fhir.resources import Resource
from tasks.package import Task

ROWS: list[tuple[str, dict[str, Any], str, str]] = [
    ("ingredient", {"ingredient": "apixaban"}, "MedicationRequest", "apixaban"),
    (
        "ingredient + b, split",
        {"ingredient": "a + b", "split": True},
        "MedicationRequest",
        "a + b (as one product or apart)",
    ),
    ("class", {"class": "PPI"}, "MedicationRequest", "any PPI"),
    (
        "release",
        {"ingredient": "metoprolol", "release": "extended"},
        "MedicationRequest",
        "metoprolol extended-release",
    ),
    ("dose", {"ingredient": "apixaban", "dose": "2.5-5 mg"}, "MedicationRequest", "apixaban 2.5 to 5 mg"),
    ("daily", {"ingredient": "metformin", "daily": "1500 mg"}, "MedicationRequest", "metformin at 1500 mg a day"),
    (
        "daily beside dose",
        {"ingredient": "x", "dose": "500 mg", "daily": "1500 mg"},
        "MedicationRequest",
        "x 500 mg, in all 1500 mg a day",
    ),
    ("frequency", {"ingredient": "x", "frequency": "BID"}, "MedicationRequest", "x twice daily"),
    (
        "frequencies",
        {"ingredient": "x", "frequency": ("q8h", "TID", "every other day")},
        "MedicationRequest",
        "x every 8 hours, three times daily or every other day",
    ),
    ("once", {"ingredient": "x", "frequency": "once"}, "MedicationRequest", "x as a single dose"),
    ("prn", {"ingredient": "x", "prn": True}, "MedicationRequest", "x as needed"),
    ("not prn", {"ingredient": "x", "prn": False}, "MedicationRequest", "x on a schedule, not as needed"),
    (
        "max_daily",
        {"ingredient": "x", "max_daily": "4 g"},
        "MedicationRequest",
        "x with a stated maximum of 4 g a day",
    ),
    (
        "route",
        {"ingredient": "x", "route": ("oral", "IV")},
        "MedicationRequest",
        "x by mouth or by intravenous route",
    ),
    ("duration", {"ingredient": "x", "duration": "5-10 d"}, "MedicationRequest", "x for 5 to 10 days"),
    (
        "taper",
        {"ingredient": "x", "taper": {"first_dose": "40 mg", "step": "10 mg", "interval": "1 wk", "end": "10 mg"}},
        "MedicationRequest",
        "x tapered from 40 mg in steps of 10 mg every week, down to 10 mg",
    ),
    (
        "steps",
        {
            "ingredient": "apixaban",
            "steps": (
                {"dose": "10 mg", "frequency": "BID", "duration": "7 d"},
                {"dose": "5 mg", "frequency": "BID"},
            ),
        },
        "MedicationRequest",
        "apixaban 10 mg twice daily for 7 days, then 5 mg twice daily",
    ),
    (
        "test",
        {"test": "potassium"},
        "ServiceRequest",
        "laboratory test: potassium (or a panel that contains it)",
    ),
    (
        "imaging",
        {"imaging": {"modality": "MRI", "site": "brain", "contrast": "with"}},
        "ServiceRequest",
        "MRI of the brain with contrast",
    ),
    (
        "imaging of a side",
        {"imaging": {"modality": "MRI", "site": "knee", "contrast": ("without", "both"), "laterality": "left"}},
        "ServiceRequest",
        "MRI of the left knee without contrast or with and without contrast",
    ),
    ("referral", {"referral": "nephrology"}, "ServiceRequest", "referral to nephrology"),
    ("referral visit", {"referral": "nephrology"}, "Appointment", "appointment with nephrology"),
    ("procedure", {"procedure": "colonoscopy"}, "ServiceRequest", "procedure: colonoscopy"),
    (
        "urgency",
        {"referral": "neurology", "urgency": "urgent"},
        "ServiceRequest",
        "referral to neurology, marked urgent or higher",
    ),
    (
        "urgency routine asks nothing",
        {"referral": "neurology", "urgency": "routine"},
        "ServiceRequest",
        "referral to neurology",
    ),
    (
        "when",
        {"test": "potassium", "when": "2-5 wk"},
        "ServiceRequest",
        "laboratory test: potassium (or a panel that contains it), due in 2 to 5 weeks from the date of the task",
    ),
    (
        "trigger, act, owner",
        {"trigger": "potassium above 5.5 mmol/L", "act": "stop finerenone", "owner": "the PCP"},
        "Communication",
        "if potassium above 5.5 mmol/L: then stop finerenone, done by the PCP",
    ),
    ("reason", {"ingredient": "x", "reason": "gout"}, "MedicationRequest", "x, with the reason given: gout"),
    (
        "replaces",
        {"ingredient": "x", "replaces": "warfarin"},
        "MedicationRequest",
        "x, in place of warfarin, which is stopped",
    ),
    (
        "type alone names the order",
        {"reason": "a fall"},
        "Appointment",
        "an appointment, with the reason given: a fall",
    ),
]


@pytest.mark.parametrize(("row", "type", "words"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_row_reads_as_a_physician_would_say_it(row: dict[str, Any], type: Any, words: str) -> None:
    assert order_words(OrderRow.model_validate(row), type) == words


def test_every_key_of_the_vocabulary_has_a_row_here() -> None:
    said = {key for _, row, _, _ in ROWS for key in row}
    keys = {field.alias or name for name, field in OrderRow.model_fields.items()}
    assert keys - said == {"type"}


def checkpoint(**keys: Any) -> Checkpoint:
    base: dict[str, Any] = {
        "id": "cp1",
        "title": "A title",
        "capability": "action_execution",
        "criticality": "critical",
        "reachable": ("paper",),
        "grader": "code",
    }
    return Checkpoint.model_validate(base | keys)


SEMAGLUTIDE = {
    "type": "MedicationRequest",
    "accept": ({"ingredient": "semaglutide", "dose": "0.25 mg", "frequency": "weekly", "route": "subcutaneous"},),
}


@pytest.mark.parametrize(
    ("authority", "action", "words"),
    [
        ("orders", "do_now", "as an active order"),
        ("pends", "do_now", "as a draft or proposed order for signature"),
        ("orders", "pend", "as a draft or proposed order for signature"),
        (
            "recommends",
            "do_now",
            "recommended in a message or the note, or as a draft, not as an active order",
        ),
        ("orders", "conditional", "stated as a condition in an order, a message, or the note"),
        (None, "do_now", "in the form that the task's authority asks for"),
    ],
)
def test_the_authority_says_in_what_form_an_order_is_due(authority: Any, action: str, words: str) -> None:
    assert plain_words(checkpoint(order=SEMAGLUTIDE, action=action), authority=authority).passes == (
        f"Semaglutide 0.25 mg once weekly by subcutaneous injection, {words}",
    )


def test_an_order_fails_with_what_its_declaration_checks_and_with_what_must_not_be() -> None:
    words = plain_words(
        checkpoint(
            order=SEMAGLUTIDE,
            must_not=(
                {"class": "GLP-1 RA", "unless": {"ingredient": "semaglutide"}},
                {"ingredient": "x", "daily": ">700 mg"},
            ),
        ),
        authority="orders",
    )
    assert words.fails == (
        "No such order, or one with another drug, dose, frequency or route",
        "Only a draft, a cancelled or stopped order, one for another patient, or only a mention in the note",
        "A second order of the same kind",
        "Any GLP-1 RA, ordered or recommended — unless there is semaglutide",
        "X at more than 700 mg a day, ordered or recommended",
    )  # fmt: skip


def test_alternatives_are_marked_as_such() -> None:
    order = {"type": "MedicationRequest", "accept": ({"ingredient": "a"},), "also_accept": ({"ingredient": "b"},)}
    words = plain_words(checkpoint(order=order), authority="orders")
    assert words.any_of
    assert words.passes == ("A, as an active order", "B, as an active order")


def test_what_must_not_be_alone_passes_by_its_absence() -> None:
    words = plain_words(checkpoint(must_not=({"class": "NSAID"},)))
    assert words.passes == ("None of what is listed under “Fails with” is there",)
    assert words.fails == ("Any NSAID, ordered or recommended",)


def test_a_followup_stands_beside_the_order() -> None:
    words = plain_words(checkpoint(order=SEMAGLUTIDE, followup=({"test": "potassium", "when": "2-5 wk"},)))
    assert words.also == (
        "Follow-up: laboratory test: potassium (or a panel that contains it),"
        " due in 2 to 5 weeks from the date of the task",
    )


def test_facts_are_named_by_what_they_say(tiny_task: Task) -> None:
    words = plain_words(tiny_task.checkpoints[0], records=tiny_task.chart)
    assert words.rests_on == (
        "Creatinine in Serum or Plasma 1.1 mg/dL, 3 Mar 2025 (Observation/o-creatinine)",
        "“stopped warfarin” in Progress note, 11 Sep 2024 (DocumentReference/n-1)",
    )
    assert words.passes[0].startswith("The agent was shown all of: Creatinine")


def test_a_function_reads_as_its_docstring(tiny_task: Task) -> None:
    words = plain_words(tiny_task.checkpoints[2], code=tiny_task.code)
    assert words.passes == ("The reply names the drug, the creatinine and the weight",)


def test_a_function_without_code_at_hand_is_named() -> None:
    words = plain_words(checkpoint(function="reply_gives_reasons"))
    assert words.passes == ("The check “reply gives reasons” in checkpoints.py holds",)


def test_a_hybrid_checkpoint_says_value_file_and_tolerance() -> None:
    words = plain_words(
        checkpoint(
            grader="hybrid",
            truth="egfr_ckd_epi_2021",
            extract={"file": "/workspace/output/reply.md", "pattern": r"eGFR\D*(\d+)"},
            unit="mL/min/1.73m2",
            tolerance=2,
        )
    )
    assert words.passes == (
        "The file reply.md states the eGFR by CKD-EPI 2021 from the latest creatinine,"
        " within 2 mL/min/1.73m2 of what the chart gives",
    )


def test_a_judged_checkpoint_gives_its_rubric() -> None:
    words = plain_words(
        checkpoint(
            grader="judge", file="/workspace/output/n.md", rubric={"pass": "All.", "partial": "Some.", "fail": "None."}
        )
    )
    assert (words.passes, words.partial, words.fails) == (("All. (in n.md)",), "Some.", ("None.",))


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (("omission", "severe", "likely"), "Severe harm, likely, from leaving it out"),
        (("commission", "death", "possible"), "Death, possible, from what is done"),
        (("omission", "none", "unlikely"), "No harm expected"),
    ],
)
def test_harm_in_words(harm: tuple[Any, Any, Any], words: str) -> None:
    kind, severity, likelihood = harm
    assert harm_words(Harm(kind=kind, severity=severity, likelihood=likelihood)) == words


def test_a_source_that_nobody_has_read_says_so() -> None:
    source = Source(org="ACC/AHA", year=2023, section="6.3", strength="1")
    assert source_words(source) == "ACC/AHA 2023, section 6.3, strength 1 (not yet verified)"
    assert source_words(source.model_copy(update={"verified": True})) == "ACC/AHA 2023, section 6.3, strength 1"


def test_unless_names_the_kind_of_order_that_excuses() -> None:
    row = MustNotRow.model_validate({"class": "NSAID", "unless": {"type": "ServiceRequest", "referral": "nephrology"}})
    assert must_not_words(row) == "any NSAID, ordered or recommended — unless there is referral to nephrology"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"resourceType": "Patient", "gender": "male", "birthDate": "1956-08-02"}, "patient, male, born 2 Aug 1956"),
        (
            {
                "resourceType": "MedicationRequest",
                "status": "stopped",
                "medicationCodeableConcept": {"text": "warfarin"},
            },
            "warfarin (stopped)",
        ),
        (
            {"resourceType": "Observation", "code": {"text": "Urine culture"}, "valueString": "no growth"},
            "Urine culture no growth",
        ),
        ({"resourceType": "Basic"}, "Basic"),
    ],
)
def test_a_resource_in_a_few_words(body: dict[str, Any], words: str) -> None:
    assert describe(Resource.from_body({**body, "id": "x"})) == words


WEST = timezone(timedelta(hours=-5))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"resourceType": "Observation", "effectiveDateTime": "2025-03-04T02:00:00Z"}, "Observation, 3 Mar 2025"),
        ({"resourceType": "Observation", "effectiveDateTime": "2025-03-04"}, "Observation, 4 Mar 2025"),
        ({"resourceType": "Condition", "onsetDateTime": "2025-03"}, "Condition, Mar 2025"),
        ({"resourceType": "Condition", "onsetDateTime": "2025"}, "Condition, 2025"),
        ({"resourceType": "Condition", "onsetDateTime": "soon"}, "Condition, soon"),
        (
            {
                "resourceType": "ServiceRequest",
                "code": {"text": "MRI"},
                "authoredOn": "2025-03-01",
                "occurrenceDateTime": "2025-04-01",
            },
            "MRI, 1 Apr 2025",
        ),
        ({"resourceType": "Encounter", "period": {"start": "2025-03-04T12:00:00Z"}}, "Encounter, 4 Mar 2025"),
        (
            {
                "resourceType": "Observation",
                "code": {"text": "Creatinine"},
                "valueQuantity": {"value": 97, "unit": "umol/L"},
            },
            "Creatinine 97 µmol/L",
        ),
    ],
)
def test_days_and_units_are_told_as_the_chart_tells_them(body: dict[str, Any], words: str) -> None:
    assert describe(Resource.from_body({**body, "id": "x"}), WEST) == words


def test_without_a_zone_the_day_is_the_one_that_is_written() -> None:
    body = {"resourceType": "Observation", "id": "x", "effectiveDateTime": "2025-03-04T02:00:00Z"}
    assert describe(Resource.from_body(body)) == "Observation, 4 Mar 2025"
