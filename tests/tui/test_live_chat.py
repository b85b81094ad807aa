import pytest

from specchat.chat.conversation import Conversation
from specchat.core.events import Fate, Finished
from specchat.core.settings import ReplySettings
from specchat.engine.interface import Failed, Load, Reply, ReplyEvent, Set, Stop
from specchat.errors import UsageError
from specchat.tui.branches import Branches
from specchat.tui.chat_record import RecordedConversation
from specchat.tui.live_chat import LiveChat, Phase
from specchat.tui.occurrences import PairLoaded, ReplyBegan, ReplyEnded, WentWrong, Wrote
from tests.tui.scripted_engine import ScriptedEngine, reply_events, round_of
from tests.tui.stories import sky_reply


def _chat(engine):
    chat = LiveChat(engine, RecordedConversation(Conversation()), ReplySettings())
    chat.pair = "A ⟵ B"
    return chat


def chat_on(*replies, **options):
    engine = ScriptedEngine(replies, **options)
    return _chat(engine), engine


def pumped(chat, times=3):
    return [occurrence for _ in range(times) for occurrence in chat.pump()]


def loaded_chat(*replies, **options):
    chat, engine = chat_on(*replies, **options)
    chat.load(Load("target.gguf", "draft.gguf"))
    pumped(chat)
    return chat, engine


def test_a_question_is_answered_and_kept():
    chat, engine = loaded_chat(sky_reply())
    assert chat.phase is Phase.READY
    assert chat.ask("why?")
    kinds = [type(occurrence) for occurrence in pumped(chat)]
    assert kinds[0] is ReplyBegan
    assert kinds[-1] is ReplyEnded
    assert kinds.count(Wrote) == len(sky_reply()) - 1
    question, reply = chat.conversation.messages
    assert question.content == "why?"
    assert reply.content.startswith("The sky is blue because sunlight")
    assert reply.pair == "A ⟵ B"
    assert chat.context_used == 31 + 55
    assert [type(command) for command in engine.commands] == [Load, Reply]
    assert engine.commands[1].details


def test_messages_wait_while_the_pair_is_loaded_and_are_answered_one_by_one():
    chat, engine = chat_on(slow_load=True)
    chat.load(Load("target.gguf"))
    assert not chat.ask("one")
    assert not chat.ask("two")
    pumped(chat)
    assert chat.phase is Phase.LOADING
    assert chat.load_fractions == {"target": 0.45}
    engine.finish_loading()
    happened = pumped(chat, 6)
    assert isinstance(happened[0], PairLoaded)
    assert [o.question.content for o in happened if isinstance(o, ReplyBegan)] == ["one", "two"]
    assert [m.content for m in chat.conversation.messages] == ["one", "ok", "two", "ok"]


def test_messages_that_wait_can_be_taken_back():
    chat, _ = chat_on(slow_load=True)
    chat.load(Load("target.gguf"))
    chat.ask("one")
    chat.ask("two")
    assert chat.take_back_waiting() == "one\n\ntwo"
    assert not chat.waiting


def test_stopping_keeps_what_came():
    chat, engine = loaded_chat(sky_reply(), step=5)
    chat.ask("why?")
    chat.pump()
    chat.pump()
    chat.stop()
    assert isinstance(engine.commands[-1], Stop)
    ended = next(o for o in pumped(chat) if isinstance(o, ReplyEnded))
    assert ended.events[-1].reason == "interrupted"
    assert chat.conversation.messages[-1].content.startswith("The sky")
    assert chat.phase is Phase.READY


def test_changed_settings_reach_a_reply_that_is_being_written():
    chat, engine = loaded_chat(sky_reply(), step=2)
    chat.change(ReplySettings(rule="block"))
    assert not any(isinstance(command, Set) for command in engine.commands)
    chat.ask("why?")
    chat.pump()
    chat.change(ReplySettings(rule="match"))
    assert engine.commands[-1] == Set(ReplySettings(rule="match"))


def test_the_chat_survives_an_engine_that_dies_in_the_middle():
    chat, engine = loaded_chat()
    engine.replies.append(reply_events([round_of("half|a of|b")])[:-1])
    chat.ask("why?")
    pumped(chat)
    engine.say(Failed("EngineDiedError", "It died.", "Load it again.", died=True))
    happened = pumped(chat)
    ended, wrong = happened
    assert ended.message.content == "half of"
    assert not isinstance(ended.events[-1], Finished)
    assert wrong == WentWrong("It died.", "Load it again.")
    assert chat.phase is Phase.EMPTY
    assert chat.loaded is None
    chat.load_again()
    pumped(chat)
    assert chat.phase is Phase.READY
    chat.ask("and now?")
    pumped(chat)
    assert chat.conversation.messages[-1].content == "ok"


def test_a_load_that_fails_leaves_nothing_loaded():
    chat, engine = chat_on(slow_load=True)
    chat.load(Load("target.gguf"))
    engine.say(Failed("LoadError", "Not a GGUF file.", "Choose another."))
    assert pumped(chat)[-1] == WentWrong("Not a GGUF file.", "Choose another.")
    assert chat.phase is Phase.EMPTY


def test_a_failed_reply_leaves_the_pair_loaded():
    chat, engine = loaded_chat()
    engine.replies.append([])
    chat.ask("why?")
    number = engine.commands[-1].reply
    engine.say(Failed("ContextFullError", "Too long.", "Shorten it.", reply=number))
    ended, wrong = [o for o in pumped(chat) if isinstance(o, ReplyEnded | WentWrong)]
    assert ended.message is None
    assert wrong == WentWrong("Too long.", "Shorten it.")
    assert chat.phase is Phase.READY


def test_events_of_another_reply_are_ignored():
    chat, engine = loaded_chat()
    engine.say(ReplyEvent(99, round_of("x|p")))
    assert pumped(chat) == []


def test_exact_mode_loads_the_same_pair_in_another_way():
    chat, engine = loaded_chat()
    chat.change(ReplySettings(mode="exact"))
    assert engine.commands[-1] == Load("target.gguf", "draft.gguf", exact=True)
    assert chat.is_exact
    with pytest.raises(UsageError, match="loaded in another way"):
        chat.change(ReplySettings(mode="watch"))
    assert chat.settings.mode == "exact"
    pumped(chat)
    chat.change(ReplySettings(mode="fast"))
    assert engine.commands[-1] == Load("target.gguf", "draft.gguf", exact=False)


def test_regenerating_and_continuing_ask_for_what_the_conversation_says():
    chat, engine = loaded_chat(reply_events([round_of("half|a of|b")], reason="length"))
    with pytest.raises(ValueError, match="nothing has been asked"):
        Branches(chat).regenerate()
    with pytest.raises(ValueError, match="nothing to continue"):
        Branches(chat).continue_reply()
    chat.ask("why?")
    pumped(chat)
    engine.replies.append(reply_events([round_of(" it|p")]))
    Branches(chat).continue_reply()
    with pytest.raises(UsageError, match="is being written"):
        Branches(chat).regenerate()
    assert engine.commands[-1].continue_last
    pumped(chat)
    assert chat.conversation.messages[-1].content == "half of it"
    engine.replies.append(reply_events([round_of("new|p")]))
    Branches(chat).regenerate()
    pumped(chat)
    assert [m.content for m in chat.conversation.messages] == ["why?", "new"]
    assert chat.conversation.messages[-1].events[-2].committed[0].fate is Fate.PLAIN
