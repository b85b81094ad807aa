"""A drafter without a model: what followed the same words before will follow them again (prompt lookup).

It proposes with certainty, so its q is one-hot, and the token rule's threshold is p of the proposed token. Nothing
else changes: the reply follows the target's distribution whatever is proposed. The longer the text has agreed, the
likelier the next token agrees too: how likely is learned from every proposal, used or not, and told to the length
rule.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

from specchat.backends.base import NO_DRAFT, Draft, common_prefix
from specchat.core.draft_length import DraftLength
from specchat.core.events import Prefill
from specchat.core.sampling import Distribution, SamplingParams

_MOST_PLACES = 32
"""How many earlier places are compared. The latest ones: what was said last is the likeliest to be repeated."""
_LENGTHS = (3, 4, 6, 9, 14, 22)
"""Matches of up to so many tokens are counted together; longer ones too."""
_FIRST_CHANCES = (0.55, 0.7, 0.73, 0.84, 0.92, 0.95, 0.96)
"""How likely a match of each of these lengths goes on: greedy replies of a 1.5B model to the prompts of the bench."""
_MEMORY = 0.05
"""How much the latest verdict counts."""


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
        self._chances = list(_FIRST_CHANCES)
        self._proposal: Sequence[int] = ()
        self._matched = 0
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
        start, self._matched = self._best_place(context)
        proposal = list(context[start : start + limit]) if self._matched else []
        end = next((i + 1 for i, token in enumerate(proposal) if self._is_end(token)), len(proposal))
        self._proposal = proposal[:end]
        if not proposal:
            return NO_DRAFT
        chances = [self._chances[bisect_left(_LENGTHS, self._matched + i)] for i in range(end)]
        tokens = tuple(proposal[: length.choose(chances)])
        return Draft(tokens, tuple(map(Distribution.one_hot, tokens)), self.name)

    def observe(self, draft: Draft, num_accepted: int, committed: Sequence[int]) -> None:
        """It learns from the context alone."""

    def _index(self, context: Sequence[int]) -> None:
        """Brings the table of places up to the context. A chat that was edited starts it anew."""
        if common_prefix(self._seen, context) < len(self._seen):
            self._seen.clear()
            self._places.clear()
        first = len(self._seen)
        if first:
            self._learn(context[first : first + len(self._proposal)])
        self._seen.extend(context[first:])
        for end in range(max(first, self._min_match), len(self._seen)):
            self._places[tuple(self._seen[end - self._min_match : end])].append(end)

    def _learn(self, committed: Sequence[int]) -> None:
        """The last proposal against what was written. Whoever drafted, a token is written with the probability p."""
        for i, (proposed, written) in enumerate(zip(self._proposal, committed, strict=False)):
            group = bisect_left(_LENGTHS, self._matched + i)
            self._chances[group] += _MEMORY * ((proposed == written) - self._chances[group])
            if proposed != written:
                break

    def _best_place(self, context: Sequence[int]) -> tuple[int, int]:
        """Where the text goes on after the longest earlier match, and its length: 0 where nothing matches.

        The latest one in a tie.
        """
        places = self._places.get(tuple(context[-self._min_match :]), [])
        best, longest = 0, 0
        for place in reversed(places[-_MOST_PLACES:]):
            match = self._match(context, place)
            if match > longest:
                best, longest = place, match
        return best, longest

    def _match(self, context: Sequence[int], place: int) -> int:
        """How many tokens before ``place`` agree with the end of the context."""
        most = min(self._max_match, place)
        for i in range(self._min_match, most):
            if context[place - 1 - i] != context[-1 - i]:
                return i
        return most
