"""How much time may be spent on trials: what keeps them a small share of the whole."""

from __future__ import annotations


class Allowance:
    """A small account, in plain target steps. It earns a share of the time that passes, and pays for what is lost.

    Args:
        share: what it earns, as a share of the time.
        most: it never holds more, so that a long time without trials does not pay for many at once.
    """

    def __init__(self, share: float, most: float) -> None:
        self.amount = 0.0
        self._share = share
        self._most = most

    def earn(self, steps: float) -> None:
        """Time has passed, in plain target steps."""
        self.add(self._share * steps)

    def add(self, steps: float) -> None:
        """Something was won, or lost where it is negative. It is never deeper in debt than what it can hold."""
        self.amount = min(self._most, max(-self._most, self.amount + steps))
