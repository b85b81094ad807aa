"""One chat and the engine that answers it: what is loaded, what is being written, what waits.

No widgets here. The screen calls the methods, and asks `LiveChat.pump` a few times a second what has happened.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from specchat.chat.conversation import Conversation, Message, ReplyPlace
from specchat.core.events import Event, Finished, Prefill, Round
from specchat.core.settings import ReplySettings
from specchat.engine.interface import (
    Engine,
    Failed,
    Load,
    Loaded,
    LoadProgress,
    Reply,
    ReplyEvent,
    Set,
    Stop,
)


class Phase(StrEnum):
    """What the engine is doing."""

    EMPTY = "empty"
    """Nothing is loaded: not yet, or because it failed."""
    FETCHING = "fetching"
    """Files of the pair are being fetched."""
    LOADING = "loading"
    READY = "ready"
    READING = "reading"
    """A reply has begun; the prompt is being read."""
    WRITING = "writing"


@dataclass(frozen=True, slots=True)
class Progressed:
    """Loading goes on, or the phase has changed."""


@dataclass(frozen=True, slots=True)
class PairLoaded:
    """A pair is ready."""

    loaded: Loaded


@dataclass(frozen=True, slots=True)
class ReplyBegan:
    """The engine was asked for a reply. ``question`` is the message that it answers, if it waited until now."""

    place: ReplyPlace
    question: Message | None = None


@dataclass(frozen=True, slots=True)
class Wrote:
    """An event of the reply that is being written."""

    event: Event


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    """The reply is over; ``message`` is None where not one token came."""

    message: Message | None
    finished: Finished | None


@dataclass(frozen=True, slots=True)
class WentWrong:
    """Something failed, and what to do now. ``died``: nothing is loaded any longer."""

    message: str
    next_step: str
    died: bool


Occurrence: TypeAlias = Progressed | PairLoaded | ReplyBegan | Wrote | ReplyEnded | WentWrong


class LiveChat:
    """A conversation, and the engine that writes its replies.

    Args:
        engine: closed by whoever made it.
        conversation: what has been said so far.
        settings: of the next reply.
        pair: the name of the pair, as replies keep it.
    """

    def __init__(self, engine: Engine, conversation: Conversation, settings: ReplySettings, pair: str = "") -> None:
        self.engine = engine
        self.conversation = conversation
        self.settings = settings
        self.pair = pair
        self.phase = Phase.EMPTY
        self.loaded: Loaded | None = None
        self.load_fractions: dict[str, float] = {}
        self.waiting: list[str] = []
        self.context_used = 0
        self._load: Load | None = None
        self._place: ReplyPlace | None = None
        self._events: list[Event] = []
        self._occurrences: list[Occurrence] = []

    # --- asking for something -----------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """Whether there is something that `stop` would stop."""
        return self.phase in (Phase.FETCHING, Phase.LOADING, Phase.READING, Phase.WRITING)

    @property
    def is_replying(self) -> bool:
        """Whether a reply is being read for or written."""
        return self.phase in (Phase.READING, Phase.WRITING)

    @property
    def can_load_again(self) -> bool:
        """Whether a pair was loaded, or tried, before."""
        return self._load is not None

    def load(self, command: Load) -> None:
        """Loads a pair in place of what is loaded."""
        self._load = command
        self.loaded = None
        self.load_fractions = {}
        self.context_used = 0
        self.phase = Phase.LOADING
        self.engine.send(command)

    def load_again(self, *, exact: bool | None = None) -> None:
        """Loads the same pair once more, perhaps set up for *exact* mode."""
        if self._load is not None:
            self.load(self._load if exact is None else replace(self._load, exact=exact))

    @property
    def is_exact(self) -> bool:
        """Whether what is loaded is set up for *exact* mode."""
        return self._load is not None and self._load.exact

    def ask(self, text: str) -> bool:
        """Sends a message; False where it must wait until a pair is loaded or the present reply is over."""
        if self.phase is not Phase.READY or self.waiting:
            self.waiting.append(text)
            return False
        self.conversation.add_user(text)
        self._begin()
        return True

    def take_back_waiting(self) -> str:
        """The messages that wait, which are then not sent."""
        text = "\n\n".join(self.waiting)
        self.waiting.clear()
        return text

    def answer(self, *, continue_last: bool = False) -> None:
        """Asks for a reply to the conversation as it stands, or for the rest of its last reply.

        Raises:
            ValueError: there is nothing to answer, or to continue.
        """
        self._begin(continue_last=continue_last)

    def stop(self) -> None:
        """Stops what is going on, and keeps what came."""
        if self.phase in (Phase.LOADING, Phase.READING, Phase.WRITING):
            self.engine.send(Stop())

    def change(self, settings: ReplySettings) -> None:
        """Changes the settings, also of the reply that is being written."""
        self.settings = settings
        if self.is_replying:
            self.engine.send(Set(settings))

    def _begin(self, *, continue_last: bool = False, question: Message | None = None) -> None:
        self._place = self.conversation.begin_reply(continue_last=continue_last)
        self._events = []
        self.phase = Phase.READING
        messages = self.conversation.prompt()
        self.engine.send(Reply(self._place.id, messages, self.settings, continue_last=continue_last, details=True))
        self._occurrences.append(ReplyBegan(self._place, question))

    # --- what has happened --------------------------------------------------------------------------------------------

    def pump(self) -> list[Occurrence]:
        """Everything that has happened since the last time."""
        for message in self.engine.drain():
            match message:
                case ReplyEvent():
                    self._take_event(message)
                case LoadProgress(model, fraction):
                    self.load_fractions[model] = fraction
                    self._occurrences.append(Progressed())
                case Loaded():
                    self.loaded = message
                    self.phase = Phase.READY
                    self._occurrences.append(PairLoaded(message))
                case Failed():
                    self._take_failure(message)
        if self.phase is Phase.READY and self.waiting:
            question = self.conversation.add_user(self.waiting.pop(0))
            self._begin(question=question)
        occurrences, self._occurrences = self._occurrences, []
        return occurrences

    def _take_event(self, message: ReplyEvent) -> None:
        if self._place is None or message.reply != self._place.id:
            return
        event = message.event
        self._events.append(event)
        if isinstance(event, Prefill) and event.model == "target":
            self.context_used = event.tokens + event.reused
        elif isinstance(event, Round):
            self.phase = Phase.WRITING
            self.context_used += len(event.committed)
        if isinstance(event, Finished):
            self._end_reply(event)
        else:
            self._occurrences.append(Wrote(event))

    def _end_reply(self, finished: Finished | None) -> None:
        place, self._place = self._place, None
        if place is None:
            return
        message = self.conversation.add_reply(place, self._events, self.settings, self.pair)
        self.phase = Phase.READY
        self._occurrences.append(ReplyEnded(message, finished))

    def _take_failure(self, failure: Failed) -> None:
        if self._place is not None and (failure.died or failure.reply == self._place.id):
            self._end_reply(None)
        if failure.died or self.phase is Phase.LOADING:
            self.phase = Phase.EMPTY
            self.loaded = None
        self._occurrences.append(WentWrong(failure.message, failure.next_step, self.phase is Phase.EMPTY))
