"""``specchat pull``: fetches models ahead of time, and shows what is on disk."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from specchat.cli.choices import World, look_around
from specchat.cli.files import bring
from specchat.cli.terminal import interrupts, write_text
from specchat.core.safe_text import safe_text
from specchat.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from specchat.pairs.catalog import Model
    from specchat.pairs.store import Inventory


def pull(options: argparse.Namespace) -> int:
    """Fetches a pair or a model, or lists what there is. Returns the exit status."""
    from specchat.pairs.catalog import DEFAULT_PAIR

    world = look_around()
    name = getattr(options, "name", None)
    if getattr(options, "list", False):
        if name is not None:
            raise UsageError("--list shows everything.", "Leave the name out.")
        _print_list(world)
        return 0
    models = world.catalog.models_of(name or world.settings.pair or DEFAULT_PAIR)
    offline = bool(getattr(options, "offline", world.settings.offline))
    with interrupts() as interrupt:
        paths = bring(models, world.paths.models, offline=offline, interrupt=interrupt)
    for model, path in zip(models, paths, strict=True):
        write_text(safe_text(f"{model.name}: {path}", keep_newlines=False) + "\n")
    return 0


def _print_list(world: World) -> None:
    from specchat.pairs.store import on_disk

    inventory = on_disk(world.catalog, world.paths.models)
    for line in (*_model_lines(world, inventory), "", *_pair_lines(world), *_other_lines(inventory)):
        write_text(safe_text(line, keep_newlines=False) + "\n")


def _model_lines(world: World, inventory: Inventory) -> Iterator[str]:
    places = {"folder": "on disk", "hub": "on disk, in the hub's cache", "own": "your own file"}
    stored = {key: found for found in inventory.models for key in found.keys}
    yield "Models"
    for key, model in world.catalog.models.items():
        found = stored.get(key)
        where = "not here" if found is None else places[found.place] + ("" if found.checked else ", not checked yet")
        yield f"  {key:<24} {_size(model, found.size if found else None):>8}  {where}"


def _pair_lines(world: World) -> Iterator[str]:
    yield "Pairs (target ⟵ draft)"
    for pair in world.catalog.pairs.values():
        yield f"  {pair.key:<24} {pair.target} ⟵ {pair.draft or 'none'}"


def _other_lines(inventory: Inventory) -> Iterator[str]:
    from specchat.pairs.fetching import size_text

    others = [found for found in inventory.models if not found.keys]
    if others:
        yield ""
        yield "Other GGUF files"
        yield from (f"  {size_text(found.size):>8}  {found.path}" for found in others)
    if inventory.leftovers:
        yield ""
        yield "Unfinished"
        for item in inventory.leftovers:
            resumable = "the next fetch goes on from it" if item.resumable else "of no use to anybody"
            yield f"  {size_text(item.size):>8}  {item.path} ({item.what}; {resumable})"
    yield ""
    yield f"In all {size_text(inventory.size)} on disk."


def _size(model: Model, stored: int | None) -> str:
    from specchat.pairs.fetching import size_text

    size = stored or model.size
    return "?" if size is None else size_text(size)
