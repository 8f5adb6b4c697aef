"""What a physician reads from a chart, as values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, timezone
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from review_ui.chartview import ChartView
from review_ui.chartview.elements import plain_number, when
from review_ui.chartview.medications import drug_key
from review_ui.chartview.notes import search
from review_ui.chartview.words import fields
from tasks.fhir.chart import Chart
from tasks.fhir.resources import Resource

NOW = datetime(2025, 7, 1, 9, 30, tzinfo=timezone(timedelta(hours=-5)))
View = Callable[..., ChartView]
#: What a chart may hold in any shape.
_KEYS = [
    "coding", "code", "text", "value", "period", "start", "status", "type", "div", "data", "unit", "low",
    "high", "appliesTo", "age", "timing", "repeat", "boundsPeriod", "doseAndRate", "doseRange", "when",
    "periodUnit", "frequency", "manifestation", "severity", "numerator", "denominator",
]  # fmt: skip
_TYPES = [
    "Observation", "MedicationRequest", "Condition", "Encounter", "DocumentReference", "AllergyIntolerance",
    "MedicationStatement", "ServiceRequest", "Immunization", "FamilyMemberHistory", "Appointment",
]  # fmt: skip
_ELEMENTS = [
    "code", "valueQuantity", "effectiveDateTime", "type", "content", "dosageInstruction", "class",
    "component", "referenceRange", "interpretation", "reaction", "verificationStatus", "criticality",
    "category", "condition",
]  # fmt: skip


def chart_of(bodies: Iterable[dict[str, Any]]) -> Chart:
    files: dict[str, list[str]] = {}
    for body in bodies:
        files.setdefault(f"{body['resourceType']}.ndjson", []).append(json.dumps(body))
    return Chart.open({name: ("\n".join(lines) + "\n").encode() for name, lines in files.items()})


@pytest.fixture
def view(packages: ModuleType) -> View:
    def made(*more: dict[str, Any], without: str = "", now: datetime | None = NOW) -> ChartView:
        bodies = [body for body in packages.resources() if not without or not str(body["id"]).startswith(without)]
        return ChartView(chart_of([*bodies, *more]), "Patient/p-1", now)

    return made


def fact(view: ChartView, name: str) -> str:
    return next(one.value for one in view.facts if one.name.startswith(name))


def test_kidney_function_comes_from_the_latest_creatinine_before_the_clock_whatever_its_unit(view: View) -> None:
    # 152 umol/L = 1.7195 mg/dL, man of 61, 80 kg; by hand: 142 x (1.7195/0.9)^-1.2 x 0.9938^61 = 44.7;
    # (140 - 61) x 80 / (72 x 1.7195) = 51.0. The value of December lies after the clock.
    made = view()
    assert fact(made, "eGFR") == "45 mL/min/1.73 m²"
    assert fact(made, "CrCl") == "51 mL/min"
    assert fact(made, "Age") == "61, male"
    assert fact(made, "BP") == "148/84 mmHg"


def test_what_is_missing_is_said_and_never_guessed(view: View) -> None:
    made = view(without="w-")
    assert fact(made, "Weight") == "not recorded"
    assert fact(made, "CrCl") == "not recorded"
    assert fact(made, "eGFR") != "not recorded"
    assert "Weight" in [gap.what for gap in made.absent]


def test_none_listed_differs_from_none_known(view: View) -> None:
    assert fact(view(), "Allergies") == "none listed"
    none_known = {
        "resourceType": "AllergyIntolerance",
        "id": "a-1",
        "code": {"coding": [{"system": "http://snomed.info/sct", "code": "716186003"}], "text": "No known allergy"},
        "patient": {"reference": "Patient/p-1"},
    }
    assert fact(view(none_known), "Allergies") == "none known"
    penicillin = {**none_known, "id": "a-2", "code": {"text": "Penicillin"}}
    assert fact(view(none_known, penicillin), "Allergies") == "Penicillin"
    refuted = {**penicillin, "verificationStatus": {"coding": [{"code": "refuted"}]}}
    assert fact(view(refuted), "Allergies") == "none listed"


def test_an_analyte_in_two_units_is_one_series_and_the_range_is_converted_with_it(view: View) -> None:
    series = {one.name: one for one in view().labs("conventional")}
    creatinine = series["Creatinine"]
    assert [round(point.value or 0, 2) for point in creatinine.points] == [1.1, 1.4, 1.72]
    assert creatinine.points[-1].written == "152 umol/L"
    assert creatinine.points[-1].high == pytest.approx(115 / 88.4, abs=0.01)
    si = {one.name: one for one in view().labs("SI")}["Creatinine"]
    assert si.unit == "umol/L"
    assert si.points[0].value == pytest.approx(97.2, abs=0.1)
    assert [point.side for point in si.points] == ["in", "high", "high"]


def test_an_unknown_unit_is_a_series_of_its_own(view: View, packages: ModuleType) -> None:
    odd = packages.lab("cr-odd", "2160-0", "Creatinine", 5, "furlongs", "2025-06-01T08:00:00Z")
    units = [one.unit for one in view(odd).labs() if one.name == "Creatinine"]
    assert sorted(units) == ["furlongs", "mg/dL"]


def test_a_result_entered_in_error_or_after_the_clock_is_not_plotted(view: View, packages: ModuleType) -> None:
    wrong = {
        **packages.lab("k-bad", "2823-3", "Potassium", 9, "mmol/L", "2025-06-21T08:00:00Z"),
        "status": "entered-in-error",
    }
    potassium = next(one for one in view(wrong).labs() if one.name == "Potassium")
    assert [point.value for point in potassium.points] == [4.8, 5.6]


def test_one_drug_is_one_row_and_an_earlier_strength_ends_where_the_next_begins(view: View) -> None:
    losartan = next(one for one in view().medications if one.name == "Losartan")
    assert losartan.state == "active"
    first, second = losartan.intervals
    assert (str(first.start), first.end.date(), first.end_stated) == ("1 Feb 2023", second.start.start.date(), False)
    assert second.end == NOW
    ibuprofen = next(one for one in view().medications if one.name == "Ibuprofen")
    assert ibuprofen.state == "stopped"
    assert ibuprofen.intervals[0].end == ibuprofen.intervals[0].start.start


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Losartan 50 mg tablet", "losartan 100 MG Oral Tablet"),
        ("24 HR metformin 500 MG Extended Release", "Metformin 850 mg"),
    ],
)
def test_strength_and_form_do_not_make_another_drug(one: str, other: str) -> None:
    assert drug_key(one) == drug_key(other)


def test_the_timeline_stops_at_the_clock_and_tells_an_emergency_from_a_visit(view: View, packages: ModuleType) -> None:
    later = packages.visit("e-9", "AMB", "2025-08-01T08:00:00Z", "2025-08-01T09:00:00Z", "Later")
    lanes = [(event.lane, event.words) for event in view(later).timeline]
    assert ("Emergency, inpatient", "Emergency visit") in lanes
    assert all(words != "Later" for _, words in lanes)


def test_problems_active_first_and_resolved_ones_told_apart(view: View) -> None:
    assert [(one.words, one.active) for one in view().problems] == [
        ("Type 2 diabetes mellitus", True),
        ("Acute bronchitis", False),
    ]


def test_notes_are_newest_first_and_found_by_their_words(view: View) -> None:
    notes = view().notes
    assert [note.title for note in notes] == ["Phone call", "Emergency summary"]
    found = search(notes, "ibuprofen three")
    assert [hit.note.title for hit in found] == ["Emergency summary"]
    start, end = found[0].spans[0]
    assert " ".join(found[0].note.text[start:end].split()) == "ibuprofen three"
    assert [len(hit.spans) for hit in search(notes, "IBUPROFEN")] == [2, 1]
    start, end = search(notes, "ibuprofen")[0].snippet_spans[0]
    assert search(notes, "ibuprofen")[0].snippet[start:end].casefold() == "ibuprofen"
    assert search(notes, "warfarin") == []


def test_every_resource_can_be_reached_page_by_page(view: View) -> None:
    made = view()
    reached: set[str] = set()
    for type, count in made.types().items():
        start = 0
        while True:
            rows, total = made.page(type, start=start, size=3)
            reached |= {row.ref for row in rows}
            start += 3
            if start >= total:
                break
        assert total == count
    assert reached == {resource.ref for resource in made.records.resources()}


def test_another_patients_results_do_not_reach_the_facts(view: View, packages: ModuleType) -> None:
    other = packages.lab("cr-other", "2160-0", "Creatinine", 7.0, "mg/dL", "2025-06-30T08:00:00Z")
    other["subject"] = {"reference": "Patient/p-2"}
    assert fact(view(other, {"resourceType": "Patient", "id": "p-2"}), "eGFR") == "45 mL/min/1.73 m²"


def test_a_draft_without_a_clock_stands_at_the_end_of_its_chart(view: View) -> None:
    made = view(now=None)
    assert not made.clock_stated
    assert fact(made, "eGFR") == "5 mL/min/1.73 m²"


def test_an_empty_chart_is_read_without_complaint() -> None:
    made = ChartView(chart_of([{"resourceType": "Patient", "id": "p-1"}]), "Patient/p-1", NOW)
    assert made.labs() == []
    assert made.medications == []
    assert made.timeline == []
    assert made.notes == []
    assert [one.value for one in made.facts if one.known] == []


def test_fields_hold_every_code_and_text_of_a_resource(packages: ModuleType) -> None:
    body = packages.note("n-9", "Consult", "2025-05-05", "words & more")
    said = {field.path: field.value for field in fields(Resource.from_body(body))}
    assert said["type"] == "Consult"
    assert said["content.attachment"] == "words & more"
    assert said["subject"] == "Patient/p-1"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("2026", "2026"),
        ("2026-03", "Mar 2026"),
        ("2026-03-09", "9 Mar 2026"),
        ("2026-03-09T08:15:00Z", "9 Mar 2026"),
        ("2026-02-30", None),
        ("soon", None),
        (None, None),
    ],
)
def test_dates_are_shown_as_precisely_as_they_were_written(written: Any, shown: str | None) -> None:
    found = when(written)
    assert (found.shown() if found else None) == shown


@given(st.text(max_size=30))
def test_no_text_breaks_the_reading_of_a_date(text: str) -> None:
    found = when(text)
    assert found is None or found.start.tzinfo is not None


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(_KEYS),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    st.sampled_from(_TYPES),
    st.sampled_from(_ELEMENTS),
)
def test_no_shape_of_an_element_breaks_the_view(value: Any, type: str, element: str) -> None:
    body = {
        "resourceType": type, "id": "x", "subject": {"reference": "Patient/p-1"}, "status": "active",
        "effectiveDateTime": "2025-01-01", "authoredOn": "2025-01-01", element: value,
    }  # fmt: skip
    if element != "valueQuantity" and type == "Observation":
        result = {"category": [{"coding": [{"code": "laboratory"}]}], "valueQuantity": {"value": 1, "unit": "u"}}
        body = {**result, **body, "status": "final"}
    record = Resource.from_body({"resourceType": "Patient", "id": "p-1"}), Resource.from_body(body)

    class Loose:
        def get(self, ref: str) -> Resource | None:
            return next((one for one in record if one.ref == ref), None)

        def resources(self, type: str | None = None) -> Iterable[Resource]:
            return iter([one for one in record if type in (None, one.type)])

    made = ChartView(Loose(), "Patient/p-1", NOW)  # type: ignore[arg-type]
    assert made.facts
    parts = (
        made.medications, made.timeline, made.problems, made.absent, made.labs(), made.vitals, made.notes,
        made.background,
    )  # fmt: skip
    assert all(isinstance(part, list) for part in parts)
    assert made.page(type, start=0, size=5)[1] >= 1
    fields(record[1])


@pytest.mark.parametrize(
    ("value", "shown"), [(5.0, "5"), (0.45, "0.45"), (1.7195, "1.72"), (1250.0, "1,250"), (152.0, "152")]
)
def test_numbers_are_printed_without_a_tail(value: float, shown: str) -> None:
    assert plain_number(value) == shown


def test_the_clock_zone_decides_the_day() -> None:
    found = when("2025-07-01T03:00:00Z", NOW.tzinfo or UTC)
    assert found is not None
    assert found.shown() == "30 Jun 2025"
