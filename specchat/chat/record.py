"""A chat on disk, written as it happens: append-only, one JSON object a line, safe against crashes.

    writer = RecordWriter(record_path(folder), Header(pair, settings))
    writer.message(conversation.add_user("hello"))
    place = conversation.begin_reply()
    writer.begin_reply(place)
    for event in events:
        writer.event(place.id, event)
    if reply := conversation.add_reply(place, events, settings, pair.name):
        writer.message(reply)
    writer.end_turn()

Every change of the conversation has a method here. The file appears with the first message: a chat in which nothing
was said leaves none. The format is described in `specchat.chat.record_lines`.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from specchat.chat import record_lines
from specchat.chat.conversation import Message, ReplyPlace
from specchat.chat.record_lines import FORMAT, Header, ModelFile, PairFiles
from specchat.chat.record_reader import Record, RecordSummary, list_records, read_record
from specchat.core.events import Event
from specchat.core.settings import ReplySettings
from specchat.errors import RecordError

__all__ = [
    "FORMAT",
    "Header",
    "ModelFile",
    "PairFiles",
    "Record",
    "RecordSummary",
    "RecordWriter",
    "list_records",
    "read_record",
    "record_path",
]

_GO_ON = "The chat goes on without being saved; free some room or choose another folder, and it is saved from then on."


def record_path(folder: Path, when: dt.datetime | None = None) -> Path:
    """A free file name for a chat that begins now (or at ``when``)."""
    stem = (when or dt.datetime.now().astimezone()).strftime("%Y-%m-%d_%H-%M-%S")
    path, number = folder / f"{stem}.jsonl", 2
    while path.exists():
        path, number = folder / f"{stem}_{number}.jsonl", number + 1
    return path


class RecordWriter:
    """Appends to a record. What could not be written is kept and written with the next line.

    Every method raises `RecordError` where the disk is full or the file cannot be written; the chat can go on, and the
    next call tries again with everything that is missing.

    Args:
        path: the file; it must not exist yet. Its folder is created.
        header: how the chat begins.
    """

    def __init__(self, path: Path, header: Header) -> None:
        self.path = path
        self._waiting = bytearray(record_lines.encode_record("header", header))
        self._flags = os.O_CREAT | os.O_EXCL
        self._file: io.FileIO | None = None

    @classmethod
    def resume(cls, path: Path) -> Self:
        """A writer that goes on at the end of a record, on a new line if the last one is torn.

        Raises:
            RecordError: it cannot be written, or another specchat writes to it.
        """
        writer = cls(path, Header())
        writer._waiting.clear()
        writer._flags = 0
        try:
            with path.open("rb") as file:
                if file.seek(0, os.SEEK_END) and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n":
                    writer._waiting += b"\n"
        except OSError as problem:
            raise _error(path, problem) from problem
        writer._open()
        return writer

    def message(self, message: Message) -> None:
        """A message was added: a question, an edited one, or a reply that is complete."""
        self._append(record_lines.encode_message(message))

    def begin_reply(self, place: ReplyPlace) -> None:
        """A reply begins: what is known of it survives even if the program ends before it does."""
        self._append(record_lines.encode_place(place))

    def event(self, reply: int, event: Event) -> None:
        """Something happened in the reply with that id."""
        self._append(record_lines.encode_event(reply, event))

    def settings(self, settings: ReplySettings) -> None:
        """The settings were changed."""
        self._append(record_lines.encode_record("settings", settings))

    def pair(self, pair: PairFiles) -> None:
        """Another pair was loaded."""
        self._append(record_lines.encode_record("pair", pair))

    def system(self, text: str) -> None:
        """The system message was changed."""
        self._append(record_lines.encode("system", {"text": text}))

    def move_to(self, message_id: int | None) -> None:
        """The conversation's head is another message now: a branch was chosen, or an answer is to be regenerated."""
        self._append(record_lines.encode("head", {"id": message_id}))

    def delete(self, message_id: int) -> None:
        """A message and everything below it were deleted."""
        self._append(record_lines.encode("delete", {"id": message_id}))

    def clear(self) -> None:
        """All messages were deleted."""
        self._append(record_lines.encode("clear", {}))

    def end_turn(self) -> None:
        """Makes sure that everything is on the disk."""
        self._write()
        if self._file is not None:
            try:
                os.fsync(self._file)
            except OSError as problem:
                raise _error(self.path, problem) from problem

    def close(self) -> None:
        """Writes what is left and closes the file. Safe to call twice."""
        try:
            if self._file is not None:
                self.end_turn()
        finally:
            if self._file is not None:
                self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _append(self, line: bytes) -> None:
        self._waiting += line
        self._write()

    def _write(self) -> None:
        if self._file is None:
            self._open()
        assert self._file is not None
        try:
            while self._waiting:
                del self._waiting[: self._file.write(self._waiting)]
        except OSError as problem:
            raise _error(self.path, problem) from problem

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | self._flags | getattr(os, "O_BINARY", 0), 0o600)
            is_new, self._flags = bool(self._flags), 0  # whatever follows: the next attempt finds a file of ours
            self._file = io.FileIO(descriptor, "a")
            _lock(self._file)
        except OSError as problem:
            if self._file is not None:
                self._file.close()
            self._file = None
            raise _error(self.path, problem) from problem
        if is_new:
            _sync_folder(self.path.parent)


def _lock(file: io.FileIO) -> None:
    """Two programs must not write to one record. Windows and some network file systems have no such lock."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except (ImportError, OSError):
        pass  # there it is up to the person


def _sync_folder(folder: Path) -> None:
    """Makes sure that the file's name is on the disk too, where folders can be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _error(path: Path, problem: OSError) -> RecordError:
    if isinstance(problem, BlockingIOError):
        return RecordError(
            f"The record {path.name} is being written by another specchat.", "Close that one, or begin a new chat."
        )
    return RecordError(f"The record {path} cannot be written: {problem.strerror or problem}.", _GO_ON)
