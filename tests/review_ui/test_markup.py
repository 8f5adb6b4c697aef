from __future__ import annotations

import re
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from review_ui.markup import Markup, highlighted, join, tag, text, visible

_INVISIBLE = {"Cc", "Cf", "Zl", "Zp", "Cs", "Co"}


class _Reader(HTMLParser):
    """Collects what a browser would see as text and as elements."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.said: list[str] = []
        self.elements: list[str] = []

    def handle_data(self, data: str) -> None:
        self.said.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)


def read(markup: str) -> _Reader:
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return reader


def test_every_character_without_a_shape_is_named() -> None:
    missed = [
        f"U+{code:04X}"
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in _INVISIBLE and chr(code) not in "\n\t" and visible(chr(code)) == chr(code)
    ]
    assert missed == []


def test_letters_of_every_script_stay_as_they_are() -> None:
    words = "µmol/L ≥ 5 °C – é ü ñ 日本 עברית عربي हिन्दी Ω ± ½ m²"
    assert visible(words) == words
    assert text(words) == words


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_text_is_never_an_element_other_than_our_own_chip(value: str) -> None:
    assert set(read(text(value)).elements) <= {"span"}


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("C", "Z", "M", "Lo"))))
def test_visible_text_reads_back_as_it_was(value: str) -> None:
    assert "".join(read(text(value)).said) == value


@given(st.text(), st.lists(st.tuples(st.integers(-3, 40), st.integers(-3, 40))))
def test_marks_never_change_what_is_read(value: str, spans: list[tuple[int, int]]) -> None:
    assert "".join(read(highlighted(value, spans)).said) == "".join(read(text(value)).said)


def test_only_markup_passes_unescaped() -> None:
    assert tag("p", "<b>", Markup("<i></i>")) == "<p>&lt;b&gt;<i></i></p>"
    assert join(["<", Markup("<br>")]) == "&lt;<br>"


def test_attributes_cannot_be_left() -> None:
    made = tag("a", "x", href="/task?id=a", title='"><script>alert(1)</script>')
    assert read(made).elements == ["a"]


@pytest.mark.parametrize(
    "href", ["https://evil.example", "javascript:alert(1)", "//evil.example", "data:text/html,x", ""]
)
def test_a_link_never_leaves_the_app(href: str) -> None:
    with pytest.raises(ValueError, match="inside the app"):
        tag("a", "x", href=href)


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("script", {}),
        ("img", {}),
        ("p", {"onclick": "x"}),
        ("p", {"src": "x"}),
        ("p", {"style": "background:url(x)"}),
        ("P x", {}),
    ],
)
def test_elements_and_attributes_that_load_or_run_are_refused(name: str, attributes: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="our"):
        tag(name, "x", **attributes)


def test_a_pile_of_combining_marks_is_counted_instead_of_drawn() -> None:
    assert "36 more marks" in visible("a" + "\u0301" * 40)
    assert re.search(r"e\u0301$", visible("e\u0301"))


def test_half_a_surrogate_pair_can_be_sent_to_a_browser() -> None:
    assert text("a\ud800b").encode("utf-8")
    assert visible("a\ud800b").encode("utf-8")


def test_a_label_keeps_what_the_browsers_cleaning_would_drop_it_for() -> None:
    made = tag("div", "x", role="img", aria_label="</style>-->]>", title="a < b")
    assert made == '<div role="img" aria-label="‹/style›--›]›" title="a ‹ b">x</div>'
