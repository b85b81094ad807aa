"""Reads the primitive values of a GGUF file, none larger than a limit and none beyond the end of the file."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeAlias

from specchat.errors import ModelFileError

MAX_STRING: Final = 64 * 2**20
MAX_KEY: Final = 2**16 - 1
MAX_ARRAY: Final = 2**24
MAX_READ_ARRAY: Final = 4096
"""Number arrays up to this length (one value a layer) are read; longer ones are skipped."""

DOWNLOAD_AGAIN: Final = "Download it again."
_NOT_A_MODEL: Final = "Give a file in the GGUF format (its name usually ends in .gguf)."

_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_STRING, _ARRAY = 8, 9
_SCALARS: Final[dict[int, struct.Struct]] = {
    code: struct.Struct(f"<{letter}")
    for code, letter in {
        0: "B",
        1: "b",
        2: "H",
        3: "h",
        4: "I",
        5: "i",
        6: "f",
        7: "?",
        10: "Q",
        11: "q",
        12: "d",
    }.items()
}
_CHUNK: Final = 2**20
_OTHER_KINDS: Final = (
    (b"lmgg", "an old GGML file"),
    (b"fmgg", "an old GGML file"),
    (b"tjgg", "an old GGML file"),
    (b"version https://git-lfs", "a Git LFS pointer: only the note about the file, not the file"),
    (b"<!DOCTYPE", "a web page"),
    (b"<html", "a web page"),
    (b"PK\x03\x04", "a zip archive or a PyTorch checkpoint"),
    (b"Entry not found", "an error message of a download site"),
)


@dataclass(frozen=True, slots=True)
class ArrayReference:
    """An array that was skipped: where it is, and how many values of which type it holds."""

    kind: int
    count: int
    offset: int

    @property
    def holds_strings(self) -> bool:
        """Whether its values are strings."""
        return self.kind == _STRING


Value: TypeAlias = int | float | bool | str | tuple[int | float | bool, ...] | ArrayReference


class Reader:
    """A GGUF file, read from the front in chunks. Every read is checked against the file's length first.

    Raises:
        ModelFileError: the file cannot be opened, is empty, is a folder, or ends before a value does.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            if path.is_dir():
                raise ModelFileError(f"{path} is a folder, not a model file.", "Name the .gguf file inside it.")
            self.size = path.stat().st_size
            self._file = path.open("rb")
        except FileNotFoundError:
            raise ModelFileError(
                f"There is no file {path}.", "Check the path, or fetch a model with `specchat pull`."
            ) from None
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "strerror", None) or problem
            raise ModelFileError(f"{path} cannot be read: {reason}.", "Check the path and its permissions.") from None
        self._data = bytearray()
        self._start = 0  # where in the file _data begins
        self.position = 0
        if self.size == 0:
            self.close()
            raise ModelFileError(f"{path} is empty.", DOWNLOAD_AGAIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def malformed(self, what: str) -> ModelFileError:
        """The error for a file that breaks the format's rules."""
        return ModelFileError(f"{self.path.name} is malformed: {what}.", DOWNLOAD_AGAIN)

    def truncated(self, needed: int) -> ModelFileError:
        """The error for a file that is shorter than it says."""
        return ModelFileError(
            f"{self.path.name} is incomplete: it has {self.size:,} bytes and needs at least {needed:,}.",
            DOWNLOAD_AGAIN,
        )

    def magic(self) -> None:
        """Reads the four bytes that every GGUF file begins with."""
        beginning = self.raw(min(64, self.size))
        self.position = 4
        if beginning[:4] == b"GGUF":
            return
        looks = next((kind for start, kind in _OTHER_KINDS if beginning.startswith(start)), None)
        if looks is None and beginning[8:10] == b'{"':
            looks = "a safetensors file"
        raise ModelFileError(
            f"{self.path.name} is not a GGUF file{f'; it looks like {looks}' if looks else ''}.", _NOT_A_MODEL
        )

    def seek(self, offset: int) -> None:
        """Goes on reading at ``offset``."""
        self._data.clear()
        self._start = self.position = offset
        self._file.seek(offset)

    def raw(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        begin = self._index(count)
        self.position += count
        return bytes(self._data[begin : begin + count])

    def u32(self) -> int:
        """The next unsigned 32-bit number."""
        return self._number(_U32)

    def u64(self) -> int:
        """The next unsigned 64-bit number."""
        return self._number(_U64)

    def string(self, limit: int = MAX_STRING) -> bytes:
        """The next string, as it stands in the file."""
        length = self.u64()
        if length > limit:
            raise self.malformed(f"a text of {length:,} bytes, where {limit:,} is the limit")
        return self.raw(length)

    def value(self) -> Value:
        """The next metadata value, its type included. Long arrays and arrays of strings are skipped."""
        kind = self.u32()
        if kind in _SCALARS:
            number: int | float | bool = self._number(_SCALARS[kind])
            return number
        if kind == _STRING:
            return self.string().decode("utf-8", "replace")
        if kind == _ARRAY:
            return self._array()
        raise self.malformed(f"a value of type {kind}, which does not exist")

    def strings(self, array: ArrayReference) -> list[bytes]:
        """The strings of an array that was skipped."""
        self.seek(array.offset)
        self._skip_strings(array.count)  # checks them, and leaves them in the buffer
        found, at, unpack = [], 0, _U64.unpack_from
        for _ in range(array.count):
            end = at + 8 + unpack(self._data, at)[0]
            found.append(bytes(self._data[at + 8 : end]))
            at = end
        return found

    def numbers(self, array: ArrayReference) -> tuple[int | float | bool, ...]:
        """The numbers of an array that was skipped."""
        self.seek(array.offset)
        return self._numbers(array.kind, array.count)

    def _array(self) -> Value:
        kind, count = self.u32(), self.u64()
        if count > MAX_ARRAY:
            raise self.malformed(f"an array of {count:,} values, where {MAX_ARRAY:,} is the limit")
        reference = ArrayReference(kind, count, self.position)
        if kind == _STRING:
            self._skip_strings(count)
            return reference
        if kind not in _SCALARS:
            raise self.malformed(f"an array of type {kind}")
        if count <= MAX_READ_ARRAY:
            return self._numbers(kind, count)
        self._index(count * _SCALARS[kind].size)
        self.position += count * _SCALARS[kind].size
        return reference

    def _numbers(self, kind: int, count: int) -> tuple[int | float | bool, ...]:
        content = self.raw(count * _SCALARS[kind].size)
        return tuple(number for (number,) in _SCALARS[kind].iter_unpack(content))

    def _skip_strings(self, count: int) -> None:
        """Goes past ``count`` strings. A loop without calls: vocabularies have some 300,000 of them."""
        unpack, at, end = _U64.unpack_from, self.position - self._start, len(self._data)
        for _ in range(count):
            if at + 8 > end:
                self.position = self._start + at
                self._index(8)
                at, end = self.position - self._start, len(self._data)
            (length,) = unpack(self._data, at)
            if length > MAX_STRING:
                raise self.malformed(f"a text of {length:,} bytes, where {MAX_STRING:,} is the limit")
            at += 8 + length
        self.position = self._start + at
        self._index(0)

    def _number(self, form: struct.Struct) -> int:
        begin = self._index(form.size)
        self.position += form.size
        number: int = form.unpack_from(self._data, begin)[0]
        return number

    def _index(self, count: int) -> int:
        """Where in the buffer the next ``count`` bytes begin, after reading as much of the file as they need."""
        end = self.position + count
        if end > self.size:
            raise self.truncated(end)
        missing = end - self._start - len(self._data)
        if missing > 0:
            self._data += self._file.read(max(missing, _CHUNK))
            if end - self._start > len(self._data):
                raise self.truncated(end)  # the file became shorter while it was read
        return self.position - self._start
