"""From a row of logits to a distribution, and one draw from it.

The order is that of llama.cpp's server: logit bias, penalties, top-k, top-p, min-p, temperature. So p here is the p
of a llama.cpp server with the same settings. Plain decoding, drafting and verification all call `distribution`:
there is one notion of "the most likely token" and of ties (the lowest id wins) for all of them.

A vocabulary has 152,000 entries and a round needs a dozen distributions, so nothing here sorts or copies a whole row:
`_Row.largest` finds a bound that a few values are sure to reach, and only those are sorted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

_LARGEST_BIAS = float(np.finfo(np.float32).max) / 2
_LOWEST_TEMPERATURE = 1e-30
"""Lower ones count as this one: float32 has no room for them."""
_Id = TypeVar("_Id", np.int32, np.intp)
_Float = TypeVar("_Float", np.float32, np.float64)

_SMALLEST_WEIGHT = 1e-300
_NUM_STRIPES = 64
_BLOCK = 512
_FIRST_GUESS = 64
"""How many of the most likely tokens are looked at first where top-p or min-p must find out how many they keep."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is drawn. The defaults and the order are llama.cpp's server's.

    ``temperature`` 0 always takes the most likely token. ``top_k`` 0, ``top_p`` 1, ``min_p`` 0, ``repeat_penalty``
    1 and the other penalties 0 switch that step off. Penalties look at the last ``penalty_last_n`` tokens of the
    history (prompt included): 0 at none, -1 at all. ``logit_bias`` adds to a token's logit; minus infinity bans it.

    Raises:
        ValueError: a value is out of its range.
    """

    temperature: float = 0.7
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    penalty_last_n: int = 64
    logit_bias: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rules = (
            (0 <= self.temperature < math.inf, "the temperature must be 0 or more"),
            (self.top_k >= 0, "top-k must be 0 (off) or more"),
            (0 < self.top_p <= 1, "top-p must be above 0 and at most 1 (off)"),
            (0 <= self.min_p <= 1, "min-p must be between 0 (off) and 1"),
            (0 < self.repeat_penalty < math.inf, "the repeat penalty must be above 0; 1 is off"),
            (math.isfinite(self.frequency_penalty), "the frequency penalty must be a finite number; 0 is off"),
            (math.isfinite(self.presence_penalty), "the presence penalty must be a finite number; 0 is off"),
            (self.penalty_last_n >= -1, "penalty-last-n must be 0 (off) or more, or -1 for the whole context"),
            (
                all(bias == -math.inf or abs(bias) <= _LARGEST_BIAS for bias in self.logit_bias.values()),
                "a logit bias must be a finite number, or minus infinity to ban a token",
            ),
        )
        for holds, text in rules:
            if not holds:
                raise ValueError(text)

    @property
    def penalizes(self) -> bool:
        """Whether the distribution depends on the history."""
        return self.penalty_last_n != 0 and (
            self.repeat_penalty != 1 or self.frequency_penalty != 0 or self.presence_penalty != 0
        )

    @property
    def truncates(self) -> bool:
        """Whether top-k, top-p or min-p is on."""
        return self.top_k > 0 or self.top_p < 1 or self.min_p > 0


class Distribution:
    """A distribution over token ids, holding only those with a probability above zero.

    ``ids`` (int32, ascending) and ``probs`` (float64, sum 1) have the same length and are read-only.
    """

    __slots__ = ("ids", "probs")

    def __init__(self, ids: NDArray[np.int32], probs: NDArray[np.float64]) -> None:
        ids.flags.writeable = False
        probs.flags.writeable = False
        self.ids = ids
        self.probs = probs

    @classmethod
    def one_hot(cls, token: int) -> Distribution:
        """All probability on one token: greedy decoding, and the q of a drafter that does not sample."""
        return cls(np.array([token], dtype=np.int32), np.ones(1))

    @classmethod
    def from_dense(cls, probs: ArrayLike) -> Distribution:
        """The distribution proportional to ``probs[token]``, for toy models.

        Raises:
            ValueError: a weight is negative or not finite, or all are zero.
        """
        dense = np.asarray(probs, dtype=np.float64)
        total = float(dense.sum())
        if dense.ndim != 1 or not 0 < total < math.inf or bool((dense < 0).any()):
            raise ValueError("weights must be one row of finite numbers, none negative, not all zero")
        dense = dense / total
        ids = np.flatnonzero(dense).astype(np.int32)
        return _of_weights(ids, dense[ids])

    def __len__(self) -> int:
        return int(self.ids.size)

    def __repr__(self) -> str:
        entries = ", ".join(f"{token}: {probability:.4g}" for token, probability in self.top(8))
        return f"<Distribution of {len(self)}: {entries}{', …' if len(self) > 8 else ''}>"

    @property
    def is_dense(self) -> bool:
        """Whether the ids are 0, 1, 2, … without a gap, so that a token's index is its id."""
        return int(self.ids[-1]) == self.ids.size - 1

    def probability(self, token: int) -> float:
        """The probability of a token, 0 where it cannot be drawn."""
        index = token if self.is_dense else int(self.ids.searchsorted(token))
        return float(self.probs[index]) if 0 <= index < self.ids.size and self.ids[index] == token else 0.0

    def probabilities(self, ids: NDArray[np.int32]) -> NDArray[np.float64]:
        """The probabilities of ascending ``ids``, 0 where a token cannot be drawn. Same shape as ``ids``."""
        if ids is self.ids:
            return self.probs
        found = np.zeros(ids.size)
        if self.is_dense:
            inside = int(ids.searchsorted(self.ids.size))
            found[:inside] = (
                self.probs[:inside] if inside and ids[inside - 1] == inside - 1 else self.probs[ids[:inside]]
            )
        elif ids.size > self.ids.size:
            at = np.minimum(ids.searchsorted(self.ids), ids.size - 1)
            same = ids[at] == self.ids
            found[at[same]] = self.probs[same]
        else:
            at = np.minimum(self.ids.searchsorted(ids), self.ids.size - 1)
            np.copyto(found, self.probs[at], where=self.ids[at] == ids)
        return found

    def sample(self, rng: np.random.Generator) -> int:
        """One token, by inverting the cumulative distribution at one ``rng.random()``.

        It takes exactly one number from ``rng``, whatever the distribution, so that a seed means the same for all.
        """
        draw = rng.random()
        # In two steps, block and place, because a running sum over a whole vocabulary is slow. Every id held has a
        # probability above zero, so the last one of a block is a valid answer where rounding runs over its edge.
        blocks = np.add.reduceat(self.probs, np.arange(0, self.probs.size, _BLOCK)).cumsum()
        left = draw * blocks[-1]
        block = min(int(blocks.searchsorted(left, side="right")), blocks.size - 1)
        if block:
            left -= blocks[block - 1]
        within = self.probs[block * _BLOCK : (block + 1) * _BLOCK].cumsum()
        return int(self.ids[block * _BLOCK + min(int(within.searchsorted(left, side="right")), within.size - 1)])

    def top(self, count: int) -> list[tuple[int, float]]:
        """The ``count`` most likely tokens with their probabilities, largest first; the lowest id first in a tie."""
        ids, probs = _top(self.ids, self.probs, count)
        return list(zip(ids.tolist(), probs.tolist(), strict=True))


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
    row = _Row(logits[:n_allowed], params, history)
    if params.temperature == 0:
        return Distribution.one_hot(row.best())
    if not params.truncates:
        weights = row.weights(params.temperature)
        if weights.min() > 0:
            return _of_weights(_all_ids(weights.size), weights.astype(np.float64))
        possible = weights.nonzero()[0]
        return _of_weights(possible.astype(np.int32), weights[possible].astype(np.float64))
    ids, relative = _truncate(row, params)
    exact = np.exp(relative / max(params.temperature, _LOWEST_TEMPERATURE))
    if exact[-1] < _SMALLEST_WEIGHT:
        enough = exact >= _SMALLEST_WEIGHT
        ids, exact = ids[enough], exact[enough]
    by_id = ids.argsort()
    return _of_weights(ids[by_id].astype(np.int32), exact[by_id])


