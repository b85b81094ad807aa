"""Half a file in the hub's cache, which the next fetch goes on from.

The hub's library (2.4) fetches each file under a name that is used once, and deletes it when it is interrupted. So
specchat lets the library's own `http_get`, which can go on from where a file ends, write to a name of specchat's, and
puts the whole file where the library looks for it; the library then only has to link it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from specchat import __version__
from specchat.errors import HashMismatchError
from specchat.files import exclusive, sync_folder
from specchat.pairs.verify import check_file

SUFFIX = ".specchat.incomplete"
_SHA256 = re.compile(r"[0-9a-f]{64}")


def partial_path(repository: str, etag: str) -> Path:
    """Where a file of the hub grows until it is whole."""
    return _repository(repository) / "blobs" / f"{etag}{SUFFIX}"


def partial_size(repository: str, etag: str) -> int:
    """How many bytes of it an interrupted fetch left."""
    try:
        return partial_path(repository, etag).stat().st_size
    except OSError:
        return 0


def lock_path(repository: str, etag: str) -> Path:
    """The lock that the library and specchat hold while they write that file."""
    return _cache() / ".locks" / _folder_name(repository) / f"{etag}.lock"


def fetch_blob(
    repository: str,
    metadata: Any,
    url: str,
    bar: type[Any],
    waiting: Callable[[], None],
    check_room: Callable[[int], None],
) -> None:
    """Brings a file's content into the hub's cache, from where an earlier fetch ended.

    Files without a SHA-256, of unknown size, or too large for plain HTTP are left to the library.

    Args:
        repository: OWNER/NAME.
        metadata: what the hub says of the file (the library's `HfFileMetadata`).
        url: the file's address on the hub.
        bar: the library's progress bar.
        waiting: called while nothing arrives: another program fetches the same file, or what came is checked.
        check_room: called with the number of bytes to come.

    Raises:
        HashMismatchError: what an earlier fetch left and what came now are not that file together; both are dropped.
    """
    from huggingface_hub import constants
    from huggingface_hub.file_download import http_get
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # it has it, and says so nowhere

    etag, size = metadata.etag or "", metadata.size
    blob = _repository(repository) / "blobs" / etag
    if not _SHA256.fullmatch(etag) or not size or size > constants.MAX_HTTP_DOWNLOAD_SIZE:
        return
    headers = build_hf_headers(library_name="specchat", library_version=__version__)
    if urlparse(url).netloc != urlparse(metadata.location).netloc:
        headers.pop("authorization", None)  # the token is for the hub, and not for where it keeps its files
    blob.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(lock_path(repository, etag), waiting):
        if blob.exists():
            return
        partial = partial_path(repository, etag)
        if partial.is_symlink() or partial_size(repository, etag) > size:
            partial.unlink()
        with partial.open("ab") as growing:
            begun = growing.tell()
            check_room(size - begun)
            http_get(metadata.location, growing, resume_size=begun, headers=headers, expected_size=size, tqdm_class=bar)
            growing.flush()
            os.fsync(growing.fileno())
        if begun:  # what stood there is of unknown origin, and whoever reads the cache trusts it
            _check(partial, repository, size, etag, waiting)
        partial.replace(blob)
        sync_folder(blob.parent)


def _check(partial: Path, repository: str, size: int, etag: str, waiting: Callable[[], None]) -> None:
    try:
        check_file(partial, size, etag, lambda _: waiting())
    except HashMismatchError:
        partial.unlink()
        message = f"What an interrupted download from {repository} had left was damaged; it was deleted."
        raise HashMismatchError(message, "Run it again to fetch the file anew.") from None


def discard(repository: str, etag: str) -> int:
    """Deletes what an interrupted fetch left, and says how many bytes that were."""
    size = partial_size(repository, etag)
    partial_path(repository, etag).unlink(missing_ok=True)
    return size


def _cache() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def _folder_name(repository: str) -> str:
    return f"models--{repository.replace('/', '--')}"


def _repository(repository: str) -> Path:
    return _cache() / _folder_name(repository)
