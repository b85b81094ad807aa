"""Standard output and standard error: what is safe to print, progress, and Ctrl+C."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from specchat.core.safe_text import safe_text

if TYPE_CHECKING:
    from specchat.pairs.fetching import FetchProgress

_CLEAR_LINE = "\r\x1b[K"
_BAR_CELLS = 24
_LINES = 10  # how many lines a log gets for one piece of work


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person sees the stream; a program without a console has None in its place."""
    return stream is not None and stream.isatty()


def say(text: str) -> None:
    """One line on standard error."""
    with contextlib.suppress(BrokenPipeError):
        print(safe_text(text, keep_newlines=False), file=sys.stderr, flush=True)


def write_text(text: str) -> None:
    """Text on standard output, at once; characters that its encoding lacks become question marks."""
    stream = sys.stdout
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()


class Interrupt:
    """Whether Ctrl+C was pressed. The first one is only noted, so that what came can be kept; a second one ends."""

    def __init__(self) -> None:
        self._pressed = False

    def __bool__(self) -> bool:
        return self._pressed

    def press(self) -> None:
        """Notes it.

        Raises:
            KeyboardInterrupt: it was pressed before.
        """
        if self._pressed:
            raise KeyboardInterrupt
        self._pressed = True


@contextlib.contextmanager
def interrupts() -> Iterator[Interrupt]:
    """While this lasts Ctrl+C is noted rather than raised, and so is SIGTERM: what was started is ended in good order.

    Only the main thread can arrange that.
    """
    interrupt = Interrupt()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        interrupt.press()

    try:
        before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:
        yield interrupt
        return
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class ProgressLine:
    """How far something is: one line that is rewritten on a terminal, a new line now and then in a log.

    Args:
        stream: where to; standard error unless told otherwise.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._rewrites = is_terminal(self._stream)
        self._last: tuple[str, int] | None = None
        self._shown = False

    def show(self, what: str, fraction: float | None, detail: str = "") -> None:
        """Shows how far ``what`` is, from 0 to 1, None where nobody knows; ``detail`` on a terminal only."""
        what = safe_text(what, keep_newlines=False)
        if self._rewrites:
            bar = "" if fraction is None else f" {_bar(fraction)} {fraction:4.0%}"
            self._write(f"{_CLEAR_LINE}{what}{bar}{f'  {detail}' if detail else ''}")
            self._shown = True
            return
        step = (what, int((fraction or 0.0) * _LINES))
        if step != self._last:
            self._last = step
            self._write(what if fraction is None else f"{what}: {fraction:.0%}", end="\n")

    def clear(self) -> None:
        """Takes the line away again, before something else is written."""
        if self._shown:
            self._write(_CLEAR_LINE)
            self._shown = False

    def _write(self, text: str, end: str = "") -> None:
        with contextlib.suppress(BrokenPipeError):
            print(text, end=end, file=self._stream, flush=True)


class FetchLine:
    """The progress of a fetch, on a `ProgressLine`."""

    def __init__(self, line: ProgressLine) -> None:
        self._line = line

    def __call__(self, progress: FetchProgress) -> None:
        """Shows it."""
        from specchat.pairs.fetching import size_text

        fraction = progress.done / progress.total if progress.total else None
        detail = f"{size_text(progress.done)} of {size_text(progress.total)}" if progress.total else ""
        self._line.show(f"{progress.model}: {progress.what}", fraction, detail)


def _bar(fraction: float) -> str:
    filled = round(min(1.0, fraction) * _BAR_CELLS)
    return "█" * filled + "░" * (_BAR_CELLS - filled)
