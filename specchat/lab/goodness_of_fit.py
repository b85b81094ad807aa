"""Whether counts fit a law that is known exactly: chi-square tests, with the tail that suits how much was counted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Table: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float64]]
"""How often each of k outcomes came, and their probabilities, which sum to 1: ``[k]`` both."""

_MANY = 20.0
"""Cells expected less often are put together before the chi-square tail is used. Measured: see `chi_square_fit`."""
_FEW = 2.0
"""The same before a statistic is simulated: rarer cells would hide the others."""
_BATCH = 20_000
_MOST_SIMULATIONS = 1_000_000
_ENOUGH = 20
"""A simulation ends after so many statistics as large as the observed one: the tail is then known well enough."""
_ROUNDING = 1e-9
"""Less than this is no probability: sums of rounded numbers differ from 1 by less."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How well counts fit: the statistic, its degrees of freedom, and the chance of one at least as large.

    The statistic is infinite and the chance 0 where something came that cannot come.
    """

    statistic: float
    df: int
    p_value: float


def chi_square_tail(statistic: float, df: int) -> float:
    """P(X ≥ statistic) of a chi-square variable with ``df`` degrees of freedom: Q(df/2, statistic/2).

    The regularised upper incomplete gamma function is a finite sum for whole ``df`` (Abramowitz and Stegun 26.4.4 and
    26.4.5). All its terms are positive, so that the far tail is as exact as the middle.
    """
    if df < 1 or statistic <= 0:
        return 0.0 if statistic > 0 else 1.0
    if math.isinf(statistic):
        return 0.0
    x = statistic / 2
    odd = df % 2
    terms = [math.erfc(math.sqrt(x))] if odd else []
    for i in range(df // 2):
        k = i + odd / 2
        terms.append(math.exp(k * math.log(x) - x - math.lgamma(k + 1)))
    return min(1.0, math.fsum(terms))


def chi_square_fit(tables: Iterable[Table]) -> Fit:
    """Pearson's test over several tables together, for many counts: the tail is the chi-square one.

    With cells of 20 and more expected counts that tail is close where it matters: of 300,000 simulated tables of the
    size of ``verify --toy``, the share beyond a tail of 1e-2 to 2e-5 was 0.7 to 2.2 times what it says.
    """
    statistic, df = 0.0, 0
    for counts, probs in tables:
        if _impossible(counts, probs):
            return Fit(math.inf, df, 0.0)
        cells = _merged(counts, probs, _MANY)
        statistic += float(_statistics(*cells).sum())
        df += cells[0].size - 1
    return Fit(statistic, df, chi_square_tail(statistic, df))


def simulated_fit(tables: Iterable[Table], rng: np.random.Generator) -> Fit:
    """Pearson's test over several tables together, for few counts: the tail is found by simulation.

    Tables are drawn from the laws themselves until enough have a statistic as large as the observed one (Besag and
    Clifford 1991), so that no approximation is involved. The smallest p-value is about 1e-6.
    """
    cells: list[Table] = []
    for counts, probs in tables:
        if _impossible(counts, probs):
            return Fit(math.inf, sum(kept[0].size - 1 for kept in cells), 0.0)
        if (kept := _merged(counts, probs, _FEW))[0].size > 1:
            cells.append(kept)
    statistic = math.fsum(_statistics(*kept).item() for kept in cells)
    df = sum(kept[0].size - 1 for kept in cells)
    if not cells:
        return Fit(0.0, 0, 1.0)
    simulated = reached = 0
    while simulated < _MOST_SIMULATIONS and reached < _ENOUGH:
        drawn = np.zeros(_BATCH)
        for counts, probs in cells:
            drawn += _statistics(rng.multinomial(counts.sum(), probs, _BATCH), probs)
        reached += int((drawn >= statistic - _ROUNDING).sum())
        simulated += _BATCH
    return Fit(statistic, df, (reached + 1) / (simulated + 1))


def binomial_fit(successes: int, groups: Sequence[tuple[int, float]]) -> Fit:
    """Whether so many successes fit, of ``(trials, chance)`` groups together: two-sided, exact at any size.

    The law of the sum is the convolution of the groups' binomial laws; the p-value is twice the smaller tail. The
    statistic is z².
    """
    mean = math.fsum(trials * chance for trials, chance in groups)
    variance = math.fsum(trials * chance * (1 - chance) for trials, chance in groups)
    if variance <= _ROUNDING:
        exact = abs(successes - mean) < 0.5
        return Fit(0.0, 1, 1.0) if exact else Fit(math.inf, 1, 0.0)
    law = np.ones(1)
    for trials, chance in groups:
        law = np.convolve(law, _binomial(trials, chance))
    smaller = min(math.fsum(law[: successes + 1]), math.fsum(law[successes:]))
    return Fit((successes - mean) ** 2 / variance, 1, min(1.0, 2 * smaller))


def _binomial(trials: int, chance: float) -> NDArray[np.float64]:
    """The binomial law. ``[trials + 1]``."""
    law = np.zeros(trials + 1)
    if chance < _ROUNDING or chance > 1 - _ROUNDING:
        law[0 if chance < 0.5 else trials] = 1.0
        return law
    log_factorials = np.concatenate([[0.0], np.log(np.arange(1, trials + 1)).cumsum()])
    ways = log_factorials[-1] - log_factorials - log_factorials[::-1]
    k = np.arange(trials + 1)
    return np.asarray(np.exp(ways + k * math.log(chance) + (trials - k) * math.log1p(-chance)), dtype=np.float64)


def _impossible(counts: NDArray[np.int64], probs: NDArray[np.float64]) -> bool:
    return bool((counts[probs < _ROUNDING] > 0).any())


def _merged(counts: NDArray[np.int64], probs: NDArray[np.float64], least: float) -> Table:
    """The table with its rarest outcomes put together until each cell is expected ``least`` times.

    Which are put together depends on the law and on how much was counted, never on what came.
    """
    total = int(counts.sum())
    merged: list[tuple[int, float]] = []
    count, prob = 0, 0.0
    for i in probs.argsort(kind="stable").tolist():
        count, prob = count + int(counts[i]), prob + float(probs[i])
        if total * prob >= least:
            merged.append((count, prob))
            count, prob = 0, 0.0
    if prob > 0 and merged:
        last = merged.pop()
        count, prob = count + last[0], prob + last[1]
    if prob > 0:
        merged.append((count, prob))
    observed = np.array([each for each, _ in merged], dtype=np.int64)
    shares = np.array([each for _, each in merged])
    return observed, shares / shares.sum()


def _statistics(counts: NDArray[np.int64], probs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Pearson's statistic of each table of ``[…, k]`` counts."""
    expected = counts.sum(axis=-1, keepdims=True) * probs
    return np.asarray(((counts - expected) ** 2 / np.maximum(expected, _ROUNDING)).sum(axis=-1), dtype=np.float64)
