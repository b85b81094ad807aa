"""What the pairs' list needs of that which is kept from one start to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from specchat.pairs.measured import PairMeasurement


class Remembered(Protocol):
    """What is remembered from one start to the next (`specchat.config.State`)."""

    @property
    def added(self) -> Sequence[str]:
        """Files and folders that the person added."""

    @property
    def combined(self) -> Sequence[tuple[str, str]]:
        """Pairs that the person made: target and draft, as `specchat.pairs.combining.reference` names them."""

    @property
    def measurements(self) -> Sequence[PairMeasurement]:
        """What was measured, the latest last."""


class Memory(Protocol):
    """Where that is kept. Nothing here fails: what cannot be kept is forgotten, and said when the program ends."""

    def read(self) -> Remembered:
        """What is remembered now."""

    def add_place(self, path: str) -> None:
        """Remembers a file or a folder."""

    def forget_place(self, path: str) -> None:
        """Forgets it again."""

    def add_pair(self, target: str, draft: str) -> None:
        """Remembers a pair that the person made."""

    def forget_pair(self, target: str, draft: str) -> None:
        """Forgets it again."""
