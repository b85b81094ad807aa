"""Files that survive a kill: written whole or not at all, and locked against other processes; and texts in files."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from specchat.errors import UsageError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_POLL_SECONDS = 0.1
_LONGEST_TEXT = 8 << 20
"""Characters of a text read from a file: more than any context holds, and some files never end."""


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file so that a reader, or a start after a kill, sees the old content or the new, never a mixture.

    The file is readable by its owner only. Folders that are missing are made.

    Raises:
        OSError: the folder cannot be written to, or the disk is full.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes a rename in ``folder`` last through a power cut, where the system can do that (not on Windows)."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def exclusive(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Holds the lock file ``path``; while somebody else holds it, ``waiting`` is called ten times a second.

    The system gives the lock back when its holder ends, however it ends: a lock file that was left behind does not
    lock. ``waiting`` may raise to give up. On a file system that has no locks nothing is locked.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while not _try_lock(handle):
            waiting()
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock file ``path`` just now."""
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _try_lock(handle)
    finally:
        os.close(handle)


def expanded(text: str | Path) -> Path:
    """The path that a person wrote, with ``~`` and ``~NAME`` replaced by homes. ``./~x`` is a file called ``~x``.

    Raises:
        UsageError: it begins with the home of nobody.
    """
    try:
        path = os.path.expanduser(text)  # noqa: PTH111 - pathlib takes ./~x for somebody's home
    except ValueError:  # no name holds a zero byte
        path = os.fspath(text)
    if path.startswith("~"):
        said = f"{text} begins with ~, and nobody's home is known by that name."
        raise UsageError(said, f"Correct the path, or write ./{text} for a file that is called so.")
    return Path(path)


def text_or_file(text: str) -> str:
    """The text itself, or what stands in the file where it begins with ``@``.

    Raises:
        UsageError: the file cannot be read, or does not end where any text that fits a context would have ended.
    """
    if not text.startswith("@"):
        return text
    name = text[1:]
    try:
        with expanded(name).open(encoding="utf-8") as file:
            content = file.read(_LONGEST_TEXT + 1)
    except UnicodeDecodeError as problem:
        raise UsageError(f"{name} is not UTF-8 (byte {problem.start}).", "Save it as UTF-8.") from None
    except (OSError, ValueError) as problem:  # also a name that cannot be one
        reason = getattr(problem, "strerror", None) or problem
        raise UsageError(f"{name} cannot be read: {reason}.", "Correct the path.") from None
    if len(content) > _LONGEST_TEXT:
        raise UsageError(f"{name} is longer than {_LONGEST_TEXT:,} characters.", "Give a text that fits the context.")
    return content


def _try_lock(handle: int) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # some network file systems have no locks: two fetches at once then cost bandwidth only
        return True
    return True
