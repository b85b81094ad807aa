"""How tokens are drawn, as plain values: what settings, commands and screens name without needing numpy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_LARGEST_BIAS = 3.4028234663852886e38 / 2  # half of the largest float32


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is drawn. The defaults and the order are llama.cpp's server's.

    ``temperature`` 0 always takes the most likely token. ``top_k`` 0, ``top_p`` 1, ``min_p`` 0, ``repeat_penalty``
    1 and the other penalties 0 switch that step off. Penalties look at the last ``penalty_last_n`` tokens of the
    history (prompt included): 0 at none, -1 at all. ``logit_bias`` adds to a token's logit; minus infinity bans it.

    Raises:
        ValueError: a value is out of its range.
    """

    temperature: float = 0.7
    top_k: int = 40
    top_p: float = 0.95
    min_p: float = 0.05
    repeat_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    penalty_last_n: int = 64
    logit_bias: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rules = (
            (0 <= self.temperature < math.inf, "the temperature must be 0 or more"),
            (self.top_k >= 0, "top-k must be 0 (off) or more"),
            (0 < self.top_p <= 1, "top-p must be above 0 and at most 1 (off)"),
            (0 <= self.min_p <= 1, "min-p must be between 0 (off) and 1"),
            (0 < self.repeat_penalty < math.inf, "the repeat penalty must be above 0; 1 is off"),
            (math.isfinite(self.frequency_penalty), "the frequency penalty must be a finite number; 0 is off"),
            (math.isfinite(self.presence_penalty), "the presence penalty must be a finite number; 0 is off"),
            (self.penalty_last_n >= -1, "penalty-last-n must be 0 (off) or more, or -1 for the whole context"),
            (
                all(bias == -math.inf or abs(bias) <= _LARGEST_BIAS for bias in self.logit_bias.values()),
                "a logit bias must be a finite number, or minus infinity to ban a token",
            ),
        )
        for holds, text in rules:
            if not holds:
                raise ValueError(text)

    @property
    def penalizes(self) -> bool:
        """Whether the distribution depends on the history."""
        return self.penalty_last_n != 0 and (
            self.repeat_penalty != 1 or self.frequency_penalty != 0 or self.presence_penalty != 0
        )

    def recent(self, context: Sequence[int]) -> list[int]:
        """The tokens at the end of the context that penalties look at, in a new list; none where there are none."""
        if not self.penalizes:
            return []
        return list(context[-self.penalty_last_n :] if self.penalty_last_n > 0 else context)

    @property
    def truncates(self) -> bool:
        """Whether top-k, top-p or min-p is on."""
        return self.top_k > 0 or self.top_p < 1 or self.min_p > 0
