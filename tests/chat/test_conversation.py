"""A chat is a tree: nothing that was said is lost by editing, regenerating, stopping or continuing."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specchat.chat.conversation import Conversation, Message, reply_from_events
from specchat.core.events import Fate
from specchat.core.settings import ChatMessage, ReplySettings
from tests.chat.replies import END, committed, finished, plain_reply, round_of, speculative_reply


def exchange(chat, question, *answer, **options):
    chat.add_user(question)
    return chat.add_reply(chat.begin_reply(), plain_reply(*answer, **options))


@pytest.fixture
def chat():
    chat = Conversation("Be brief.")
    exchange(chat, "one?", "1", "!")
    exchange(chat, "two?", "2")
    return chat


def contents(chat):
    return [message.content for message in chat.messages]


def test_the_prompt_is_the_branch_with_the_replies_own_ids(chat):
    assert chat.prompt() == (
        ChatMessage("system", "Be brief."),
        ChatMessage("user", "one?"),
        ChatMessage("assistant", "1!", (ord("1"), ord("!"))),
        ChatMessage("user", "two?"),
        ChatMessage("assistant", "2", (ord("2"),)),
    )


def test_without_a_system_message_the_prompt_has_none():
    chat = Conversation()
    chat.add_user("hello")
    assert chat.prompt() == (ChatMessage("user", "hello"),)


def test_editing_begins_a_branch_and_keeps_the_old_one(chat):
    first = chat.messages[0]
    edited = chat.edit(first.id, "uno?")
    assert contents(chat) == ["uno?"]
    assert [m.content for m in chat.siblings(first.id)] == ["one?", "uno?"]
    assert chat.siblings(first.id) == chat.siblings(edited.id)
    chat.switch(first.id)
    assert contents(chat) == ["one?", "1!", "two?", "2"]


def test_an_edited_reply_has_no_ids(chat):
    edited = chat.edit(chat.messages[1].id, "one")
    assert edited.role == "assistant"
    assert edited.token_ids is None
    assert contents(chat) == ["one?", "one"]
    assert chat.add_reply(chat.begin_reply(continue_last=True), plain_reply(", 1")).content == "one, 1"


def test_regenerating_keeps_both_answers(chat):
    old = chat.messages[-1]
    assert chat.regenerate().content == "two?"
    new = chat.add_reply(chat.begin_reply(), plain_reply("zwei"))
    assert contents(chat) == ["one?", "1!", "two?", "zwei"]
    assert chat.siblings(new.id) == (old, new)
    chat.switch(old.id)
    assert contents(chat)[-1] == "2"


def test_regenerating_an_unanswered_question_stays_there(chat):
    chat.add_user("three?")
    assert chat.regenerate().content == "three?"
    assert contents(chat)[-1] == "three?"


def test_deleting_the_last_exchange_takes_all_its_answers(chat):
    chat.regenerate()
    chat.add_reply(chat.begin_reply(), plain_reply("zwei"))
    assert chat.delete_last_exchange().content == "two?"
    assert contents(chat) == ["one?", "1!"]
    assert [m.content for m in chat.all_messages] == ["one?", "1!"]
    assert chat.delete_last_exchange().content == "one?"
    assert chat.messages == ()
    assert chat.head is None


def test_a_deleted_branch_elsewhere_leaves_the_head(chat):
    first = chat.messages[0]
    edited = chat.edit(first.id, "uno?")
    chat.switch(first.id)
    chat.delete(edited.id)
    assert contents(chat) == ["one?", "1!", "two?", "2"]


def test_ids_are_never_used_twice(chat):
    last = chat.messages[-1].id
    chat.delete_last_exchange()
    assert chat.add_user("again").id == last + 1


def test_clearing_leaves_the_system_message(chat):
    chat.clear()
    assert chat.prompt() == (ChatMessage("system", "Be brief."),)


def test_a_cut_reply_is_continued_with_joined_ids():
    chat = Conversation()
    cut = exchange(chat, "count", "1", " 2", reason="interrupted")
    assert cut.is_cut
    whole = chat.add_reply(chat.begin_reply(continue_last=True), plain_reply(" 3"))
    assert whole.content == "1 2 3"
    assert whole.token_ids == (*cut.token_ids, *reply_from_events(plain_reply(" 3"))[1])
    assert whole.parent == cut.parent
    assert not whole.is_cut
    assert contents(chat) == ["count", "1 2 3"]
    assert chat.siblings(whole.id) == (whole,)
    assert chat.events(whole.id) == cut.events + whole.events


def test_a_reply_cut_before_its_first_token_leaves_the_question(chat):
    chat.add_user("three?")
    assert chat.add_reply(chat.begin_reply(), [finished("interrupted")]) is None
    assert chat.head.content == "three?"


def test_an_empty_reply_that_ended_by_itself_is_a_reply(chat):
    chat.add_user("three?")
    reply = chat.add_reply(chat.begin_reply(), plain_reply())
    assert (reply.content, reply.token_ids) == ("", ())


def test_a_reply_remembers_how_it_was_written(chat):
    chat.add_user("three?")
    settings = ReplySettings(mode="fast", seed=7)
    reply = chat.add_reply(chat.begin_reply(), speculative_reply(), settings, "a pair")
    assert (reply.settings, reply.pair, reply.finished.speedup) == (settings, "a pair", 1.38)


def test_the_place_of_a_reply_stays_free_while_it_is_written(chat):
    chat.add_user("three?")
    place = chat.begin_reply()
    other = chat.edit(chat.messages[0].id, "meanwhile")
    reply = chat.add_reply(place, plain_reply("3"))
    assert other.id != reply.id == place.id
    assert contents(chat)[-2:] == ["three?", "3"]


@pytest.mark.parametrize(
    "nonsense",
    [
        lambda chat: chat.edit(99, "x"),
        lambda chat: chat.switch(99),
        lambda chat: chat.siblings(99),
        lambda chat: chat.move_to(99),
        lambda chat: chat.delete(99),
        lambda chat: chat.begin_reply(),
        lambda chat: chat.begin_reply(continue_last=True),
        lambda chat: Conversation().begin_reply(),
        lambda chat: Conversation().regenerate(),
        lambda chat: Conversation().delete_last_exchange(),
        lambda chat: chat.insert(Message(1, None, "user", "twice")),
        lambda chat: chat.insert(Message(9, 8, "user", "no parent")),
        lambda chat: chat.insert(Message(9, None, "assistant", "no question")),
        lambda chat: chat.insert(Message(9, 4, "assistant", "answers an answer")),
        lambda chat: chat.insert(Message(9, 3, "assistant", "itself", continues=9)),
        lambda chat: chat.insert(Message(0, None, "user", "no id")),
    ],
)
def test_nonsense_is_refused_and_changes_nothing(chat, nonsense):
    before = (chat.messages, chat.all_messages)
    with pytest.raises(ValueError, match=r"\w"):
        nonsense(chat)
    assert (chat.messages, chat.all_messages) == before


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(1, 12)), max_size=40))
def test_whatever_is_done_the_tree_stays_sound(steps):
    chat = Conversation()
    actions = [
        lambda n: chat.add_user(str(n)),
        lambda n: chat.add_reply(chat.begin_reply(), plain_reply(chr(96 + n), reason="length" if n % 2 else "end")),
        lambda n: chat.add_reply(chat.begin_reply(continue_last=True), plain_reply("+")),
        lambda n: chat.edit(n, "edited"),
        lambda n: chat.regenerate(),
        lambda n: chat.delete(n),
        lambda n: chat.switch(n),
        lambda n: chat.delete_last_exchange(),
    ]
    for action, number in steps:
        before = chat.messages
        try:
            actions[action](number)
        except ValueError:
            assert chat.messages == before
        branch = chat.messages
        assert [m.parent for m in branch] == [None, *[m.id for m in branch]][: len(branch)]
        assert all(a.role != "assistant" or b.role == "user" for b, a in pairwise(branch))
        for message in chat.all_messages:
            assert message in chat.siblings(message.id)
            if message.role == "assistant" and message.token_ids:
                assert len(message.token_ids) == len(message.content)


# --- the fold over a reply's events -----------------------------------------------------------------------------------


def test_the_end_token_is_no_part_of_a_reply():
    text, ids = reply_from_events(speculative_reply())
    assert text == "The waves go on."
    assert len(ids) == 4
    assert END.id not in ids


def test_every_token_counts_when_the_length_ran_out():
    assert reply_from_events(plain_reply("a", "b", reason="length")) == ("ab", (97, 98))


def test_text_that_was_held_back_is_part_of_the_reply():
    tokens = [committed("so", 1), committed("", 2, data=b"\nUs")]
    assert reply_from_events([round_of(*tokens), finished("length", "\nUs")]) == ("so\nUs", (1, 2))


def test_a_stop_string_takes_its_tokens_with_it():
    tokens = [committed("so", 1), committed("", 2, data=b"\nUser"), committed("", 3, data=b":")]
    assert reply_from_events([round_of(*tokens), finished("stop")]) == ("so", (1,))


def test_a_stop_string_inside_a_token_leaves_no_ids():
    tokens = [committed("so", 1, data=b"so\nUs"), committed("", 2, data=b"er:")]
    assert reply_from_events([round_of(*tokens), finished("stop")]) == ("so", None)


def test_a_character_cut_in_its_middle_is_left_out():
    llama = "🦙".encode()
    tokens = [committed("a", 1), committed("b", 2, data=b"b" + llama[:1]), committed("", 3, data=llama[1:3])]
    assert reply_from_events([round_of(*tokens), finished("interrupted", "\ufffd")]) == ("a", (1,))
    whole = [*tokens, committed("🦙", 4, data=llama[3:])]
    assert reply_from_events([round_of(*whole), finished("interrupted")]) == ("ab🦙", (1, 2, 3, 4))


def test_bytes_that_are_no_character_stay():
    tokens = [committed("\ufffd", 1, data=b"\xff"), committed("a", 2)]
    assert reply_from_events([round_of(*tokens), finished("length")]) == ("\ufffda", (1, 2))


def test_a_reply_whose_end_is_missing_keeps_what_is_certain():
    tokens = [committed("a", 1), committed("", 2, data="🦙".encode()[:2])]
    assert reply_from_events([round_of(*tokens)]) == ("a", (1,))
    assert reply_from_events([]) == ("", ())


def test_fates_do_not_matter():
    tokens = [committed("a", 1, Fate.ACCEPTED), committed("b", 2, Fate.BONUS)]
    assert reply_from_events([round_of(*tokens), finished("length")]) == ("ab", (1, 2))
