"""A chat as a tree of messages: editing and regenerating begin a branch and lose nothing.

A conversation is plain data that its owner changes through the methods here. It knows no models and no files; what
the record stores is enough to build it again (`Conversation.insert`, `Conversation.move_to`, `Conversation.delete`).
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeAlias

from specchat.core.events import CommittedToken, Event, Finished, Round
from specchat.core.safe_text import safe_text
from specchat.core.settings import ChatMessage, ReplySettings

Author: TypeAlias = Literal["user", "assistant"]
_TITLE_LENGTH = 60


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the tree.

    ``token_ids`` are a reply's own ids, without its end token; None where they would not give ``content`` (an edited
    reply, a stop string inside a token). ``events`` is what happened while this message was written. A reply that
    goes on from a cut one names it in ``continues``: its content and ids are both parts, its events the second
    part's. ``settings`` and ``pair`` are what a reply was written with.
    """

    id: int
    parent: int | None
    role: Author
    content: str
    token_ids: tuple[int, ...] | None = None
    events: tuple[Event, ...] = ()
    settings: ReplySettings | None = None
    pair: str = ""
    continues: int | None = None

    @property
    def finished(self) -> Finished | None:
        """How the reply ended, and its figures."""
        return next((event for event in reversed(self.events) if isinstance(event, Finished)), None)

    @property
    def is_cut(self) -> bool:
        """Whether this is a reply that could go on: stopped, or edited. One that ended by itself is complete."""
        complete = self.finished is not None and self.finished.reason in ("end", "stop")
        return self.role == "assistant" and not complete


@dataclass(frozen=True, slots=True)
class ReplyPlace:
    """Where a reply that is being written will stand: its id is taken before its text is known."""

    id: int
    parent: int | None
    continues: int | None = None


