"""The conversation and its record on disk, changed together.

What cannot be written is told once and tried again with the next change; the chat goes on without it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from specchat import __version__
from specchat.chat.conversation import Conversation, Message, ReplyPlace
from specchat.core.events import Event, Round
from specchat.core.settings import ReplySettings
from specchat.errors import RecordError
from specchat.tui.pair_shelf import PairFiles as OpenedPair

if TYPE_CHECKING:
    from specchat.chat.record import Header, PairFiles, RecordWriter


def as_recorded(files: OpenedPair) -> PairFiles:
    """What a record says of a pair: names and hashes, no folders."""
    from specchat.chat.record import ModelFile, PairFiles

    def file(path: str, sha256: str | None) -> ModelFile:
        return ModelFile(Path(path).stem, Path(path).name, sha256)

    draft = None if files.draft is None else file(files.draft, files.draft_sha256)
    return PairFiles(files.name, file(files.target, files.target_sha256), draft)


class RecordedConversation:
    """Every change goes to the conversation first and then into the record.

    Args:
        conversation: what has been said so far; read it as you like, change it through the methods here.
        folder: where records are kept; None keeps none.
        writer: goes on with the record that the conversation was read from.

    Attributes:
        problems: why the record could not be written, not told yet.
    """

    def __init__(
        self, conversation: Conversation, folder: Path | None = None, writer: RecordWriter | None = None
    ) -> None:
        self.conversation = conversation
        self.problems: list[RecordError] = []
        self._folder = folder
        self._writer = writer
        self._header: Header | None = None  # of the record, once it is known
        self._failing = False
        self._due: list[Callable[[RecordWriter], None]] = []
        self._left: Message | None = None  # the head before it went back to a question, until that is answered anew
        self._settings = ReplySettings()
        self._pair: PairFiles | None = None
        self._build = ""

    # --- what replies are written with ----------------------------------------------------------------------------

    def set_settings(self, settings: ReplySettings) -> None:
        """The settings that hold from now on."""
        if settings != self._settings:
            self._settings = settings
            if self._writer is not None:
                self._write(lambda writer: writer.settings(settings))

    def set_pair(self, files: OpenedPair, build: str) -> None:
        """The pair that writes from now on, and the llama.cpp build that runs it."""
        self._build = build
        pair = as_recorded(files)
        if pair != self._pair:
            self._pair = pair
            if self._writer is not None:
                self._write(lambda writer: writer.pair(pair))

    def set_system(self, text: str) -> None:
        """The system message from now on; empty for none."""
        self.conversation.system = text
        if self._writer is not None:
            self._write(lambda writer: writer.system(text))

    # --- messages -------------------------------------------------------------------------------------------------

    def add_user(self, text: str) -> Message:
        """Adds what a person says."""
        return self._added(self.conversation.add_user(text))

    def edit(self, message_id: int, text: str) -> Message:
        """Adds another version of a message."""
        return self._added(self.conversation.edit(message_id, text))

    def regenerate(self, message_id: int | None) -> None:
        """Goes back to a question (see `Conversation.question`), which a reply must answer next.

        The record goes there with the first token. Where none comes, nothing has changed: what stood there is back.
        """
        left = self.conversation.head
        self.conversation.regenerate(message_id)
        self._left = left

    def switch(self, message_id: int) -> None:
        """Goes to the branch of a message."""
        end = self.conversation.switch(message_id)
        self._write(lambda writer: writer.move_to(end.id))

    def delete_last_exchange(self) -> None:
        """Deletes the last question and its answers."""
        question = self.conversation.delete_last_exchange()
        self._write(lambda writer: writer.delete(question.id))

    @property
    def folder(self) -> Path | None:
        """Where records are kept."""
        return self._folder

    @property
    def path(self) -> Path | None:
        """The record that is being written."""
        return None if self._writer is None else self._writer.path

    @property
    def header(self) -> Header:
        """What stands at the head of the chat's record, or would stand there."""
        return self._header or self._new_header()

    def open(self, path: Path) -> tuple[str, ...]:
        """Goes on with the chat of a record; returns what there is to say about it.

        Raises:
            RecordError: it cannot be read, or another specchat writes to it. Nothing has changed then.
        """
        from specchat.chat.record import RecordWriter, read_record

        record = read_record(path)
        writer = RecordWriter.resume(path)
        self.close()
        self.conversation, self._writer, self._header = record.conversation, writer, record.header
        self._due = []  # what replies are written with now is said before the next one, not where a chat is looked at
        if self._settings != record.settings:
            self._due.append(lambda writer: writer.settings(self._settings))
        if self._pair is not None and self._pair != record.pair:
            pair = self._pair
            self._due.append(lambda writer: writer.pair(pair))
        return record.notices

    def begin_new(self) -> None:
        """Begins a new chat, with a record of its own; the old one stays as it is."""
        self.conversation.clear()
        self.close()

    # --- replies --------------------------------------------------------------------------------------------------

    def begin_reply(self, *, continue_last: bool) -> ReplyPlace:
        """Takes a place for a reply."""
        place = self.conversation.begin_reply(continue_last=continue_last)
        due, self._due = self._due, []
        for change in due:
            self._write(change)
        self._write(lambda writer: writer.begin_reply(place))
        return place

    def event(self, reply: int, event: Event) -> None:
        """Something happened in a reply."""
        if self._left is not None and isinstance(event, Round) and event.committed:
            self._left = None
            question = self.conversation.question()
            self._write(lambda writer: writer.move_to(question.id))
        self._write(lambda writer: writer.event(reply, event))

    def add_reply(
        self, place: ReplyPlace, events: Sequence[Event], settings: ReplySettings, pair: str
    ) -> Message | None:
        """The reply is over; what came is kept."""
        left, self._left = self._left, None
        message = self.conversation.add_reply(place, events, settings, pair)
        if message is not None:
            self._write(lambda writer: writer.message(message))
        elif left is not None:
            self.conversation.move_to(left.id)
        self._write(lambda writer: writer.end_turn())
        return message

    def close(self) -> None:
        """Writes what is left."""
        self._due, self._header = [], None
        if self._writer is not None:
            self._write(lambda writer: writer.close())
            self._writer = None

    # --- writing --------------------------------------------------------------------------------------------------

    def _added(self, message: Message) -> Message:
        self._write(lambda writer: writer.message(message))
        return message

    def _write(self, change: Callable[[RecordWriter], None]) -> None:
        if self._writer is None:
            if self._folder is None:
                return
            self._writer = self._new_writer(self._folder)
        try:
            change(self._writer)
            self._failing = False
        except RecordError as error:
            if not self._failing:
                self.problems.append(error)
            self._failing = True

    def _new_writer(self, folder: Path) -> RecordWriter:
        from specchat.chat.record import RecordWriter, record_path

        self._header = self._new_header()
        return RecordWriter(record_path(folder), self._header)

    def _new_header(self) -> Header:
        from specchat.chat.record import Header

        return Header(
            pair=self._pair,
            settings=self._settings,
            seed=self._settings.seed,
            system=self.conversation.system,
            created=dt.datetime.now().astimezone().isoformat(timespec="seconds"),
            build=self._build,
            specchat=__version__,
        )
