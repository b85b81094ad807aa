"""How likely a draft model's tokens are kept, from how sure the draft is, learned from what was kept.

How sure a draft is: its *margin*, the distance between its two largest logits, before temperature and truncation. It is
known before the draw (the length rule), costs no softmax, and says as much as entropy does: of a 0.5B draft's tokens
99% are kept where the margin is above 4, and 55% where it is below 1/2.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from specchat.core.sampling import Distribution

Ending: TypeAlias = Literal["kept", "rejected", "plain"]
"""How a round ended: all was kept, something was rejected, or the draft model was not asked."""

_EDGES = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Margins are told apart by these bounds."""
_LIKELIEST = (0.58, 0.63, 0.68, 0.74, 0.8, 0.86, 0.95, 0.985, 0.995, 0.998)
"""The chance of the draft's most likely token, by margin, before anything was learned (Qwen2.5-Coder 0.5B and 1.5B)."""
_OTHER = (0.45, 0.45, 0.47, 0.48, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
"""The chance of another token than the most likely one."""
_NEXT = (0.77, 0.79, 0.8, 0.81, 0.82, 0.84, 0.87, 0.92, 0.94, 0.96)
"""The chance of the token after one that was kept, by the margin of the one that was kept."""
_FIRST = (0.87, 0.76, 0.8)
"""The chance of a round's first token, by how the round before it ended (as `Ending` lists them)."""
_PRIOR_WEIGHT = 8.0
"""How many verdicts the figures above count for."""
_MEMORY = 60.0
"""How many verdicts are remembered at most: pairs differ in how sure of themselves drafts are."""
_SHORT_MEMORY = 16.0
"""The same for what depends on the text more than on the pair: it changes from sentence to sentence."""
_STALE = 0.97
"""What a round without the draft model leaves of what is remembered of its text."""
_TRUST_MEMORY = 25.0
"""Over how many judged tokens what was kept is compared with what was expected."""
_LEAST_TRUST_WEIGHT = 2.0
_TRUSTED = 0.1
"""A difference of so much between kept and expected is taken for chance."""
_MOST_TRUST = 1.5
_ALMOST_SURE = 0.999


def margin(q: Distribution, logits: NDArray[np.float32] | None = None) -> float:
    """The distance between the two largest logits; from q where there are no logits. 0 or more, perhaps infinite."""
    if logits is None:
        if len(q) < 2:
            return math.inf
        second, first = np.partition(q.probs, len(q) - 2)[-2:]
        return math.log(first / second)
    if logits.size < 2:
        return math.inf
    distance = _distance(logits, q.likeliest)
    if distance < 0:  # penalties or a bias made another one the likeliest
        distance = _distance(logits, int(logits.argmax()))
    return distance if distance >= 0 else math.inf  # minus infinity beside it is NaN or infinite


def _distance(logits: NDArray[np.float32], token: int) -> float:
    """From the largest logit of another token to this one's."""
    beside = [part.max() for part in (logits[:token], logits[token + 1 :]) if part.size]
    return logits.item(token) - float(max(beside))


class _Rates:
    """Shares of yes among yes and no, one for each of several cases; the latest count most."""

    def __init__(self, first: Sequence[float], weight: float = _PRIOR_WEIGHT) -> None:
        self.rates = list(first)
        self.weights = [weight] * len(self.rates)

    def observe(self, case: int, outcome: float, memory: float = _MEMORY) -> None:
        self.weights[case] = min(self.weights[case] + 1, memory)
        self.rates[case] += (outcome - self.rates[case]) / self.weights[case]

    def to_dict(self) -> dict[str, Any]:
        return {"rates": [round(rate, 4) for rate in self.rates], "weights": [round(w, 1) for w in self.weights]}

    def restore(self, data: Mapping[str, Any]) -> None:
        rates, weights = [float(rate) for rate in data["rates"]], [float(weight) for weight in data["weights"]]
        if not len(rates) == len(weights) == len(self.rates) or not all(0 <= rate <= 1 for rate in rates):
            raise ValueError("shares of another kind")
        self.rates, self.weights = rates, [max(0.0, weight) for weight in weights]


class Acceptance:
    """Estimates of P(kept), each given that all tokens of the round before it are kept."""

    def __init__(self) -> None:
        self._likeliest = _Rates(_LIKELIEST)
        self._other = _Rates(_OTHER)
        self._next = _Rates(_NEXT)
        self._first = _Rates(_FIRST)
        self._later = _Rates([0.88])
        self._judged = _Rates([0.0], weight=0.0)
        self._kept = self._expected = _TRUST_MEMORY / 2

    def before_draw(self, sureness: float, largest: float) -> float:
        """Of the token that is about to be drawn: by the draft's margin and the largest probability of its q."""
        return self._trusted(self._chance(sureness, largest))

    def after_draw(self, sureness: float, is_likeliest: bool) -> float:
        """Of a token that was drawn: by the margin, and whether it is the draft's most likely token."""
        return self._trusted((self._likeliest if is_likeliest else self._other).rates[bisect_right(_EDGES, sureness)])

    def next(self, sureness: float) -> float:
        """Of the token after one that was drawn where the margin was this one."""
        return self._trusted(self._next.rates[bisect_right(_EDGES, sureness)])

    def first(self, ending: Ending) -> float:
        """Of a round's first token, by the ending of the round before."""
        return self._trusted(self._first.rates[get_args(Ending).index(ending)])

    @property
    def later(self) -> float:
        """Of tokens further on, of which nothing is known yet."""
        return self._trusted(self._later.rates[0])

    @property
    def by_position(self) -> tuple[float, float]:
        """The usual chance of a round's first token, and of one further on."""
        return self._trusted(sum(self._first.rates) / len(self._first.rates)), self.later

    @property
    def recent(self) -> float | None:
        """The share of judged tokens that was kept lately; None before any was judged."""
        return self._judged.rates[0] if self._judged.weights[0] > 0 else None

    def observe_draw(self, sureness: float, is_likeliest: bool, kept: bool) -> None:
        """A drawn token was judged."""
        rates, case = self._likeliest if is_likeliest else self._other, bisect_right(_EDGES, sureness)
        keep = 1 - 1 / _TRUST_MEMORY
        self._kept = keep * self._kept + kept
        self._expected = keep * self._expected + rates.rates[case]
        rates.observe(case, kept)
        self._judged.observe(0, kept, _SHORT_MEMORY)

    def observe_next(self, before: float, sureness: float, largest: float) -> None:
        """After a token drawn at the margin ``before``, the draft is as sure as this of the following one."""
        chance = self._chance(sureness, largest)
        self._next.observe(bisect_right(_EDGES, before), chance)
        self._later.observe(0, chance, _SHORT_MEMORY)

    def observe_first(self, ending: Ending, sureness: float, largest: float) -> None:
        """After a round that ended so, the draft is as sure as this of the first token."""
        self._first.observe(get_args(Ending).index(ending), self._chance(sureness, largest), _SHORT_MEMORY)

    def grow_stale(self) -> None:
        """A round without the draft model: what it does by now is a little less known."""
        for rates in (self._first, self._later):
            rates.weights = [max(1.0, weight * _STALE) for weight in rates.weights]
        if self._expected > _LEAST_TRUST_WEIGHT:
            self._kept, self._expected = self._kept * _STALE, self._expected * _STALE

    def _chance(self, sureness: float, largest: float) -> float:
        case = bisect_right(_EDGES, sureness)
        return largest * self._likeliest.rates[case] + (1 - largest) * self._other.rates[case]

    def _trusted(self, chance: float) -> float:
        """The chance as it turns out lately: a text may be one on which being sure means little."""
        trust = self._kept / self._expected
        if trust < 1 - _TRUSTED:
            return chance * trust / (1 - _TRUSTED)
        if trust > 1 + _TRUSTED:
            return min(_ALMOST_SURE, chance * min(_MOST_TRUST, trust) / (1 + _TRUSTED))
        return chance

    def to_dict(self) -> dict[str, Any]:
        """What was learned, as JSON values."""
        return {name: rates.to_dict() for name, rates in self._all().items()} | {
            "trust": [round(self._kept, 2), round(self._expected, 2)]
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Takes over what `to_dict` wrote.

        Raises:
            ValueError: the data is not that.
        """
        try:
            for name, rates in self._all().items():
                rates.restore(data[name])
            kept, expected = map(float, data["trust"])
            if not 0 <= kept < math.inf or not 0 < expected < math.inf:
                raise ValueError(f"trust of {kept} ÷ {expected}")
            self._kept, self._expected = kept, expected
        except (KeyError, TypeError, ValueError) as problem:
            raise ValueError(f"not what was learned of a draft: {problem!r}") from problem

    def _all(self) -> dict[str, _Rates]:
        return {name: getattr(self, f"_{name}") for name in ("likeliest", "other", "next", "first", "later", "judged")}
