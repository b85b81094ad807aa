"""Everything that can happen in a chat: what `LiveChat` tells the screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from specchat.chat.conversation import Message, ReplyPlace
from specchat.core.events import Event
from specchat.engine.interface import Loaded


@dataclass(frozen=True, slots=True)
class Progressed:
    """Loading, or reading a prompt, goes on."""


@dataclass(frozen=True, slots=True)
class PairLoaded:
    """A pair is ready."""

    loaded: Loaded


@dataclass(frozen=True, slots=True)
class ReplyBegan:
    """The engine was asked for a reply. ``question`` is the message that it answers, if it waited until now."""

    place: ReplyPlace
    question: Message | None = None


@dataclass(frozen=True, slots=True)
class Wrote:
    """An event of the reply that is being written."""

    event: Event


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    """The reply is over; ``message`` is None where not one token came. ``events`` end with `Finished`, or fail to."""

    place: ReplyPlace
    message: Message | None
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True)
class WentWrong:
    """Something failed, and what to do now."""

    message: str
    next_step: str


@dataclass(frozen=True, slots=True)
class Noted:
    """A sentence that a person should see about the reply that is being written."""

    text: str


Occurrence: TypeAlias = Progressed | PairLoaded | ReplyBegan | Wrote | ReplyEnded | Noted | WentWrong
