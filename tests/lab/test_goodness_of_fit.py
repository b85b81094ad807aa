"""The tests behind ``specchat verify``: known values, another library's, and cases small enough to enumerate."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from specchat.lab.goodness_of_fit import binomial_fit, chi_square_fit, chi_square_tail, simulated_fit

RNG = np.random.default_rng


def counts(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("df", "five_per_cent"), [(1, 3.841459), (2, 5.991465), (10, 18.307038), (25, 37.652484), (100, 124.342113)]
)
def test_the_tail_at_the_tables_values(df: int, five_per_cent: float) -> None:
    assert chi_square_tail(five_per_cent, df) == pytest.approx(0.05, rel=1e-6)


def test_the_tail_agrees_with_scipy_far_out_as_well() -> None:
    for df, statistic in product((1, 2, 3, 4, 7, 20, 63, 100, 401), (1e-6, 0.3, 2.0, 17.0, 60.0, 180.0, 900.0)):
        expected = stats.chi2.sf(statistic, df)
        assert chi_square_tail(statistic, df) == pytest.approx(expected, rel=1e-9, abs=1e-300), (df, statistic)


def test_the_tail_at_its_ends() -> None:
    assert chi_square_tail(0.0, 3) == 1.0
    assert chi_square_tail(math.inf, 3) == 0.0
    assert chi_square_tail(0.0, 0) == 1.0


def test_one_table_is_pearsons_test() -> None:
    observed, probs = counts(90, 130, 280), np.array([0.2, 0.25, 0.55])
    expected = stats.chisquare(observed, probs * 500)
    fit = chi_square_fit([(observed, probs)])
    assert (fit.statistic, fit.df) == (pytest.approx(expected.statistic), 2)
    assert fit.p_value == pytest.approx(expected.pvalue)
    twice = chi_square_fit([(observed, probs)] * 2)
    assert (twice.statistic, twice.df) == (pytest.approx(2 * fit.statistic), 4)


def test_rare_outcomes_are_put_together_by_their_probability() -> None:
    probs = np.array([0.01, 0.5, 0.015, 0.475])
    fit = chi_square_fit([(counts(9, 500, 16, 475), probs)])
    assert fit.df == 2
    assert fit.statistic == 0
    assert chi_square_fit([(counts(1, 2), np.array([0.5, 0.5]))]).df == 0
    assert chi_square_fit([(counts(0, 0), np.array([0.5, 0.5]))]).p_value == 1


def test_what_cannot_come_and_comes_is_refuted_outright() -> None:
    tables = [(counts(50, 50, 1), np.array([0.5, 0.5, 0.0]))]
    for fit in (chi_square_fit(tables), simulated_fit(tables, RNG(0))):
        assert (fit.statistic, fit.p_value) == (math.inf, 0.0)
    assert binomial_fit(1, [(50, 0.0)]).p_value == 0
    assert binomial_fit(49, [(50, 1.0)]).p_value == 0
    assert binomial_fit(50, [(50, 1.0), (20, 0.0)]).p_value == 1


def test_the_simulated_tail_is_the_enumerated_one() -> None:
    """Two tables, every outcome of both: the probability of a statistic at least as large."""
    laws = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.35, 0.25])
    observed = counts(2, 4, 6), counts(7, 3, 2)

    def outcomes(law: np.ndarray):
        for a, b in product(range(13), repeat=2):
            if a + b <= 12:
                x = np.array([a, b, 12 - a - b])
                yield ((x - 12 * law) ** 2 / (12 * law)).sum(), stats.multinomial.pmf(x, 12, law)

    def statistic(x: np.ndarray, law: np.ndarray) -> float:
        return ((x - 12 * law) ** 2 / (12 * law)).sum()

    total = sum(map(statistic, observed, laws))
    exact = sum(p * q for (s, p), (t, q) in product(outcomes(laws[0]), outcomes(laws[1])) if s + t >= total - 1e-9)
    fit = simulated_fit(zip(observed, laws, strict=True), RNG(3))
    assert (fit.statistic, fit.df) == (pytest.approx(total), 4)
    assert fit.p_value == pytest.approx(exact, abs=4 * math.sqrt(exact / 20_000))


def test_a_simulation_goes_on_until_the_tail_is_known() -> None:
    """90 of 100 where half are expected: nothing so far out is drawn in a million tables."""
    fit = simulated_fit([(counts(90, 10), np.array([0.5, 0.5]))], RNG(0))
    assert fit.p_value == pytest.approx(1e-6, rel=1e-3)
    nothing = simulated_fit([(counts(1, 0), np.array([0.9, 0.1]))], RNG(0))
    assert (nothing.statistic, nothing.df, nothing.p_value) == (0.0, 0, 1.0)


@pytest.mark.parametrize("successes", [0, 3, 11, 20, 30])
def test_one_group_has_the_binomial_tail(successes: int) -> None:
    law = stats.binom(30, 0.37)
    expected = min(1.0, 2 * min(law.cdf(successes), law.sf(successes - 1)))
    fit = binomial_fit(successes, [(30, 0.37)])
    assert fit.p_value == pytest.approx(expected, rel=1e-9)
    assert fit.statistic == pytest.approx((successes - 11.1) ** 2 / (30 * 0.37 * 0.63))


def test_several_groups_are_a_sum() -> None:
    groups = [(4, 0.2), (3, 0.9), (5, 0.5), (2, 0.0)]
    law = dict.fromkeys(range(15), 0.0)
    for outcome in product(*(range(trials + 1) for trials, _ in groups)):
        law[sum(outcome)] += math.prod(
            float(stats.binom.pmf(k, trials, chance)) for k, (trials, chance) in zip(outcome, groups, strict=True)
        )
    for successes in range(15):
        lower, upper = (
            sum(law[total] for total in law if total <= successes),
            sum(law[t] for t in law if t >= successes),
        )
        assert binomial_fit(successes, groups).p_value == pytest.approx(min(1.0, 2 * min(lower, upper)), abs=1e-12)
