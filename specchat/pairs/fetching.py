"""What every way of fetching a file shares: progress, cancelling, room on the disk, and how failures are told."""

from __future__ import annotations

import contextlib
import errno
import re
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from specchat.errors import CancelledError, DiskFullError, DownloadError
from specchat.pairs.catalog import Model

Source: TypeAlias = Literal["disk", "hub", "mirror"]

_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_SECRETS = re.compile(r"hf_[A-Za-z0-9]{6,}|(?<=://)[^/@\s]+@|(?<=[Bb]earer )\S+")
_REPORT_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """How far a fetch is.

    Attributes:
        model: the model's name.
        source: where the bytes come from: "disk" (it is being checked), "hub" or "mirror".
        done: bytes that are there; it never falls while ``source`` stays the same.
        total: bytes in all, where that is known.
        what: what is going on, in words that can be shown.
    """

    model: str
    source: Source
    done: int
    total: int | None
    what: str


Progress: TypeAlias = Callable[[FetchProgress], None]


@dataclass(slots=True)
class Job:
    """One fetch: the model, where it goes, who wants to know, and whether it should stop."""

    model: Model
    folder: Path
    progress: Progress
    cancelled: Callable[[], bool]
    _last_what: str = ""
    _last_time: float = field(default=0.0)

    def report(self, source: Source, done: int, what: str, total: int | None = None) -> None:
        """Tells how far it is: at once when something else begins, else ten times a second at most.

        Raises:
            CancelledError: it should stop.
        """
        self.check()
        now = time.monotonic()
        total = total or self.model.size
        soon = what == self._last_what and now - self._last_time < _REPORT_SECONDS
        if soon and done != total:
            return
        self._last_what, self._last_time = what, now
        done = done if total is None else min(done, total)
        self.progress(FetchProgress(self.model.name, source, done, total, what))

    def report_check(self, done: int) -> None:
        """Tells how much of a file on this disk has been checked.

        Raises:
            CancelledError: it should stop.
        """
        self.report("disk", done, "checking")

    def check(self) -> None:
        """Stops here if it should stop.

        Raises:
            CancelledError: it should stop.
        """
        if self.cancelled():
            message = f"Fetching {self.model.name} was stopped."
            raise CancelledError(message, f"`specchat pull {self.model.key}` goes on with what is finished.")


def check_room(folder: Path, need: int) -> None:
    """Refuses to begin what cannot end: ``need`` bytes and 5 % must be free.

    Raises:
        DiskFullError: there is less.
    """
    place = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    free = shutil.disk_usage(place).free
    if free < need * 1.05:
        message = f"{folder} has {size_text(free)} free; {size_text(int(need * 1.05))} are needed."
        raise DiskFullError(message, "Free some room, or set SPECCHAT_MODELS (or HF_HOME) to a folder on another disk.")


@contextlib.contextmanager
def disk_errors(folder: Path) -> Iterator[None]:
    """Turns the system's errors in reading and writing below ``folder`` into ours.

    Raises:
        DiskFullError: there was no room left.
        DownloadError: anything else that the system refused.
    """
    try:
        yield
    except BrokenPipeError:  # not the disk: whoever listened to the progress has gone
        raise
    except OSError as error:
        raise disk_error(error, folder) from error


def disk_error(error: OSError, folder: Path) -> DownloadError:
    """What to tell a person about an error of the system below ``folder``."""
    if error.errno in _FULL:
        message = f"The disk of {folder} is full."
        return DiskFullError(message, "Free some room and run it again; it goes on from there.")
    message = f"{error.filename or folder} cannot be read or written: {error.strerror or error}."
    return DownloadError(message, "Check its rights, or set SPECCHAT_MODELS to another folder.")


def without_secrets(text: str) -> str:
    """``text`` without tokens, and without the user name and password of addresses."""
    return _SECRETS.sub("…", text)


def size_text(size: float) -> str:
    """A size for people, in units of 1000 as on a disk's label: ``1.1 GB``."""
    power = 0
    while size >= 1000 and power < 4:
        size, power = size / 1000, power + 1
    unit = ("bytes", "kB", "MB", "GB", "TB")[power]
    return f"{size:.0f} {unit}" if power == 0 or size >= 100 else f"{size:.1f} {unit}"
