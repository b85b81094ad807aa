"""Whether free proposals keep what they promise: what lets long ones be used, and stops them where they mislead.

A proposer says how likely each of its tokens is kept. One that is honest loses often enough, and wins it back; one that
is wrong about a text loses more than its own promises make likely. Then only so much is risked as can be afforded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_SURPRISING = 3.0
"""Losses of so many standard deviations beyond what was promised are no bad luck."""
_MEMORY = 300.0
"""After so many rounds what was promised is hardly remembered."""
_SHARE = 0.006
"""What may be lost on proposals that are distrusted, as a share of the time."""
_MOST = 6.0
"""The most that is put aside for it, in plain steps."""


class Promises:
    """Follows what free proposals promised and brought, in tokens beyond plain decoding."""

    def __init__(self) -> None:
        self._difference = 0.0
        self._variance = 1.0
        self._put_aside = 1.0
        self._promised: tuple[float, float] | None = None

    @property
    def are_kept(self) -> bool:
        """Whether what was lost can be bad luck."""
        return self._difference > -_SURPRISING * math.sqrt(self._variance)

    def allow(self, cost: float) -> bool:
        """Whether a pass that costs so many plain steps may be spent on a proposal."""
        return self.are_kept or cost - 1 <= self._put_aside

    def accept(self, chances: Sequence[float], cost: float) -> None:
        """These tokens are used, in a pass that costs so many plain steps."""
        mean = square = 0.0
        survival = 1.0
        for kept, chance in enumerate((*chances, 0.0)):
            mean += survival * (1 - chance) * kept
            square += survival * (1 - chance) * kept**2
            survival *= chance
        self._promised = 1 + mean - cost, square - mean**2

    def end_round(self, num_tokens: int, cost: float) -> None:
        """A round brought so many tokens at so many plain steps."""
        fade = 1 - 1 / _MEMORY
        self._difference *= fade
        self._variance = max(1.0, self._variance * fade**2)
        self._put_aside = min(_MOST, self._put_aside + _SHARE * cost)
        if self._promised is None:
            return
        (mean, variance), self._promised = self._promised, None
        self._difference += num_tokens - cost - mean
        self._variance += variance
        if not self.are_kept:
            self._put_aside = max(0.0, self._put_aside + min(0.0, num_tokens - cost))
