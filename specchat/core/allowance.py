"""How much time may be risked: what keeps trials, and bets that turn out wrong, a small share of the whole."""

from __future__ import annotations


class Allowance:
    """A small account, in plain target steps. It earns a share of the time that passes, and pays for what is lost.

    Args:
        share: what it earns, as a share of the time.
        most: it never holds more, so that a good stretch does not pay for a bad one much later.
        start: what it holds in the beginning.
    """

    def __init__(self, share: float, most: float, start: float = 0.0) -> None:
        self.amount = start
        self._share = share
        self._most = most

    def earn(self, steps: float) -> None:
        """Time has passed, in plain target steps."""
        self.add(self._share * steps)

    def add(self, steps: float) -> None:
        """Something was won, or lost where it is negative. It is never deeper in debt than what it can hold."""
        self.amount = min(self._most, max(-self._most, self.amount + steps))

    def begin(self, most: float) -> None:
        """A new reply: what was won in another text is worth no more than this."""
        self.amount = min(self.amount, most)
