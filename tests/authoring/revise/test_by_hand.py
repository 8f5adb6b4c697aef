"""What a person changes of a draft's edit in words becomes the same kind of edit, exact as before."""

from __future__ import annotations

import pytest

from authoring.edits import (
    AddFile,
    CheckpointEdit,
    Edit,
    ManifestEdit,
    Package,
    RemoveFile,
    ResourceEdit,
    TextEdit,
    apply,
)
from authoring.revising.answer import NoteEdit, edit_of, note_texts
from authoring.revising.by_hand import changed, pieces
from tasks.errors import UsageError
from tasks.fhir.resources import dump_json, parse_json
from tests.tasks.packages import NOTE_TEXT, tiny_files

FILES = tiny_files()
TEXT = TextEdit(path="instruction.md", find="follow-up laboratory", replace="creatinine")
FILE = AddFile(path="examples/x.md", content="one")
NUMBER = ResourceEdit(
    ref="Observation/o-creatinine",
    operations=(
        {"op": "test", "path": "/valueQuantity/value", "value": parse_json("1.1")},
        {"op": "replace", "path": "/valueQuantity/value", "value": parse_json("1.20")},
    ),
)
TITLE = CheckpointEdit(checkpoint="cp1", set={"title": "A"}, was={"title": "B"})
MINUTES = ManifestEdit(key="estimated_minutes", value=25, was=20)
NOTE = edit_of(NoteEdit(ref="DocumentReference/n-1", find="No bleeding so far.", replace="Nosebleed."), Package(FILES))


@pytest.mark.parametrize(
    ("edit", "name", "shown", "typed"),
    [
        (TEXT, "replace", "creatinine", "creatinine in 3 months"),
        (FILE, "content", "one", "two"),
        (NUMBER, "1", "1.20", "1.30"),
        (TITLE, "title", "A", "C"),
        (MINUTES, "value", "25", "30"),
        (NOTE, "note", NOTE_TEXT.replace("No bleeding so far.", "Nosebleed."), "All of it."),
    ],
    ids=["text", "file", "number", "title", "minutes", "note"],
)
def test_a_text_is_offered_and_taken_back_in(edit: Edit, name: str, shown: str, typed: str) -> None:
    (piece,) = pieces(edit, FILES)
    assert (piece.name, piece.text) == (name, shown)
    assert changed(edit, {name: shown}, FILES) == edit
    other = changed(edit, {name: typed}, FILES)
    assert other.kind == edit.kind
    assert [one.text for one in pieces(other, FILES)] == [typed]


def test_a_number_stays_as_it_is_typed_and_words_are_refused_for_it() -> None:
    other = changed(NUMBER, {"1": "5.00"}, FILES)
    assert b'"value":5.00' in apply(FILES, other)["chart/Observation.ndjson"]
    for typed in ("much", '"5"', "true", ""):
        with pytest.raises(UsageError, match="a number is wanted"):
            changed(NUMBER, {"1": typed}, FILES)


def test_a_reworded_note_says_what_was_typed_and_keeps_the_rest() -> None:
    after = apply(FILES, changed(NOTE, {"note": "He bleeds — a little.\n"}, FILES))
    body = parse_json(after["chart/DocumentReference.ndjson"].strip())
    assert [text for _, text in note_texts(body)] == ["He bleeds — a little.\n"]
    before = parse_json(FILES["chart/DocumentReference.ndjson"].strip())
    before["content"][0]["attachment"]["data"] = body["content"][0]["attachment"]["data"]
    assert dump_json(body) == dump_json(before)


def test_what_has_no_text_of_its_own_can_only_be_dropped() -> None:
    assert pieces(RemoveFile(path="examples/x.md", was="0" * 64), FILES) == ()
