"""Has an engine load a pair and write one reply after the other, for the checks of ``specchat verify``.

A check also needs to know what may follow a text that was written before. So a reply can go on after given tokens, and
plain decoding can be asked for its law there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from specchat.core.events import Candidate, CommittedToken, Finished, Prefill, Round
from specchat.core.sampling_params import SamplingParams
from specchat.core.settings import ChatMessage, ReplySettings
from specchat.engine.interface import Engine, Failed, Load, Loaded, LoadProgress, Message, Note, Reply, ReplyEvent, Stop
from specchat.errors import ContextFullError, from_dict
from specchat.lab.bench import OnProgress, Stopped

Law: TypeAlias = Mapping[int, float]
"""The largest probabilities of a distribution by id: as many as a round's details hold."""

_WAKE_SECONDS = 0.1
_ELSEWHERE = "Say hello."
"""A prompt that has little in common with others."""


class NotThisTextError(Exception):
    """The engine read other tokens than those that its reply was to follow: their text does not give them back."""


@dataclass(frozen=True, slots=True)
class Written:
    """A reply: its rounds, and how it ended."""

    rounds: tuple[Round, ...]
    finished: Finished

    @property
    def tokens(self) -> tuple[CommittedToken, ...]:
        """What was committed."""
        return tuple(token for played in self.rounds for token in played.committed)

    @property
    def why(self) -> str | None:
        """What was said first about drafting."""
        return next((played.why for played in self.rounds if played.why), None)


class Writer:
    """Talks with an engine, which writes one thing at a time.

    Args:
        engine: loads and writes.
        on_progress: told how far loading is.
        should_stop: asked ten times a second; what is going on is then stopped.

    Attributes:
        notices: sentences that a person should see.
    """

    def __init__(self, engine: Engine, on_progress: OnProgress, should_stop: Callable[[], bool]) -> None:
        self.notices: list[str] = []
        self._engine = engine
        self._on_progress = on_progress
        self._should_stop = should_stop
        self._stopping = False
        self._replies = 0
        self._prompts: dict[str, int] = {}

    def load(self, load: Load) -> Loaded:
        """Loads a pair, in place of what is loaded.

        Raises:
            Stopped: the person asked to stop.
            SpecchatError: it cannot be loaded.
        """
        self._check_stop()
        self._engine.send(load)
        while not isinstance(message := self._receive(), Loaded):
            if isinstance(message, LoadProgress):
                self._on_progress(f"loading the {message.model}", message.fraction, "")
        for note in message.notes:
            self._notice(note)
        return message

    def write(
        self, question: str, settings: ReplySettings, after: Sequence[CommittedToken] = (), *, details: bool = False
    ) -> Written:
        """The reply to a question; or what goes on ``after`` its first tokens.

        Raises:
            Stopped: the person asked to stop.
            NotThisTextError: a reply cannot go on after these tokens.
            SpecchatError: it failed.
        """
        self._check_stop()
        self._replies += 1
        messages = [ChatMessage("user", question)]
        if after:
            messages.append(_cut_reply(after))
        self._engine.send(
            Reply(
                self._replies,
                tuple(messages),
                settings,
                continue_last=bool(after),
                details=details,
                measure_plain=False,
            )
        )
        rounds: list[Round] = []
        finished: Finished | None = None
        num_read = 0
        while finished is None:
            message = self._receive()
            if not isinstance(message, ReplyEvent) or message.reply != self._replies:
                continue
            match message.event:
                case Prefill(model="target", tokens=read, reused=reused):
                    num_read = read + reused
                case Round():
                    rounds.append(message.event)
                case Finished():
                    finished = message.event
        if finished.reason == "interrupted":
            raise Stopped
        while finished.reason == "error":
            self._receive()  # raises what the error was: that follows
        if self._prompts.setdefault(question, num_read - len(after)) + len(after) != num_read:
            raise NotThisTextError
        if not rounds:
            raise ContextFullError(
                "The context has no room for the replies of this check.", "Choose a larger one with --ctx."
            )
        return Written(tuple(rounds), finished)

    def law(self, question: str, after: Sequence[CommittedToken], sampling: SamplingParams) -> Law:
        """What plain decoding would draw the next token from, after the first tokens of a reply.

        Raises: as `write`.
        """
        written = self.write(question, plain(sampling, 1), after, details=True)
        details = written.rounds[0].details
        assert details is not None
        return law_of(details[0].p)

    def forget(self) -> None:
        """Has the models' caches forget what they hold of other prompts: these are read anew, and all at once.

        Raises: as `write`.
        """
        self.write(_ELSEWHERE, plain(SamplingParams(temperature=0.0), 1))

    def _check_stop(self) -> None:
        if self._should_stop():
            raise Stopped

    def _notice(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)

    def _receive(self) -> Message:
        """The next message; a failure is raised, a note is kept."""
        while True:
            if self._should_stop() and not self._stopping:
                self._stopping = True
                self._engine.send(Stop())
            message = self._engine.receive(_WAKE_SECONDS)
            if isinstance(message, Failed):
                if message.kind == "CancelledError":
                    raise Stopped
                raise from_dict({"kind": message.kind, "message": message.message, "next_step": message.next_step})
            if isinstance(message, Note):
                self._notice(message.text)
            elif message is not None:
                return message


def plain(sampling: SamplingParams, max_tokens: int) -> ReplySettings:
    """How a reply is written without any draft."""
    return ReplySettings(sampling=sampling, num_draft_tokens=None, drafter="none", max_tokens=max_tokens, seed=0)


def law_of(candidates: Iterable[Candidate]) -> Law:
    """The probabilities by id."""
    return {candidate.id: candidate.probability for candidate in candidates}


def _cut_reply(tokens: Sequence[CommittedToken]) -> ChatMessage:
    """An assistant's message that ends with these very tokens."""
    content = b"".join(token.bytes for token in tokens).decode("utf-8", "replace")
    return ChatMessage("assistant", content, tuple(token.id for token in tokens))
