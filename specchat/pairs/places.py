"""Where models may lie already: the folders of specchat and of other programs, and those that a person added."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from specchat.files import expanded

Origin: TypeAlias = Literal["models folder", "added", "Hugging Face cache", "LM Studio", "Ollama", "llama.cpp"]

_MAX_SETTINGS_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """A folder to look in, or a file that a person added.

    Attributes:
        origin: whose it is.
        path: the folder, or the file.
        is_ollama: it has Ollama's layout: manifests that name files after their hashes.
    """

    origin: Origin
    path: Path
    is_ollama: bool = False


def known_places(models_folder: Path, added: Iterable[str] = ()) -> list[Place]:
    """All places that exist, those of the person first.

    Args:
        models_folder: specchat's own.
        added: files and folders that the person added.
    """
    found = [Place("added", expanded(path)) for path in added]
    found.append(Place("models folder", models_folder))
    found += [Place("Hugging Face cache", _hub_cache())]
    found += [Place("LM Studio", folder) for folder in _lm_studio()]
    found += [Place("Ollama", folder, is_ollama=True) for folder in _ollama()]
    found += [Place("llama.cpp", folder) for folder in _llama_cpp()]
    unique = {place.path.absolute(): place for place in reversed(found) if _exists(place.path)}
    return list(reversed(unique.values()))


def _hub_cache() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def _lm_studio() -> Iterator[Path]:
    """LM Studio's home may have been moved, and its models once more."""
    homes = [Path.home() / ".lmstudio", Path.home() / ".cache" / "lm-studio"]
    pointer = _read(Path.home() / ".lmstudio-home-pointer").strip()
    if pointer:
        homes.insert(0, Path(pointer))
    for home in homes:
        yield home / "models"
        try:
            settings = json.loads(_read(home / "settings.json") or "{}")
        except (ValueError, RecursionError):
            continue
        folder = settings.get("downloadsFolder") if isinstance(settings, dict) else None
        if isinstance(folder, str) and folder:
            yield Path(folder)


def _ollama() -> Iterator[Path]:
    if named := os.environ.get("OLLAMA_MODELS", "").strip():
        yield Path(named)
    yield Path.home() / ".ollama" / "models"
    yield Path("/usr/share/ollama/.ollama/models")  # where its Linux service runs
    yield Path("/var/lib/ollama")


def _llama_cpp() -> Iterator[Path]:
    if named := os.environ.get("LLAMA_CACHE", "").strip():
        yield Path(named)
    if sys.platform == "darwin":
        yield Path.home() / "Library" / "Caches" / "llama.cpp"
    else:
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "llama.cpp"


def _read(path: Path) -> str:
    """A small text file; empty where there is none that can be read."""
    try:
        if not path.is_file() or path.stat().st_size > _MAX_SETTINGS_BYTES:
            return ""
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # no right to look, or a name that cannot be one
        return False
