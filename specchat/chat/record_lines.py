"""The format of a record: one JSON object a line, its kind under ``"event"``.

| event | what it says |
|---|---|
| ``header`` | first line: format, when, which specchat and llama.cpp, pair with files and hashes, settings, seed, system message |
| ``message`` | role, id, parent, text; of a reply also its token ids, and the reply that it continues |
| ``reply`` | a reply is being written: its id, its parent, and the reply that it continues |
| ``prefill``, ``plain_speed``, ``round``, ``finished`` | `specchat.core.events`, and under ``"reply"`` which reply |
| ``settings``, ``pair``, ``system`` | something was changed, for the replies that follow |
| ``head`` | another branch is looked at; ``"id"`` is its last message, null for none |
| ``delete`` | a message and everything below it were deleted |
| ``clear`` | all messages were deleted |

Keys that are not known are ignored, so that a newer specchat can add some; a change of meaning changes the format's
number. Characters that a terminal would obey are escaped, so a record can be looked at with any tool.
"""  # noqa: E501 - a table

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from specchat.chat.conversation import Author, Message, ReplyPlace
from specchat.core.events import Event, from_json, to_json
from specchat.core.safe_text import safe_json
from specchat.core.settings import ReplySettings

FORMAT = 1

Kind = TypeVar("Kind")


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model of a pair: its name, its file's name without folders, and the file's SHA-256 where it is known."""

    name: str
    file: str
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class PairFiles:
    """The pair that writes the replies. ``draft`` is None where there is no draft model."""

    name: str
    target: ModelFile
    draft: ModelFile | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """How a chat began. ``created`` is an ISO 8601 time, ``build`` names llama.cpp's version."""

    format: int = field(default=FORMAT, kw_only=True)
    pair: PairFiles | None = None
    settings: ReplySettings = field(default_factory=ReplySettings)
    seed: int | None = None
    system: str = ""
    created: str = ""
    build: str = ""
    specchat: str = ""


@dataclass(frozen=True, slots=True)
class MessageLine:
    """What a ``message`` line holds."""

    role: Author
    id: int
    parent: int | None
    text: str
    token_ids: tuple[int, ...] | None = None
    continues: int | None = None


@dataclass(frozen=True, slots=True)
class ReplyLine:
    """What a ``reply`` line holds."""

    reply: int
    parent: int | None
    continues: int | None = None


@dataclass(frozen=True, slots=True)
class FormatLine:
    """What can be read of a ``header`` line of any format."""

    format: int


@dataclass(frozen=True, slots=True)
class EventLine:
    """What the line of an event holds beside the event."""

    reply: int


@dataclass(frozen=True, slots=True)
class SystemLine:
    """What a ``system`` line holds."""

    text: str


@dataclass(frozen=True, slots=True)
class HeadLine:
    """What a ``head`` line holds."""

    id: int | None


@dataclass(frozen=True, slots=True)
class DeleteLine:
    """What a ``delete`` line holds."""

    id: int


def encode(event: str, values: Mapping[str, Any]) -> bytes:
    """One line, with its newline."""
    return _line({"event": event} | dict(values))


def encode_record(event: str, record: Any) -> bytes:
    """One line from a frozen record of plain values."""
    return encode(event, msgspec.to_builtins(record))


def encode_message(message: Message) -> bytes:
    """The line of a message. Its events have lines of their own."""
    line = MessageLine(message.role, message.id, message.parent, message.content, message.token_ids, message.continues)
    absent = {name for name in ("token_ids", "continues") if getattr(line, name) is None}
    return encode("message", {name: value for name, value in msgspec.to_builtins(line).items() if name not in absent})


def encode_place(place: ReplyPlace) -> bytes:
    """The line that says that a reply is being written."""
    return encode_record("reply", ReplyLine(place.id, place.parent, place.continues))


def encode_event(reply: int, event: Event) -> bytes:
    """The line of something that happened in a reply."""
    values = to_json(event) | {"reply": reply}
    with contextlib.suppress(UnicodeEncodeError):  # half a character, in a text that was cut
        return safe_json(msgspec.json.encode(values).decode()).encode() + b"\n"  # ten times faster; one a round
    return _line(values)


def decode(line: bytes) -> dict[str, Any]:
    """The JSON object of a line.

    Raises:
        ValueError: it is damaged.
    """
    try:
        values = _parsed(line)
    except RecursionError as problem:
        raise ValueError("nested too deeply") from problem
    if not isinstance(values, dict) or not isinstance(values.get("event"), str):
        raise ValueError("not a line of a record")
    return values


def decode_record(values: Mapping[str, Any], kind: type[Kind]) -> Kind:
    """The record that `encode_record` wrote.

    Raises:
        ValueError: something is missing or of the wrong type.
    """
    return msgspec.convert(values, kind, str_keys=True)  # its ValidationError is a ValueError


def decode_event(values: dict[str, Any]) -> tuple[int, Event]:
    """The reply's id, and what happened in it. Every field has the type that it should have.

    Raises:
        ValueError: something is missing or of the wrong type.
    """
    return decode_record(values, EventLine).reply, from_json(values)


def _line(values: Mapping[str, Any]) -> bytes:
    return safe_json(json.dumps(values, ensure_ascii=False, separators=(",", ":"))).encode() + b"\n"


def _parsed(line: bytes) -> Any:
    with contextlib.suppress(msgspec.DecodeError):  # it knows no half characters and no infinities
        return msgspec.json.decode(line)
    return json.loads(line.decode("utf-8"))
