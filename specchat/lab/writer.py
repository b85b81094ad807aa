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
from specchat.engine.interface import Engine, Load, Loaded
from specchat.errors import ContextFullError
from specchat.lab.engine_talk import EngineTalk, OnProgress

Law: TypeAlias = Mapping[int, float]
"""The largest probabilities of a distribution by id: as many as a round's details hold."""

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
        self._talk = EngineTalk(engine, self._notice, on_progress, should_stop)
        self._prompts: dict[str, int] = {}

    def load(self, load: Load) -> Loaded:
        """Loads a pair, in place of what is loaded.

        Raises:
            Stopped: the person asked to stop.
            SpecchatError: it cannot be loaded.
        """
        loaded = self._talk.ask(load, Loaded)
        for note in loaded.notes:
            self._notice(note)
        return loaded

    def write(
        self, question: str, settings: ReplySettings, after: Sequence[CommittedToken] = (), *, details: bool = False
    ) -> Written:
        """The reply to a question; or what goes on ``after`` its first tokens.

        Raises:
            Stopped: the person asked to stop.
            NotThisTextError: a reply cannot go on after these tokens.
            SpecchatError: it failed.
        """
        messages = (ChatMessage("user", question), *([_cut_reply(after)] if after else ()))
        rounds: list[Round] = []
        finished: Finished | None = None
        num_read = 0
        for event in self._talk.reply(messages, settings, continue_last=bool(after), details=details):
            match event:
                case Prefill(model="target", tokens=read, reused=reused):
                    num_read = read + reused
                case Round():
                    rounds.append(event)
                case Finished():
                    finished = event
        assert finished is not None
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

    def _notice(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)


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
