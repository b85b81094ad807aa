"""Copying: through the terminal (OSC 52), and through the system's own clipboard where there is a program for it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading

_PROGRAMS: tuple[tuple[str, ...], ...] = (
    ("pbcopy",),
    ("wl-copy",),
    ("xclip", "-selection", "clipboard"),
    ("xsel", "--clipboard", "--input"),
    ("clip.exe",),
)
_NEEDS = {"wl-copy": "WAYLAND_DISPLAY", "xclip": "DISPLAY", "xsel": "DISPLAY"}


def clipboard_program() -> tuple[str, ...] | None:
    """The program that puts text on this machine's clipboard, if there is one that can work here."""
    for program in _PROGRAMS:
        needed = _NEEDS.get(program[0])
        if (needed is None or os.environ.get(needed)) and (path := shutil.which(program[0])):
            return (path, *program[1:])
    return None


def copy_with_program(text: str) -> str | None:
    """Hands the text to that program, in the background; its name, or None where there is none."""
    program = clipboard_program()
    if program is None:
        return None
    threading.Thread(target=_run, args=(program, text), daemon=True).start()
    return os.path.basename(program[0])  # noqa: PTH119 - a name, not a file to touch


def _run(program: tuple[str, ...], text: str) -> None:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # OSC 52 was sent, too; nothing better is left
        subprocess.run(  # noqa: S603 - one of the programs above
            program,
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=5,
            check=False,
        )
