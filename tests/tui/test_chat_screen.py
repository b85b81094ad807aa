import asyncio
import shlex
import sys
from contextlib import nullcontext

import pytest

from specchat.chat.record import read_record
from specchat.core.events import Prefill
from specchat.core.fate_style import FATE_STYLES
from specchat.engine.interface import Failed, Load, Note, Reading, Reply, ReplyEvent, Stop
from specchat.tui.widgets.inspector import Inspector
from specchat.tui.widgets.now_panel import NowPanel
from specchat.tui.widgets.rounds import RoundsView
from tests.tui.screens import running, say, screen_text, settle, style_of
from tests.tui.scripted_engine import LOADED, ScriptedEngine, reply_events, round_of
from tests.tui.stories import sky_reply


def sent(app, kind):
    return [command for command in app.engine.commands if isinstance(command, kind)]


# --- a reply ---------------------------------------------------------------------------------------------------------


async def test_tokens_stand_in_the_colours_of_their_fates():
    async with running(ScriptedEngine([sky_reply()])) as (app, pilot):
        await say(pilot, "why is the sky blue?")
        assert "> why is the sky blue?" in screen_text(app)
        for text, fate in (("The sky is", "accepted"), ("because", "bonus"), ("wavelengths", "resampled")):
            assert style_of(app, text).color.get_truecolor().hex.upper() == FATE_STYLES[fate].dark
        assert "colors" not in screen_text(app)


async def test_no_token_is_lost_at_the_end():
    async with running(ScriptedEngine([sky_reply(40)], step=7), size=(80, 24)) as (app, pilot):
        app.screen.send("why?")
        await settle(pilot, frames=100)
        expected = app.chat.conversation.messages[-1].content
        assert expected.count("Rayleigh") == 40
        reply = app.screen.pane.transcript.index.blocks[-1]
        assert "".join(reply.line(y).copied() for y in range(reply.height)) == expected
        assert app.screen.pane.transcript.following
        assert "2200" in screen_text(app)  # the figures at the end are on the screen


async def test_the_figures_show_the_speedup_first_and_where_it_comes_from():
    async with running(ScriptedEngine([sky_reply()])) as (app, pilot):
        await say(pilot, "why?")
        text = screen_text(app)
        assert app.screen.query_one("#speedup").value == "1.32x"
        for figure in ("39.5 tok/s  first token 0.3 s", "plain 29.9", "8 plain steps", "memory 2.0 GB"):
            assert text.index(figure) < text.index("last 14 rounds ──"), "these are of the whole reply"
        for figure in ("α 0.89", "break-even 0.70", "time of a round"):
            assert text.rindex(figure) > text.index("last 14 rounds ──"), "and these of the last rounds"
        assert "watch: drafting gains 1.32× here" in text
        assert "tokens a round 3.93" in text


async def test_without_a_plain_speed_no_speedup_is_claimed():
    async with running(ScriptedEngine([reply_events([round_of("a|a b|b")], plain=False)])) as (app, pilot):
        await say(pilot, "why?")
        assert not app.screen.query_one("#speedup").display
        assert "plain speed not known yet" in screen_text(app)
        assert "the plain speed to compare with is not known yet" in screen_text(app)


async def test_the_engines_reason_is_shown_until_the_settings_change():
    rounds = [round_of("a|p", why="fast: decoding plainly, because drafting has no measured gain")]
    async with running(ScriptedEngine([reply_events(rounds)])) as (app, pilot):
        await say(pilot, "/mode fast")
        await say(pilot, "why?")
        assert "fast: decoding plainly, because drafting has no measured gain" in screen_text(app)
        await say(pilot, "/mode watch")
        assert "no measured gain" not in screen_text(app)


# --- waiting, stopping, failing --------------------------------------------------------------------------------------


