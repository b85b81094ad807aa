from specchat.chat.conversation import Conversation
from specchat.chat.record import read_record
from specchat.core.events import Prefill
from specchat.core.settings import ReplySettings
from specchat.tui.chat_record import RecordedConversation
from specchat.tui.pair_shelf import PairFiles
from tests.tui.scripted_engine import reply_events, round_of

PAIR = PairFiles("small", "A ⟵ B", "/models/a.gguf", "/models/b.gguf", "ab" * 32, None)


def write_turn(kept, question, answer):
    kept.add_user(question)
    return answer_to(kept, answer)


def answer_to(kept, answer):
    place = kept.begin_reply(continue_last=False)
    events = reply_events([round_of(f"{answer}|p")])
    for event in events:
        kept.event(place.id, event)
    return kept.add_reply(place, events, ReplySettings(), "A ⟵ B")


def test_a_chat_can_be_read_back_from_its_record(tmp_path):
    kept = RecordedConversation(Conversation(), tmp_path)
    kept.set_pair(PAIR, "b1")
    kept.set_settings(ReplySettings(seed=7))
    write_turn(kept, "why?", "so")
    kept.set_system("be brief")
    kept.set_settings(ReplySettings(rule="block"))
    header = kept.header
    kept.close()
    (path,) = tmp_path.glob("*.jsonl")
    record = read_record(path)
    assert record.header == header
    assert record.header.pair.target.file == "a.gguf"
    assert record.header.pair.target.sha256 == "ab" * 32
    assert record.header.build == "b1"
    assert record.header.seed == 7
    assert record.settings == ReplySettings(rule="block")
    assert record.conversation.system == "be brief"
    assert [m.content for m in record.conversation.all_messages] == ["why?", "so"]
    assert record.conversation.head.content == "so"
    assert not record.notices


def test_every_new_chat_has_a_record_of_its_own(tmp_path):
    kept = RecordedConversation(Conversation(), tmp_path)
    write_turn(kept, "one", "1")
    kept.begin_new()
    write_turn(kept, "two", "2")
    kept.close()
    texts = [[m.content for m in read_record(path).conversation.messages] for path in sorted(tmp_path.glob("*.jsonl"))]
    assert sorted(texts) == [["one", "1"], ["two", "2"]]


def test_a_chat_in_which_nothing_is_said_leaves_no_record(tmp_path):
    kept = RecordedConversation(Conversation(), tmp_path)
    kept.set_settings(ReplySettings(seed=1))
    kept.set_system("x")
    kept.close()
    assert not list(tmp_path.glob("*.jsonl"))


def test_what_cannot_be_written_is_told_once_and_the_chat_goes_on(tmp_path):
    folder = tmp_path / "records"
    folder.write_text("a file stands in the way")
    kept = RecordedConversation(Conversation(), folder)
    assert write_turn(kept, "one", "1").content == "1"
    assert len(kept.problems) == 1
    assert "records" in kept.problems[0].message
    folder.unlink()
    write_turn(kept, "two", "2")
    kept.close()
    (path,) = folder.iterdir()
    assert [m.content for m in read_record(path).conversation.messages] == ["one", "1", "two", "2"]


def test_branches_and_the_one_that_is_looked_at_are_read_back(tmp_path):
    kept = RecordedConversation(Conversation(), tmp_path)
    first = write_turn(kept, "why?", "so")
    write_turn(kept, "and then?", "this")
    kept.edit(first.parent, "how?")
    answer_to(kept, "thus")
    kept.switch(first.parent)
    assert [m.content for m in kept.conversation.messages] == ["why?", "so", "and then?", "this"]
    kept.regenerate(first.id)
    second = answer_to(kept, "because")
    kept.switch(first.id)
    kept.close()
    (path,) = tmp_path.glob("*.jsonl")
    read = read_record(path).conversation
    assert [m.content for m in read.messages] == ["why?", "so", "and then?", "this"]
    assert read.version(first.id) == (1, 2)
    assert [m.content for m in read.siblings(first.id)] == ["so", "because"]
    assert [m.content for m in read.siblings(first.parent)] == ["why?", "how?"]
    read.switch(second.id)
    assert [m.content for m in read.messages] == ["why?", "because"]


def test_another_answer_is_there_with_its_first_token_and_until_then_the_old_one(tmp_path):
    kept = RecordedConversation(Conversation(), tmp_path)
    write_turn(kept, "why?", "so")
    path = kept.path
    kept.regenerate(None)
    place = kept.begin_reply(continue_last=False)
    kept.event(place.id, Prefill("target", 3, 0, 0.1))
    assert read_record(path).conversation.head.content == "so"
    assert kept.add_reply(place, [], ReplySettings(), "A ⟵ B") is None
    assert kept.conversation.head.content == "so"
    kept.regenerate(None)
    place = kept.begin_reply(continue_last=False)
    kept.event(place.id, round_of("half|p"))
    kept.close()
    assert read_record(path).conversation.head.content == "half"
