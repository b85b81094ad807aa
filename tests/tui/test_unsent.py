"""What was written and not sent is there again, whatever was done meanwhile."""

from specchat.tui.commands import COMMANDS
from tests.tui.screens import running, say, screen_text, settle
from tests.tui.scripted_engine import ScriptedEngine

EDITING = "editing a question: Enter asks it anew, Esc leaves it"


async def test_a_command_gives_back_what_it_displaced():
    async with running() as (app, pilot):
        prompt = app.screen.prompt
        await pilot.press(*"half a", "tab", "slash", *"temp x", "enter")
        await settle(pilot)
        assert prompt.text == "/temp x", "it can be corrected"
        await pilot.press("backspace", "1", "enter")
        await settle(pilot)
        assert app.chat.settings.sampling.temperature == 1
        assert prompt.text == "half a"
        app.screen.offer(COMMANDS["gamma"])
        assert prompt.text == "/gamma "
        await pilot.press("3", "enter")
        await settle(pilot)
        assert app.chat.settings.num_draft_tokens == 3
        assert prompt.text == "half a"
        await pilot.press("tab", "slash", "escape")
        assert prompt.text == "half a", "nor does a command that was left take it away"
        await pilot.press("tab", "slash", "backspace", *"first", "enter")
        await settle(pilot)
        assert app.chat.conversation.messages[0].content == "first"
        assert prompt.text == "half a"


async def test_what_waits_comes_back_before_what_is_being_written():
    async with running(ScriptedEngine(slow_load=True)) as (app, pilot):
        prompt = app.screen.prompt
        await say(pilot, "one")
        await pilot.press(*"two", "escape")
        await settle(pilot)
        assert prompt.text == "one\n\ntwo"
        await pilot.press("enter")
        app.screen.send("x" * 30_000)
        await pilot.press(*"/temp 0", "escape")
        assert prompt.text == "/temp 0", "a command stays one"
        await pilot.press("enter")
        await settle(pilot)
        assert app.chat.settings.sampling.temperature == 0
        assert prompt.text.startswith("[pasted text")
        assert prompt.message == "one\n\ntwo\n\n" + "x" * 30_000


async def test_that_a_question_is_edited_is_seen_and_outlasts_commands():
    async with running() as (app, pilot):
        prompt = app.screen.prompt
        await say(pilot, "why?")
        await pilot.press("tab", "e")
        await settle(pilot)
        assert EDITING in screen_text(app)
        await pilot.press(*["backspace"] * 4, *"/temp 0", "enter")
        await settle(pilot)
        assert prompt.text == "why?"
        assert EDITING in screen_text(app)
        await pilot.press("n", "o", "t", "tab", "slash", *"temp 1", "enter")
        await settle(pilot)
        assert prompt.text == "why?not"
        await pilot.press("escape")
        await settle(pilot)
        assert EDITING not in screen_text(app)
        await say(pilot, "next?")
        assert [message.content for message in app.chat.conversation.messages] == ["why?", "ok", "next?", "ok"]
