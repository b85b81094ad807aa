"""From one pair to the next: which one is named, which one writes, and what is said where none can be loaded."""

import asyncio
import subprocess
import sys

from specchat.engine.interface import Load, Stop
from tests.tui.screens import running, say, screen_text, settle
from tests.tui.scripted_engine import ScriptedEngine
from tests.tui.shelf import HERE
from tests.tui.stories import sky_reply


async def test_a_pair_that_is_fetched_takes_over_once_the_reply_is_over():
    engine = ScriptedEngine([sky_reply()], step=6)
    async with running(engine) as (app, pilot):
        opening, other = app.screen.opening, app.shelf.name("large")
        await say(pilot, "/pair large")
        assert opening.is_fetching
        assert (opening.name, app.chat.pair) == (HERE.name, HERE.name)
        await pilot.press("escape")
        while opening.is_fetching:
            await asyncio.sleep(0.01)
        await settle(pilot)
        assert screen_text(app).split("\n")[0].strip().startswith(HERE.name)
        await say(pilot, "/pair large")
        app.screen.send("why?")
        app.shelf.arrived.set()
        while opening.is_fetching:
            await asyncio.sleep(0.01)
        engine._step = 0
        await settle(pilot)
        assert app.chat.is_replying
        await pilot.press("ctrl+r")
        assert "A reply is being written." in screen_text(app)
        await pilot.press("escape")
        assert isinstance(engine.commands[-1], Stop)
        engine._step = 9
        await settle(pilot, frames=3)
        assert app.chat.conversation.head.pair == HERE.name
        loads = [command.target for command in engine.commands if isinstance(command, Load)]
        assert loads == [HERE.target, "/models/large.gguf"]
        assert (opening.name, app.chat.pair) == (other, other)
        assert screen_text(app).split("\n")[0].strip().startswith(other)


async def test_before_the_first_pair_is_loaded_the_one_that_is_fetched_is_named():
    async with running(pair="large") as (app, pilot):
        await settle(pilot)
        assert screen_text(app).split("\n")[0].strip().startswith(app.shelf.name("large"))
        await pilot.press("escape")
        while app.screen.opening.is_fetching:
            await asyncio.sleep(0.01)
        await settle(pilot)
        assert "no model: Ctrl+R loads the pair" in screen_text(app)


async def test_without_a_pair_it_is_said_what_to_do_and_a_question_comes_back():
    async with running(pair=None) as (app, pilot):
        await pilot.press("escape")
        await settle(pilot)
        assert "no model: /pair chooses one." in screen_text(app)
        await say(pilot, "hello")
        assert "waits until the model is ready" in screen_text(app)
        await pilot.press("escape", "ctrl+r")
        await settle(pilot)
        assert app.screen.prompt.text == "hello"
        text = screen_text(app)
        assert "waits" not in text
        assert "There is no pair yet that could be loaded." in text


def test_what_fetches_ends_before_the_program(tmp_path):
    """A thread of the background would be cut off at the program's end, and leave pip to download on."""
    program = (
        "import pathlib, sys, time\n"
        "from specchat.errors import CancelledError\n"
        "from specchat.tui.pair_shelf import Fetch\n"
        "class Shelf:\n"
        "    def fetch(self, key, progress, cancelled):\n"
        "        while not cancelled():\n"
        "            time.sleep(0.01)\n"
        "        time.sleep(0.2)\n"
        "        pathlib.Path(sys.argv[1]).touch()\n"
        "        raise CancelledError('stopped', '')\n"
        "Fetch(Shelf(), 'large').start()\n"
    )
    subprocess.run([sys.executable, "-c", program, tmp_path / "ended"], check=True)
    assert (tmp_path / "ended").exists()
