"""A loaded pair, as the engine holds it, and what loads one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from specchat.backends.base import Drafter, LanguageModel, Vocabulary
from specchat.core.events import ModelRole
from specchat.core.experience import Experience
from specchat.engine.interface import Load, ModelDescription
from specchat.errors import PairMismatchError

OnProgress: TypeAlias = Callable[[ModelRole, float], bool]
"""Called with a model's role and the share of it that has been read; False asks to give up (raise `Interrupted`)."""


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class LoadedPair:
    """A target, what can draft for it, and what there is to say about them.

    Attributes:
        drafters: those at hand, by the names that `ReplySettings.drafter` uses ("draft", "ngram", "auto").
        draft: the draft model itself, where there is one.
        identical_pass: the largest number of tokens in one pass of the target whose logits are bit-identical to
            single ones; 1 where that was not tested.
        experience: what is known of drafting with it, and learned while replies are written.
        setup: what the experience holds for (see `specchat.engine.interface.Learned`).
        load_draft: loads the draft model that was left out because it is not expected to pay, and gives this pair with
            it; None where nothing was left out.
        draft_left_out: why it was, in a sentence for a person.
    """

    target: LanguageModel
    description: ModelDescription
    drafters: Mapping[str, Drafter] = field(default_factory=dict)
    draft: LanguageModel | None = None
    draft_description: ModelDescription | None = None
    identical_pass: int = 1
    build: str = ""
    notes: tuple[str, ...] = ()
    close: Callable[[], None] = _nothing
    experience: Experience = field(default_factory=Experience)
    setup: str = ""
    load_draft: Callable[[LoadedPair, OnProgress], LoadedPair] | None = None
    draft_left_out: str | None = None

    @property
    def max_draft_tokens(self) -> int:
        """The largest γ that one pass of the target can verify."""
        return min(self.target.max_logits, self.target.max_batch) - 1


Loader: TypeAlias = Callable[[Load, OnProgress], LoadedPair]
"""Loads what a `Load` names. Raises `SpecchatError`, or `Interrupted` where progress was answered with False."""


def check_same_vocabulary(target: Vocabulary, draft: Vocabulary) -> None:
    """Checks that an id means the same text in both models, for all ids that both have.

    What only one of them has does not matter: ids that only the draft has are masked in q, and ids that only the
    target has are never drafted.

    Raises:
        PairMismatchError: an id differs; the message names the first by id and text.
    """
    for token in range(min(target.n_vocab, draft.n_vocab)):
        if target.piece(token) != draft.piece(token):
            raise PairMismatchError(
                f"Target and draft have different vocabularies: token {token} is {_shown(target, token)} "
                f"in the target and {_shown(draft, token)} in the draft.",
                "Choose a draft of the same family, or go on with --draft ngram or --draft none.",
            )


def _shown(vocabulary: Vocabulary, token: int) -> str:
    return repr(vocabulary.piece(token).decode(errors="replace"))