async def test_one_can_type_while_the_models_load():
    engine = ScriptedEngine([reply_events([round_of("late|p")])], slow_load=True)
    async with running(engine) as (app, pilot):
        await pilot.press(*"hello", "enter")
        await settle(pilot)
        text = screen_text(app)
        assert "> hello" in text
        assert "waits until the model is ready" in text
        assert "loading: target" in text
        assert "45%" in text
        engine.finish_loading()
        await settle(pilot, frames=3)
        assert "waits" not in screen_text(app)
        assert "late" in screen_text(app)
        assert sent(app, Reply)[0].messages[-1].content == "hello"


async def test_esc_stops_loading_and_gives_the_waiting_message_back():
    async with running(ScriptedEngine(slow_load=True)) as (app, pilot):
        await pilot.press(*"hello", "enter")
        await settle(pilot)
        await pilot.press("escape")
        await settle(pilot)
        assert sent(app, Stop)
        assert app.screen.prompt.text == "hello"
        assert "Loading was stopped." in screen_text(app)
        await pilot.press("ctrl+r")
        assert len(sent(app, Load)) == 2


async def test_esc_stops_a_reply_and_keeps_what_came():
    async with running(ScriptedEngine([sky_reply()], step=6)) as (app, pilot):
        app.screen.send("why?")
        app.screen.pump()
        await pilot.press("escape")
        await settle(pilot)
        assert app.chat.conversation.messages[-1].content.startswith("The sky is")
        assert "stopped · " in screen_text(app).replace("\u00a0", " ")
        assert app.chat.phase == "ready"


async def test_while_a_long_prompt_is_read_its_progress_is_shown_and_esc_stops_it():
    async with running(ScriptedEngine([sky_reply()], step=0), size=(80, 24)) as (app, pilot):
        app.engine.say(LOADED)
        app.engine._step = 1
        await settle(pilot)
        app.screen.send("why?")
        number = sent(app, Reply)[0].reply
        app.engine._messages.extendleft(
            [
                ReplyEvent(number, Prefill("target", 2600, 500, 26.5)),
                Reading(number, "target", 1124, 3100, 500, 6.5),
                Reading(99, "target", 1, 2, 0, 1.0),
            ]
        )
        await settle(pilot)
        assert "reading: target ▓▓▓░░░░░ 36%, 1,124 of 3,100 tokens, 96 tok/s, 500 reused. E" in screen_text(app)
        assert "ctx ▓░░░░░░░ 14%" in screen_text(app)
        await settle(pilot, frames=1)
        assert "the prompt is read: 3,100 tokens, 500 of them reused. Esc stops." in screen_text(app)
        app.engine._messages.appendleft(ReplyEvent(number, Prefill("target", 2600, 500, 26.5)))
        await pilot.press("escape")
        assert sent(app, Stop)


async def test_a_reply_stopped_before_its_first_token_leaves_nothing():
    async with running(ScriptedEngine([sky_reply()], step=0)) as (app, pilot):
        app.engine.say(LOADED)
        app.engine._step = 10
        app.screen.pump()
        app.engine._step = 0
        app.screen.send("why?")
        assert app.chat.phase == "reading"
        await pilot.press("escape")
        app.engine._step = 10
        await settle(pilot)
        assert app.chat.phase == "ready"
        assert [message.role for message in app.chat.conversation.messages] == ["user"]


async def test_a_continuation_stopped_before_its_first_token_keeps_the_first_part():
    replies = [reply_events([round_of("half|p")], reason="length"), reply_events([round_of(" more|p")])]
    async with running(ScriptedEngine(replies)) as (app, pilot):
        await say(pilot, "why?")
        app.engine._step = 0
        app.screen.commands.run("/continue")
        app.screen.pump()
        await pilot.press("escape")
        app.engine._step = 10
        await settle(pilot)
        assert [message.content for message in app.chat.conversation.messages] == ["why?", "half"]
        assert "half" in screen_text(app)
        assert "cut at the length limit" in screen_text(app).replace("\u00a0", " ")


async def test_what_a_prompt_had_to_change_is_said_before_the_reply():
    async with running(ScriptedEngine([sky_reply()], step=3)) as (app, pilot):
        app.screen.send("why?")
        app.engine._messages.appendleft(Note(2, "This model takes no system message."))
        await settle(pilot, frames=12)
        text = screen_text(app)
        assert text.index("This model takes no system") < text.index("The sky is blue")