class Conversation:
    """Messages from their roots to their leaves, and the branch that is being looked at.

    ``head`` is the last message of that branch, None in an empty chat. ``system`` is the system message, empty
    where there is none. Every method raises `ValueError` for what makes no sense (an unknown id, regenerating an
    empty chat, …) and then changes nothing.
    """

    def __init__(self, system: str = "") -> None:
        self.system = system
        self._messages: dict[int, Message] = {}
        self._head: int | None = None
        self._next_id = 1

    # --- looking --------------------------------------------------------------------------------------------------

    @property
    def head(self) -> Message | None:
        """The last message of the current branch."""
        return self.get(self._head)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The current branch, first message first."""
        branch: list[Message] = []
        message = self.head
        while message is not None:
            branch.append(message)
            message = self.get(message.parent)
        return tuple(reversed(branch))

    @property
    def all_messages(self) -> tuple[Message, ...]:
        """Every message of every branch, in the order of their ids."""
        return tuple(self._messages[each] for each in sorted(self._messages))

    def get(self, message_id: int | None) -> Message | None:
        """The message with that id, if there is one."""
        return None if message_id is None else self._messages.get(message_id)

    def message(self, message_id: int) -> Message:
        """The message with that id, which must be there."""
        message = self.get(message_id)
        if message is None:
            raise ValueError(f"there is no message {message_id}")
        return message

    def siblings(self, message_id: int) -> tuple[Message, ...]:
        """The versions of a message, itself among them, oldest first: what editing or regenerating made of it.

        A cut reply and the one that continues it are the same version: only the longer one is listed.
        """
        message = self.message(message_id)
        continued = {other.continues for other in self._messages.values()} - {message_id}
        return tuple(
            other
            for other in self.all_messages
            if other.parent == message.parent and other.role == message.role and other.id not in continued
        )

    def version(self, message_id: int) -> tuple[int, int]:
        """Which of its versions a message is (1 is the oldest), and how many there are."""
        versions = self.siblings(message_id)
        return versions.index(self.message(message_id)) + 1, len(versions)

    def question(self, message_id: int | None = None) -> Message:
        """The last question of the current branch, or the one that a message answers or is."""
        message = self.head if message_id is None else self.message(message_id)
        while message is not None and message.role != "user":
            message = self.get(message.parent)
        if message is None:
            raise ValueError("nothing has been asked yet")
        return message

    def parts(self, message_id: int) -> tuple[Message, ...]:
        """A reply and the cut ones that it continues, first part first."""
        part: Message | None = self.message(message_id)
        parts: list[Message] = []
        while part is not None:
            parts.append(part)
            part = self.get(part.continues)
        return tuple(reversed(parts))

    def events(self, message_id: int) -> tuple[Event, ...]:
        """Everything that happened while a reply was written, with the parts that it continues."""
        return tuple(event for part in self.parts(message_id) for event in part.events)

    def beginning(self, message_id: int) -> str:
        """Text of a reply that no round of its events wrote: an edited beginning from which it went on."""
        content = self.message(message_id).content
        rounds = [event for event in self.events(message_id) if isinstance(event, Round)]
        written = "".join(token.text for played in rounds for token in played.committed)
        return content[: max(0, content.find(written))] if rounds else content

    def prompt(self) -> tuple[ChatMessage, ...]:
        """What a model is to answer, or to continue: the system message and the current branch."""
        system = (ChatMessage("system", self.system),) if self.system else ()
        return system + tuple(ChatMessage(m.role, m.content, m.token_ids) for m in self.messages)

    # --- writing --------------------------------------------------------------------------------------------------

    def add_user(self, text: str) -> Message:
        """Adds what a person says at the end of the current branch."""
        return self.insert(Message(self._next_id, self._head, "user", text))

    def begin_reply(self, *, continue_last: bool = False) -> ReplyPlace:
        """Takes a place for the reply to the current branch, or for the rest of its last reply, which was cut."""
        head = self.head
        if head is None or (head.role == "assistant") != continue_last:
            raise ValueError("there is nothing to continue" if continue_last else "there is nothing to answer")
        if continue_last and not head.is_cut:
            raise ValueError("the last reply is complete")
        self._next_id += 1
        number = self._next_id - 1
        return ReplyPlace(number, head.parent, head.id) if continue_last else ReplyPlace(number, head.id)

    def add_reply(
        self, place: ReplyPlace, events: Sequence[Event], settings: ReplySettings | None = None, pair: str = ""
    ) -> Message | None:
        """Adds a reply, complete or cut, and goes to it. A reply that was cut before its first token adds nothing."""
        message = reply_message(place, events, settings, pair, self.get(place.continues))
        return None if message is None else self.insert(message)

    def insert(self, message: Message) -> Message:
        """Adds a message as it is and goes to it."""
        if message.id in self._messages:
            raise ValueError(f"there is a message {message.id} already")
        parent = None if message.parent is None else self.message(message.parent)
        if message.role == "assistant" and (parent is None or parent.role != "user"):
            raise ValueError(f"reply {message.id} answers no question")
        if message.id <= max(0, message.parent or 0, message.continues or 0):
            raise ValueError(f"message {message.id} is older than the one it follows")
        self._messages[message.id] = message
        self._head = message.id
        self._next_id = max(self._next_id, message.id + 1)
        return message

    def edit(self, message_id: int, text: str) -> Message:
        """Adds another version of a message, without what followed it, and goes there."""
        old = self.message(message_id)
        return self.insert(Message(self._next_id, old.parent, old.role, text))

    def regenerate(self, message_id: int | None = None) -> Message:
        """Goes back to a question (see `question`), so that it is answered once more; returns it."""
        question = self.question(message_id)
        self._head = question.id
        return question

    def delete_last_exchange(self) -> Message:
        """Deletes the last question of the branch with every answer to it; returns the question."""
        question = self.question()
        self.delete(question.id)
        return question

    def delete(self, message_id: int) -> None:
        """Deletes a message and everything below it. If the branch ends there, it ends at its parent now."""
        parent = self.message(message_id).parent
        doomed = {message_id}
        for message in self.all_messages:  # a child's id is larger than its parent's
            if message.parent in doomed:
                doomed.add(message.id)
        if self._head in doomed:
            self._head = parent
        for each in doomed:
            del self._messages[each]

    def clear(self) -> None:
        """Deletes all messages; the system message stays."""
        self._messages.clear()
        self._head = None

    def switch(self, message_id: int) -> Message:
        """Goes to the branch of a message: to the newest message below it, which is returned."""
        end = self.message(message_id)
        while children := [message for message in self._messages.values() if message.parent == end.id]:
            end = max(children, key=lambda message: message.id)
        self._head = end.id
        return end

    def move_to(self, message_id: int | None) -> None:
        """Makes a message the last of the current branch (None: before the first)."""
        self._head = None if message_id is None else self.message(message_id).id


def title_of(question: str) -> str:
    """A chat's title: what was asked first, on one line, safe to show and not too long."""
    line = safe_text(" ".join(question.split()), keep_newlines=False, keep_tabs=False)
    return line if len(line) <= _TITLE_LENGTH else line[: _TITLE_LENGTH - 1] + "…"


