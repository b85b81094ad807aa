import pytest
from textual.geometry import Offset
from textual.selection import Selection

from specchat.tui.blocks import Notice
from specchat.tui.token_cursor import TokenCursor, last_cursor
from specchat.tui.widgets.inspector import Inspector
from tests.tui.screens import running, say, screen_text, settle
from tests.tui.scripted_engine import ScriptedEngine, reply_events, round_of
from tests.tui.stories import sky_reply

FAMILY = "👩‍👩‍👧‍👦"
MIXED = [f"天空|a is|a {FAMILY}|x 藍色|r", f" and|a {FAMILY}|a\n|b", "second|a line|a goes|x ends|r"]
MIXED_TEXT = f"天空 is 藍色 and {FAMILY}\nsecond line ends"


def line_of(transcript, text):
    """The line of the transcript on which a text stands."""
    for y in range(transcript.index.height):
        if text in "".join(piece.shown for piece in transcript.index.line(y).pieces):
            return y
    raise AssertionError(text)


async def drag(pilot, start, end):
    await pilot.mouse_down("#transcript", offset=start)
    await pilot.hover("#transcript", offset=end)
    await pilot.mouse_up("#transcript", offset=end)
    await pilot.pause()


@pytest.mark.parametrize("rejected", [False, True])
async def test_a_selection_copies_the_final_text(rejected):
    async with running(ScriptedEngine([reply_events([round_of(s) for s in MIXED])]), size=(100, 30)) as (app, pilot):
        await say(pilot, "why?")
        transcript = app.screen.pane.transcript
        transcript.show(rejected=rejected)
        await pilot.pause()
        assert app.chat.conversation.messages[-1].content == MIXED_TEXT
        first, last = line_of(transcript, "天空"), line_of(transcript, "second")
        await drag(pilot, (0, first), (70, last))  # onto the panel beside the chat
        assert app.screen.get_selected_text() == MIXED_TEXT
        await pilot.press("ctrl+c")
        assert app.clipboard == MIXED_TEXT
        assert app.screen.get_selected_text() is None


async def test_a_selection_over_soft_breaks_has_none():
    async with running(ScriptedEngine([sky_reply()]), size=(60, 30)) as (app, pilot):
        await say(pilot, "why?")
        transcript = app.screen.pane.transcript
        first, last = line_of(transcript, "The sky"), line_of(transcript, "red light.")
        assert last > first
        await drag(pilot, (0, first), (57, last))
        content = app.chat.conversation.messages[-1].content
        assert app.screen.get_selected_text() == content[: content.index("\n")]


async def test_both_halves_of_a_wide_glyph_select_it():
    async with running(ScriptedEngine([reply_events([round_of("a天空b|p")])])) as (app, pilot):
        await say(pilot, "why?")
        y = line_of(app.screen.pane.transcript, "天空")
        for start, end, text in ((1, 2, "天"), (2, 3, "天空"), (2, 1, "天"), (4, 5, "空b")):
            await drag(pilot, (start, y), (end, y))
            assert app.screen.get_selected_text() == text


async def test_figures_are_copied_only_when_nothing_else_is_selected():
    async with running(ScriptedEngine([sky_reply()])) as (app, pilot):
        await say(pilot, "why?")
        transcript = app.screen.pane.transcript
        last = transcript.index.height - 1
        selected, _ = transcript.get_selection(Selection(Offset(0, last - 2), Offset(200, last)))
        assert selected.startswith("55 tokens")
        everything, _ = transcript.get_selection(Selection(None, None))
        assert "tokens" in everything  # the welcome speaks of them
        assert "55 tokens" not in everything


async def test_a_click_looks_at_a_token_and_a_drag_does_not():
    async with running(ScriptedEngine([sky_reply()])) as (app, pilot):
        await say(pilot, "why?")
        transcript = app.screen.pane.transcript
        y = line_of(transcript, "because")
        await drag(pilot, (0, y), (8, y))
        assert transcript.cursor is None
        await pilot.click("#transcript", offset=(17, y))
        await pilot.pause()
        assert '" because"' in screen_text(app)


