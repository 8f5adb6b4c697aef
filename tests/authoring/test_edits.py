"""Edits are exact, whole or refused, and touch no byte outside what they name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from authoring import jsontext
from authoring.edits import (
    AddCheckpoint,
    AddFile,
    AddResource,
    CheckpointEdit,
    Edit,
    ManifestEdit,
    RemoveCheckpoint,
    RemoveFile,
    RemoveResource,
    ResourceEdit,
    TextEdit,
    apply,
    change_id,
    parse_edits,
    unit_hash,
)
from authoring.jsontext import EditError
from tasks.fhir.resources import dump_json, parse_json
from tests.tasks.packages import tiny_files


@pytest.fixture
def files() -> dict[str, bytes]:
    return tiny_files()


def only(before: Mapping[str, bytes], after: Mapping[str, bytes], path: str) -> None:
    """Nothing but this file differs."""
    changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert changed == {path}


def some_resource(files: Mapping[str, bytes], kind: str) -> dict[str, Any]:
    return dict(parse_json(files[f"chart/{kind}.ndjson"].split(b"\n")[0]))


# Text


def test_one_match_is_replaced(files: dict[str, bytes]) -> None:
    word = files["instruction.md"].decode().split("\n")[0]
    after = apply(files, TextEdit(path="instruction.md", find=word, replace="# Another title"))
    only(files, after, "instruction.md")
    assert after["instruction.md"] == files["instruction.md"].replace(word.encode(), b"# Another title", 1)


@pytest.mark.parametrize(
    ("text", "find", "words"),
    [
        ("Start 10 mg.\nStart 10 mg.\n", "Start 10 mg.", "stands 2 times, at lines 1, 2"),
        ("Start finerenone 10 mg daily.\n", "Start finerenon 10mg daily.", "Nearest: line 1: 'Start finerenone 10 mg"),
        ("Start\u00a010 mg.\n", "Start 10 mg.", "Nearest: line 1"),
        ("Start 10 mg.\n", "Give warfarin", "No line resembles it"),
        ("aaa\n", "aa", "stands 2 times"),
    ],
)
def test_no_match_or_several_are_refused_with_the_real_text(
    files: dict[str, bytes], text: str, find: str, words: str
) -> None:
    files["instruction.md"] = text.encode()
    with pytest.raises(EditError) as refused:
        apply(files, TextEdit(path="instruction.md", find=find, replace="x"))
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "path",
    ["reviews/events.ndjson", "../other/instruction.md", "chart/Patient.ndjson", "/etc/passwd", "solution/../task.toml",
     "CHANGELOG.md", "examples", "solution//x"],
)  # fmt: skip
def test_text_edits_stay_in_the_files_that_take_them(files: dict[str, bytes], path: str) -> None:
    with pytest.raises(EditError):
        apply(files | {path: b"text"}, TextEdit(path=path, find="text", replace="other"))


texts = st.text(min_size=0, max_size=40)


@given(before=texts, find=st.text(min_size=1, max_size=10), after=texts, new=texts)
def test_bytes_around_a_text_edit_never_change(before: str, find: str, after: str, new: str) -> None:
    text = before + find + after
    assume(text.count(find) == 1 and text.find(find) == len(before) and new != find)
    assume(not any(text.startswith(find, at) for at in range(len(text)) if at != len(before)))
    edited = apply({"instruction.md": text.encode()}, TextEdit(path="instruction.md", find=find, replace=new))
    assert edited["instruction.md"] == (before + new + after).encode()


# Resources


def test_a_resource_edit_with_its_tests(files: dict[str, bytes]) -> None:
    body = some_resource(files, "Observation")
    operations = (
        {"op": "test", "path": "/status", "value": body["status"]},
        {"op": "replace", "path": "/status", "value": "amended"},
        {"op": "add", "path": "/valueQuantity", "value": {"value": Decimal("5.00"), "unit": "mmol/L"}}
        if "valueQuantity" not in body
        else {"op": "add", "path": "/comment", "value": "x"},
    )
    after = apply(files, ResourceEdit(ref=f"Observation/{body['id']}", operations=operations))
    only(files, after, "chart/Observation.ndjson")
    old, new = (one["chart/Observation.ndjson"].split(b"\n") for one in (files, after))
    assert old[1:] == new[1:]
    assert parse_json(new[0])["status"] == "amended"


LINE = (
    '{"resourceType":"Observation", "id":"o-1","valueQuantity":{"value":5.00,"unit":"mg"},'
    '"category":[{"text":"a"},{"text":"b"}],"status" : "final"}'
)
REFUSED: dict[str, tuple[list[dict[str, Any]], str]] = {
    "replace without test": ([{"op": "replace", "path": "/status", "value": "amended"}], "without a test"),
    "remove without test": ([{"op": "remove", "path": "/status"}], "without a test"),
    "test fails": ([{"op": "test", "path": "/status", "value": "preliminary"}], "is not what the edit expects"),
    "test of another kind": ([{"op": "test", "path": "/valueQuantity/value", "value": "5.00"}], "is not what"),
    "list item without its test": (
        [
            {"op": "test", "path": "/status", "value": "final"},
            {"op": "add", "path": "/category/1/id", "value": "x"},
        ],
        "goes through the list item /category/1",
    ),
    "list item with another's test": (
        [
            {"op": "test", "path": "/category/0/text", "value": "a"},
            {"op": "add", "path": "/category/1/id", "value": "x"},
        ],
        "goes through the list item /category/1",
    ),
    "moved list item": ([{"op": "test", "path": "/category/0/text", "value": "b"}], "is not what"),
    "root": ([{"op": "replace", "path": "", "value": {}}], "whole resource"),
    "root by test": ([{"op": "test", "path": "", "value": {}}], "whole resource"),
    "id": (
        [{"op": "test", "path": "/id", "value": "o-1"}, {"op": "replace", "path": "/id", "value": "o-2"}],
        "cannot change",
    ),
    "move": ([{"op": "move", "from": "/status", "path": "/x"}], "not one of"),
    "copy": ([{"op": "copy", "from": "/status", "path": "/x"}], "not one of"),
    "nowhere": ([{"op": "test", "path": "/no/where", "value": 1}], "leads nowhere"),
    "beyond the list": ([{"op": "add", "path": "/category/7", "value": {}}], "beyond the end"),
    "added twice": ([{"op": "add", "path": "/status", "value": "x"}], "is there already"),
    "no pointer": ([{"op": "test", "path": "status", "value": "final"}], "not a JSON pointer"),
    "bad escape": ([{"op": "test", "path": "/a~2", "value": "final"}], "not a JSON pointer"),
    "no value": ([{"op": "test", "path": "/status"}], "needs a value"),
    "no path": ([{"op": "test", "value": 1}], "needs a path"),
    "nothing changed": ([{"op": "test", "path": "/status", "value": "final"}], "changes nothing"),
}


@pytest.mark.parametrize("row", REFUSED)
def test_operations_that_are_refused(row: str) -> None:
    operations, words = REFUSED[row]
    chart = {"chart/Observation.ndjson": LINE.encode() + b"\n"}
    with pytest.raises(EditError, match=words):
        apply(chart, ResourceEdit(ref="Observation/o-1", operations=tuple(operations)))


def test_what_an_operation_does_not_name_keeps_its_bytes() -> None:
    operations = [
        {"op": "test", "path": "/category/0/text", "value": "a"},
        {"op": "remove", "path": "/category/0/text"},
        {"op": "test", "path": "/valueQuantity/value", "value": 5},
        {"op": "replace", "path": "/valueQuantity/value", "value": Decimal("4.70")},
        {"op": "add", "path": "/category/-", "value": {"text": "c"}},
    ]
    assert jsontext.patch(LINE, operations) == (
        '{"resourceType":"Observation", "id":"o-1","valueQuantity":{"value":4.70,"unit":"mg"},'
        '"category":[{},{"text":"b"},{"text":"c"}],"status" : "final"}'
    )


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.decimals(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
bodies = st.dictionaries(st.text(max_size=6), values, min_size=1, max_size=5)


@given(bodies, st.data())
def test_any_replacement_gives_what_jsonpatch_gives_and_leaves_the_rest(
    body: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps(json.loads(dump_json(body)), indent=data.draw(st.sampled_from([None, 2])))
    key = data.draw(st.sampled_from(sorted(body)))
    assume(key not in ("id", "resourceType"))
    pointer = "/" + key.replace("~", "~0").replace("/", "~1")
    new = data.draw(values)
    old = parse_json(text)[key]
    test = {"op": "test", "path": pointer, "value": old}
    after = jsontext.patch(text, [test, {"op": "replace", "path": pointer, "value": new}])
    node = jsontext.scan(text).members[key][1]
    assert after == text[: node.start] + dump_json(new) + text[node.end :]
    gone = parse_json(jsontext.patch(text, [test, {"op": "remove", "path": pointer}]))
    assert jsontext.same(gone, {k: v for k, v in parse_json(text).items() if k != key})


def test_adding_and_removing_a_resource_keeps_the_file_sorted(files: dict[str, bytes]) -> None:
    body = some_resource(files, "Observation") | {"id": "aaa-first"}
    added = apply(files, AddResource(resource=body))
    lines = added["chart/Observation.ndjson"].rstrip(b"\n").split(b"\n")
    ids = [parse_json(line)["id"] for line in lines]
    assert ids == sorted(ids)
    was = sha256(lines[ids.index("aaa-first")]).hexdigest()
    assert apply(added, RemoveResource(ref="Observation/aaa-first", was=was)) == files
    with pytest.raises(EditError, match="there already"):
        apply(added, AddResource(resource=body))
    with pytest.raises(EditError, match="not what the edit expects"):
        apply(added, RemoveResource(ref="Observation/aaa-first", was="0" * 64))
    with pytest.raises(EditError, match=r"no such resource.*aaa-first"):
        apply(added, RemoveResource(ref="Observation/aaa-firs", was=was))


def test_the_last_resource_of_a_type_takes_its_file_along(files: dict[str, bytes]) -> None:
    body = {"resourceType": "Flag", "id": "f-1", "status": "active"}
    added = apply(files, AddResource(resource=body))
    assert "chart/Flag.ndjson" in added
    removed = apply(added, RemoveResource(ref="Flag/f-1", was=unit_hash(added, "chart/Flag.ndjson#f-1")))
    assert removed == files


# Checkpoints, manifest, files


def test_keys_of_one_checkpoint(files: dict[str, bytes]) -> None:
    edit = CheckpointEdit(checkpoint="cp1", set={"title": 'A "quoted" title'}, was={"title": title(files, "cp1")})
    after = apply(files, edit)
    only(files, after, "checkpoints.toml")
    assert title(after, "cp1") == 'A "quoted" title'
    assert (
        files["checkpoints.toml"].split(b"[[checkpoint]]")[2:] == after["checkpoints.toml"].split(b"[[checkpoint]]")[2:]
    )
    with pytest.raises(EditError, match="title is not what the edit expects"):
        apply(after, edit)


def test_a_checkpoint_removed_and_added_again(files: dict[str, bytes]) -> None:
    from authoring.tomltext import blocks, table

    text = files["checkpoints.toml"].decode()
    ids = [id for id, _ in blocks(text)[1]]
    gone = apply(files, RemoveCheckpoint(checkpoint=ids[1], was=unit_hash(files, f"checkpoints.toml#{ids[1]}")))
    assert [id for id, _ in blocks(gone["checkpoints.toml"].decode())[1]] == [ids[0], *ids[2:]]
    back = apply(gone, AddCheckpoint(table=table(text, ids[1]), after=ids[0]))["checkpoints.toml"].decode()
    assert [id for id, _ in blocks(back)[1]] == ids
    assert table(back, ids[1]) == table(text, ids[1])


def test_a_header_inside_a_string_is_not_taken_for_a_checkpoint(files: dict[str, bytes]) -> None:
    files["checkpoints.toml"] += b'# end\n[[checkpoint]]\nid = "cp9"\ntitle = """\n[[checkpoint]]\n"""\n'
    with pytest.raises(EditError, match="cannot be told apart"):
        apply(files, CheckpointEdit(checkpoint="cp1", set={"title": "x"}, was={"title": title(files, "cp1")}))


def test_one_key_of_the_manifest_keeps_the_rest(files: dict[str, bytes]) -> None:
    text = files["task.toml"].decode()
    now = next(line for line in text.split("\n") if line.startswith("now = "))
    was = now.removeprefix("now = ").strip()
    after = apply(files, ManifestEdit(key="context.now", value="2026-04-01T10:00:00-05:00", was=was))
    assert after["task.toml"].decode() == text.replace(now, "now = 2026-04-01T10:00:00-05:00")
    with pytest.raises(EditError, match="not what the edit expects"):
        apply(files, ManifestEdit(key="context.now", value="2026-04-01T10:00:00-05:00", was="2020-01-01T00:00:00Z"))


def test_files_of_solutions_and_examples(files: dict[str, bytes]) -> None:
    added = apply(files, AddFile(path="examples/cp1-new.md", content="One.\n"))
    assert apply(added, RemoveFile(path="examples/cp1-new.md", was=sha256(b"One.\n").hexdigest())) == files
    for path in ("checkpoints.py", "reviews/x.json", "examples/../task.toml"):
        with pytest.raises(EditError):
            apply(files, AddFile(path=path, content="x"))


# Identity


def test_the_same_change_has_the_same_id_however_it_is_said(files: dict[str, bytes]) -> None:
    body = some_resource(files, "Observation")
    ref = f"Observation/{body['id']}"
    test = {"op": "test", "path": "/status", "value": body["status"]}
    one = ResourceEdit(ref=ref, operations=(test, {"op": "replace", "path": "/status", "value": "amended"}))
    other = ResourceEdit(
        ref=ref, operations=(test, {"op": "test", "path": "/id", "value": body["id"]}, one.operations[1])
    )
    assert change_id(one, files) == change_id(other, files)
    third = ResourceEdit(ref=ref, operations=(test, {"op": "replace", "path": "/status", "value": "corrected"}))
    assert change_id(third, files) != change_id(one, files)


def test_decimals_of_a_proposal_stay_as_written(files: dict[str, bytes]) -> None:
    edits = parse_edits('[{"kind":"add_resource","resource":{"resourceType":"Flag","id":"f-1","x":5.00,"y":1e3}}]')
    (edit,) = edits
    added: Edit = edit
    assert b'"x":5.00,"y":1e3' in apply(files, added)["chart/Flag.ndjson"]


def title(files: Mapping[str, bytes], checkpoint: str) -> str:
    from authoring.tomltext import table

    return str(table(files["checkpoints.toml"].decode(), checkpoint)["title"])
