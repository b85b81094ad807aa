"""``specchat --pair --list``: the table of the pair picker, for a terminal without it and for scripts."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator, Sequence

from specchat.cli.choices import Choices, World, look_around
from specchat.cli.devices import ask_devices
from specchat.cli.remembering import StateMemory
from specchat.cli.terminal import say, write_text
from specchat.core.safe_text import safe_json, safe_text
from specchat.engine.interface import DeviceList
from specchat.errors import UsageError
from specchat.pairs.collection import Collection
from specchat.pairs.fetching import size_text
from specchat.pairs.found import LeftOut
from specchat.pairs.memory import Machine, Surroundings
from specchat.pairs.remembered import Memory
from specchat.pairs.row_text import fit_text, measured_text, row_json, where
from specchat.pairs.rows import ModelState, PairRow, sorted_rows

_COLUMNS = ("", "pair", "target", "draft", "", "memory", "vocabulary", "measured here", "licence")


def collection_of(world: World, choices: Choices, memory: Memory) -> Collection:
    """Every pair that there is, for the picker and for the list."""
    return Collection(
        world.catalog,
        world.paths.models,
        memory,
        lambda: _surroundings(choices),
        offline=choices.offline,
        n_ctx=choices.given("ctx"),
        gpu_layers=choices.given("gpu_layers"),
    )


def pairs(options: argparse.Namespace) -> int:
    """Prints one row a pair, as the picker has them. Loads no model."""
    world = look_around()
    collection = collection_of(world, Choices(options, world), StateMemory(world.paths.state_file))
    rows = sorted_rows(collection.all_rows(), "fit")
    if collection.around is not None and collection.around.problem:
        say(f"Memory is not compared: {collection.around.problem}")
    if getattr(options, "json", False):
        for row in rows:
            write_text(safe_json(json.dumps(row_json(row), ensure_ascii=False)) + "\n")
        return 0
    for line in (*_table(rows), *_about(rows), *_left_out(collection.left_out)):
        write_text(safe_text(line, keep_newlines=False).rstrip() + "\n")
    return 0


def _surroundings(choices: Choices) -> Surroundings:
    answer = ask_devices()
    if not isinstance(answer, DeviceList):
        return Surroundings(None, problem=f"{answer.message} {answer.next_step}")
    chosen = choices.given("device"), choices.given("device_draft")
    try:
        return Surroundings(Machine(answer.devices, answer.system_info, *chosen), answer.build)
    except UsageError as error:
        return Surroundings(None, answer.build, f"{error.message} {error.next_step}")


def _table(rows: Sequence[PairRow]) -> Iterator[str]:
    cells = [_COLUMNS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_COLUMNS))]
    yield from ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def _cells(row: PairRow) -> tuple[str, ...]:
    return (
        "*" if row.is_recommended else "",
        row.key,
        _size(row.target),
        "none" if row.draft is None else _size(row.draft),
        where(row),
        fit_text(row),
        row.match,
        measured_text(row),
        row.licenses,
    )


def _size(state: ModelState) -> str:
    return "?" if state.size is None else size_text(state.size)


def _about(rows: Sequence[PairRow]) -> Iterator[str]:
    """What one should know of the rows, below the table."""
    if any(row.is_recommended for row in rows):
        yield ""
        yield "* recommended for this machine: specchat --pair NAME"
    own = [row for row in rows if row.target.model.path is not None]
    if own:
        yield ""
        yield "Models found on this disk"
        yield from (f"  {row.key}: specchat {_options(row)}" for row in own)
    told = [(row, text) for row in rows for text in (*row.problems, *row.warnings)]
    if told:
        yield ""
        yield from (f"{row.key}: {text}" for row, text in told)


def _options(row: PairRow) -> str:
    draft = "--draft none" if row.draft is None else f"--draft {shlex.quote(str(row.draft.path))}"
    return f"--target {shlex.quote(str(row.target.path))} {draft}"


def _left_out(left_out: Sequence[LeftOut]) -> Iterator[str]:
    if left_out:
        yield ""
        yield "Left out"
        yield from (f"  {each.path}: {each.reason}" for each in left_out)
