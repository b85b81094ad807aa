"""A length rule that tells a test what it was told."""

from __future__ import annotations

from collections.abc import Sequence

from specchat.core.draft_length import FixedLength


class Listening(FixedLength):
    """γ tokens as ever; ``chances`` are those of the last proposal."""

    def __init__(self, num_draft_tokens: int) -> None:
        super().__init__(num_draft_tokens)
        self.chances: list[float] = []

    def choose(self, chances: Sequence[float]) -> int:
        self.chances = list(chances)
        return super().choose(chances)
