"""A record is never lost: whatever happens to the file, what is whole is read, and what is not is said."""

import dataclasses
import datetime as dt
import errno
import json
import os
import stat
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specchat.chat import record_lines
from specchat.chat.conversation import Conversation
from specchat.chat.record import (
    Header,
    ModelFile,
    PairFiles,
    RecordWriter,
    list_records,
    read_record,
    record_path,
)
from specchat.core.sampling import SamplingParams
from specchat.core.settings import ReplySettings
from specchat.errors import RecordError
from tests.chat.replies import finished, plain_reply, speculative_reply

PAIR = PairFiles("big ⟵ small", ModelFile("Big", "big.gguf", "ab" * 32), ModelFile("Small", "small.gguf"))
SETTINGS = ReplySettings(SamplingParams(temperature=0.0, logit_bias={5: -1.5}), mode="fast", num_draft_tokens=4, seed=7)
HEADER = Header(PAIR, SETTINGS, 7, "Be brief.", "2026-11-30T05:20:11+00:00", "llama.cpp b1", "0.1.0")
SOUND_ROUND = (
    '{"event": "round", "index": 0, "at": 0.25, "rule": "plain", "num_draft_tokens": 0, "drafted": [], "committed": '
    '[{"id": 3, "bytes": "61", "text": "a", "fate": "plain", "p": 1}], "seconds": {"draft": 0, "verify": 1, "sample": '
    '0, "other": 0}, "why": null, "reply": 9}'
)
NASTY = '\x1b]52;c;x\x07 \u202e歪\r\n\x00 \u2028 \ud83d 👩‍👧 " \\ </script> ]]>'


class Chat:
    """A conversation and its record, changed together as the screen does."""

    def __init__(self, path, header=HEADER):
        self.conversation = Conversation(header.system)
        self.writer = RecordWriter(path, header)
        self.settings = header.settings
        self.pair = header.pair.name if header.pair else ""

    def ask(self, text, events=None, *, continue_last=False):
        if not continue_last:
            self.writer.message(self.conversation.add_user(text))
        return self.answer(events, continue_last=continue_last)

    def answer(self, events=None, *, continue_last=False):
        place = self.conversation.begin_reply(continue_last=continue_last)
        self.writer.begin_reply(place)
        for event in events or plain_reply("yes"):
            self.writer.event(place.id, event)
        reply = self.conversation.add_reply(place, events or plain_reply("yes"), self.settings, self.pair)
        if reply is not None:
            self.writer.message(reply)
        self.writer.end_turn()
        return reply

    def change(self, settings):
        self.settings = settings
        self.writer.settings(settings)


def same(record, conversation):
    assert record.conversation.all_messages == conversation.all_messages
    assert record.conversation.messages == conversation.messages
    assert record.conversation.system == conversation.system


@pytest.fixture
def path(tmp_path):
    return tmp_path / "records" / "chat.jsonl"


@pytest.fixture
def chat(path):
    chat = Chat(path)
    yield chat
    chat.writer.close()


def test_everything_comes_back(chat, path):
    chat.ask("one?", speculative_reply())
    chat.change(ReplySettings(mode="exact"))
    chat.ask("two?", plain_reply("1", " 2", reason="interrupted"))
    chat.ask("", plain_reply(" 3"), continue_last=True)
    record = read_record(path)
    same(record, chat.conversation)
    assert record.header == HEADER
    assert record.settings == ReplySettings(mode="exact")
    assert record.pair == PAIR
    assert record.notices == ()
    assert [message.settings for message in record.conversation.messages] == [None, SETTINGS, None, chat.settings]


def test_branches_deletions_and_changes_come_back(chat, path):
    chat.ask("one?")
    chat.writer.move_to(chat.conversation.regenerate().id)
    place = chat.conversation.begin_reply()
    chat.writer.begin_reply(place)
    chat.writer.message(chat.conversation.add_reply(place, plain_reply("no")))
    chat.writer.message(chat.conversation.edit(1, "uno?"))
    chat.writer.move_to(chat.conversation.switch(1).id)
    chat.ask("two?")
    chat.writer.delete(chat.conversation.delete_last_exchange().id)
    chat.conversation.system = "Be long."
    chat.writer.system("Be long.")
    other = dataclasses.replace(PAIR, name="another")
    chat.writer.pair(other)
    record = read_record(path)
    # the middle reply was written without events, so that it carries no settings in either
    same_texts = [(m.id, m.parent, m.content) for m in record.conversation.all_messages]
    assert same_texts == [(m.id, m.parent, m.content) for m in chat.conversation.all_messages]
    assert [m.id for m in record.conversation.messages] == [m.id for m in chat.conversation.messages]
    assert record.conversation.system == "Be long."
    assert record.pair == other
    chat.writer.clear()
    assert read_record(path).conversation.messages == ()


