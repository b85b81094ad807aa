"""The picker's rows, without a screen: what is free once the loaded pair is gone, and what stays under the cursor."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from specchat.pairs.catalog import load_catalog
from specchat.pairs.collection import Collection
from specchat.pairs.memory import Machine, Surroundings
from specchat.tui.pair_rows import PairRows
from tests.pairs.kept import Kept
from tests.pairs.machines import GIB


@dataclass(frozen=True)
class Device:
    name: str
    kind: str
    free: int
    total: int


def looked(rows: PairRows) -> PairRows:
    """Everything has been looked at."""
    rows.begin()
    end = time.monotonic() + 60
    while rows.looking.is_busy:
        assert time.monotonic() < end
        time.sleep(0.01)
    rows.take_news()
    rows.looking.close()
    return rows


def rows_on(*devices: Device, loaded: str | None = None) -> PairRows:
    around = Surroundings(Machine(devices), "b1")
    return looked(PairRows(Collection(load_catalog(), Path("/nowhere"), Kept(), lambda: around), loaded))


CPU = Device("CPU", "cpu", 20 * GIB, 32 * GIB)


@pytest.mark.parametrize("loaded", [None, "qwen2_5-7b"])
def test_what_the_loaded_pair_holds_of_a_gpu_counts_as_free(loaded):
    """It is unloaded before another is loaded: a GPU that it fills is not full for others."""
    gpu = Device("CUDA0", "gpu", GIB // 2, 8 * GIB)
    rows = rows_on(gpu, CPU, loaded=loaded)
    for key in ("qwen2_5-7b", "qwen2_5-coder-1_5b"):
        assert (rows.row(key).fit.verdict == "fits the GPU") == (loaded is not None)


def test_no_more_is_free_than_there_is():
    gpu = Device("CUDA0", "gpu", 8 * GIB, 8 * GIB)
    rows = rows_on(gpu, CPU, loaded="qwen2_5-7b")
    assert max(use.free for use in rows.row("qwen2_5-7b").fit.devices if use.name == "CUDA0") <= 8 * GIB


def test_the_recommended_pair_is_under_the_cursor_until_it_is_moved():
    rows = rows_on(CPU)
    best = next(row.key for row in rows.shown() if row.is_recommended)
    assert rows.highlighted == rows.shown()[0].key == best
    rows.move_to("qwen3-8b")
    rows._recommend()
    assert rows.highlighted == "qwen3-8b"


def test_the_filter_knows_verdicts_files_and_licences():
    rows = rows_on(CPU)
    rows.filter = "gemma"
    assert [row.key for row in rows.shown()] == ["gemma3-12b"]
    rows.filter = "llama3.2 to fetch"
    assert [row.key for row in rows.shown()] == ["llama3_1-8b"]


def test_a_pair_that_comes_is_shown_whatever_the_filter_is():
    rows = rows_on(CPU)
    rows.filter = "gemma"
    models = rows.collection.catalog.models
    key = rows.collection.combine(models["qwen3-8b"], models["qwen2_5-0_5b"])
    rows.take_in(key)
    assert (rows.filter, rows.highlighted) == ("", key)
    rows.filter = "gemma"
    rows.take_in("gemma3-12b")
    assert rows.filter == "gemma"
