"""What a pair has taught so far about drafting: costs of passes and steps, and how likely drafted tokens are kept.

It is learned while replies are written, and kept from one chat to the next: plain values in, plain values out. Where
nothing was measured yet it holds expectations (what a token more costs, what share of a target step a draft step
costs) that the caller derives from the files and the device.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from specchat.core.acceptance import Acceptance
from specchat.core.pass_costs import PassCosts
from specchat.core.theory import RoundCosts, best_num_draft_tokens, break_even_acceptance

_VERSION = 1
HOPE = 0.85
"""The chance of each token that a draft model may be hoped to have, where nothing is known of it on a text."""
_LEAST_GAIN = 1.05
"""A model is loaded for no less."""
_READING_SHARE, _LEAST_READING_SHARE = 0.25, 0.05
"""What reading a token is taken to cost, as a share of a draft step, until it was measured: at most and at least. In
between it is what a token more in a pass costs: little on a GPU."""
_READING_GAIN = 0.2
_LARGEST_READING = 2.0
"""A token read is never taken to cost more than so many draft steps: a stall says nothing."""


class Experience:
    """What is known of a pair on this machine. Times are seconds.

    Attributes:
        target: passes of the target, by size.
        draft: passes of the draft model that return one row of logits: its steps are those of one token.
        acceptance: how likely the draft model's tokens are kept.
        interval: after how many rounds without the draft model it is tried again.
        waited: how many rounds ago it was asked.

    Args:
        token_share: see `PassCosts`; of the target.
        draft_share: the share of a plain target step that a draft step is expected to cost.
    """

    def __init__(self, token_share: float = 0.5, draft_share: float = 0.4) -> None:
        if not 0 <= draft_share < math.inf:
            raise ValueError("a draft step's share of a target step must be a finite number, not negative")
        self.target = PassCosts(token_share)
        self.draft = PassCosts(token_share, beside=self.target)
        self.acceptance = Acceptance()
        self.interval = 8
        self.waited = 0
        self._draft_share = draft_share
        self._reading_share = min(_READING_SHARE, max(_LEAST_READING_SHARE, token_share))
        self._reading: float | None = None

    @property
    def plain(self) -> float:
        """T(1). Before anything was measured time has no unit, and this is 1."""
        return self.target.seconds(1) or 1.0

    def verify(self, num_tokens: int, hopeful: bool = False) -> float:
        """T(n)."""
        seconds = self.target.hopeful_seconds(num_tokens) if hopeful else self.target.seconds(num_tokens)
        return seconds if seconds is not None else 1.0 + self.target.token_share * (num_tokens - 1)

    def step(self, hopeful: bool = False) -> float:
        """A draft step."""
        expected = self._draft_share * self.plain
        known = self.draft.seconds(1)
        if known is None:
            return expected
        return min(known, expected) if hopeful and not self.draft.is_well_known(1) else known

    def first_step(self, behind: int, hopeful: bool = False) -> float:
        """The draft's first step of a round, in which it reads the ``behind`` tokens that it lacks."""
        step = self.step(hopeful)
        if behind <= 1:
            return step
        if behind == 2 and self.draft.is_well_known(2):
            return max(step, self.draft.seconds(2) or step)
        return step + (behind - 1) * (self._reading_share * step if self._reading is None else self._reading)

    def observe_draft(self, seconds: float, steps: int, behind: int) -> None:
        """The draft took ``seconds`` for ``steps`` passes, in the first of which it read ``behind`` tokens."""
        if steps < 1 or not 0 < seconds < math.inf:
            return
        if behind <= 1:
            self.draft.observe(1, seconds / steps)
        elif not self.draft.sizes:
            self.draft.observe(1, seconds / (steps + self._reading_share * (behind - 1)))
        elif behind == 2:
            self.draft.observe(2, max(self.step(), seconds - (steps - 1) * self.step()))
        else:
            self.observe_reading(max(0.0, seconds - steps * self.step()), behind - 1)

    def observe_reading(self, seconds: float, num_tokens: int) -> None:
        """The draft read ``num_tokens`` ahead in so many seconds."""
        if num_tokens < 1 or not 0 <= seconds < math.inf:
            return
        here = min(seconds / num_tokens, _LARGEST_READING * self.step())
        self._reading = here if self._reading is None else self._reading + _READING_GAIN * (here - self._reading)

    def costs(self, largest: int) -> RoundCosts:
        """The costs of rounds as `specchat.core.theory` takes them, for passes of up to ``largest`` tokens."""
        plain, step = self.plain, self.step()
        return RoundCosts(
            {size: self.verify(size) / plain for size in range(1, largest + 1)},
            step / plain,
            max(0.0, self.first_step(2) - step) / plain,
        )

    def could_gain(self, num_draft_tokens: int) -> bool:
        """Whether drafting up to so many tokens with the draft model would pay on a text that suits it.

        It says whether to load one, so it asks what things cost here, and not how the last text went.
        """
        return best_num_draft_tokens(HOPE, self.costs(num_draft_tokens + 1))[1] >= _LEAST_GAIN

    def break_even(self, largest: int) -> float | None:
        """The smallest constant α at which some γ is not slower than plain decoding; None where none is."""
        costs = self.costs(largest)
        found = (break_even_acceptance(length, costs) for length in range(1, largest))
        return min((alpha for alpha in found if alpha is not None), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Everything that was learned, as JSON values."""
        return {
            "version": _VERSION,
            "target": self.target.to_dict(),
            "draft": self.draft.to_dict(),
            "acceptance": self.acceptance.to_dict(),
            "reading": self._reading,
            "interval": self.interval,
            "waited": self.waited,
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Takes over what `to_dict` wrote; on an error nothing has changed.

        Raises:
            ValueError: the data is not that, or of another version.
        """
        fresh = Experience(self.target.token_share, self._draft_share)
        try:
            if data["version"] != _VERSION:
                raise ValueError(f"experience of version {data['version']!r}")
            fresh.target.restore(data["target"])
            fresh.draft.restore(data["draft"])
            fresh.acceptance.restore(data["acceptance"])
            fresh._reading = None if data["reading"] is None else float(data["reading"])
            fresh.interval, fresh.waited = int(data["interval"]), int(data["waited"])
        except (KeyError, TypeError) as problem:
            raise ValueError(f"not what was learned of a pair: {problem!r}") from problem
        if not (fresh._reading is None or 0 <= fresh._reading < math.inf):
            raise ValueError("reading cannot take that long")
        for name in ("target", "draft", "acceptance", "interval", "waited", "_reading"):
            setattr(self, name, getattr(fresh, name))