def test_text_of_every_kind_comes_back_and_the_file_is_safe_to_look_at(chat, path):
    chat.ask(NASTY, plain_reply(NASTY))
    chat.ask("and", plain_reply(NASTY.replace("\ud83d", "")))
    same(read_record(path), chat.conversation)
    written = path.read_text("utf-8")
    assert "歪" in written
    assert not set(written) & set("\x1b\x07\u202e\x00\u2028\r\ud83d")


def test_the_lines_are_the_events_of_json_output(chat, path):
    chat.ask("one?", speculative_reply())
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    kinds = ["header", "message", "reply", "prefill", "prefill", "plain_speed", "round", "round", "round", "finished"]
    assert [line["event"] for line in lines] == [*kinds, "message"]
    assert lines[0]["format"] == 1
    assert lines[1] == {"event": "message", "role": "user", "id": 1, "parent": None, "text": "one?"}
    assert {line["reply"] for line in lines[2:-1]} == {2}
    assert lines[6]["drafted"][1]["fate"] == "rejected"
    assert lines[6]["details"][0]["q"] == [[2, "<b>", 0.9]]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other permissions")
def test_only_the_owner_can_read_it(chat, path):
    chat.ask("one?")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_chat_in_which_nothing_was_said_leaves_no_file(path):
    with RecordWriter(path, HEADER):
        pass
    assert not path.exists()


def test_a_turn_is_on_the_disk_when_it_ends(chat, path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append(file))
    chat.ask("one?")
    assert synced[-1] is chat.writer._file
    assert len(synced) <= 2  # the folder once, and the turn


def test_each_line_is_there_at_once(chat, path):
    chat.writer.message(chat.conversation.add_user("one?"))
    assert read_record(path).conversation.messages[0].content == "one?"


# --- resuming -------------------------------------------------------------------------------------------------------


def resumed(path):
    """The chat that a record holds, to go on with."""
    record = read_record(path)
    chat = Chat.__new__(Chat)
    chat.conversation, chat.settings, chat.pair = record.conversation, record.settings, PAIR.name
    chat.writer = RecordWriter.resume(path)
    return chat


def gone_on_with(path):
    """A chat that was read, and asked one more question."""
    again = resumed(path)
    again.ask("two?")
    again.writer.close()
    return again


def test_a_resumed_chat_goes_on_in_the_same_file(chat, path):
    chat.ask("one?")
    chat.writer.close()
    again = gone_on_with(path)
    same(read_record(path), again.conversation)
    assert len(again.conversation.messages) == 4


@pytest.mark.parametrize("tail", [b'{"event": "mess', b"\x00" * 100, b"\xff\xfe", b'{"event": "message"}'])
def test_after_a_torn_line_a_new_one_begins(chat, path, tail):
    chat.ask("one?")
    chat.writer.close()
    path.write_bytes(path.read_bytes() + tail)
    again = gone_on_with(path)
    record = read_record(path)
    same(record, again.conversation)
    assert len(record.notices) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no such lock there")
def test_two_programs_do_not_write_to_one_record(chat, path):
    chat.ask("one?")
    with pytest.raises(RecordError, match="another specchat"):
        RecordWriter.resume(path)
    read_record(path)


def test_a_record_that_is_gone_cannot_be_resumed(path):
    with pytest.raises(RecordError, match="No such file") as caught:
        RecordWriter.resume(path)
    assert caught.value.next_step


