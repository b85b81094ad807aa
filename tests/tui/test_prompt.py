"""Keys in the prompt: rows and messages, and the way to the end of the chat."""

from tests.tui.screens import running, say, settle
from tests.tui.scripted_engine import ScriptedEngine
from tests.tui.stories import sky_reply


async def test_arrows_go_by_rows_first_and_nothing_that_was_typed_is_lost():
    async with running(size=(40, 24)) as (app, pilot):
        prompt = app.screen.prompt
        for message in ("one", "two"):
            await say(pilot, message)
        draft = "a paragraph " * 12
        prompt.set_text(draft)
        rows = prompt.wrapped_document.height
        assert rows > 3
        for _ in range(rows - 1):
            await pilot.press("up")
            assert prompt.text == draft, "a row above"
        await pilot.press("up")
        assert prompt.text == "two"
        await pilot.press("x", "up")
        assert prompt.text == "one"
        await pilot.press("down")
        assert prompt.text == "twox", "what was made of a message is there when one comes back to it"
        await pilot.press("down")
        assert prompt.text == draft
        await pilot.press("up", *["up"] * rows, "enter")
        await settle(pilot)
        assert app.chat.conversation.messages[-2].content == "one"
        await pilot.press("up")
        assert prompt.text == "one", "the last one that was sent"
        await pilot.press("up")
        assert prompt.text == "two", "as it was sent"


async def test_end_at_the_end_of_what_is_written_goes_to_the_end_of_the_chat():
    async with running(ScriptedEngine([sky_reply(20)]), size=(80, 24)) as (app, pilot):
        await say(pilot, "why?")
        transcript, prompt = app.screen.pane.transcript, app.screen.prompt
        await pilot.press(*"ab", "left")
        transcript.scroll_to(y=0, animate=False, immediate=True)
        await pilot.press("end")
        assert (prompt.cursor_at_end_of_text, transcript.following) == (True, False)
        await pilot.press("end")
        assert transcript.following
        await pilot.press("tab", "v", "tab")
        await pilot.pause()
        reading = app.screen.pane.query_one("#reading")
        reading.scroll_to(y=0, animate=False, immediate=True)
        assert prompt.has_focus
        await pilot.press("end")
        await pilot.pause()
        assert reading.is_vertical_scroll_end
        assert reading.max_scroll_y > 0
