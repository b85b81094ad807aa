"""An engine without models: it answers with rounds that a test writes down.

A round is written as words with their fates: ``round_of("The|a sky|a colors|x wave|r")``. The letters are a
(accepted), x (rejected), i (ignored), r (resampled), b (bonus), p (plain); everything before a bar is the token's
text, as it is.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from specchat.core.events import (
    Candidate,
    CommittedToken,
    DraftedToken,
    Event,
    Fate,
    PlainSpeed,
    PositionDetail,
    Prefill,
    Round,
    RoundSeconds,
)
from specchat.core.settings import DEFAULT_RULE
from specchat.core.stats import ReplyStats
from specchat.engine.interface import (
    Command,
    Device,
    DeviceList,
    Devices,
    Failed,
    Load,
    Loaded,
    LoadProgress,
    Message,
    ModelDescription,
    Reply,
    ReplyEvent,
    Stop,
)

FATES = {
    "a": Fate.ACCEPTED,
    "x": Fate.REJECTED,
    "i": Fate.IGNORED,
    "r": Fate.RESAMPLED,
    "b": Fate.BONUS,
    "p": Fate.PLAIN,
}
PLAIN = PlainSpeed(29.9, 8, "8 plain steps before this reply")
_TOKEN = re.compile(r"(.*?)\|([axirbp])", re.DOTALL)


def round_of(
    script: str, index: int = 0, rule: str = DEFAULT_RULE, why: str | None = None, details: bool = True
) -> Round:
    """A round of these tokens; its times and probabilities follow from its index."""
    tokens = [(text, FATES[letter]) for text, letter in _TOKEN.findall(script)]
    drafted, committed = [], []
    for place, (text, fate) in enumerate(tokens):
        raw = text.encode()
        p, q = 0.9 - 0.11 * place, 0.8 - 0.05 * ((place + index) % 5)
        if fate is Fate.REJECTED:
            p, q = 0.18, 0.62
        if fate in (Fate.ACCEPTED, Fate.REJECTED, Fate.IGNORED):
            threshold = min(1.0, p / q)
            draw = threshold * 0.6 if fate is Fate.ACCEPTED else min(0.99, threshold + 0.42)
            drafted.append(DraftedToken(1000 + place, raw, text, "draft", q, p, threshold, draw, fate))
        if fate not in (Fate.REJECTED, Fate.IGNORED):
            committed.append(CommittedToken(1000 + place, raw, text, fate, p))
    seconds = RoundSeconds(0.012 * len(drafted), 0.034 + 0.002 * len(drafted), 0.0021, 0.0009)
    return Round(
        index=index,
        at=0.2 + 0.06 * index,
        rule=rule if drafted else "plain",
        num_draft_tokens=len(drafted),
        drafted=tuple(drafted),
        committed=tuple(committed),
        seconds=seconds,
        why=why,
        details=_details(committed, drafted, rule) if details else None,
    )


def _details(
    committed: Sequence[CommittedToken], drafted: Sequence[DraftedToken], rule: str
) -> tuple[PositionDetail, ...]:
    return tuple(_detail(committed, drafted, rule, place) for place in range(len(drafted) + 1))


def _detail(
    committed: Sequence[CommittedToken], drafted: Sequence[DraftedToken], rule: str, place: int
) -> PositionDetail:
    own = committed[-1].text if committed else "?"
    here = drafted[place].text if place < len(drafted) else own
    residual = (Candidate(1, own, 0.55), Candidate(2, " hues", 0.17), Candidate(3, " parts", 0.11))
    p = (Candidate(4, own, 0.44), Candidate(5, here, 0.18), Candidate(6, " rays", 0.09))
    q = (Candidate(5, here, 0.62), Candidate(4, own, 0.2))
    if rule != "block" or place == len(drafted):
        return PositionDetail(p, q, residual)
    pi = 1.0
    for token in drafted[: place + 1]:
        pi = min(1.0, pi * token.p / token.q)
    return PositionDetail(p, q, residual, pi, drafted[place].threshold)


def reply_events(rounds: Iterable[Round], plain: bool = True, reason: str = "end", tail: str = "") -> list[Event]:
    """The events of a whole reply."""
    stats = ReplyStats()
    events: list[Event] = [Prefill("target", 31, 0, 0.31), Prefill("draft", 31, 0, 0.12)]
    if plain:
        events.append(PLAIN)
    events += rounds
    for event in events:
        stats.add(event)
    finished = stats.finish(reason, max(stats.seconds, 0.001), tail)  # type: ignore[arg-type]
    return [*events, finished]


def described(name: str) -> ModelDescription:
    """A model that exists only on paper."""
    return ModelDescription(
        name, f"/models/{name}.gguf", "qwen2", "Q4_K_M", 10**9, 1000, 24, 0, 32768, 10**9, 10**9, "CPU"
    )


LOADED = Loaded(described("target"), described("draft"), 8192, 16, True, "b1")
MACHINE = DeviceList((Device("CPU", "a processor", "cpu", 8 * 10**9, 8 * 10**9),), "b1", "")


class ScriptedEngine:
    """Answers loads and replies with what it was given.

    Attributes:
        replies: events of the next replies, one list for each.
        commands: everything that was sent.
        devices: what it says of the machine.
        slow: hands over one message at each `drain`, and the next `Loaded` only after `finish_loading`.
    """

    def __init__(
        self, replies: Iterable[Sequence[Event]] = (), slow_load: bool = False, step: int | None = None
    ) -> None:
        self.replies = deque(replies)
        self.commands: list[Command] = []
        self.closed = False
        self.devices = MACHINE
        self._slow_load = slow_load
        self._step = step
        self._messages: deque[Message] = deque()
        self._running: int | None = None

    def send(self, command: Command) -> None:
        self.commands.append(command)
        match command:
            case Load():
                self._messages.append(LoadProgress("target", 0.45))
                if not self._slow_load:
                    self.finish_loading()
            case Reply():
                self._running = command.reply
                events = self.replies.popleft() if self.replies else reply_events([round_of("ok|p")])
                self._messages += [ReplyEvent(command.reply, event) for event in events]
            case Devices():
                self._messages.append(replace(self.devices))
            case Stop():
                self._stop()

    def _stop(self) -> None:
        """What was not handed over yet never happens."""
        if self._running is None:
            self._messages.clear()
            self._messages.append(Failed("LoadError", "Loading was stopped.", "Load the pair again."))
            return
        handed = [m for m in self._messages if isinstance(m, ReplyEvent)]
        self._messages.clear()
        if handed:
            stats = ReplyStats()
            self._messages.append(ReplyEvent(self._running, stats.finish("interrupted", 1.0)))
        self._running = None

    def finish_loading(self, loaded: Loaded = LOADED) -> None:
        """The pair is ready."""
        self._messages.append(loaded)

    def say(self, *messages: Message) -> None:
        """Puts messages into the queue."""
        self._messages += messages

    def receive(self, timeout: float | None = None) -> Message | None:
        return self._messages.popleft() if self._messages else None

    def drain(self) -> list[Message]:
        count = len(self._messages) if self._step is None else min(self._step, len(self._messages))
        return [self._messages.popleft() for _ in range(count)]

    def close(self) -> None:
        self.closed = True
