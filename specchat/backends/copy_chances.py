"""How likely each of several candidates is the next token, and what a reply teaches about that while it is written.

Each candidate token cⱼ has features fⱼ; with weights w, a softmax over the candidates and "none of them" gives

    P(token) = Σ_{j: cⱼ = token} exp(w·fⱼ) ÷ (1 + Σⱼ exp(w·fⱼ)).

The first weights were fitted to replies (maximum likelihood, with a penalty on their squares): greedy replies of a
1.5B coder model that rewrite, summarise or answer freely, rewritings made by scripts, and changes of open-source files.
From there each committed token moves them a little, along the gradient of its logarithm.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from specchat.backends.copy_weights import FIRST_WEIGHTS

Feature: TypeAlias = tuple[str, float]

_LARGEST_SCORE = 12.0
_RATE = 0.02
_NEGLIGIBLE = 0.01
"""Gradients below this move nothing."""
_FADE = 0.92
"""How much of a record is left after each further verdict."""


class Candidate(NamedTuple):
    """A token that may come next: which kind of proposer names it, and what is known about that."""

    token: int
    kind: str
    features: tuple[Feature, ...]


class Chances:
    """The weights and each kind's record of late.

    Args:
        first: the weights to begin with, by the names of features; 0 for those that are not among them.
        rate: how far one token moves the weights.
    """

    def __init__(self, first: Mapping[str, float] = FIRST_WEIGHTS, rate: float = _RATE) -> None:
        self._first = first
        self._rate = rate
        self._weights = defaultdict(float, first)
        self._records: dict[str, tuple[float, float]] = {}

    def begin_reply(self) -> None:
        """Another text: half of what the last one taught is kept, and no record."""
        self._records.clear()
        for name, weight in self._weights.items():
            self._weights[name] = (weight + self._first.get(name, 0.0)) / 2

    def record(self, kind: str) -> float:
        """The log odds with which this kind was right lately; 0 where nothing is known."""
        right, wrong = self._records.get(kind, (0.0, 0.0))
        return math.log((right + 0.5) / (wrong + 0.5))

    def best(self, candidates: Sequence[Candidate]) -> tuple[int, float]:
        """The likeliest token and its chance. There must be a candidate."""
        if len(candidates) == 1:
            mass = self._mass(candidates[0])
            return candidates[0].token, mass / (1.0 + mass)
        total, by_token = 1.0, dict[int, float]()
        for candidate in candidates:
            mass = self._mass(candidate)
            total += mass
            by_token[candidate.token] = by_token.get(candidate.token, 0.0) + mass
        token = max(by_token, key=by_token.__getitem__)
        return token, by_token[token] / total

    def learn(self, candidates: Sequence[Candidate], token: int) -> None:
        """``token`` was committed where these were the candidates."""
        masses = [self._mass(candidate) for candidate in candidates]
        total = 1.0 + sum(masses)
        right = sum(mass for mass, candidate in zip(masses, candidates, strict=True) if candidate.token == token)
        for mass, candidate in zip(masses, candidates, strict=True):
            is_right = candidate.token == token
            gradient = (mass / right if is_right else 0.0) - mass / total
            if abs(gradient) > _NEGLIGIBLE:
                for name, value in candidate.features:
                    self._weights[name] += self._rate * gradient * value
            hits, misses = self._records.get(candidate.kind, (0.0, 0.0))
            self._records[candidate.kind] = (hits * _FADE + is_right, misses * _FADE + (not is_right))

    def _mass(self, candidate: Candidate) -> float:
        weights = self._weights
        score = 0.0
        for name, value in candidate.features:
            score += weights[name] * value
        return math.exp(min(score, _LARGEST_SCORE))
