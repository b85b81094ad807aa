"""A toy target and two drafts, run by the very loop that runs llama.cpp's models: for ``specchat verify --toy``.

Its law is known, so what it writes can be held against it. One draft is that of the seed text, the target itself,
blurred; the other one is a stranger, which is refused so often that mistakes in refusing show. Time is simulated, so
that a length rule that looks at the clock chooses the same on every machine: the same settings write the same reply.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from specchat.backends.base import PassInput
from specchat.backends.draft_model import ModelDrafter
from specchat.backends.markov import MarkovModel, toy_pair
from specchat.core.adaptive_length import AdaptiveLength
from specchat.core.draft_length import DraftLength, FixedLength
from specchat.core.events import Event
from specchat.core.experience import Experience
from specchat.core.settings import ReplySettings
from specchat.core.verification import rule_named
from specchat.decoding.decoder import generate
from specchat.decoding.rounds import RoundPlan

START = 0
"""The state that every reply follows."""
_STRANGER_SEED = 7
_LONGEST = 8
"""The largest γ where it is chosen by what pays."""
_TARGET_SECONDS, _DRAFT_SECONDS = 1.0, 0.15
_TOKEN_SHARE = 0.05
"""What each further token of a pass costs, as a share of the first."""


class _Clock:
    """Simulated seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class _TimedModel(MarkovModel):
    """A Markov model whose passes take simulated time."""

    def __init__(self, transitions: NDArray[np.float64], clock: _Clock, seconds: float) -> None:
        super().__init__(transitions)
        self._clock = clock
        self._seconds = seconds

    def decode(self, inputs: Sequence[PassInput]) -> list[NDArray[np.float32]]:
        """See `MarkovModel.decode`."""
        num_tokens = sum(len(each.tokens) for each in inputs)
        self._clock.now += self._seconds * (1 + _TOKEN_SHARE * (num_tokens - 1))
        return super().decode(inputs)


def toy_laws() -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """What the target draws from at temperature 1, and the drafts, by name: "blurred" and "stranger".

    Row i of a ``[n, n]`` matrix is what follows state i.
    """
    target, blurred = toy_pair()
    stranger, _ = toy_pair(_STRANGER_SEED)
    return target.transitions, {"blurred": blurred.transitions, "stranger": stranger.transitions}


def write_toy(settings: ReplySettings) -> Iterator[Event]:
    """Writes one reply that follows `START`, speculatively, and never ends by itself.

    Args:
        settings: the drafter is one of those that `toy_laws` names. γ None stands for the adaptive length rule, which
            drafts nothing where that does not pay. The mode does not matter.
    """
    clock = _Clock()
    law, drafts = toy_laws()
    target = _TimedModel(law, clock, _TARGET_SECONDS)
    draft = _TimedModel(drafts[settings.drafter], clock, _DRAFT_SECONDS)
    drafter = ModelDrafter(draft, target.vocabulary.n_vocab, clock=clock)
    plan = RoundPlan(settings.sampling, drafter, _length(settings.num_draft_tokens), rule_named(settings.rule))
    rng = np.random.default_rng(settings.seed)
    return generate(target, [START], plan, rng, max_tokens=settings.max_tokens, clock=clock)


def _length(num_draft_tokens: int | None) -> DraftLength:
    if num_draft_tokens is None:
        return AdaptiveLength(Experience(_TOKEN_SHARE, _DRAFT_SECONDS / _TARGET_SECONDS), most=_LONGEST)
    return FixedLength(num_draft_tokens)
