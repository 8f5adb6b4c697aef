"""What a physician reads of a change says everything that changed."""

from __future__ import annotations

import base64
import json
from datetime import UTC, timedelta, timezone
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from authoring.clinical import checkpoint_change, field_table
from authoring.edits import CheckpointEdit, apply
from tasks.package import load
from tests.tasks.packages import TINY_ID, tiny_files

LAB: dict[str, Any] = {
    "resourceType": "Observation", "id": "o-1", "status": "final",
    "code": {"coding": [{"system": "http://loinc.org", "code": "2823-3", "display": "Potassium"}]},
    "valueQuantity": {"value": 5.1, "unit": "mmol/L", "system": "http://unitsofmeasure.org", "code": "mmol/L"},
    "referenceRange": [{"low": {"value": 3.5, "unit": "mmol/L"}, "high": {"value": 5.0, "unit": "mmol/L"}}],
}  # fmt: skip


def line(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def test_a_result_shows_old_and_new_value_with_unit_and_its_range() -> None:
    new = LAB | {"valueQuantity": LAB["valueQuantity"] | {"value": 4.1}}
    table = field_table(line(LAB), line(new))
    (row,) = table.rows
    assert (row.field, row.old, row.new, row.range) == ("Value", "5.1 mmol/L", "4.1 mmol/L", "3.5 mmol/L to 5.0 mmol/L")
    assert table.raw == ()
    assert table.title.startswith("Observation: Potassium")


def test_the_title_has_the_day_of_the_task_s_zone() -> None:
    late = line(LAB | {"effectiveDateTime": "2026-03-10T23:30:00-05:00"})
    assert field_table(None, late, timezone(timedelta(hours=-5))).title.endswith(", 10 Mar 2026")
    assert field_table(None, late, UTC).title.endswith(", 11 Mar 2026")


def test_a_code_is_shown_with_display_and_system() -> None:
    coding = {"system": "http://loinc.org", "code": "2160-0", "display": "Potassium"}
    table = field_table(line(LAB), line(LAB | {"code": {"coding": [coding]}}))
    assert [(row.old, row.new) for row in table.rows] == [("Potassium (LOINC 2823-3)", "Potassium (LOINC 2160-0)")]


def test_a_note_is_shown_as_text_word_by_word() -> None:
    def note(text: str) -> bytes:
        data = base64.b64encode(text.encode()).decode()
        return line({"resourceType": "DocumentReference", "id": "n", "content": [{"attachment": {"data": data}}]})

    (row,) = field_table(note("He stopped warfarin in July."), note("He stopped warfarin in June.")).rows
    assert [(one.kind, one.text) for one in row.prose if one.kind != "same"] == [
        ("removed", "July."),
        ("added", "June."),
    ]


def test_what_the_words_leave_out_has_a_row_of_its_own() -> None:
    new = LAB | {"valueQuantity": LAB["valueQuantity"] | {"code": "mg/dL"}}
    (row,) = field_table(line(LAB), line(new)).rows
    assert (row.path, row.old, row.new) == ("/valueQuantity/code", "mmol/L", "mg/dL")


def test_an_added_resource_shows_all_of_itself() -> None:
    table = field_table(None, line(LAB))
    assert {row.old for row in table.rows} == {"not there"}
    assert any(row.new == "5.1 mmol/L" for row in table.rows)


NAMES = ["coding", "text", "display", "code", "system", "value", "unit", "data", "id"]
trees = st.recursive(
    st.booleans() | st.integers(0, 9) | st.text("ab5", max_size=3),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, min_size=1, max_size=4)
    ),
    max_leaves=8,
)
bodies = st.dictionaries(st.sampled_from(["code", "valueQuantity", "note", "status", "category"]), trees, max_size=4)


@given(bodies, bodies)
def test_nothing_that_changed_is_hidden(old: dict[str, Any], new: dict[str, Any]) -> None:
    a, b = ({"resourceType": "Observation", "id": "o"} | one for one in (old, new))
    table = field_table(line(a), line(b))
    assert bool(table.rows or table.raw) == (a != b or json.dumps(a, sort_keys=True) != json.dumps(b, sort_keys=True))
    assert all(row.old != row.new for row in table.rows)


def test_a_checkpoint_is_shown_before_and_after_in_plain_words_and_the_rest_raw() -> None:
    files = tiny_files()
    edit = CheckpointEdit(
        checkpoint="cp2", set={"criticality": "optional", "reachable": ["paper"]},
        was={"criticality": "critical", "reachable": ["paper", "extended"]},
    )  # fmt: skip
    told = checkpoint_change(load(files, where=TINY_ID), load(apply(files, edit), where=TINY_ID), "cp2")
    assert [(row.field, row.old, row.new) for row in told.rows] == [("Criticality", "critical", "optional")]
    assert [raw.path for raw in told.raw] == ["cp2.reachable"]
