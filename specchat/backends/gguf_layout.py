"""Where the entries and tensors of a GGUF file stand, byte by byte, so that another file can be made of them.

Everything is copied as it is, whatever its type, and only what must change is written anew.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specchat.backends.gguf_reader import MAX_KEY, Reader
from specchat.backends.gguf_tables import TENSOR_TYPES
from specchat.errors import ModelFileError

MAGIC, VERSION = b"GGUF", 3
_UINT32, _BOOL, _STRING, _ARRAY = 4, 7, 8, 9
_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_ARRAY_HEAD = struct.Struct("<IIQ")


@dataclass(frozen=True, slots=True)
class RawEntry:
    """A metadata entry: its key, and the bytes of its value with the type in front."""

    key: str
    value: bytes

    @property
    def encoded(self) -> bytes:
        """As it stands in a file."""
        name = self.key.encode("utf-8")
        return struct.pack("<Q", len(name)) + name + self.value


@dataclass(frozen=True, slots=True)
class RawTensor:
    """A tensor: its description, and where in which file its bytes are."""

    name: str
    shape: tuple[int, ...]
    kind: int
    n_bytes: int
    path: Path
    begin: int

    def encoded(self, name: str, offset: int) -> bytes:
        """Its description in a file that calls it ``name`` and has its bytes at ``offset`` of the data."""
        text = name.encode("utf-8")
        shape = struct.pack(f"<I{len(self.shape)}Q", len(self.shape), *self.shape)
        return struct.pack("<Q", len(text)) + text + shape + struct.pack("<IQ", self.kind, offset)


@dataclass(frozen=True, slots=True)
class Layout:
    """A file's entries and tensors, in their order, and on which multiples of bytes tensors begin."""

    entries: tuple[RawEntry, ...]
    tensors: tuple[RawTensor, ...]
    alignment: int


def read_layout(path: Path) -> Layout:
    """Where everything stands. `gguf_header.read_header` must have accepted the file.

    Raises:
        ModelFileError: it cannot be read, or a tensor is of a type that is not known here.
    """
    with Reader(path) as reader:
        reader.magic()
        reader.u32()
        n_tensors, n_entries = reader.u64(), reader.u64()
        alignment, spans = 32, []
        for _ in range(n_entries):
            key = reader.string(MAX_KEY).decode("utf-8", "replace")
            begin = reader.position
            value = reader.value()
            spans.append((key, begin, reader.position))
            if key == "general.alignment" and isinstance(value, int):
                alignment = value
        described = [_describe(reader) for _ in range(n_tensors)]
        data = aligned(reader.position, alignment)
        tensors = tuple(
            RawTensor(name, shape, kind, _n_bytes(path, name, shape, kind), path, data + offset)
            for name, shape, kind, offset in described
        )
        entries = []
        for key, begin, end in spans:
            reader.seek(begin)
            entries.append(RawEntry(key, reader.raw(end - begin)))
        return Layout(tuple(entries), tensors, alignment)


def aligned(position: int, alignment: int) -> int:
    """The next multiple of ``alignment`` that is not before ``position``."""
    return -(-position // alignment) * alignment


def number_entry(key: str, number: int) -> RawEntry:
    """An entry with a whole number (uint32)."""
    return RawEntry(key, struct.pack("<II", _UINT32, number))


def text_entry(key: str, text: str) -> RawEntry:
    """An entry with a text."""
    content = text.encode("utf-8")
    return RawEntry(key, struct.pack("<IQ", _STRING, len(content)) + content)


def flags_entry(key: str, flags: Sequence[bool]) -> RawEntry:
    """An entry with an array of booleans."""
    return RawEntry(key, _ARRAY_HEAD.pack(_ARRAY, _BOOL, len(flags)) + bytes(flags))


def picked(entry: RawEntry, indices: Sequence[int]) -> RawEntry:
    """An array entry with only the values at ``indices``, each as it was."""
    _, kind, _ = _ARRAY_HEAD.unpack_from(entry.value)
    size, begin = _SIZES[kind], _ARRAY_HEAD.size
    values = (entry.value[begin + index * size : begin + (index + 1) * size] for index in indices)
    return RawEntry(entry.key, _ARRAY_HEAD.pack(_ARRAY, kind, len(indices)) + b"".join(values))


def array_length(entry: RawEntry) -> int | None:
    """How many numbers or booleans an entry holds; None where it is no array of such."""
    if len(entry.value) < _ARRAY_HEAD.size:
        return None
    kind, item, count = _ARRAY_HEAD.unpack_from(entry.value)
    return count if kind == _ARRAY and item in _SIZES else None


def _describe(reader: Reader) -> tuple[str, tuple[int, ...], int, int]:
    name = reader.string().decode("utf-8", "replace")
    shape = tuple(reader.u64() for _ in range(reader.u32()))
    return name, shape, reader.u32(), reader.u64()


def _n_bytes(path: Path, name: str, shape: tuple[int, ...], kind: int) -> int:
    if kind not in TENSOR_TYPES:
        raise ModelFileError(
            f"{path.name} stores {name!r} in a way that this specchat does not know.", "Look for a newer specchat."
        )
    _, block, block_bytes = TENSOR_TYPES[kind]
    return math.prod(shape) // block * block_bytes
