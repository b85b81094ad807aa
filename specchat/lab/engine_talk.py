"""An engine that does one thing after the other for an experiment, until a person asks it to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar

from specchat.core.events import Event, Finished
from specchat.core.settings import ChatMessage, ReplySettings
from specchat.engine.interface import (
    Command,
    Engine,
    Failed,
    LoadProgress,
    Message,
    Note,
    Progress,
    Reply,
    ReplyEvent,
    Stop,
)
from specchat.errors import from_dict

OnProgress: TypeAlias = Callable[[str, float, str], None]
"""Told what is going on, how much of it is done (0 to 1), and a detail."""

_WAKE_SECONDS = 0.1
_Answer = TypeVar("_Answer", bound=Message)


class Stopped(Exception):  # noqa: N818 - it is not an error
    """The person asked to stop."""


class EngineTalk:
    """Sends commands and waits for what they bring.

    Args:
        engine: does the work.
        on_note: told each sentence that a person should see.
        on_progress: told how far it is.
        should_stop: asked ten times a second; what is going on is then stopped.
    """

    def __init__(
        self,
        engine: Engine,
        on_note: Callable[[str], None],
        on_progress: OnProgress,
        should_stop: Callable[[], bool],
    ) -> None:
        self._engine = engine
        self._on_note = on_note
        self._on_progress = on_progress
        self._should_stop = should_stop
        self._stopping = False
        self._replies = 0

    def check_stop(self) -> None:
        """Goes on unless the person asked to stop.

        Raises:
            Stopped: the person did.
        """
        if self._should_stop():
            raise Stopped

    def ask(self, command: Command, kind: type[_Answer]) -> _Answer:
        """The answer of that kind to a command.

        Raises:
            Stopped: the person asked to stop.
            SpecchatError: it failed.
        """
        self.check_stop()
        self._engine.send(command)
        while not isinstance(message := self._receive(), kind):
            if isinstance(message, LoadProgress):
                self._on_progress(f"loading the {message.model}", message.fraction, "")
            elif isinstance(message, Progress):
                self._on_progress(message.what, message.fraction, "")
        return message

    def reply(
        self,
        messages: tuple[ChatMessage, ...],
        settings: ReplySettings,
        *,
        continue_last: bool = False,
        details: bool = False,
    ) -> Iterator[Event]:
        """The events of a reply, to its end. Arguments as of `specchat.engine.interface.Reply`.

        Raises:
            Stopped: the person asked to stop; what came before was yielded.
            SpecchatError: it failed; what came before was yielded.
        """
        self.check_stop()
        self._replies += 1
        number = self._replies
        self._engine.send(
            Reply(number, messages, settings, continue_last=continue_last, details=details, measure_plain=False)
        )
        finished: Finished | None = None
        while finished is None:
            message = self._receive()
            if isinstance(message, ReplyEvent) and message.reply == number:
                finished = message.event if isinstance(message.event, Finished) else None
                yield message.event
        if finished.reason == "interrupted":
            raise Stopped
        while finished.reason == "error":
            self._receive()  # raises what the error was: that follows

    def _receive(self) -> Message:
        """The next message; a failure is raised, a note is handed on."""
        while True:
            if self._should_stop() and not self._stopping:
                self._stopping = True
                self._engine.send(Stop())
            message = self._engine.receive(_WAKE_SECONDS)
            if isinstance(message, Failed):
                if message.kind == "CancelledError":
                    raise Stopped
                raise from_dict({"kind": message.kind, "message": message.message, "next_step": message.next_step})
            if isinstance(message, Note):
                self._on_note(message.text)
            elif message is not None:
                return message
