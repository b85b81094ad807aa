"""From logits to a distribution, and one draw from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is drawn. The defaults and the order are llama.cpp's server's."""

    temperature: float = 0.7
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    penalty_last_n: int = 64
    logit_bias: Mapping[int, float] = field(default_factory=dict)


class Distribution:
    """STUB: sparse; ids ascending int, probs float64 summing to one."""

    ids: NDArray[np.int32]
    probs: NDArray[np.float64]

    def probability(self, token: int) -> float: ...
    def sample(self, rng: np.random.Generator) -> int: ...
    def top(self, count: int) -> list[tuple[int, float]]: ...


def distribution(
    logits: NDArray[np.float32], params: SamplingParams, history: Sequence[int] = (), n_allowed: int | None = None
) -> Distribution: ...
