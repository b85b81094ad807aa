"""Names that come from a catalogue or a repository and become paths, addresses or arguments: all are checked.

A file name from a catalogue is a plain name in the models folder. Everything that could lead elsewhere (folders,
drives, network shares, devices) or be read as something else (options, addresses, invisible characters) is refused,
on every system alike, so that a catalogue that works on one works on all.
"""

from __future__ import annotations

import re
import unicodedata

from specchat.errors import ModelFileError

_DEVICES = {"con", "prn", "aux", "nul", "clock$", "conin$", "conout$"} | {
    f"{device}{digit}" for device in ("com", "lpt") for digit in "0123456789¹²³"
}
_FORBIDDEN = set('/\\:<>"|?*')
_HIDDEN_KINDS = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # controls, invisible, halves of characters, line ends
_MAX_NAME_BYTES = 200  # file systems allow 255; the working files beside it have longer names

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}")
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_VERSION = re.compile(r"[0-9][0-9A-Za-z.!+_-]{0,63}")
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_COUNTED = re.compile(r"\{(\d{1,4})\.\.(\d{1,4})\}")
_SHARD = re.compile(r"(?P<stem>.+)-(?P<index>\d{5})-of-(?P<count>\d{5})\.gguf", re.IGNORECASE)
_MAX_PACKAGES = 1000


def wrong_file_name(name: str) -> str | None:
    """Why ``name`` cannot be a model's file name in the models folder; None where it can."""
    if not name or len(name.encode("utf-8", "surrogatepass")) > _MAX_NAME_BYTES:
        return "is empty or too long"
    if bad := sorted(_FORBIDDEN & set(name)):
        return f"has {bad[0]!r} in it; it must be a plain name, without folders"
    if any(unicodedata.category(character) in _HIDDEN_KINDS for character in name):
        return "has an invisible or control character in it"
    if name[0] in ".-~ " or name[-1] in ". ":
        return "begins or ends with a dot, a space, a dash or a tilde"
    if name.split(".")[0].rstrip().casefold() in _DEVICES:
        return "is the name of a device on some systems"
    if not name.casefold().endswith(".gguf"):
        return 'does not end in ".gguf"'
    return None


def wrong_repository(name: str) -> str | None:
    """Why ``name`` cannot be a repository of the hub; None where it can."""
    if not _REPOSITORY.fullmatch(name) or ".." in name or "--" in name:
        return "is not of the form OWNER/NAME"
    return None


def wrong_revision(name: str) -> str | None:
    """Why ``name`` cannot be a branch, tag or commit; None where it can."""
    if not _REVISION.fullmatch(name) or ".." in name or "//" in name:
        return "is not a branch, tag or commit"
    return None


def wrong_version(version: str) -> str | None:
    """Why ``version`` cannot be a package's version; None where it can."""
    return None if _VERSION.fullmatch(version) else "is not a version"


def wrong_member(pattern: str) -> str | None:
    """Why ``pattern`` cannot name a file inside a wheel; None where it can."""
    parts = pattern.split("/")
    if not pattern or "\\" in pattern or any(part in ("", ".", "..") for part in parts):
        return "is not a relative path with / between its parts"
    return None


def wrong_key(key: str) -> str | None:
    """Why ``key`` cannot name a model or a pair; None where it can."""
    return None if _KEY.fullmatch(key) else "may have letters, digits, dots, dashes and underscores only"


def package_names(pattern: str) -> tuple[str, ...]:
    """The packages that ``pattern`` stands for: ``name-part{1..22}`` is twenty-two of them, in order.

    Raises:
        ValueError: it is no package name, or it counts in a way that is not understood.
    """
    found = _COUNTED.search(pattern)
    if found is None:
        names = [pattern]
    else:
        first, last = int(found[1]), int(found[2])
        if not first <= last < first + _MAX_PACKAGES:
            raise ValueError(f"{pattern!r} must count upwards, to at most {_MAX_PACKAGES} packages")
        names = [pattern[: found.start()] + str(number) + pattern[found.end() :] for number in range(first, last + 1)]
    if not all(_PACKAGE.fullmatch(name) for name in names):
        raise ValueError(f"{pattern!r} is not the name of a package")
    return tuple(names)


def shard_names(name: str) -> tuple[str, ...]:
    """All files of a model that is split as ``…-00001-of-00003.gguf``, in order; else just ``name`` itself.

    Raises:
        ModelFileError: the numbers make no sense, or ``name`` is not the first of its set.
    """
    found = _SHARD.fullmatch(name)
    if found is None:
        return (name,)
    index, count = int(found["index"]), int(found["count"])
    if not 1 <= index <= count <= _MAX_PACKAGES:
        raise ModelFileError(f"{name} is part {index} of {count}.", "Check the file's name.")
    names = tuple(f"{found['stem']}-{number:05}-of-{count:05}{name[-5:]}" for number in range(1, count + 1))
    if index != 1:
        raise ModelFileError(f"{name} is part {index} of a split model.", f"Name its first part: {names[0]}")
    return names
