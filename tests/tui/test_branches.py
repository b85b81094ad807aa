"""Editing earlier questions, answering again, and going from one version to another, with keys only."""

import pytest

from specchat.chat.record import RecordWriter, read_record
from specchat.engine.interface import Failed, Inspect, PromptSize, Reply
from tests.tui.screens import running, say, screen_text, settle
from tests.tui.scripted_engine import ScriptedEngine, reply_events, round_of

SMALL = (80, 24)


def answers(*texts):
    return ScriptedEngine([reply_events([round_of(f"{text}|p")]) for text in texts])


def said(app):
    return [message.content for message in app.chat.conversation.messages]


def shown(app):
    """The ids of the messages in the transcript."""
    return [block.message_id for block in app.screen.pane.transcript.index.blocks if block.message_id is not None]


async def two_turns(pilot):
    await say(pilot, "why?")
    await say(pilot, "and then?")


async def test_any_earlier_question_is_edited_and_both_branches_can_be_seen():
    async with running(answers("one", "two", "three"), size=SMALL) as (app, pilot):
        await two_turns(pilot)
        await pilot.press(*"not sent")
        await pilot.press("tab", "p", "p")
        await pilot.pause()
        assert "question   the only version   e edit   g answer again" in screen_text(app)
        await pilot.press("e")
        assert app.screen.prompt.text == "why?"
        await pilot.press("backspace", *"not?", "enter")
        await settle(pilot)
        assert said(app) == ["whynot?", "three"]
        assert app.engine.commands[-1].messages[-1].content == "whynot?"
        assert "> ‹2/2› whynot?" in screen_text(app)
        assert app.screen.prompt.text == "not sent"
        await pilot.press("tab", "p", "less_than_sign")
        await settle(pilot)
        assert said(app) == ["why?", "one", "and then?", "two"]
        assert "> ‹1/2› why?" in screen_text(app)
        assert "version 1 of 2" in screen_text(app)
        await pilot.press("less_than_sign")
        assert said(app)[0] == "why?", "there is none before the first"
        await pilot.press("greater_than_sign")
        assert said(app) == ["whynot?", "three"]


async def test_answering_again_makes_a_version_of_the_reply():
    async with running(answers("one", "two", "three"), size=SMALL) as (app, pilot):
        await two_turns(pilot)
        await pilot.press("tab", "p", "p", "g")
        await settle(pilot)
        assert said(app) == ["why?", "three"]
        assert "‹2/2› · 1 token" in screen_text(app).replace("\u00a0", " ")
        await pilot.press("less_than_sign")
        assert said(app) == ["why?", "one", "and then?", "two"]
        assert "‹1/2› · 1 token" in screen_text(app).replace("\u00a0", " ")
        await pilot.press("tab")
        await say(pilot, "/version 2")
        assert said(app) == ["why?", "three"]
        await say(pilot, "/version 3")
        assert "There is no version 3." in screen_text(app)
        await say(pilot, "/version")
        assert "/version needs a number." in screen_text(app)


async def test_a_question_is_edited_by_its_number():
    async with running(answers("one", "two", "three", "four")) as (app, pilot):
        await say(pilot, "/edit")
        assert "nothing has been asked yet" in screen_text(app)
        app.screen.prompt.set_text("")
        await two_turns(pilot)
        await say(pilot, "/edit 3")
        assert "There is no question 3." in screen_text(app)
        app.screen.prompt.set_text("")
        await say(pilot, "/edit 1")
        assert app.screen.prompt.text == "why?"
        await pilot.press("enter")
        await settle(pilot)
        assert said(app) == ["why?", "three"]
        assert len(app.chat.conversation.all_messages) == 5, "what was not changed is not another version"
        await say(pilot, "/regenerate 1")
        assert said(app) == ["why?", "four"]


async def test_a_branch_survives_the_end_of_the_program(tmp_path):
    async with running(answers("one", "two", "three"), records=tmp_path) as (app, pilot):
        await two_turns(pilot)
        await say(pilot, "/edit 1")
        await say(pilot, "how?")
        await pilot.press("tab", "p", "less_than_sign")
        await settle(pilot)
    (path,) = tmp_path.glob("*.jsonl")
    conversation, writer = read_record(path).conversation, RecordWriter.resume(path)
    async with running(size=SMALL, conversation=conversation, record=writer) as (app, pilot):
        assert said(app) == ["why?", "one", "and then?", "two"]
        assert "> ‹1/2› why?" in screen_text(app)
        await pilot.press("tab", "greater_than_sign", "tab")
        assert said(app) == ["how?", "three"]
        await say(pilot, "and?")
    assert [m.content for m in read_record(path).conversation.messages] == ["how?", "three", "and?", "ok"]


async def test_what_cannot_be_done_is_said():
    async with running(ScriptedEngine(step=0)) as (app, pilot):
        app.engine._step = 9
        await settle(pilot)
        await pilot.press("tab", "less_than_sign")
        assert "No message has several versions yet." in screen_text(app)
        await pilot.press("e")
        assert "That cannot be done: nothing has been asked yet." in screen_text(app)
        app.engine._step = 0
        app.screen.send("why?")
        await pilot.press("g")
        assert "A reply is being written." in screen_text(app)
        assert sum(isinstance(command, Reply) for command in app.engine.commands) == 1


