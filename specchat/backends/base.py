"""What the decoder asks of a model and of a drafter.

Anything that fulfils `LanguageModel` can be a target or, wrapped in a `Drafter`, a draft: llama.cpp models, the toy
Markov pair, fakes in tests. A model *remembers its own tokens*: the decoder says which sequence it wants, and
`common_prefix` and `LanguageModel.truncate` tell how much of it need not be evaluated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from specchat.core.draft_length import DraftLength
from specchat.core.events import Prefill
from specchat.core.sampling import Distribution, SamplingParams


@dataclass(frozen=True, slots=True)
class PassInput:
    """What one sequence contributes to a pass: ``tokens`` follow those that the model holds for ``sequence``.

    Rows of logits are returned for the last ``num_logits`` of the tokens. ``may_be_undone`` says that the tokens are
    only proposed so far, one pass after the other: a cache that cannot be cut had better remember what was before them.
    """

    sequence: int
    tokens: Sequence[int]
    num_logits: int
    may_be_undone: bool = False


class Interrupted(Exception):  # noqa: N818 - it is not an error
    """Evaluation was stopped by the function given to `LanguageModel.interruptible`.

    Not an error: the model's caches are consistent and hold what was finished (see `LanguageModel.tokens`).
    """


class Vocabulary(Protocol):
    """A model's tokens."""

    @property
    def n_vocab(self) -> int:
        """How many ids there are; ids run from 0 to ``n_vocab - 1``."""

    def tokenize(self, text: str, *, parse_special: bool) -> list[int]:
        """The ids of ``text``. No id is added before or after it.

        With ``parse_special`` the texts of control tokens become those tokens; without, they are ordinary text.
        """

    def piece(self, token: int) -> bytes:
        """The bytes that a token stands for; a control token's is its name (``<|im_end|>``)."""

    def is_control(self, token: int) -> bool:
        """Whether the token is a control token: never shown as text."""

    def is_end(self, token: int) -> bool:
        """Whether the token ends a reply (eos, eot, and end-of-generation ids that are control tokens)."""

    @property
    def control_texts(self) -> frozenset[str]:
        """The texts that ``tokenize(…, parse_special=True)`` would turn into control tokens."""

    @property
    def bos(self) -> int | None:
        """The token that begins a text, where the model has one."""

    @property
    def eos(self) -> int | None:
        """The token that ends a text, where the model has one."""

    @property
    def add_bos(self) -> bool:
        """Whether a prompt must begin with `bos`."""

    @property
    def chat_template(self) -> str | None:
        """The model's own Jinja chat template."""


class LanguageModel(Protocol):
    """A model with a cache of what it has evaluated, by sequence."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Its tokens."""

    @property
    def n_ctx(self) -> int:
        """How many tokens a sequence can hold."""

    @property
    def max_batch(self) -> int:
        """How many tokens one pass can take."""

    @property
    def max_logits(self) -> int:
        """How many rows of logits one pass can return."""

    def tokens(self, sequence: int = 0) -> Sequence[int]:
        """The tokens that the cache holds for a sequence, in order. Do not change it."""

    def num_read(self, sequence: int = 0) -> int:
        """How many tokens the cache holds, with those that a pass that is going on has finished already.

        The function given to `interruptible` may ask. At any other time it is ``len(tokens(sequence))``.
        """

    def truncate(self, sequence: int, length: int) -> int:
        """Forgets everything after the first ``length`` tokens; returns how many tokens it really holds now.

        Fewer than ``length`` where the cache cannot be cut there with certainty (sliding windows, recurrent
        states): the rest must be evaluated again. Never a cache that may be wrong.
        """

    def decode(self, inputs: Sequence[PassInput]) -> list[NDArray[np.float32]]:
        """Evaluates tokens in one pass.

        Returns:
            For each input the logits ``[num_logits, n_vocab]``. They are views, valid until the next call.

        Raises:
            DecodeError: llama.cpp refused, or the guards did (too many tokens, an id out of range, no room).
            Interrupted: the function given to `interruptible` said so.
        """

    def interruptible(self, should_stop: Callable[[], bool] | None) -> None:
        """Passes from here on may be stopped half-way once ``should_stop()`` is true (None: no more).

        It costs a little in every pass, so it is set for prefill only. Where a pass cannot be stopped half-way it
        has no effect, and prefill must be cut into small passes.
        """