async def test_a_question_during_a_reply_waits_for_its_end():
    async with running(ScriptedEngine([sky_reply(), reply_events([round_of("then|p")])], step=3)) as (app, pilot):
        app.screen.send("why?")
        app.screen.send("and then?")
        await pilot.pause()
        assert "waits until this reply is over" in screen_text(app)
        await settle(pilot, frames=12)
        assert [m.content for m in app.chat.conversation.messages][2:] == ["and then?", "then"]
        assert "waits" not in screen_text(app)


async def test_a_dead_engine_leaves_the_chat_and_can_be_loaded_again():
    engine = ScriptedEngine([reply_events([round_of("half|a an|b")])[:-1]])
    async with running(engine) as (app, pilot):
        await say(pilot, "why?")
        engine.say(Failed("EngineDiedError", "llama.cpp gave up (SIGABRT).", "Load the pair again.", died=True))
        await settle(pilot)
        text = screen_text(app)
        assert "half an" in text
        assert "cut: the engine stopped" in text.replace("\u00a0", " ")
        assert "! llama.cpp gave up (SIGABRT)." in text
        assert "→ Load the pair again. " in text
        assert "Ctrl+R does" not in text, "the state line says it, and not every advice is what Ctrl+R does"
        assert "no model: Ctrl+R loads the pair" in text
        await pilot.press("ctrl+r")
        await settle(pilot)
        assert app.chat.phase == "ready"
        await say(pilot, "and now?")
        assert app.chat.conversation.messages[-1].content == "ok"


async def test_a_missing_pair_is_fetched_first_and_then_loaded():
    async with running(pair="large") as (app, pilot):
        while app.screen.opening.fetch.latest is None:
            await asyncio.sleep(0.01)
        await settle(pilot, frames=8)
        text = screen_text(app)
        assert "fetching: qwen2.5-coder 7B" in text
        assert "25%, 1.2 GB of 4.7 GB" in text
        app.shelf.arrived.set()
        while app.screen.opening.fetch is not None:
            await asyncio.sleep(0.01)
            app.screen.pump()
        assert sent(app, Load)[0].target == "/models/large.gguf"


async def test_a_fetch_can_be_cancelled_and_taken_up_again():
    async with running(pair="large") as (app, pilot):
        await pilot.press("escape")
        while app.screen.opening.is_fetching:
            await asyncio.sleep(0.01)
        await settle(pilot)
        assert "Fetching was stopped." in screen_text(app)
        assert screen_text(app).count("Fetching was stopped.") == 1
        await pilot.press("ctrl+r")
        assert app.screen.opening.is_fetching
        app.shelf.arrived.set()


async def test_a_pair_that_cannot_be_fetched_says_why():
    async with running(pair="gone") as (app, pilot):
        while app.screen.opening.is_fetching:
            await asyncio.sleep(0.01)
        await settle(pilot)
        assert "! The hub did not answer." in screen_text(app)
        assert "→ Try again later." in screen_text(app)


# --- keys ------------------------------------------------------------------------------------------------------------


async def test_ctrl_c_stops_first_and_quits_second():
    async with running(ScriptedEngine([sky_reply()], step=6)) as (app, pilot):
        app.screen.send("why?")
        app.screen.pump()
        await pilot.press("ctrl+c")
        assert sent(app, Stop)
        assert app.is_running
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert app._exit


async def test_ctrl_c_copies_a_selection_and_does_not_quit():
    async with running(ScriptedEngine([sky_reply()])) as (app, pilot):
        await say(pilot, "why?")
        app.screen.prompt.set_text("written")
        app.screen.prompt.select_all()
        await pilot.press("ctrl+c")
        assert app.clipboard == "written"
        assert not app._exit


async def test_ctrl_c_closes_a_dialog_and_does_not_quit():
    async with running() as (app, pilot):
        await pilot.press("f1")
        await pilot.press("ctrl+c")
        await pilot.pause()
        assert len(app.screen_stack) == 1
        assert not app._exit


