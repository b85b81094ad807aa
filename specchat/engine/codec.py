"""Commands and messages as lines of JSON: what crosses the pipe between `process` and `child`.

One record a line: ``{"record": "Load", "target": …}``. Events inside a `ReplyEvent` use the one encoding of
`specchat.core.events`. Any text survives, lone surrogates included, which are written as escapes; infinities (a banned
token's bias) are written as Python's `json` writes them, since both ends are ours.
"""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec

from specchat.core.events import from_json, to_json
from specchat.engine.interface import Command, Message, ReplyEvent

_COMMANDS: dict[str, type] = {kind.__name__: kind for kind in get_args(Command)}
_MESSAGES: dict[str, type] = {kind.__name__: kind for kind in get_args(Message)}


def encode_command(command: Command) -> bytes:
    """The command as one line, with its newline."""
    return _line(type(command).__name__, msgspec.to_builtins(command))


def decode_command(line: bytes) -> Command:
    """The command that `encode_command` wrote.

    Raises:
        ValueError: the line is not a command.
    """
    command: Command = _record(*_parts(line), _COMMANDS)
    return command


def encode_message(message: Message) -> bytes:
    """The message as one line, with its newline."""
    if isinstance(message, ReplyEvent):
        return _event_line({"reply": message.reply, "event": to_json(message.event)})
    return _line(type(message).__name__, msgspec.to_builtins(message))


def decode_message(line: bytes) -> Message:
    """The message that `encode_message` wrote.

    Raises:
        ValueError: the line is not a message.
    """
    kind, data = _parts(line)
    if kind == "ReplyEvent":
        try:
            return ReplyEvent(int(data["reply"]), from_json(data["event"]))
        except (KeyError, TypeError) as problem:
            raise ValueError(f"not a reply's event: {problem}") from problem
    message: Message = _record(kind, data, _MESSAGES)
    return message


def _event_line(data: dict[str, Any]) -> bytes:
    """As `_line`, and ten times faster: there is one in every round. Events hold finite numbers only."""
    try:
        return msgspec.json.encode({"record": "ReplyEvent"} | data) + b"\n"
    except UnicodeEncodeError:  # a lone surrogate
        return _line("ReplyEvent", data)


def _line(kind: str, data: dict[str, Any]) -> bytes:
    return json.dumps({"record": kind} | data, separators=(",", ":")).encode("ascii") + b"\n"


def _parts(line: bytes) -> tuple[str, dict[str, Any]]:
    data = json.loads(line)
    if not isinstance(data, dict) or not isinstance(data.get("record"), str):
        raise ValueError("a line that names no record")
    return data.pop("record"), data


def _record(kind: str, data: dict[str, Any], kinds: dict[str, type]) -> Any:
    if kind not in kinds:
        raise ValueError(f"unknown record: {kind!r}")
    # msgspec.ValidationError is a ValueError
    return msgspec.convert(data, kinds[kind], str_keys=True)
