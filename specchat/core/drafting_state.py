"""Whether a draft model is at work, as a person should see it: a single round that goes otherwise is no news."""

from __future__ import annotations

_ROUNDS_TO_ON = 3
_ROUNDS_TO_OFF = 12


class DraftingState:
    """Follows whether the draft model is asked, and notices when that has changed for good."""

    def __init__(self) -> None:
        self._is_on: bool | None = None
        self._otherwise = 0

    def changed_to(self, asked: bool) -> bool | None:
        """Takes a round into account. Returns the new state where it is news, None where nothing has changed.

        The first round is news; after that a change must hold for a few rounds.
        """
        if asked == self._is_on:
            self._otherwise = 0
            return None
        self._otherwise += 1
        if self._is_on is not None and self._otherwise < (_ROUNDS_TO_ON if asked else _ROUNDS_TO_OFF):
            return None
        self._is_on = asked
        self._otherwise = 0
        return asked
