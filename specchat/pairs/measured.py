"""What a pair's measurement on this machine comes to: is it faster, with how many drafted tokens, by how much?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from specchat.core.theory import RoundCosts, best_num_draft_tokens


class PairMeasurement(Protocol):
    """What must have been measured (`specchat.config.Measurement`). Times are seconds."""

    @property
    def measured_at(self) -> str:
        """When, in ISO 8601."""

    @property
    def pass_seconds(self) -> Mapping[int, float]:
        """The median time of a target pass of n tokens, by n."""

    @property
    def draft_step_seconds(self) -> float | None:
        """The draft's step."""

    @property
    def draft_catch_up_seconds(self) -> float | None:
        """By how much a draft pass of two tokens is longer."""

    @property
    def acceptance_by_position(self) -> Sequence[float]:
        """α by position, from the first drafted token on."""

    @property
    def plain_tokens_per_second(self) -> float:
        """The target's speed without a draft."""

    @property
    def speedup(self) -> float | None:
        """Against plain decoding, where a reply was measured both ways."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A measurement as the table shows it.

    Attributes:
        acceptance: α of the first drafted token; None where none was drafted.
        speedup: against plain decoding: measured, or else predicted for the best γ.
        is_predicted: whether it is.
        num_draft_tokens: the γ that the prediction is best with; 0 where plain decoding is.
        plain_tokens_per_second: the target's speed without a draft.
        measured_at: when.
    """

    acceptance: float | None
    speedup: float
    is_predicted: bool
    num_draft_tokens: int
    plain_tokens_per_second: float
    measured_at: str

    @property
    def pays(self) -> bool:
        """Whether the draft makes it faster here."""
        return self.speedup > 1.0 and self.num_draft_tokens > 0


def summarise(measurement: PairMeasurement) -> Measured | None:
    """What a stored measurement comes to; None where its figures make no sense."""
    acceptance = list(measurement.acceptance_by_position)
    try:
        costs = RoundCosts.from_seconds(
            measurement.pass_seconds, measurement.draft_step_seconds, measurement.draft_catch_up_seconds
        )
    except ValueError:
        return None
    length, predicted = best_num_draft_tokens(acceptance, costs) if acceptance else (0, 1.0)
    measured = measurement.speedup
    return Measured(
        acceptance=acceptance[0] if acceptance else None,
        speedup=predicted if measured is None else measured,
        is_predicted=measured is None,
        num_draft_tokens=length,
        plain_tokens_per_second=measurement.plain_tokens_per_second,
        measured_at=measurement.measured_at,
    )
