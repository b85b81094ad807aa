"""What to do when the terminal is gone.

A terminal window that is closed, or a connection that breaks, leaves Textual writing to nobody: its writer thread
ends, the screen waits for it for ever, and its reader spins on the end of the file. Then nothing but leaving helps.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable

TERMINAL_GONE = 128 + 1
"""The exit status of a program that a hang-up ended (SIGHUP is signal 1)."""


def watch_terminal(last_words: Callable[[], None]) -> None:
    """Ends the process once nobody is at the other end of the terminal; ``last_words`` is called before.

    It waits in a thread of its own that costs nothing. Where the platform cannot tell (Windows), nothing is watched.
    """
    terminal = sys.__stdin__
    if terminal is None or not hasattr(select, "poll") or not terminal.isatty():
        return
    threading.Thread(target=_wait, args=(terminal.fileno(), last_words), name="terminal-watch", daemon=True).start()


def leave_after(seconds: float, last_words: Callable[[], None]) -> None:
    """Ends the process in that many seconds, unless it has ended by itself."""
    timer = threading.Timer(seconds, _leave, args=(last_words,))
    timer.daemon = True
    timer.start()


def _wait(descriptor: int, last_words: Callable[[], None]) -> None:
    poll = select.poll()
    poll.register(descriptor, 0)  # a hang-up and an error are told without being asked for
    while not poll.poll():
        pass
    _leave(last_words)


def _leave(last_words: Callable[[], None]) -> None:
    try:
        last_words()
    finally:
        os._exit(TERMINAL_GONE)
