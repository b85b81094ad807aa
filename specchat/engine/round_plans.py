"""From what a person set to what holds for the next round of a reply."""

from __future__ import annotations

from collections.abc import Callable

from specchat.core.draft_length import DraftLength
from specchat.core.events import Round
from specchat.core.settings import ReplySettings
from specchat.core.verification import rule_named
from specchat.decoding.rounds import RoundPlan
from specchat.engine.draft_lengths import DraftLengths
from specchat.engine.pair import LoadedPair


class RoundPlans:
    """What holds for the next round, asked again before each one, so that changed settings take effect.

    A plan carries a sentence where drafting is limited or off for a reason that a person should see; it is said once,
    and again when it changes.

    Args:
        pair: what is loaded.
        lengths: the pair's length rules.
        settings: gives the settings of the moment.
    """

    def __init__(self, pair: LoadedPair, lengths: DraftLengths, settings: Callable[[], ReplySettings]) -> None:
        self._pair = pair
        self._lengths = lengths
        self._settings = settings
        lengths.begin_reply()

    def __call__(self) -> RoundPlan:
        """The plan for the next round, from the settings of this moment."""
        settings = self._settings()
        length, why = self._length(settings)
        if why is None:
            self._lengths.said = None
        return RoundPlan(
            settings.sampling,
            None if length is None else self._pair.drafters[settings.drafter],
            self._lengths.watch(0, 0) if length is None else length,
            rule_named(settings.rule),
            why if why != self._lengths.said else None,
        )

    def observe(self, played: Round) -> None:
        """Learns from a played round what has been said: plans are asked for other reasons than a round as well."""
        self._lengths.said = played.why or self._lengths.said

    def _length(self, settings: ReplySettings) -> tuple[DraftLength | None, str | None]:
        """The length rule, None for plain decoding, and what there is to say about it."""
        if settings.drafter == "none" or settings.num_draft_tokens == 0:
            return None, None
        if settings.drafter not in self._pair.drafters:
            left_out = self._pair.draft_left_out if settings.drafter == "draft" else None
            return None, left_out or f"decoding plainly: no drafter called {settings.drafter} is loaded"
        wanted = settings.num_draft_tokens
        if settings.mode == "fast":
            return self._lengths.fast(wanted), self._pair.draft_left_out
        most, why = self._exact(settings) if settings.mode == "exact" else (None, None)
        if most == 0:
            return None, why
        if wanted is None:
            return self._lengths.watch(1, most), why
        fixed = wanted if most is None else min(wanted, most)
        return self._lengths.watch(fixed, fixed), why

    def _exact(self, settings: ReplySettings) -> tuple[int, str]:
        """The largest γ whose pass gives the very logits that single ones give (product.md, "Greedy")."""
        largest = self._pair.identical_pass
        if settings.sampling.temperature > 0:
            return largest - 1, "exact: identical to plain decoding at temperature 0 only"
        if largest < 2:
            return 0, "exact: decoding plainly, because no larger pass is known to be bit-identical here"
        return largest - 1, f"exact: passes of up to {largest}"
