"""Pictures of the pair picker. After a wanted change run this file with ``--snapshot-update``."""

from __future__ import annotations

from pathlib import Path

import pytest

from specchat.config import Measurement, Recommended, State
from specchat.errors import NetworkError
from specchat.pairs.catalog import load_catalog
from specchat.pairs.collection import Collection
from specchat.pairs.memory import Surroundings
from specchat.tui.pair_fetches import FetchState
from specchat.tui.pair_shelf import CollectionShelf
from tests.pairs.kept import Kept
from tests.pairs.machines import machine
from tests.tui.picking import BUILD, Files, go_to, looked, picker, shelf_on, until
from tests.tui.screens import app_on, screen_text

MEASURED = Measurement(
    pair="qwen2_5-7b",
    device="CUDA0",
    version=BUILD,
    measured_at="2026-11-30T09:00:00+00:00",
    pass_seconds={size: 0.02 + 0.001 * size for size in range(1, 10)},
    draft_step_seconds=0.004,
    acceptance_by_position=(0.8, 0.75, 0.7, 0.7),
    plain_tokens_per_second=47.6,
    recommended=Recommended(drafter="draft", num_draft_tokens=4, speedup=1.41),
)
PAYS_NOT = {"pair": "qwen3-8b", "acceptance_by_position": (0.3,), "recommended": None}


def measurements() -> tuple[Measurement, ...]:
    import msgspec

    return MEASURED, msgspec.structs.replace(MEASURED, **PAYS_NOT)


@pytest.fixture
def picture(snap_compare, tmp_path, monkeypatch):
    """Compares the picker after some steps with the stored picture: the built-in catalogue, nothing on disk."""
    monkeypatch.chdir(Path.home())

    def compare(steps=None, size=(80, 24), shelf=None, gpus=(8,), **options):
        around = Surroundings(machine(16, *gpus), BUILD)
        kept = Kept(State(measurements=measurements()))
        shelf = shelf or CollectionShelf(lambda: Collection(load_catalog(), tmp_path / "models", kept, lambda: around))

        async def before(pilot):
            await pilot.pause()
            await looked(pilot)
            if steps is not None:
                await steps(pilot)
            picker(pilot).show()
            await pilot.pause()

        return snap_compare(app_on(pair=None, shelf=shelf, **options), run_before=before, terminal_size=size)

    return compare


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (130, 36)])
def test_table_and_detail_pane(picture, size):
    assert picture(size=size)


def test_without_colour_marks_tell_the_verdicts_apart(picture, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert picture(size=(100, 30), gpus=(6,))


def test_light(picture):
    assert picture(size=(100, 30), theme="specchat-light")


def test_a_fetch_that_goes_on_and_one_that_failed(picture):
    async def pretend(pilot):
        states = picker(pilot).picking.fetches._states
        states["qwen3-8b"] = FetchState(
            "fetching", 2_400_000_000, 5_667_000_000, 38e6, "Qwen3 8B: fetching from the Hugging Face hub"
        )
        states["llama3_1-8b"] = FetchState(
            "failed",
            120_000_000,
            5_700_000_000,
            error=NetworkError("The hub cannot be reached.", "Check the connection."),
        )
        picker(pilot).picking.move_to("qwen3-8b")

    assert picture(pretend)


def test_a_measurement_that_goes_on(picture):
    async def pretend(pilot):
        measuring = picker(pilot).picking.measuring
        measuring._stage, measuring.key, measuring.what, measuring.fraction = "measuring", "qwen3-8b", "measuring", 0.55

    assert picture(pretend)


def test_does_not_fit(picture):
    async def look(pilot):
        await go_to(pilot, "32B")

    assert picture(look, size=(100, 30), gpus=())


def test_drafts_to_choose_from(picture, tmp_path):
    files = Files(tmp_path / "served")

    async def choose(pilot):
        await pilot.press("d")
        await looked(pilot)
        pilot.app.screen.tick()
        await pilot.press("end")

    assert picture(choose, shelf=shelf_on(files, tmp_path / "served"))


def test_adding_what_cannot_be_used(picture):
    async def add(pilot):
        await pilot.press("a", *"nothing.gguf", "enter")
        await until(pilot, lambda: "Check the path." in screen_text(pilot.app))

    assert picture(add)


def test_filter(picture):
    async def type_words(pilot):
        await pilot.press("slash", *"qwen3")

    assert picture(type_words)
