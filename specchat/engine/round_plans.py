"""From what a person set to what holds for the next round of a reply."""

from __future__ import annotations

from collections.abc import Callable

from specchat.core.draft_length import FixedLength
from specchat.core.events import Round
from specchat.core.settings import ReplySettings
from specchat.core.verification import rule_named
from specchat.decoding.rounds import RoundPlan
from specchat.engine.pair import LoadedPair

DEFAULT_DRAFT_TOKENS = 4
"""γ where a person leaves it open. Drafting every round is what *watch* is for."""


class RoundPlans:
    """What holds for the next round, asked again before each one, so that changed settings take effect.

    A sentence is part of the plan's length where drafting is limited or off for a reason that a person should see;
    it is said once, and again when it changes.

    Args:
        pair: what is loaded.
        settings: gives the settings of the moment.
    """

    def __init__(self, pair: LoadedPair, settings: Callable[[], ReplySettings]) -> None:
        self._pair = pair
        self._settings = settings
        self._said: str | None = None
        self._length = FixedLength(0)

    def __call__(self) -> RoundPlan:
        """The plan for the next round, from the settings of this moment."""
        settings = self._settings()
        drafter = self._pair.drafters.get(settings.drafter)
        num_draft_tokens, why = self._wanted_length(settings)
        if num_draft_tokens != self._length.num_draft_tokens:
            self._length = FixedLength(num_draft_tokens)  # else the same one: it learns from round to round
        if why is None:
            self._said = None
        self._length.reason = why if why != self._said else None
        if num_draft_tokens == 0:
            drafter = None  # no draft is prefilled for nothing
        return RoundPlan(settings.sampling, drafter, self._length, rule_named(settings.rule))

    def observe(self, played: Round) -> None:
        """Learns from a played round what has been said: plans are asked for other reasons than a round as well."""
        self._said = played.why or self._said

    def _wanted_length(self, settings: ReplySettings) -> tuple[int, str | None]:
        if settings.drafter == "none":
            return 0, None
        if settings.mode == "fast":
            return 0, "fast: decoding plainly, because drafting has no measured gain for this pair yet"
        if settings.drafter not in self._pair.drafters:
            return 0, f"decoding plainly: no drafter called {settings.drafter} is loaded"
        wanted = DEFAULT_DRAFT_TOKENS if settings.num_draft_tokens is None else settings.num_draft_tokens
        if settings.mode == "exact":
            return self._exact_length(settings, wanted)
        return wanted, None

    def _exact_length(self, settings: ReplySettings, wanted: int) -> tuple[int, str | None]:
        """Passes of γ + 1 tokens must give the very logits that single ones give (product.md, "Greedy")."""
        largest = self._pair.identical_pass
        if settings.sampling.temperature > 0:
            return min(wanted, largest - 1), "exact: identical to plain decoding at temperature 0 only"
        if largest < 2:
            return 0, "exact: decoding plainly, because no larger pass is known to be bit-identical here"
        return min(wanted, largest - 1), f"exact: passes of up to {largest}"
