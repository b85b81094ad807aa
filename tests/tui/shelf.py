"""A shelf of two pairs, one of which has to be fetched."""

from __future__ import annotations

import threading

from specchat.errors import CancelledError, NetworkError, UsageError
from specchat.pairs.fetching import FetchProgress
from specchat.tui.pair_shelf import PairChoice, PairFiles

HERE = PairFiles("small", "qwen2.5-coder 1.5B ⟵ 0.5B", "/models/target.gguf", "/models/draft.gguf")


class FakeShelf:
    """``small`` is on the disk, ``large`` comes when the test says so, ``gone`` cannot be fetched."""

    def __init__(self) -> None:
        self.arrived = threading.Event()

    def choices(self) -> list[PairChoice]:
        return [
            PairChoice("small", HERE.name, "small enough for a CPU", 1_600_000_000, 0),
            PairChoice("large", "qwen2.5-coder 7B ⟵ 0.5B", "for 8 GB of GPU memory", 5_100_000_000, 4_700_000_000),
        ]

    def name(self, key: str) -> str:
        names = {"small": HERE.name, "large": "qwen2.5-coder 7B ⟵ 0.5B", "gone": "gone"}
        if key not in names:
            raise UsageError(f'There is no pair called "{key}".', 'Did you mean "small"?')
        return names[key]

    def files(self, key: str) -> PairFiles | None:
        return HERE if key == "small" else None

    def fetch(self, key, progress, cancelled) -> PairFiles:
        if key == "gone":
            raise NetworkError("The hub did not answer.", "Try again later.")
        progress(FetchProgress("Qwen2.5-Coder 7B", "hub", 1_175_000_000, 4_700_000_000, "fetching from the hub"))
        while not self.arrived.wait(0.01):
            if cancelled():
                raise CancelledError("stopped", "")
        return PairFiles(key, self.name(key), "/models/large.gguf", "/models/draft.gguf")
