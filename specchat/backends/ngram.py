"""A drafter without a model: what followed the same words before will follow them again (prompt lookup).

It proposes with certainty, so its q is one-hot, and the token rule's threshold is p of the proposed token. Nothing
else changes: the reply follows the target's distribution whatever is proposed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from specchat.backends.base import NO_DRAFT, Draft, common_prefix
from specchat.core.draft_length import DraftLength
from specchat.core.events import Prefill
from specchat.core.sampling import Distribution, SamplingParams

_MOST_PLACES = 32
"""How many earlier places are compared. The latest ones: what was said last is the likeliest to be repeated."""


class NgramDrafter:
    """Looks for the longest earlier occurrence of the last tokens and proposes what followed it.

    Args:
        is_end: whether a token ends a reply; nothing is proposed after one.
        min_match: how many tokens must agree at least.
        max_match: how many are compared at most.
    """

    name = "ngram"

    def __init__(self, is_end: Callable[[int], bool], *, min_match: int = 3, max_match: int = 32) -> None:
        if not 1 <= min_match <= max_match:
            raise ValueError("an n-gram match must have at least one token and at most max_match")
        self._is_end = is_end
        self._min_match = min_match
        self._max_match = max_match
        self._seen: list[int] = []
        self._places: dict[tuple[int, ...], list[int]] = defaultdict(list)

    def behind(self, context: Sequence[int]) -> int:
        """There is no model that could be behind."""
        return 0

    def prefill(self, prompt: Sequence[int], should_stop: Callable[[], bool]) -> Prefill | None:
        """There is nothing to read ahead."""
        return None

    def propose(
        self,
        context: Sequence[int],
        length: DraftLength,
        limit: int,
        params: SamplingParams,
        rng: np.random.Generator,
    ) -> Draft:
        """Up to ``limit`` tokens that followed the longest earlier match; none where nothing matches."""
        self._index(context)
        start = self._best_place(context)
        if start is None:
            return NO_DRAFT
        tokens: list[int] = []
        q: list[Distribution] = []
        for token in context[start : start + limit]:
            certain = Distribution.one_hot(token)
            if not length.more(len(tokens), certain):
                break
            tokens.append(token)
            q.append(certain)
            if self._is_end(token):
                break
        return Draft(tuple(tokens), tuple(q), self.name)

    def observe(self, draft: Draft, num_accepted: int, committed: Sequence[int]) -> None:
        """It learns from the context alone."""

    def _index(self, context: Sequence[int]) -> None:
        """Brings the table of places up to the context. A chat that was edited starts it anew."""
        if common_prefix(self._seen, context) < len(self._seen):
            self._seen.clear()
            self._places.clear()
        first = len(self._seen)
        self._seen.extend(context[first:])
        for end in range(max(first, self._min_match), len(self._seen)):
            self._places[tuple(self._seen[end - self._min_match : end])].append(end)

    def _best_place(self, context: Sequence[int]) -> int | None:
        """Where the text goes on after the longest earlier match; the latest one in a tie."""
        places = self._places.get(tuple(context[-self._min_match :]), [])
        best, longest = None, 0
        for place in reversed(places[-_MOST_PLACES:]):
            match = self._match(context, place)
            if match > longest:
                best, longest = place, match
        return best

    def _match(self, context: Sequence[int], place: int) -> int:
        """How many tokens before ``place`` agree with the end of the context."""
        most = min(self._max_match, place)
        for i in range(self._min_match, most):
            if context[place - 1 - i] != context[-1 - i]:
                return i
        return most
