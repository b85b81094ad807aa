"""What is kept of one measured reply, whoever wrote it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from specchat.core.events import Event, Finished, Prefill, Round
from specchat.core.stats import RoundTotals
from specchat.core.theory import RoundCosts, cost_of_rounds
from specchat.lab.bench_plan import Trial, Who

MODEL_DRAFTERS = frozenset({"draft"})
"""Whose tokens cost steps of a draft model. Everybody else proposes for nothing."""


@dataclass(slots=True)
class RoundsByDrafter:
    """Rounds, folded apart for each drafter ("none" where nothing was drafted): their costs differ."""

    totals: dict[str, RoundTotals] = field(default_factory=lambda: defaultdict(RoundTotals))

    def add(self, played: Round) -> None:
        """Adds one round."""
        self.totals[played.drafted[0].drafter if played.drafted else "none"].add(played)

    def include(self, others: RoundsByDrafter) -> None:
        """Adds the rounds of another fold."""
        for drafter, totals in others.totals.items():
            self.totals[drafter].include(totals)

    @property
    def all(self) -> RoundTotals:
        """All rounds together."""
        together = RoundTotals()
        for totals in self.totals.values():
            together.include(totals)
        return together

    def predicted_speedup(self, costs: RoundCosts) -> float | None:
        """The tokens of these rounds ÷ what they should cost, in plain steps; None where that is not known."""
        free = RoundCosts(costs.passes)
        tokens, cost = 0, 0.0
        for drafter, totals in self.totals.items():
            tokens += totals.tokens
            price = costs if drafter in MODEL_DRAFTERS else free
            try:
                cost += cost_of_rounds(totals.rounds_by_length, totals.all_accepted, price)
            except ValueError:  # longer passes than were measured
                return None
        return tokens / cost if tokens and cost > 0 else None


@dataclass(frozen=True, slots=True)
class Sample:
    """One reply.

    Attributes:
        tokens, seconds: what was written, and the time from the end of the target's prefill to the end of the reply.
            Of another server: the tokens after the first, and the time after the first, which comes out of its
            prefill.
        prompt_tokens: the prompt's length.
        prompt_seconds: how long the target read the prompt, None where most of it was in its cache.
        first_seconds: from the end of the target's prefill to the first token.
        draft_prefill_seconds: the part of ``seconds`` in which a draft model read the prompt.
        rounds: the reply's rounds; empty for another server.
        memory_bytes: resident memory of the process that wrote it, right after.
        why: what was said last about the draft length.
    """

    tokens: int
    seconds: float
    prompt_tokens: int
    prompt_seconds: float | None
    first_seconds: float
    draft_prefill_seconds: float = 0.0
    rounds: RoundsByDrafter = field(default_factory=RoundsByDrafter)
    memory_bytes: int | None = None
    why: str | None = None

    @property
    def tokens_per_second(self) -> float | None:
        """None for a reply without a token."""
        return self.tokens / self.seconds if self.tokens and self.seconds > 0 else None


class ReplyFold:
    """Folds the events of one reply into a `Sample`."""

    def __init__(self) -> None:
        self.finished: Finished | None = None
        self._rounds = RoundsByDrafter()
        self._target = Prefill("target", 0, 0, 0.0)
        self._draft_seconds = 0.0
        self._first: float | None = None
        self._why: str | None = None

    def add(self, event: Event) -> None:
        """Takes one event into account."""
        match event:
            case Prefill(model="target"):
                self._target = event
            case Prefill():
                self._draft_seconds += event.seconds
            case Round():
                self._rounds.add(event)
                if self._first is None:
                    self._first = self._draft_seconds + event.seconds.total
                self._why = event.why or self._why
            case Finished():
                self.finished = event

    def sample(self, memory_bytes: int | None) -> Sample:
        """The reply, once it is finished."""
        assert self.finished is not None
        return Sample(
            tokens=self.finished.tokens,
            seconds=self.finished.seconds,
            prompt_tokens=self._target.tokens + self._target.reused + 1,  # its last token is read by the first round
            prompt_seconds=self._target.seconds if self._target.tokens >= self._target.reused else None,
            first_seconds=self._first or 0.0,
            draft_prefill_seconds=self._draft_seconds,
            rounds=self._rounds,
            memory_bytes=memory_bytes,
            why=self._why,
        )


@dataclass(frozen=True, slots=True)
class TrialResult:
    """A trial and the replies that were written in it."""

    trial: Trial
    samples: dict[Who, Sample]
