"""Ratios of paired measurements."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.lab.paired import geometric_mean_of_medians, paired_ratio

GROUPS = st.lists(st.lists(st.floats(0.01, 100), max_size=6), max_size=5)


def test_nothing_was_measured() -> None:
    assert paired_ratio([]) is None
    assert paired_ratio([[], []]) is None
    assert geometric_mean_of_medians([[]]) is None


def test_the_median_of_each_prompt_and_the_geometric_mean_over_them() -> None:
    ratio = paired_ratio([[1.0, 2.0, 50.0], [8.0]])
    assert ratio is not None
    assert ratio.value == pytest.approx(math.sqrt(2 * 8))
    assert ratio.pairs == 4
    assert geometric_mean_of_medians([[1.0, 4.0], []]) == pytest.approx(2.0)  # between two: their geometric mean


def test_without_repetitions_there_is_no_interval() -> None:
    ratio = paired_ratio([[1.5], [0.5]])
    assert ratio is not None
    assert (ratio.low, ratio.high) == (None, None)


def test_without_repetitions_of_every_prompt_there_is_no_interval() -> None:
    """Stopped in the second repetition: the figure of the second prompt would count as if it were certain."""
    ratio = paired_ratio([[1.5, 1.6], [0.5], []])
    assert ratio is not None
    assert (ratio.low, ratio.high, ratio.pairs) == (None, None, 3)


def test_two_values_are_drawn_from_as_far_apart_as_their_mean_is_uncertain() -> None:
    """Half of the resamples hold one value twice. The variance of the mean is a quarter of the squared difference."""
    ratio = paired_ratio([[math.exp(-1), math.exp(1)]])
    assert ratio is not None
    assert (ratio.low, ratio.high) == (pytest.approx(math.exp(-math.sqrt(2))), pytest.approx(math.exp(math.sqrt(2))))


def test_one_prompt_three_times_spans_all_that_was_seen() -> None:
    """Each of three values is the median of 7 in 27 resamples, so the tails of 2.5% lie on the extremes."""
    ratio = paired_ratio([[0.9, 1.0, 1.2]])
    assert ratio is not None
    assert (ratio.low, ratio.high) == (pytest.approx(0.9), pytest.approx(1.2))


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    """Ratios with noise around 1.3; of 200 intervals from 15 repetitions of 4 prompts well over 80% must hold 1.3.

    The bootstrap's own coverage with so few repetitions is 90–95%; below 80% in 200 has a probability under 1e-6.
    """
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        ratio = paired_ratio(np.exp(rng.normal(math.log(1.3), 0.1, size=(4, 15))).tolist())
        assert ratio is not None
        assert ratio.low is not None
        assert ratio.high is not None
        hits += ratio.low <= 1.3 <= ratio.high
    assert hits > 160


@pytest.mark.parametrize("repetitions", [2, 3])
def test_few_repetitions_of_many_prompts_cover_the_truth_too(repetitions: int) -> None:
    """As above with 12 prompts. Of a mean of two that is resampled as it is, 80% of the intervals would."""
    rng = np.random.default_rng(4)
    hits = 0
    for _ in range(200):
        ratio = paired_ratio(np.exp(rng.normal(math.log(1.3), 0.1, size=(12, repetitions))).tolist())
        assert ratio is not None
        assert ratio.low is not None
        assert ratio.high is not None
        hits += ratio.low <= 1.3 <= ratio.high
    assert hits > 176


@given(GROUPS)
def test_the_value_lies_in_its_interval_and_within_what_was_measured(groups: list[list[float]]) -> None:
    ratio = paired_ratio(groups)
    values = [value for group in groups for value in group]
    assert (ratio is None) == (not values)
    if ratio is not None:
        assert min(values) * (1 - 1e-9) <= ratio.value <= max(values) * (1 + 1e-9)
        assert ratio.pairs == len(values)
        if ratio.low is not None and ratio.high is not None:
            assert ratio.low <= ratio.value <= ratio.high
        assert paired_ratio(groups) == ratio  # the same data, the same interval


@given(GROUPS)
def test_turned_round_it_is_the_reciprocal(groups: list[list[float]]) -> None:
    one, other = paired_ratio(groups), paired_ratio([[1 / value for value in group] for group in groups])
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert one.value * other.value == pytest.approx(1)
