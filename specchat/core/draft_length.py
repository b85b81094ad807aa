"""How many tokens to draft, decided before each draw.

The length rule (product.md): whether to draw x̂ᵢ₊₁ may use anything known before that draw (x̂₁…x̂ᵢ and q_{i+1}
included); once drawn, a token stays in the block. Dropping a drawn token for its own value would skew the output.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from specchat.core.sampling import Distribution

_MEMORY = 0.1
"""How much the latest round counts in an average over rounds."""


@dataclass(frozen=True, slots=True)
class RoundOutcome:
    """What a length rule learns from a round.

    Attributes:
        num_drafted, num_accepted: drafted tokens, and how many were kept. Of the rest the first was judged.
        draft_seconds: the time of the drafter.
        verify_seconds: the time of the target's pass and of the sampling that follows it.
        drafter: who proposed; "none" where nothing was drafted.
        evaluated: how many tokens a draft model evaluated for it.
    """

    num_drafted: int
    num_accepted: int
    draft_seconds: float
    verify_seconds: float
    drafter: str = "none"
    evaluated: int = 0


class DraftLength(Protocol):
    """Chooses γ, round by round and draw by draw."""

    @property
    def reason(self) -> str | None:
        """Why the length changed this round, in words for a person; None where nothing changed."""

    def begin_round(self, limit: int) -> int:
        """The largest number of tokens to draft this round, at most ``limit``; 0 decodes plainly.

        ``limit`` is what the context, the pass size and the tokens left to write allow.
        """

    def pays(self, behind: int) -> bool:
        """Whether to ask a draft model in this round. It must read ``behind`` tokens before it can propose."""

    def more(self, num_drawn: int, q: Distribution, logits: NDArray[np.float32] | None = None) -> bool:
        """Whether to draw one more token from ``q``, after ``num_drawn`` of this round.

        ``logits`` are those that q was made of, ``[n_vocab]``: they tell how sure the draft is also where truncation
        or temperature 0 left one token in q. None where there are none.
        """

    def go_on(self, num_drawn: int, probability: float) -> bool:
        """Whether the draft model shall be asked once more, after ``num_drawn`` tokens of this round.

        ``probability`` is that of the last one in its q. The answer costs a step of the draft model if it is yes,
        whatever `more` says then.
        """

    def could_use(self, chance: float) -> bool:
        """Whether a proposal that costs nothing could pay if its first token has this chance and all others were sure.

        Where it could not, nobody needs to think of the others.
        """

    def choose(self, chances: Sequence[float]) -> int:
        """How many of a proposal's tokens to use, where all are known beforehand and cost nothing (n-gram, copy).

        ``chances[i]`` is the proposer's estimate of P(token i is kept | all before it were). Asked instead of `more`.
        """

    def observe_reading(self, num_tokens: int, seconds: float) -> None:
        """A draft model has read so many tokens ahead of the round that begins, outside of its time."""

    def observe(self, outcome: RoundOutcome) -> None:
        """Learns what a finished round cost and kept, also one in which nothing was drafted."""


class FixedLength:
    """Always γ tokens, context permitting.

    Of two drafters the one that is expected to have more tokens kept proposes: a free proposal is taken unless the
    draft model has lately done better than it promises.
    """

    reason: str | None = None

    def __init__(self, num_draft_tokens: int) -> None:
        if num_draft_tokens < 0:
            raise ValueError("the number of draft tokens cannot be negative")
        self.num_draft_tokens = num_draft_tokens
        self._model_keeps: float | None = None
        self._model_can = False

    def begin_round(self, limit: int) -> int:
        """γ, or what there is room for."""
        self._model_can = False
        return min(self.num_draft_tokens, limit)

    def pays(self, behind: int) -> bool:
        """Always: that many tokens are wanted in every round."""
        self._model_can = True
        return True

    def more(self, num_drawn: int, q: Distribution, logits: NDArray[np.float32] | None = None) -> bool:
        """Always: `begin_round` has settled the length."""
        return True

    def go_on(self, num_drawn: int, probability: float) -> bool:
        """Always: `begin_round` has settled the length."""
        return True

    def could_use(self, chance: float) -> bool:
        """Always: `begin_round` has settled the length."""
        return True

    def choose(self, chances: Sequence[float]) -> int:
        """All that are proposed, as far as γ goes, or none where a draft model can propose and promises more."""
        kept = math.fsum(accumulate(chances[: self.num_draft_tokens], mul))
        if self._model_can and self._model_keeps is not None and kept < self._model_keeps:
            return 0
        return min(len(chances), self.num_draft_tokens)

    def observe_reading(self, num_tokens: int, seconds: float) -> None:
        """Costs change nothing here."""

    def observe(self, outcome: RoundOutcome) -> None:
        """Learns how many tokens of the draft model are kept."""
        if outcome.drafter == "draft" and outcome.num_drafted:
            before = outcome.num_accepted if self._model_keeps is None else self._model_keeps
            self._model_keeps = before + _MEMORY * (outcome.num_accepted - before)