async def test_an_editor_that_cannot_be_opened_is_told(monkeypatch):
    monkeypatch.delenv("VISUAL", raising=False)
    async with running(size=(99, 40)) as (app, pilot):
        await pilot.press(*"hi")
        for editor, said in (
            (" ", "this terminal cannot be handed to an editor"),
            ("vim '", "its command cannot be read (No closing quotation)"),
            ("no-such-editor", "no-such-editor did not work"),
        ):
            monkeypatch.setenv("EDITOR", editor)
            await pilot.press("ctrl+g")
            await pilot.pause()
            assert f"The editor did not open: {said}" in screen_text(app)
            app.suspend = nullcontext
        assert app.screen.prompt.text == "hi"


async def test_a_message_is_written_in_the_editor(monkeypatch):
    code = r"import sys; open(sys.argv[1], 'a').write(' two\n\nthree\n')"
    monkeypatch.setenv("VISUAL", shlex.join([sys.executable, "-c", code]))
    async with running() as (app, pilot):
        app.suspend = nullcontext  # there is no terminal here to hand over
        await say(pilot, "/editor one")
        assert app.screen.prompt.text == "one two\n\nthree"
        await pilot.press("ctrl+g", "enter")
        await settle(pilot)
        assert app.chat.conversation.messages[0].content == "one two\n\nthree two\n\nthree"


async def test_ctrl_q_quits_and_closes_the_engine():
    async with running() as (app, pilot):
        await pilot.press("ctrl+q")
        await pilot.pause()
    assert app.engine.closed


async def test_enter_sends_ctrl_j_breaks_and_up_recalls():
    async with running() as (app, pilot):
        await pilot.press(*"one", "ctrl+j", *"two", "enter")
        await settle(pilot)
        assert app.chat.conversation.messages[0].content == "one\ntwo"
        await pilot.press(*"next", "enter")
        await settle(pilot)
        await pilot.press(*"dr", "up")
        assert app.screen.prompt.text == "next"
        await pilot.press("up")
        assert app.screen.prompt.text == "one\ntwo"
        await pilot.press("down", "down")
        assert app.screen.prompt.text == "dr"


async def test_keys_that_follow_at_once_go_where_they_are_meant_to_go():
    from textual import events

    async with running() as (app, pilot):
        await say(pilot, "why?")
        keys = [("tab", None), ("e", "e"), ("backspace", None), *((name, name) for name in "now"), ("enter", "\r")]
        for key, character in keys:
            app.post_message(events.Key(key, character))
        await settle(pilot)
        assert [message.content for message in app.chat.conversation.messages] == ["whynow", "ok"]
        for key, character in [("tab", None), ("slash", "/"), *((name, name) for name in "mode")]:
            app.post_message(events.Key(key, character))
        await settle(pilot)
        assert app.screen.prompt.text == "/mode"


async def test_a_paste_is_one_message_and_what_a_terminal_obeys_becomes_visible():
    from textual import events

    async with running() as (app, pilot):
        app.post_message(events.Paste("line one\r\nline \x1b]52;c;QQ==\x07two\r"))
        await pilot.pause()
        assert app.screen.prompt.text == "line one\nline ␛]52;c;QQ==␇two\n"
        await pilot.press("enter")
        await settle(pilot)
        assert len(app.chat.conversation.messages) == 2


async def test_a_paste_goes_to_the_prompt_wherever_the_focus_is():
    from textual import events

    async with running() as (app, pilot):
        for keys in (("tab",), ("tab", "v")):
            await pilot.press(*keys)
            app.post_message(events.Paste("one\ntwo"))
            app.post_message(events.Key("x", "x"))
            await settle(pilot)
            assert app.screen.prompt.text == "one\ntwox"
            app.screen.prompt.set_text("")


