"""What a round leaves behind for the screen and the record: texts, fates, the largest entries of p, q, residual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specchat.backends.base import Draft, Vocabulary
from specchat.core.events import Candidate, DraftedToken, Fate, PositionDetail
from specchat.core.sampling import Distribution
from specchat.core.verification import VerificationRule, fates
from specchat.decoding.detokenizer import TextStream

NUM_CANDIDATES = 10
"""How many of the largest entries of a distribution a round's details hold."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a block was judged: ``thresholds`` and ``draws`` by position, and the token drawn after those kept.

    ``following`` is None where the last token kept ends the reply.
    """

    thresholds: NDArray[np.float64]
    draws: NDArray[np.float64]
    num_accepted: int
    following: int | None


class TokenTexts:
    """The bytes and the texts of single tokens, each asked of the vocabulary once."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._pieces: dict[int, bytes] = {}
        self._visible: dict[int, bytes] = {}
        self._names: dict[int, str] = {}

    def piece(self, token: int) -> bytes:
        """The bytes that the token stands for; a control token's are its name."""
        found = self._pieces.get(token)
        if found is None:
            found = self._pieces[token] = self._vocabulary.piece(token)
        return found

    def visible(self, token: int) -> bytes:
        """The bytes that the token adds to the text: none for a control token."""
        found = self._visible.get(token)
        if found is None:
            found = self._visible[token] = b"" if self._vocabulary.is_control(token) else self.piece(token)
        return found

    def name(self, token: int) -> str:
        """The token alone as text; an incomplete character shows as U+FFFD."""
        found = self._names.get(token)
        if found is None:
            found = self._names[token] = self.piece(token).decode("utf-8", "replace")
        return found

    def following(self, stream: TextStream, tokens: Sequence[int]) -> list[str]:
        """The characters that each of these tokens would complete after what the stream has seen."""
        fork = stream.fork()
        return [fork.push(self.visible(token)) for token in tokens]


def drafted_tokens(
    draft: Draft,
    p: Sequence[Distribution],
    verdict: Verdict,
    texts: Sequence[str],
    num_committed: int,
    tokens: TokenTexts,
) -> tuple[DraftedToken, ...]:
    """The drafted tokens with their fates; what was kept but lies behind the end of the reply counts as ignored."""
    judged = list(fates(verdict.num_accepted, len(draft)))
    judged[num_committed : verdict.num_accepted] = [Fate.IGNORED] * max(0, verdict.num_accepted - num_committed)
    thresholds, draws = verdict.thresholds.tolist(), verdict.draws.tolist()
    return tuple(
        DraftedToken(
            id=token,
            bytes=tokens.piece(token),
            text=texts[i],
            drafter=draft.drafter,
            q=draft.q[i].probability(token),
            p=p[i].probability(token),
            threshold=thresholds[i],
            draw=draws[i],
            fate=judged[i],
        )
        for i, token in enumerate(draft.tokens)
    )


def position_details(
    rule: VerificationRule,
    draft: Draft,
    p: Sequence[Distribution],
    thresholds: NDArray[np.float64],
    tokens: TokenTexts,
) -> tuple[PositionDetail, ...]:
    """The largest entries at every position, the residual being what a rejection there would draw from."""

    def largest(distribution: Distribution) -> tuple[Candidate, ...]:
        return tuple(Candidate(token, tokens.name(token), prob) for token, prob in distribution.top(NUM_CANDIDATES))

    joint = rule.joint_ratios(draft.tokens, draft.q, p)
    positions = [
        PositionDetail(
            p=largest(p[i]),
            q=largest(draft.q[i]),
            residual=largest(rule.next_distribution(i, draft.tokens, draft.q, p)),
            pi=None if joint is None else float(joint[i]),
            h=None if joint is None else float(thresholds[i]),
        )
        for i in range(len(draft))
    ]
    return (*positions, PositionDetail(p=largest(p[len(draft)]), q=(), residual=()))
