"""Reads a record back, also one that is damaged: what can be read is read, and what was lost is said."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specchat.chat import record_lines
from specchat.chat.conversation import Conversation, Message, ReplyPlace, reply_message, title_of
from specchat.chat.packed import packed
from specchat.chat.record_lines import (
    DeleteLine,
    FormatLine,
    Header,
    HeadLine,
    MessageLine,
    PairFiles,
    ReplyLine,
    SystemLine,
)
from specchat.core.events import Event
from specchat.core.settings import ReplySettings
from specchat.errors import RecordError

DAMAGED = "[this message is damaged]"
_CHOOSE = "Choose another file; specchat keeps its records in the folder that `specchat doctor` names."
_MOST_NOTICES = 5
_NOT_UNDERSTOOD = 100
_LONGEST_LINE = 2**26
_TITLE_BYTES = 2**18
_CHUNK = 2**20
_QUESTION = b'{"event":"message","role":"user"'
_EVENTS = {"prefill", "plain_speed", "round", "finished"}


@dataclass(frozen=True, slots=True)
class Record:
    """A chat as it was when it was last written.

    ``settings`` and ``pair`` are the last ones. ``notices`` are sentences about what was lost.
    """

    path: Path
    header: Header
    conversation: Conversation
    settings: ReplySettings
    pair: PairFiles | None
    notices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecordSummary:
    """One line of a list of records. ``title`` is safe to show; ``modified`` is a time stamp in seconds."""

    path: Path
    title: str
    modified: float
    created: str
    pair: str
    turns: int


def read_record(path: Path) -> Record:
    """Reads a record.

    A last line that was cut off is dropped, damaged lines are skipped, each with a notice; a reply that was being
    written when the program ended is there as far as it came.

    Raises:
        RecordError: the file cannot be read, is no record, or was written by a newer specchat.
    """
    reader = _Reader()
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
                reader.read(number, line)
                if number >= _NOT_UNDERSTOOD and not reader.understood:
                    break
    except OSError as problem:
        raise RecordError(f"The record {path} cannot be read: {problem.strerror or problem}.", _CHOOSE) from problem
    if not reader.understood:
        raise RecordError(f"{path} holds no chat.", _CHOOSE)
    return reader.finish(path)


def list_records(folder: Path, limit: int | None = None) -> list[RecordSummary]:
    """The records of a folder, the last used first, ``limit`` of them at most. What cannot be read is left out."""
    found = [(modified, path) for path in folder.glob("*.jsonl") if (modified := _modified(path)) is not None]
    summaries: list[RecordSummary] = []
    for modified, path in sorted(found, reverse=True):
        if limit is not None and len(summaries) >= limit:
            break
        if summary := _summary(path, modified):
            summaries.append(summary)
    return summaries


class _Reader:
    """Folds the lines of a record."""

    def __init__(self) -> None:
        self.understood = False
        self._header: Header | None = None
        self._conversation = Conversation()
        self._settings = ReplySettings()
        self._pair: PairFiles | None = None
        self._places: dict[int, ReplyPlace] = {}
        self._events: dict[int, list[Event]] = {}
        self._written_with: dict[int, tuple[ReplySettings, str]] = {}
        self._notices: list[str] = []
        self._unsaid = 0

    def read(self, number: int, line: bytes) -> None:
        """Takes one line in. Only a record of a newer format is an error."""
        if not line.strip():
            return
        try:
            values = record_lines.decode(line)
        except ValueError:
            torn = not line.endswith(b"\n")
            self._notice("The last line was cut off and is lost." if torn else f"Line {number} is damaged.")
            return
        try:
            self._take(values)
            self.understood = True
        except ValueError as problem:
            self._notice(f"Line {number} was skipped: {problem}.")

    def finish(self, path: Path) -> Record:
        """The record, after the last line."""
        for reply in list(self._places):
            try:
                if self._end_cut_reply(reply):
                    self._notice("The last reply was cut off when the program ended; what came is kept.")
            except ValueError as problem:
                self._notice(f"A reply that was cut off was skipped: {problem}.")
        if self._header is None:
            self._notice("The first line, with the pair and the settings, is missing.")
        more = (f"And {self._unsaid} more.",) if self._unsaid else ()
        header, notices = self._header or Header(), (*self._notices, *more)
        return Record(path, header, self._conversation, self._settings, self._pair, notices)

    def _notice(self, sentence: str) -> None:
        if len(self._notices) < _MOST_NOTICES:
            self._notices.append(sentence)
        else:
            self._unsaid += 1

    def _take(self, values: dict[str, Any]) -> None:
        event = values["event"]
        if event in _EVENTS:
            reply, happened = record_lines.decode_event(values)
            self._events.setdefault(reply, []).append(packed(happened))
        elif event == "message":
            self._take_message(record_lines.decode_record(values, MessageLine))
        elif event == "reply":
            self._take_place(record_lines.decode_record(values, ReplyLine))
        elif event == "header":
            self._take_header(values)
        elif event == "settings":
            self._settings = record_lines.decode_record(values, ReplySettings)
        elif event == "pair":
            self._pair = record_lines.decode_record(values, PairFiles)
        elif event == "system":
            self._conversation.system = record_lines.decode_record(values, SystemLine).text
        elif event in ("head", "delete", "clear"):
            self._take_move(event, values)
        else:
            raise ValueError(f"{event!r} is not known")

    def _take_header(self, values: dict[str, Any]) -> None:
        form = record_lines.decode_record(values, FormatLine).format
        if form > record_lines.FORMAT:
            raise RecordError(
                f"The record was written by a newer specchat (format {form}).", "Update specchat to read it."
            )
        if self._header is not None:
            raise ValueError("a second header")
        self._header = record_lines.decode_record(values, Header)
        self._settings, self._pair = self._header.settings, self._header.pair
        self._conversation.system = self._header.system

    def _take_place(self, line: ReplyLine) -> None:
        self._places[line.reply] = ReplyPlace(line.reply, line.parent, line.continues)
        self._written_with[line.reply] = (self._settings, self._pair.name if self._pair else "")

    def _take_message(self, line: MessageLine) -> None:
        settings, pair = self._written_with.get(line.id, (None, ""))
        events = tuple(self._events.pop(line.id, ()))
        self._places.pop(line.id, None)
        parent = self._found_parent(line)
        self._conversation.insert(
            Message(line.id, parent, line.role, line.text, line.token_ids, events, settings, pair, line.continues)
        )

    def _take_move(self, event: str, values: dict[str, Any]) -> None:
        if event == "clear":
            self._conversation.clear()
        elif event == "delete":
            doomed = record_lines.decode_record(values, DeleteLine).id
            self._end_if_cut(doomed)
            self._conversation.delete(doomed)
        else:
            head = record_lines.decode_record(values, HeadLine).id
            self._end_if_cut(head)
            self._conversation.move_to(head)

    def _end_if_cut(self, message_id: int | None) -> None:
        """Adds a reply that was cut, which whoever read the record and went on with it saw as a message."""
        if message_id in self._places:
            self._end_cut_reply(message_id)

    def _end_cut_reply(self, reply: int) -> bool:
        """Adds a reply of which the last line is missing, as far as its events tell. Whether there was one."""
        place, events = self._places.pop(reply), self._events.pop(reply, [])
        settings, pair = self._written_with[reply]
        known = self._conversation.get
        message = reply_message(place, events, settings, pair, known(place.continues))
        if message is None or known(message.id) or not known(place.parent):
            return False
        head = self._conversation.head
        self._conversation.insert(message)
        if head is not None and head.id not in (place.parent, place.continues):  # the chat had gone on elsewhere
            self._conversation.move_to(head.id)
        return True

    def _found_parent(self, line: MessageLine) -> int | None:
        """The message's parent; where its line was damaged, something in its place, so that what follows is kept."""
        if line.parent is None or self._conversation.get(line.parent) or line.parent >= line.id:
            return line.parent
        if line.parent in self._places and self._end_cut_reply(line.parent):
            return line.parent
        head = self._conversation.head
        before = head.id if head is not None and head.id < line.parent else None
        if line.role == "user":
            return before
        return self._conversation.insert(Message(line.parent, before, "user", DAMAGED)).id


