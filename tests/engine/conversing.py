"""What the engine's tests share: talking with an engine until something has happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from specchat.core.events import Event, Finished, Round
from specchat.core.sampling import SamplingParams
from specchat.core.settings import ChatMessage, ReplySettings
from specchat.engine.interface import Engine, Failed, Load, Message, Reply, ReplyEvent

PATIENCE = 60.0
"""Seconds after which something hangs. Nothing here is measured in time."""

LOAD = Load("toy", "toy-draft")
PLAIN_SAMPLING = SamplingParams(temperature=1, top_k=0, top_p=1, min_p=0)

_Kind = TypeVar("_Kind")


def settings(**changes: Any) -> ReplySettings:
    values: dict[str, Any] = {"sampling": PLAIN_SAMPLING, "rule": "token", "max_tokens": 24, "seed": 7}
    return ReplySettings(**(values | changes))


def reply(number: int = 1, text: str = "abc", the_settings: ReplySettings | None = None, **options: Any) -> Reply:
    return Reply(number, (ChatMessage("user", text),), the_settings or settings(), **options)


def until(engine: Engine, found: Callable[[Message], bool]) -> list[Message]:
    """Everything received, up to the message that was looked for."""
    messages: list[Message] = []
    while True:
        message = engine.receive(PATIENCE)
        assert message is not None, f"nothing more came after {messages[-3:]}"
        messages.append(message)
        if found(message):
            return messages


def until_kind(engine: Engine, *kinds: type[_Kind]) -> _Kind:
    """The first message of one of these kinds; fails where a `Failed` that was not asked for comes first."""

    def found(message: Message) -> bool:
        assert not isinstance(message, Failed) or Failed in kinds, message
        return isinstance(message, kinds)

    last = until(engine, found)[-1]
    assert isinstance(last, kinds)
    return last


def events_of(engine: Engine, number: int) -> list[Event]:
    """The events of that reply, up to its end."""
    messages = until(engine, lambda message: ended(message, number))
    assert not isinstance(messages[-1], Failed), messages[-1]
    return [message.event for message in messages if isinstance(message, ReplyEvent) and message.reply == number]


def ended(message: Message, number: int) -> bool:
    if isinstance(message, ReplyEvent):
        return message.reply == number and isinstance(message.event, Finished)
    return isinstance(message, Failed) and message.reply in (number, None)


def is_round(message: Message) -> bool:
    return isinstance(message, ReplyEvent) and isinstance(message.event, Round)


def rounds(events: list[Event]) -> list[Round]:
    return [event for event in events if isinstance(event, Round)]


def written(events: list[Event]) -> list[int]:
    return [token.id for event in rounds(events) for token in event.committed]
