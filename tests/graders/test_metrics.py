"""Rates: properties of every formula, denominators said openly, and the paper's figures rebuilt."""

from __future__ import annotations

from itertools import combinations
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.metrics import (
    Counts,
    all_conventions,
    estimate,
    events_per_task,
    pass_at_1,
    plugin_pass_at,
    plugin_pass_hat,
    ranks,
    share,
    spread_over_runs,
    unbiased_pass_at,
    unbiased_pass_hat,
)


@st.composite
def a_task(draw: st.DrawFn, most: int = 12) -> Counts:
    n = draw(st.integers(0, most))
    return Counts(n, draw(st.integers(0, n)))


tasks = st.lists(a_task(), max_size=30)
ks = st.integers(1, 6)


@given(a_task(), ks)
def test_bounds_and_order(one: Counts, k: int) -> None:
    values = [f(one.n, one.c, k) for f in (unbiased_pass_at, plugin_pass_at, unbiased_pass_hat, plugin_pass_hat)]
    if one.n < k:
        assert values == [None] * 4
        return
    at, at_plug, hat, hat_plug = (value or 0.0 for value in values)
    rate = one.c / one.n
    assert 0 <= hat <= hat_plug + 1e-12 <= rate + 2e-12 <= at_plug + 3e-12 <= at + 4e-12 <= 1 + 5e-12


@given(a_task())
def test_k_of_one_is_pass_at_1(one: Counts) -> None:
    for f in (unbiased_pass_at, plugin_pass_at, unbiased_pass_hat, plugin_pass_hat):
        value = f(one.n, one.c, 1)
        assert value is None if one.n == 0 else value is not None and isclose(value, one.c / one.n)


@given(a_task(8), st.integers(1, 8))
def test_the_unbiased_forms_are_the_share_of_draws_of_k_runs(one: Counts, k: int) -> None:
    # Second derivation: every draw of k of the n runs, counted.
    runs = [True] * one.c + [False] * (one.n - one.c)
    draws = list(combinations(runs, k))
    if not draws:
        assert unbiased_pass_at(one.n, one.c, k) is None
        return
    assert unbiased_pass_at(one.n, one.c, k) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert unbiased_pass_hat(one.n, one.c, k) == pytest.approx(sum(map(all, draws)) / len(draws))


@given(a_task().filter(lambda one: one.n > 0))
def test_at_n_equal_k_pass_hat_unbiased_is_all_passed(one: Counts) -> None:
    assert unbiased_pass_hat(one.n, one.c, one.n) == float(one.c == one.n)
    assert unbiased_pass_at(one.n, one.c, one.n) == float(one.c > 0)


@given(tasks, ks)
def test_every_figure_lies_in_its_interval_which_has_a_width(counts: list[Counts], k: int) -> None:
    for one in all_conventions(counts, k):
        eligible = sum(task.n >= one.k for task in counts)
        assert one.tasks == eligible
        assert one.left_out == sum(0 < task.n < one.k for task in counts)
        if not eligible:
            assert (one.value, one.interval) == (None, None)
            continue
        assert one.value is not None
        assert one.interval is not None
        assert 0 <= one.interval.low <= one.value + 1e-9
        assert one.value - 1e-9 <= one.interval.high <= 1
        assert one.interval.high - one.interval.low > 0.001


def test_fewer_runs_than_k_give_nothing_and_are_counted() -> None:
    one = estimate("pass@3", "1 - C(n-c,k)/C(n,k)", 3, [Counts(3, 1), Counts(2, 2), Counts(0, 0), Counts(5, 0)])
    assert (one.value, one.tasks, one.left_out, one.unequal) == (0.5, 2, 1, True)
    none = estimate("pass@3", "1 - C(n-c,k)/C(n,k)", 3, [Counts(2, 2)])
    assert (none.value, none.interval, none.left_out) == (None, None, 1)


def test_tasks_weigh_alike_whatever_their_runs() -> None:
    assert pass_at_1([Counts(1, 1), Counts(9, 0)]).value == 0.5


def test_what_cannot_be_counted_is_refused() -> None:
    with pytest.raises(ValueError, match="3 of 2"):
        Counts(2, 3)
    with pytest.raises(ValueError, match="at least 1"):
        estimate("pass@0", "c/n", 0, [Counts(1, 1)])


def test_spread_over_runs_by_hand() -> None:
    # Run 1 passes 1 of 2, run 2 passes 2 of 2, run 3 has one task only, which fails: rates .5, 1, 0; sd = .5.
    passed = {("a", 1): True, ("b", 1): False, ("a", 2): True, ("b", 2): True, ("a", 3): False}
    spread = spread_over_runs(passed)
    assert (spread.rates, spread.tasks) == ((0.5, 1.0, 0.0), (2, 2, 1))
    assert spread.sd == pytest.approx(0.5)
    assert spread_over_runs({("a", 1): True}).sd is None


def test_shares_and_events_by_hand() -> None:
    value, interval = share("documentation", [1, 0, 2], [2, 2, 4])
    assert value == 3 / 8
    assert interval is not None
    assert interval.low < 3 / 8 < interval.high
    assert share("documentation", [0], [0]) == (None, None)
    value, interval = events_per_task([[2, 0], [0, 0], []], [2, 1, 3])
    assert value == 0.5
    assert interval is not None
    assert 0 <= interval.low < 0.5 < interval.high <= 2
    assert events_per_task([[]], [3]) == (None, None)


@given(tasks)
def test_no_ranking_under_20_tasks(counts: list[Counts]) -> None:
    values = {"a": 0.5, "b": 0.7, "c": None, "d": 0.7}
    assert set(ranks(values, len(counts) % 20).values()) == {None}
    assert ranks(values, 20) == {"b": 1, "d": 1, "a": 3, "c": None}
