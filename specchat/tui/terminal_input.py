"""What comes from the terminal is text and keys; nothing in it may end the program or press keys of its own.

Textual 8.2 reads bytes strictly: one that is no UTF-8 ends it with a traceback. And an escape sequence inside a paste
makes it take the rest of the paste for keys, which then send, quit or open the editor. It has no settings for either.
"""

from __future__ import annotations

import codecs
import contextlib

_BEGIN, _END = "\x1b[200~", "\x1b[201~"
_ESCAPE, _MARK = "\x1b", "␛"


def read_carefully() -> None:
    """Has Textual's reader use `TerminalDecoder`."""
    with contextlib.suppress(ImportError):  # Windows reads keys, not bytes
        from textual.drivers import linux_driver

        linux_driver.getincrementaldecoder = lambda _: TerminalDecoder  # type: ignore[attr-defined, assignment]


class TerminalDecoder:
    """Decodes what a terminal sends; bytes that are no UTF-8 become �, and in a paste an escape becomes ␛."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_pasting = False
        self._open = ""  # the end of what was read, where a paste may begin or end in its middle

    def decode(self, data: bytes, final: bool = False) -> str:
        """The next characters. In a paste, what may become its end is kept until it is known."""
        text = self._decoder.decode(data, final)
        done = ""
        while text or self._open:
            read, text = self._pasted(text) if self._is_pasting else self._typed(text)
            done += read
            if not text:
                break
        return done

    def _typed(self, text: str) -> tuple[str, str]:
        """What is handed on at once, and what is left because a paste begins."""
        before, self._open = self._open, ""
        place = (before + text).find(_BEGIN)
        if place < 0:
            self._open = _unfinished(before + text, _BEGIN)
            return text, ""
        end = place + len(_BEGIN) - len(before)
        self._is_pasting = True
        return text[:end], text[end:]

    def _pasted(self, text: str) -> tuple[str, str]:
        """What is handed on of a paste, and what is left because it is over."""
        text, self._open = self._open + text, ""
        place = text.find(_END)
        if place < 0:
            self._open = _unfinished(text, _END)
            return text[: len(text) - len(self._open)].replace(_ESCAPE, _MARK), ""
        self._is_pasting = False
        return text[:place].replace(_ESCAPE, _MARK) + _END, text[place + len(_END) :]


def _unfinished(text: str, marker: str) -> str:
    """The end of a text that may be the beginning of a marker."""
    lengths = range(min(len(marker) - 1, len(text)), 0, -1)
    return next((marker[:length] for length in lengths if text.endswith(marker[:length])), "")
