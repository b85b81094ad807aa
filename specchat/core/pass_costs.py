"""What passes of a model cost here, by the number of their tokens, followed while they are used.

The cost is neither smooth nor monotonic in the size (16 tokens can be cheaper than 12), so each size has a figure of
its own. What all sizes share is the pace of the machine: a processor that grows hot, a context that grows long. A
sample moves both a little, and never by much: one stall says nothing about the next pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

_LARGEST_SURPRISE = math.log(1.3)
"""How far a sample may lie from what was expected before it counts as lying this far only."""
_GAIN = 0.15
"""How much of a surprise a well-known size takes over."""
_PACE_GAIN = 0.1
"""How much of it the pace of all sizes takes over."""
_FIRST_SAMPLES = 3
"""Of so many first samples the quickest counts: a size's first pass may wait for memory or for a graph to be built."""
_MOST_COUNTED = 1000


class PassCosts:
    """A live table of seconds by size of a pass.

    Args:
        token_share: what a token more is expected to cost, as a share of a pass of one token, where nothing larger
            is known. Near 0 where memory is the bottleneck (a GPU), 0.6 on a CPU.
    """

    def __init__(self, token_share: float = 0.5) -> None:
        if not 0 <= token_share < math.inf:
            raise ValueError("a token's share of a pass must be a finite number, not negative")
        self._token_share = token_share
        self._seconds: dict[int, float] = {}
        self._samples: dict[int, int] = {}
        self._pace = 1.0

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that were measured, ascending."""
        return tuple(sorted(self._seconds))

    def samples(self, size: int) -> int:
        """How often a pass of this size was seen."""
        return self._samples.get(size, 0)

    def seconds(self, size: int) -> float | None:
        """What a pass of ``size`` tokens is expected to take; None before any pass was seen.

        A size that was never seen costs as much as the dearer of its neighbours, or the line beyond the largest.
        """
        if not self._seconds:
            return None
        known = self._seconds.get(size)
        return (self._estimate(size) if known is None else known) * self._pace

    def hopeful_seconds(self, size: int) -> float | None:
        """`seconds` for a size that is well known; the least that it may cost where it was seen too seldom.

        No pass is expected to be cheaper than a smaller one that is known, or than the line between its neighbours.
        """
        likely = self.seconds(size)
        if likely is None or self.samples(size) >= _FIRST_SAMPLES:
            return likely
        others = [other for other in self._seconds if other != size and self.samples(other) >= _FIRST_SAMPLES]
        smaller = [self._seconds[other] for other in others if other < size]
        return min(likely, max(smaller) * self._pace) if smaller else likely

    def observe(self, size: int, seconds: float) -> None:
        """A pass of ``size`` tokens took so long."""
        if size < 1 or not 0 < seconds < math.inf:
            return
        count = self._samples.get(size, 0)
        self._samples[size] = min(count + 1, _MOST_COUNTED)
        here = seconds / self._pace
        if count == 0:
            # nothing contradicts a first sample but what other sizes make likely
            self._seconds[size] = min(here, 2 * self._estimate(size)) if self._seconds else here
            return
        if count < _FIRST_SAMPLES:
            self._seconds[size] = min(here, self._seconds[size])
            return
        surprise = max(-_LARGEST_SURPRISE, min(_LARGEST_SURPRISE, math.log(here / self._seconds[size])))
        self._seconds[size] *= math.exp(_GAIN * surprise)
        self._pace *= math.exp(_PACE_GAIN * surprise)

    def learn(self, seconds: Mapping[int, float]) -> None:
        """Takes over what was measured before, as if each size had been seen often."""
        for size, value in seconds.items():
            if size >= 1 and 0 < value < math.inf:
                self._seconds[size] = value / self._pace
                self._samples[size] = max(self.samples(size), _FIRST_SAMPLES)

    def to_dict(self) -> dict[str, Any]:
        """What is known, as JSON values."""
        return {
            "seconds": {str(size): self._seconds[size] * self._pace for size in self.sizes},
            "samples": {str(size): self._samples[size] for size in self.sizes},
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Takes over what `to_dict` wrote.

        Raises:
            ValueError: the data is not that.
        """
        try:
            seconds = {int(size): float(value) for size, value in data["seconds"].items()}
            samples = {int(size): int(value) for size, value in data["samples"].items()}
        except (KeyError, TypeError, AttributeError, ValueError) as problem:
            raise ValueError(f"not a table of pass costs: {problem!r}") from problem
        if not all(size >= 1 and 0 < value < math.inf for size, value in seconds.items()):
            raise ValueError("a table of pass costs holds a size or a time that cannot be")
        self._pace = 1.0
        self._seconds = seconds
        self._samples = {size: max(1, samples.get(size, 1)) for size in seconds}

    def _estimate(self, size: int) -> float:
        """A size that was never seen, at the pace at which the table is kept."""
        known = self.sizes
        for low, high in pairwise(known):
            if low < size < high:
                return max(self._seconds[low], self._seconds[high])
        if size < known[0]:
            return self._seconds[known[0]]
        largest = known[-1]
        if len(known) == 1:
            per_token = self._token_share * self._seconds[largest] / largest
        else:
            per_token = max(0.0, (self._seconds[largest] - self._seconds[known[0]]) / (largest - known[0]))
        return self._seconds[largest] + per_token * (size - largest)
