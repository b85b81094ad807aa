"""Where an engine's messages wait for the screen or the command that reads them."""

from __future__ import annotations

from queue import Empty, SimpleQueue

from specchat.engine.interface import Message


class Mailbox:
    """Messages in the order in which they were put, between any threads. Putting never blocks."""

    def __init__(self) -> None:
        self._messages: SimpleQueue[Message | None] = SimpleQueue()
        self._closed = False

    def put(self, message: Message) -> None:
        """Adds a message."""
        self._messages.put(message)

    def receive(self, timeout: float | None = None) -> Message | None:
        """The next message; None when there was none within ``timeout`` seconds (None: wait for ever).

        After `close` it returns what is left, and then None without waiting.
        """
        try:
            return self._messages.get(timeout=0 if self._closed else timeout)
        except Empty:
            return None

    def drain(self) -> list[Message]:
        """All messages that have arrived, without waiting."""
        messages: list[Message] = []
        while True:
            try:
                message = self._messages.get_nowait()
            except Empty:
                return messages
            if message is not None:
                messages.append(message)

    def close(self) -> None:
        """Wakes everybody who waits, once each message has been read."""
        self._closed = True
        self._messages.put(None)
