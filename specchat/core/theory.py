"""What speculation can bring: expected tokens, the cost of a round, predicted speedup, break-even.

Costs are in units of one plain target step, T(1). The *acceptance* of every function is either one number (the
constant α of the papers) or one number by position: the rounds that kept at least i ÷ the rounds that drafted i and
kept at least i − 1. Positions beyond the last one given are like the last one.

Sources: Leviathan et al. 2023 (arXiv 2211.17192), §3.2–3.4; product.md, "The maths", for costs that are measured
instead of assumed (v = 1 there, and no catch-up).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

Acceptance: TypeAlias = float | Sequence[float]


@dataclass(frozen=True, slots=True)
class RoundCosts:
    """What a round is made of, each measured, in units of one plain target step.

    ``draft_step`` is c: one draft step ÷ T(1); 0 for an n-gram drafter. ``passes[n]`` is T(n)/T(1), so that v of a
    round with γ drafted tokens is ``passes[γ + 1]``; it may leave sizes out and need not be monotonic. ``catch_up``
    is (T_d(2) − T_d(1))/T(1): what the draft's first step costs more after a round in which all was accepted.

    Raises:
        ValueError: there is no pass of one token, or a cost is negative or not finite.
    """

    passes: Mapping[int, float]
    draft_step: float = 0.0
    catch_up: float = 0.0

    def __post_init__(self) -> None:
        if 1 not in self.passes or min(self.passes) < 1:
            raise ValueError("the cost of passes must be known from a pass of one token on")
        if not all(0 <= cost < math.inf for cost in (*self.passes.values(), self.draft_step, self.catch_up)):
            raise ValueError("costs must be finite numbers, none negative")

    @classmethod
    def from_seconds(
        cls,
        pass_seconds: Mapping[int, float],
        draft_step_seconds: float | None = None,
        draft_catch_up_seconds: float | None = None,
    ) -> RoundCosts:
        """Costs from measured times; the catch-up is the time by which a draft pass of two tokens is longer.

        Raises:
            ValueError: see the class; or the plain step took no time.
        """
        plain = pass_seconds.get(1, 0.0)
        if not 0 < plain < math.inf:
            raise ValueError("the time of a plain target step must be known and above 0")
        return cls(
            passes={size: seconds / plain for size, seconds in pass_seconds.items()},
            draft_step=(draft_step_seconds or 0.0) / plain,
            catch_up=max(0.0, draft_catch_up_seconds or 0.0) / plain,
        )

    @property
    def largest_draft(self) -> int:
        """The largest γ whose pass was measured."""
        return max(self.passes) - 1

    def verify(self, num_tokens: int) -> float:
        """T(n)/T(1) of a pass of ``num_tokens``; between two measured sizes, on the line through them.

        Raises:
            ValueError: the size is outside what was measured.
        """
        if num_tokens in self.passes:
            return self.passes[num_tokens]
        for low, high in pairwise(sorted(self.passes)):
            if low < num_tokens < high:
                share = (num_tokens - low) / (high - low)
                return self.passes[low] + share * (self.passes[high] - self.passes[low])
        raise ValueError(f"passes of {num_tokens} tokens were not measured, only up to {max(self.passes)}")

    def round(self, num_draft_tokens: int, all_accepted: float) -> float:
        """γ·c + v, plus P(all accepted)·catch-up. A round without a draft costs its pass."""
        cost = num_draft_tokens * self.draft_step + self.verify(num_draft_tokens + 1)
        return cost + all_accepted * self.catch_up if num_draft_tokens else cost


def survival(acceptance: Acceptance, num_draft_tokens: int) -> list[float]:
    """P(at least i drafted tokens are kept) for i = 1…γ. An empty acceptance counts as 0."""
    by_position = [acceptance] if isinstance(acceptance, int | float) else acceptance
    kept, chances = 1.0, []
    for i in range(num_draft_tokens):
        kept *= by_position[min(i, len(by_position) - 1)] if by_position else 0.0
        chances.append(kept)
    return chances


def expected_tokens(acceptance: Acceptance, num_draft_tokens: int) -> float:
    """E: tokens that a round commits, the resampled or bonus token included.

    1 + Σᵢ P(at least i kept); for a constant α that is (1 − α^{γ+1})/(1 − α), and γ + 1 for α = 1.
    """
    return 1.0 + math.fsum(survival(acceptance, num_draft_tokens))


def bound_without_bonus(acceptance_rate: float) -> float:
    """α/(1 − α): what the drafted tokens alone can bring in a round, however many are drafted."""
    return math.inf if acceptance_rate >= 1 else acceptance_rate / (1 - acceptance_rate)


def predicted_speedup(acceptance: Acceptance, num_draft_tokens: int, costs: RoundCosts) -> float:
    """E ÷ the cost of a round, for γ fixed.

    Raises:
        ValueError: passes of γ + 1 tokens lie outside what was measured.
    """
    chances = survival(acceptance, num_draft_tokens)
    all_accepted = chances[-1] if chances else 0.0
    return (1.0 + math.fsum(chances)) / costs.round(num_draft_tokens, all_accepted)


def break_even_acceptance(num_draft_tokens: int, costs: RoundCosts) -> float | None:
    """The constant α from which on drafting γ tokens is not slower than plain; None where even α = 1 is slower.

    Raises:
        ValueError: passes of γ + 1 tokens lie outside what was measured.
    """
    low, high = 0.0, 1.0
    if predicted_speedup(high, num_draft_tokens, costs) < 1:
        return None
    if predicted_speedup(low, num_draft_tokens, costs) >= 1:
        return 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        if predicted_speedup(middle, num_draft_tokens, costs) < 1:
            low = middle
        else:
            high = middle
    return high


def best_num_draft_tokens(acceptance: Acceptance, costs: RoundCosts, limit: int | None = None) -> tuple[int, float]:
    """The γ with the largest predicted speedup, and that speedup; the smallest γ in a tie.

    Plain decoding (γ = 0, speedup 1) is always a candidate. Only sizes of passes that were measured are, and γ up to
    ``limit``.
    """
    best, speedup = 0, 1.0
    for size in sorted(costs.passes):
        num_draft_tokens = size - 1
        if num_draft_tokens == 0 or (limit is not None and num_draft_tokens > limit):
            continue
        predicted = predicted_speedup(acceptance, num_draft_tokens, costs)
        if predicted > speedup:
            best, speedup = num_draft_tokens, predicted
    return best, speedup


def cost_of_rounds(rounds_by_length: Mapping[int, int], num_all_accepted: int, costs: RoundCosts) -> float:
    """What rounds cost that did happen: ``rounds_by_length[γ]`` of each length, ``num_all_accepted`` of them all kept.

    The measured tokens of these rounds ÷ this is their predicted speedup.

    Raises:
        ValueError: a pass lies outside what was measured.
    """
    passes = math.fsum(count * costs.round(length, 0.0) for length, count in rounds_by_length.items())
    return passes + num_all_accepted * costs.catch_up


def share_of_ceiling(measured_speedup: float, predicted: float) -> float:
    """How much of the predicted speedup was reached; the rest is our own overhead, or the prediction's error."""
    return measured_speedup / predicted
