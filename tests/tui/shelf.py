"""A shelf of three pairs, one of which is on the disk, one comes when the test says so, and one cannot be fetched."""

from __future__ import annotations

import threading
from pathlib import Path

from specchat.errors import CancelledError, NetworkError
from specchat.pairs.catalog import Catalog, Model, Pair
from specchat.pairs.collection import Collection
from specchat.pairs.fetching import FetchProgress
from specchat.pairs.memory import Surroundings
from specchat.tui.pair_shelf import PairFiles
from tests.pairs.kept import Kept
from tests.pairs.machines import machine

HERE = PairFiles("small", "qwen2.5-coder 1.5B ⟵ 0.5B", "/models/target.gguf", "/models/draft.gguf")

_MODELS = {
    "target": Model(key="target", name="qwen2.5-coder 1.5B", file="target.gguf", size=1_100_000_000, license="mit"),
    "draft": Model(key="draft", name="qwen2.5-coder 0.5B", file="draft.gguf", size=500_000_000, license="mit"),
    "large": Model(key="large", name="qwen2.5-coder 7B", file="large.gguf", size=4_700_000_000, license="mit"),
    "gone": Model(key="gone", name="gone", file="gone.gguf", size=90_000_000),
}
_PAIRS = {
    "small": Pair(key="small", target="target", draft="draft", note="Small enough for a CPU."),
    "large": Pair(key="large", target="large", draft="draft", note="For 8 GB of GPU memory."),
    "gone": Pair(key="gone", target="gone"),
}


class FakeShelf:
    """``small`` is on the disk, ``large`` comes when the test says so, ``gone`` cannot be fetched."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.used: list[PairFiles] = []
        self.collection = Collection(
            Catalog(_MODELS, _PAIRS), Path("/nowhere"), Kept(), lambda: Surroundings(machine(8), "b1")
        )

    def name(self, key: str) -> str:
        return self.collection.pair(key).name

    def files(self, key: str) -> PairFiles | None:
        return HERE if key == "small" else None

    def chosen(self, files: PairFiles) -> None:
        self.used.append(files)

    def fetch(self, key, progress, cancelled) -> PairFiles:
        if key == "gone":
            raise NetworkError("The hub did not answer.", "Try again later.")
        progress(FetchProgress("qwen2.5-coder 7B", "hub", 1_175_000_000, 4_700_000_000, "fetching from the hub"))
        while not self.arrived.wait(0.01):
            if cancelled():
                raise CancelledError("stopped", "")
        return PairFiles(key, self.name(key), "/models/large.gguf", "/models/draft.gguf")
