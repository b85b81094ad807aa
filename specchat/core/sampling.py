"""From a row of logits to a distribution.

The order is that of llama.cpp's server: logit bias, penalties, top-k, top-p, min-p, temperature. So p here is the p
of a llama.cpp server with the same settings. Plain decoding, drafting and verification all call `distribution`:
there is one notion of "the most likely token" and of ties (the lowest id wins) for all of them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from specchat.core.distributions import Distribution, excess, largest_first, residual
from specchat.core.logits import LOWEST_TEMPERATURE, Changes, LogitRow
from specchat.core.sampling_params import SamplingParams

__all__ = ["Distribution", "SamplingParams", "distribution", "excess", "residual"]

_SMALLEST_WEIGHT = 1e-300
"""What weighs less, beside 1 for the most likely token, counts as impossible: divided by the sum it might be 0."""
_FIRST_GUESS = 64
"""How many of the most likely tokens are looked at first where top-p or min-p must find out how many they keep."""


def distribution(
    logits: NDArray[np.float32], params: SamplingParams, history: Sequence[int] = (), n_allowed: int | None = None
) -> Distribution:
    """What the next token is drawn from.

    Args:
        logits: ``[n_vocab]``; never changed. Minus infinity bans a token.
        params: the settings.
        history: the tokens before this position, oldest first; only penalties look at it. Ids out of range are
            ignored, there and in the bias.
        n_allowed: ids from here on cannot be drawn (ids that only the draft has).

    Returns:
        At temperature 0 a one-hot distribution. Ids whose weight is too small for the floats used are left out.

    Raises:
        ValueError: a logit is NaN or plus infinity, or no token is left.
    """
    row = LogitRow(logits[:n_allowed], _changes(logits[:n_allowed], params, history))
    if params.temperature == 0:
        return Distribution.one_hot(row.best())
    if not params.truncates:
        weights = row.weights(params.temperature)
        if weights.min() > 0:
            return Distribution.of_weights(_all_ids(weights.size), weights.astype(np.float64))
        possible = weights.nonzero()[0]
        return Distribution.of_weights(possible.astype(np.int32), weights[possible].astype(np.float64))
    ids, relative = _truncate(row, params)
    if ids.size == 1:
        return Distribution.one_hot(ids.item())
    exact = np.exp(relative / max(params.temperature, LOWEST_TEMPERATURE))
    if exact[-1] < _SMALLEST_WEIGHT:
        enough = exact >= _SMALLEST_WEIGHT
        ids, exact = ids[enough], exact[enough]
    by_id = ids.argsort()
    return Distribution.of_weights(ids[by_id].astype(np.int32), exact[by_id])


def _changes(logits: NDArray[np.float32], params: SamplingParams, history: Sequence[int]) -> Changes | None:
    """Ascending ids and new logits of the tokens with a bias or in the history, computed as llama.cpp does."""
    if not params.penalizes and not params.logit_bias:
        return None
    counts: Counter[int] = Counter()
    if params.penalizes:
        counts.update(history if params.penalty_last_n < 0 else history[-params.penalty_last_n :])
    changed = sorted(counts.keys() | params.logit_bias.keys())
    changed = changed[bisect_left(changed, 0) : bisect_left(changed, logits.size)]
    if not changed:
        return None
    ids = np.array(changed, dtype=np.int32)
    values = logits[ids]
    with np.errstate(over="ignore"):
        if params.logit_bias:
            values += np.array([params.logit_bias.get(token, 0.0) for token in changed], dtype=np.float32)
        if counts:
            count = np.fromiter(map(counts.__getitem__, changed), dtype=np.float32, count=len(changed))
            repeat = np.float32(params.repeat_penalty)
            penalized = np.where(values <= 0, values * repeat, values / repeat)
            penalized -= count * np.float32(params.frequency_penalty) + np.float32(params.presence_penalty)
            np.copyto(values, penalized, where=count > 0)
    return ids, values


def _truncate(row: LogitRow, params: SamplingParams) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Ids that top-k, top-p and min-p leave, and how far their values are below the largest; largest first."""
    # Top-p shares out what top-k left. Without top-k that is the whole row.
    total = None
    if params.top_p < 1 and not params.top_k:
        total = float(row.weights(1.0).sum(dtype=np.float64))
    count = params.top_k or _FIRST_GUESS
    while True:
        ids, values = largest_first(*row.largest(count), count)
        relative = values.astype(np.float64)
        relative -= relative[0]
        kept = _num_kept(relative, params, total)
        if params.top_k or kept < ids.size or ids.size < count:
            return ids[:kept], relative[:kept]
        count *= 16


def _num_kept(relative: NDArray[np.float64], params: SamplingParams, total: float | None) -> int:
    """How many of the values (largest first, relative to it) top-p and min-p keep: always at least one."""
    kept = relative.size
    if params.top_p < 1:
        cumulative = np.exp(relative).cumsum()
        wanted = params.top_p * (cumulative[-1] if total is None else total)
        kept = min(kept, int(cumulative.searchsorted(wanted)) + 1)
    if params.min_p > 0:
        kept = min(kept, kept - int(relative[:kept][::-1].searchsorted(math.log(params.min_p))))
    return kept


@lru_cache(maxsize=4)
def _all_ids(n_vocab: int) -> NDArray[np.int32]:
    """One array for all dense distributions of a vocabulary."""
    return np.arange(n_vocab, dtype=np.int32)
