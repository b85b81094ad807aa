"""Walks over a model's cache, held against a fresh context that is fed the same tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from specchat.backends.base import PassInput
from specchat.backends.llama import LlamaLanguageModel

CHUNK = 16
NOISE = 0.02
"""How much logits of an f32 model may differ because passes were of other sizes, or cells lie in another order.

0.002 was seen. One wrong token ten places back changes them by 0.1 to 10, in most places by 1 or more.
"""
COARSE_NOISE = 0.15
"""The same for a q8_0 model, which rounds what it multiplies: 0.05 was seen."""


def feed(model: LlamaLanguageModel, tokens: list[int], sequence: int = 0, chunk: int = CHUNK) -> NDArray[np.float32]:
    """Evaluates tokens in passes of a fixed size; the logits after the last."""
    last = np.empty(0, np.float32)
    for start in range(0, len(tokens), chunk):
        last = model.decode([PassInput(sequence, tokens[start : start + chunk], 1)])[0][0].copy()
    return last


class Judge:
    """Compares what a walked context returns with what a fresh one returns for the same tokens."""

    def __init__(self, fresh: LlamaLanguageModel, *, bit_identical: bool) -> None:
        self._fresh = fresh
        self._noise = NOISE if fresh.model.facts.quantization == "F32" else COARSE_NOISE
        self._bit_identical = bit_identical

    def check(self, tokens: list[int], logits: NDArray[np.float32]) -> None:
        """``logits`` are those after ``tokens``."""
        self._fresh.truncate(0, 0)
        expected = feed(self._fresh, tokens)
        if self._bit_identical:
            assert np.array_equal(logits, expected), f"after {len(tokens)} tokens"
        assert float(np.abs(logits - expected).max()) < self._noise, f"after {len(tokens)} tokens"


class Walk:
    """Random passes and cuts on one sequence. After every pass the logits are judged."""

    def __init__(self, model: LlamaLanguageModel, judge: Judge, rng: np.random.Generator, sequence: int = 0) -> None:
        self.model = model
        self.judge = judge
        self.rng = rng
        self.sequence = sequence
        self.wanted: list[int] = []
        """What the sequence should hold; the cache may hold less after a cut, and is then brought up to it."""

    def tokens(self, count: int) -> list[int]:
        """Random ids."""
        return self.rng.integers(0, self.model.vocabulary.n_vocab, count).tolist()

    def extend(self, count: int) -> None:
        """Evaluates what is missing and ``count`` new tokens, and judges."""
        new = self.tokens(count)
        held = len(self.model.tokens(self.sequence))
        assert list(self.model.tokens(self.sequence)) == self.wanted[:held]
        self.wanted += new
        missing = self.wanted[held:]
        logits = feed(self.model, missing, self.sequence)
        assert list(self.model.tokens(self.sequence)) == self.wanted
        self.judge.check(self.wanted, logits)

    def cut(self, length: int) -> int:
        """Cuts to ``length``; returns what the cache really kept."""
        kept = self.model.truncate(self.sequence, length)
        assert kept == len(self.model.tokens(self.sequence)) <= max(0, length)
        del self.wanted[length:]
        return kept

    def step(self) -> None:
        """One random pass or cut: mostly as speculation does it, now and then deep into the past."""
        length = len(self.wanted)
        kind = self.rng.random()
        if kind < 0.55 or length < 4:
            if length + CHUNK < self.model.n_ctx:
                self.extend(int(self.rng.integers(1, CHUNK + 1)))
            else:
                self.cut(length // 3)
        elif kind < 0.9:
            self.cut(length - int(self.rng.integers(0, min(length, 6))))
        else:
            self.cut(int(self.rng.integers(0, length)))
