"""Is this file the right one? Checked once by size and SHA-256, then known by size and time.

Reading a gigabyte to hash it takes seconds, so a small record beside the models says which file was found good:
its path, size, time of change and hash. It serves for files in the models folder and for files that lie elsewhere
(in the hub's cache) and are used there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from specchat.errors import HashMismatchError
from specchat.files import write_atomically

_CHUNK = 1 << 20


class Verified(msgspec.Struct, frozen=True):
    """A file that was found good.

    ``sha256`` is None where nobody says what it should be. ``fetched``: specchat brought it here, and may remove it.
    """

    path: str
    size: int
    mtime_ns: int
    sha256: str | None
    fetched: bool = False


def known_good(folder: Path, name: str, sha256: str | None) -> Path | None:
    """The file that was found good for ``name``, if it has not been changed since; nothing is read from it.

    Args:
        folder: the models folder, where the records are.
        name: the file's name in the catalogue.
        sha256: what its hash must be, where the catalogue says so.
    """
    record = _record(folder, name)
    if record is None:
        return None
    path = Path(record.path)
    try:
        state = path.stat()
    except (OSError, ValueError):
        return None
    same = (state.st_size, state.st_mtime_ns) == (record.size, record.mtime_ns)
    return path if same and (sha256 is None or sha256 == record.sha256) else None


def was_fetched(folder: Path, name: str, path: Path) -> bool:
    """Whether specchat brought ``path`` here."""
    record = _record(folder, name)
    return record is not None and record.fetched and Path(record.path) == path.absolute()


def remember_good(folder: Path, name: str, path: Path, sha256: str | None, *, fetched: bool = False) -> None:
    """Writes down that ``path`` was found good for ``name``, and whether it was ``fetched`` just now.

    Where that is not possible it will be checked again.
    """
    try:
        state = path.stat()
        fetched = fetched or was_fetched(folder, name, path)
        record = Verified(str(path.absolute()), state.st_size, state.st_mtime_ns, sha256, fetched)
        write_atomically(_record_path(folder, name), msgspec.json.encode(record))
    except OSError:
        return


def forget(folder: Path, name: str) -> None:
    """Removes the record of ``name``."""
    _record_path(folder, name).unlink(missing_ok=True)


def check_file(path: Path, size: int | None, sha256: str | None, on_bytes: Callable[[int], None]) -> None:
    """Checks a file against what is known of it.

    Args:
        path: the file.
        size: its size in bytes, where known.
        sha256: its hash, where known.
        on_bytes: called with the number of bytes read so far; it may raise to stop.

    Raises:
        HashMismatchError: it is another file.
    """
    actual = path.stat().st_size
    if size is not None and actual != size:
        raise HashMismatchError(f"{path.name} has {actual} bytes; it should have {size}.")
    if sha256 is None:
        return
    digest = hashlib.sha256()
    with path.open("rb") as file:
        done = 0
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            done += len(chunk)
            on_bytes(done)
    if digest.hexdigest() != sha256:
        raise HashMismatchError(f"{path.name} has the SHA-256 {digest.hexdigest()}; it should be {sha256}.")


def _record(folder: Path, name: str) -> Verified | None:
    try:
        return msgspec.json.decode(_record_path(folder, name).read_bytes(), type=Verified)
    except (OSError, msgspec.MsgspecError, ValueError):
        return None


def _record_path(folder: Path, name: str) -> Path:
    return folder / ".specchat" / "verified" / f"{name}.json"