@pytest.mark.parametrize("meanwhile", ["/new", "/delete", "/regenerate"])
async def test_what_happens_while_a_question_is_edited_ends_the_editing(meanwhile):
    async with running(answers("one", "two", "three")) as (app, pilot):
        await say(pilot, "why?")
        await say(pilot, "/edit")
        await say(pilot, meanwhile)
        before = len(said(app))
        await say(pilot, "what?")
        assert said(app)[before:] == ["what?", "two" if meanwhile != "/regenerate" else "three"]


async def test_a_message_that_waits_is_still_there_in_a_new_chat_and_is_answered():
    engine = ScriptedEngine([reply_events([round_of("late|p")])], slow_load=True)
    async with running(engine) as (app, pilot):
        await say(pilot, "hello")
        await say(pilot, "/new")
        assert "> hello" in screen_text(app)
        engine.finish_loading()
        await settle(pilot, frames=3)
        assert said(app) == ["hello", "late"]
        assert "waits" not in screen_text(app)


async def test_the_reading_view_shows_another_version_and_a_new_answer_is_shown_as_tokens():
    async with running(answers("one", "two")) as (app, pilot):
        await say(pilot, "why?")
        await say(pilot, "/regenerate")
        await pilot.press("tab", "v")
        await pilot.pause()
        assert "two" in screen_text(app)
        await pilot.press("less_than_sign")
        await pilot.pause()
        assert app.screen.pane.is_reading
        assert "one" in screen_text(app)
        assert "two" not in screen_text(app)
        await pilot.press("g")
        assert not app.screen.pane.is_reading


async def test_the_context_of_another_branch_is_asked_for():
    async with running(answers("one", "two")) as (app, pilot):
        await say(pilot, "why?")
        await say(pilot, "/regenerate")
        await pilot.press("tab", "less_than_sign")
        assert isinstance(app.engine.commands[-1], Inspect)
        assert [message.content for message in app.engine.commands[-1].messages] == ["why?", "one"]
        app.engine.say(PromptSize(4096, 0, 8192))
        await settle(pilot)
        assert "ctx ▓▓▓▓░░░░ 50%" in screen_text(app)


async def test_a_long_question_is_edited_without_being_shown_in_full():
    async with running(answers("one", "two")) as (app, pilot):
        app.screen.send("x" * 200_000)
        await settle(pilot)
        await say(pilot, "/edit")
        assert app.screen.prompt.text == "[pasted text 1: 200,000 characters]"
        await pilot.press(*" y", "enter")
        await settle(pilot)
        assert said(app)[0] == "x" * 200_000 + " y"


async def test_arrows_go_through_questions_and_the_mouse_finds_them():
    async with running(answers("one", "two")) as (app, pilot):
        await two_turns(pilot)
        transcript = app.screen.pane.transcript
        await pilot.press("tab", "up", "down")
        looked_at = []
        for _ in range(4):
            looked_at.append(app.chat.conversation.message(transcript.message_looked_at).content)
            await pilot.press("up")
        assert looked_at == ["two", "and then?", "one", "why?"]
        await pilot.press("right")
        assert transcript.message_looked_at == app.chat.conversation.messages[1].id
        block = next(n for n, each in enumerate(transcript.index.blocks) if each.message_id == 3)
        await pilot.click(transcript, offset=(3, transcript.index.start(block)))
        assert transcript.message_looked_at == 3
        await pilot.press("left")
        assert transcript.message_looked_at == 2


async def test_another_answer_that_does_not_come_leaves_everything_as_it_was(tmp_path):
    engine = answers("one", "two", "three")
    async with running(engine, size=SMALL, records=tmp_path) as (app, pilot):
        await two_turns(pilot)
        before, used = said(app), app.chat.context_used
        engine._step = 0
        await pilot.press("tab", "p", "p", "g")
        assert said(app) == ["why?"]
        assert [message.content for message in read_record(app.kept.path).conversation.messages] == before
        await pilot.press("escape")
        engine._step = 9
        await settle(pilot)
        assert said(app) == before
        assert app.chat.context_used == used
        assert shown(app) == [message.id for message in app.chat.conversation.messages]
        engine.replies.append([])
        await pilot.press("tab")
        await say(pilot, "/edit 1")
        await pilot.press("enter")
        engine.say(Failed("ContextFullError", "The context is full.", "/new begins a chat.", engine.commands[-1].reply))
        app.screen.fold.ask("and now?")  # waits, and is asked after what is there again
        await settle(pilot, frames=4)
        assert said(app) == [*before, "and now?", "ok"]
        assert shown(app) == [message.id for message in app.chat.conversation.messages]
        assert "The context is full." in screen_text(app)
    (path,) = tmp_path.glob("*.jsonl")
    assert [message.content for message in read_record(path).conversation.messages] == [*before, "and now?", "ok"]