@pytest.mark.skipif(sys.platform == "win32", reason="no such lock there")
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(path, monkeypatch, number):
    import fcntl

    def no_lock(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", no_lock)
    chat = Chat(path)
    chat.ask("one?")
    chat.writer.close()
    again = gone_on_with(path)
    same(read_record(path), again.conversation)


def test_a_file_that_was_made_and_not_opened_is_gone_on_with(path, monkeypatch):
    chat = Chat(path)
    with monkeypatch.context() as broken:
        broken.setattr("specchat.chat.record._lock", lambda _: os.close(-1))
        with pytest.raises(RecordError, match="cannot be written"):
            chat.writer.message(chat.conversation.add_user("one?"))
    chat.writer.message(chat.conversation.add_user("two?"))
    chat.writer.close()
    same(read_record(path), chat.conversation)


def test_a_reply_that_was_cut_is_a_message_like_others_from_then_on(chat, path):
    """Its last line is missing for ever; what is done with it after it was read is done again on each reading."""
    chat.writer.message(chat.conversation.add_user("one?"))
    place = chat.conversation.begin_reply()
    chat.writer.begin_reply(place)
    for event in plain_reply("yes")[:2]:
        chat.writer.event(place.id, event)
    chat.writer.close()
    again = resumed(path)
    cut = again.conversation.head.id
    again.writer.move_to(again.conversation.regenerate().id)
    again.answer()
    again.conversation.move_to(cut)
    again.writer.move_to(cut)
    texts = [(m.id, m.parent, m.content) for m in again.conversation.all_messages]
    read = read_record(path)
    assert [(m.id, m.parent, m.content) for m in read.conversation.all_messages] == texts
    assert (read.conversation.head.id, read.notices) == (cut, ())
    again.conversation.delete(cut)
    again.writer.delete(cut)
    again.writer.close()
    same(read_record(path), again.conversation)


# --- a disk that is full --------------------------------------------------------------------------------------------


class FullDisk:
    """Takes so many bytes and then no more."""

    def __init__(self, file, room):
        self.file, self.room = file, room

    def write(self, data):
        if self.room == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = self.file.write(bytes(data[: self.room]))
        self.room -= taken
        return taken

    def fileno(self):
        return self.file.fileno()

    def close(self):
        self.file.close()


@pytest.mark.parametrize("room", [0, 1, 30, 200, 700])
def test_what_did_not_fit_is_written_when_there_is_room_again(chat, path, room):
    chat.ask("one?")
    real, full = chat.writer._file, FullDisk(chat.writer._file, room)
    chat.writer._file = full
    with pytest.raises(RecordError, match="No space left") as caught:
        chat.ask("two?")
    assert "goes on" in caught.value.next_step
    read_record(path)
    chat.writer._file = real
    chat.writer.message(chat.conversation.edit(3, "zwei?"))
    record = read_record(path)
    assert record.conversation.messages == chat.conversation.messages
    assert all(message in record.conversation.all_messages for message in chat.conversation.all_messages)
    assert not any("damaged" in notice for notice in record.notices)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    writer = RecordWriter(tmp_path / "file" / "chat.jsonl", HEADER)
    with pytest.raises(RecordError, match="cannot be written"):
        writer.message(Conversation().add_user("one?"))
    writer.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux only")  # noqa: PTH110
def test_a_device_that_is_always_full(tmp_path):
    link = tmp_path / "chat.jsonl"
    link.symlink_to("/dev/full")
    writer = RecordWriter.resume(link)
    with pytest.raises(RecordError, match="No space left"):
        writer.message(Conversation().add_user("one?"))
    with pytest.raises(RecordError, match="No space left"):
        writer.close()


def test_a_file_that_exists_is_not_overwritten(chat, path):
    chat.ask("one?")
    with pytest.raises(RecordError, match="exists"):
        RecordWriter(path, HEADER).message(Conversation().add_user("two?"))
    assert len(read_record(path).conversation.messages) == 2


# --- damage ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_record(tmp_path_factory):
    """The bytes of a record of three messages, and the chat."""
    path = tmp_path_factory.mktemp("records") / "small.jsonl"
    chat = Chat(path, Header())
    chat.ask("歪?", plain_reply("2", reason="length"))
    chat.writer.message(chat.conversation.add_user("two?"))
    chat.writer.close()
    return path.read_bytes(), chat.conversation


def test_cut_at_every_byte(small_record, tmp_path):
    data, conversation = small_record
    path = tmp_path / "cut.jsonl"
    header, whole_lines = data.index(b"\n"), data.splitlines()
    for length in range(header):
        path.write_bytes(data[:length])
        with pytest.raises(RecordError):
            read_record(path)
    for length in range(header, len(data) + 1):
        path.write_bytes(data[:length])
        record = read_record(path)
        lines = data[:length].split(b"\n")
        kinds = [json.loads(line)["event"] for line in lines if line in whole_lines]
        whole = kinds.count("message")
        if whole == 1 and "round" in kinds:  # the reply's last line is missing, its text is not
            assert [(m.id, m.content) for m in record.conversation.messages] == [(1, "歪?"), (2, "2")]
        else:
            assert record.conversation.messages == conversation.messages[:whole]
        torn = lines[-1] not in (b"", *whole_lines)
        assert any("cut off and is lost" in notice for notice in record.notices) == torn
    assert record.notices == ()


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4))
def test_flipped_bytes(small_record, tmp_path, flips):
    data = bytearray(small_record[0])
    for place, value in flips:
        data[place % len(data)] = value
    path = tmp_path / "flipped.jsonl"
    path.write_bytes(data)
    try:
        record = read_record(path)
    except RecordError as problem:
        assert problem.next_step  # noqa: PT017 - both ways are right
        return
    messages = record.conversation.messages
    assert messages == record.conversation.messages
    for message in record.conversation.all_messages:
        record.conversation.events(message.id)
    list_records(tmp_path)


