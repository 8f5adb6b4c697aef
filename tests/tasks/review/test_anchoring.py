"""Anchors find their words again, or say that they are gone; they never point at other words."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tasks.review.anchoring import Place, anchor, locate

TEXT = "Potassium was 5.6, hemolyzed. The repeat potassium was 4.7. Continue losartan; recheck potassium."


def test_the_right_one_of_several_places() -> None:
    start = TEXT.index("potassium was 4.7")
    made = anchor("instruction.md", TEXT, start, start + len("potassium"))
    assert locate(made, TEXT) == Place(start, start + 9)
    edited = "A new first sentence about potassium. " + TEXT.replace("hemolyzed", "grossly hemolyzed")
    assert locate(made, edited) == Place(edited.index("potassium was 4.7"), edited.index("potassium was 4.7") + 9)


def test_words_that_are_gone_are_not_found_elsewhere() -> None:
    start = TEXT.index("4.7")
    assert locate(anchor("instruction.md", TEXT, start, start + 3), TEXT.replace("4.7", "4.9")) is None


@pytest.mark.parametrize(("start", "end"), [(3, 3), (5, 2), (-1, 4), (0, 10_000)])
def test_a_span_outside_the_text_is_refused(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="select"):
        anchor("instruction.md", TEXT, start, end)


@given(st.text(min_size=1, max_size=200), st.text(max_size=30), st.text(max_size=30), st.data())
def test_an_anchor_survives_edits_around_it(text: str, before: str, after: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    made = anchor("a.md", text, start, end)
    assume(text.count(made.quote) == 1 and (before + text + after).count(made.quote) == 1)
    assert locate(made, before + text + after) == Place(len(before) + start, len(before) + end)