async def test_a_large_paste_is_words_in_the_prompt_and_all_of_it_in_the_message():
    from textual import events

    pasted = "0123456789 \x1b[2J\r\n" * 10_000
    async with running() as (app, pilot):
        await pilot.press(*"look: ")
        app.post_message(events.Paste(pasted))
        await pilot.pause()
        assert app.screen.prompt.text == "look: [pasted text 1: 170,000 characters]"
        await pilot.press("enter")
        await settle(pilot)
        assert app.chat.conversation.messages[0].content == "look: " + "0123456789 ␛[2J\n" * 10_000
        app.screen.pane.transcript.scroll_to(y=10**6, animate=False)
        assert app.screen.pane.transcript.index.blocks[1].height < 3000


async def test_f2_goes_through_the_modes_and_exact_loads_again():
    async with running() as (app, pilot):
        await pilot.press("f2")
        assert app.chat.settings.mode == "fast"
        await pilot.press("f2")
        await settle(pilot)
        assert app.chat.settings.mode == "exact"
        assert [command.exact for command in sent(app, Load)] == [False, True]
        text = " ".join(screen_text(app).replace("│", "").split())
        assert "same bits as single ones. The temperature is 0 now." in text
        assert "γ 4 T 0 block" in text
        assert "exact: at temperature 0 the same tokens as plain decoding" in text
        await pilot.press("f2")
        assert [command.exact for command in sent(app, Load)] == [False, True, False]
        await settle(pilot)
        assert "T 0.7" in screen_text(app)
        for command in ("/temp 0.3", "/mode exact"):
            await say(pilot, command)
        text = screen_text(app)
        assert "T 0.3" in text
        assert "→ /temp 0 makes the replies those of plain decoding" in text
        assert "exact: the same tokens as plain decoding at temperature 0 only, /temp 0 makes it hold" in text


async def test_r_shows_rejected_tokens_and_the_inspector_explains_one():
    async with running(ScriptedEngine([sky_reply()])) as (app, pilot):
        await say(pilot, "why?")
        await pilot.press("tab", "r")
        assert "×colors×" in screen_text(app)
        await pilot.press("left", "left")
        reply = app.screen.pane.transcript.index.blocks[-1]
        assert '" us"' in screen_text(app)
        app.screen.pane.transcript.look_at(reply, [token.text for token in map(reply.token, range(9))].index(" colors"))
        await pilot.pause()
        text = screen_text(app)
        assert '" colors"   round 2, position 4   × rejected' in text
        assert "p target" in text
        assert "0.180" in text
        assert "0.620" in text
        assert "draw 0.710 > 0.290" in text
        assert '→ " wavelengths" resampled' in text
        assert "residual  wavelengths" in text
        await pilot.press("escape")
        assert not app.screen.query_one(Inspector).display


async def test_escape_undoes_tab_at_once_and_leaves_a_chosen_token_first():
    async with running(ScriptedEngine([sky_reply()])) as (app, pilot):
        await say(pilot, "why?")
        inspector = app.screen.query_one(Inspector)
        await pilot.press("tab")
        assert inspector.display
        await pilot.press("escape")
        assert (inspector.display, app.screen.prompt.has_focus) == (False, True)
        await pilot.press("tab", "left", "escape")
        assert (inspector.display, app.screen.prompt.has_focus) == (False, False)
        await pilot.press("escape")
        assert app.screen.prompt.has_focus


async def test_v_reads_the_reply_as_formatted_text_and_back():
    replies = [reply_events([round_of("# A |a[/INST] title|b\n\nbody|p")]), reply_events([round_of("## Then this|p")])]
    async with running(ScriptedEngine(replies)) as (app, pilot):
        await say(pilot, "why?")
        await pilot.press("tab", "v")
        await pilot.pause()
        assert "A [/INST] title" in screen_text(app)
        assert "tokens ·" not in screen_text(app)
        await pilot.press("v")
        await pilot.pause()
        assert "# A [/INST] title" in screen_text(app)
        await pilot.press("v", "tab")
        app.screen.fold.ask("and then?")  # as one that waited and is sent while somebody reads
        await settle(pilot)
        await pilot.pause()
        assert app.screen.pane.is_reading
        assert "Then this" in screen_text(app), "a reply that ends is there to be read"
        assert "## Then" not in screen_text(app)
        assert app.screen.prompt.has_focus


