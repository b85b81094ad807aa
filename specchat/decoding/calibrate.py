"""What passes of a loaded model cost here.

The cost of a pass is neither smooth nor monotonic in its size (16 tokens can be cheaper than 12), so each size is
measured and no line is fitted. Sizes take turns, so that a slow moment of the machine falls on all of them alike.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from specchat.backends.base import Interrupted, LanguageModel, PassInput, bring_to

CONTEXT_TOKENS = 128
"""How many tokens stand before a measured pass, where the cache holds fewer: attention is part of the cost."""


@dataclass(frozen=True, slots=True)
class DraftCosts:
    """What a draft model costs: a step of one token, and how much longer a step of two takes (its catch-up)."""

    step_seconds: float
    catch_up_seconds: float


def measure_pass_seconds(
    model: LanguageModel,
    sizes: Sequence[int],
    filler: Sequence[int],
    *,
    repetitions: int = 5,
    all_logits: bool = True,
    sequence: int = 0,
    should_stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[float], None] = lambda _: None,
    patience: float = math.inf,
    before_each: Callable[[], object] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[int, float]:
    """The median time of a pass, by the number of its tokens.

    What the cache holds for the sequence is there again afterwards, also after an error or an interruption.

    Args:
        model: target or draft.
        sizes: numbers of tokens in a pass; those that the model cannot take are left out. One that is named more than
            once is measured more often.
        filler: tokens to evaluate, repeated as often as needed. What they are does not matter to the cost.
        repetitions: how often each size is measured, after one round that is not counted.
        all_logits: whether a pass returns logits for all of its tokens, as verification does, or for the last one.
        sequence: which of the model's sequences to use.
        should_stop: asked before each pass.
        on_progress: told after each size how much has been measured, 0 to 1.
        patience: seconds after which no other repetition is begun, once each size has been measured.
        before_each: done before each pass, and not counted.
        clock: seconds; another clock simulates other costs.

    Returns:
        Seconds by size, in the order of ``sizes``.

    Raises:
        DecodeError: the model refused.
        Interrupted: ``should_stop()`` was true.
        ValueError: there is nothing to evaluate.
    """
    if not filler:
        raise ValueError("measuring needs tokens to evaluate")
    held = list(model.tokens(sequence))
    before = _context(held, filler, model.n_ctx - max(sizes, default=0))
    most = min(model.max_batch, model.max_logits if all_logits else model.max_batch, model.n_ctx - len(before))
    possible = [size for size in sizes if 0 < size <= most]
    seconds: dict[int, list[float]] = {size: [] for size in possible}
    began_all = clock()
    try:
        for repetition in range(repetitions + 1):
            if repetition > 1 and clock() - began_all > patience:
                break
            for index, size in enumerate(possible):
                bring_to(model, sequence, before, should_stop)
                if should_stop():
                    raise Interrupted
                tokens = _repeated(filler, size)
                before_each()
                began = clock()
                model.decode([PassInput(sequence, tokens, size if all_logits else 1)])
                if repetition > 0:
                    seconds[size].append(clock() - began)
                on_progress((repetition + (index + 1) / len(possible)) / (repetitions + 1))
    finally:
        bring_to(model, sequence, held)
    return {size: statistics.median(times) for size, times in seconds.items()}


def measure_draft_costs(
    model: LanguageModel,
    filler: Sequence[int],
    *,
    repetitions: int = 5,
    sequence: int = 0,
    should_stop: Callable[[], bool] = lambda: False,
    before_each: Callable[[], object] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> DraftCosts:
    """What drafting a token with this model costs. Arguments and errors as of `measure_pass_seconds`.

    ``before_each`` should be a pass of the target: what a draft finds in the processor's caches is the target's.
    """
    seconds = measure_pass_seconds(
        model,
        (1, 2),
        filler,
        repetitions=repetitions,
        all_logits=False,
        sequence=sequence,
        should_stop=should_stop,
        before_each=before_each,
        clock=clock,
    )
    return DraftCosts(seconds[1], seconds[2] - seconds[1])


def _context(held: list[int], filler: Sequence[int], most: int) -> list[int]:
    """What stands before the measured passes: the cache as it is, made longer or shorter where it has to be."""
    missing = CONTEXT_TOKENS - len(held)
    return [*held, *_repeated(filler, missing)][: max(0, most)] if missing > 0 else held[: max(0, most)]


def _repeated(filler: Sequence[int], count: int) -> list[int]:
    return [filler[i % len(filler)] for i in range(count)]
