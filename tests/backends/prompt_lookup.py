"""Prompt lookup as others do it: what followed the longest earlier match of the last tokens is proposed.

A drafter whose proposals a test can foresee, and what `specchat.backends.copying` has to beat.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from specchat.backends.base import NO_DRAFT, Draft
from specchat.core.draft_length import DraftLength
from specchat.core.events import Prefill
from specchat.core.sampling import Distribution, SamplingParams

_LONGEST_MATCH = 32


class PromptLookup:
    """The longest earlier match of at least ``min_match`` tokens, the latest in a tie; each token has ``chance``."""

    name = "ngram"

    def __init__(self, min_match: int = 3, chance: float = 0.8) -> None:
        self._min_match = min_match
        self._chance = chance

    def behind(self, context: Sequence[int]) -> int:
        return 0

    def prefill(self, prompt: Sequence[int], should_stop: Callable[[], bool]) -> Prefill | None:
        return None

    def propose(
        self,
        context: Sequence[int],
        length: DraftLength,
        limit: int,
        params: SamplingParams,
        rng: np.random.Generator,
    ) -> Draft:
        context = list(context)
        place = self._place(context)
        if place is None or not limit:
            return NO_DRAFT
        proposal = context[place : place + limit]
        tokens = tuple(proposal[: length.choose([self._chance] * len(proposal))])
        return Draft(tokens, tuple(map(Distribution.one_hot, tokens)), self.name) if tokens else NO_DRAFT

    def observe(self, draft: Draft, num_accepted: int, committed: Sequence[int]) -> None:
        pass

    def _place(self, context: list[int]) -> int | None:
        """Where the text went on; None where too little agrees."""
        best, longest = None, self._min_match - 1
        for place in range(len(context) - 1, self._min_match - 1, -1):
            if context[place - self._min_match : place] != context[-self._min_match :]:
                continue
            most = min(_LONGEST_MATCH, place)
            match = next((i for i in range(most) if context[place - 1 - i] != context[-1 - i]), most)
            if match > longest:
                best, longest = place, match
        return best
