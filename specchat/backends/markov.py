"""The toy pair of the seed text: a first-order Markov chain as target, a blurred copy of it as draft.

The very decoder that runs llama.cpp models runs on it, in the tests and in ``specchat verify --toy``. Its true
distribution is known, so what the decoder writes can be held against it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from specchat.backends.base import Interrupted, PassInput
from specchat.errors import DecodeError


class LetterVocabulary:
    """One letter a state: a, b, c, …; optionally one of the states ends a reply."""

    chat_template: str | None = None
    bos: int | None = None
    add_bos = False

    def __init__(self, n_vocab: int, end: int | None = None) -> None:
        if not 1 <= n_vocab <= 26:
            raise ValueError("a letter vocabulary has 1 to 26 states")
        self.n_vocab = n_vocab
        self.eos = end

    @property
    def control_texts(self) -> frozenset[str]:
        """The name of the end token, where there is one."""
        return frozenset() if self.eos is None else frozenset({self._name(self.eos)})

    def tokenize(self, text: str, *, parse_special: bool) -> list[int]:
        """Letters become states; anything else falls on the first state."""
        ids: list[int] = []
        while text:
            if parse_special and self.eos is not None and text.startswith(self._name(self.eos)):
                ids.append(self.eos)
                text = text[len(self._name(self.eos)) :]
                continue
            state = ord(text[0]) - ord("a")
            ids.append(state if 0 <= state < self.n_vocab and state != self.eos else 0)
            text = text[1:]
        return ids

    def piece(self, token: int) -> bytes:
        """The state's letter."""
        return self._name(token).encode()

    def is_control(self, token: int) -> bool:
        """Only the end token is one."""
        return token == self.eos

    def is_end(self, token: int) -> bool:
        """Whether this is the state that ends a reply."""
        return token == self.eos

    def _name(self, token: int) -> str:
        return "<end>" if token == self.eos else chr(ord("a") + token)


class MarkovModel:
    """A language model whose next token depends on the last one only.

    Args:
        transitions: ``[n_vocab, n_vocab]``; row i is the distribution of what follows state i.
        n_ctx: tokens that a sequence can hold.
        max_batch: tokens that a pass can take.
        end: the state that ends a reply, if any.
        n_sequences: how many sequences it can hold.
    """

    def __init__(
        self,
        transitions: NDArray[np.float64],
        *,
        n_ctx: int = 1 << 20,
        max_batch: int = 512,
        end: int | None = None,
        n_sequences: int = 1,
    ) -> None:
        rows, columns = transitions.shape
        if rows != columns or not np.allclose(transitions.sum(axis=1), 1):
            raise ValueError("transitions must be a square matrix whose rows sum to one")
        self.transitions = transitions
        self.vocabulary = LetterVocabulary(rows, end)
        self.n_ctx = n_ctx
        self.max_batch = max_batch
        self.max_logits = max_batch
        with np.errstate(divide="ignore"):
            self._logits = np.log(transitions).astype(np.float32)
        self._tokens: list[list[int]] = [[] for _ in range(n_sequences)]
        self._should_stop: Callable[[], bool] | None = None

    def tokens(self, sequence: int = 0) -> Sequence[int]:
        """What was evaluated (see `LanguageModel.tokens`)."""
        return self._tokens[sequence]

    def num_read(self, sequence: int = 0) -> int:
        """A pass is over at once (see `LanguageModel.num_read`)."""
        return len(self._tokens[sequence])

    def truncate(self, sequence: int, length: int) -> int:
        """Always possible (see `LanguageModel.truncate`)."""
        del self._tokens[sequence][length:]
        return len(self._tokens[sequence])

    def interruptible(self, should_stop: Callable[[], bool] | None) -> None:
        """Asked once before each pass."""
        self._should_stop = should_stop

    def decode(self, inputs: Sequence[PassInput]) -> list[NDArray[np.float32]]:
        """The logarithms of the rows (see `LanguageModel.decode`)."""
        if self._should_stop is not None and self._should_stop():
            raise Interrupted
        if not 0 < sum(len(each.tokens) for each in inputs) <= self.max_batch:
            raise DecodeError("A pass must have between 1 token and the batch size.", "This is a fault in specchat.")
        rows = []
        for each in inputs:
            held = self._tokens[each.sequence]
            if len(held) + len(each.tokens) > self.n_ctx:
                raise DecodeError("The context is full.", "Start a new chat or choose a larger context.")
            held.extend(each.tokens)
            rows.append(self._logits[list(each.tokens[len(each.tokens) - each.num_logits :])])
        return rows


def toy_pair(seed: int = 42, n_vocab: int = 5) -> tuple[MarkovModel, MarkovModel]:
    """The seed text's target and draft: Dirichlet rows P, and Q = 0.6 P + 0.4 uniform."""
    p = np.random.default_rng(seed).dirichlet(np.ones(n_vocab), size=n_vocab)
    q = 0.6 * p + 0.4 / n_vocab
    return MarkovModel(p), MarkovModel(q)
