"""A pair that does not fit is warned of before it is loaded, however it is opened."""

import asyncio
from dataclasses import replace

import pytest

from specchat.engine.interface import DeviceList, Failed, Load
from specchat.pairs.verify import remember_good
from tests.tui.picking import Files, shelf_on
from tests.tui.screens import running, say, screen_text, settle
from tests.tui.scripted_engine import MACHINE, ScriptedEngine

TOLD = "does not fit the memory that is free."


@pytest.fixture
def shelf(tmp_path):
    folder = tmp_path / "models"
    files = Files(folder)
    for key, path in files.paths.items():
        remember_good(folder, path.name, path, files.models[key].sha256, fetched=True)
    return shelf_on(files, folder)


def machine(free: int) -> DeviceList:
    return replace(MACHINE, devices=tuple(replace(device, free=free) for device in MACHINE.devices))


async def checked(pilot, *, until_told=False):
    """Lets frames pass until the pair is loaded, or until there is a warning."""
    screen = pilot.app.screen
    while screen.opening.is_checking and not (until_told and TOLD in screen_text(pilot.app)):
        screen.pump()
        await asyncio.sleep(0.005)
        await pilot.pause()
    if not until_told:
        await settle(pilot, frames=4)


def loads(app):
    return sum(isinstance(command, Load) for command in app.engine.commands)


async def test_a_pair_that_fits_is_loaded_and_its_memory_shown(shelf):
    async with running(ScriptedEngine(step=0), pair="good", shelf=shelf) as (app, pilot):
        await say(pilot, "early")
        assert "waits until the model is ready" in screen_text(app)
        app.engine._step = 9
        await checked(pilot)
        text = screen_text(app)
        assert TOLD not in text
        assert loads(app) == 1
        assert app.chat.conversation.head.content == "ok"
        assert "memory 2.0 / 8.0 GB" in text


async def test_a_pair_that_does_not_fit_is_warned_of_first_and_loaded_all_the_same(shelf):
    engine = ScriptedEngine()
    engine.devices = machine(free=10**5)
    async with running(engine, pair="good", shelf=shelf) as (app, pilot):
        await checked(pilot, until_told=True)
        assert loads(app) == 0, "it is on the screen before loading begins"
        assert "can be used: close what else takes" in " ".join(screen_text(app).replace("│", "").split())
        assert "loading: the models are being opened" in screen_text(app)
        await checked(pilot)
        assert loads(app) == 1
        assert app.chat.phase == "ready"
        await pilot.press("ctrl+r", "escape")
        await settle(pilot)
        assert (loads(app), app.chat.phase) == (1, "empty")
        assert "no model: Ctrl+R loads the pair" in screen_text(app)
        await say(pilot, "/new")
        await say(pilot, "/pair good")
        await checked(pilot)
        assert TOLD in screen_text(app)
        assert loads(app) == 2


async def test_an_engine_that_cannot_say_what_there_is_does_not_hold_loading_up(shelf):
    async with running(ScriptedEngine(step=0), pair="good", shelf=shelf) as (app, pilot):
        app.engine._messages.clear()
        app.engine.say(Failed("EngineDiedError", "The model process was killed.", "", died=True))
        app.engine._step = 9
        await checked(pilot)
        assert loads(app) == 1
