"""Anchors: what a checkpoint rests on can be looked up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.anchors import Anchor, holds, texts
from tasks.errors import DeclarationError
from tasks.package import Task


@pytest.mark.parametrize(
    ("text", "ref", "quote"),
    [
        ("Observation/k-0312", "Observation/k-0312", None),
        ('DocumentReference/n-7#"stopped warfarin"', "DocumentReference/n-7", "stopped warfarin"),
        ('instruction#"anticoagulation"', "instruction", "anticoagulation"),
        ('DocumentReference/n-7#"says "no" to it"', "DocumentReference/n-7", 'says "no" to it'),
    ],
)
def test_the_grammar_is_read_and_written_back(text: str, ref: str, quote: str | None) -> None:
    anchor = Anchor.parse(text)
    assert (anchor.ref, anchor.quote) == (ref, quote)
    assert str(anchor) == text


@pytest.mark.parametrize(
    "text",
    ["", "instruction", "the note", "Observation/", "Observation/a b", "observation/a", "Observation/a#x",
     'Observation/a#""', 'Observation/a#" "', "Observation/a\n", "Observation/a/_history/1", 'instruction#"',
     'Instruction#"x"'],
)  # fmt: skip
def test_what_is_not_of_the_grammar_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        Anchor.parse(text)
    assert "the note" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        anchor = Anchor.parse(text)
    except DeclarationError:
        return
    assert Anchor.parse(str(anchor)) == anchor


@pytest.mark.parametrize(
    ("quote", "text", "found"),
    [
        ("stopped warfarin", "He  stopped\nWarfarin in July", True),
        ("5 mg", "takes 15 mg", False),
        ("5 mg", "takes 2.5 mg", False),
        ("1.2", "creatinine 1.25", False),
        ("1.2", "creatinine 1.2.", True),
        ("it's off", "it\u2019s off", True),
        ("2-4 wk", "in 2\u20134 wk", True),
        ("art", "warfarin started", False),
        ("", "anything", False),
    ],
)
def test_quoted_words_are_found_as_whole_words(quote: str, text: str, found: bool) -> None:
    assert holds(quote, text) is found


def test_a_quotation_is_found_in_an_attached_note_and_in_a_number(tiny_task: Task) -> None:
    assert Anchor.parse('DocumentReference/n-1#"cannot come for INR checks"').holds(tiny_task) is None
    assert Anchor.parse('Observation/o-creatinine#"1.1"').holds(tiny_task) is None
    assert Anchor.parse('instruction#"on no anticoagulant now"').holds(tiny_task) is None
    assert Anchor.parse("Observation/o-weight").holds(tiny_task) is None


def test_what_rests_on_nothing_says_why(tiny_task: Task) -> None:
    for text, said in (
        ('DocumentReference/n-1#"had a bleed"', "does not say"),
        ("Observation/o-height", "not in the chart"),
        ('instruction#"give warfarin"', "instruction.md does not say"),
    ):
        assert said in (Anchor.parse(text).holds(tiny_task) or "")


def test_an_attachment_that_is_no_text_is_not_read_as_one() -> None:
    body = {"attachment": {"contentType": "application/pdf", "data": "c3RvcHBlZA=="}}
    assert not any(holds("stopped", text) for text in texts(body))
    broken = {"attachment": {"contentType": "text/plain", "data": "\u00e9"}}
    assert list(texts(broken))
