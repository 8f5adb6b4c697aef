"""Intervals: the distributions against known values, the level by simulation, comparisons by hand."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.intervals import (
    PLANNING_SD,
    Interval,
    beta_below,
    beta_quantile,
    compare,
    detectable_difference,
    difference_interval,
    rate_interval,
    sign_flip_p,
    t_quantile,
)


@given(st.integers(1, 40), st.integers(1, 40), st.floats(0.001, 0.999))
def test_the_beta_distribution_is_a_sum_of_binomials(a: int, b: int, x: float) -> None:
    # Second derivation: for whole a and b, I_x(a, b) = P(Binomial(a + b - 1, x) >= a).
    n = a + b - 1
    tail = math.fsum(math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a, n + 1))
    assert beta_below(x, a, b) == pytest.approx(tail, abs=1e-10)


@given(st.floats(0.01, 0.99), st.floats(0.3, 200), st.floats(0.3, 200))
def test_the_quantile_inverts_it(p: float, a: float, b: float) -> None:
    assert beta_below(beta_quantile(p, a, b), a, b) == pytest.approx(p, abs=1e-6)


@pytest.mark.parametrize(
    ("df", "value"), [(1, 12.7062), (2, 4.3027), (11, 2.2010), (23, 2.0687), (47, 2.0117), (99, 1.9842)]
)
def test_t_quantiles_of_the_printed_tables(df: int, value: float) -> None:
    assert t_quantile(0.975, df) == pytest.approx(value, abs=1e-4)


def test_one_run_a_task_is_an_exact_interval_of_a_smaller_sample() -> None:
    # 3 of 12: by the variance between tasks, p(1-p)/12 x 12/11, they are worth 11; (1.95996/2.20099)^2 x 11 = 8.7228.
    found = rate_interval([1.0] * 3 + [0.0] * 9, [1.0] * 12, worth=12)
    size = 11 * (1.959964 / 2.200985) ** 2
    assert found is not None
    assert beta_below(found.low, 0.25 * size, 0.75 * size + 1) == pytest.approx(0.025, abs=1e-6)
    assert beta_below(found.high, 0.25 * size + 1, 0.75 * size) == pytest.approx(0.975, abs=1e-6)


def test_all_alike_is_no_certainty() -> None:
    none = rate_interval([0.0] * 100, [1.0] * 100, worth=300)
    every = rate_interval([1.0] * 12, [1.0] * 12, worth=36)
    assert none is not None
    assert every is not None
    # 100 tasks without a pass, each worth one observation: 1 - 0.025^(1/n) with n = 100 x (1.95996/1.98422)^2.
    assert none == Interval(0.0, pytest.approx(1 - 0.025 ** (1 / (100 * (1.959964 / 1.984217) ** 2)), abs=1e-6))
    assert (every.high, every.low) == (1.0, pytest.approx(0.69, abs=0.02))
    assert rate_interval([], [], worth=0) is None
    one = rate_interval([1.0], [1.0], worth=3)
    assert one is not None
    assert one.low < 0.03


@given(st.lists(st.tuples(st.floats(0, 1), st.just(1.0)), min_size=1, max_size=40), st.integers(1, 5))
def test_an_interval_holds_its_rate_and_has_a_width(tasks: list[tuple[float, float]], runs: int) -> None:
    parts, wholes = zip(*tasks, strict=True)
    found = rate_interval(parts, wholes, worth=runs * len(tasks))
    assert found is not None
    assert 0 <= found.low <= sum(parts) / len(parts) + 1e-9
    assert sum(parts) / len(parts) - 1e-9 <= found.high <= 1
    assert found.high - found.low > 1e-3


# ---- comparison -----------------------------------------------------------------------------------------------------


def test_the_same_agent_twice_is_no_difference_and_no_certainty() -> None:
    found = compare([1.0, 0.0, 2 / 3] * 8, [1.0, 0.0, 2 / 3] * 8)
    assert found is not None
    assert (found.difference, found.p, found.better, found.worse) == (0.0, 1.0, 0, 0)
    assert found.interval.low < 0 < found.interval.high
    assert found.detectable == pytest.approx(detectable_difference(24))


@given(st.lists(st.sampled_from([-1.0, -1 / 3, 0.0, 1 / 3, 2 / 3, 1.0]), min_size=1, max_size=9))
def test_the_sign_flip_test_is_every_sign_counted(gaps: list[float]) -> None:
    moved = [gap for gap in gaps if gap]
    signs = list(product((1, -1), repeat=len(moved)))
    extreme = sum(abs(sum(s * g for s, g in zip(sign, moved, strict=True))) >= abs(sum(moved)) - 1e-9 for sign in signs)
    assert sign_flip_p(gaps) == pytest.approx(extreme / len(signs))


def test_drawn_signs_agree_with_the_exact_ones_and_with_the_seed() -> None:
    gaps = [1.0] * 14 + [-1.0] * 6
    # P(|Binomial(20, 1/2) - 10| >= 4), counted.
    exact = 2 * sum(math.comb(20, j) for j in range(14, 21)) / 2**20
    assert sign_flip_p(gaps) == pytest.approx(exact, rel=1e-9)
    uneven = [gap * (1 + n / 1e6) for n, gap in enumerate(gaps)]  # on no grid: drawn
    assert sign_flip_p(uneven, seed=1) == pytest.approx(exact, abs=0.02)
    assert sign_flip_p(uneven, seed=1) == sign_flip_p(uneven, seed=1)
    assert sign_flip_p(uneven, seed=1) != sign_flip_p(uneven, seed=2)


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60))
def test_a_difference_lies_in_its_interval_which_has_a_width(gaps: list[float]) -> None:
    found = difference_interval(gaps)
    assert -1 <= found.low <= sum(gaps) / len(gaps) + 1e-9
    assert sum(gaps) / len(gaps) - 1e-9 <= found.high <= 1
    assert found.high - found.low > 0.02


@pytest.mark.parametrize(("tasks", "points"), [(24, 21), (48, 15), (100, 10)])
def test_the_detectable_difference_of_the_field_page(tasks: int, points: int) -> None:
    assert 100 * detectable_difference(tasks) == pytest.approx(points, abs=0.6)


def test_no_difference_is_detectable_without_tasks() -> None:
    assert detectable_difference(0) == 1.0
    assert detectable_difference(1) == 1.0
    assert detectable_difference(10**6) == pytest.approx(2.8016 * PLANNING_SD / 1000, rel=1e-3)
    assert compare([], []) is None