async def test_a_click_on_a_round_leads_to_its_tokens():
    async with running(ScriptedEngine([sky_reply()])) as (app, pilot):
        await say(pilot, "why?")
        await pilot.click("#rounds", offset=(2 + 2 * 3, 2))
        await pilot.pause()
        assert '" air"   round 4, position 1' in screen_text(app)


async def test_the_cursor_stays_on_its_token_when_blocks_come_and_go():
    async with running(ScriptedEngine([sky_reply()])) as (app, pilot):
        await say(pilot, "why?")
        transcript = app.screen.pane.transcript
        reply = transcript.index.blocks[-1]
        transcript.look_at(reply, 3)
        notice = Notice("info", "a note")
        transcript.add(notice, before=reply)
        assert transcript.index.blocks[transcript.cursor.block] is reply
        transcript.remove_block(notice)
        assert transcript.index.blocks[transcript.cursor.block] is reply
        transcript.remove_block(reply)
        assert transcript.cursor is None


async def test_the_end_is_followed_only_while_it_is_on_the_screen():
    async with running(ScriptedEngine([sky_reply(6), sky_reply(2)], step=1), size=(80, 24)) as (app, pilot):
        app.screen.send("why?")
        await settle(pilot, frames=150)
        transcript = app.screen.pane.transcript
        assert transcript.following
        transcript.scroll_to(y=3, animate=False)
        await pilot.pause()
        assert not transcript.following
        app.screen.send("and why?")
        assert transcript.following  # whoever asks wants to see the answer
        transcript.scroll_to(y=3, animate=False)
        await settle(pilot, frames=20)
        assert transcript.scroll_offset.y == 3
        assert "new lines, End" in screen_text(app)
        await pilot.press("tab", "end")
        await pilot.pause()
        assert transcript.following
        assert "new lines" not in screen_text(app)
        await settle(pilot, frames=100)
        assert transcript.scroll_offset.y == transcript.max_scroll_y


async def test_another_width_keeps_what_is_being_read():
    async with running(ScriptedEngine([sky_reply(30)]), size=(90, 24)) as (app, pilot):
        await say(pilot, "why?")
        transcript = app.screen.pane.transcript
        reply = transcript.index.blocks[-1]
        transcript.scroll_to(y=transcript.max_scroll_y // 2, animate=False)
        await pilot.pause()
        _, line = transcript.index.find(transcript.scroll_offset.y)
        token = reply.place_of(line)
        await pilot.resize_terminal(50, 20)
        await pilot.pause()
        _, line = transcript.index.find(transcript.scroll_offset.y)
        first, last = reply.lines_of(token)
        assert first <= line <= last


async def test_lines_that_are_drawn_once_are_kept_until_they_change():
    async with running(ScriptedEngine([sky_reply(5)]), size=(80, 24)) as (app, pilot):
        await say(pilot, "why?")
        transcript = app.screen.pane.transcript
        strips = [transcript.render_line(y) for y in range(5)]
        assert all(transcript.render_line(y) is strip for y, strip in enumerate(strips))
        app.theme = "specchat-light"
        await pilot.pause()
        assert all(transcript.render_line(y) is not strip for y, strip in enumerate(strips))


async def test_tab_offers_a_token_that_is_on_the_screen_and_takes_it_back():
    async with running(ScriptedEngine([sky_reply(6)]), size=(80, 24)) as (app, pilot):
        transcript = app.screen.pane.transcript
        await pilot.press("tab")
        assert transcript.cursor is None
        await pilot.press("tab")
        await say(pilot, "why?")
        await pilot.press("tab")
        await pilot.pause()
        assert transcript.cursor == last_cursor(transcript.index)
        assert app.screen.query_one(Inspector).display
        assert transcript.message_looked_at is None, "nobody has chosen it"
        await pilot.press("tab")
        await pilot.pause()
        assert transcript.cursor is None
        assert not app.screen.query_one(Inspector).display
        transcript.scroll_to(y=6, animate=False)
        await pilot.press("tab")
        await pilot.pause()
        assert (transcript.scroll_offset.y, transcript.cursor) == (6, TokenCursor(2, 0)), "the question is none"
        await pilot.press("right", "tab")
        await pilot.pause()
        assert transcript.message_looked_at is not None, "it has been chosen, and stays"
