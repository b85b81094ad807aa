"""What passes of a model cost here, by the number of their tokens, followed while they are used.

The cost is neither smooth nor monotonic in the size (16 tokens can be cheaper than 12), so each size has a figure of
its own. What all sizes share is the pace of the machine: a processor that grows hot, a context that grows long. A
sample moves both a little, and never by much: one stall says nothing about the next pass.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_LARGEST_SURPRISE = math.log(1.3)
"""How far a sample may lie from what was expected before it counts as lying this far only."""
_GAIN = 0.15
"""How much of a surprise a well-known size takes over."""
_PACE_GAIN = 0.1
"""How much of it the pace of all sizes takes over."""
_FEW = 3
"""Of so many first samples the quickest counts: a size's first pass may wait for memory or for a graph to be built."""
_MOST_SURPRISING = 2.0
"""A first sample of a size counts as so many times what was expected at most."""
_LONG_AGO = 300
"""After so many other passes a size is little known again: what slowed it down may be over."""


@dataclass(slots=True)
class Course:
    """What all passes on a machine have in common: its pace, and how many there were."""

    pace: float = 1.0
    passes: int = 0


class PassCosts:
    """A live table of seconds by size of a pass.

    Args:
        token_share: what a token more is expected to cost, as a share of a pass of one token, where nothing larger
            is known. Near 0 where memory is the bottleneck (a GPU), 0.6 on a CPU.
        beside: the table of another model that computes on the same machine. Its pace is this one's too, and its passes
            count as time that passes: so a model that is not used for long still follows, and grows little known.

    Attributes:
        course: what it shares with tables beside it.
    """

    def __init__(self, token_share: float = 0.5, *, beside: PassCosts | None = None) -> None:
        if not 0 <= token_share < math.inf:
            raise ValueError("a token's share of a pass must be a finite number, not negative")
        self.token_share = token_share
        self._seconds: dict[int, float] = {}  # at pace 1
        self._sizes: list[int] = []  # those of _seconds, ascending
        self._samples: dict[int, int] = {}
        self._quickest: dict[int, float] = {}  # of the first samples
        self._seen: dict[int, int] = {}
        self._counts = beside is None
        self.course: Course = Course() if beside is None else beside.course

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes that were measured, ascending."""
        return tuple(self._sizes)

    def seconds(self, size: int) -> float | None:
        """What a pass of ``size`` tokens is expected to take; None before any pass was seen.

        A size that was never seen costs as much as the dearer of its neighbours, or the line beyond the largest.
        """
        if not self._seconds:
            return None
        known = self._seconds.get(size)
        return (self._estimate(size) if known is None else known) * self.course.pace

    def hopeful_seconds(self, size: int) -> float | None:
        """`seconds`, or less where the size is little known: what it would cost if ``token_share`` were true."""
        likely = self.seconds(size)
        plain = self.seconds(1)
        if likely is None or plain is None or self.is_well_known(size):
            return likely
        return min(likely, plain * (1 + self.token_share * (size - 1)))

    def is_well_known(self, size: int) -> bool:
        """Whether a size was seen often enough, and lately."""
        return self._samples.get(size, 0) >= _FEW and self.course.passes - self._seen[size] < _LONG_AGO

    def observe(self, size: int, seconds: float) -> None:
        """A pass of ``size`` tokens took so long."""
        if size < 1 or not 0 < seconds < math.inf:
            return
        count = self._samples.get(size, 0)
        here = seconds / self.course.pace
        if count < _FEW:
            quickest = self._quickest[size] = min(here, self._quickest.get(size, math.inf))
            if count == 0 and self._seconds:
                # a stall may have made it long: other sizes say how long it can be
                quickest = min(quickest, _MOST_SURPRISING * self._estimate(size))
            self._set(size, quickest)
        else:
            surprise = max(-_LARGEST_SURPRISE, min(_LARGEST_SURPRISE, math.log(here / self._seconds[size])))
            self._seconds[size] *= math.exp(_GAIN * surprise)
            self.course.pace *= math.exp(_PACE_GAIN * surprise)
        self._samples[size] = min(count + 1, _FEW)
        if self._counts:
            self.course.passes += 1
        self._seen[size] = self.course.passes

    def learn(self, seconds: Mapping[int, float]) -> None:
        """Takes over what was measured with care: each size counts as well known."""
        for size, value in seconds.items():
            if size >= 1 and 0 < value < math.inf:
                self._set(size, value / self.course.pace)
                self._samples[size] = _FEW
                self._seen[size] = self.course.passes

    def to_dict(self) -> dict[str, Any]:
        """What is known, as JSON values: seconds and how often they were seen, by size."""
        return {str(size): [self._seconds[size] * self.course.pace, self._samples[size]] for size in self.sizes}

    def restore(self, data: Mapping[str, Any]) -> None:
        """Takes over what `to_dict` wrote.

        Raises:
            ValueError: the data is not that.
        """
        try:
            table = {int(size): (float(seconds), int(samples)) for size, (seconds, samples) in data.items()}
        except (TypeError, AttributeError, ValueError) as problem:
            raise ValueError(f"not a table of pass costs: {problem!r}") from problem
        if not all(size >= 1 and 0 < seconds < math.inf and samples >= 1 for size, (seconds, samples) in table.items()):
            raise ValueError("a table of pass costs holds what cannot be")
        self._seconds = {size: seconds / self.course.pace for size, (seconds, _) in table.items()}
        self._sizes = sorted(table)
        self._samples = {size: min(samples, _FEW) for size, (_, samples) in table.items()}
        self._quickest = {size: self._seconds[size] for size, samples in self._samples.items() if samples < _FEW}
        self._seen = dict.fromkeys(table, self.course.passes)

    def _set(self, size: int, seconds: float) -> None:
        if size not in self._seconds:
            insort(self._sizes, size)
        self._seconds[size] = seconds

    def _estimate(self, size: int) -> float:
        """A size that was never seen, at pace 1."""
        known = self._sizes
        place = bisect_left(known, size)
        if 0 < place < len(known):
            return max(self._seconds[known[place - 1]], self._seconds[known[place]])
        smallest, largest = known[0], known[-1]
        if size < smallest:
            return self._seconds[smallest]
        if smallest == largest:
            per_token = self._seconds[largest] * self.token_share / (1 + self.token_share * (largest - 1))
        else:
            per_token = max(0.0, (self._seconds[largest] - self._seconds[smallest]) / (largest - smallest))
        return self._seconds[largest] + per_token * (size - largest)
