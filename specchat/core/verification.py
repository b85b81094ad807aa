"""Which drafted tokens are kept, and what is drawn after them.

A rule is a set of pure functions: the acceptance thresholds of a block, the number kept given the draws, the
distribution of the token that follows. No rule asks where q came from; it must only be the very distribution that
each token was drawn from. Then the reply is distributed exactly as the target alone would write it.

Names as in the papers: x̂₁…x̂_γ are ``drafted``, qᵢ and pᵢ the draft's and the target's distribution at position i,
τ the number kept. ``q`` has γ entries, ``p`` has γ + 1; ``p`` may have only γ where the block ends in an end token,
because then nothing follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from specchat.core.events import Fate
from specchat.core.sampling import Distribution, residual, surplus


class VerificationRule(Protocol):
    """How a block of drafted tokens is judged."""

    @property
    def name(self) -> str:
        """The name in settings, events and the record."""

    def thresholds(
        self, drafted: Sequence[int], q: Sequence[Distribution], p: Sequence[Distribution]
    ) -> NDArray[np.float64]:
        """What the uniform draw of each position is compared with. ``[γ]``, each from 0 to 1.

        Raises:
            ValueError: the lengths do not fit, or a token has no probability in its q: it was not drawn from it.
        """

    def num_accepted(self, thresholds: NDArray[np.float64], draws: NDArray[np.float64]) -> int:
        """How many of the drafted tokens are kept (τ), given one uniform draw from [0, 1) for each."""

    def next_distribution(
        self, num_accepted: int, drafted: Sequence[int], q: Sequence[Distribution], p: Sequence[Distribution]
    ) -> Distribution:
        """What the token after the kept ones is drawn from: a residual, or p where all were kept.

        Raises:
            ValueError: all were kept and ``p`` has no entry for what follows.
        """

    def joint_ratios(
        self, drafted: Sequence[int], q: Sequence[Distribution], p: Sequence[Distribution]
    ) -> NDArray[np.float64] | None:
        """The block rule's π₁…π_γ, for the record's details; None under a rule that has none."""


class TokenRule:
    """Each token is judged by itself: Leviathan et al. 2023 (arXiv 2211.17192), Chen et al. 2023 (arXiv 2302.01318).

    x̂ᵢ is kept if u < min(1, pᵢ(x̂ᵢ)/qᵢ(x̂ᵢ)) and all before it were; after the first rejection one token is drawn from
    the residual max(0, pᵢ − qᵢ), normalised. With one-hot q the threshold is p(x̂) and the residual is p without x̂:
    that is the *match* rule, which differs in how the draft chooses and not in how it is judged.
    """

    def __init__(self, name: str = "token") -> None:
        self.name = name

    def thresholds(
        self, drafted: Sequence[int], q: Sequence[Distribution], p: Sequence[Distribution]
    ) -> NDArray[np.float64]:
        """min(1, pᵢ(x̂ᵢ)/qᵢ(x̂ᵢ)) (see `VerificationRule.thresholds`)."""
        return np.array([min(1.0, ratio) for ratio in _ratios(drafted, q, p)])

    def num_accepted(self, thresholds: NDArray[np.float64], draws: NDArray[np.float64]) -> int:
        """The tokens before the first whose draw is not below its threshold."""
        rejected = draws >= thresholds
        return int(rejected.argmax()) if rejected.any() else int(thresholds.size)

    def next_distribution(
        self,
        num_accepted: int,
        drafted: Sequence[int],
        q: Sequence[Distribution],
        p: Sequence[Distribution],
    ) -> Distribution:
        """The residual max(0, p − q) at the first rejected position (see `VerificationRule.next_distribution`)."""
        return _next(num_accepted, q, p, 1.0)

    def joint_ratios(self, *_: object) -> None:
        """None: this rule has no joint ratios."""


class BlockRule:
    """The block is judged jointly: Sun et al., ICLR 2025 (arXiv 2403.10444). On average keeps at least as many.

    With π₀ = 1 and πᵢ = min(1, πᵢ₋₁·pᵢ(x̂ᵢ)/qᵢ(x̂ᵢ)), the longest prefix i with ηᵢ < hᵢ is kept, where
    hᵢ = sᵢ/(sᵢ + 1 − πᵢ) with sᵢ = Σₓ max(0, πᵢ·pᵢ₊₁(x) − qᵢ₊₁(x)) for i < γ, and h_γ = π_γ. Then one token is drawn
    from max(0, π_τ·p_{τ+1} − q_{τ+1}), normalised.
    """

    name = "block"

    def thresholds(
        self, drafted: Sequence[int], q: Sequence[Distribution], p: Sequence[Distribution]
    ) -> NDArray[np.float64]:
        """h₁…h_γ (see `VerificationRule.thresholds`)."""
        h = self.joint_ratios(drafted, q, p).tolist()
        for i, pi in enumerate(h[:-1]):
            s = surplus(p[i + 1], q[i + 1], pi) if pi > 0 else 0.0
            total = s + (1 - pi)  # in this order: 1 − π is exact where it is small
            # 0/0 (π = 1 and q the same as p) counts as 1: the next token will be kept as well, whatever it is.
            h[i] = s / total if total > 0 else 1.0
        return np.array(h)

    def num_accepted(self, thresholds: NDArray[np.float64], draws: NDArray[np.float64]) -> int:
        """The longest prefix whose last draw is strictly below its threshold: a draw of 0 keeps no token with h = 0."""
        below = (draws < thresholds).nonzero()[0]
        return int(below[-1]) + 1 if below.size else 0

    def next_distribution(
        self, num_accepted: int, drafted: Sequence[int], q: Sequence[Distribution], p: Sequence[Distribution]
    ) -> Distribution:
        """The residual max(0, π_τ·p − q) after the kept tokens (see `VerificationRule.next_distribution`)."""
        pi = 1.0
        if 0 < num_accepted < len(q):
            pi = float(self.joint_ratios(drafted[:num_accepted], q[:num_accepted], p[:num_accepted])[-1])
        return _next(num_accepted, q, p, pi)

    def joint_ratios(
        self, drafted: Sequence[int], q: Sequence[Distribution], p: Sequence[Distribution]
    ) -> NDArray[np.float64]:
        """π₁…π_γ. ``[γ]``."""
        joint, pi = [], 1.0
        for ratio in _ratios(drafted, q, p):
            pi = min(1.0, pi * ratio)
            joint.append(pi)
        return np.array(joint)


_RULES: dict[str, VerificationRule] = {rule.name: rule for rule in (TokenRule(), BlockRule(), TokenRule("match"))}


def rule_named(name: str) -> VerificationRule:
    """The rule "token", "block" or "match".

    Raises:
        ValueError: there is no such rule.
    """
    if name not in _RULES:
        raise ValueError(f"there is no rule {name!r}; rules are {', '.join(_RULES)}")
    return _RULES[name]


def fates(num_accepted: int, num_drafted: int) -> tuple[Fate, ...]:
    """What became of each drafted token: those kept, the one rejected, and the ones after it, never judged."""
    if num_accepted >= num_drafted:
        return (Fate.ACCEPTED,) * num_drafted
    ignored = num_drafted - num_accepted - 1
    return (*(Fate.ACCEPTED,) * num_accepted, Fate.REJECTED, *(Fate.IGNORED,) * ignored)


def _ratios(drafted: Sequence[int], q: Sequence[Distribution], p: Sequence[Distribution]) -> list[float]:
    """pᵢ(x̂ᵢ)/qᵢ(x̂ᵢ), γ of them."""
    if not len(drafted) == len(q) <= len(p) <= len(drafted) + 1:
        raise ValueError(f"{len(drafted)} drafted tokens need as many q and at most one p more, not {len(q)}, {len(p)}")
    ratios = []
    for i, token in enumerate(drafted):
        drawn_with = q[i].probability(token)
        if drawn_with == 0:
            raise ValueError(f"token {token} at position {i + 1} cannot have been drawn from its q: it has none there")
        ratios.append(p[i].probability(token) / drawn_with)
    return ratios


def _next(num_accepted: int, q: Sequence[Distribution], p: Sequence[Distribution], scale: float) -> Distribution:
    if num_accepted >= len(p):
        raise ValueError("all drafted tokens were kept and nothing is known about what follows them")
    following = p[num_accepted]
    if num_accepted == len(q):
        return following
    # An empty residual means that p equals q up to rounding, so that a rejection had no probability to speak of.
    rest = residual(following, q[num_accepted], scale)
    return following if rest is None else rest
