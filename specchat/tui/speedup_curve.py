"""Predicted speedup at each γ, from what was measured here and nothing else, beside what is reached now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specchat.chat.figures import usual_length
from specchat.core.events import Round
from specchat.core.stats import ReplyStats, RoundTotals
from specchat.core.theory import Acceptance, RoundCosts, expected_tokens, survival

if TYPE_CHECKING:
    from specchat.core.experience import Experience

_FEWEST_ROUNDS = 8
"""So many rounds with a draft make an α."""
_LARGEST = 16


@dataclass(frozen=True, slots=True)
class SpeedupCurve:
    """``predicted[γ]`` for every γ whose pass was measured; ``now`` is the γ that most rounds have, and the speedup."""

    predicted: Mapping[int, float]
    now: tuple[int, float] | None


def speedup_curve(stats: ReplyStats, experience: Experience | None) -> SpeedupCurve | None:
    """The curve for the drafter of most of the last rounds; None where α or the costs are not measured.

    Args:
        stats: of the reply that is being written, or of the last one.
        experience: what the pair has taught about costs; its guesses are not used.
    """
    drafter = _drafter(stats.recent)
    if experience is None or drafter is None:
        return None
    with_it = [played for played in stats.recent if played.drafted and played.drafted[0].drafter == drafter]
    totals = RoundTotals(with_it)
    costs = _costs(experience, drafter, totals)
    if len(with_it) < _FEWEST_ROUNDS or totals.acceptance_rate is None or costs is None:
        return None
    # positions that were never judged are taken to be like the mean
    acceptance = (*totals.acceptance_by_position, totals.acceptance_rate)
    # the draft model can always draft; what looks for copies finds something in some rounds only
    share = 1.0 if drafter == "draft" else len(with_it) / len(stats.recent)
    lengths = [size - 1 for size in sorted(costs.passes) if 1 < size <= _LARGEST + 1]
    if not lengths:
        return None
    predicted = {length: _speedup(acceptance, length, costs, share) for length in lengths}
    speedup, length = stats.speedup, usual_length(stats.window)
    return SpeedupCurve(predicted, None if speedup is None or not length else (length, speedup))


def _drafter(rounds: Iterable[Round]) -> str | None:
    names = Counter(played.drafted[0].drafter for played in rounds if played.drafted)
    return max(names, key=lambda name: names[name]) if names else None


def _costs(experience: Experience, drafter: str, totals: RoundTotals) -> RoundCosts | None:
    """The costs that were measured; None where the plain step or the draft's step was not."""
    sizes = [size for size in experience.target.sizes if experience.target.is_well_known(size)]
    passes = {size: seconds for size in sizes if (seconds := experience.target.seconds(size)) is not None}
    drafted = totals.accepted + totals.rejected + totals.ignored
    if 1 not in passes or not drafted:
        return None
    if drafter != "draft":
        return RoundCosts.from_seconds(passes, totals.draft_seconds / drafted)
    draft = experience.draft
    step = draft.seconds(1) if draft.is_well_known(1) else None
    if step is None:
        return None
    two = draft.seconds(2) if draft.is_well_known(2) else None
    return RoundCosts.from_seconds(passes, step, None if two is None else two - step)


def _speedup(acceptance: Acceptance, length: int, costs: RoundCosts, share: float) -> float:
    """E ÷ cost, where a ``share`` of the rounds drafts ``length`` tokens and the others decode plainly."""
    tokens = share * expected_tokens(acceptance, length) + (1 - share)
    cost = share * costs.round(length, survival(acceptance, length)[-1]) + (1 - share)
    return tokens / cost
