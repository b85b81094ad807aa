"""Models that people have already, wherever other programs keep them: offered where they are, never copied.

Folders are other people's: links may lead in circles, folders may be huge or closed, files may be anything. So depth
and numbers are bounded, nothing but regular files is opened, and what cannot be used is named with its reason.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from specchat.backends.gguf_header import GgufHeader, check_can_chat, read_header
from specchat.errors import ModelFileError
from specchat.pairs.catalog import Model
from specchat.pairs.places import Origin, Place

MAX_DEPTH: Final = 8
MAX_ENTRIES: Final = 20_000
"""How many files and folders of one place are looked at."""
MAX_MODELS: Final = 500

_PART = re.compile(r"(?P<stem>.+)-(?P<index>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_MODEL_LAYER = "application/vnd.ollama.image.model"
_MAX_MANIFEST_BYTES = 1 << 20
_NOT_IN_KEYS = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model that can chat.

    Attributes:
        path: its file, the first part's if it is split.
        name: what people call it.
        origin: whose folder it lies in.
        header: what its file says.
    """

    path: Path
    name: str
    origin: Origin
    header: GgufHeader

    @property
    def size(self) -> int:
        """Bytes, of all parts together."""
        return self.header.file_bytes

    @property
    def model(self) -> Model:
        """As the catalogue would have it: a file of the person's own."""
        key = _NOT_IN_KEYS.sub("-", self.name).strip(".-_")[:100] or "model"
        return Model(key=key, name=self.name, path=str(self.path.absolute()), size=self.size)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or folder that cannot be used: why not, and what to do; the next step may be empty."""

    path: Path
    origin: Origin
    reason: str
    next_step: str = ""


Finding: TypeAlias = FoundModel | LeftOut


def find_models(places: Iterable[Place], cancelled: Callable[[], bool] = lambda: False) -> Iterator[Finding]:
    """Looks for models, and yields them as they are found: reading a header takes about 0.1 seconds.

    A file that several places lead to is yielded once.

    Args:
        places: where to look (`specchat.pairs.places.known_places`).
        cancelled: asked between files whether to stop.
    """
    seen: set[tuple[int, int]] = set()
    count = 0
    for place in places:
        for name, path in _ollama_files(place) if place.is_ollama else _gguf_files(place):
            if cancelled():
                return
            if isinstance(path, LeftOut):
                yield path
                continue
            identity = _identity(path)
            if identity is None or identity in seen:
                continue
            if count == MAX_MODELS:
                yield LeftOut(place.path, place.origin, f"Only the first {MAX_MODELS} models are shown.")
                return
            seen.add(identity)
            count += 1
            yield _look_at(path, name, place.origin)


def added_models(path: Path, cancelled: Callable[[], bool] = lambda: False) -> list[Finding]:
    """What a file or a folder that a person names holds.

    Args:
        path: the file or folder.
        cancelled: asked between files whether to stop.

    Raises:
        ModelFileError: there is no such thing, or no model in it.
    """
    if not path.exists():
        raise ModelFileError(f"There is no file or folder {path}.", "Check the path.")
    findings = list(find_models([Place("added", path)], cancelled))
    if not findings:
        raise ModelFileError(f"There is no .gguf file in {path}.", "Name a GGUF file, or a folder that has some in it.")
    return findings


def _look_at(path: Path, name: str | None, origin: Origin) -> Finding:
    try:
        header = read_header(path)
        check_can_chat(header)
    except ModelFileError as error:
        return LeftOut(path, origin, error.message, error.next_step)
    if name is None:
        found = _PART.fullmatch(path.name)
        name = found["stem"] if found else path.stem
    return FoundModel(path, name, origin, header)


def _gguf_files(place: Place) -> Iterator[tuple[str | None, Path | LeftOut]]:
    """The first files of all sets below a folder; a set without its first part is left out."""
    if _is_regular(place.path):
        yield None, place.path
        return
    for folder, names, problem in _walk(place.path):
        if problem:
            yield None, LeftOut(folder, place.origin, problem)
        here = set(names)
        for name in sorted(names):
            found = _PART.fullmatch(name)
            if found is None or int(found["index"]) == 1:
                yield None, folder / name
                continue
            first = f"{found['stem']}-00001-of-{found['count']}{name[-5:]}"
            if first not in here and name == min(each for each in here if _same_set(each, found)):
                reason = f"{name} is one of {int(found['count'])} parts, and the first is missing: {first}."
                yield None, LeftOut(folder / name, place.origin, reason, "Put all parts into one folder.")


def _same_set(name: str, part: re.Match[str]) -> bool:
    found = _PART.fullmatch(name)
    return found is not None and (found["stem"], found["count"]) == (part["stem"], part["count"])


def _walk(root: Path) -> Iterator[tuple[Path, list[str], str | None]]:
    """Folders with the names of their GGUF files, breadth first; a problem is told with the last one."""
    folders, visited, entries = [(root, 0)], set(), 0
    while folders:
        folder, depth = folders.pop(0)
        identity = _identity(folder)
        if identity is None or identity in visited:  # gone, closed, or a circle of links
            continue
        visited.add(identity)
        names, inner = [], []
        try:
            with os.scandir(folder) as listing:
                for entry in listing:
                    entries += 1
                    if entries > MAX_ENTRIES:
                        break
                    if entry.name.lower().endswith(".gguf") and _is_regular(Path(entry.path)):
                        names.append(entry.name)
                    elif depth < MAX_DEPTH and _is_folder(entry):
                        inner.append(Path(entry.path))
        except OSError:  # closed, or removed just now
            continue
        folders += [(path, depth + 1) for path in sorted(inner)]
        if entries > MAX_ENTRIES:
            yield folder, names, f"{root} has very many files: only the first {MAX_ENTRIES:,} were looked at."
            return
        yield folder, names, None


def _ollama_files(place: Place) -> Iterator[tuple[str | None, Path | LeftOut]]:
    """Ollama's manifests name a model's file by its hash: ``blobs/sha256-…``."""
    root = place.path / "manifests"
    try:
        manifests = sorted(path for path in root.glob("*/*/*/*") if _is_regular(path))
    except OSError:
        return
    for manifest in manifests[:MAX_MODELS]:
        digest = _model_digest(manifest)
        host, owner, model, tag = manifest.relative_to(root).parts
        if digest is None:
            continue
        name = f"{model}:{tag}" if owner == "library" else f"{owner}/{model}:{tag}"
        name = name if host == "registry.ollama.ai" else f"{host}/{name}"
        blob = place.path / "blobs" / f"sha256-{digest}"
        if _is_regular(blob):
            yield name, blob
        else:
            reason = f"Ollama's {name} is not here whole, or cannot be read."
            yield name, LeftOut(blob, place.origin, reason, f"Run: ollama pull {name}")


def _model_digest(manifest: Path) -> str | None:
    try:
        if manifest.stat().st_size > _MAX_MANIFEST_BYTES:
            return None
        content: Any = json.loads(manifest.read_bytes())
        layers = [layer for layer in content["layers"] if layer["mediaType"] == _MODEL_LAYER]
        found = _DIGEST.fullmatch(layers[0]["digest"])
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return None
    return found[1] if found else None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except (OSError, ValueError):
        return None
    return state.st_dev, state.st_ino


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _is_regular(path: Path) -> bool:
    """Whether it is a file that can be read: a pipe or a device could be waited for in vain."""
    try:
        return stat.S_ISREG(path.stat().st_mode) and os.access(path, os.R_OK)
    except (OSError, ValueError):
        return False