async def test_what_is_said_is_seen_by_who_reads():
    async with running() as (app, pilot):
        await say(pilot, "why?")
        await pilot.press("tab", "v")
        app.engine.say(Failed("DecodeError", "[b]It failed.[/b]", "Try again."))
        await settle(pilot)
        assert app.screen.pane.is_reading
        (notification,) = app._notifications
        assert notification.message == "[b]It failed.[/b] Try again."
        assert not notification.markup


async def test_y_copies_what_is_looked_at_and_the_command_any_reply():
    async with running(ScriptedEngine([sky_reply(), reply_events([round_of("second|p")])])) as (app, pilot):
        await say(pilot, "why?")
        await say(pilot, "and then?")
        first = app.chat.conversation.messages[1].content
        copied = []
        for keys in ("tab", "p", "p", "right"):
            await pilot.press(keys, "y")
            copied.append(app.clipboard)
        assert copied == ["second", "and then?", "why?", first]
        await pilot.press("escape", "tab")
        for command, text in (("/copy", "second"), ("/copy 1", first)):
            await say(pilot, command)
            assert app.clipboard == text
        await say(pilot, "/copy 3")
        assert "There is no reply 3." in screen_text(app)


# --- commands --------------------------------------------------------------------------------------------------------


async def test_settings_are_changed_by_commands_and_shown_on_the_status_line():
    async with running() as (app, pilot):
        for command in ("/gamma 6", "/temp 0.2", "/rule block", "/draft ngram", "/seed 5"):
            await say(pilot, command)
        assert "γ 6   draft ngram   T 0.2   block" in screen_text(app)
        assert app.chat.settings.seed == 5
        assert not app.chat.conversation.messages


async def test_a_system_message_comes_from_a_file_as_on_the_command_line(tmp_path):
    (tmp_path / "be kind.txt").write_text("be kind\n", "utf-8")
    async with running() as (app, pilot):
        await say(pilot, f"/system @{tmp_path}/be kind.txt")
        assert app.chat.conversation.system == "be kind\n"
        await say(pilot, "/system @/missing.txt")
        assert app.chat.conversation.system == "be kind\n"
        assert "/missing.txt cannot be read: No such file or directory." in screen_text(app)
        assert app.screen.prompt.text == "/system @/missing.txt"


async def test_an_unknown_command_stays_in_the_prompt_with_a_sentence():
    async with running() as (app, pilot):
        await say(pilot, "/gama 3")
        assert "There is no command /gama." in screen_text(app)
        assert "Did you mean /gamma?" in screen_text(app)
        assert app.screen.prompt.text == "/gama 3"


async def test_two_slashes_begin_a_message():
    async with running() as (app, pilot):
        await say(pilot, "//etc is a folder")
        assert app.chat.conversation.messages[0].content == "/etc is a folder"


async def test_a_command_explains_itself_while_it_is_typed():
    async with running() as (app, pilot):
        await pilot.press(*"/ga")
        await pilot.pause()
        assert "/gamma N|auto: how many tokens are drafted a round" in screen_text(app)


async def test_regenerate_continue_edit_delete_and_new():
    replies = [
        reply_events([round_of("first|p")], reason="length"),
        reply_events([round_of(" and on|p")]),
        reply_events([round_of("second|p")]),
        reply_events([round_of("third|p")]),
    ]
    async with running(ScriptedEngine(replies)) as (app, pilot):
        await say(pilot, "why?")
        await say(pilot, "/continue")
        assert "first and on" in screen_text(app)
        assert [m.content for m in app.chat.conversation.messages] == ["why?", "first and on"]
        await say(pilot, "/regenerate")
        assert "second" in screen_text(app)
        assert "first and on" not in screen_text(app)
        await say(pilot, "/edit")
        assert app.screen.prompt.text == "why?"
        await say(pilot, "how?")
        assert [m.content for m in app.chat.conversation.messages] == ["how?", "third"]
        assert len(app.chat.conversation.all_messages) == 6
        await say(pilot, "/delete")
        assert not app.chat.conversation.messages
        await say(pilot, "/delete")
        assert "nothing has been asked yet" in screen_text(app)
        await say(pilot, "/new")
        assert "Type a question." in screen_text(app)