def _modified(path: Path) -> float | None:
    try:
        return path.stat().st_mtime
    except OSError:
        return None


def _summary(path: Path, modified: float) -> RecordSummary | None:
    """Reads as little as it can: the beginning for the title, and how often a question begins a line."""
    header, title, turns = Header(), "", 0
    try:
        with path.open("rb") as file:
            for values in _first_lines(file.read(_TITLE_BYTES)):
                with contextlib.suppress(ValueError):  # what another version wrote: the rest is known all the same
                    if values["event"] == "header":
                        header = record_lines.decode_record(values, Header)
                    elif values["event"] == "message" and values.get("role") == "user":
                        title = title_of(record_lines.decode_record(values, MessageLine).text)
                        break
            file.seek(0)
            rest = b"\n"
            while chunk := file.read(_CHUNK):
                rest += chunk
                turns += rest.count(b"\n" + _QUESTION)
                rest = rest[-len(_QUESTION) :]
    except OSError:
        return None
    if not turns:
        return None
    return RecordSummary(path, title, modified, header.created, header.pair.name if header.pair else "", turns)


def _first_lines(beginning: bytes) -> Iterator[dict[str, Any]]:
    for line in beginning.splitlines():
        try:
            yield record_lines.decode(line)
        except ValueError:
            continue
