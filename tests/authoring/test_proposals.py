"""Edits composed: the same subset gives the same bytes, dependent edits are one group, weaker safety is marked."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from authoring.clinical import field_table
from authoring.diffs import apply_diff, diff, words
from authoring.edits import (
    AddFile,
    AddResource,
    CheckpointEdit,
    Edit,
    ManifestEdit,
    RemoveResource,
    ResourceEdit,
    TextEdit,
    unit_hash,
)
from authoring.proposals import (
    CompositionError,
    Prepared,
    Proposal,
    ProposedEdit,
    compose,
    dump_proposal,
    parse_proposal,
    prepare,
)
from tasks.review.events import package_hash
from tests.tasks.packages import TINY_ID, tiny_files


def proposal(*edits: Edit) -> Proposal:
    return Proposal(
        task=TINY_ID, package=package_hash(tiny_files()), made_by="some/model", by_hand=False, at=datetime.now(UTC),
        edits=tuple(ProposedEdit(edit=one, rationale="x") for one in edits),
    )  # fmt: skip


def prepared(*edits: Edit) -> Prepared:
    return prepare(tiny_files(), proposal(*edits))


def pressure(value: float) -> ResourceEdit:
    where = "/valueQuantity/value"
    operations = ({"op": "test", "path": where, "value": 138}, {"op": "replace", "path": where, "value": value})
    return ResourceEdit(ref="Observation/o-pressure", operations=operations)


INDEPENDENT: list[Edit] = [
    TextEdit(path="instruction.md", find="hypertension", replace="asthma\u2028\r\n"),
    TextEdit(path="instruction.md", find="follow-up laboratory", replace="creatinine"),
    pressure(134),
    AddResource(resource={"resourceType": "Observation", "id": "a-new", "status": "final"}),
    AddResource(resource={"resourceType": "Observation", "id": "z-new", "status": "final"}),
    AddResource(resource={"resourceType": "Flag", "id": "f-1", "status": "active"}),
    RemoveResource(ref="MedicationRequest/m-2", was=unit_hash(tiny_files(), "chart/MedicationRequest.ndjson#m-2")),
    CheckpointEdit(checkpoint="cp1", set={"criticality": "optional"}, was={"criticality": "required"}),
    CheckpointEdit(checkpoint="cp3", set={"title": "Said why"}, was={"title": "The reply says what the dose rests on"}),
    ManifestEdit(key="estimated_minutes", value=25, was=20),
    ManifestEdit(key="limits.turns", value=50, was=40),
    AddFile(path="examples/new.json", content="{}\n"),
]


@given(st.permutations(range(len(INDEPENDENT))), st.integers(0, len(INDEPENDENT)))
def test_the_order_of_independent_edits_does_not_matter(order: Sequence[int], count: int) -> None:
    chosen = order[:count]
    in_any_order = compose(tiny_files(), [(n + 1, INDEPENDENT[n]) for n in chosen])
    in_proposal_order = compose(tiny_files(), [(n + 1, INDEPENDENT[n]) for n in sorted(chosen)])
    assert in_any_order == in_proposal_order


def test_independent_edits_stand_alone() -> None:
    assert {ref.group for ref in prepared(*INDEPENDENT).changes} == {""}


def test_an_edit_that_needs_another_is_decided_with_it() -> None:
    first = TextEdit(path="instruction.md", find="hypertension", replace="asthma since childhood")
    second = TextEdit(path="instruction.md", find="since childhood", replace="since 2001")
    other = TextEdit(path="instruction.md", find="follow-up laboratory", replace="creatinine")
    one, two, three = prepared(first, other, second).changes
    assert one.group == three.group != ""
    assert two.group == ""


def test_what_speaks_of_a_new_resource_is_decided_with_it() -> None:
    new = AddResource(resource={"resourceType": "Observation", "id": "o-new", "status": "final"})
    speaks = CheckpointEdit(
        checkpoint="cp3", set={"rests_on": ["Observation/o-new"]},
        was={"rests_on": ["Observation/o-creatinine", "Observation/o-weight"]},
    )  # fmt: skip
    one, two = prepared(new, speaks).changes
    assert one.group == two.group != ""


def test_edits_that_do_not_go_together_are_each_named() -> None:
    twice = [pressure(134), pressure(135)]
    with pytest.raises(CompositionError) as refused:
        prepared(*twice, TextEdit(path="instruction.md", find="nowhere at all", replace="x"))
    assert [one.number for one in refused.value.failures] == [2, 3]


def test_a_rejected_change_does_not_come_again() -> None:
    id = prepared(pressure(134)).changes[0].change
    with pytest.raises(CompositionError, match="rejected before"):
        prepare(tiny_files(), proposal(pressure(134)), rejected=frozenset({id}))


def test_a_weaker_safety_checkpoint_is_marked() -> None:
    weaker = CheckpointEdit(checkpoint="cp2", set={"criticality": "optional"}, was={"criticality": "critical"})
    made = prepared(weaker, pressure(134))
    assert [ref.weakens_safety for ref in made.changes] == [True, False]
    assert "optional instead of critical" in next(iter(made.weakens.values()))[0]


def test_a_stored_proposal_comes_back_and_keeps_its_decimals() -> None:
    from tasks.fhir.resources import parse_json

    made = proposal(pressure(parse_json("5.00")))
    data = dump_proposal(made)
    assert b'"value":5.00' in data
    assert dump_proposal(parse_proposal(data, where="x")) == data


def test_a_chart_of_30720_resources_and_two_hundred_edits() -> None:
    bodies = [
        {"resourceType": "Observation", "id": f"x-{n:06d}", "status": "final", "valueInteger": n} for n in range(30_720)
    ]
    files = tiny_files() | {
        "chart/Observation.ndjson": "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in bodies).encode()
    }
    edits = [
        ResourceEdit(
            ref=f"Observation/x-{n:06d}",
            operations=(
                {"op": "test", "path": "/valueInteger", "value": n},
                {"op": "replace", "path": "/valueInteger", "value": -1},
            ),
        )
        for n in range(0, 30_000, 150)
    ]  # fmt: skip
    after = compose(files, enumerate(edits, 1))
    (made,) = diff(files, after)
    assert made.counts == (200, 200)
    assert apply_diff(made.text, files[made.path]) == after[made.path]


def test_a_note_of_a_megabyte_is_read_word_by_word() -> None:
    text = "".join(f"Line {n}: potassium {n % 7}.{n % 10} mmol/L, no hemolysis.\n" for n in range(24_000))
    changed = text.replace("Line 12000: potassium", "Line 12000: sodium").replace("Line 3: ", "Line three: ")

    def note(content: str) -> bytes:
        data = base64.b64encode(content.encode()).decode()
        return json.dumps(
            {"resourceType": "DocumentReference", "id": "n", "content": [{"attachment": {"data": data}}]}
        ).encode()

    (row,) = field_table(note(text), note(changed)).rows
    assert [(one.kind, one.text) for one in row.prose if one.kind != "same"][-2:] == [
        ("removed", "potassium"), ("added", "sodium"),
    ]  # fmt: skip
    pieces = words(text, changed)
    assert "".join(one.text for one in pieces if one.kind != "added") == text
