"""A pair picker on real files in a folder of a test's own, and on servers of this machine."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from specchat.engine.interface import Calibrate, Calibration, Failed, Load, Loaded, Prediction, Progress, Stop
from specchat.pairs.catalog import Catalog, Model, Pair
from specchat.pairs.collection import Collection
from specchat.pairs.memory import Surroundings
from specchat.tui.pair_shelf import CollectionShelf
from specchat.tui.screens.pairs import PairsScreen
from tests.gguf_writer import write_tiny_model
from tests.pairs.kept import Kept
from tests.pairs.machines import machine
from tests.tui.screens import screen_text
from tests.tui.scripted_engine import ScriptedEngine, described

BUILD = "llama.cpp test"


class Files:
    """Tiny models: a target, a draft for it, and one with another vocabulary; and a catalogue that names them."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.paths = {
            "target": write_tiny_model(folder / "target.gguf", n_layers=6, metadata={"general.license": "mit"}),
            "draft": write_tiny_model(folder / "draft.gguf"),
            "other": write_tiny_model(folder / "other.gguf", tokenizer="spm"),
        }
        self.models = {key: self._model(key, path) for key, path in self.paths.items()}
        self.catalog = Catalog(
            self.models,
            {
                "good": Pair(key="good", target="target", draft="draft", note="Goes together."),
                "bad": Pair(key="bad", target="target", draft="other", trial=True),
            },
        )

    def content(self, key: str) -> bytes:
        return self.paths[key].read_bytes()

    def _model(self, key: str, path: Path) -> Model:
        content = path.read_bytes()
        return Model(
            key=key,
            name=f"Tiny {key}",
            file=path.name,
            hub=f"me/{key}",
            size=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            license="mit",
        )


def shelf_on(files: Files, folder: Path, kept: Kept | None = None, ram: float = 8) -> CollectionShelf:
    """The shelf of a person whose models folder is ``folder``."""
    surroundings = Surroundings(machine(ram), BUILD)
    return CollectionShelf(lambda: Collection(files.catalog, folder, kept or Kept(), lambda: surroundings))


class MeasuringEngine(ScriptedEngine):
    """Measures what a test says, when it says so.

    Attributes:
        hold: begin to measure, and go on only when `go_on` is called.
    """

    def __init__(self, hold: bool = False, **options) -> None:
        super().__init__(**options)
        self.hold = hold
        self.recommended = Prediction("draft", 4, 1.41)

    def send(self, command) -> None:
        if isinstance(command, Load):
            target, draft = command.target, command.draft
            self.commands.append(command)
            models = [described(Path(path).stem) if path else None for path in (target, draft)]
            self.say(Loaded(_at(models[0], target), _at(models[1], draft), 8192, 16, True, BUILD))
            return
        if isinstance(command, Calibrate):
            self.commands.append(command)
            self.say(Progress("measuring passes of the target", 0.2))
            if not self.hold:
                self.go_on()
            return
        if isinstance(command, Stop):
            self.commands.append(command)
            self.say(Failed("CancelledError", "It was stopped before it was done.", ""))
            return
        super().send(command)

    def go_on(self) -> None:
        passes = {size: 0.02 + 0.001 * size for size in range(1, 10)}
        found = Calibration(passes, 0.004, 0.0, (0.8, 0.75, 0.7, 0.7), 47.6, (self.recommended,), self.recommended)
        self.say(found)


def _at(model, path):
    from dataclasses import replace

    return None if model is None else replace(model, path=path, device="CPU")


def picker(pilot) -> PairsScreen:
    return next(each for each in pilot.app.screen_stack if isinstance(each, PairsScreen))


def lines(pilot) -> list[str]:
    """The table's lines, top to bottom."""
    return [str(option.prompt).rstrip() for option in picker(pilot).query_one("#pairs-list").options]


def line_of(pilot, text: str) -> str:
    """The table's line with a text in it."""
    return next(line for line in lines(pilot) if text in line)


async def until(pilot, condition, seconds: float = 60.0):
    """Lets everything tick until something has come of threads and processes."""
    for _ in range(int(seconds / 0.02)):
        for each in reversed(pilot.app.screen_stack):
            if hasattr(each, "tick"):
                each.tick()
        pilot.app.screen_stack[0].pump()
        await pilot.pause()
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"it did not happen:\n{screen_text(pilot.app)}")


async def looked(pilot):
    """Lets the picker look at everything."""
    await until(pilot, lambda: not picker(pilot).picking.looking.is_busy)
    await until(pilot, lambda: True)


async def go_to(pilot, text: str):
    """Moves the cursor to the line with a text in it."""
    await pilot.press("home")
    for _ in range(20):
        entry = picker(pilot).picking.current()
        if entry is not None and text in entry.row.pair.name:
            return
        await pilot.press("down")
    raise AssertionError(f"no line has {text!r} in it: {lines(pilot)}")


def words(app) -> str:
    """The screen's characters without frames and line breaks."""
    return " ".join(screen_text(app).replace("│", " ").split())
