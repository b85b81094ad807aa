"""The answer to `Calibrate`: what the loaded pair costs, how much of its drafts is kept, and what that comes to."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

import numpy as np

from specchat.backends.base import Interrupted, LanguageModel, PassInput, bring_to
from specchat.core.adaptive_length import AdaptiveLength
from specchat.core.events import Fate, Finished, PlainSpeed, Round
from specchat.core.sampling_params import SamplingParams
from specchat.core.settings import ChatMessage
from specchat.core.theory import RoundCosts
from specchat.core.verification import rule_named
from specchat.decoding.calibrate import DraftCosts, measure_draft_costs, measure_pass_seconds
from specchat.decoding.decoder import generate
from specchat.decoding.prompt import render_prompt
from specchat.decoding.rounds import RoundPlan
from specchat.engine.interface import Calibration, Prediction, Progress
from specchat.engine.pair import LoadedPair
from specchat.engine.predictions import predict_free, predict_model, recommend
from specchat.errors import DecodeError

_CODE = """\
```python
def average_speed(trips):
    total = 0
    hours = 0
    for trip in trips:
        total += trip.distance
        hours += trip.duration
    return total / hours if hours else 0
```"""
PROMPTS = (
    "Write a Python function that returns the n-th Fibonacci number, with a docstring.",
    "天空为什么是蓝色的？请用几句话回答。",
    f"Rename `total` to `kilometres` in this function and change nothing else. Print all of it.\n\n{_CODE}",
    "A train travels 180 km in 2.5 hours. What is its average speed? Show your work.",
    "Why do cats purr? Answer in a few sentences.",
    f"给下面的函数加上中文文档字符串，其余代码不要改动，输出完整代码。\n\n{_CODE}",
)
"""Code, chat, rewriting and mathematics, in English and Chinese; the first four have all kinds, where time is short."""
_NUM_DRAFT_TOKENS = 4
_LEAST_TOKENS = 16
_DRAFT_REPETITIONS = 7
_QUICK_PASSES_SECONDS, _QUICK_SECONDS = 25.0, 90.0
"""After so long a quick calibration measures no more passes, and writes no more tokens. GPUs need a fraction of it."""
_QUICK_SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 32)
_ALL_SIZES = (*range(1, 18), 20, 24, 28, 32, 33)


class _ExpectedAcceptance:
    """α by position under the token rule, from how likely each judged token was to be kept.

    min(1, p/q) of a token drawn from q has the mean Σ min(p, q), the probability that a draft is kept there. It says
    more than whether the token happened to be kept: the same error takes about half as many rounds.
    """

    def __init__(self) -> None:
        self._chances: list[list[float]] = []

    def add(self, played: Round) -> None:
        """Takes a round into account."""
        for position, token in enumerate(played.drafted):
            if token.fate not in (Fate.ACCEPTED, Fate.REJECTED):
                break
            if position == len(self._chances):
                self._chances.append([])
            self._chances[position].append(token.threshold)

    @property
    def by_position(self) -> tuple[float, ...]:
        """Of positions 1, 2, …, each given that all before it were kept."""
        return tuple(map(statistics.fmean, self._chances))


@dataclass(slots=True)
class _Replies:
    """What short replies to the built-in prompts showed."""

    plain_speed: float | None = None
    acceptance: _ExpectedAcceptance = field(default_factory=_ExpectedAcceptance)
    texts: list[tuple[Sequence[int], list[int]]] = field(default_factory=list)
    """Prompts and replies, as tokens."""


def calibrate(
    pair: LoadedPair,
    *,
    quick: bool,
    on_progress: Callable[[Progress], None],
    should_stop: Callable[[], bool],
) -> Calibration:
    """Measures the cost of passes by size, the draft's step, and acceptance by position over a few short replies.

    The caches hold afterwards what they held before. The pair's experience takes over what was measured. ``quick``
    takes fewer sizes and repetitions, and shorter replies.

    Raises:
        Interrupted: ``should_stop()`` was true.
        DecodeError: a model refused.
    """
    target = pair.target
    models = [target] if pair.draft is None else [target, pair.draft]
    held = [list(model.tokens()) for model in models]
    filler = target.vocabulary.tokenize(" ".join(PROMPTS), parse_special=False)
    repetitions = 3 if quick else 7
    began = time.perf_counter()
    try:
        passes = "measuring passes of the target"
        on_progress(Progress(passes, 0.0))
        seconds = measure_pass_seconds(
            target,
            _with_singles(_QUICK_SIZES if quick else _ALL_SIZES),
            filler,
            repetitions=repetitions,
            should_stop=should_stop,
            on_progress=lambda share: on_progress(Progress(passes, 0.4 * share)),
            patience=_QUICK_PASSES_SECONDS if quick else math.inf,
        )
        pair.experience.target.learn(seconds)
        costs = None
        if pair.draft is not None:
            on_progress(Progress("measuring the draft's steps", 0.4))
            costs = measure_draft_costs(
                pair.draft,
                filler,
                repetitions=_DRAFT_REPETITIONS,
                should_stop=should_stop,
                before_each=lambda: _single_pass(target, filler[0]),
            )
            step = costs.step_seconds
            pair.experience.draft.learn({1: step, 2: step + max(0.0, costs.catch_up_seconds)})
        until = began + (_QUICK_SECONDS if quick else math.inf)
        replies = _short_replies(pair, PROMPTS, 64 if quick else 128, until, on_progress, should_stop)
    finally:
        for model, tokens in zip(models, held, strict=True):
            bring_to(model, 0, tokens)
    if replies.plain_speed is None:
        raise DecodeError("The context has no room for measuring.", "Load the pair with a larger context.")
    predictions = tuple(_predictions(pair, replies, seconds, costs))
    return Calibration(
        pass_seconds=seconds,
        draft_step_seconds=None if costs is None else costs.step_seconds,
        draft_catch_up_seconds=None if costs is None else costs.catch_up_seconds,
        acceptance_by_position=replies.acceptance.by_position,
        plain_tokens_per_second=replies.plain_speed,
        predictions=predictions,
        recommended=recommend(predictions),
    )


def _with_singles(sizes: Sequence[int]) -> list[int]:
    """A pass of one token before each other size: all figures are told in its time, so it must be known best."""
    return [each for size in sizes if size > 1 for each in (1, size)]


def _single_pass(model: LanguageModel, token: int) -> None:
    """A step that leaves the cache as it was; none where the context is full."""
    held = list(model.tokens())
    if len(held) < model.n_ctx:
        model.decode([PassInput(0, [token], 1)])
        bring_to(model, 0, held)


def _short_replies(
    pair: LoadedPair,
    prompts: Sequence[str],
    max_tokens: int,
    until: float,
    on_progress: Callable[[Progress], None],
    should_stop: Callable[[], bool],
) -> _Replies:
    """Writes replies to ``prompts``, drafting in every round where there is a draft model.

    Once the clock shows ``until`` the reply that is being written is the last, as soon as it has a few rounds.
    """
    found = _Replies()
    length = AdaptiveLength(pair.experience, floor=_NUM_DRAFT_TOKENS, most=_NUM_DRAFT_TOKENS)
    plan = RoundPlan(SamplingParams(), pair.drafters.get("draft"), length, rule_named("token"))
    for i, text in enumerate(prompts):
        prompt = render_prompt(pair.target.vocabulary, (ChatMessage("user", text),))
        reply: list[int] = []
        events = generate(
            pair.target,
            prompt.tokens,
            plan,
            np.random.default_rng(i),
            max_tokens=max_tokens,
            stop=prompt.stop,
            measure_plain=found.plain_speed is None,
            should_stop=should_stop,
        )
        with closing(events):  # type: ignore[type-var]  # a generator, though it says less of itself
            for event in events:
                if isinstance(event, PlainSpeed):
                    found.plain_speed = event.tokens_per_second
                elif isinstance(event, Round):
                    found.acceptance.add(event)
                    reply += [token.id for token in event.committed]
                    share = (i + min(1.0, len(reply) / max_tokens)) / len(prompts)
                    on_progress(Progress("measuring acceptance", 0.45 + 0.55 * share))
                elif isinstance(event, Finished) and event.reason == "interrupted":
                    raise Interrupted
                if len(reply) >= _LEAST_TOKENS and time.perf_counter() > until:
                    break
        found.texts.append((prompt.tokens, reply))
        if time.perf_counter() > until:
            break
    return found


def _predictions(
    pair: LoadedPair, replies: _Replies, seconds: dict[int, float], draft: DraftCosts | None
) -> Iterator[Prediction]:
    lengths = [size - 1 for size in seconds if size > 1]
    acceptance = replies.acceptance.by_position
    if draft is not None and acceptance:
        costs = RoundCosts.from_seconds(seconds, draft.step_seconds, draft.catch_up_seconds)
        yield from predict_model(acceptance, costs, lengths)
    if "ngram" in pair.drafters:
        yield from predict_free(pair.drafters["ngram"], replies.texts, RoundCosts.from_seconds(seconds), lengths)
