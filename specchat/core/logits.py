"""The largest values of a row of logits, without sorting or copying the row.

A vocabulary has 152,000 entries and a round needs a dozen distributions, so only the few values that are sure to hold
the largest are ever sorted.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Changes: TypeAlias = tuple[NDArray[np.int32], NDArray[np.float32]]
"""Ascending ids and the values that they have instead of the row's."""

LOWEST_TEMPERATURE = 1e-30
"""Lower ones count as this one: float32 has no room for them."""
_NUM_STRIPES = 64
"""See `largest_ids`. Fewer make longer rows of maxima, more make longer columns to search; 32 to 128 cost the same."""


class LogitRow:
    """A row of logits in which bias and penalties changed a few values, without a copy of the row."""

    def __init__(self, logits: NDArray[np.float32], changes: Changes | None) -> None:
        if logits.ndim != 1 or not logits.size:
            raise ValueError("logits must be one row with at least one value")
        self.logits = logits
        self.changes = changes

    def best(self) -> int:
        """The id with the largest value, the lowest one in a tie."""
        if self.changes:
            ids, values = self.largest(1)
            return int(ids[values.argmax()])
        index = int(self.logits.argmax())
        _check_maximum(self.logits[index])
        return index

    def largest(self, count: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Ascending ids and values of at least the ``count`` largest, ties included; all where there are fewer.

        A token that was banned may be among them, with minus infinity.
        """
        if not self.changes:
            ids = largest_ids(self.logits, count)
            return ids, self.logits[ids]
        changed, new = self.changes
        # As many of the values as were changed may have sunk, so look at that many more.
        ids = largest_ids(self.logits, count + changed.size)
        same = changed[np.minimum(changed.searchsorted(ids), changed.size - 1)] == ids
        ids = np.concatenate([ids[~same], changed])
        ids.sort()
        values = self.logits[ids]
        values[ids.searchsorted(changed)] = new
        _check_maximum(values.max())
        return ids, values

    def weights(self, temperature: float) -> NDArray[np.float32]:
        """exp((value − largest value) ÷ temperature) of every id, in float32 as in llama.cpp. ``[n_vocab]``."""
        highest = self.largest(1)[1].max() if self.changes else self.logits.max()
        _check_maximum(highest)
        with np.errstate(over="ignore"):  # what is far below the highest becomes minus infinity
            weights: NDArray[np.float32] = self.logits - highest
            if self.changes:
                weights[self.changes[0]] = self.changes[1] - highest
            if temperature != 1:
                weights /= np.float32(max(temperature, LOWEST_TEMPERATURE))
        np.exp(weights, out=weights)
        return weights


def _check_maximum(highest: np.floating[Any]) -> None:
    value = float(highest)  # numpy's own scalars compare slowly
    if not value < math.inf:
        raise ValueError("the logits hold NaN or plus infinity")
    if value == -math.inf:
        raise ValueError("no token is left to draw: all logits are minus infinity")


def largest_ids(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Ascending ids of at least the ``count`` largest values, ties included; all above −∞ where there are fewer.

    The row is laid out as stripes, one below the other. The n-th largest of the maxima of its columns is reached by
    at least n values, so it is a bound below which none of the n largest can be; few others reach it.

    Raises:
        ValueError: a value is NaN or plus infinity, or all are minus infinity.
    """
    width = values.size // _NUM_STRIPES
    striped = values[: width * _NUM_STRIPES].reshape(_NUM_STRIPES, width)
    rest = values[width * _NUM_STRIPES :]
    if count * 4 <= width:
        maxima = striped.max(axis=0)
        ordered = maxima.copy()
        ordered.partition(width - count)
        bound = ordered[width - count]
        highest = ordered[width - count :].max()  # NaN counts as the largest
        _check_maximum(np.maximum(highest, rest.max()) if rest.size else highest)
        if bound > -np.inf:
            columns = (maxima >= bound).nonzero()[0]
            # flat, because nonzero of two dimensions takes twice as long
            stripe, column = divmod((striped.take(columns, axis=1) >= bound).ravel().nonzero()[0], columns.size)
            ids = stripe * width + columns[column]
            return np.concatenate([ids, (rest >= bound).nonzero()[0] + striped.size]) if rest.size else ids
    _check_maximum(values.max())
    return (values > -np.inf).nonzero()[0]
