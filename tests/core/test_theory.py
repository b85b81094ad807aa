"""Predictions against closed forms, against enumerated rounds, and against the figures measured on one machine."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.core.theory import (
    RoundCosts,
    best_num_draft_tokens,
    bound_without_bonus,
    break_even_acceptance,
    cost_of_rounds,
    expected_tokens,
    predicted_speedup,
    share_of_ceiling,
    survival,
)
from specchat.core.verification import TokenRule
from tests.core.enumeration import World, expected_accepted, random_law

GPU = RoundCosts(passes=dict.fromkeys(range(1, 18), 1.0), draft_step=0.2)
"""A pass costs the same whatever its size, as where memory is the limit."""
LAPTOP = RoundCosts(passes={1: 1.0, 2: 1.64, 3: 2.2, 4: 2.7, 5: 3.3, 12: 7.7, 16: 7.2}, draft_step=0.58)
"""Two processor cores: see the table of passes in the design."""

rates = st.floats(0, 1)
lengths = st.integers(0, 16)


@given(acceptance=st.floats(0, 0.999), gamma=lengths)
def test_expected_tokens_of_a_constant_acceptance(acceptance: float, gamma: int) -> None:
    closed = (1 - acceptance ** (gamma + 1)) / (1 - acceptance)
    assert expected_tokens(acceptance, gamma) == pytest.approx(closed, rel=1e-9)


@given(gamma=lengths)
def test_expected_tokens_at_the_ends(gamma: int) -> None:
    assert expected_tokens(1.0, gamma) == gamma + 1
    assert expected_tokens(0.0, gamma) == 1


def test_expected_tokens_by_position() -> None:
    assert survival([0.5, 0.8], 2) == pytest.approx([0.5, 0.4])
    assert expected_tokens([0.5, 0.8], 2) == pytest.approx(1.9)
    assert expected_tokens([0.5, 0.8], 1) == 1.5
    assert expected_tokens([0.5, 0.8], 3) == pytest.approx(1.9 + 0.32), "later positions are like the last known"
    assert expected_tokens([], 3) == 1
    assert expected_tokens((), 0) == 1


def test_expected_tokens_are_what_the_token_rule_commits() -> None:
    """α of Leviathan et al. is Σ min(p, q); with laws that do not look back it is the same at every position."""
    p, q = random_law(1, (0, 1, 2, 3))(()), random_law(2, (0, 1, 2, 3))(())
    acceptance = sum(min(p.probability(token), q.probability(token)) for token in range(4))
    for gamma in (1, 2, 3):
        world = World(lambda _: p, lambda _: q, gamma)
        assert expected_accepted(world, TokenRule()) + 1 == pytest.approx(expected_tokens(acceptance, gamma), abs=1e-12)


def test_the_bound_without_a_bonus_token() -> None:
    assert bound_without_bonus(0.0) == 0
    assert bound_without_bonus(0.75) == pytest.approx(3)
    assert bound_without_bonus(1.0) == math.inf
    assert expected_tokens(0.75, 200) - 1 == pytest.approx(bound_without_bonus(0.75))


def test_the_cost_of_a_round() -> None:
    costs = RoundCosts(passes={1: 1.0, 5: 3.0}, draft_step=0.25, catch_up=0.5)
    assert costs.round(4, all_accepted=0.0) == 4 * 0.25 + 3.0
    assert costs.round(4, all_accepted=0.4) == pytest.approx(4 * 0.25 + 3.0 + 0.4 * 0.5)
    assert costs.round(0, all_accepted=0.0) == 1
    assert costs.largest_draft == 4


def test_between_measured_passes_and_beyond_them() -> None:
    assert LAPTOP.verify(5) == 3.3
    assert LAPTOP.verify(14) == pytest.approx((7.7 + 7.2) / 2)
    assert LAPTOP.verify(6) == pytest.approx(3.3 + (7.7 - 3.3) / 7)
    with pytest.raises(ValueError, match="passes of 17 tokens were not measured, only up to 16"):
        LAPTOP.verify(17)
    with pytest.raises(ValueError, match="passes of 0 tokens"):
        LAPTOP.verify(0)


def test_costs_from_measured_times() -> None:
    costs = RoundCosts.from_seconds({1: 0.04, 2: 0.06}, draft_step_seconds=0.01, draft_catch_up_seconds=0.004)
    assert costs.passes == pytest.approx({1: 1.0, 2: 1.5})
    assert (costs.draft_step, costs.catch_up) == pytest.approx((0.25, 0.1))
    assert RoundCosts.from_seconds({1: 0.04}, None, None) == RoundCosts({1: 1.0})
    assert RoundCosts.from_seconds({1: 0.04}, 0.01, -0.001).catch_up == 0, "noise can make two tokens look cheaper"


@pytest.mark.parametrize("seconds", [{}, {2: 0.1}, {1: 0.0}, {1: math.nan}])
def test_costs_need_the_time_of_a_plain_step(seconds: dict[int, float]) -> None:
    with pytest.raises(ValueError, match="plain target step"):
        RoundCosts.from_seconds(seconds)


@pytest.mark.parametrize(
    "wrong",
    [
        {"passes": {}},
        {"passes": {2: 1.0}},
        {"passes": {0: 1.0, 1: 1.0}},
        {"passes": {1: math.inf}},
        {"passes": {1: 1.0}, "draft_step": -0.1},
        {"passes": {1: 1.0}, "catch_up": math.nan},
    ],
)
def test_costs_that_cannot_be(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="cost"):
        RoundCosts(**wrong)  # type: ignore[arg-type]


def test_the_papers_cost_model() -> None:
    """With v = 1 and no catch-up, Theorem 3.8 of Leviathan et al.: here 3.36 tokens for 1.4 steps."""
    costs = RoundCosts({1: 1.0, 5: 1.0}, draft_step=0.1)
    assert expected_tokens(0.8, 4) == pytest.approx(3.3616)
    assert predicted_speedup(0.8, 4, costs) == pytest.approx(3.3616 / 1.4)


@given(acceptance=rates)
def test_plain_decoding_is_neither_faster_nor_slower_than_itself(acceptance: float) -> None:
    assert predicted_speedup(acceptance, 0, LAPTOP) == 1
    assert break_even_acceptance(0, LAPTOP) == 0


@given(low=rates, high=rates, gamma=st.integers(1, 4))
def test_more_acceptance_is_never_slower(low: float, high: float, gamma: int) -> None:
    low, high = sorted((low, high))
    for costs in (GPU, LAPTOP, RoundCosts({1: 1.0, 5: 2.0}, 0.3, catch_up=0.9)):
        assert predicted_speedup(low, gamma, costs) <= predicted_speedup(high, gamma, costs) + 1e-12


@given(c=st.floats(0, 0.9), v=st.floats(1, 3), catch_up=st.floats(0, 0.5), gamma=st.integers(1, 16))
def test_break_even_is_where_the_prediction_is_one(c: float, v: float, catch_up: float, gamma: int) -> None:
    costs = RoundCosts({1: 1.0, gamma + 1: v}, c, catch_up)
    found = break_even_acceptance(gamma, costs)
    if found is None:
        assert predicted_speedup(1.0, gamma, costs) < 1
    else:
        assert predicted_speedup(found, gamma, costs) >= 1
        assert found == 0 or predicted_speedup(max(0.0, found - 1e-6), gamma, costs) < 1


def test_no_break_even_on_a_machine_where_passes_cost_by_the_token() -> None:
    """The measured table: a draft model cannot pay there at usual lengths, however good it is."""
    assert [break_even_acceptance(gamma, LAPTOP) for gamma in (1, 2, 3, 4)] == [None] * 4
    assert best_num_draft_tokens(1.0, LAPTOP, limit=11) == (0, 1.0)
    assert best_num_draft_tokens(0.95, LAPTOP) == (0, 1.0)


def test_a_free_draft_pays_there_if_it_is_long_and_right() -> None:
    """16 tokens in a pass cost less than 12: the best length is found by measured sizes, not on a fitted line."""
    free = RoundCosts(LAPTOP.passes)
    assert best_num_draft_tokens(1.0, free) == (15, pytest.approx(16 / 7.2))
    assert best_num_draft_tokens(1.0, free, limit=11) == (11, pytest.approx(12 / 7.7))
    assert best_num_draft_tokens(0.3, free) == (0, 1.0)


def test_the_best_length_where_passes_are_free() -> None:
    gamma, speedup = best_num_draft_tokens(0.8, GPU)
    assert speedup == max(predicted_speedup(0.8, n, GPU) for n in range(17))
    assert speedup == predicted_speedup(0.8, gamma, GPU) > predicted_speedup(0.8, gamma - 1, GPU)
    assert best_num_draft_tokens(0.8, GPU, limit=2)[0] == 2
    assert best_num_draft_tokens(0.8, GPU, limit=0) == (0, 1.0)
    assert best_num_draft_tokens([0.9, 0.0], GPU)[0] == 1
    free = RoundCosts(GPU.passes)
    assert best_num_draft_tokens([0.9, 0.0], free)[0] == 1, "the smallest of equals"
    assert best_num_draft_tokens(0.0, free) == (0, 1.0)


def test_the_cost_of_rounds_that_happened() -> None:
    costs = RoundCosts({1: 1.0, 3: 1.5}, draft_step=0.2, catch_up=0.1)
    assert cost_of_rounds({0: 3, 2: 5}, 2, costs) == pytest.approx(3 * 1.0 + 5 * (0.4 + 1.5) + 2 * 0.1)
    assert cost_of_rounds({}, 0, costs) == 0


def test_the_share_of_the_ceiling() -> None:
    assert share_of_ceiling(1.6, 2.0) == 0.8