def reply_message(
    place: ReplyPlace,
    events: Sequence[Event],
    settings: ReplySettings | None = None,
    pair: str = "",
    cut: Message | None = None,
) -> Message | None:
    """The message that a reply's events make; ``cut`` is the reply that it continues. None: not one token came."""
    if not any(isinstance(event, Round) and event.committed for event in events):
        return None
    text, token_ids = reply_from_events(events)
    if cut is not None:
        text = cut.content + text
        token_ids = None if token_ids is None or cut.token_ids is None else cut.token_ids + token_ids
    return Message(place.id, place.parent, "assistant", text, token_ids, tuple(events), settings, pair, place.continues)


def reply_from_events(events: Sequence[Event]) -> tuple[str, tuple[int, ...] | None]:
    """A reply's text, and the ids that give exactly this text; None where no ids do.

    The end token is not among the ids, nor are those that a stop string swallowed. A character that was cut in its
    middle is left out, text and ids, so that a continued reply can write it whole.
    """
    tokens = [token for event in events if isinstance(event, Round) for token in event.committed]
    finished = next((event for event in reversed(events) if isinstance(event, Finished)), None)
    text = "".join(token.text for token in tokens)
    if finished is None or finished.reason == "stop":
        return text, _ids_of(tokens, text)
    text += finished.tail
    if finished.reason == "end":
        tokens = tokens[:-1]
    else:
        tokens, text = _without_incomplete_character(tokens, text)
    return text, tuple(token.id for token in tokens)


def _ids_of(tokens: Sequence[CommittedToken], text: str) -> tuple[int, ...] | None:
    """The ids of the first tokens whose bytes are ``text``."""
    wanted = len(text.encode("utf-8", "surrogatepass"))
    for count, length in enumerate(accumulate((len(token.bytes) for token in tokens), initial=0)):
        if length >= wanted:
            same = b"".join(token.bytes for token in tokens[:count]) == text.encode("utf-8", "surrogatepass")
            return tuple(token.id for token in tokens[:count]) if same else None
    return None


def _without_incomplete_character(tokens: list[CommittedToken], text: str) -> tuple[list[CommittedToken], str]:
    whole = b"".join(token.bytes for token in tokens)
    incomplete = len(whole) - codecs.utf_8_decode(whole, "replace", False)[1]
    kept, dropped = len(tokens), b""
    while len(dropped) < incomplete:
        kept -= 1
        dropped = tokens[kept].bytes + dropped
    ending = dropped.decode("utf-8", "replace")
    return (tokens[:kept], text.removesuffix(ending)) if text.endswith(ending) else (tokens, text)
