"""The largest values of a row of logits, without sorting or copying the row.

A vocabulary has 152,000 entries and a round needs a dozen distributions, so only the few values that are sure to hold
the largest are ever sorted.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

LOWEST_TEMPERATURE = 1e-30
"""Lower ones count as this one: float32 has no room for them."""
_NUM_STRIPES = 64
"""See `Peaks`. Fewer make longer rows of maxima, more make longer columns to search; 32 to 128 cost the same."""
_MANY = 4096
"""Shorter rows are one stripe."""


def largest_id(logits: NDArray[np.float32]) -> int:
    """The id with the largest value, the lowest one in a tie.

    Raises:
        ValueError: a value is NaN or plus infinity, or all are minus infinity.
    """
    index = int(logits.argmax())
    _checked(logits.item(index))
    return index


def exponentials(logits: NDArray[np.float32], temperature: float) -> NDArray[np.float32]:
    """exp((value − largest value) ÷ temperature) of every id, in float32 as in llama.cpp. ``[n_vocab]``.

    Raises:
        ValueError: a value is NaN or plus infinity, or all are minus infinity.
    """
    highest = _checked(logits.max().item())
    with np.errstate(over="ignore"):  # what is far below the highest becomes minus infinity
        values: NDArray[np.float32] = logits - np.float32(highest)
        if temperature != 1:
            values /= np.float32(max(temperature, LOWEST_TEMPERATURE))
    return np.exp(values, out=values)


class Peaks:
    """What stands out in a row.

    The row is laid out as stripes, one below the other, and the maxima of its columns are taken once. Few columns
    reach a high bound, and only those are searched.

    Attributes:
        highest: the largest value.

    Raises:
        ValueError: a value is NaN or plus infinity, or all are minus infinity.
    """

    __slots__ = ("_maxima", "_rest", "_striped", "_values", "highest")

    def __init__(self, values: NDArray[Any]) -> None:
        stripes = _NUM_STRIPES if values.size >= _MANY else 1
        width = values.size // stripes
        self._values = values
        self._striped = values[: width * stripes].reshape(stripes, width)
        self._rest = values[width * stripes :]
        self._maxima = self._striped.max(axis=0)
        highest = self._maxima.item(self._maxima.argmax())
        if self._rest.size:
            highest = float(np.maximum(highest, self._rest.max()))  # NaN counts as the largest
        self.highest: float = _checked(highest)

    def reaching(self, bound: float) -> NDArray[np.intp]:
        """Ascending ids of all values that reach the bound."""
        columns = (self._maxima >= bound).nonzero()[0]
        reached = self._striped.take(columns, axis=1) >= bound
        ids: NDArray[np.intp] = (_beginnings(*self._striped.shape) + columns)[reached]
        if self._rest.size:
            ids = np.concatenate([ids, (self._rest >= bound).nonzero()[0] + self._striped.size])
        return ids

    def largest(self, count: int) -> NDArray[np.intp]:
        """Ascending ids of at least the ``count`` largest values, ties included; all above −∞ where there are fewer.

        The n-th largest of the columns' maxima is reached by at least n values, so none of the n largest is below it;
        few others reach it.
        """
        width = self._maxima.size
        if count * 4 <= width:
            bound = np.partition(self._maxima, width - count).item(width - count)
            if bound > -math.inf:
                return self.reaching(bound)
        return (self._values > -math.inf).nonzero()[0]


@lru_cache(maxsize=8)
def _beginnings(stripes: int, width: int) -> NDArray[np.intp]:
    """The ids at which the stripes begin. ``[stripes, 1]``."""
    return np.arange(0, stripes * width, width)[:, None]


def _checked(highest: float) -> float:
    if not highest < math.inf:
        raise ValueError("the logits hold NaN or plus infinity")
    if highest == -math.inf:
        raise ValueError("no token is left to draw: all logits are minus infinity")
    return highest