def test_a_damaged_line_in_the_middle_is_skipped_and_said(chat, path):
    chat.ask("one?")
    chat.ask("two?")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[3] = b"\x00" * 20 + b"\n"
    path.write_bytes(b"".join(lines))
    record = read_record(path)
    assert record.notices == ("Line 4 is damaged.",)
    assert [m.content for m in record.conversation.messages] == ["one?", "yes", "two?", "yes"]


@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_a_damaged_message_does_not_take_the_rest_with_it(chat, path, which):
    for question in ("one?", "two?"):
        chat.ask(question)
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = [i for i, line in enumerate(lines) if b'"event":"message"' in line][which]
    lines[damaged] = lines[damaged][:30] + b"\n"
    path.write_bytes(b"".join(lines))
    record = read_record(path)
    texts = [m.content for m in record.conversation.messages]
    expected = ["one?", "yes", "two?", "yes"]
    if which in (0, 2):
        expected[which] = "[this message is damaged]"
    assert texts == expected  # a reply is there from its events
    assert record.notices[0] == f"Line {damaged + 1} is damaged."


def test_without_its_header_a_record_still_has_its_messages(chat, path):
    chat.ask("one?")
    path.write_bytes(path.read_bytes().split(b"\n", 1)[1])
    record = read_record(path)
    assert [m.content for m in record.conversation.messages] == ["one?", "yes"]
    assert "first line" in record.notices[0]


def test_a_reply_that_was_being_written_when_the_program_ended(chat, path):
    chat.writer.message(chat.conversation.add_user("one?"))
    place = chat.conversation.begin_reply()
    chat.writer.begin_reply(place)
    for event in speculative_reply()[:4]:
        chat.writer.event(place.id, event)
    record = read_record(path)
    reply = record.conversation.head
    assert (reply.content, reply.is_cut, reply.settings) == ("The waves", True, SETTINGS)
    assert "cut off" in record.notices[0]


def test_a_reply_without_a_token_is_no_message(chat, path):
    chat.ask("one?", [finished("interrupted")])
    record = read_record(path)
    assert [m.content for m in record.conversation.messages] == ["one?"]
    assert record.notices == ()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b"\x00" * 5000,
        b"GGUF\x03\x00\x00\x00" * 1000,
        b"\xff\xfe\xfd",
        b"[1, 2]\n",
        b'{"event": 5}\n',
        b'{"event": "unknown"}\n' * 3,
        b"[" * 100_000,
        b'{"event": "round", "x": ' + b"[" * 100_000,
        b"not json\n" * 100_000,
    ],
    ids=range(11),
)
def test_what_is_no_record_is_an_error(path, data):
    path.parent.mkdir()
    path.write_bytes(data)
    with pytest.raises(RecordError, match="holds no chat") as caught:
        read_record(path)
    assert caught.value.next_step
    assert list_records(path.parent) == []


def test_a_record_of_a_newer_specchat_says_so(chat, path):
    chat.ask("one?")
    path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":2,"pair":5'))
    with pytest.raises(RecordError, match="newer specchat"):
        read_record(path)


