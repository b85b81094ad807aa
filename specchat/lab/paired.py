"""Ratios of what was measured next to each other, with an interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_RESAMPLES = 2000
_TAIL = 2.5  # per cent on either side


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio and its 95% bootstrap interval; the interval is None where not everything was repeated.

    ``pairs`` is how many paired measurements stand behind it.
    """

    value: float
    low: float | None
    high: float | None
    pairs: int


def paired_ratio(groups: Sequence[Sequence[float]]) -> Ratio | None:
    """The geometric mean over groups of the median ratio of each; None where there is no ratio at all.

    A group is one prompt, its ratios are those of the pairs of replies to it. The interval comes from drawing the
    pairs of each prompt anew, with replacement: it tells how far repeating would move the figure, for these prompts.
    There is none where a prompt has one pair only: how far that one scatters is not known, and counts as nothing.

    Args:
        groups: ratios above zero, by prompt; empty groups are left out.
    """
    value = geometric_mean_of_medians(groups)
    if value is None:
        return None
    logs = [np.log(group) for group in groups if group]
    pairs = sum(group.size for group in logs)
    if min(group.size for group in logs) < 2:
        return Ratio(value, None, None, pairs)
    rng = np.random.default_rng(0)  # the same data gives the same interval
    means = np.zeros(_RESAMPLES)
    for group in logs:
        means += np.median(_widened(group)[rng.integers(0, group.size, (_RESAMPLES, group.size))], axis=1)
    low, high = np.exp(np.percentile(means / len(logs), (_TAIL, 100 - _TAIL)))
    return Ratio(value, min(float(low), value), max(float(high), value), pairs)


def _widened(group: NDArray[np.float64]) -> NDArray[np.float64]:
    """What to draw from: two values stand further apart, others as they were measured.

    The mean of n that are drawn from n varies with (n - 1) / n of the variance of a mean of n: of two with half of it.
    The median of three or more that are drawn so varies no less than such a median does.
    """
    if group.size != 2:
        return group
    middle = float(group.mean())
    further: NDArray[np.float64] = middle + math.sqrt(2) * (group - middle)
    return further


def geometric_mean_of_medians(groups: Sequence[Sequence[float]]) -> float | None:
    """The same average for figures that are no ratios; None where there are none."""
    medians = [float(np.median(np.log(group))) for group in groups if group]
    return math.exp(math.fsum(medians) / len(medians)) if medians else None
