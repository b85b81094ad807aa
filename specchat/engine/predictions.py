"""What each drafter would bring on this machine, from what was measured: pure functions of costs and replies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from specchat.backends.base import Drafter
from specchat.core.draft_length import FixedLength
from specchat.core.sampling_params import SamplingParams
from specchat.core.theory import Acceptance, RoundCosts, predicted_speedup
from specchat.engine.interface import Prediction

_LEAST_GAIN = 1.03
"""What is predicted to gain less is not worth recommending: the measurement is not that exact."""


def predict_model(acceptance: Acceptance, costs: RoundCosts, lengths: Iterable[int]) -> list[Prediction]:
    """The draft model at each γ, from α by position."""
    return [Prediction("draft", length, predicted_speedup(acceptance, length, costs)) for length in lengths]


def predict_free(
    drafter: Drafter,
    replies: Sequence[tuple[Sequence[int], Sequence[int]]],
    costs: RoundCosts,
    lengths: Iterable[int],
) -> list[Prediction]:
    """A drafter that costs nothing at each γ, by replaying replies: how many passes would they have taken?

    Args:
        drafter: proposes from the text alone.
        replies: prompts and the replies to them, written by the target. Sampled ones serve too: a token that is
            proposed with certainty is kept with the probability that the target writes it.
        costs: of passes by size.
        lengths: the γ.
    """
    found = []
    for length in lengths:
        tokens = cost = 0.0
        for prompt, reply in replies:
            tokens += len(reply)
            cost += sum(costs.verify(drafted + 1) for drafted in _replay(drafter, prompt, reply, length))
        found.append(Prediction(drafter.name, length, tokens / cost if cost else 1.0))
    return found


def recommend(predictions: Iterable[Prediction]) -> Prediction:
    """The fastest; plain decoding where nothing gains enough to be sure of it."""
    best = max(predictions, key=lambda each: each.speedup, default=None)
    return best if best is not None and best.speedup >= _LEAST_GAIN else Prediction("none", 0, 1.0)


def _replay(drafter: Drafter, prompt: Sequence[int], reply: Sequence[int], num_draft_tokens: int) -> Iterable[int]:
    """How many tokens each round would have drafted."""
    context, written, rng = list(prompt), 0, np.random.default_rng(0)
    rule, params = FixedLength(num_draft_tokens), SamplingParams(temperature=0)
    while written < len(reply):
        limit = rule.begin_round(len(reply) - written - 1)
        draft = drafter.propose(context, rule, limit, params, rng) if limit else None
        proposed = draft.tokens if draft is not None else ()
        kept = next((i for i, token in enumerate(proposed) if token != reply[written + i]), len(proposed))
        context.extend(reply[written : written + kept + 1])
        written += kept + 1
        yield len(proposed)
