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
from authoring.views import ChangeView, edit_view
from tasks.package import load
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


def grouped(*edits: Edit) -> list[str]:
    return [ref.group for ref in prepared(*edits).changes]


def seen(*edits: Edit) -> list[ChangeView]:
    made = prepared(*edits)
    return [edit_view(TINY_ID, tiny_files(), made.proposal.edits, made.changes, n) for n in range(len(edits))]


#: Words of the instruction that cp2 quotes, and the quotation, each in an edit of its own: neither can be read alone.
QUOTED = "Observation/o-creatinine", "Observation/o-weight"
REWORDED: tuple[Edit, Edit] = (
    TextEdit(path="instruction.md", find="on no anticoagulant now", replace="without any anticoagulant"),
    CheckpointEdit(
        checkpoint="cp2", set={"rests_on": [*QUOTED, 'instruction#"without any anticoagulant"']},
        was={"rests_on": [*QUOTED, 'instruction#"on no anticoagulant now"']},
    ),
)  # fmt: skip
NEW_CODE: tuple[Edit, Edit] = (
    TextEdit(path="checkpoints.py", find="def reply_gives_dose_reasons", replace="def reply_says_why"),
    CheckpointEdit(checkpoint="cp3", set={"function": "reply_says_why"}, was={"function": "reply_gives_dose_reasons"}),
)
NEW_EXAMPLE: tuple[Edit, Edit] = (
    CheckpointEdit(
        checkpoint="cp2", set={"must_match": ["examples/other.json"]}, was={"must_match": ["examples/cp2-brand.json"]}
    ),
    AddFile(path="examples/other.json", content='{"resourceType":"MedicationRequest"}\n'),
)


@pytest.mark.parametrize("pair", [REWORDED, NEW_CODE, NEW_EXAMPLE])
@pytest.mark.parametrize("turned", [False, True])
def test_edits_that_can_only_be_read_together_are_one_group_and_each_can_be_viewed(
    pair: tuple[Edit, Edit], turned: bool
) -> None:
    one, two = reversed(pair) if turned else pair
    other = pressure(134)
    groups = grouped(one, other, two)
    assert groups[0] == groups[2] != ""
    assert groups[1] == ""
    for view in seen(one, other, two):
        assert view.unreadable == ""
        assert view.diffs
        assert load(view.sides[0], where=TINY_ID) != load(view.sides[1], where=TINY_ID)


def test_only_those_are_joined_that_are_needed() -> None:
    title = CheckpointEdit(checkpoint="cp1", set={"title": "Read"}, was={"title": tiny_title("cp1")})
    groups = grouped(title, *REWORDED, *NEW_CODE, TextEdit(path="instruction.md", find="hypertension", replace="x"))
    assert groups[0] == groups[5] == ""
    assert groups[1] == groups[2] != groups[3] == groups[4] != ""


def test_words_and_consequence_of_a_change_that_is_read_with_its_group() -> None:
    text, rests_on = seen(*REWORDED)
    assert [(one.read_with, one.consequence.word) for one in (text, rests_on)] == [("group", "RERUN")] * 2
    assert [row.field for row in rests_on.rows] == ["Rests on"]
    assert [diff.path for diff in text.diffs] == ["instruction.md"]


def test_a_change_put_up_without_its_group_is_read_with_what_stands_of_its_proposal_or_said_to_be_unreadable() -> None:
    made = prepared(*REWORDED)
    apart = [ref.model_copy(update={"group": ""}) for ref in made.changes]
    for place in (0, 1):
        alone = edit_view(TINY_ID, tiny_files(), made.proposal.edits, apart, place)
        assert "quoted words" in alone.unreadable
        assert alone.diffs
        assert alone.consequence.word == "RERUN"
        both = edit_view(TINY_ID, tiny_files(), made.proposal.edits, apart, place, (0, 1))
        assert (both.unreadable, both.read_with) == ("", "proposal")


def test_a_change_that_is_read_by_itself_has_the_package_without_and_with_it() -> None:
    (view,) = seen(pressure(134))
    assert (view.read_with, view.unreadable) == ("", "")
    assert view.sides[0] == tiny_files()
    assert view.consequence.word == "RERUN"


def tiny_title(checkpoint: str) -> str:
    return next(one.title for one in load(tiny_files(), where=TINY_ID).checkpoints if one.id == checkpoint)
