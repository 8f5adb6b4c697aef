"""Fields of a changed resource as people read them: times, the clock, where a sentence gives the old value."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest

from authoring.applying import Consequence
from authoring.clinical import Row
from authoring.diffs import diff
from authoring.views import ChangeView
from review_ui.reviewing.bearing_view import against_clock, spoken, text_sides, units_of
from tasks.review.events import ChangeRef

CLOCK = datetime(2025, 7, 1, 14, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("2025-06-20", "2025-06-20T08:15:00-05:00", ("date only, 20 Jun 2025", "20 Jun 2025, 08:15")),
        ("2025-06-20", "2025-06-21", ("20 Jun 2025", "21 Jun 2025")),
        ("not there", "2025-06-21", ("not there", "21 Jun 2025")),
        # What reads alike and differs is shown as it is written.
        ("2025-06-20T08:15:00-05:00", "2025-06-20T08:15:00-06:00",
         ("2025-06-20T08:15:00-05:00", "2025-06-20T08:15:00-06:00")),
        ("2025-02-31", "2025-06-21", ("2025-02-31", "2025-06-21")),
        ("5.6", "final", ("5.6", "final")),
    ],
)  # fmt: skip
def test_times_are_told_as_people_write_them(old: str, new: str, said: tuple[str, str]) -> None:
    assert spoken(old, new) == said


@pytest.mark.parametrize(
    ("path", "new", "words"),
    [
        ("/effectiveDateTime", "2025-06-20T08:15:00-05:00", "before the clock"),
        ("/effectiveDateTime", "2025-07-01T14:31:00Z", "after the clock"),
        ("/issued", "2025-07-02T00:00:00Z", "after the clock"),
        ("/authoredOn", "2025-07-01", "before the clock"),
        ("/authoredOn", "2025-07-02", "after the clock"),
        ("/birthDate", "1964-05-02", ""),
        ("/effectiveDateTime", "last week", ""),
    ],
)
def test_what_happened_is_held_against_the_clock(path: str, new: str, words: str) -> None:
    found = against_clock(Row("Taken at", path, "2025-01-01", new), CLOCK)
    assert words in (found or "")
    assert bool(found) == bool(words)


def test_without_a_clock_nothing_is_said() -> None:
    assert against_clock(Row("Taken at", "/effectiveDateTime", "2025-01-01", "2025-06-20"), None) is None


@pytest.mark.parametrize(
    ("ref", "units"),
    [
        ("instruction", ("instruction.md",)),
        ("task.toml", ("task.toml", "task.toml#title")),
        ("solution/a/note.md", ("solution/a/note.md",)),
        ("DocumentReference/n-1", ("chart/DocumentReference.ndjson#n-1",)),
    ],
)
def test_the_edits_that_reword_a_text_are_known_by_their_place(ref: str, units: tuple[str, ...]) -> None:
    assert units_of(ref) == units


def changed(path: str, old: str, new: str, *rows: Row) -> ChangeView:
    sides = {path: old.encode()}, {path: new.encode()}
    ref = ChangeRef(change="0" * 64, unit=path, base="", result="", made_by_hand=False)
    meaning = Consequence(agent=True, grade=True)
    return ChangeView(ref, "undecided", "", "", "", rows, (), diff(*sides), meaning, {}, sides)


def test_the_text_of_a_change_is_the_note_s_words_the_file_s_or_the_title() -> None:
    def note(text: str) -> bytes:
        attachment = {"contentType": "text/plain", "data": base64.b64encode(text.encode()).decode()}
        content = [{"attachment": attachment}]
        return json.dumps({"resourceType": "DocumentReference", "id": "n-1", "content": content}).encode()

    none = changed("instruction.md", "", "")
    sides = text_sides("chart/DocumentReference.ndjson#n-1", (note("Old."), note("New.")), none)
    assert [one.split("\n")[0] for one in sides] == ["Old.", "New."]
    assert text_sides("chart/DocumentReference.ndjson#n-1", (None, note("New.")), none)[0] == ""
    text = changed("instruction.md", "Old.", "New.")
    assert text_sides("instruction.md", (None, None), text) == ("Old.", "New.")
    title = changed("task.toml", "a", "b", Row("title", "task.toml#title", '"Old"', '"New"'))
    assert text_sides("task.toml#title", (None, None), title) == ('"Old"', '"New"')
    code = changed("checkpoints.py", "a", "b")
    assert text_sides("checkpoints.py", (None, None), code) == ("", "")
