"""From a row of logits to a distribution.

The order is that of llama.cpp's server: logit bias, penalties, top-k, top-p, min-p, temperature. So p here is the p
of a llama.cpp server with the same settings. Plain decoding, drafting and verification all call `distribution`:
there is one notion of "the most likely token" and of ties (the lowest id wins) for all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from specchat.core.distributions import Distribution, excess, largest_first, residual, surplus
from specchat.core.logits import LOWEST_TEMPERATURE, Peaks, exponentials, largest_id
from specchat.core.sampling_params import SamplingParams

__all__ = ["Distribution", "SamplingParams", "distribution", "excess", "residual", "surplus"]

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
    row = _adjusted(logits[:n_allowed], params, history)
    if row.ndim != 1 or not row.size:
        raise ValueError("logits must be one row with at least one value")
    if params.temperature == 0:
        return Distribution.one_hot(largest_id(row))
    if not params.truncates:
        weights = exponentials(row, params.temperature)
        if weights.min() > 0:
            return Distribution.of_weights(_all_ids(weights.size), weights)
        possible = weights.nonzero()[0]
        return Distribution.of_weights(possible.astype(np.int32), weights[possible])
    ids, relative = _truncated(row, params)
    if ids.size == 1:
        return Distribution.one_hot(ids.item())
    exact = np.exp(relative / max(params.temperature, LOWEST_TEMPERATURE))
    if exact.min() < _SMALLEST_WEIGHT:
        enough = exact >= _SMALLEST_WEIGHT
        ids, exact = ids[enough], exact[enough]
    return Distribution.of_weights(ids.astype(np.int32), exact)


def _adjusted(logits: NDArray[np.float32], params: SamplingParams, history: Sequence[int]) -> NDArray[np.float32]:
    """The row with bias and penalties, computed as llama.cpp does: a copy, or the row itself where there are none."""
    if not params.penalizes and not params.logit_bias:
        return logits
    row = logits.copy()
    bias = {token: value for token, value in params.logit_bias.items() if 0 <= token < row.size}
    counts = Counter([token for token in params.recent(history) if 0 <= token < row.size])
    with np.errstate(over="ignore"):
        if bias:
            row[list(bias)] += np.array(list(bias.values()), dtype=np.float32)
        if counts:
            ids, count = np.array(list(counts)), np.array(list(counts.values()), dtype=np.float32)
            values, repeat = row[ids], np.float32(params.repeat_penalty)
            penalized = np.where(values <= 0, values * repeat, values / repeat)
            row[ids] = penalized - (count * np.float32(params.frequency_penalty) + np.float32(params.presence_penalty))
    return row


def _truncated(row: NDArray[np.float32], params: SamplingParams) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Ascending ids that top-k, top-p and min-p leave, and how far their values are below the largest."""
    peaks = Peaks(row)
    bound = peaks.highest + math.log(params.min_p) if params.min_p > 0 else -math.inf
    if params.min_p > 0:
        ids = peaks.reaching(bound)
        relative = row[ids].astype(np.float64) - peaks.highest
        if ids.size <= (params.top_k or ids.size) and _top_p_keeps_all(relative, params.top_p):
            return ids, relative
    # Top-p shares out what top-k left. Without top-k that is the whole row.
    total = None if params.top_k or params.top_p == 1 else float(exponentials(row, 1.0).sum(dtype=np.float64))
    count = params.top_k or _FIRST_GUESS
    while True:
        ids = peaks.largest(count)
        ids, values = largest_first(ids, row[ids], count)
        relative = values.astype(np.float64) - peaks.highest
        kept = min(_num_kept(relative, params.top_p, total), int((values >= bound).sum()))
        if params.top_k or kept < ids.size or ids.size < count:
            by_id = ids[:kept].argsort()
            return ids[by_id], relative[by_id]
        count *= 16


def _top_p_keeps_all(relative: NDArray[np.float64], top_p: float) -> bool:
    """Whether top-p keeps all of these, whatever there is besides: more to share out only makes it keep more."""
    if relative.size == 1 or top_p == 1:
        return True
    weights = np.exp(relative)
    return bool(weights.min() > (1 - top_p) * weights.sum())  # without the least likely one too little is left


def _num_kept(relative: NDArray[np.float64], top_p: float, total: float | None) -> int:
    """How many of the values (largest first, relative to it) top-p keeps: always at least one."""
    if top_p == 1:
        return relative.size
    cumulative = np.exp(relative).cumsum()
    wanted = top_p * (cumulative.item(-1) if total is None else total)
    return min(relative.size, int(cumulative.searchsorted(wanted)) + 1)


@lru_cache(maxsize=4)
def _all_ids(n_vocab: int) -> NDArray[np.int32]:
    """One array for all dense distributions of a vocabulary."""
    return np.arange(n_vocab, dtype=np.int32)
