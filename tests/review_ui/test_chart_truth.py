"""What a physician must not be told wrongly: what is taken, what is measured, what is sure, and whose it is."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from types import ModuleType
from typing import Any

import pytest

from review_ui import chart_sections, charts, steps
from review_ui.chartview import ChartView
from review_ui.chartview.dosage import dose_words
from review_ui.chartview.elements import when
from review_ui.chartview.facts import Fact
from review_ui.chartview.labs import Person, Point, Series, point_of
from review_ui.chartview.medications import Interval
from review_ui.chartview.words import Line
from tasks.fhir.chart import Chart
from tasks.fhir.resources import Resource
from tasks.trials import Write

NOW = datetime(2026, 3, 5, 9, 30, tzinfo=UTC)
WOMAN = {"resourceType": "Patient", "id": "p-1", "gender": "female", "birthDate": "1960-02-01"}


def view(*bodies: dict[str, Any], patient: dict[str, Any] = WOMAN, now: datetime = NOW) -> ChartView:
    files: dict[str, list[str]] = {}
    for body in [patient, *bodies]:
        files.setdefault(f"{body['resourceType']}.ndjson", []).append(json.dumps(body))
    chart = Chart.open({name: ("\n".join(lines) + "\n").encode() for name, lines in files.items()})
    return ChartView(chart, "Patient/p-1", now)


def fact(made: ChartView, name: str) -> Fact:
    return next(one for one in made.facts if one.name.startswith(name))


def coded(code: str) -> dict[str, Any]:
    return {"coding": [{"code": code}]}


# ---- facts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("creatinine", "weight", "born", "egfr", "clearance"),
    [
        (106, 80, "1960-02-01", "the formula holds for a creatinine of 0.1 to 25 mg/dL", None),
        (1.1, 400, "1960-02-01", "", "weight 400 kg: the formula holds for a weight of 20 to 350 kg"),
        (1.1, 80, "1900-02-01", "the formula holds for an age of 18 to 120 years", None),
    ],
)
def test_a_value_outside_the_range_of_a_formula_is_said_and_stops_nothing(
    packages: ModuleType, creatinine: float, weight: float, born: str, egfr: str, clearance: str | None
) -> None:
    made = view(
        packages.lab("cr", "2160-0", "Creatinine", creatinine, "mg/dL", "2026-03-01"),
        packages.vital("w", "29463-7", "Body weight", weight, "kg", "2026-03-01"),
        patient=WOMAN | {"birthDate": born},
    )
    for name, said in (("eGFR", egfr), ("CrCl", egfr if clearance is None else clearance)):
        found = fact(made, name)
        assert (found.value == "not computed") == bool(said)
        assert said in found.basis
        assert f"creatinine {creatinine} mg/dL, 1 Mar 2026" in found.basis


def test_a_pulse_of_another_day_has_its_own_date_and_units_follow_their_values(packages: ModuleType) -> None:
    pressure = packages.pressure("bp", 148, 84, "2026-03-04T09:00:00Z")
    old = packages.vital("hr", "8867-4", "Heart rate", 72, "/min", "2021-01-02T09:00:00Z")
    found = fact(view(pressure, old), "BP")
    assert (found.value, found.basis) == ("148/84 mmHg, pulse 72/min", "BP 4 Mar 2026; pulse 2 Jan 2021")
    together = fact(view(pressure, old | {"effectiveDateTime": "2026-03-04T09:02:00Z"}), "BP")
    assert (together.value, together.basis) == ("148/84 mmHg, pulse 72/min", "4 Mar 2026")
    alone = fact(view(pressure), "BP")
    assert (alone.value, alone.basis) == ("148/84 mmHg", "4 Mar 2026; pulse not recorded")
    for part in pressure["component"]:
        del part["valueQuantity"]["unit"]
    assert fact(view(pressure), "BP").value == "148/84"


def allergy(**more: Any) -> dict[str, Any]:
    return {
        "resourceType": "AllergyIntolerance", "id": "a-1", "patient": {"reference": "Patient/p-1"},
        "code": {"text": "Penicillin"}, **more,
    }  # fmt: skip


def test_an_allergy_says_what_it_did_how_bad_it_was_and_how_sure_it_is() -> None:
    made = view(
        allergy(
            criticality="high",
            verificationStatus=coded("unconfirmed"),
            reaction=[{"manifestation": [{"text": "rash"}], "severity": "mild", "description": "in childhood"}],
        )
    )
    found = fact(made, "Allergies")
    assert (found.value, found.basis) == (
        "Penicillin (high risk)", "Penicillin: rash, in childhood, mild; high risk, unconfirmed",
    )  # fmt: skip
    assert made.line("AllergyIntolerance/a-1").detail.startswith("rash, in childhood, mild")  # type: ignore[union-attr]


def test_an_allergy_recorded_after_the_clock_is_not_known_at_it() -> None:
    made = view(allergy(recordedDate="2026-04-01"))
    assert fact(made, "Allergies").value == "none listed"
    assert any(gap.what.startswith("Allergies") for gap in made.absent)


def test_albumin_in_urine_is_not_its_ratio_and_gaps_are_told_without_codes(packages: ModuleType) -> None:
    albumin = packages.lab("u", "14957-5", "Microalbumin [Mass/volume] in Urine", 30, "mg/L", "2026-03-01")
    gaps = {gap.what: gap.found for gap in view(albumin).absent}
    assert "Urine albumin/creatinine in the last 12 months" not in gaps
    assert "Urine albumin/creatinine" in gaps
    assert not any(word in said for said in gaps.values() for word in ("LOINC", "AllergyIntolerance", "ImagingStudy"))
    ratio = packages.lab("r", "30000-4", "Microalbumin/Creatinine [Ratio] in Urine", 30, "mg/g", "2026-03-01")
    assert "Urine albumin/creatinine" not in {gap.what for gap in view(ratio).absent}


def test_a_habit_that_is_written_without_a_code_is_not_missing() -> None:
    habit = {
        "resourceType": "Observation", "id": "o", "status": "final", "subject": {"reference": "Patient/p-1"},
        "category": [coded("social-history")], "code": {"text": "Alcohol use"}, "effectiveDateTime": "2026-03-01",
        "valueString": "1 to 2 drinks on weekends",
    }  # fmt: skip
    missing = {gap.what for gap in view(habit).absent}
    assert "Alcohol use" not in missing
    assert "Smoking status" in missing


# ---- medications ----------------------------------------------------------------------------------------------------


def order(**more: Any) -> dict[str, Any]:
    return {
        "resourceType": "MedicationRequest", "id": "m-1", "status": "active", "intent": "order",
        "subject": {"reference": "Patient/p-1"}, "medicationCodeableConcept": {"text": "Prednisone 5 mg tablet"},
        "authoredOn": "2026-02-20", **more,
    }  # fmt: skip


def statement(status: str, **more: Any) -> dict[str, Any]:
    return {
        "resourceType": "MedicationStatement", "id": "s-1", "status": status, "dateAsserted": "2026-02-20",
        "subject": {"reference": "Patient/p-1"}, "medicationCodeableConcept": {"text": "Warfarin"},
        "effectiveDateTime": "2026-02-01", **more,
    }  # fmt: skip


def only(*bodies: dict[str, Any]) -> Interval:
    [medication] = view(*bodies).medications
    [interval] = medication.intervals
    return interval


def bounded(start: str | None, end: str | None, text: str = "as told") -> dict[str, Any]:
    period = {key: value for key, value in (("start", start), ("end", end)) if value}
    return {"text": text, "timing": {"repeat": {"boundsPeriod": period}}}


@pytest.mark.parametrize(
    ("body", "state", "until"),
    [
        (statement("active"), "reported", "still listed"),
        (statement("not-taken"), "not taken", "not taken"),
        (statement("intended"), "planned", "not begun"),
        (statement("unknown"), "unknown", "not stated"),
        (statement("completed"), "stopped", "end not stated"),
        (order(), "active", "still listed"),
        (order(doNotPerform=True), "do not give", "still listed"),
        (order(intent="proposal"), "planned", "not begun"),
        (order(intent="plan"), "planned", "not begun"),
        (order(status="draft", intent="plan"), "draft", "still listed"),
        (order(status="unknown"), "unknown", "not stated"),
        (order(status="stopped", doNotPerform=True), "stopped", "end not stated"),
    ],
)
def test_only_what_is_ordered_or_taken_is_shown_as_that(body: dict[str, Any], state: str, until: str) -> None:
    interval = only(body)
    assert (interval.state, interval.until) == (state, until)
    made = view(body)
    table = chart_sections.medication_table(made.medications)
    assert ('<td class="b">' in table) == (state in {"active", "reported"})
    drawn = charts.medications(made.medications, charts.Span.before(NOW, None, 24))
    assert ("t-bar active" in drawn or "t-bar reported" in drawn) == (state in {"active", "reported"})
    if state not in {"active", "reported", "stopped"}:
        assert f">{state}" in drawn


def test_a_taper_runs_until_its_last_step_ends() -> None:
    taper = order(dosageInstruction=[bounded("2026-02-20", "2026-03-01"), bounded("2026-03-02", "2026-03-20")])
    assert (only(taper).state, only(taper).until) == ("active", "still listed, to 20 Mar 2026")
    open_end = order(dosageInstruction=[bounded("2026-02-20", "2026-03-01"), bounded("2026-03-02", None)])
    assert (only(open_end).state, only(open_end).until) == ("active", "still listed")
    over = order(dosageInstruction=[bounded("2026-02-20", "2026-02-25"), bounded("2026-02-26", "2026-03-01")])
    assert (only(over).state, str(only(over).start), only(over).until) == ("stopped", "20 Feb 2026", "1 Mar 2026")
    assert only(taper).dose == "as told (20 Feb 2026 to 1 Mar 2026); as told (2 Mar 2026 to 20 Mar 2026)"


def test_an_order_that_is_to_begin_after_the_clock_is_there_as_planned() -> None:
    interval = only(order(dosageInstruction=[bounded("2026-03-20", "2026-04-20")]))
    assert (interval.state, str(interval.start), interval.status) == (
        "planned", "20 Feb 2026", "active, to begin 20 Mar 2026",
    )  # fmt: skip
    later = order(authoredOn="2026-03-10", dosageInstruction=[bounded("2026-03-20", "2026-04-20")])
    assert view(later).medications == []


@pytest.mark.parametrize(
    ("end", "state"),
    [("2026-03-05", "active"), ("2026-03-04", "stopped"), ("2026-03", "active"), ("2026-03-05T08:00:00Z", "stopped")],
)
def test_the_day_on_which_a_drug_ends_belongs_to_it(end: str, state: str) -> None:
    assert only(order(dosageInstruction=[bounded("2026-02-20", end)])).state == state


def dosage(**more: Any) -> Resource:
    return Resource.from_body(order(dosageInstruction=[more]))


OPIOID: dict[str, Any] = {
    "timing": {"repeat": {"frequency": 1, "period": 6, "periodUnit": "h"}},
    "route": {"text": "by mouth"},
    "doseAndRate": [{"doseQuantity": {"value": 5, "unit": "mg"}}],
    "asNeededCodeableConcept": {"text": "pain"},
    "maxDosePerPeriod": {
        "numerator": {"value": 20, "unit": "mg"}, "denominator": {"value": 24, "unit": "h", "code": "h"},
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (OPIOID, "5 mg by mouth every 6 hours, as needed for pain, at most 20 mg in 24 hours"),
        ({"text": "5 mg every 6 h", "asNeededBoolean": True}, "5 mg every 6 h, as needed"),
        ({"text": "5 mg every 6 h prn", "asNeededBoolean": True}, "5 mg every 6 h prn"),
        ({"text": "5 mg daily", "asNeededBoolean": False}, "5 mg daily"),
        (
            {"text": "1 tablet as needed", "asNeededCodeableConcept": {"text": "Headache"}},
            "1 tablet as needed, as needed for Headache",
        ),
        (
            {
                "doseAndRate": [{"doseRange": {"low": {"value": 5, "unit": "mg"}, "high": {"value": 9, "unit": "mg"}}}],
                "timing": {"repeat": {"frequency": 2, "period": 1, "periodUnit": "d", "when": ["AC"]}},
            },
            "5–9 mg 2 × a day before meals",
        ),
        (
            {"timing": {"repeat": {"frequency": 1, "period": 1, "periodUnit": "d", "boundsDuration": {
                "value": 5, "unit": "days", "code": "d"}}}},
            "once a day for 5 days",
        ),
        ({"timing": {"code": {"text": "BID"}}, "doseAndRate": [{"doseQuantity": {"value": 1, "unit": "tablet"}}]},
         "1 tablet BID"),
        ({"timing": {"repeat": {"period": 4, "periodMax": 6, "periodUnit": "h"}}}, "every 4–6 hours"),
    ],
)  # fmt: skip
def test_a_dosage_keeps_what_makes_it_safe(one: dict[str, Any], words: str) -> None:
    assert dose_words(dosage(**one)) == words


def test_an_order_that_a_physician_ticks_says_dose_route_as_needed_and_not_to_be_given() -> None:
    def told(**more: Any) -> str:
        body = order(dosageInstruction=[OPIOID | more.pop("dosage", {})], **more)
        return steps.order_lines(
            [Write(sequence=1, call=1, reference="MedicationRequest/m-1", version=1, resource=json.dumps(body))]
        )[0].what

    assert told() == (
        "Prednisone 5 mg tablet, 5 mg by mouth every 6 hours, as needed for pain, at most 20 mg in 24 hours"
    )
    assert told(dosage={"text": "every 6 hours"}) == (
        "Prednisone 5 mg tablet, 5 mg every 6 hours by mouth, as needed for pain, at most 20 mg in 24 hours"
    )
    assert told(doNotPerform=True).startswith("Do not give: Prednisone")


def test_a_dose_that_was_given_says_how_much() -> None:
    given = {
        "resourceType": "MedicationAdministration", "id": "x", "status": "completed",
        "dosage": {"dose": {"value": 40, "unit": "mg"}, "route": {"text": "IV"}, "rateQuantity": {
            "value": 100, "unit": "mL/h"}},
    }  # fmt: skip
    assert dose_words(Resource.from_body(given)) == "40 mg at 100 mL/h IV"


# ---- results --------------------------------------------------------------------------------------------------------


def latest(made: ChartView, name: str) -> Point:
    return next(one for one in made.labs() if one.name == name).latest


def test_a_cancelled_result_is_not_the_latest_one_and_a_preliminary_one_says_so(packages: ModuleType) -> None:
    final = packages.lab("k-1", "2823-3", "Potassium", 4.2, "mmol/L", "2026-03-01", 3.5, 5.1)
    later = packages.lab("k-2", "2823-3", "Potassium", 6.9, "mmol/L", "2026-03-02", 3.5, 5.1)
    for status in ("cancelled", "registered", "unknown"):
        point = latest(view(final, later | {"status": status}), "Potassium")
        assert (point.shown, point.side) == ("4.2", "in")
    made = view(final, later | {"status": "preliminary"})
    series = next(one for one in made.labs() if one.name == "Potassium")
    assert series.latest.remark == "preliminary"
    for drawn in (
        chart_sections.lab_head(series),
        chart_sections.lab_table([series]),
        charts.lab(series, charts.Span.before(NOW, None, 24)),
    ):
        assert "preliminary" in drawn


@pytest.mark.parametrize(
    ("value", "low", "high", "shown", "range_words", "mark"),
    [
        (1.005, 1.005, 1.030, "1.005", "1.005–1.03", ""),
        (7.349, 7.35, 7.45, "7.349", "7.35–7.45", "▼"),
        (1234.5, None, 14.0, "1234.5", "≤14", "▲"),
        (150000, 150000, 400000, "150000", "150000–400000", ""),
    ],
)
def test_a_value_that_was_not_converted_is_shown_as_written(
    packages: ModuleType, value: float, low: float | None, high: float, shown: str, range_words: str, mark: str
) -> None:
    series = view(packages.lab("x", "0-0", "Test", value, "u", "2026-03-01", low, high)).labs()[0]
    assert f">{mark + ' ' if mark else ''}{shown}<" in chart_sections.lab_head(series)
    table = chart_sections.lab_table([series])
    assert f">{mark + ' ' if mark else ''}{shown} u<" in table
    assert f">{range_words}<" in table


def test_a_converted_value_is_rounded(packages: ModuleType) -> None:
    point = latest(view(packages.lab("x", "14682-9", "Creatinine", 152, "umol/L", "2026-03-01", 62, 115)), "Creatinine")
    assert (point.shown, chart_sections._spread(point)) == ("1.72", "0.701–1.3")


def ranged(*ranges: dict[str, Any], person: Person, value: float = 13.0, **more: Any) -> Point:
    body = {
        "resourceType": "Observation", "id": "x", "status": "final", "code": {"text": "Hemoglobin"},
        "effectiveDateTime": "2026-03-01", "valueQuantity": {"value": value, "unit": "g/dL"},
        "referenceRange": list(ranges), **more,
    }  # fmt: skip
    found = point_of(Resource.from_body(body), UTC, person)
    assert found is not None
    return found


def between(low: float, high: float, **more: Any) -> dict[str, Any]:
    return {"low": {"value": low, "unit": "g/dL"}, "high": {"value": high, "unit": "g/dL"}, **more}


MEN = between(13.5, 17.5, appliesTo=[{"coding": [{"code": "248153007"}]}])
WOMEN = between(12.0, 15.5, appliesTo=[{"text": "Female"}])
FEMALE, MALE = Person("female", when("1960-02-01")), Person("male", when("1960-02-01"))


def years(low: int, high: int) -> dict[str, Any]:
    return {"low": {"value": low, "unit": "a"}, "high": {"value": high, "unit": "a"}}


@pytest.mark.parametrize(
    ("ranges", "person", "limits"),
    [
        ((MEN, WOMEN), FEMALE, (12.0, 15.5)),
        ((WOMEN, MEN), MALE, (13.5, 17.5)),
        ((MEN, WOMEN), Person(), (None, None)),
        ((MEN,), FEMALE, (None, None)),
        ((between(7, 20, type={"text": "Critical"}), between(12, 16)), FEMALE, (12, 16)),
        ((between(7, 20, type={"coding": [{"code": "therapeutic"}]}),), FEMALE, (None, None)),
        ((between(12, 16, type={"coding": [{"code": "normal"}]}),), FEMALE, (12, 16)),
        ((between(10, 14, age=years(0, 18)), between(12, 16, age=years(18, 120))), FEMALE, (12, 16)),
        ((between(10, 14, age=years(0, 60)), between(12, 16, age=years(61, 120))), FEMALE, (12, 16)),
        ((between(12, 16), WOMEN), FEMALE, (12.0, 15.5)),
        ((between(1, 2, appliesTo=[{"text": "fasting"}]), between(12, 16)), FEMALE, (12, 16)),
        ((between(1, 2), between(12, 16)), FEMALE, (None, None)),
    ],
)
def test_the_range_is_the_one_for_this_person(
    ranges: tuple[dict[str, Any], ...], person: Person, limits: tuple[float | None, float | None]
) -> None:
    point = ranged(*ranges, person=person)
    assert (point.low, point.high) == limits


def test_the_chart_reads_the_range_for_its_patient() -> None:
    body = {
        "resourceType": "Observation", "id": "x", "status": "final", "subject": {"reference": "Patient/p-1"},
        "code": {"coding": [{"system": "http://loinc.org", "code": "718-7"}]}, "effectiveDateTime": "2026-03-01",
        "category": [coded("laboratory")], "valueQuantity": {"value": 13.0, "unit": "g/dL"},
        "referenceRange": [MEN, WOMEN],
    }  # fmt: skip
    assert latest(view(body), "Hemoglobin").side == "in"
    assert latest(view(body, patient=WOMAN | {"gender": "male"}), "Hemoglobin").side == "low"


def flagged(code: str, *ranges: dict[str, Any], **more: Any) -> Point:
    return ranged(*ranges, person=FEMALE, interpretation=[{"coding": [{"code": code}]}], **more)


@pytest.mark.parametrize(
    ("point", "side", "remark"),
    [
        (flagged("H", between(12, 16)), "in", "flagged high by the laboratory"),
        (flagged("N", between(12, 16), value=17), "high", "flagged normal by the laboratory"),
        (flagged("H", between(12, 16), value=17), "high", ""),
        (flagged("HH", between(12, 16), value=17), "high", "flagged critically high by the laboratory"),
        (flagged("A", between(12, 16)), "in", "flagged abnormal by the laboratory"),
        (flagged("A", between(12, 16), value=17), "high", ""),
        (flagged("A"), "unknown", "flagged abnormal by the laboratory"),
        (flagged("L"), "low", ""),
        (flagged("N"), "in", ""),
    ],
)
def test_where_range_and_flag_disagree_both_are_said(point: Point, side: str, remark: str) -> None:
    assert (point.side, point.remark) == (side, remark)
    drawn = chart_sections.lab_head(Series("Hemoglobin", "g/dL", (point,)))
    assert (remark or "flagged") not in drawn if not remark else remark in drawn


@pytest.mark.parametrize(
    ("comparator", "value", "side"),
    [("<", 12, "low"), ("<", 20, "unknown"), (">", 16, "high"), (">", 5, "unknown"), ("", 13, "in")],
)
def test_a_value_that_is_only_bounded_is_judged_by_its_bound(comparator: str, value: float, side: str) -> None:
    quantity = {"value": value, "unit": "g/dL", "comparator": comparator}
    assert ranged(between(12, 16), person=FEMALE, valueQuantity=quantity).side == side


def test_limits_are_converted_from_their_own_unit() -> None:
    quantity = {"value": 152, "unit": "umol/L"}
    limits = {"low": {"value": 0.7, "unit": "mg/dL"}, "high": {"value": 1.3, "unit": "mg/dL"}}
    code = {"coding": [{"system": "http://loinc.org", "code": "14682-9"}]}
    point = ranged(limits, person=FEMALE, valueQuantity=quantity, code=code)
    assert point.high == pytest.approx(114.9, abs=0.1)
    assert point.side == "high"
    unknown = ranged(limits, person=FEMALE, valueQuantity=quantity, code={"text": "Something"})
    assert (unknown.low, unknown.high) == (None, None)


# ---- problems, background, whose it is ------------------------------------------------------------------------------


def problem(packages: ModuleType, verification: str) -> dict[str, Any]:
    body: dict[str, Any] = packages.problem("c-1", "Lupus", "2024-01-01")
    return body | {"verificationStatus": coded(verification)}


@pytest.mark.parametrize(
    ("verification", "active", "doubt"),
    [
        ("confirmed", True, ""),
        ("provisional", True, "provisional"),
        ("differential", True, "differential diagnosis"),
        ("unconfirmed", True, "unconfirmed"),
        ("refuted", False, ""),
    ],
)
def test_a_problem_says_how_sure_it_is_and_a_refuted_one_is_not_active(
    packages: ModuleType, verification: str, active: bool, doubt: str
) -> None:
    [one] = view(problem(packages, verification)).problems
    assert (one.active, one.doubt) == (active, doubt)
    drawn = chart_sections._problem_rows([one], pointing=False)
    assert doubt in drawn
    assert ("refuted" in drawn) == (not active)


def test_a_problem_entered_in_error_is_in_no_list(packages: ModuleType) -> None:
    assert view(problem(packages, "entered-in-error")).problems == []


def test_what_stands_beside_problems_and_drugs_can_be_read(packages: ModuleType) -> None:
    subject = {"subject": {"reference": "Patient/p-1"}}
    smoking = packages.lab("sm", "72166-2", "Smoking status", 0, "", "2025-01-01") | {
        "category": [coded("social-history")], "valueCodeableConcept": {"text": "Former smoker"},
    }  # fmt: skip
    del smoking["valueQuantity"]
    older = smoking | {"id": "sm-old", "effectiveDateTime": "2019-01-01", "valueCodeableConcept": {"text": "Smoker"}}
    later = smoking | {"id": "sm-new", "effectiveDateTime": "2026-05-01"}
    order = {
        "resourceType": "ServiceRequest", "id": "sr", "status": "active", "intent": "order", **subject,
        "code": {"text": "Colonoscopy"}, "authoredOn": "2026-02-01", "occurrenceDateTime": "2026-04-01",
    }  # fmt: skip
    made = view(
        smoking, older, later, order, order | {"id": "sr-done", "status": "completed"},
        order | {"id": "sr-later", "authoredOn": "2026-03-20"},
        allergy(),
        {
            "resourceType": "Immunization", "id": "i", "status": "completed", "vaccineCode": {"text": "Influenza"},
            "patient": {"reference": "Patient/p-1"}, "occurrenceDateTime": "2025-10-01",
        },
        {
            "resourceType": "FamilyMemberHistory", "id": "f", "status": "completed", "relationship": {"text": "Mother"},
            "patient": {"reference": "Patient/p-1"}, "condition": [{"code": {"text": "Breast cancer"}}],
        },
        {
            "resourceType": "Appointment", "id": "ap", "status": "booked", "description": "Eye clinic",
            "start": "2026-03-20T09:00:00Z", "participant": [{"actor": {"reference": "Patient/p-1"}}],
        },
    )  # fmt: skip
    said = {one.title: [(entry.what, entry.detail) for entry in one.entries] for one in made.background}
    assert said == {
        "Allergies": [("Penicillin", "")],
        "Social history": [("Smoking status", "Former smoker")],
        "Family history": [("Mother", "Breast cancer")],
        "Immunizations": [("Influenza", "")],
        "Orders and appointments outstanding": [
            ("Eye clinic", "appointment on 20 Mar 2026, 09:00, booked"),
            ("Colonoscopy", "active, for 1 Apr 2026"),
        ],
    }


def test_every_event_of_a_cluster_stands_in_the_list(packages: ModuleType) -> None:
    visits = [
        packages.visit(f"e-{n}", "AMB", f"2026-03-01T0{n}:00:00Z", f"2026-03-01T0{n}:30:00Z", f"Visit {n}")
        for n in range(9)
    ]
    made = view(*visits)
    assert "and 5 more" in charts.timeline(made.timeline, charts.Span.before(NOW, None, 24))
    table = chart_sections.event_table(made.timeline)
    assert all(f"Visit {n}" in table for n in range(9))


def lines(made: ChartView, types: Iterable[str]) -> dict[str, Line]:
    return {one.ref: one for type in types for one in made.page(type, start=0, size=50)[0]}


def test_an_entry_about_another_patient_is_told_apart(packages: ModuleType) -> None:
    mine = packages.lab("mine", "2823-3", "Potassium", 4.2, "mmol/L", "2026-03-01")
    other = mine | {"id": "other", "subject": {"reference": "Patient/p-2"}}
    made = view(
        mine, other, WOMAN | {"id": "p-2"}, {"resourceType": "Practitioner", "id": "dr-1", "name": [{"text": "Dr A"}]}
    )
    found = lines(made, made.types())
    assert {ref for ref, one in found.items() if one.other} == {"Observation/other", "Patient/p-2"}
    assert made.line("Observation/other").other  # type: ignore[union-attr]
