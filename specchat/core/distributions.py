"""Distributions over token ids that hold only what can be drawn, and the residual of two of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from operator import itemgetter
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specchat.core.logits import Peaks

_Id = TypeVar("_Id", np.int32, np.intp)
_Float = TypeVar("_Float", bound=np.float32 | np.float64)
_AnyFloat: TypeAlias = np.float32 | np.float64
_BLOCK = 512
"""How many weights are added up at a time."""
_FEW = 64
"""So many probabilities are also kept by token (see `Distribution.few`)."""
_MANY = 4096
"""From how many on it pays to look for the largest before sorting."""


class Distribution:
    """A distribution over token ids, holding only those with a probability above zero.

    ``ids`` (int32, ascending) and `probs` (float64, sum 1) have the same length and are read-only.

    Args:
        ids: ascending.
        weights: what each weighs, all above zero.
        sums: their sums by blocks of `_BLOCK`, where there are several; else the weights must sum to 1.
    """

    __slots__ = ("_known", "_probs", "_scale", "_sums", "_weights", "ids")

    def __init__(
        self, ids: NDArray[np.int32], weights: NDArray[_AnyFloat], sums: NDArray[np.float64] | None = None
    ) -> None:
        ids.setflags(write=False)
        weights.setflags(write=False)
        self.ids = ids
        self._weights = weights
        self._sums = sums
        self._scale = 1.0 if sums is None else 1.0 / float(sums.sum())
        self._probs: NDArray[np.float64] | None = None
        self._known: dict[int, float] | None = None

    @classmethod
    @lru_cache(maxsize=4096)  # they cannot change, and few tokens make most of a text
    def one_hot(cls, token: int) -> Distribution:
        """All probability on one token: greedy decoding, and the q of a drafter that does not sample."""
        return cls(np.array([token], dtype=np.int32), np.ones(1))

    @classmethod
    def of_weights(cls, ids: NDArray[np.int32], weights: NDArray[_AnyFloat]) -> Distribution:
        """The distribution proportional to ``weights``, all above zero, of ascending ``ids``. Uses up the arrays."""
        if weights.size > _BLOCK:
            # in blocks, because a draw from a running sum over a whole vocabulary is slow
            return cls(ids, weights, np.add.reduceat(weights, np.arange(0, weights.size, _BLOCK), dtype=np.float64))
        return cls(ids, weights / weights.sum(dtype=np.float64))

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
        return cls.of_weights(ids, dense[ids])

    def __len__(self) -> int:
        return int(self.ids.size)

    def __repr__(self) -> str:
        entries = ", ".join(f"{token}: {probability:.4g}" for token, probability in self.top(8))
        return f"<Distribution of {len(self)}: {entries}{', …' if len(self) > 8 else ''}>"

    @property
    def probs(self) -> NDArray[np.float64]:
        """The probabilities. Of many, a few are asked for mostly, so all are worked out when they are first wanted."""
        if self._probs is None:
            self._probs = self.scaled(1.0)
            self._probs.setflags(write=False)
        return self._probs

    @property
    def is_dense(self) -> bool:
        """Whether the ids are 0, 1, 2, … without a gap, so that a token's index is its id."""
        return self.ids.item(-1) == self.ids.size - 1

    @property
    def likeliest(self) -> int:
        """The most likely token; the lowest id in a tie."""
        return self.ids.item(0 if self.ids.size == 1 else self._weights.argmax())

    @property
    def largest(self) -> float:
        """The probability of the most likely token."""
        return 1.0 if self.ids.size == 1 else self._weights.max().item() * self._scale

    def probability(self, token: int) -> float:
        """The probability of a token, 0 where it cannot be drawn."""
        few = self._known or self.few()
        if few is not None:
            return few.get(token, 0.0)
        index = token if self.is_dense else int(self.ids.searchsorted(token))
        found = 0 <= index < self.ids.size and self.ids.item(index) == token
        return self._weights.item(index) * self._scale if found else 0.0

    def few(self) -> Mapping[int, float] | None:
        """The probabilities by token, where there are few: sooner asked than numpy, and one-hot ones are shared."""
        if self._known is None and self.ids.size <= _FEW:
            self._known = dict(zip(self.ids.tolist(), self._weights.tolist(), strict=True))
        return self._known

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

    def scaled(self, factor: float) -> NDArray[np.float64]:
        """``factor`` times the probabilities, in a new array."""
        return np.multiply(self._weights, factor * self._scale, dtype=np.float64)

    def sample(self, rng: np.random.Generator) -> int:
        """One token, by inverting the cumulative distribution at one ``rng.random()``.

        It takes exactly one number from ``rng``, whatever the distribution, so that a seed means the same for all.
        """
        draw = rng.random()
        size = self.ids.size
        if size == 1:
            return self.ids.item(0)
        start, left = 0, draw
        if self._sums is not None:  # in two steps, block and place
            blocks = self._sums.cumsum()
            left = draw * blocks.item(-1)
            block = min(int(blocks.searchsorted(left, side="right")), blocks.size - 1)
            left -= blocks.item(block - 1) if block else 0.0
            start = block * _BLOCK
        within = self._weights[start : start + _BLOCK].cumsum(dtype=np.float64)
        if self._sums is None:
            left = draw * within.item(-1)
        # Every id held has a probability above zero, so the last one is a valid answer where rounding runs over it.
        return self.ids.item(start + min(int(within.searchsorted(left, side="right")), within.size - 1))

    def top(self, count: int) -> list[tuple[int, float]]:
        """The ``count`` most likely tokens with their probabilities, largest first; the lowest id first in a tie."""
        few = self.few()
        if few is not None:
            return sorted(few.items(), key=itemgetter(1), reverse=True)[:count]  # reversed sorting is stable as well
        ids, weights = self.ids, self._weights
        if ids.size > _MANY and count > 0:
            at = Peaks(weights).largest(count)
            ids, weights = ids[at], weights[at]
        ids, weights = largest_first(ids, weights, count)
        return [(token, weight * self._scale) for token, weight in zip(ids.tolist(), weights.tolist(), strict=True)]


