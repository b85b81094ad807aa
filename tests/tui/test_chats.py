"""Earlier chats are listed, opened and gone on with."""

import pytest

from specchat.chat.record import RecordWriter, read_record
from specchat.core.settings import ReplySettings
from specchat.engine.interface import Failed
from tests.tui.screens import running, say, screen_text, settle
from tests.tui.scripted_engine import ScriptedEngine, reply_events, round_of
from tests.tui.test_chat_record import write_turn

HOSTILE = "\x1b]52;c;QQ==\x07[bold]x[/bold] [/]"


@pytest.fixture
def records(tmp_path):
    from specchat.chat.conversation import Conversation
    from specchat.tui.chat_record import RecordedConversation

    for question in ("what is a lighthouse?", HOSTILE):
        kept = RecordedConversation(Conversation(), tmp_path / "records")
        write_turn(kept, question, "an answer")
        write_turn(kept, "and?", "more")
        kept.close()
    return tmp_path / "records"


async def listed(pilot):
    await say(pilot, "/open")
    await pilot.app.workers.wait_for_complete()
    await settle_dialog(pilot)


async def settle_dialog(pilot):
    await pilot.pause()
    await pilot.pause()


async def test_an_earlier_chat_is_chosen_and_gone_on_with(records):
    async with running(ScriptedEngine([reply_events([round_of("on|p")])]), size=(80, 24), records=records) as (
        app,
        pilot,
    ):
        await say(pilot, "now?")
        mine = app.kept.path
        await listed(pilot)
        text = screen_text(app)
        assert "what is a lighthouse?" in text
        assert "␛]52;c;QQ==␇[bold]x[/bold] [/]" in text
        assert all(path.name in text for path in records.iterdir() if path != mine)
        assert "now?" not in "".join(text.splitlines()[8:16]), "the chat that is open is not listed"
        options = app.screen.query_one("OptionList")
        place = next(
            n for n in range(options.option_count) if "lighthouse" in str(options.get_option_at_index(n).prompt)
        )
        options.highlighted = place
        await pilot.press("enter")
        await settle(pilot)
        assert "> what is a lighthouse?" in screen_text(app)
        assert app.kept.path != mine
        await say(pilot, "go on")
        opened = app.kept.path
    record = read_record(opened)
    assert [m.content for m in record.conversation.messages][2:] == ["and?", "more", "go on", "ok"]
    assert record.pair.name == "qwen2.5-coder 1.5B ⟵ 0.5B"
    assert [m.content for m in read_record(mine).conversation.messages] == ["now?", "on"]


async def test_a_chat_that_was_left_in_the_middle_of_a_reply_is_there_as_far_as_it_came(tmp_path):
    engine = ScriptedEngine([reply_events([round_of("half|p"), *[round_of(" of|p")] * 20])], step=4)
    async with running(engine, records=tmp_path / "records") as (app, pilot):
        app.screen.send("why?")
        assert app.chat.is_replying
        await pilot.press("ctrl+q")
    async with running(records=tmp_path / "records", size=(80, 24)) as (app, pilot):
        await listed(pilot)
        await pilot.press("enter")
        await settle(pilot)
        text = " ".join(screen_text(app).replace("│", "").split())
        assert "half of of" in text
        assert "The last reply was cut off when the program ended; what came is kept." in text
        await say(pilot, "/continue")
        assert app.chat.conversation.head.content == "half of of of ofok"


async def test_a_question_that_waited_for_the_pair_is_recorded_with_it(tmp_path):
    engine = ScriptedEngine(slow_load=True)
    async with running(engine, records=tmp_path / "records") as (app, pilot):
        await say(pilot, "early")
        engine.finish_loading()
        await settle(pilot, frames=3)
        record = read_record(app.kept.path)
    assert record.header.pair.name == "qwen2.5-coder 1.5B ⟵ 0.5B"
    assert record.conversation.head.pair == "qwen2.5-coder 1.5B ⟵ 0.5B"


async def test_only_looking_changes_nothing_and_settings_are_said_before_the_next_reply(records):
    before = {path: path.read_bytes() for path in records.iterdir()}
    async with running(records=records, settings=ReplySettings(seed=3)) as (app, pilot):
        await listed(pilot)
        await pilot.press("enter")
        await settle(pilot)
        opened = app.kept.path
        assert {path: path.read_bytes() for path in records.iterdir()} == before
        await say(pilot, "go on")
    assert read_record(opened).settings.seed == 3
    assert read_record(opened).conversation.head.settings.seed == 3


async def test_what_cannot_be_opened_is_said(records):
    async with running(records=records) as (app, pilot):
        path = max(records.iterdir(), key=lambda each: each.stat().st_mtime_ns)
        with RecordWriter.resume(path):
            await listed(pilot)
            await pilot.press("enter")
            await settle(pilot)
        assert "is being written by another specchat" in " ".join(screen_text(app).split())
        assert not app.chat.conversation.messages
    async with running() as (app, pilot):
        await say(pilot, "/open")
        assert "Chats are not recorded here." in screen_text(app)


async def test_the_list_is_left_with_esc_and_says_when_it_is_empty(tmp_path):
    async with running(records=tmp_path / "records") as (app, pilot):
        await listed(pilot)
        assert "there are none yet" in screen_text(app)
        await pilot.press("escape")
        assert len(app.screen_stack) == 1
        app.engine.say(Failed("EngineDiedError", "It died.", "", died=True))
        await settle(pilot)
        assert "It died." in screen_text(app)
