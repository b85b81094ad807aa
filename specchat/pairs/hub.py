"""The Hugging Face hub: its cache on this disk, and fetching from it.

Files are used where the hub's own cache keeps them, which other programs share; they are never copied. Fetching is
done by a child process (`specchat.pairs.hub_child`), which this module watches: it must be told to go on by an answer
within three seconds, and ended when nothing arrives any more or a person stops it.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

import specchat
from specchat.errors import DownloadError, HashMismatchError, NetworkError, from_dict
from specchat.pairs.fetching import Job, without_secrets
from specchat.pairs.hub_child import Request
from specchat.pairs.hub_errors import unreached
from specchat.pairs.verify import check_file

ANSWER_SECONDS = 3.0
STALL_SECONDS = 60.0
_START_SECONDS = 30.0
_END_SECONDS = 3.0
_POLL_SECONDS = 0.1

_CODE = "import sys; sys.path.append(sys.argv[1]); from specchat.pairs.hub_child import main; main()"


def cached(repository: str, files: Sequence[str], revision: str) -> list[Path] | None:
    """Where the hub's cache has the files, None if one is missing. Opens no connection."""
    from huggingface_hub import try_to_load_from_cache

    paths = []
    for name in files:
        try:
            path = try_to_load_from_cache(repository, name, revision=revision)
        except (OSError, ValueError):  # a cache that cannot be read is no help
            return None
        if not isinstance(path, str):
            return None
        paths.append(Path(path))
    return paths


def orphans(repository: str) -> list[Path]:
    """What interrupted downloads of that repository left in the hub's cache.

    The next fetch goes on with specchat's own (`specchat.pairs.hub_partial`); nobody does with the library's.
    """
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE) / f"models--{repository.replace('/', '--')}" / "blobs"
    return sorted(folder.glob("*.incomplete"))


def fetch_from_hub(job: Job, repository: str) -> list[tuple[Path, str | None]]:
    """Fetches all files of the model into the hub's cache and checks them.

    Returns:
        For each file where it is, and its SHA-256 where the catalogue or the hub knows it.

    Raises:
        NetworkError: the hub does not answer within three seconds (HF_HUB_ETAG_TIMEOUT, if set), or stalls.
        DownloadError: of the kind that fits.
        CancelledError: the job should stop.
    """
    model = job.model
    request = Request(repository, model.revision, list(model.files), _answer_seconds(), model.size, model.sha256)
    finished = _run(job, request)
    result = []
    for name, hash_there in zip(finished["paths"], finished["sha256"], strict=True):
        path, size = Path(name), model.size if len(model.files) == 1 else None
        sha256 = model.sha256 or hash_there
        try:
            check_file(path, size, sha256, job.report_check)
        except HashMismatchError as error:
            remove_cached(path)
            step = f"Run `specchat pull {model.key}` again; if it stays so, look for a newer specchat."
            raise HashMismatchError(f"The hub sent another file: {error.message}", step) from None
        result.append((path, sha256))
    return result


def _answer_seconds() -> float:
    """How long the hub may take to answer: the library's own variable goes before ours."""
    try:
        return float(os.environ["HF_HUB_ETAG_TIMEOUT"])
    except (KeyError, ValueError):
        return ANSWER_SECONDS


def _run(job: Job, request: Request) -> dict[str, Any]:
    root = str(Path(specchat.__file__).parent.parent)
    quiet = {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_SYMLINKS_WARNING": "1"}  # unless a person says otherwise
    environment = quiet | os.environ | {"HF_HUB_VERBOSITY": "error"}
    with tempfile.TemporaryFile() as noise:
        child = subprocess.Popen(  # noqa: S603  # this Python and fixed code; the request goes through the pipe
            [sys.executable, "-P", "-c", _CODE, root],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=noise,
            env=environment,
        )
        assert child.stdin is not None
        assert child.stdout is not None
        events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        reader = threading.Thread(target=_read_events, args=(child.stdout, events), daemon=True)
        reader.start()
        try:
            with contextlib.suppress(BrokenPipeError):  # then it has died, which the events tell
                child.stdin.write(msgspec.json.encode(request) + b"\n")
                child.stdin.flush()
            return _follow(job, request, events, noise)
        finally:
            _end(child)
            reader.join()
            child.stdout.close()


def _follow(job: Job, request: Request, events: queue.Queue[dict[str, Any] | None], noise: IO[bytes]) -> dict[str, Any]:
    """Follows the child's events to the last one; gives up where the next is overdue."""
    done, total = 0, job.model.size
    what, limit, overdue = "asking the Hugging Face hub", _START_SECONDS, unreached(request.timeout)
    since = time.monotonic()
    while True:
        job.report("hub", done, what, total)
        try:
            event = events.get(timeout=_POLL_SECONDS)
        except queue.Empty:
            if time.monotonic() - since > limit:
                raise overdue from None
            continue
        since = time.monotonic()
        if event is None:
            job.check()  # Ctrl+C in a terminal ends the child too
            raise _died(noise)
        match event["event"]:
            case "ready":
                limit = request.timeout
            case "answered":
                what, limit, total = "fetching from the Hugging Face hub", STALL_SECONDS, event["total"] or total
                message = f"The Hugging Face hub has sent nothing for {STALL_SECONDS:.0f} seconds."
                step = f"Run `specchat pull {job.model.key}` again: it goes on from there."
                overdue = NetworkError(message, step)
            case "progress":
                done = max(done, event["done"])
            case "finished":
                return event
            case "failed":
                job.check()
                raise from_dict(event)


def _read_events(output: IO[bytes], events: queue.Queue[dict[str, Any] | None]) -> None:
    for line in output:
        with contextlib.suppress(ValueError):  # half a line of a process that died
            events.put(json.loads(line))
    events.put(None)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Closes the child's standard input, which tells it to tidy up and end, and waits only so long."""
    assert child.stdin is not None
    with contextlib.suppress(OSError):
        child.stdin.close()
    try:
        child.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _died(noise: IO[bytes]) -> DownloadError:
    noise.seek(0)
    lines = without_secrets(noise.read().decode("utf-8", "replace")).strip().splitlines()
    reason = lines[-1][:300] if lines else "it gave no reason"
    return DownloadError(f"The process that fetches from the hub ended: {reason}", "Run it again.")


def remove_cached(path: Path) -> None:
    """Removes a file from the hub's cache: the links in all snapshots, and what they lead to."""
    blob = path.resolve()
    for link in path.parent.parent.glob(f"*/{glob.escape(path.name)}"):
        if link.resolve() == blob:
            link.unlink(missing_ok=True)
    blob.unlink(missing_ok=True)
