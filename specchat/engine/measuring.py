"""The answer to `Calibrate`: what the loaded pair costs and how much of its drafts is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from specchat.backends.base import Interrupted, bring_to
from specchat.core.draft_length import FixedLength
from specchat.core.events import Finished, PlainSpeed, Round
from specchat.core.sampling import SamplingParams
from specchat.core.settings import ChatMessage
from specchat.core.stats import RoundTotals
from specchat.core.verification import rule_named
from specchat.decoding.calibrate import measure_draft_costs, measure_pass_seconds
from specchat.decoding.decoder import generate
from specchat.decoding.prompt import render_prompt
from specchat.decoding.rounds import RoundPlan
from specchat.engine.interface import Calibration, Progress
from specchat.engine.pair import LoadedPair
from specchat.errors import DecodeError

PROMPTS = (
    "Write a Python function that returns the n-th Fibonacci number, with a docstring.",
    "Why is the sky blue? Answer in a few sentences.",
    "A train travels 180 km in 2.5 hours. What is its average speed? Show your work.",
    "List ten European capitals with their countries.",
)
_NUM_DRAFT_TOKENS = 4
_QUICK_SIZES = (1, 2, 3, 4, 5, 6, 8)
_ALL_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 32)


def calibrate(
    pair: LoadedPair,
    *,
    quick: bool,
    on_progress: Callable[[Progress], None],
    should_stop: Callable[[], bool],
) -> Calibration:
    """Measures the cost of passes by size, the draft's step, and acceptance by position over a few short replies.

    The caches hold afterwards what they held before. ``quick`` takes fewer sizes, repetitions and replies.

    Raises:
        Interrupted: ``should_stop()`` was true.
        DecodeError: a model refused.
    """
    target = pair.target
    models = [target] if pair.draft is None else [target, pair.draft]
    held = [list(model.tokens()) for model in models]
    filler = target.vocabulary.tokenize(" ".join(PROMPTS), parse_special=False)
    repetitions = 3 if quick else 7
    try:
        on_progress(Progress("measuring passes of the target", 0.0))
        seconds = measure_pass_seconds(
            target, _QUICK_SIZES if quick else _ALL_SIZES, filler, repetitions=repetitions, should_stop=should_stop
        )
        costs = None
        if pair.draft is not None:
            on_progress(Progress("measuring the draft's steps", 0.3))
            costs = measure_draft_costs(pair.draft, filler, repetitions=repetitions, should_stop=should_stop)
        prompts, length = (PROMPTS[:2], 32) if quick else (PROMPTS, 96)
        speed, acceptance = _short_replies(pair, prompts, length, on_progress, should_stop)
    finally:
        for model, tokens in zip(models, held, strict=True):
            bring_to(model, 0, tokens)
    return Calibration(
        pass_seconds=seconds,
        draft_step_seconds=None if costs is None else costs.step_seconds,
        draft_catch_up_seconds=None if costs is None else costs.catch_up_seconds,
        acceptance_by_position=acceptance,
        plain_tokens_per_second=speed,
    )


def _short_replies(
    pair: LoadedPair,
    prompts: Sequence[str],
    max_tokens: int,
    on_progress: Callable[[Progress], None],
    should_stop: Callable[[], bool],
) -> tuple[float, tuple[float, ...]]:
    """The plain speed, and the share of drafted tokens that was kept at each position, over replies to ``prompts``."""
    totals = RoundTotals()
    speed: float | None = None
    plan = RoundPlan(
        SamplingParams(), pair.drafters.get("draft"), FixedLength(_NUM_DRAFT_TOKENS), rule_named("token")
    )  # fmt: skip
    for i, text in enumerate(prompts):
        on_progress(Progress("measuring acceptance", 0.4 + 0.6 * i / len(prompts)))
        prompt = render_prompt(pair.target.vocabulary, (ChatMessage("user", text),))
        events = generate(
            pair.target,
            prompt.tokens,
            plan,
            np.random.default_rng(i),
            max_tokens=max_tokens if plan.drafter is not None else 1,
            stop=prompt.stop,
            measure_plain=speed is None,
            should_stop=should_stop,
        )
        for event in events:
            if isinstance(event, PlainSpeed):
                speed = event.tokens_per_second
            elif isinstance(event, Round):
                totals.add(event)
            elif isinstance(event, Finished) and event.reason == "interrupted":
                raise Interrupted
    if speed is None:
        raise DecodeError("The context has no room for measuring.", "Load the pair with a larger context.")
    return speed, totals.acceptance_by_position