def excess(p: Distribution, q: Distribution, scale: float = 1.0) -> NDArray[np.float64]:
    """max(0, scale·p − q) for every id of ``p`` (elsewhere it is 0). Same shape as ``p.ids``."""
    few = _excess_of_few(p, q, scale)
    if few is not None:
        return np.array(few)
    values = p.scaled(scale)
    values -= q.probabilities(p.ids)
    return np.maximum(values, 0.0, out=values)


def surplus(p: Distribution, q: Distribution, scale: float = 1.0) -> float:
    """What `excess` sums to."""
    few = _excess_of_few(p, q, scale)
    return math.fsum(few) if few is not None else float(excess(p, q, scale).sum())


def _excess_of_few(p: Distribution, q: Distribution, scale: float) -> list[float] | None:
    """`excess` where both are short, which most truncated ones are: numpy's calls would cost more than the sums."""
    left, right = p.few(), q.few()
    if left is None or right is None:
        return None
    return [max(0.0, scale * probability - right.get(token, 0.0)) for token, probability in left.items()]


def residual(p: Distribution, q: Distribution, scale: float = 1.0) -> Distribution | None:
    """What is drawn from after a rejection: max(0, scale·p − q), normalised; None where that is zero everywhere.

    ``scale`` is 1 in the token rule (Leviathan et al. 2023, arXiv 2211.17192) and π in the block rule (Sun et al.
    2025, arXiv 2403.10444).
    """
    values = excess(p, q, scale)
    kept = (values > 0).nonzero()[0]  # far quicker than to ask numbers whether they are zero
    return Distribution.of_weights(p.ids.take(kept), values.take(kept)) if kept.size else None


def largest_first(ids: NDArray[_Id], values: NDArray[_Float], count: int) -> tuple[NDArray[_Id], NDArray[_Float]]:
    """The ``count`` largest of ``values``, largest first, the lowest id first in a tie. ``ids`` must be ascending."""
    if values.size > 4 * count > 0:
        reached = values >= np.partition(values, values.size - count)[values.size - count]
        ids, values = ids[reached], values[reached]
    order = (-values).argsort(kind="stable")[:count]
    return ids[order], values[order]
