"""What a pair's measurement on this machine comes to: is it faster, with how many drafted tokens, by how much?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from specchat.core.theory import RoundCosts, best_num_draft_tokens


class Recommendation(Protocol):
    """What a measurement recommends (`specchat.config.Recommended`)."""

    @property
    def drafter(self) -> str:
        """What should draft: "draft", "ngram" or "none"."""

    @property
    def num_draft_tokens(self) -> int:
        """γ."""

    @property
    def speedup(self) -> float:
        """What that is predicted to bring."""


class PairMeasurement(Protocol):
    """What must have been measured (`specchat.config.Measurement`). Times are seconds."""

    @property
    def pair(self) -> str:
        """The pair's name."""

    @property
    def device(self) -> str:
        """What the target ran on: names or descriptions of devices, with commas between them."""

    @property
    def version(self) -> str:
        """Which llama.cpp it was (`DeviceList.build`)."""

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

    @property
    def recommended(self) -> Recommendation | None:
        """The best of all drafters that were tried, on the built-in prompts."""


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
        best: the drafter that should be fastest here ("draft", "ngram" or "none"), its γ and its predicted speedup.
    """

    acceptance: float | None
    speedup: float
    is_predicted: bool
    num_draft_tokens: int
    plain_tokens_per_second: float
    measured_at: str
    best: tuple[str, int, float] | None = None

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
    measured, best = measurement.speedup, measurement.recommended
    return Measured(
        acceptance=acceptance[0] if acceptance else None,
        speedup=predicted if measured is None else measured,
        is_predicted=measured is None,
        num_draft_tokens=length,
        plain_tokens_per_second=measurement.plain_tokens_per_second,
        measured_at=measurement.measured_at,
        best=None if best is None else (best.drafter, best.num_draft_tokens, best.speedup),
    )


def latest(
    measurements: Sequence[PairMeasurement], pair: Collection[str], devices: Collection[str], version: str
) -> Measured | None:
    """What was last measured of a pair with the devices and the llama.cpp that are here now.

    Args:
        measurements: all that are stored, the latest last.
        pair: the names that the pair may have been measured under (`PairRow.names`).
        devices: names and descriptions of the devices that are here.
        version: the llama.cpp that is here.
    """
    for measurement in reversed(measurements):
        is_here = measurement.version == version and set(measurement.device.split(", ")) <= set(devices)
        if is_here and measurement.pair in pair:
            return summarise(measurement)
    return None
