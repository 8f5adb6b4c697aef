"""A folder that was edited by hand becomes minimal edits that give exactly its bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from authoring.comparing import edits_between, operations_between
from authoring.edits import (
    AddCheckpoint,
    AddFile,
    AddResource,
    CheckpointEdit,
    ManifestEdit,
    Package,
    RemoveCheckpoint,
    RemoveFile,
    RemoveResource,
    ResourceEdit,
    TextEdit,
)
from authoring.jsontext import EditError, patch
from tasks.fhir.resources import dump_json, parse_json
from tests.tasks.packages import tiny_files

TABLE = {"id": "cp7", "title": "Seen", "capability": "data_retrieval", "grader": "code", "seen": ["Patient/p-7001"]}


def replaced(path: str, *pairs: tuple[str, str]) -> dict[str, bytes]:
    files = tiny_files()
    for old, new in pairs:
        assert files[path].count(old.encode()) == 1
        files[path] = files[path].replace(old.encode(), new.encode())
    return files


def test_a_word_is_replaced_with_no_more_around_it_than_makes_it_unique() -> None:
    after = replaced("instruction.md", ("follow-up laboratory", "follow-up creatinine"), ("hypertension", "asthma"))
    assert edits_between(tiny_files(), after) == (
        TextEdit(path="instruction.md", find="hypertension", replace="asthma"),
        TextEdit(path="instruction.md", find="laboratory", replace="creatinine"),
    )


def test_a_number_of_a_resource_is_one_tested_operation() -> None:
    (edit,) = edits_between(tiny_files(), replaced("chart/Observation.ndjson", ('"value":138', '"value":138.0')))
    assert isinstance(edit, ResourceEdit)
    assert [(one["op"], one["path"]) for one in edit.operations] == [
        ("test", "/valueQuantity/value"), ("replace", "/valueQuantity/value"),
    ]  # fmt: skip


def test_an_element_put_in_the_middle_keeps_its_place() -> None:
    after = replaced("chart/Patient.ndjson", ('"id":"p-7001"', '"id":"p-7001","active":true'))
    edits = edits_between(tiny_files(), after)
    package = Package(tiny_files())
    for edit in edits:
        package = package.apply(edit)
    assert package.files() == after


def test_every_kind_of_difference_is_found_as_what_it_is() -> None:
    after = replaced("checkpoints.toml", ('criticality = "critical"', 'criticality = "required"'))
    after["task.toml"] = after["task.toml"].replace(b"estimated_minutes = 20", b"estimated_minutes = 25")
    after["chart/Flag.ndjson"] = b'{"resourceType":"Flag","id":"f-1","status":"active"}\n'
    del after["examples/cp2-brand.json"]
    after["examples/cp2-other.json"] = b"{}\n"
    kinds = {type(edit) for edit in edits_between(tiny_files(), after)}
    assert kinds == {CheckpointEdit, ManifestEdit, AddResource, RemoveFile, AddFile}
    back = {type(edit) for edit in edits_between(after, tiny_files())}
    assert back == {CheckpointEdit, ManifestEdit, RemoveResource, RemoveFile, AddFile}


def test_a_checkpoint_that_is_gone_or_new() -> None:
    files = tiny_files()
    head, _, _ = files["checkpoints.toml"].decode().rpartition("\n[[checkpoint]]\n")
    fewer = files | {"checkpoints.toml": (head.rstrip("\n") + "\n").encode()}
    assert [type(one) for one in edits_between(files, fewer)] == [RemoveCheckpoint]
    # Written as the workbench writes a table, it is one added checkpoint; otherwise the text of the file is edited.
    added = Package(fewer).apply(AddCheckpoint(table=TABLE)).files()
    assert [type(one) for one in edits_between(fewer, added)] == [AddCheckpoint]
    assert {type(one) for one in edits_between(fewer, files)} <= {AddCheckpoint, TextEdit}


def test_reviews_changelog_and_version_are_left_out() -> None:
    files = tiny_files()
    after = files | {
        "CHANGELOG.md": b"mine\n", "reviews/events.ndjson": b"{}\n",
        "task.toml": files["task.toml"].replace(b"version = 1\ntitle", b"version = 9\ntitle"),
    }  # fmt: skip
    assert edits_between(files, after) == ()


def test_a_line_with_another_layout_is_refused_with_its_name() -> None:
    after = replaced("chart/Patient.ndjson", ('"id":"p-7001"', '"id": "p-7001"'))
    with pytest.raises(EditError, match=r"p-7001"):
        edits_between(tiny_files(), after)


words = st.lists(
    st.sampled_from(["dose ", "10 mg", "\n", "\r\n", "\u2028", "\t", "\u00a0", "x y z\n", "warfarin ", "5", "."]),
    max_size=30,
).map("".join)


@given(words, words)
def test_any_text_becomes_any_other_byte_for_byte(old: str, new: str) -> None:
    before, after = {"instruction.md": old.encode()}, {"instruction.md": new.encode()}
    if not old:
        return
    package = Package(before)
    for edit in edits_between(before, after):
        package = package.apply(edit)
    assert package.files() == after


values = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=6) | st.decimals(allow_nan=False, allow_infinity=False, places=2),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=10,
)
bodies = st.dictionaries(st.text(max_size=4).filter(lambda k: k not in ("id", "resourceType")), values, max_size=5)


@given(bodies, bodies)
def test_operations_lead_from_any_body_to_any_other(old: dict[str, object], new: dict[str, object]) -> None:
    before, after = parse_json(dump_json(old)), parse_json(dump_json(new))
    operations = list(operations_between(before, after))
    made = parse_json(patch(dump_json(before), operations)) if operations else before
    assert made == after