def test_keys_that_a_newer_specchat_adds_are_ignored(chat, path):
    chat.ask("one?", speculative_reply())
    path.write_bytes(path.read_bytes().replace(b'{"event":', b'{"new": [1], "event":'))
    same(read_record(path), chat.conversation)


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "message", "role": "user", "id": "x", "parent": null, "text": "a"}',
        '{"event": "message", "role": "robot", "id": 9, "parent": null, "text": "a"}',
        '{"event": "message", "role": "user", "id": 1, "parent": null, "text": "twice"}',
        '{"event": "message", "role": "user", "id": 9, "parent": 9, "text": "a"}',
        '{"event": "message", "role": "user", "id": 9, "parent": null}',
        '{"event": "head", "id": 77}',
        '{"event": "head"}',
        '{"event": "delete", "id": null}',
        '{"event": "settings", "mode": "slow"}',
        '{"event": "pair"}',
        '{"event": "system", "text": 5}',
        '{"event": "header"}',
        '{"event": "header", "format": 1}',
        '{"event": "reply", "reply": 9, "parent": 2}\n' + SOUND_ROUND,
        '{"event": "finished", "reply": 2}',
        '{"event": "prefill", "model": "target", "tokens": "x", "reused": 0, "seconds": 1, "reply": 2}',
        '{"event": "prefill", "model": "target", "tokens": 5, "reused": 0, "seconds": 1}',
        '{"event": "no such thing"}',
        SOUND_ROUND.replace('"id": 3', '"id": "3"'),
        SOUND_ROUND.replace('"why": null', '"why": 5'),
        SOUND_ROUND.replace("0.25", "null"),
    ],
)
def test_lines_that_make_no_sense_change_nothing(chat, path, line):
    chat.ask("one?")
    chat.writer.close()
    path.write_bytes(path.read_bytes() + line.encode() + b"\n")
    record = read_record(path)
    same(record, chat.conversation)
    assert len(record.notices) == 1


def test_the_round_that_those_lines_are_made_of_is_sound():
    reply, event = record_lines.decode_event(record_lines.decode(SOUND_ROUND.encode()))
    assert (reply, event.committed[0].text) == (9, "a")


def test_many_notices_are_summed_up(chat, path):
    chat.ask("one?")
    chat.writer.close()
    path.write_bytes(path.read_bytes() + b"nonsense\n" * 1000)
    notices = read_record(path).notices
    assert len(notices) == 6
    assert notices[-1] == "And 995 more."


def test_every_kind_of_settings_comes_back():
    line = record_lines.encode_record("settings", SETTINGS)
    assert record_lines.decode_record(record_lines.decode(line), ReplySettings) == SETTINGS


# --- the list of records --------------------------------------------------------------------------------------------


def test_records_are_listed_the_last_used_first(tmp_path):
    for number, question in enumerate(["one?", "two\x1b[2J?\nmore", "x" * 100]):
        chat = Chat(tmp_path / f"{number}.jsonl")
        for _ in range(number + 1):
            chat.ask(question)
        chat.writer.close()
        os.utime(chat.writer.path, (1000 + number, 1000 + number))
    (tmp_path / "damaged.jsonl").write_bytes(b"\x00\xff")
    (tmp_path / "other.txt").write_text("x")
    records = list_records(tmp_path)
    assert [record.title for record in records] == ["x" * 59 + "…", "two␛[2J? more", "one?"]
    assert [record.turns for record in records] == [3, 2, 1]
    assert [record.modified for record in records] == [1002, 1001, 1000]
    assert {record.pair for record in records} == {PAIR.name}
    assert {record.created for record in records} == {HEADER.created}
    assert list_records(tmp_path, limit=1) == records[:1]
    assert list_records(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    ("known", "unknown", "title", "pair"),
    [
        ('"mode":"fast"', '"mode":"newer"', "one?", ""),
        ('"text":"one?"', '"text":["one?"]', "two?", PAIR.name),
    ],
)
def test_a_chat_of_which_not_all_is_understood_is_listed(chat, path, known, unknown, title, pair):
    chat.ask("one?")
    chat.ask("two?")
    written = path.read_text("utf-8")
    assert known in written
    path.write_text(written.replace(known, unknown), "utf-8")
    [summary] = list_records(path.parent)
    assert (summary.title, summary.pair, summary.turns) == (title, pair, 2)
    assert read_record(path).conversation.messages


def test_turns_are_counted_over_the_edges_of_chunks(tmp_path, monkeypatch):
    from specchat.chat import record_reader

    chat = Chat(tmp_path / "a.jsonl")
    for _ in range(5):
        chat.ask("again?")
    chat.writer.close()
    for chunk in range(1, 60):
        monkeypatch.setattr(record_reader, "_CHUNK", chunk)
        assert list_records(tmp_path)[0].turns == 5


def test_new_records_have_names_of_their_own(tmp_path):
    when = dt.datetime(2026, 11, 30, 5, 20, 11, tzinfo=dt.UTC)
    first = record_path(tmp_path, when)
    assert first.name == "2026-11-30_05-20-11.jsonl"
    first.touch()
    assert record_path(tmp_path, when).name == "2026-11-30_05-20-11_2.jsonl"
