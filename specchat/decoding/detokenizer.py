"""From tokens' bytes to whole characters, as they come, and the end at a stop string.

A character may be spread over several tokens, and so may a stop string. A stream gives out each character once, with
the token that completes it, and holds back what may yet turn out to be the beginning of a stop string, so that a
stop string is never seen, wherever the tokens cut it.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class TextStream:
    """The text of a reply, token by token.

    What `push` and `finish` return, joined, is ``bytes.decode("utf-8", "replace")`` of all pieces together, cut
    before the stop string that is complete first (of two that end together, before the longer one).

    Args:
        stop: texts that end the reply and are not part of it.

    Raises:
        ValueError: a stop string is empty.
    """

    __slots__ = ("_bytes", "_held", "_longest", "_stop", "stop_string")

    def __init__(self, stop: Sequence[str] = ()) -> None:
        if not all(stop):
            raise ValueError("a stop string cannot be empty")
        self._stop = tuple(stop)
        self._longest = max(map(len, self._stop), default=0)
        self._bytes = b""  # the beginning of a character
        self._held = ""  # whole characters that may begin a stop string
        self.stop_string: str | None = None

    @property
    def stopped(self) -> bool:
        """Whether a stop string is complete. Nothing more comes out of the stream then."""
        return self.stop_string is not None

    def push(self, piece: bytes) -> str:
        """The characters that a token completes. Control tokens stand for no text: push ``b""`` for them."""
        if self.stopped or not piece:
            return ""
        waiting = self._bytes + piece
        text, used = codecs.utf_8_decode(waiting, "replace", False)
        self._bytes = waiting[used:]
        return self._release(text)

    def finish(self) -> str:
        """What was held back and is part of the text after all. An incomplete character becomes U+FFFD."""
        rest, self._bytes = self._bytes.decode("utf-8", "replace"), b""
        text = self._release(rest) + self._held
        self._held = ""
        return text

    def fork(self) -> TextStream:
        """A stream in the same state that goes its own way: for drafted tokens, which may be rejected."""
        twin = object.__new__(TextStream)
        twin._stop = self._stop
        twin._longest = self._longest
        twin._bytes = self._bytes
        twin._held = self._held
        twin.stop_string = self.stop_string
        return twin

    def _release(self, text: str) -> str:
        if not self._stop or not text:
            return text
        text = self._held + text
        found = [(start + len(stop), start, stop) for stop in self._stop if (start := text.find(stop)) >= 0]
        if found:
            _, start, self.stop_string = min(found)
            self._held, self._bytes = "", b""
            return text[:start]
        keep = self._possible_beginning(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def _possible_beginning(self, text: str) -> int:
        """How many of the last characters are the beginning of a stop string."""
        for length in range(min(self._longest - 1, len(text)), 0, -1):
            end = text[-length:]
            if any(stop.startswith(end) for stop in self._stop):
                return length
        return 0
