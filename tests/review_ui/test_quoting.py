"""From selected words to their place: in the text in which they were selected, and in no other."""

from __future__ import annotations

import base64
from pathlib import Path
from types import ModuleType

import pytest

from review_ui.chartview import ChartView
from review_ui.reviewing import quoting
from review_ui.reviewing.quoting import Selected
from tasks.errors import UsageError
from tasks.fhir.resources import dump_json
from tasks.package import FolderSource
from tasks.review.events import ResourceAnchor, TextAnchor


def test_selected_words_find_their_source_across_marks_and_lines() -> None:
    text = "# Consult\n\nThe **potassium**\nis up. Please advise.\n\n- write `/x` now"
    assert quoting.find(text, "The potassium is up.") == (11, 35)
    assert quoting.find(text, "advise. write /x now") is not None
    assert quoting.find(text, "potassium was up") is None
    made = quoting.anchored(Selected("potassium is up", quoting.PATH), text, None)
    assert isinstance(made, TextAnchor)
    assert text.count(made.quote) == 1


NOTE = {"resourceType": "DocumentReference", "status": "current", "date": "2026-01-0{}T08:00:00Z",
        "subject": {"reference": "Patient/p-1"}}  # fmt: skip


@pytest.fixture
def two_notes(packages: ModuleType, tmp_path: Path) -> ChartView:
    """A chart with two notes that say the same words."""
    folder = packages.write(tmp_path)
    lines = []
    for number, text in ((1, "Losartan was started. Losartan helps."), (2, "She takes Losartan.")):
        data = base64.b64encode(text.encode()).decode()
        lines.append({**NOTE, "id": f"n-{number}", "date": NOTE["date"].format(number),  # type: ignore[attr-defined]
                      "content": [{"attachment": {"contentType": "text/plain", "data": data}}]})  # fmt: skip
    (folder / "chart" / "DocumentReference.ndjson").write_text("".join(f"{dump_json(one)}\n" for one in lines), "utf-8")
    task = FolderSource(tmp_path).load("nephrology-small")
    assert task.meta.context is not None
    return ChartView(task.chart, task.meta.context.patient, task.meta.context.now)


def test_words_are_anchored_in_the_text_that_they_were_selected_in(two_notes: ChartView) -> None:
    instruction = "Losartan is in her list. Is Losartan right?"
    for number in (1, 2):
        made = quoting.anchored(Selected("Losartan", f"DocumentReference/n-{number}"), instruction, two_notes)
        assert made == ResourceAnchor(ref=f"DocumentReference/n-{number}", quote="Losartan")
    first = quoting.anchored(Selected("Losartan", quoting.PATH, ""), instruction, two_notes)
    second = quoting.anchored(
        Selected("Losartan", quoting.PATH, "Losartan is in her list. Is "), instruction, two_notes
    )
    assert [one.after[:7] for one in (first, second) if isinstance(one, TextAnchor)] == [" is in ", " right?"]
    # An entry of the chart that is no note is what was selected in.
    made = quoting.anchored(Selected("5.9", "Observation/k-1"), instruction, two_notes)
    assert made == ResourceAnchor(ref="Observation/k-1", quote="5.9")


@pytest.mark.parametrize("source", ["", "Observation/none", "checkpoints.toml"])
def test_words_selected_elsewhere_are_anchored_nowhere_even_if_a_text_has_them(
    two_notes: ChartView, source: str
) -> None:
    with pytest.raises(UsageError, match="About this"):
        quoting.anchored(Selected("She takes Losartan.", source), "No drug.", two_notes)


def test_words_that_do_not_stand_so_in_their_text_are_refused(two_notes: ChartView) -> None:
    with pytest.raises(UsageError, match="within one paragraph"):
        quoting.anchored(Selected("She takes Losartan.", quoting.PATH), "No drug.", two_notes)


@pytest.mark.parametrize("message", ["", "words", "[]", "1", "null", '{"words": null}'])
def test_a_message_that_is_no_selection_selects_nothing(message: str) -> None:
    assert Selected.parse(message) == Selected("")


def test_a_selection_is_read_as_the_page_sends_it() -> None:
    assert Selected.parse('{"words":"a b","source":"instruction.md","before":"c"}') == Selected(
        "a b", "instruction.md", "c"
    )
    assert Selected.parse('{"words":"half \\ud83d"}').words == "half \ufffd"
