"""How many tokens to draft, decided before each draw.

The length rule (product.md): whether to draw x̂ᵢ₊₁ may use anything known before that draw (x̂₁…x̂ᵢ and q_{i+1}
included); once drawn, a token stays in the block. Dropping a drawn token for its own value would skew the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from specchat.core.sampling import Distribution


class DraftLength(Protocol):
    """Chooses γ, round by round and draw by draw."""

    @property
    def reason(self) -> str | None:
        """Why the length changed this round, in words for a person; None where nothing changed."""

    def begin_round(self, limit: int) -> int:
        """The largest number of tokens to draft this round, at most ``limit``; 0 decodes plainly.

        ``limit`` is what the context, the pass size and the tokens left to write allow.
        """

    def more(self, num_drawn: int, q: Distribution) -> bool:
        """Whether to draw one more token from ``q``, after ``num_drawn`` of this round."""

    def choose(self, chances: Sequence[float]) -> int:
        """How many of a proposal's tokens to use, where all are known beforehand and cost nothing (n-gram, copy).

        ``chances[i]`` is the proposer's estimate of P(token i is kept | all before it were). Asked instead of `more`.
        """

    def observe(self, num_drafted: int, num_accepted: int, draft_seconds: float, verify_seconds: float) -> None:
        """Learns what a finished round cost and kept."""


class FixedLength:
    """Always γ tokens, context permitting."""

    reason: str | None = None

    def __init__(self, num_draft_tokens: int) -> None:
        if num_draft_tokens < 0:
            raise ValueError("the number of draft tokens cannot be negative")
        self.num_draft_tokens = num_draft_tokens

    def begin_round(self, limit: int) -> int:
        """γ, or what there is room for."""
        return min(self.num_draft_tokens, limit)

    def more(self, num_drawn: int, q: Distribution) -> bool:
        """Always: `begin_round` has settled the length."""
        return True

    def choose(self, chances: Sequence[float]) -> int:
        """All that are proposed: `begin_round` has settled how many may be."""
        return len(chances)

    def observe(self, num_drafted: int, num_accepted: int, draft_seconds: float, verify_seconds: float) -> None:
        """Learns nothing."""