@dataclass(frozen=True, slots=True)
class Draft:
    """What a drafter proposes: ``q[i]`` is the very distribution that ``tokens[i]`` was drawn from."""

    tokens: tuple[int, ...]
    q: tuple[Distribution, ...]
    drafter: str
    reason: str | None = None
    """Why it is shorter than asked for, where a person should know."""
    evaluated: int = 0
    """How many tokens the draft model evaluated for it (γ, plus what it had to catch up)."""

    def __len__(self) -> int:
        return len(self.tokens)


NO_DRAFT = Draft((), (), "none")


class Drafter(Protocol):
    """What proposes tokens. Verification never asks what it is: q says all that it needs.

    A context that is given again may have grown since; one that was changed otherwise must be another list.
    """

    @property
    def name(self) -> str:
        """A short name for the screen, such as "draft" for a model or "ngram"."""

    def behind(self, context: Sequence[int]) -> int:
        """How many tokens of ``context`` a draft model must read before it can propose; 0 where there is none."""

    def prefill(self, prompt: Sequence[int], should_stop: Callable[[], bool]) -> Prefill | None:
        """Reads ahead all of the prompt but its last token; None where there is nothing to read.

        Raises:
            Interrupted: ``should_stop()`` was true; what was read is kept.
        """

    def propose(
        self,
        context: Sequence[int],
        length: DraftLength,
        limit: int,
        params: SamplingParams,
        rng: np.random.Generator,
    ) -> Draft:
        """Draws up to ``limit`` tokens that may follow ``context``.

        A drafter with a model asks ``length.pays`` first, ``length.more`` before each draw, and ``length.go_on``
        before it evaluates the model for another one; a drafter whose tokens are free and known at once asks
        ``length.choose``. So the length rule holds: decided before the draw, never by dropping a drawn token. After
        an end-of-turn token it stops. ``context`` is everything committed: prompt and reply so far.
        """

    def observe(self, draft: Draft, num_accepted: int, committed: Sequence[int]) -> None:
        """Learns what became of the draft: how many were kept, and the tokens that the round committed."""


def common_prefix(left: Sequence[int], right: Sequence[int], known: int = 0) -> int:
    """How many tokens two sequences share at their beginning. The first ``known`` are not compared again."""
    shortest = min(len(left), len(right))
    # Comparing lists is much faster than making arrays of them. Mostly all is the same: that is asked first.
    one, other = _part(left, known, shortest), _part(right, known, shortest)
    if one == other:
        return shortest
    low, high = 0, len(one)  # the first ``low`` agree, the first ``high`` do not
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle
    return known + low


def _part(tokens: Sequence[int], start: int, end: int) -> list[int]:
    if isinstance(tokens, list):  # which is not copied where all of it is wanted
        return tokens if end - start == len(tokens) else tokens[start:end]
    return list(tokens[start:end])


def bring_to(
    model: LanguageModel,
    sequence: int,
    tokens: Sequence[int],
    should_stop: Callable[[], bool] | None = None,
) -> tuple[int, int]:
    """Makes a model's cache hold exactly ``tokens``: cuts it to the common prefix and evaluates the rest.

    This one function is the second turn of a chat, an edited message, a regenerated reply, and a draft that is one
    token behind after a round in which all was accepted.

    Returns:
        How many tokens were evaluated, and how many were in the cache already.

    Raises:
        Interrupted: ``should_stop()`` was true; what was evaluated is kept.
        DecodeError: the model refused.
    """
    held = model.tokens(sequence)
    reused = common_prefix(held, tokens)
    if reused < len(held):
        reused = model.truncate(sequence, reused)
    try:
        if should_stop is not None:
            model.interruptible(should_stop)
        for start in range(reused, len(tokens), model.max_batch):
            if should_stop is not None and should_stop():
                raise Interrupted
            model.decode([PassInput(sequence, tokens[start : start + model.max_batch], 0)])
    finally:
        if should_stop is not None:
            model.interruptible(None)
    return len(tokens) - reused, reused
