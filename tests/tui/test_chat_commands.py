"""Commands that do what keys do, and the one that writes the chat to a file."""

from dataclasses import replace

from specchat.chat.export import export
from specchat.core.events import Fate
from specchat.tui.widgets.rounds import RoundsView
from tests.tui.screens import running, say, screen_text
from tests.tui.scripted_engine import ScriptedEngine, reply_events, round_of
from tests.tui.stories import sky_reply


async def test_everything_that_a_key_shows_a_command_shows_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    async with running(ScriptedEngine([sky_reply()]), records=tmp_path / "records") as (app, pilot):
        await say(pilot, "/export")
        assert "nothing has been said yet" in screen_text(app)
        await say(pilot, "why?")
        await say(pilot, "/rejected")
        assert "×colors×" in screen_text(app)
        await say(pilot, "/rounds")
        assert not app.screen.query_one(RoundsView).display
        await say(pilot, "/export")
        (written,) = tmp_path.glob("*.md")
        assert written.stem == app.kept.path.stem
        assert written.read_text("utf-8") == export(app.chat.conversation, app.kept.header)
        await say(pilot, "/export")
        assert len(list(tmp_path.glob("*.md"))) == 2, "the first one stays as it is"
        await say(pilot, "/export page.html")
        page = tmp_path / "page.html"
        assert page.read_text("utf-8").startswith("<!doctype html>")
        page.write_text("mine")
        await say(pilot, "/export page.html")
        assert page.read_text() == "mine"
        assert "Write /export with another name." in screen_text(app)
        await say(pilot, "/export no/folder.md")
        assert "cannot be written: No such file or directory" in " ".join(screen_text(app).replace("│", "").split())
        await say(pilot, "/reading")
        assert app.screen.pane.is_reading


async def test_who_proposed_a_token_is_said_where_not_only_the_model_drafts():
    copied, drafted = round_of("as|a it|b"), round_of(" stood|a there|b", index=1)
    copied = replace(copied, drafted=tuple(replace(token, drafter="ngram") for token in copied.drafted))
    engine = ScriptedEngine([reply_events([copied, drafted])])
    async with running(engine, size=(80, 24)) as (app, pilot):
        await say(pilot, "/draft auto")
        await say(pilot, "why?")
        assert "draft auto: 1 copied, 1 by the model" in " ".join(screen_text(app).replace("\u00a0", " ").split())
        reply = app.screen.pane.transcript.index.blocks[-1]
        await pilot.press("tab")
        for index, label in ((0, "q copied"), (2, "q model ")):
            assert reply.token(index).fate is Fate.ACCEPTED
            app.screen.pane.transcript.look_at(reply, index)
            await pilot.pause()
            assert label in screen_text(app)


async def test_without_a_frame_the_state_line_says_that_lines_are_new():
    async with running(ScriptedEngine([sky_reply(3)]), size=(50, 14)) as (app, pilot):
        await say(pilot, "why?")
        app.screen.pane.transcript.scroll_to(y=0, animate=False, immediate=True)
        await pilot.pause()
        assert "↓" not in screen_text(app)
        app.screen.say("info", "Something happened.")
        await pilot.pause()
        assert [each.message for each in app._notifications] == ["Something happened."]
        assert "↓ 2 new, End   watch: drafting" in screen_text(app)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        app.screen.show_figures()
        await pilot.pause()
        assert "new, End " not in screen_text(app)
        assert "new line" in screen_text(app)
        await pilot.press("tab", "end")
        await pilot.pause()
        assert "new line" not in screen_text(app)
