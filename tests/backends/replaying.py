"""Plays a drafter over a recorded reply, with what passes cost on two CPU cores: no model, no clock, no luck.

The target keeps a token that is proposed with certainty exactly when it is the one that it would have written: always
so at temperature 0, and with the same odds at others. So a recorded reply tells what would have become of any proposal.
Costs are in plain steps, T(n)/T(1) of the default target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from specchat.backends.base import Drafter
from specchat.core.adaptive_length import AdaptiveLength
from specchat.core.draft_length import DraftLength, RoundOutcome
from specchat.core.experience import Experience
from specchat.core.sampling import SamplingParams
from specchat.core.theory import RoundCosts
from tests.backends.recorded_replies import Reply

TWO_CORES = RoundCosts(
    {1: 1, 2: 1.64, 3: 2.2, 4: 2.7, 5: 3.3, 6: 3.9, 8: 6.2, 9: 6.7, 12: 7.7, 16: 7.2, 17: 8.5, 32: 12.1}
)
"""What passes of the default target cost on two AVX-512 cores; those between the measured sizes on lines."""
LARGEST_PASS = 32
"""The largest whose cost is known. The engine makes room for one more."""


@dataclass
class Played:
    """What a drafter brought: ``tokens`` written at ``cost`` plain steps, in ``rounds`` of (drafted, kept)."""

    tokens: int = 0
    cost: float = 0.0
    rounds: list[tuple[int, int]] = field(default_factory=list)

    @property
    def speedup(self) -> float:
        """Against plain decoding, which costs 1 a token."""
        return self.tokens / self.cost

    @classmethod
    def together(cls, parts: Iterable[Played]) -> Played:
        """As one long reply."""
        whole = cls()
        for part in parts:
            whole.tokens += part.tokens
            whole.cost += part.cost
            whole.rounds += part.rounds
        return whole


def fast() -> AdaptiveLength:
    """The length rule of *fast* on this machine, before its first reply."""
    experience = Experience()
    experience.target.learn(TWO_CORES.passes)
    return AdaptiveLength(experience)


def play(reply: Reply, drafter: Drafter, length: DraftLength, largest_pass: int = LARGEST_PASS) -> Played:
    """Replays one reply. The drafter sees committed tokens only."""
    rng, params = np.random.default_rng(0), SamplingParams(temperature=reply.temperature)
    context, left, played = list(reply.prompt), list(reply.tokens), Played()
    while left:
        limit = length.begin_round(min(largest_pass, len(left)) - 1)
        draft = drafter.propose(context, length, limit, params, rng) if limit else None
        proposed: Sequence[int] = () if draft is None else draft.tokens
        kept = next((i for i, token in enumerate(proposed) if token != left[i]), len(proposed))
        committed, left = left[: kept + 1], left[kept + 1 :]
        cost = TWO_CORES.verify(len(proposed) + 1)
        length.observe(RoundOutcome(len(proposed), kept, 0.0, cost, drafter.name if proposed else "none"))
        context.extend(committed)
        played.tokens += len(committed)
        played.cost += cost
        played.rounds.append((len(proposed), kept))
    return played


def hindsight(right: Sequence[int], largest_pass: int = LARGEST_PASS) -> float:
    """The speedup of the best lengths, had it been known how many tokens of each proposal are right.

    Args:
        right: at each token of the reply, how many of the tokens proposed there are.
        largest_pass: how many tokens a pass takes at most.
    """
    cost = [0.0] * (len(right) + 1)  # of the rest of the reply
    for here in reversed(range(len(right))):
        sizes = (size for size in TWO_CORES.passes if size <= min(largest_pass, len(right) - here))
        cost[here] = min(TWO_CORES.passes[size] + cost[here + min(size - 1, right[here]) + 1] for size in sizes)
    return len(right) / cost[0]