def excess(p: Distribution, q: Distribution, scale: float = 1.0) -> NDArray[np.float64]:
    """max(0, scale·p − q) for every id of ``p`` (elsewhere it is 0). Same shape as ``p.ids``."""
    values = p.probs * scale
    values -= q.probabilities(p.ids)
    return np.maximum(values, 0.0, out=values)


def residual(p: Distribution, q: Distribution, scale: float = 1.0) -> Distribution | None:
    """What is drawn from after a rejection: max(0, scale·p − q), normalised; None where that is zero everywhere.

    ``scale`` is 1 in the token rule (Leviathan et al. 2023, arXiv 2211.17192) and π in the block rule (Sun et al.
    2025, arXiv 2403.10444).
    """
    values = excess(p, q, scale)
    kept = np.flatnonzero(values)
    return _of_weights(p.ids[kept], values[kept]) if kept.size else None


class _Row:
    """A row of logits in which bias and penalties changed a few values, without a copy of the row."""

    def __init__(self, logits: NDArray[np.float32], params: SamplingParams, history: Sequence[int]) -> None:
        if logits.ndim != 1 or not logits.size:
            raise ValueError("logits must be one row with at least one value")
        self.logits = logits
        self.changes = _changes(logits, params, history)

    def best(self) -> int:
        """The id with the largest value, the lowest one in a tie."""
        if self.changes:
            ids, values = self.largest(1)
            return int(ids[values.argmax()])
        index = int(self.logits.argmax())
        _check_maximum(self.logits[index])
        return index

    def largest(self, count: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Ascending ids and values of at least the ``count`` largest, ties included; all where there are fewer."""
        if not self.changes:
            ids = _largest(self.logits, count)
            return ids, self.logits[ids]
        changed, new = self.changes
        # As many of the values as were changed may have sunk, so look at that many more.
        ids = _largest(self.logits, count + changed.size)
        same = changed[np.minimum(changed.searchsorted(ids), changed.size - 1)] == ids
        ids = np.concatenate([ids[~same], changed])
        ids.sort()
        values = self.logits[ids]
        values[ids.searchsorted(changed)] = new
        _check_maximum(values.max())
        possible = values > -np.inf
        return ids[possible], values[possible]

    def weights(self, temperature: float) -> NDArray[np.float32]:
        """exp((value − largest value) ÷ temperature) of every id, in float32 as in llama.cpp. ``[n_vocab]``."""
        highest = self.largest(1)[1].max() if self.changes else self.logits.max()
        _check_maximum(highest)
        with np.errstate(over="ignore"):  # what is far below the highest becomes minus infinity
            weights: NDArray[np.float32] = self.logits - highest
            if self.changes:
                weights[self.changes[0]] = self.changes[1] - highest
            if temperature != 1:
                weights /= np.float32(max(temperature, _LOWEST_TEMPERATURE))
        np.exp(weights, out=weights)
        return weights


def _check_maximum(highest: np.float32) -> None:
    if not highest < np.inf:
        raise ValueError("the logits hold NaN or plus infinity")
    if highest == -np.inf:
        raise ValueError("no token is left to draw: all logits are minus infinity")


def _largest(logits: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    """Ascending ids of at least the ``count`` largest logits, ties included; all above −∞ where there are fewer.

    The row is laid out as stripes, one below the other. The n-th largest of the maxima of its columns is reached by
    at least n values, so it is a bound below which none of the n largest can be; few others reach it.
    """
    width = logits.size // _NUM_STRIPES
    striped = logits[: width * _NUM_STRIPES].reshape(_NUM_STRIPES, width)
    rest = logits[width * _NUM_STRIPES :]
    if count * 4 <= width:
        maxima = striped.max(axis=0)
        ordered = np.partition(maxima, (width - count, width - 1))
        bound, highest = ordered[width - count], ordered[-1]
        _check_maximum(np.maximum(highest, rest.max()) if rest.size else highest)
        if bound > -np.inf:
            columns = (maxima >= bound).nonzero()[0]
            stripe, column = (striped[:, columns] >= bound).nonzero()
            ids = stripe * width + columns[column]
            return np.concatenate([ids, (rest >= bound).nonzero()[0] + striped.size]) if rest.size else ids
    _check_maximum(logits.max())
    return (logits > -np.inf).nonzero()[0]


def _changes(
    logits: NDArray[np.float32], params: SamplingParams, history: Sequence[int]
) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
    """Ascending ids and new logits of the tokens with a bias or in the history, computed as llama.cpp does."""
    if not params.penalizes and not params.logit_bias:
        return None
    counts: Counter[int] = Counter()
    if params.penalizes:
        counts.update(history if params.penalty_last_n < 0 else history[-params.penalty_last_n :])
    changed = sorted(token for token in counts.keys() | params.logit_bias.keys() if 0 <= token < logits.size)
    if not changed:
        return None
    ids = np.array(changed, dtype=np.int32)
    values = logits[ids]
    with np.errstate(over="ignore"):
        if params.logit_bias:
            values += np.array([params.logit_bias.get(token, 0.0) for token in changed], dtype=np.float32)
        if counts:
            count = np.array([counts[token] for token in changed], dtype=np.float32)
            repeat = np.float32(params.repeat_penalty)
            penalized = np.where(values <= 0, values * repeat, values / repeat)
            penalized -= count * np.float32(params.frequency_penalty) + np.float32(params.presence_penalty)
            np.copyto(values, penalized, where=count > 0)
    return ids, values


def _truncate(row: _Row, params: SamplingParams) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Ids that top-k, top-p and min-p leave, and how far their values are below the largest; largest first."""
    # Top-p shares out what top-k left. Without top-k that is the whole row.
    total = None
    if params.top_p < 1 and not params.top_k:
        total = float(row.weights(1.0).sum(dtype=np.float64))
    count = params.top_k or _FIRST_GUESS
    while True:
        ids, values = _top(*row.largest(count), count)
        relative = values.astype(np.float64) - float(values[0])
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


def _top(ids: NDArray[_Id], values: NDArray[_Float], count: int) -> tuple[NDArray[_Id], NDArray[_Float]]:
    """The ``count`` largest of ``values``, largest first, the lowest id first in a tie. ``ids`` must be ascending."""
    if values.size > 4 * count > 0:
        reached = values >= np.partition(values, values.size - count)[values.size - count]
        ids, values = ids[reached], values[reached]
    order = np.argsort(-values, kind="stable")[:count]
    return ids[order], values[order]


def _of_weights(ids: NDArray[np.int32], weights: NDArray[np.float64]) -> Distribution:
    weights /= weights.sum()
    return Distribution(ids, weights)


@lru_cache(maxsize=4)
def _all_ids(n_vocab: int) -> NDArray[np.int32]:
    """One array for all dense distributions of a vocabulary."""
    return np.arange(n_vocab, dtype=np.int32)
