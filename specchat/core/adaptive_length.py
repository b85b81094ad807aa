"""γ chosen round by round and draw by draw, so that tokens ÷ time is as large as this machine and this text allow.

Decoding is a renewal process: each round brings some tokens and takes some time. The rate λ (tokens a second) of late
is the price of time: a further token is worth drafting where the tokens that it is expected to bring are more than λ
times the time that it takes. Plain decoding is a candidate like any other, so λ is never below 1/T(1).

What is expected comes from how sure the draft is at each draw (`specchat.core.acceptance`); what it costs is measured
(`specchat.core.experience`). The length rule holds: every decision is made before the draw, from what is known then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul, truediv

import numpy as np
from numpy.typing import NDArray

from specchat.core.acceptance import Ending, margin
from specchat.core.allowance import Allowance
from specchat.core.draft_length import RoundOutcome
from specchat.core.drafting_state import DraftingState
from specchat.core.experience import HOPE, Experience
from specchat.core.promises import Promises
from specchat.core.sampling import Distribution

_RATE_MEMORY = 24
"""The rate is that of about so many rounds: text changes from passage to passage."""
_MODESTY = 0.7
"""So much of it is taken: a lucky stretch raises it above what lasts, and rounds would end too early for it."""
_HORIZON = 40
"""Reading what the draft model missed must pay within so many rounds."""
_FIRST_INTERVAL = 8
_LARGEST_INTERVAL = 128
"""Rounds between trials: twice as many after each in vain; one whose tokens were kept is followed by another."""
_TRIAL_SHARE, _MOST_FOR_TRIALS = 0.006, 4.0
"""Trials may cost this share of the time, and so many plain steps at once."""
_CAUTION = 0.08
"""A free proposal pays so much more for its time beyond a plain step: what looks best was overrated more often."""
_FORESIGHT = 40
"""So much of a free proposal is looked at: what lies further on does not matter now."""
_NEGLIGIBLE = 1e-3
"""Chances below this are not followed further."""
_BOUNDS_LAST = 32
"""Rounds for which what could pay at best is taken to stay as it is: costs change slowly."""


@dataclass(slots=True)
class _Draw:
    """What is known of a token before and after it is drawn."""

    margin: float
    largest: float
    is_likeliest: bool = True


@dataclass(slots=True)
class _Bounds:
    """What could pay at best, by what passes cost: most rounds of most texts can be settled by it.

    Attributes:
        chance_needed: of the first token of a free proposal, if all others are sure.
        model_can_gain: whether a draft model could, were all of its tokens kept.
        rounds_left: how long this holds.
    """

    chance_needed: float
    model_can_gain: bool
    rounds_left: int = _BOUNDS_LAST

    @classmethod
    def of(cls, experience: Experience, limit: int) -> _Bounds:
        """For proposals of up to ``limit`` tokens."""
        plain, step = experience.plain, experience.step()
        dearer = [(count, (experience.verify(count + 1) - plain)) for count in range(1, limit + 1)]
        return cls(
            chance_needed=min((seconds / (count * plain) for count, seconds in dearer), default=0.0),
            model_can_gain=any(count * (plain - step) > seconds for count, seconds in dearer),
        )


class AdaptiveLength:
    """The length rule of *fast*, and of ``--gamma auto``.

    It lives as long as the pair is loaded. What it learns is in ``experience``.

    Attributes:
        experience: what is known of the pair.
        floor: how many tokens are drafted at least: 0 in *fast*, where plain decoding is a candidate; 1 in *watch*.
        most: the largest γ; None for as many as there is room for. The same as ``floor`` for a fixed γ.
        reason: see `DraftLength.reason`.
    """

    def __init__(self, experience: Experience, *, floor: int = 0, most: int | None = None) -> None:
        self.experience = experience
        self.floor = floor
        self.most = most
        self.reason: str | None = None
        self._limit = 0
        self._largest = 1
        self._draws: list[_Draw] = []
        self._survival = 1.0
        self._asked: bool | None = None
        self._behind = 1
        self._is_trial = False
        self._read_seconds = 0.0
        self._state = DraftingState()
        self._ending: Ending = "plain"
        self._tokens = 0.0
        self._seconds = 0.0
        self._bounds: _Bounds | None = None
        self._trials = Allowance(_TRIAL_SHARE, _MOST_FOR_TRIALS)
        self._promises = Promises()

    @property
    def rate(self) -> float:
        """λ: tokens a second of the last rounds, at what rounds cost by now; never below plain decoding."""
        lately = _MODESTY * self._tokens / self._seconds if self._seconds > 0 else 0.0
        return max(1 / self.experience.plain, lately)

    def _rate_here(self, attainable: Iterable[float]) -> float:
        """λ where the best that a whole round can attain is this: plain decoding is no better for a rate out of reach.

        A lucky stretch would otherwise make every round look bad, and plain decoding, which costs least, the least bad.
        """
        return max(1 / self.experience.plain, min(self.rate, max(attainable, default=0.0)))

    def begin_reply(self) -> None:
        """Another text begins; what was learned stays."""
        self._ending = "plain"

    def begin_round(self, limit: int) -> int:
        """``limit``; 0 where plain decoding was not measured lately (see `DraftLength.begin_round`)."""
        self._draws.clear()
        self._survival = 1.0
        self._asked = None
        self._is_trial = False
        self._read_seconds = 0.0
        self.reason = None
        if self.most is not None:
            limit = min(limit, self.most)
        plain_is_known = self.floor > 0 or self.experience.target.is_well_known(1)
        self._limit = limit if plain_is_known else 0
        if self._bounds is None or self._bounds.rounds_left == 0 or limit > self._largest:
            self._largest = max(self._largest, limit)
            self._bounds = _Bounds.of(self.experience, self._largest)
        self._bounds.rounds_left -= 1
        return self._limit

    def pays(self, behind: int) -> bool:
        """Whether the draft model is expected to bring more than it costs, or is tried again."""
        if self._asked is None:
            self._behind = behind
            self._asked = self.floor > 0 or self._expects_gain() or self._may_try()
        return self._asked

    def more(self, num_drawn: int, q: Distribution, logits: NDArray[np.float32] | None = None) -> bool:
        """Whether the token of this q is worth its share of the pass (see `DraftLength.more`)."""
        acceptance = self.experience.acceptance
        draw = _Draw(margin(q, logits), q.largest)
        chance = acceptance.before_draw(draw.margin, draw.largest)
        if self._draws:
            acceptance.observe_next(self._draws[-1].margin, draw.margin, draw.largest)
        else:
            acceptance.observe_first(self._ending, draw.margin, draw.largest)
        self._draws.append(draw)
        if num_drawn < self.floor or (self._is_trial and num_drawn == 0):  # a trial is to find out
            return True
        return self._is_worth_it(num_drawn, (chance, acceptance.next(draw.margin)), 0.0)

    def go_on(self, num_drawn: int, probability: float) -> bool:
        """Whether asking the draft for another token is worth the step (see `DraftLength.go_on`)."""
        acceptance = self.experience.acceptance
        draw = self._draws[-1]
        draw.is_likeliest = probability >= draw.largest
        self._survival *= acceptance.after_draw(draw.margin, draw.is_likeliest)
        following = acceptance.next(draw.margin)
        return num_drawn < self.floor or self._is_worth_it(num_drawn, (following,), self.experience.step())

    def could_use(self, chance: float) -> bool:
        """Whether passes are cheap enough for that (see `DraftLength.could_use`)."""
        return self.floor > 0 or self._bounds is None or chance >= self._bounds.chance_needed

    def choose(self, chances: Sequence[float]) -> int:
        """The number with the largest expected gain, as far as the proposals are trusted (see `DraftLength.choose`).

        0 where plain decoding or the draft model promises more.
        """
        chances = chances[:_FORESIGHT]
        possible = min(len(chances), self._limit)
        least = min(self.floor, possible)
        values = self._values(chances, possible)
        best, most = 0, values[0] if self.floor == 0 else -math.inf
        for count in range(max(least, 1), possible + 1):
            if values[count] > most and (count == least or self._promises.allow(self._cost(count))):
                best, most = count, values[count]
        if self._asked and self._gain_of_free(chances[:best]) < self._gain_of_model():
            return 0
        if best:
            self._promises.accept(chances[:best], self._cost(best))
        return best

    def _cost(self, num_draft_tokens: int) -> float:
        """Of the pass that verifies so many, in plain steps."""
        return self.experience.verify(num_draft_tokens + 1) / self.experience.plain

    def _gain_of_free(self, chances: Sequence[float]) -> float:
        """What using these tokens of a free proposal is expected to bring beyond plain decoding, in tokens."""
        kept, seconds = math.fsum(accumulate(chances, mul)), self.experience.verify(len(chances) + 1)
        return kept - self._rate_here([(1 + kept) / seconds]) * (seconds - self.experience.plain)

    def _values(self, chances: Sequence[float], possible: int) -> list[float]:
        """What using 0…``possible`` tokens of a free proposal is worth, in tokens beyond what λ makes of the time.

        Where all are kept, the rest of the proposal is still there for the next round. So a long one is cut where
        passes are cheap, from its end to its beginning.
        """
        seconds = [self.experience.verify(size) for size in range(1, possible + 2)]
        tokens = (1.0 + kept for kept in accumulate(accumulate(chances[:possible], mul)))
        rate = self._rate_here(map(truediv, tokens, seconds[1:]))
        plain = seconds[0]
        prices = [rate * (each + _CAUTION * (each - plain)) for each in seconds]
        worth = [0.0] * (len(chances) + 2)  # of standing at a place of the proposal
        values = [1.0 - prices[0]]
        for here in range(len(chances) - 1, -1, -1):
            kept = expected = 1.0
            values = []
            for count in range(min(possible, len(chances) - here) + 1):
                if count:
                    kept *= chances[here + count - 1]
                    expected += kept
                on = kept * chances[here + count] * worth[here + count + 1] if here + count < len(chances) else 0.0
                values.append(expected - prices[count] + on)
            worth[here] = max(values)
        return values

    def observe_reading(self, num_tokens: int, seconds: float) -> None:
        """Learns what reading costs; a trial pays for it."""
        self.experience.observe_reading(seconds, num_tokens)
        self._read_seconds = seconds

    def observe(self, outcome: RoundOutcome) -> None:
        """Learns what a finished round cost and kept."""
        experience = self.experience
        experience.target.observe(outcome.num_drafted + 1, outcome.verify_seconds)
        asked_model = bool(self._draws)
        if asked_model:
            self._learn_from_model(outcome)
        else:
            self._ending = "plain"
            experience.acceptance.grow_stale()
            experience.waited += 1
        tokens = outcome.num_accepted + 1
        seconds = self._expected_seconds(outcome)
        keep = 1 - 1 / _RATE_MEMORY
        self._tokens = self._tokens * keep + tokens
        self._seconds = self._seconds * keep + seconds
        steps = seconds / experience.plain
        self._trials.earn(steps)
        self._promises.end_round(tokens, steps)
        if asked_model and self._is_trial:
            self._trials.add(min(0.0, tokens - steps - self._read_seconds / experience.plain))
            if 0 < outcome.num_drafted == outcome.num_accepted:  # what it had to read is paid for: try once more
                experience.waited = experience.interval
            else:
                experience.interval = min(_LARGEST_INTERVAL, 2 * experience.interval)
        if self._asked is not None and self.floor == 0:
            self.reason = self._news()

    def _learn_from_model(self, outcome: RoundOutcome) -> None:
        experience = self.experience
        steps = len(self._draws)
        experience.observe_draft(outcome.draft_seconds, steps, outcome.evaluated - (steps - 1))
        for i, draw in enumerate(self._draws[: min(outcome.num_drafted, outcome.num_accepted + 1)]):
            experience.acceptance.observe_draw(draw.margin, draw.is_likeliest, i < outcome.num_accepted)
        all_kept = outcome.num_accepted == outcome.num_drafted
        self._ending = "kept" if all_kept else "rejected"
        experience.waited = 0

    def _expected_seconds(self, outcome: RoundOutcome) -> float:
        """What such a round takes by now. Not what this one took: a stall says nothing about the next."""
        seconds = self.experience.verify(outcome.num_drafted + 1)
        if self._draws:
            steps = len(self._draws)
            seconds += self.experience.first_step(outcome.evaluated - (steps - 1))
            seconds += (steps - 1) * self.experience.step()
        return seconds

    def _prospects(
        self, num_drawn: int, nearest: Sequence[float], step: float, hope: float | None = None
    ) -> Iterator[tuple[float, float]]:
        """What drafting on is expected to bring and to cost beyond stopping now: tokens and seconds, by length.

        Args:
            num_drawn: how many tokens were drawn.
            nearest: the chances of the next ones; those further on have the usual one, or ``hope``.
            step: what the draft's next step costs.
            hope: the chance of all, and costs that are little known are taken at their best.
        """
        experience, hopeful = self.experience, hope is not None
        later = experience.acceptance.later if hope is None else hope
        kept, tokens, drafting = self._survival, 0.0, step
        now = experience.verify(num_drawn + 1, hopeful)
        for i in range(self._limit - num_drawn):
            kept *= nearest[i] if i < len(nearest) else later
            if kept < _NEGLIGIBLE:
                break
            tokens += kept
            yield tokens, drafting + experience.verify(num_drawn + i + 2, hopeful) - now
            drafting += experience.step(hopeful)

    def _is_worth_it(self, num_drawn: int, nearest: Sequence[float], step: float) -> bool:
        rate = self.rate
        return any(tokens > rate * seconds for tokens, seconds in self._prospects(num_drawn, nearest, step))

    def _gain_of_model(self, hope: float | None = None) -> float:
        """What asking the draft model is expected to bring beyond plain decoding, in tokens."""
        plain = self.experience.plain
        nearest = (self.experience.acceptance.first(self._ending),) if hope is None else ()
        found = list(self._prospects(0, nearest, self._first_cost(hope is not None), hope))
        rate = self._rate_here((1 + tokens) / (plain + seconds) for tokens, seconds in found)
        return max((tokens - rate * seconds for tokens, seconds in found), default=0.0)

    def _first_cost(self, hopeful: bool = False) -> float:
        """The draft's first step; what it must read counts in shares, because it serves later rounds too."""
        step = self.experience.step(hopeful)
        reading = self.experience.first_step(self._behind, hopeful) - step
        return step + (reading if self._behind <= 2 else reading / _HORIZON)

    def _news(self) -> str | None:
        match self._state.changed_to(bool(self._asked) and not self._is_trial):
            case None:
                return None
            case True:
                return "fast: drafting"
        recent, needed = self.experience.acceptance.recent, self.experience.break_even(self._largest + 1)
        figures = [] if recent is None else [f"α {recent:.2f}"]
        figures.append("break-even none" if needed is None else f"break-even {needed:.2f}")
        return f"fast: not drafting, it would cost more than it saves ({', '.join(figures)})"

    def _expects_gain(self) -> bool:
        if (self._bounds is not None and not self._bounds.model_can_gain) or self._gain_of_model() <= 0:
            return False
        self.experience.interval = _FIRST_INTERVAL
        return True

    def _may_try(self) -> bool:
        """Whether it is time to try the draft model again, and the trial can be afforded."""
        experience = self.experience
        if experience.waited < experience.interval:
            return False
        if self._gain_of_model(HOPE) <= 0:
            return False
        cost = experience.first_step(self._behind) + experience.verify(2) - experience.plain
        if cost / experience.plain > self._trials.amount:
            return False
        self._is_trial = True
        return True
