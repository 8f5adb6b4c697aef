"""A unit that is changed by hand takes its code with it: what a reader sees and what grading reads stay one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from authoring.edits import ResourceEdit
from review_ui.reviewing import handmade
from tasks.errors import UsageError
from tasks.fhir.resources import dump_json

UCUM = "http://unitsofmeasure.org"


def operations(quantity: Mapping[str, Any], typed: Mapping[str, str]) -> dict[str, Any]:
    """What is replaced in a result whose value is this quantity, by the member's name."""
    body = {"resourceType": "Observation", "id": "o", "status": "final", "code": {"text": "x"}}
    line = dump_json(body | {"valueQuantity": dict(quantity)}).encode()
    edits = handmade.resource_edits(line, "Observation/o", {f"/valueQuantity/{key}": v for key, v in typed.items()})
    return {
        one["path"].rpartition("/")[2]: one["value"]
        for edit in edits
        if isinstance(edit, ResourceEdit)
        for one in edit.operations
        if one["op"] == "replace"
    }


def coded(value: int, unit: str, code: str, system: str | None = UCUM) -> dict[str, Any]:
    return {"value": value, "unit": unit} | ({"system": system} if system else {}) | {"code": code}


@pytest.mark.parametrize(
    ("was", "unit", "code"),
    [
        (coded(176, "lb", "[lb_av]"), "kg", "kg"),
        (coded(80, "kg", "kg"), "lb", "[lb_av]"),
        (coded(2, "mg/dL", "mg/dL"), "µmol/L", "umol/L"),
        (coded(38, "Cel", "Cel"), "°F", "[degF]"),
        (coded(250, "K/uL", "10*3/uL"), "10^9/L", "10*9/L"),
        (coded(50, "mL/min", "mL/min"), "mL/min/1.73 m²", "mL/min/{1.73_m2}"),
        # A word of no table stays its own code where it was.
        (coded(1, "tablet", "tablet", None), "sachet", "sachet"),
    ],
)
def test_a_unit_takes_its_code_with_it(was: dict[str, Any], unit: str, code: str) -> None:
    assert operations(was, {"value": "81", "unit": unit}) == {"value": 81, "unit": unit} | (
        {"code": code} if code != was["code"] else {}
    )


def test_another_spelling_of_the_same_unit_keeps_its_code() -> None:
    assert operations(coded(80, "lb", "[lb_av]"), {"unit": "lbs"}) == {"unit": "lbs"}


@pytest.mark.parametrize(
    ("was", "typed", "said"),
    [
        (coded(176, "lb", "[lb_av]"), {"unit": "stone"}, "no code is known"),
        (coded(176, "pound", "27259002", "http://snomed.info/sct"), {"unit": "kg"}, "no code is known"),
        (coded(176, "lb", "[lb_av]"), {"unit": "kg", "code": "g"}, "different units"),
        (coded(80, "kg", "kg"), {"code": "[lb_av]"}, "different units"),
    ],
)
def test_a_unit_and_a_code_that_are_not_one_are_refused(was: dict[str, Any], typed: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        operations(was, typed)


def test_unit_and_code_that_are_typed_together_are_taken() -> None:
    assert operations(coded(176, "lb", "[lb_av]"), {"unit": "stone", "code": "[stone_av]"}) == {
        "unit": "stone", "code": "[stone_av]",
    }  # fmt: skip


def test_what_did_not_agree_before_does_not_stand_in_the_way_of_another_value() -> None:
    assert operations(coded(80, "kg", "[lb_av]"), {"value": "81"}) == {"value": 81}
