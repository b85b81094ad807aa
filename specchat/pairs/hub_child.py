"""Fetches from the Hugging Face hub in a process of its own; `specchat.pairs.hub` starts it and watches.

A process can be ended at any moment: while a name is being resolved, while the library waits between its retries,
while its native part (Xet) downloads in threads that no exception reaches. And whatever the library prints stays off
the terminal.

It reads one request from standard input, writes one JSON object a line to standard output, and stops as soon as
standard input closes, so that it never outlives specchat. The lines: ``{"event": "ready"}`` once the library is
loaded; ``{"event": "answered", "total": bytes}`` once the hub has answered for all files; ``{"event": "progress",
"done": bytes}``; then ``{"event": "finished", "paths": […], "sha256": […]}`` or ``{"event": "failed",
…}`` with the error as `specchat.errors.to_dict` writes it.
"""

from __future__ import annotations

import _thread
import json
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from specchat import __version__
from specchat.errors import HashMismatchError, SpecchatError, to_dict
from specchat.pairs.fetching import check_room
from specchat.pairs.hub_errors import translate
from specchat.pairs.hub_partial import fetch_blob

_SHA256 = re.compile(r"[0-9a-f]{64}")
_CHUNK = 1 << 18
_REPORT_SECONDS = 0.1
_GRACE_SECONDS = 2.0


class Request(msgspec.Struct, frozen=True):
    """What to fetch. ``size`` and ``sha256`` belong to the one file of a model that is not split."""

    repository: str
    revision: str
    files: list[str]
    timeout: float
    size: int | None = None
    sha256: str | None = None


Emit = Callable[[dict[str, Any]], None]


def main() -> None:
    """Entry point of the process."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the library prints is not ours to read

    def emit(event: dict[str, Any]) -> None:
        output.write(json.dumps(event) + "\n")
        output.flush()

    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=Request)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        emit(download(request, emit))
    except SpecchatError as error:
        emit({"event": "failed"} | to_dict(error))
    except Exception as error:
        emit({"event": "failed"} | to_dict(translate(error, request.repository, request.files[0])))


def download(request: Request, emit: Emit) -> dict[str, Any]:
    """Fetches all files of a model into the hub's cache, and says where they are.

    Raises:
        HashMismatchError: the hub says that it has another file than the catalogue names; nothing was fetched then.
        DiskFullError: there is not enough room in the hub's cache.
        Exception: whatever the library raises; `specchat.pairs.hub_errors` knows what it means.
    """
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_download, hf_hub_url

    constants.DOWNLOAD_CHUNK_SIZE = _CHUNK  # the library's 10 MiB would look like a stall on a slow line
    emit({"event": "ready"})
    found = []
    for name in request.files:
        url = hf_hub_url(request.repository, name, revision=request.revision)
        found.append(get_hf_file_metadata(url, timeout=request.timeout, library_name="specchat"))
        emit({"event": "progress", "done": 0})
    sizes = [metadata.size or 0 for metadata in found]
    hashes = [metadata.etag if _SHA256.fullmatch(metadata.etag or "") else None for metadata in found]
    _check_same(request, sum(sizes) or None, hashes)
    emit({"event": "answered", "total": sum(sizes)})
    cache = Path(constants.HF_HUB_CACHE)
    paths = []
    for index, name in enumerate(request.files):
        bar = _progress_class(sum(sizes[:index]), emit)
        url = hf_hub_url(request.repository, name, revision=request.revision)

        def check(size: int, later: int = sum(sizes[index + 1 :])) -> None:
            check_room(cache, size + later)

        fetch_blob(request.repository, found[index], url, bar, lambda: emit({"event": "progress", "done": 0}), check)
        path = hf_hub_download(
            request.repository,
            name,
            revision=request.revision,
            etag_timeout=request.timeout,
            tqdm_class=bar,
            library_name="specchat",
            library_version=__version__,
        )
        paths.append(path)
    return {"event": "finished", "paths": paths, "sha256": hashes}


def _check_same(request: Request, size: int | None, hashes: Sequence[str | None]) -> None:
    """Refuses another file before a gigabyte of it is fetched: the hub says size and hash of large files ahead."""
    other_size = request.size is not None and size is not None and size != request.size
    other_hash = request.sha256 is not None and hashes[0] is not None and hashes[0] != request.sha256
    if other_size or other_hash:
        message = f"{request.repository} on the hub has another {request.files[0]} than the catalogue names."
        raise HashMismatchError(message, "Its owner has changed it: look for a newer specchat, or correct models.toml.")


def _progress_class(done_before: int, emit: Emit) -> type[Any]:
    """A stand-in for the library's progress bar: it tells of progress and draws nothing."""

    class Bar:
        def __init__(self, *_: Any, initial: int = 0, total: int | None = None, **__: Any) -> None:
            self.n = initial
            self.total = total
            self._last = 0.0
            emit({"event": "progress", "done": done_before + initial})

        def update(self, n: float | None = 1) -> None:
            """Bytes that are written."""
            self.n += int(n or 0)
            self._tell()

        def update_transfer(self, _: float) -> None:
            """Bytes that have come in; with Xet they may be fewer or more than those written."""
            self._tell()

        def _tell(self) -> None:
            now = time.monotonic()
            if now - self._last >= _REPORT_SECONDS:
                self._last = now
                emit({"event": "progress", "done": done_before + self.n})

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            return

        def __getattr__(self, _: str) -> Callable[..., None]:
            return _nothing

    return Bar


def _nothing(*_: Any, **__: Any) -> None:
    return


def _end_with_parent() -> None:
    while os.read(sys.stdin.fileno(), 4096):  # unbuffered: a buffer's lock would stop Python from ending
        continue
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # lets the library tidy up
    else:
        _thread.interrupt_main()
    time.sleep(_GRACE_SECONDS)
    os._exit(1)
