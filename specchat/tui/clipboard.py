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
_ENCODINGS = {"clip.exe": "utf-16-le"}  # other bytes it takes for text in the code page of the console


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
    name = os.path.basename(program[0])  # noqa: PTH119 - a name, not a file to touch
    encoded = text.encode(_ENCODINGS.get(name, "utf-8"), "replace")
    threading.Thread(target=_run, args=(program, encoded), daemon=True).start()
    return name


def _run(program: tuple[str, ...], text: bytes) -> None:
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):  # OSC 52 was sent, too; nothing better is left
        subprocess.run(  # noqa: S603 - one of the programs above
            program,
            input=text,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=5,
            check=False,
        )
