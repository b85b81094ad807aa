"""How fast plain decoding is here: the baseline that every speedup is measured against.

A machine's speed changes with what else it does, so the baseline is renewed: with a few plain steps before a reply,
and free of charge from the rounds of a reply in which nothing was drafted.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from specchat.backends.base import Interrupted, LanguageModel, PassInput, bring_to
from specchat.core.events import PlainSpeed, Round
from specchat.core.sampling import SamplingParams, distribution

PLAIN_STEPS = 8
"""Plain steps that are enough for a median."""


def measure_plain_speed(
    target: LanguageModel,
    prompt: Sequence[int],
    params: SamplingParams,
    sequence: int = 0,
    should_stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.perf_counter,
) -> PlainSpeed | None:
    """Plain decoding's speed on this very prompt: the median of a few steps, which are then rolled back.

    The steps draw with a generator of their own, so that the reply does not depend on whether they were made.
    None where the context has no room for them.

    Raises:
        Interrupted: ``should_stop()`` was true.
    """
    steps = min(PLAIN_STEPS, target.n_ctx - len(prompt) - 1)
    if steps < 1:
        return None
    rng = np.random.default_rng(0)
    tokens = list(prompt)
    seconds = []
    for _ in range(steps + 1):
        if should_stop():
            raise Interrupted
        before = clock()
        logits = target.decode([PassInput(sequence, tokens[-1:], 1)])[0]
        tokens.append(distribution(logits[0], params, tokens).sample(rng))
        seconds.append(clock() - before)
    bring_to(target, sequence, prompt[:-1])
    # the first one may still wait for memory
    return _speed(seconds[1:], f"{steps} plain steps before this reply")


def remembered(speed: PlainSpeed) -> PlainSpeed:
    """The same for another reply, of which it must not say that it was measured there."""
    return replace(speed, source=speed.source.replace("this reply", "a past reply"))


class PlainRounds:
    """The rounds of a reply in which nothing was drafted. What looking for a draft took does not count."""

    def __init__(self) -> None:
        self._seconds: list[float] = []

    def add(self, played: Round) -> None:
        """Takes note of a round, if it is one."""
        if played.num_draft_tokens == 0:
            self._seconds.append(played.seconds.verify + played.seconds.sample)

    def speed(self) -> PlainSpeed | None:
        """The plain speed during this reply; None where there were too few such rounds to tell."""
        rounds = len(self._seconds)
        return _speed(self._seconds, f"{rounds} plain rounds of this reply") if rounds >= PLAIN_STEPS else None


def _speed(seconds: Sequence[float], source: str) -> PlainSpeed | None:
    median = statistics.median(seconds)
    return PlainSpeed(1 / median, len(seconds), source) if median > 0 else None
