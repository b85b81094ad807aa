"""The decoding loop: plain decoding and speculation are one loop, in which a round may draft no token.

A round: the drafter proposes x̂₁…x̂_γ, one pass of the target over the last committed token and the drafted ones
gives p₁…p_{γ+1}, the rule says how many are kept, and one more token is drawn: from the residual after a rejection,
from p_{γ+1} after none, from p₁ where nothing was drafted (Leviathan et al. 2023, Chen et al. 2023).

The loop is a synchronous generator. The caches are cut back before each event is given out, so a caller may stop
asking at any moment: both models then hold what was committed and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence

import numpy as np

from specchat.backends.base import Interrupted, LanguageModel, bring_to
from specchat.core.events import Event, FinishReason, PlainSpeed, Prefill
from specchat.core.stats import ReplyStats
from specchat.decoding.plain_speed import PlainRounds, measure_plain_speed
from specchat.decoding.rounds import RoundPlan, RoundPlayer
from specchat.errors import ContextFullError, DecodeError, SpecchatError

CATCH_UP = 16
"""How many tokens a draft model reads in its first step. More are read ahead, where they can be told and stopped."""


def generate(
    target: LanguageModel,
    prompt: Sequence[int],
    plan: RoundPlan | Callable[[], RoundPlan],
    rng: np.random.Generator,
    *,
    max_tokens: int | None = None,
    stop: Sequence[str] = (),
    sequence: int = 0,
    details: bool = False,
    plain_speed: PlainSpeed | None = None,
    measure_plain: bool = False,
    should_stop: Callable[[], bool] = lambda: False,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Event]:
    """Writes one reply.

    Args:
        target: the model whose distribution the reply follows.
        prompt: all tokens before the reply; what its cache holds of them already is not evaluated again.
        plan: what holds for every round, or a function that is asked before each.
        rng: draws everything that is drawn; never reseeded here.
        max_tokens: the reply's longest length in tokens, None for what the context allows.
        stop: texts that end the reply and are not part of it.
        sequence: which of the models' sequences to use.
        details: whether rounds carry the largest entries of p, q and the residual.
        plain_speed: what is known of plain decoding's speed here.
        measure_plain: whether to measure it first, where nothing is known, with a few steps that are rolled back.
        should_stop: asked between passes, and within them where the model can be interrupted.
        clock: seconds; another clock simulates other costs.

    Yields:
        `Prefill` of the target, `PlainSpeed` where it is known, `Prefill` of the draft before its first round, one
        `Round` a pass, `PlainSpeed` once more where enough rounds were plain, and `Finished` in the end, also after
        an error.

    Raises:
        ContextFullError: the prompt does not fit; nothing was yielded.
        DecodeError: the model failed; ``Finished(reason="error")`` came before.
    """
    if not prompt:
        raise DecodeError("There is nothing to reply to: the prompt has no tokens.", "Write a message first.")
    if len(prompt) > target.n_ctx:
        raise ContextFullError(
            f"The conversation has {len(prompt)} tokens and the context holds {target.n_ctx}.",
            "Start a new chat, shorten the conversation, or choose a larger context with --ctx.",
        )
    current = plan if callable(plan) else lambda: plan
    stats, plain = ReplyStats(), PlainRounds()
    player = RoundPlayer(target, list(prompt), rng, stop=stop, sequence=sequence, details=details, clock=clock)
    reason: FinishReason = "error"
    try:
        before = clock()
        evaluated, reused = bring_to(target, sequence, prompt[:-1], should_stop)
        yield stats.add(Prefill("target", evaluated, reused, clock() - before))
        if plain_speed is None and measure_plain:
            plain_speed = measure_plain_speed(target, prompt, current().params, sequence, should_stop, clock)
        if plain_speed is not None:
            yield stats.add(plain_speed)
        reason = yield from _rounds(player, stats, plain, current, max_tokens, should_stop)
    except Interrupted:
        reason = "interrupted"
    except SpecchatError:
        yield stats.finish("error", player.seconds, player.finish_text())
        raise
    if (renewed := plain.speed()) is not None:
        yield stats.add(renewed)
    yield stats.finish(reason, player.seconds, player.finish_text())


def _rounds(
    player: RoundPlayer,
    stats: ReplyStats,
    plain: PlainRounds,
    plan: Callable[[], RoundPlan],
    max_tokens: int | None,
    should_stop: Callable[[], bool],
) -> Generator[Event, None, FinishReason]:
    """Plays rounds until the reply ends; returns why it did."""
    player.start()
    while True:
        if should_stop():
            return "interrupted"
        room = player.room
        if max_tokens is not None:
            room = min(room, max_tokens - player.num_committed)
            if room <= 0 < player.room:
                return "length"
        if room <= 0:
            return "context"
        now = plan()
        most = now.length.begin_round(min(room, player.largest_pass) - 1)
        if now.drafter is None:
            most = 0
        if most > 0 and now.drafter is not None and (prefill := _read_ahead(now, player.context, should_stop)):
            player.skip()
            now.length.observe_reading(prefill.tokens, prefill.seconds)
            yield stats.add(prefill)
        played = player.play(now, most)
        plain.add(played)
        yield stats.add(played)
        if player.ended is not None:
            return player.ended


def _read_ahead(plan: RoundPlan, context: Sequence[int], should_stop: Callable[[], bool]) -> Prefill | None:
    """Has the draft model read what it has missed, where that is much and drafting with it pays."""
    assert plan.drafter is not None
    behind = plan.drafter.behind(context)
    return plan.drafter.prefill(context, should_stop) if behind > CATCH_UP and plan.length.pays(behind) else None
