"""The child process: runs a `LocalEngine`, reads commands from its standard input, writes messages to a private pipe.

Three things hold here whatever llama.cpp does. Native code that writes to file descriptors 1 or 2 reaches neither
the terminal nor the protocol: both lead to a pipe that the parent keeps as a short log. The child ends when its
standard input closes, also in the middle of a pass: the reader thread sees it and leaves at once. And a Ctrl+C in
the terminal is the parent's business: the child ignores it and waits for `Stop`.

``--loader MODULE:FUNCTION`` names another loader (see `specchat.engine.pair.Loader`) than llama.cpp's: for tests
and for models of one's own.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

from specchat.engine.codec import decode_command, encode_message
from specchat.engine.interface import Failed

if TYPE_CHECKING:
    from specchat.engine.local import LocalEngine
    from specchat.engine.pair import Loader


def main(arguments: Sequence[str] | None = None) -> None:
    """Serves commands until standard input closes. Does not return while it is open."""
    commands, messages = _take_private_pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        engine = _make_engine(arguments)
    except Exception as problem:  # whatever keeps the engine from starting is told, not printed
        failed = Failed(
            type(problem).__name__,
            f"The model engine cannot start: {problem}",
            "Reinstall specchat; `specchat doctor` shows what is missing.",
            died=True,
        )
        _write(messages, encode_message(failed))
        sys.exit(1)
    threading.Thread(target=_read_commands, args=(commands, engine), name="commands", daemon=True).start()
    while True:
        message = engine.receive()
        if message is not None:
            _write(messages, encode_message(message))


def _take_private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Keeps the protocol's two ends to ourselves; what stays on 0, 1 and 2 is for everybody else in this process."""
    commands = os.fdopen(os.dup(0), "rb")
    messages = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return commands, messages


def _make_engine(arguments: Sequence[str] | None) -> LocalEngine:
    parser = argparse.ArgumentParser()
    parser.add_argument("--loader")
    name: str | None = parser.parse_args(arguments).loader
    from specchat.engine.local import LocalEngine  # numpy and jinja2: after the descriptors are safe

    if name is None:
        from specchat.engine.loading import tell_errors_to

        tell_errors_to(_log)
        return LocalEngine()
    module, _, function = name.partition(":")
    loader: Loader = getattr(importlib.import_module(module), function)
    return LocalEngine(loader)


def _log(text: str) -> None:
    """Writes to descriptor 2, which the parent keeps; at once, and never fails: this is called from native code."""
    with contextlib.suppress(OSError):
        os.write(2, text.encode("utf-8", "replace"))


def _read_commands(commands: BinaryIO, engine: LocalEngine) -> None:
    for line in commands:
        engine.send(decode_command(line))
    # The parent is gone or done with us. Not sys.exit: the worker may be inside a pass of seconds.
    os._exit(0)


def _write(messages: BinaryIO, line: bytes) -> None:
    try:
        messages.write(line)
        messages.flush()
    except OSError:
        os._exit(0)


if __name__ == "__main__":
    main()
