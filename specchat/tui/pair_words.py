"""What the parts of the pair picker write alike: texts from files and errors, and the colours of verdicts."""

from __future__ import annotations

from pathlib import Path

from rich.cells import cell_len, set_cell_size

from specchat.core.safe_text import safe_text
from specchat.pairs.row_text import Verdict

LEVELS = {"good": "$success", "fair": "$warning", "bad": "$error", "open": "$quiet"}
"""The colour of a verdict. Its mark says the same without colour."""


def shown(text: str) -> str:
    """Text from a file, a path or an error: safe to show, on one line, with the person's home as ``~``."""
    home = str(Path.home())
    return safe_text(text.replace(home, "~") if len(home) > 1 else text, keep_newlines=False, keep_tabs=False)


def fitted(text: str, cells: int) -> str:
    """The text in exactly so many cells; an ellipsis says that it was cut."""
    return set_cell_size(text if cell_len(text) <= cells else f"{set_cell_size(text, cells - 1).rstrip()}…", cells)


def verdict_cell(verdict: Verdict, word: str | None = None) -> tuple[str, str]:
    """A verdict's text and style; ``word`` where there is room for another only."""
    return f"{verdict.mark} {word or verdict.word}", LEVELS[verdict.level]
