"""Agreement measures against worked examples, and their bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.review.agreement import agreement, alpha, cohen, raw

#: Cohen 1960's kind of table, worked by hand: 50 items, 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no.
#: observed 0.7; expected 25/50*30/50 + 25/50*20/50 = 0.5; kappa 0.4.
TABLE = (
    [{"ann": "yes", "bob": "yes"}] * 20
    + [{"ann": "yes", "bob": "no"}] * 5
    + [{"ann": "no", "bob": "yes"}] * 10
    + [{"ann": "no", "bob": "no"}] * 15
)
#: By hand: 4 units, values a a / a b / b b / b (single, left out). n = 6, a 3, b 3.
#: disagreement observed: unit 2 gives 2/(2-1) = 2; expected (36 - 18)/5 = 3.6; alpha = 1 - 2/3.6 = 0.4444.
UNITS = [{"x": "a", "y": "a"}, {"x": "a", "y": "b"}, {"x": "b", "y": "b"}, {"x": "b"}]


def test_kappa_and_raw_of_a_worked_table() -> None:
    assert cohen(TABLE) == pytest.approx(0.4)
    assert raw(TABLE) == pytest.approx(0.7)


def test_alpha_of_a_worked_example_leaves_single_answers_out() -> None:
    assert alpha(UNITS) == pytest.approx(1 - 2 / 3.6)


def test_alpha_takes_three_raters_and_gaps() -> None:
    items = [{"x": "a", "y": "a", "z": "a"}, {"x": "b", "z": "b"}, {"y": "a", "z": "b"}]
    # By hand: n = 7, a 4, b 3; observed 0 + 0 + 2 = 2; expected (49 - 25)/6 = 4; alpha 0.5.
    assert alpha(items) == pytest.approx(0.5)
    with pytest.raises(ValueError, match="two raters"):
        cohen(items)


def test_what_is_not_defined_is_none_not_one() -> None:
    same = [{"ann": "ok", "bob": "ok"}] * 5
    assert cohen(same) is None
    assert alpha(same) is None
    assert raw([]) is None
    assert agreement("kappa", same).value is None
    assert agreement("raw", same).value == 1.0


def test_an_interval_holds_the_value_and_few_items_are_marked() -> None:
    told = agreement("kappa", TABLE)
    assert told.low is not None
    assert told.high is not None
    assert told.low < 0.4 < told.high
    assert (told.n, told.few) == (50, False)
    assert agreement("kappa", TABLE[:10] + TABLE[-10:]).few
    assert agreement("kappa", TABLE) == told


answers = st.sampled_from(["acceptable", "needs change", "unsafe"])


@given(st.lists(st.fixed_dictionaries({"ann": answers, "bob": answers}), min_size=2, max_size=40))
def test_measures_stay_in_their_bounds_and_forget_order(items: list[dict[str, str]]) -> None:
    for function, low in ((raw, 0.0), (cohen, -1.0), (alpha, -1.0)):
        value = function(items)
        assert value is None or low - 1e-9 <= value <= 1 + 1e-9
        assert function(items[::-1]) == pytest.approx(value)
    swapped = [{"ann": item["bob"], "bob": item["ann"]} for item in items]
    assert cohen(swapped) == pytest.approx(cohen(items))
