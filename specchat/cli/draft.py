"""``specchat draft``: cuts a draft from a target, by keeping its first and last layers."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from specchat.cli.choices import World, look_around
from specchat.cli.terminal import ProgressLine, interrupts, write_text
from specchat.core.safe_text import safe_text
from specchat.errors import UsageError
from specchat.files import expanded
from specchat.pairs.cut_draft import cut_draft
from specchat.pairs.fetching import size_text
from specchat.pairs.store import locate


def draft(options: argparse.Namespace) -> int:
    """Writes the file and says how to use it. Returns the exit status."""
    target, output = _file_of(look_around(), options.target), expanded(options.output)
    line = ProgressLine()
    with interrupts() as interrupt:
        try:
            cut = cut_draft(
                target,
                output,
                options.layers,
                overwrite=getattr(options, "force", False),
                progress=lambda fraction: line.show(f"writing {output.name}", fraction),
                cancelled=lambda: bool(interrupt),
            )
        finally:
            line.clear()
    use = f"--target {shlex.quote(str(target))} --draft {shlex.quote(str(output))}"
    text = f"{output}: {len(cut.layers)} of {cut.n_layers_before} layers, {size_text(cut.size)}"
    write_text(safe_text(text, keep_newlines=False) + "\n")
    write_text(safe_text(f"To see how often it is right: specchat {use}", keep_newlines=False) + "\n")
    return 0


def _file_of(world: World, name: str) -> Path:
    """A file, or the file of a model of the catalogue.

    Raises:
        UsageError: there is no such model, or it has not been fetched.
    """
    path = expanded(name)
    if name not in world.catalog.models and (path.suffix.lower() == ".gguf" or path.exists()):
        return path
    stored = locate(world.catalog.model(name), world.paths.models)
    if stored is None:
        raise UsageError(f"{name} is not on this disk.", f"Fetch it first: specchat pull {name}")
    return stored.path
