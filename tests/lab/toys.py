"""Pairs for tests of commands: tiny files to name, and a toy pair that answers in their place."""

from __future__ import annotations

import os
from pathlib import Path

from specchat.engine.interface import DeviceList, Load
from specchat.engine.local import LocalEngine
from tests.engine import toy_loader
from tests.gguf_writer import write_tiny_model


def tiny_pair(folder: Path, perturb: float) -> tuple[str, ...]:
    """The options that name a target and a draft, which differs from it by so much."""
    target = write_tiny_model(folder / "target.gguf", seed=1, n_ctx_train=60_000)
    draft = write_tiny_model(folder / "draft.gguf", seed=1, perturb=perturb, n_ctx_train=60_000)
    return ("--target", str(target), "--draft", str(draft))


class ToyEngine(LocalEngine):
    """A toy pair in this process, whatever files are named."""

    pid = os.getpid()

    def __init__(self) -> None:
        super().__init__(self.load, lambda: DeviceList((), "toy", "none"))

    @staticmethod
    def load(command: Load, on_progress):
        return toy_loader.load(Load("quiet", command.draft and "toy-draft", exact=command.exact), on_progress)
