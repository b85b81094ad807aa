"""A drafter without a model for replies that copy: code that is changed, a text that is corrected or quoted.

It keeps its place in what was said before while the reply follows it, also across a substitution, an insertion or a
deletion, writes substitutions that it has seen, and expects changes where the reply has made such changes before. What
it proposes is known in whole before the target looks at it, with an honest chance for each token, so the length rule
can use exactly as much of it as pays. Its q is one-hot, so the token rule's threshold is p of the proposed token, and
the reply follows the target's distribution whatever is proposed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from specchat.backends.base import NO_DRAFT, Draft, Vocabulary
from specchat.backends.copy_candidates import Candidates
from specchat.backends.copy_chances import Candidate, Chances
from specchat.backends.copy_edits import Edits
from specchat.backends.copy_places import Reading
from specchat.backends.copy_substitutions import Substitutions
from specchat.backends.copy_text import Text
from specchat.core.draft_length import DraftLength
from specchat.core.events import Prefill
from specchat.core.sampling import Distribution, SamplingParams

_NEGLIGIBLE = 0.1
"""What is less likely than this to be reached is not thought of."""
_MOST_DISTRIBUTIONS = 4096
_PROMPT = 1024
"""How much of what was said last may tell what is to be written for what."""


class CopyDrafter:
    """Proposes what the reply copies, and what repeats itself in it.

    Args:
        vocabulary: the target's tokens.
        chances: what it knows of how likely its tokens are kept.
    """

    name = "ngram"

    def __init__(self, vocabulary: Vocabulary, chances: Chances | None = None) -> None:
        self._vocabulary = vocabulary
        self._text = Text(vocabulary)
        self._chances = Chances() if chances is None else chances
        self._one_hot: dict[int, Distribution] = {}
        self._begin_reply()

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
        """Up to ``limit`` tokens, as many as ``length`` chooses; none where nothing in the text points anywhere."""
        self._follow(context)
        tokens, chances = self._think(limit, length)
        chosen = tuple(tokens[: length.choose(chances)]) if tokens else ()
        if not chosen:
            return NO_DRAFT
        return Draft(chosen, tuple(map(self._certain, chosen)), self.name)

    def observe(self, draft: Draft, num_accepted: int, committed: Sequence[int]) -> None:
        """It learns from the context alone."""

    def _begin_reply(self) -> None:
        self._reading = Reading(self._text, Edits(), Substitutions(self._vocabulary))
        self._candidates = Candidates(self._reading, self._chances)
        self._claims: list[tuple[int, list[Candidate]]] = []

    def _follow(self, context: Sequence[int]) -> None:
        """Learns from what was committed since the last proposal."""
        is_new, committed = self._text.follow(context)
        if is_new:
            self._chances.begin_reply()
            self._begin_reply()
            self._reading.substitutions.expect(*self._text.prompt(_PROMPT))
        claims = iter(self._claims)
        follows = True
        for token in committed:
            # what was claimed after these very tokens is judged, whether it was used or not
            claim = next(claims, None) if follows else None
            candidates = self._candidates() if claim is None else claim[1]
            follows = claim is not None and claim[0] == token
            if candidates:
                self._chances.learn(candidates, token)
            self._reading.advance(token)

    def _think(self, limit: int, length: DraftLength) -> tuple[list[int], list[float]]:
        """The likeliest way on, and the chance of each token after the ones before it; not on where it cannot pay."""
        tokens: list[int] = []
        chances: list[float] = []
        reached = 1.0
        self._claims = []
        self._reading.think()
        while len(tokens) < limit and (candidates := self._candidates()):
            token, chance = self._chances.best(candidates)
            tokens.append(token)
            chances.append(chance)
            self._claims.append((token, candidates))
            reached *= chance
            if len(tokens) == limit or reached < _NEGLIGIBLE or self._text.is_control(token):
                break
            if len(tokens) == 1 and not length.could_use(chance):
                break
            self._reading.advance(token)
        self._reading.forget()
        return tokens, chances

    def _certain(self, token: int) -> Distribution:
        if len(self._one_hot) > _MOST_DISTRIBUTIONS:
            self._one_hot.clear()
        if token not in self._one_hot:
            self._one_hot[token] = Distribution.one_hot(token)
        return self._one_hot[token]
