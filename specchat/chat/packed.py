"""Rounds of a long chat in little memory: what the distributions looked like is packed, and unpacked when looked at.

The details of a round are a hundred small objects, 8 kB a token; packed they are a tenth of that.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar, overload

import msgspec

from specchat.core.events import Event, PositionDetail, Round, details_from_json, details_to_json

_AnyEvent = TypeVar("_AnyEvent", bound=Event)
_QUICKLY = 1


class PackedDetails(Sequence[PositionDetail]):
    """`Round.details`, packed. It is equal to what was packed, and nothing is lost."""

    __slots__ = ("_length", "_packed")

    def __init__(self, details: Sequence[PositionDetail]) -> None:
        self._length = len(details)
        self._packed = zlib.compress(_encoded(details), _QUICKLY)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> PositionDetail: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[PositionDetail, ...]: ...
    def __getitem__(self, index: int | slice) -> PositionDetail | tuple[PositionDetail, ...]:
        return self._unpacked()[index]

    def __iter__(self) -> Iterator[PositionDetail]:
        return iter(self._unpacked())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple | PackedDetails) and self._unpacked() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._unpacked())

    def _unpacked(self) -> tuple[PositionDetail, ...]:
        return details_from_json(json.loads(zlib.decompress(self._packed)))


def packed(event: _AnyEvent) -> _AnyEvent:
    """The event; a round with its details packed."""
    if isinstance(event, Round) and event.details is not None and not isinstance(event.details, PackedDetails):
        return replace(event, details=PackedDetails(event.details))
    return event


def _encoded(details: Sequence[PositionDetail]) -> bytes:
    data = details_to_json(details)
    with contextlib.suppress(UnicodeEncodeError):  # half a character
        return msgspec.json.encode(data)
    return json.dumps(data).encode()
