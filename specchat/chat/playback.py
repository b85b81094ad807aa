"""A recorded chat as it happened: what was shown when. Plain data, without a clock and without a screen.

A question, each round of a reply and the end of a reply are *steps*. A round's step lies where the round ended, and its
parts (drafted, then verified, then committed) lie before it as long as they took, so that the three phases can be seen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from specchat.chat.conversation import Conversation, Message
from specchat.core.events import Event, Round

_READING_SECONDS = 1.0
"""After a question and after a reply, so that a person sees what is going on."""


class Phase(IntEnum):
    """How much of a round has happened."""

    DRAFTING = 0
    """Nothing of it is known yet."""
    DRAFTED = 1
    """The draft is there; the target has not looked at it."""
    VERIFIED = 2
    """Each drafted token has been judged."""
    CORRECTED = 3
    """What the round brings has been committed: the step is done."""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that happened.

    Attributes:
        message: in which message.
        at: when it was over, in seconds from the beginning.
        events: of a reply, everything up to this step that came after the one before.
        ends: whether the message is complete with it.
    """

    message: Message
    at: float
    events: tuple[Event, ...] = ()
    ends: bool = False

    @property
    def round(self) -> Round | None:
        """The round that it is; None for a question and for the end of a reply."""
        last = self.events[-1] if self.events and not self.ends else None
        return last if isinstance(last, Round) else None


class Playback:
    """The current branch of a conversation, from its first question to its last reply.

    A *position* is the number of steps that are done.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.steps: tuple[Step, ...] = tuple(_steps(conversation))
        self._times = [step.at for step in self.steps]

    @property
    def duration(self) -> float:
        """Seconds until the last step is done."""
        return self._times[-1] if self._times else 0.0

    def position_at(self, seconds: float) -> int:
        """How many steps are done at a moment."""
        return bisect_right(self._times, seconds)

    def time_of(self, position: int) -> float:
        """The moment at which so many steps are done."""
        return self._times[position - 1] if position else 0.0

    def following(self, position: int) -> Step | None:
        """The step that comes next; None at the end."""
        return self.steps[position] if position < len(self.steps) else None

    def phase_at(self, seconds: float) -> Phase:
        """How much of the round that comes next has happened at a moment."""
        step = self.following(self.position_at(seconds))
        played = None if step is None else step.round
        if step is None or played is None:
            return Phase.DRAFTING
        verified = step.at - played.seconds.sample - played.seconds.other
        if seconds >= verified:
            return Phase.VERIFIED
        return Phase.DRAFTED if seconds >= verified - played.seconds.verify else Phase.DRAFTING

    def question_before(self, position: int) -> int:
        """The position at which the question stands that is being answered, or the one before it at its beginning."""
        asked = [number for number, step in enumerate(self.steps[: max(0, position - 1)], 1) if _is_question(step)]
        return asked[-1] if asked else 0

    def question_after(self, position: int) -> int:
        """The position at which the next question stands; the end where there is none."""
        later = enumerate(self.steps[position:], position + 1)
        return next((number for number, step in later if _is_question(step)), len(self.steps))

    def before_round(self, played: Round) -> int | None:
        """The position right before one of its rounds; None where that is no part of it."""
        return next((number for number, step in enumerate(self.steps) if step.round is played), None)

    def before_round_of(self, message_id: int, number: int) -> int | None:
        """The position right before the round of that number (0, 1, …) of a message; None where there is none."""
        rounds = [place for place, step in enumerate(self.steps) if step.round and step.message.id == message_id]
        return rounds[number] if number < len(rounds) else None


def _is_question(step: Step) -> bool:
    return step.message.role == "user"


def _steps(conversation: Conversation) -> Iterator[Step]:
    now = 0.0
    for message in conversation.messages:
        if message.role == "user":
            yield Step(message, now, ends=True)
            now += _READING_SECONDS
            continue
        began = now
        for part in conversation.parts(message.id):
            for at, events in _rounds(part.events):
                now = max(now, began + at)
                yield Step(message, now, events)
            began = now
        yield Step(message, now, _trailing(conversation.events(message.id)), ends=True)
        now += _READING_SECONDS


def _rounds(events: Sequence[Event]) -> Iterator[tuple[float, tuple[Event, ...]]]:
    """The rounds of a reply, each with what came before it, and when it ended."""
    before: list[Event] = []
    for event in events:
        before.append(event)
        if isinstance(event, Round):
            yield event.at, tuple(before)
            before = []


def _trailing(events: Sequence[Event]) -> tuple[Event, ...]:
    """What came after the last round."""
    last = next((number for number in range(len(events) - 1, -1, -1) if isinstance(events[number], Round)), -1)
    return tuple(events[last + 1 :])
