from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from review_ui import prose


def stripped(markup: str) -> str:
    return re.sub(r"<[^>]*>", "", markup)


def test_headings_lists_bold_and_code_are_drawn() -> None:
    made = prose.formatted("# Ask\n\nThe **dose** of `x`.\n\n- one\n- two\n1. three")
    assert "<h3" in made
    assert "<strong>dose</strong>" in made
    assert "<code>x</code>" in made
    assert made.count("<li") == 3


@pytest.mark.parametrize(
    "text", ["[a](https://evil.example)", "![a](https://evil.example/x.png)", "<img src=x>", "# <b>x"]
)
def test_links_images_and_html_stay_text(text: str) -> None:
    made = prose.formatted(text)
    assert "<img" not in made
    assert "<a" not in made
    assert "<b>" not in made


def test_a_mark_is_drawn_where_the_quote_stands_even_inside_bold_and_across_lines() -> None:
    text = "Please **stop the drug**\nnow, thanks"
    made = prose.formatted(text, prose.find(text, "the drug** now"))
    assert made.count("<mark") == 2


def test_a_quote_is_found_over_line_breaks_and_case() -> None:
    assert prose.find("He stopped\n  Warfarin.", "stopped warfarin") == [(3, 21)]
    assert prose.find("abc", "  ") == []


@given(st.text(alphabet="ab*`#- \n1.)", max_size=60))
def test_no_letter_is_lost(text: str) -> None:
    assert re.sub(r"[^ab]", "", stripped(prose.formatted(text))) == re.sub(r"[^ab]", "", text)
