"""One round of speculative decoding on a small vocabulary, enumerated: every draft, every verdict, no sampling.

A `World` says what the draft and the target would draw after any prefix. `emitted` adds up the probability of every
continuation that a rule can bring about, running the rule's own code in each case; `written_by_target` is what the
target alone would write. A lossless rule makes the two equal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from specchat.core.sampling import Distribution
from specchat.core.verification import VerificationRule

Prefix = tuple[int, ...]
Law = Callable[[Prefix], Distribution]


@dataclass(frozen=True)
class World:
    """What follows a prefix: ``p`` of the target, ``q`` of the draft.

    ``more(drafted, q)`` is the length rule, asked before each draw; ``drop(token, q)`` is the forbidden one, asked
    after it. ``drawn_from`` is what the draft really draws from, where that is not the q it reports: a bug.
    """

    p: Law
    q: Law
    num_draft_tokens: int
    ends: frozenset[int] = frozenset()
    more: Callable[[Prefix, Distribution], bool] = lambda drafted, q: True
    drop: Callable[[int, Distribution], bool] = lambda token, q: False
    drawn_from: Law | None = field(default=None)

    @property
    def horizon(self) -> int:
        """A round commits at most this many tokens."""
        return self.num_draft_tokens + 1


def entries(distribution: Distribution) -> Iterator[tuple[int, float]]:
    yield from zip(distribution.ids.tolist(), distribution.probs.tolist(), strict=True)


def drafts(world: World, drafted: Prefix = (), probability: float = 1.0) -> Iterator[tuple[Prefix, float]]:
    """Every block that the draft can propose, with its probability."""
    ended = bool(drafted) and drafted[-1] in world.ends
    if ended or len(drafted) == world.num_draft_tokens or not world.more(drafted, q := world.q(drafted)):
        yield drafted, probability
        return
    for token, chance in entries((world.drawn_from or world.q)(drafted)):
        if world.drop(token, q):
            yield drafted, probability * chance
        else:
            yield from drafts(world, (*drafted, token), probability * chance)


def verdicts(rule: VerificationRule, thresholds: np.ndarray) -> Iterator[tuple[int, float]]:
    """Every number of kept tokens that the draws can lead to, with its probability.

    A rule only compares each draw with its threshold, so one draw from each side stands for all of that side.
    """
    for below in product((True, False), repeat=thresholds.size):
        sides = np.where(below, thresholds, 1 - thresholds)
        if sides.prod() > 0:
            yield (
                rule.num_accepted(thresholds, np.where(below, thresholds / 2, (1 + thresholds) / 2)),
                float(sides.prod()),
            )


def outcomes(world: World, rule: VerificationRule) -> Iterator[tuple[Prefix, int, Distribution | None, float]]:
    """(drafted, number kept, law of the token after them or None after an end, probability) of every case."""
    for drafted, drafted_probability in drafts(world):
        q = [world.q(drafted[:i]) for i in range(len(drafted))]
        p = [world.p(drafted[:i]) for i in range(len(drafted))]
        ended = bool(drafted) and drafted[-1] in world.ends
        if not ended:
            p.append(world.p(drafted))
        thresholds = rule.thresholds(drafted, q, p)
        assert thresholds.shape == (len(drafted),)
        assert ((thresholds >= 0) & (thresholds <= 1)).all()
        for kept, verdict_probability in verdicts(rule, thresholds):
            following = None if ended and kept == len(drafted) else rule.next_distribution(kept, drafted, q, p)
            yield drafted, kept, following, drafted_probability * verdict_probability


def emitted(world: World, rule: VerificationRule) -> dict[Prefix, float]:
    """The law of the next γ + 1 tokens: one round, and plain decoding for what the round leaves open."""
    law: dict[Prefix, float] = defaultdict(float)
    for drafted, kept, following, probability in outcomes(world, rule):
        if following is None:
            law[drafted[:kept]] += probability
            continue
        for token, chance in entries(following):
            _complete(world, (*drafted[:kept], token), probability * chance, law)
    return law


def written_by_target(world: World) -> dict[Prefix, float]:
    """The law of the next γ + 1 tokens under plain decoding."""
    law: dict[Prefix, float] = defaultdict(float)
    _complete(world, (), 1.0, law)
    return law


def expected_accepted(world: World, rule: VerificationRule) -> float:
    """E[τ]."""
    return sum(kept * probability for _, kept, _, probability in outcomes(world, rule))


def largest_difference(world: World, rule: VerificationRule) -> float:
    """By how much the probability of any continuation differs from the target's; 1e-12 and less is rounding."""
    left, right = emitted(world, rule), written_by_target(world)
    assert abs(sum(right.values()) - 1) < 1e-12
    return max(abs(left.get(text, 0.0) - right.get(text, 0.0)) for text in left.keys() | right.keys())


def _complete(world: World, text: Prefix, probability: float, law: dict[Prefix, float]) -> None:
    if len(text) == world.horizon or (text and text[-1] in world.ends):
        law[text] += probability
        return
    for token, chance in entries(world.p(text)):
        _complete(world, (*text, token), probability * chance, law)


# --- worlds -----------------------------------------------------------------------------------------------------------


def random_law(seed: int, vocabulary: tuple[int, ...], zeros: float = 0.0, sharpness: float = 1.0) -> Law:
    """Another random distribution after every prefix; each token is impossible with probability ``zeros``."""
    known: dict[Prefix, Distribution] = {}

    def law(prefix: Prefix) -> Distribution:
        if prefix not in known:
            rng = np.random.default_rng([seed, *(token + 1 for token in prefix)])
            weights = rng.random(len(vocabulary)) ** sharpness + 1e-3
            possible = rng.random(len(vocabulary)) >= zeros
            possible[rng.integers(len(vocabulary))] = True
            dense = np.zeros(max(vocabulary) + 1)
            dense[list(vocabulary)] = weights * possible
            known[prefix] = Distribution.from_dense(dense)
        return known[prefix]

    return law


def one_hot_law(law: Law) -> Law:
    """The most likely token of ``law``, for certain: greedy decoding."""
    return lambda prefix: Distribution.one_hot(law(prefix).top(1)[0][0])


def mixed_laws(seed: int, vocabulary: tuple[int, ...]) -> tuple[Law, Law]:
    """p and q that agree after some prefixes, have disjoint supports after others, and are one-hot after some."""
    left, right = vocabulary[::2], vocabulary[1::2]
    random_p, random_q = random_law(seed, vocabulary, zeros=0.3), random_law(seed + 1, vocabulary, zeros=0.3)

    def kind(prefix: Prefix) -> int:
        return int(np.random.default_rng([seed, 99, *(token + 1 for token in prefix)]).integers(5))

    def p(prefix: Prefix) -> Distribution:
        match kind(prefix):
            case 1:
                return random_law(seed + 2, left)(prefix)
            case 2:
                return one_hot_law(random_p)(prefix)
        return random_p(prefix)

    def q(prefix: Prefix) -> Distribution:
        match kind(prefix):
            case 0:
                return random_p(prefix)
            case 1:
                return random_law(seed + 3, right)(prefix)
            case 3:
                return one_hot_law(random_q)(prefix)
        return random_q(prefix)

    return p, q
