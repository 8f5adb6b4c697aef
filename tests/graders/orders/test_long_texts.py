"""Reading a long text fast must not read it otherwise: each short cut against the plain way it stands for."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graders.orders import drugs, durations, negation, statements

NOW = datetime.fromisoformat("2025-03-20T09:00:00-07:00")
UNHURRIED = settings(deadline=None, max_examples=300)

WORDS = tuple(
    re.findall(
        r"\S+",
        """
        do not start use please plan: recommend recommended consider was on taking switch from changed to replace with
        lisinopril apixaban the use , , " " . ; ( - * 2. 5 asked whether although usually in general may be could avoid
        hold off reaction allergic to no longer needs should be on treated evaluated by instead of ok follow-up referral
        """,
    )
)
GOVERNING = {
    name: getattr(negation, name)
    for name in ("_TOLD", "_WEIGH", "_COUNSEL", "_USE", "_DENY", "_ASKED", "_CONCEDED", "_ADVISES")
}
texts = st.lists(st.sampled_from(WORDS), max_size=90).flatmap(
    lambda words: st.lists(st.sampled_from((" ", " ", "", "  ")), min_size=len(words), max_size=len(words)).map(
        lambda gaps: "".join(word + gap for word, gap in zip(words, gaps, strict=True))
    )
)


@pytest.mark.parametrize("name", GOVERNING)
@UNHURRIED
@given(text=texts, cut=st.integers(min_value=0, max_value=700))
def test_the_last_governing_phrase_is_the_one_that_reading_all_before_finds(name: str, text: str, cut: int) -> None:
    pattern: re.Pattern[str] = GOVERNING[name]
    plain = [match.span() for match in pattern.finditer(text[:cut])]
    assert negation.last_before(pattern, text, min(cut, len(text))) == (plain[-1] if plain else None)


@UNHURRIED
@given(
    st.lists(
        st.sampled_from(
            ("ace inhibitor", "ACE-inhibitors", "statins", "sglt2 inhibitor", "non-", "#",
             "5-alpha reductase inhibitors", "nsaid", "nsaids", "beta-blockers", "loop diuretic", "s", "2",
             " ", ", ", "/", "thiazide")
        ),
        max_size=12,
    ).map(lambda parts: "".join(parts).lower())
)  # fmt: skip
def test_classes_are_found_as_by_trying_every_one(text: str) -> None:
    plain = [(m.start(), m.end(), name) for pattern, name in drugs._class_patterns() for m in pattern.finditer(text)]
    assert list(drugs.class_mentions(text)) == plain


def test_the_spellings_of_every_class_are_found() -> None:
    for pattern, name in drugs._class_patterns():
        for spelling in (name.lower(), f"{name.lower()}s"):
            if pattern.search(spelling):
                assert name in {found for _, _, found in drugs.class_mentions(f"avoid {spelling}.")}


@UNHURRIED
@given(
    st.lists(
        st.sampled_from(
            ("in a week", "within a week", "every other week", "next month", "weekly", "today", "same-day", "now",
             "every", "month", "in", "a", "year", "this morning", "quarterly", "tomorrow", "yearly")
        ),
        max_size=12,
    ).map(" ".join)
)  # fmt: skip
def test_days_in_words_are_found_in_one_pass_as_one_by_one(text: str) -> None:
    plain = {
        (match.span(), number)
        for number, (words, _, _) in enumerate(durations._DAYS_IN_WORDS, 1)
        for match in re.finditer(rf"\b(?:{words})\b", text)
    }
    assert {(match.span(), match.lastindex) for match in durations._IN_WORDS.finditer(text)} == plain


def test_a_sentence_that_stands_three_times_is_said_three_times() -> None:
    once = statements.read_text("n", "Start apixaban 5 mg BID.\n", NOW)
    thrice = statements.read_text("n", "Start apixaban 5 mg BID.\n" * 3, NOW)
    assert [one.drug for one in thrice if not one.whole] == [one.drug for one in once if not one.whole] * 3


def test_the_same_words_under_another_heading_are_read_anew() -> None:
    read = statements.read_text("n", "Plan:\n- apixaban 5 mg BID\nHome medications:\n- apixaban 5 mg BID\n", NOW)
    assert [one.mood for one in read if one.drug] == ["recommended", "mentioned"]