async def test_a_pair_is_chosen_from_the_list():
    async with running(pair=None) as (app, pilot):
        assert "qwen2.5-coder 7B ⟵ 0.5B" in screen_text(app)
        await pilot.press("slash", *"1.5b", "enter", "enter")
        await settle(pilot)
        assert sent(app, Load)[0].target == "/models/target.gguf"
        await say(pilot, "/pair smal")
        assert 'There is no pair called "smal".' in screen_text(app)


async def test_help_lists_keys_and_commands():
    async with running() as (app, pilot):
        await pilot.press("f1")
        await pilot.pause()
        assert "drawn from the residual after a rejection" in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert "drawn from the residual" not in screen_text(app)


async def test_the_palette_offers_the_commands():
    async with running() as (app, pilot):
        await pilot.press("ctrl+p", *"gamma")
        await pilot.pause(0.3)
        await pilot.press("enter")
        await pilot.pause()
        assert app.screen.prompt.text == "/gamma "


async def test_each_turn_is_recorded(tmp_path):
    async with running(ScriptedEngine([sky_reply()]), records=tmp_path) as (app, pilot):
        await say(pilot, "why?")
    (path,) = tmp_path.glob("*.jsonl")
    record = read_record(path)
    assert [m.content for m in record.conversation.messages] == [m.content for m in app.chat.conversation.messages]
    assert record.header.pair.name == "qwen2.5-coder 1.5B ⟵ 0.5B"
    assert record.header.build == "b1"


# --- text that means harm --------------------------------------------------------------------------------------------

HOSTILE = "\x1b]52;c;QQ==\x07 \x9b2J \u202eevil [/INST] [bold]x[/bold] [@click=app.exit]y[/]"


@pytest.mark.parametrize("where", ["reply", "question", "error", "note"])
async def test_hostile_text_is_shown_as_it_is(where):
    async with running(ScriptedEngine([reply_events([round_of(f"{HOSTILE}|a|b")])])) as (app, pilot):
        if where == "error":
            app.engine.say(Failed("DecodeError", HOSTILE, HOSTILE))
        elif where == "note":
            app.screen.say("info", HOSTILE)
        else:
            await say(pilot, HOSTILE if where == "question" else "why?")
        await settle(pilot)
        await pilot.press("tab", "left")
        text = screen_text(app)
        assert "[/INST] [bold]x[/bold]" in " ".join(text.split())
        assert "␛]52;c;QQ==␇" in text
        assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set(text)


# --- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "panel", "folded"), [((120, 40), True, False), ((99, 40), False, True), ((59, 40), False, False)]
)
async def test_narrow_terminals_fold_the_panel(size, panel, folded):
    async with running(ScriptedEngine([sky_reply()]), size=size) as (app, pilot):
        await say(pilot, "why?")
        assert app.screen.query_one(NowPanel).display is panel
        assert app.screen.query_one("#folded").display is folded
        assert app.screen.query_one(RoundsView).display is (size[0] >= 60)
        assert "watch: drafting" in screen_text(app)


async def test_every_width_and_the_smallest_sizes_work_while_tokens_come():
    async with running(ScriptedEngine([sky_reply(20)], step=4)) as (app, pilot):
        app.screen.send("why? 天空 👩‍👩‍👧‍👦")
        for width in [*range(1, 201, 16), 1, 400]:
            await pilot.resize_terminal(width, 1 + width % 50)
            app.screen.pump()
        await pilot.resize_terminal(100, 30)
        while app.chat.is_replying:
            app.screen.pump()
        await settle(pilot)
        transcript = app.screen.pane.transcript
        reply = transcript.index.blocks[-1]
        assert reply.width == transcript.index.width
        shown = "".join(reply.line(y).copied() for y in range(reply.height))
        assert shown == app.chat.conversation.messages[-1].content
