"""The rules are lossless: shown by adding up every case, not by sampling."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.core.events import Fate
from specchat.core.sampling import Distribution, excess, residual, surplus
from specchat.core.verification import BlockRule, TokenRule, VerificationRule, fates, rule_named
from tests.core.enumeration import (
    Prefix,
    World,
    emitted,
    expected_accepted,
    largest_difference,
    mixed_laws,
    one_hot_law,
    outcomes,
    random_law,
)

SMALL, SPREAD, FOUR = (0, 1, 2), (2, 7, 11), (0, 1, 2, 3)
ROUNDING = 1e-12


def worlds() -> dict[str, World]:
    """Pairs of laws of every kind that a rule meets, each with a vocabulary and γ small enough to enumerate."""
    found: dict[str, World] = {}
    for gamma in (1, 2, 3, 4):
        found[f"random, γ {gamma}"] = World(random_law(gamma, SMALL), random_law(50 + gamma, SMALL), gamma)
        found[f"zeros, γ {gamma}"] = World(random_law(gamma, SPREAD, 0.4), random_law(60 + gamma, SPREAD, 0.4), gamma)
        found[f"mixed, γ {gamma}"] = World(*mixed_laws(70 + gamma, SMALL), gamma)
    for gamma in (1, 2, 3):
        found[f"four tokens, γ {gamma}"] = World(random_law(gamma, FOUR), random_law(80 + gamma, FOUR, 0.2), gamma)
        found[f"mixed, four tokens, γ {gamma}"] = World(*mixed_laws(90 + gamma, FOUR), gamma)
    p, q = random_law(1, SMALL), random_law(2, SMALL)
    sharp = random_law(3, SMALL, sharpness=6)
    found |= {
        "nothing drafted": World(p, q, 0),
        "identical": World(p, p, 3),
        "disjoint": World(random_law(1, (0, 2)), random_law(2, (1, 3)), 3),
        "the draft knows fewer tokens": World(p, random_law(2, (0, 1)), 3),
        "the target allows fewer tokens": World(random_law(1, (0, 1)), q, 3),
        "sharp target": World(sharp, q, 4),
        "sharp draft": World(p, sharp, 4),
        "almost identical": World(p, lambda prefix: nearly(p(prefix)), 3),
        "match: one-hot draft": World(p, one_hot_law(q), 4),
        "match: one-hot draft with its own choice": World(p, one_hot_law(p), 4),
        "greedy": World(one_hot_law(p), one_hot_law(q), 4),
        "greedy, same": World(one_hot_law(p), one_hot_law(p), 4),
        "greedy target, sampling draft": World(one_hot_law(p), q, 3),
    }
    return found


def nearly(law: Distribution) -> Distribution:
    return Distribution.from_dense(law.probs + np.linspace(0, 1e-15, len(law)))


def unsure(drafted: Prefix, q: Distribution) -> bool:
    return bool(q.probs.max() > 0.45)


def after_zero(drafted: Prefix, q: Distribution) -> bool:
    return not drafted or drafted[-1] != 0


def lengths() -> dict[str, World]:
    """Length rules that settle before a draw whether it is made, and end tokens."""
    p, q = random_law(5, SMALL), random_law(6, SMALL)
    sparse_p, sparse_q = random_law(7, FOUR, 0.3), random_law(8, FOUR, 0.3)
    return {
        "stops when the draft is unsure": World(p, q, 4, more=unsure),
        "stops after a token's value": World(p, q, 4, more=after_zero),
        "stops for either": World(sparse_p, sparse_q, 3, more=lambda d, law: unsure(d, law) and after_zero(d, law)),
        "stops at an end token": World(p, q, 4, ends=frozenset({1})),
        "stops at two end tokens": World(sparse_p, sparse_q, 3, ends=frozenset({0, 3})),
        "end token, unsure draft": World(p, q, 4, ends=frozenset({2}), more=unsure),
        "one-hot draft of varying length": World(p, one_hot_law(q), 4, more=lambda d, law: q(d).probs.max() > 0.5),
    }


ALL_WORLDS = worlds() | lengths()


@pytest.mark.parametrize("rule", ["token", "block", "match"])
@pytest.mark.parametrize("world", ALL_WORLDS.values(), ids=ALL_WORLDS)
def test_the_reply_is_distributed_as_the_targets_own(world: World, rule: str) -> None:
    assert largest_difference(world, rule_named(rule)) < ROUNDING


@pytest.mark.parametrize("world", ALL_WORLDS.values(), ids=ALL_WORLDS)
def test_the_block_rule_keeps_at_least_as_many_as_the_token_rule(world: World) -> None:
    assert expected_accepted(world, BlockRule()) >= expected_accepted(world, TokenRule()) - ROUNDING


def test_the_papers_example_of_the_block_rules_gain() -> None:
    """p = (1/3, 2/3), q = (2/3, 1/3) after every prefix, γ = 2: 10/9 tokens against 11/9, worked out by hand."""
    world = World(
        lambda _: Distribution.from_dense([1 / 3, 2 / 3]), lambda _: Distribution.from_dense([2 / 3, 1 / 3]), 2
    )
    assert expected_accepted(world, TokenRule()) == pytest.approx(10 / 9, abs=ROUNDING)
    assert expected_accepted(world, BlockRule()) == pytest.approx(11 / 9, abs=ROUNDING)


@pytest.mark.parametrize("rule", ["token", "block"])
def test_a_draft_like_the_target_is_always_kept(rule: str) -> None:
    law = random_law(1, FOUR)
    assert expected_accepted(World(law, law, 3), rule_named(rule)) == pytest.approx(3, abs=ROUNDING)


def test_dropping_a_drawn_token_for_its_own_value_skews_the_reply() -> None:
    """The well-known p-min filter. If this passed, the enumeration could not fail."""
    allowed = World(random_law(5, SMALL), random_law(6, SMALL), 3)
    skewed = replace(allowed, drop=lambda token, q: q.probability(token) < 0.3)
    for rule in (TokenRule(), BlockRule()):
        assert largest_difference(allowed, rule) < ROUNDING
        assert largest_difference(skewed, rule) > 1e-3


@pytest.mark.parametrize(
    "drawn_from",
    [
        pytest.param(one_hot_law(random_law(52, SMALL)), id="argmax drawn, softmax reported"),
        pytest.param(random_law(52, SMALL, sharpness=0.8), id="another temperature drawn"),
    ],
)
def test_a_q_that_was_not_drawn_from_skews_the_reply(drawn_from: Callable[[Prefix], Distribution]) -> None:
    world = World(random_law(2, SMALL), random_law(52, SMALL), 2, drawn_from=drawn_from)
    for rule in (TokenRule(), BlockRule()):
        assert largest_difference(world, rule) > 1e-4


# --- mutants: each is one plausible mistake, and each must be noticed ------------------------------------------------


class InvertedRatio(TokenRule):
    def thresholds(self, drafted, q, p):
        return np.array([min(1.0, q[i].probability(t) / (p[i].probability(t) or 1)) for i, t in enumerate(drafted)])


class ComparesWithPAlone(TokenRule):
    def thresholds(self, drafted, q, p):
        return np.array([p[i].probability(t) for i, t in enumerate(drafted)])


class PFromTheNextPosition(TokenRule):
    def thresholds(self, drafted, q, p):
        return super().thresholds(drafted, q, [*p[1:], p[-1]])


class RatioTwoPercentTooLarge(TokenRule):
    def thresholds(self, drafted, q, p):
        ratios = [1.02 * p[i].probability(t) / q[i].probability(t) for i, t in enumerate(drafted)]
        return np.minimum(1.0, ratios)


class GoesOnAfterARejection(TokenRule):
    def num_accepted(self, thresholds, draws):
        return int((draws < thresholds).sum())


class OneTokenTooFew(TokenRule):
    def num_accepted(self, thresholds, draws):
        return max(0, super().num_accepted(thresholds, draws) - 1)


class ResamplesFromP(TokenRule):
    def next_distribution(self, num_accepted, drafted, q, p):
        return p[num_accepted]


class ResamplesFromTheAbsoluteDifference(TokenRule):
    def next_distribution(self, num_accepted, drafted, q, p):
        if num_accepted == len(drafted):
            return p[num_accepted]
        size = max(int(p[num_accepted].ids[-1]), int(q[num_accepted].ids[-1])) + 1
        dense = np.zeros(size)
        dense[p[num_accepted].ids] = p[num_accepted].probs
        dense[q[num_accepted].ids] -= q[num_accepted].probs
        return Distribution.from_dense(np.abs(dense))


class ResamplesFromPWithoutTheToken(TokenRule):
    def next_distribution(self, num_accepted, drafted, q, p):
        if num_accepted == len(drafted):
            return p[num_accepted]
        return residual(p[num_accepted], Distribution.one_hot(drafted[num_accepted])) or p[num_accepted]


class ResidualFromThePositionBefore(TokenRule):
    def next_distribution(self, num_accepted, drafted, q, p):
        return super().next_distribution(max(0, num_accepted - (num_accepted < len(drafted))), drafted, q, p)


class BonusFromQ(TokenRule):
    def next_distribution(self, num_accepted, drafted, q, p):
        return super().next_distribution(num_accepted, drafted, q, p) if num_accepted < len(drafted) else q[-1]


class StaleBonus(TokenRule):
    def next_distribution(self, num_accepted, drafted, q, p):
        return super().next_distribution(num_accepted, drafted, q, p) if num_accepted < len(drafted) else p[-2]


class KeepsByTheJointRatioAlone(BlockRule):
    def thresholds(self, drafted, q, p):
        return self.joint_ratios(drafted, q, p)


class StopsAtTheFirstFailure(BlockRule):
    def num_accepted(self, thresholds, draws):
        return TokenRule().num_accepted(thresholds, draws)


class ResidualOfTheTokenRule(BlockRule):
    def next_distribution(self, num_accepted, drafted, q, p):
        return TokenRule().next_distribution(num_accepted, drafted, q, p)


class JointRatioNotCapped(BlockRule):
    def joint_ratios(self, drafted, q, p):
        return np.cumprod([p[i].probability(t) / q[i].probability(t) for i, t in enumerate(drafted)])

    def thresholds(self, drafted, q, p):
        return np.clip(super().thresholds(drafted, q, p), 0, 1)


class JointRatioCappedAtTheEndOnly(BlockRule):
    def joint_ratios(self, drafted, q, p):
        return np.minimum(1, np.cumprod([p[i].probability(t) / q[i].probability(t) for i, t in enumerate(drafted)]))


class SurplusWithoutTheJointRatio(BlockRule):
    def thresholds(self, drafted, q, p):
        h = self.joint_ratios(drafted, q, p)
        for i in range(len(drafted) - 1):
            surplus = excess(p[i + 1], q[i + 1]).sum()
            h[i] = surplus / (surplus + (1 - h[i])) if surplus + (1 - h[i]) > 0 else 1
        return h


class SurplusOfTheSamePosition(BlockRule):
    def thresholds(self, drafted, q, p):
        h = self.joint_ratios(drafted, q, p)
        for i in range(len(drafted) - 1):
            surplus = excess(p[i], q[i], h[i]).sum()
            h[i] = surplus / (surplus + (1 - h[i])) if surplus + (1 - h[i]) > 0 else 1
        return h


class LastThresholdAlwaysOne(BlockRule):
    def thresholds(self, drafted, q, p):
        h = super().thresholds(drafted, q, p)
        h[-1:] = 1
        return h


MUTANTS: list[type[TokenRule] | type[BlockRule]] = [
    *(kind for kind in TokenRule.__subclasses__() if kind.__module__ == __name__),
    *(kind for kind in BlockRule.__subclasses__() if kind.__module__ == __name__),
]


def test_there_are_mutants_of_both_rules() -> None:
    assert sum(issubclass(mutant, TokenRule) for mutant in MUTANTS) == 12
    assert sum(issubclass(mutant, BlockRule) for mutant in MUTANTS) == 8


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_enumeration_kills_the_mutant(mutant: type[TokenRule] | type[BlockRule]) -> None:
    world = ALL_WORLDS["random, γ 3"]
    assert largest_difference(world, mutant()) > 1e6 * ROUNDING


# --- the details that the enumeration does not reach ------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["token", "block", "match"])
def test_a_draw_equal_to_the_threshold_does_not_keep(rule: str) -> None:
    chosen = rule_named(rule)
    assert chosen.num_accepted(np.array([0.0, 0.0]), np.array([0.0, 0.0])) == 0
    assert chosen.num_accepted(np.array([0.25]), np.array([0.25])) == 0
    assert chosen.num_accepted(np.array([1.0]), np.array([np.nextafter(1, 0)])) == 1
    assert chosen.num_accepted(np.array([]), np.array([])) == 0


def test_the_token_rule_stops_and_the_block_rule_looks_on() -> None:
    thresholds, draws = np.array([0.9, 0.2, 0.7, 0.1]), np.array([0.5, 0.5, 0.5, 0.5])
    assert TokenRule().num_accepted(thresholds, draws) == 1
    assert BlockRule().num_accepted(thresholds, draws) == 3


def test_a_token_that_cannot_have_been_drawn_is_refused() -> None:
    q, p = Distribution.one_hot(1), Distribution.from_dense([0.5, 0.5])
    for rule in (TokenRule(), BlockRule()):
        with pytest.raises(ValueError, match="token 0 at position 1 cannot have been drawn"):
            rule.thresholds([0], [q], [p, p])


@pytest.mark.parametrize(("num_q", "num_p"), [(1, 3), (2, 1), (2, 4), (3, 3)])
def test_lengths_that_do_not_fit_are_refused(num_q: int, num_p: int) -> None:
    law = Distribution.from_dense([0.5, 0.5])
    for rule in (TokenRule(), BlockRule()):
        with pytest.raises(ValueError, match="2 drafted tokens need"):
            rule.thresholds([0, 1], [law] * num_q, [law] * num_p)


@pytest.mark.parametrize("rule", ["token", "block"])
def test_nothing_is_drawn_after_a_block_whose_end_was_kept(rule: str) -> None:
    law = Distribution.from_dense([0.5, 0.5])
    chosen = rule_named(rule)
    assert chosen.thresholds([0, 1], [law, law], [law, law]).tolist() == [1, 1]
    with pytest.raises(ValueError, match="what follows"):
        chosen.next_distribution(2, [0, 1], [law, law], [law, law])


def test_an_empty_residual_falls_back_to_p() -> None:
    p = Distribution.from_dense([0.5, 0.5])
    assert residual(p, p) is None
    assert TokenRule().next_distribution(0, [0], [p], [p, p]) is p
    assert BlockRule().next_distribution(0, [0], [p], [p, p]) is p


def test_a_draft_without_tokens_leaves_plain_decoding() -> None:
    p = Distribution.from_dense([0.5, 0.5])
    for rule in (TokenRule(), BlockRule()):
        assert rule.thresholds([], [], [p]).size == 0
        assert rule.next_distribution(0, [], [], [p]) is p


def test_blocks_of_64_one_hot_tokens() -> None:
    """An n-gram draft's longest block, against a target as wide as a real one's."""
    tokens = list(range(64))
    p = [Distribution.from_dense(np.r_[np.full(64, 1.0), np.full(1000, 1e-3)])] * 65
    q = [Distribution.one_hot(token) for token in tokens]
    one = p[0].probability(0)
    np.testing.assert_allclose(TokenRule().thresholds(tokens, q, p), np.full(64, one), rtol=1e-12)
    h = BlockRule().thresholds(tokens, q, p)
    assert h[-1] == pytest.approx(one**64)
    assert ((h >= 0) & (h <= 1)).all()
    assert 5 not in TokenRule().next_distribution(5, tokens, q, p).ids


def test_the_joint_ratios_belong_to_the_block_rule() -> None:
    q, p = [Distribution.from_dense([0.2, 0.8])] * 2, [Distribution.from_dense([0.4, 0.6])] * 3
    np.testing.assert_allclose(BlockRule().joint_ratios([0, 1], q, p), [1, 0.75])
    assert TokenRule().joint_ratios([0, 1], q, p) is None


def test_rules_by_name() -> None:
    for name in ("token", "block", "match"):
        assert rule_named(name).name == name
    with pytest.raises(ValueError, match="no rule 'tree'; rules are token, block, match"):
        rule_named("tree")


@pytest.mark.parametrize(
    ("kept", "drafted", "expected"),
    [
        (0, 0, ""),
        (2, 2, "aa"),
        (0, 3, "rii"),
        (1, 3, "ari"),
        (2, 3, "aar"),
    ],
)
def test_fates(kept: int, drafted: int, expected: str) -> None:
    letters = {"a": Fate.ACCEPTED, "r": Fate.REJECTED, "i": Fate.IGNORED}
    assert fates(kept, drafted) == tuple(letters[letter] for letter in expected)


weights = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=8).filter(lambda w: sum(w) > 1e-6)


@given(p=weights, q=weights)
def test_what_is_kept_and_what_is_resampled_add_up_to_p(p: list[float], q: list[float]) -> None:
    target, draft = Distribution.from_dense(p), Distribution.from_dense(q)
    both = np.minimum(target.probs, draft.probabilities(target.ids))
    rest = residual(target, draft)
    resampled = (1 - both.sum()) * (rest.probabilities(target.ids) if rest else target.probs)
    np.testing.assert_allclose(both + resampled, target.probs, atol=1e-12)


@given(p=weights, q=weights, scale=st.floats(0, 1))
def test_the_residual_holds_positive_probabilities_that_add_up_to_one(
    p: list[float], q: list[float], scale: float
) -> None:
    target, draft = Distribution.from_dense(p), Distribution.from_dense(q)
    left = residual(target, draft, scale)
    values = excess(target, draft, scale)
    expected = [max(0.0, scale * target.probability(t) - draft.probability(t)) for t in target.ids.tolist()]
    assert values.tolist() == expected
    assert (left is None) == (not values.any())
    if left is not None:
        assert left.probs.sum() == pytest.approx(1, abs=1e-12)
        assert (left.probs > 0).all()
        assert set(left.ids) <= set(target.ids)


@pytest.mark.parametrize("size", [2, 64, 65, 600])
@pytest.mark.parametrize("scale", [1.0, 0.3, 0.0])
def test_what_p_has_more_of_than_q(size: int, scale: float) -> None:
    rng = np.random.default_rng(size)
    weights = rng.random((2, size)) * (rng.random((2, size)) < 0.7) + np.eye(2, size)
    target, draft = map(Distribution.from_dense, weights)
    for q in (draft, Distribution.one_hot(1), Distribution.from_dense(weights[1, :2])):
        expected = [max(0.0, scale * target.probability(t) - q.probability(t)) for t in target.ids.tolist()]
        np.testing.assert_allclose(excess(target, q, scale), expected, rtol=0, atol=1e-16)
        assert surplus(target, q, scale) == pytest.approx(math.fsum(expected), abs=1e-14)
    assert not excess(target, target).any()


def test_the_enumeration_covers_every_case() -> None:
    """The probabilities of all cases of all worlds add up to one: nothing is left out and nothing counted twice."""
    for world in ALL_WORLDS.values():
        for rule in (TokenRule(), BlockRule()):
            assert sum(probability for *_, probability in outcomes(world, rule)) == pytest.approx(1, abs=ROUNDING)
            assert sum(emitted(world, rule).values()) == pytest.approx(1, abs=ROUNDING)


def test_both_rules_fulfil_the_protocol() -> None:
    rules: list[VerificationRule] = [TokenRule(), BlockRule(), TokenRule("match")]
    assert [rule.name for rule in rules] == ["token", "block", "match"]
