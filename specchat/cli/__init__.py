"""The commands: the only place that wires everything together, and the only place that prints.

Nothing heavy is imported until a command needs it, so that ``specchat --help`` answers at once.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence

from specchat.cli.options import parser
from specchat.errors import CancelledError, SpecchatError

INTERRUPTED = 130

_CHECK = "Check that it is there, its rights, and the room on its disk."


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
        arguments: the words after ``specchat``; those of the command line unless told otherwise.

    Returns:
        The exit status: 0 done, 1 the work failed, 2 wrong usage, 130 interrupted.
    """
    options = parser().parse_args(arguments)
    try:
        status = _command(options.command)(options)
        sys.stdout.flush()
    except CancelledError as error:
        _tell(error)
        return INTERRUPTED
    except SpecchatError as error:
        _tell(error)
        return error.exit_status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output is gone
        _drop_output()
        return 1
    except OSError as error:  # where no command knows better what it means
        _drop_output()
        what = error.filename or "A file, or the output,"
        _tell(SpecchatError(f"{what} cannot be read or written: {error.strerror or error}.", _CHECK))
        return 1
    return status


def _drop_output() -> None:
    """Lets go of what cannot be written any more: Python would complain once more when it flushes at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _command(name: str) -> Callable[[argparse.Namespace], int]:
    """Each in a module of its own, imported only when it runs."""
    module = importlib.import_module(f"specchat.cli.{name}")
    command: Callable[[argparse.Namespace], int] = getattr(module, name)
    return command


def _tell(error: SpecchatError) -> None:
    from specchat.cli.terminal import say

    say(error.message)
    if error.next_step:
        say(error.next_step)
