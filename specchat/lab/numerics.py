"""How far a model's own numbers move when nothing but the number of tokens in a pass changes.

llama.cpp computes passes of different sizes with different routines, and their sums differ in the last bits. So two
evaluations of one text, both without any draft, do not quite agree. What drafting changes is held against that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from specchat.lab.writer import Law

_LEAST_DISTANCE = 0.01
"""In logits: less is allowed anywhere, as a ratio of 1.01 between two probabilities is no difference to speak of."""
_RELEVANT = 0.05
"""Tokens less likely than this are no rivals of the likeliest; their logits move more."""
_DEVIATIONS = 4.0
"""A distance of so many standard deviations of the noise is no noise."""
_LEAST_VARIATION = 0.1
"""Total variation that is always allowed. Sound passes of models of a few bits a weight differed by up to 0.06 from
single ones, and after a wrong cache by 0.27 and more; hundreds of samples hardly show it."""
_TIMES = 2.0
"""A total variation of so many times the largest one of the noise is no noise."""
_EDGE = 0.1
"""What tokens at the edge of truncation, or of the list, may hold together: they come and go with the last bits."""


@dataclass(slots=True)
class Noise:
    """What two plain evaluations of the same texts, one token a pass and many, differ by.

    Attributes:
        distances: of logits to the largest one: one evaluation's less the other's.
        variations: the total variation between the two laws of each text.
    """

    distances: list[float] = field(default_factory=list)
    variations: list[float] = field(default_factory=list)

    def add(self, one: Law, other: Law) -> None:
        """Takes two evaluations of one text into account, at temperature 1 and without truncation."""
        top = max(one, key=lambda token: one[token])
        if top in other:
            both = [token for token in one if one[token] > _RELEVANT and token in other and token != top]
            self.distances += [math.log(one[token] / one[top] * other[top] / other[token]) for token in both]
        self.variations.append(variation(one, other))

    @property
    def distance(self) -> float:
        """Up to which distance between the two largest logits they can change places."""
        if not self.distances:
            return _LEAST_DISTANCE
        deviation = math.sqrt(math.fsum(value**2 for value in self.distances) / len(self.distances))
        return max(_LEAST_DISTANCE, _DEVIATIONS * deviation)

    @property
    def variation(self) -> float:
        """Up to which total variation two laws count as the same."""
        return max(_LEAST_VARIATION, _TIMES * max(self.variations, default=0.0))


def variation(one: Law, other: Law) -> float:
    """The total variation between two laws of which the largest probabilities are known.

    It is that of what both list, each taken for itself: a token at the edge of truncation changes all probabilities by
    a factor and no preference. What only one of them lists is added where it is more than an edge can be.
    """
    both = one.keys() & other.keys()
    if not both:
        return 1.0
    of_one, of_other = (math.fsum(law[token] for token in both) for law in (one, other))
    within = math.fsum(abs(one[token] / of_one - other[token] / of_other) for token in both) / 2
    lost = max(math.fsum(one.values()) - of_one, math.fsum(other.values()) - of_other)
    return min(1.0, within + max(0.0, lost - _EDGE))
