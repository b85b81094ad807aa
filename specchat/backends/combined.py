"""Several drafters at hand: each round the one that promises most proposes.

What a copy or an n-gram would propose is known in whole and costs nothing, so it is always looked at first. The length
rule weighs it against the draft model and against plain decoding; the draft model is evaluated only if it wins. Who
proposes is settled before anything is drawn, so the reply's distribution is the target's as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from specchat.backends.base import NO_DRAFT, Draft, Drafter
from specchat.core.draft_length import DraftLength
from specchat.core.events import Prefill
from specchat.core.sampling import SamplingParams


class CombinedDrafter:
    """The free drafters in their order, then the draft model. `Draft.drafter` says who proposed.

    Args:
        free: drafters whose proposals cost nothing; the first that has something to propose is heard.
        model: the draft model, where one is loaded. Its cache catches up when it is asked again, not before.
    """

    name = "auto"

    def __init__(self, free: Sequence[Drafter], model: Drafter | None = None) -> None:
        self._free = tuple(free)
        self._model = model
        self._proposer: Drafter | None = None

    def behind(self, context: Sequence[int]) -> int:
        """What the draft model must read; 0 without one."""
        return 0 if self._model is None else self._model.behind(context)

    def prefill(self, prompt: Sequence[int], should_stop: Callable[[], bool]) -> Prefill | None:
        """The draft model reads ahead (see `Drafter.prefill`)."""
        return None if self._model is None else self._model.prefill(prompt, should_stop)

    def propose(
        self,
        context: Sequence[int],
        length: DraftLength,
        limit: int,
        params: SamplingParams,
        rng: np.random.Generator,
    ) -> Draft:
        """The draft of who promises most; an empty one where plain decoding does (see `Drafter.propose`)."""
        self._proposer = None
        may_ask = self._model is not None and length.pays(self._model.behind(context))
        for drafter in self._free:
            if len(draft := drafter.propose(context, length, limit, params, rng)):
                self._proposer = drafter
                return draft
        if self._model is None or not may_ask:
            return NO_DRAFT
        self._proposer = self._model
        return self._model.propose(context, length, limit, params, rng)

    def observe(self, draft: Draft, num_accepted: int, committed: Sequence[int]) -> None:
        """Tells the one that proposed what became of its draft. The others learn from the context."""
        if self._proposer is not None:
            self._proposer.observe(draft, num_accepted, committed)
