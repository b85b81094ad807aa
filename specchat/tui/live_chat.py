"""One chat and the engine that answers it: what is loaded, what is being written, what waits.

No widgets here. The screen calls the methods, and asks `LiveChat.pump` a few times a second what has happened.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from specchat.chat.conversation import Conversation, Message, ReplyPlace
from specchat.chat.packed import packed
from specchat.core.events import Event, Finished, Prefill, Round
from specchat.core.settings import ReplySettings
from specchat.engine.interface import (
    DeviceList,
    Devices,
    Engine,
    Failed,
    Inspect,
    Learned,
    Load,
    Loaded,
    LoadProgress,
    Note,
    PromptSize,
    Reading,
    Reply,
    ReplyEvent,
    Set,
    Stop,
)
from specchat.errors import UsageError
from specchat.tui.chat_record import RecordedConversation
from specchat.tui.occurrences import (
    Noted,
    Occurrence,
    PairLoaded,
    Progressed,
    ReplyBegan,
    ReplyEnded,
    WentWrong,
    Wrote,
)

if TYPE_CHECKING:
    from specchat.core.experience import Experience


class Phase(StrEnum):
    """What the engine is doing."""

    EMPTY = "empty"
    """Nothing is loaded: not yet, or because it failed."""
    LOADING = "loading"
    READY = "ready"
    READING = "reading"
    """A reply has begun; the prompt is being read."""
    WRITING = "writing"


class LiveChat:
    """A conversation, and the engine that writes its replies.

    Args:
        engine: closed by whoever made it.
        kept: what has been said so far, and its record.
        settings: of the next reply.

    Attributes:
        pair: the name of the pair, as replies keep it.
        experience: what the pair has taught, as far as it was told since it was loaded.
        reading: how far the prompt of the present reply has been read; the target's `Prefill` once it was.
        devices: what the engine said last of the machine's devices.
    """

    def __init__(self, engine: Engine, kept: RecordedConversation, settings: ReplySettings) -> None:
        self.engine = engine
        self.kept = kept
        self.settings = settings
        self.pair = ""
        self.phase = Phase.EMPTY
        self.loaded: Loaded | None = None
        self.devices: DeviceList | None = None
        self.load_fractions: dict[str, float] = {}
        self.waiting: list[str] = []
        self.context_used = 0
        self.reading: Reading | Prefill | None = None
        self.experience: Experience | None = None
        self._is_lent = False
        self._load: Load | None = None
        self._place: ReplyPlace | None = None
        self._events: list[Event] = []
        self._context_before = 0  # the present reply
        self._occurrences: list[Occurrence] = []
        kept.set_settings(settings)

    @property
    def conversation(self) -> Conversation:
        """What has been said; for reading only."""
        return self.kept.conversation

    @property
    def is_busy(self) -> bool:
        """Whether there is something that `stop` would stop."""
        return self.phase in (Phase.LOADING, Phase.READING, Phase.WRITING)

    @property
    def is_replying(self) -> bool:
        """Whether a reply is being read for or written."""
        return self.phase in (Phase.READING, Phase.WRITING)

    # --- the pair -------------------------------------------------------------------------------------------------

    @property
    def can_load_again(self) -> bool:
        """Whether a pair was loaded, or tried, before."""
        return self._load is not None

    @property
    def is_exact(self) -> bool:
        """Whether what is loaded is set up for *exact* mode."""
        return self._load is not None and self._load.exact

    def ask_for_devices(self) -> None:
        """Asks the engine which devices there are, and how much of them is free now."""
        self.engine.send(Devices())

    def will_load(self, command: Load) -> None:
        """A pair will be loaded in a moment: messages wait for it from now on."""
        self._load = command
        self.load_fractions = {}
        self.phase = Phase.LOADING

    def will_not_load(self) -> None:
        """That was called off; what was loaded before is not taken up again."""
        self.loaded = None
        self.context_used = 0
        self.phase = Phase.EMPTY

    def load(self, command: Load) -> None:
        """Loads a pair in place of what is loaded."""
        self._load = command
        self.loaded = None
        self.experience = None
        self.load_fractions = {}
        self.context_used = 0
        self.phase = Phase.LOADING
        self.engine.send(command)

    def load_again(self) -> None:
        """Loads the same pair once more, set up for the mode."""
        if self._load is not None:
            self.load(replace(self._load, exact=self.settings.mode == "exact"))

    def lend_engine(self) -> None:
        """Leaves the engine, which must be idle, to somebody else: its messages are not read here for now."""
        self._is_lent = True

    def take_engine_back(self, *, keeps_pair: bool) -> None:
        """Reads the engine's messages again. ``keeps_pair``: the chat's pair is still loaded as it was."""
        self._is_lent = False
        if not keeps_pair:
            self.loaded = None
            self.context_used = 0
            self.phase = Phase.EMPTY

    # --- replies --------------------------------------------------------------------------------------------------

    def ask(self, text: str) -> bool:
        """Sends a message; False where it must wait until a pair is loaded or the present reply is over."""
        if self.phase is not Phase.READY or self.waiting:
            self.waiting.append(text)
            return False
        self.kept.add_user(text)
        self.begin()
        return True

    def take_back_waiting(self) -> str:
        """The messages that wait, which are then not sent."""
        text = "\n\n".join(self.waiting)
        self.waiting.clear()
        return text

    def stop(self) -> None:
        """Stops what is going on, and keeps what came."""
        if self.is_busy:
            self.engine.send(Stop())

    def change(self, settings: ReplySettings) -> None:
        """Changes the settings, also of the reply that is being written. To and from *exact* the pair is loaded again.

        Raises:
            UsageError: the pair would have to be loaded again, and something is going on.
        """
        loads_again = (settings.mode == "exact") != self.is_exact and self.can_load_again
        if loads_again and self.is_busy:
            raise UsageError("Exact mode needs the target loaded in another way.", "Stop with Esc first.")
        self.settings = settings
        self.kept.set_settings(settings)
        if self.is_replying:
            self.engine.send(Set(settings))
        if loads_again:
            self.load_again()

    def must_be_idle(self) -> None:
        """Refuses what cannot be done while a reply is being written.

        Raises:
            UsageError: one is.
        """
        if self.is_replying:
            raise UsageError("A reply is being written.", "Stop it with Esc first.")

    def ask_for_size(self) -> None:
        """Asks how full the context is with this branch."""
        if self.phase is Phase.READY and self.conversation.head is not None:
            self.engine.send(Inspect(self.conversation.prompt()))
        else:
            self.context_used = 0

    def must_be_ready(self) -> None:
        """Refuses what needs a loaded pair that does nothing.

        Raises:
            UsageError: a reply is being written, or no pair is loaded.
        """
        self.must_be_idle()
        if self.phase is not Phase.READY:
            raise UsageError("No model is loaded yet.", "Wait until it is, or load one with /pair.")

    def begin(self, *, continue_last: bool = False, question: Message | None = None) -> None:
        """Asks for the reply to the current branch, or for the rest of its last one.

        Args:
            continue_last: go on with the last reply, which was cut.
            question: what is answered, if it waited until now.
        """
        self._place = self.kept.begin_reply(continue_last=continue_last)
        self._events = []
        self._context_before = self.context_used
        self.reading = None
        self.phase = Phase.READING
        messages = self.conversation.prompt()
        self.engine.send(Reply(self._place.id, messages, self.settings, continue_last=continue_last, details=True))
        self._occurrences.append(ReplyBegan(self._place, question))

    # --- what has happened --------------------------------------------------------------------------------------------

    def pump(self) -> list[Occurrence]:
        """Everything that has happened since the last time."""
        for message in () if self._is_lent else self.engine.drain():
            match message:
                case ReplyEvent():
                    self._take_event(message)
                case LoadProgress(model, fraction):
                    self.load_fractions[model] = fraction
                    self._occurrences.append(Progressed())
                case Loaded():
                    self.loaded = message
                    if not self.is_replying:  # a draft that was left out is loaded when a reply wants it
                        self.phase = Phase.READY
                        self.ask_for_size()
                    self._occurrences.append(PairLoaded(message))
                case Reading() if self._place is not None and message.reply == self._place.id:
                    self.reading = message
                    if message.model == "target":
                        self.context_used = message.read
                    self._occurrences.append(Progressed())
                case Learned():
                    self._learn(message)
                case DeviceList():
                    self.devices = message
                    self._occurrences.append(Progressed())
                case PromptSize() if not self.is_replying:
                    self.context_used = message.tokens
                    self._occurrences.append(Progressed())
                case Note(text=text):
                    self._occurrences.append(Noted(text))
                case Failed():
                    self._take_failure(message)
        # What waits begins a pump later than that: the record hears of a pair first, and the screen of a reply's end
        has_news = any(isinstance(each, PairLoaded | ReplyEnded) for each in self._occurrences)
        if self.phase is Phase.READY and self.waiting and not has_news:
            question = self.kept.add_user(self.waiting.pop(0))
            self.begin(question=question)
        for problem in self.kept.problems:
            self._occurrences.append(WentWrong(problem.message, problem.next_step))
        self.kept.problems.clear()
        occurrences, self._occurrences = self._occurrences, []
        return occurrences

    def _learn(self, learned: Learned) -> None:
        from specchat.core.experience import Experience  # needs numpy, which the first picture should not wait for

        experience = Experience()
        with contextlib.suppress(ValueError):  # of another version: then there is nothing to show
            experience.restore(learned.experience)
            self.experience = experience

    def _take_event(self, message: ReplyEvent) -> None:
        if self._place is None or message.reply != self._place.id:
            return
        self.kept.event(message.reply, message.event)
        event = packed(message.event)
        self._events.append(event)
        if isinstance(event, Prefill) and event.model == "target":
            self.reading = event
            self.context_used = event.tokens + event.reused
        elif isinstance(event, Round):
            self.phase = Phase.WRITING
            self.context_used += len(event.committed)
        if isinstance(event, Finished):
            self._end_reply()
        else:
            self._occurrences.append(Wrote(event))

    def _end_reply(self) -> None:
        place, self._place = self._place, None
        if place is None:
            return
        message = self.kept.add_reply(place, self._events, self.settings, self.pair)
        if message is None:
            self.context_used = self._context_before
        self.phase = Phase.READY
        self._occurrences.append(ReplyEnded(place, message, tuple(self._events)))

    def _take_failure(self, failure: Failed) -> None:
        if self._place is not None and (failure.died or failure.reply == self._place.id):
            self._end_reply()
        if failure.died or self.phase is Phase.LOADING:
            self.phase = Phase.EMPTY
            self.loaded = None
        self._occurrences.append(WentWrong(failure.message, failure.next_step))
