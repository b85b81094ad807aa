"""A pair's files, fetched where they are missing, with progress on standard error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from specchat.cli.terminal import FetchLine, Interrupt, ProgressLine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from specchat.pairs.catalog import Model


def bring(models: Sequence[Model], folder: Path, *, offline: bool, interrupt: Interrupt) -> list[Path]:
    """The models' files, in their order; what is missing is fetched.

    Raises:
        DownloadError: a file could not be fetched; `CancelledError` where it was interrupted.
        ModelFileError: a file of the person's own is missing or broken.
    """
    from specchat.pairs.sources import fetch

    line = ProgressLine()
    try:
        return [
            fetch(model, folder, offline=offline, progress=FetchLine(line), cancelled=lambda: bool(interrupt))
            for model in models
        ]
    finally:
        line.clear()
