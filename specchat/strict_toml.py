"""TOML files that people write: whatever is wrong is named, with its file, its key and the nearest known key."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from specchat.errors import ConfigError

_MAX_BYTES = 1 << 20

T = TypeVar("T")


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file.

    Raises:
        ConfigError: it cannot be read, is not UTF-8, is not TOML, or is too large to be a settings file.
    """
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ConfigError(f"{path} is larger than 1 MiB.", "It should be a short TOML file: check the path.")
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or error}."
        raise ConfigError(message, "Check the path and its rights.") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (byte {error.start}).", "Save it as UTF-8.") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.", "Correct that line, or remove the file.") from None


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is spelled most alike, if any is."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)), None)


def check_keys(table: Mapping[str, Any], known: Iterable[str], where: str, path: Path) -> None:
    """Refuses keys that are not known.

    Args:
        table: what was read.
        known: the keys that it may have.
        where: what the table is called in the file, "" for the top level.
        path: the file, for the message.

    Raises:
        ConfigError: it names the key and the nearest known one.
    """
    known = sorted(known)
    for key in table:
        if key not in known:
            place = f" in [{where}]" if where else ""
            alike = nearest(key, known)
            hint = f'Did you mean "{alike}"?' if alike else f"Known keys: {', '.join(known)}."
            raise ConfigError(f'{path}: unknown key "{key}"{place}.', hint)


def check_table(value: Any, where: str, path: Path) -> dict[str, Any]:
    """``value``, if it is a table.

    Raises:
        ConfigError: it is something else.
    """
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: [{where}] must be a table.", f"Write it as [{where}] with its keys below.")
    return value


def convert(table: Mapping[str, Any], kind: type[T], where: str, path: Path) -> T:
    """The table as a ``msgspec.Struct``: keys, types and limits are checked.

    Raises:
        ConfigError: it names the file, the table and the key.
    """
    known = [field.encode_name for field in msgspec.structs.fields(kind)]  # type: ignore[arg-type]
    check_keys(table, known, where, path)
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).partition(" - at `$")
        key = place.rstrip("`").lstrip(".")
        name = ".".join(part for part in (where, key) if part)
        raise ConfigError(f"{path}: {name}: {reason}.", "Correct that value.") from None
