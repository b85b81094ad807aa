"""The application on a scripted engine, for tests."""

from __future__ import annotations

from contextlib import asynccontextmanager

from rich.style import Style

from specchat.core.settings import ReplySettings
from specchat.tui.app import SpecchatApp
from tests.tui.scripted_engine import ScriptedEngine
from tests.tui.shelf import FakeShelf

SIZE = (120, 40)
OPTIONS = {"settings": ReplySettings(num_draft_tokens=4)}


def app_on(engine=None, pair="small", shelf=None, **options) -> SpecchatApp:
    """The application; its engine and shelf are its attributes `engine` and `shelf`."""
    engine = engine or ScriptedEngine()
    shelf = shelf or FakeShelf()
    app = SpecchatApp(lambda: engine, shelf, pair, still=True, **(OPTIONS | options))
    app.shelf = shelf
    return app


@asynccontextmanager
async def running(engine=None, size=SIZE, **options):
    """The application running, its pair loaded (unless the engine loads slowly), and its pilot."""
    app = app_on(engine, **options)
    async with app.run_test(size=size) as pilot:
        for _ in range(2):  # the first pair is opened once the screen has been painted
            await pilot.pause()
            app.screen_stack[0].pump()
        await pilot.pause()
        yield app, pilot


async def say(pilot, text):
    """Writes a message and sends it, and lets the engine answer all of it."""
    pilot.app.screen.prompt.set_text(text)
    await pilot.press("enter")
    await settle(pilot)


async def settle(pilot, frames=2):
    """Lets a few frames pass, without waiting for the clock."""
    await pilot.pause()
    for _ in range(frames):
        pilot.app.screen_stack[0].pump()
    pilot.app.screen_stack[0].show_figures()
    await pilot.pause()


def strips(app):
    """The lines of the screen as they would be painted."""
    return app.screen._compositor.render_strips()


def screen_text(app) -> str:
    """The characters of the screen."""
    return "\n".join(strip.text for strip in strips(app))


def style_of(app, text) -> Style:
    """The style in which a text stands on the screen."""
    for strip in strips(app):
        for segment in strip:
            if text in segment.text:
                return segment.style
    raise AssertionError(f"{text!r} is not on the screen:\n{screen_text(app)}")
