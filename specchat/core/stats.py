"""Figures of a reply or of a chat, folded from its events. Definitions: product.md, "The maths".

The fold sees events only, so it gives the same figures while a reply streams and when its record is read.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import TypeVar

from specchat.core.events import Event, Fate, Finished, FinishReason, PlainSpeed, Prefill, Round
from specchat.core.theory import RoundCosts, cost_of_rounds

WINDOW = 60
"""How many rounds the rolling figures look back."""

_SUMS = (
    "rounds", "tokens", "accepted", "rejected", "ignored", "all_accepted",
    "draft_seconds", "verify_seconds", "sample_seconds", "other_seconds",
)  # fmt: skip

_AnyEvent = TypeVar("_AnyEvent", bound=Event)


class RoundTotals:
    """Sums over rounds, and the figures that follow from them.

    Attributes:
        rounds: how many rounds.
        tokens: committed tokens.
        accepted, rejected, ignored: drafted tokens by fate. Only the first two were judged.
        drafting_rounds: the rounds that drafted anything.
        all_accepted: the rounds among them that kept all they drafted.
        rounds_by_length: how many rounds drafted γ tokens, by γ.
        draft_seconds, verify_seconds, sample_seconds, other_seconds: where the rounds' time went.
    """

    def __init__(self, rounds: Iterable[Round] = ()) -> None:
        self.rounds = 0
        self.tokens = 0
        self.accepted = 0
        self.rejected = 0
        self.ignored = 0
        self.all_accepted = 0
        self.rounds_by_length: Counter[int] = Counter()
        self.draft_seconds = 0.0
        self.verify_seconds = 0.0
        self.sample_seconds = 0.0
        self.other_seconds = 0.0
        self._judged_at: Counter[int] = Counter()
        self._kept_at: Counter[int] = Counter()
        for played in rounds:
            self.add(played)

    def add(self, played: Round) -> None:
        """Adds one round."""
        self.rounds += 1
        self.tokens += len(played.committed)
        self.rounds_by_length[len(played.drafted)] += 1
        self.draft_seconds += played.seconds.draft
        self.verify_seconds += played.seconds.verify
        self.sample_seconds += played.seconds.sample
        self.other_seconds += played.seconds.other
        for i, token in enumerate(played.drafted):
            if token.fate is Fate.ACCEPTED:
                self.accepted += 1
                self._kept_at[i] += 1
                self._judged_at[i] += 1
            elif token.fate is Fate.REJECTED:
                self.rejected += 1
                self._judged_at[i] += 1
            else:
                self.ignored += 1
        if played.drafted and played.drafted[-1].fate is Fate.ACCEPTED:
            self.all_accepted += 1

    def include(self, others: RoundTotals) -> None:
        """Adds the rounds that another fold has seen."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(others, name))
        for mine, theirs in (
            (self.rounds_by_length, others.rounds_by_length),
            (self._judged_at, others._judged_at),
            (self._kept_at, others._kept_at),
        ):
            mine.update(theirs)

    @property
    def drafting_rounds(self) -> int:
        """The rounds that drafted anything."""
        return self.rounds - self.rounds_by_length[0]

    @property
    def seconds(self) -> float:
        """The rounds' wall-clock time."""
        return self.draft_seconds + self.verify_seconds + self.sample_seconds + self.other_seconds

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted ÷ judged drafted tokens; None where nothing was judged."""
        judged = self.accepted + self.rejected
        return self.accepted / judged if judged else None

    @property
    def acceptance_by_position(self) -> tuple[float, ...]:
        """α of positions 1, 2, …: rounds that kept at least i ÷ rounds in which token i was judged.

        A token is judged where all before it were kept and the reply had not ended; positions never judged are left
        out at the end.
        """
        rates: list[float] = []
        while judged := self._judged_at[len(rates)]:
            rates.append(self._kept_at[len(rates)] / judged)
        return tuple(rates)

    @property
    def tokens_per_round(self) -> float | None:
        """Committed tokens ÷ rounds; None before the first round."""
        return self.tokens / self.rounds if self.rounds else None

    @property
    def tokens_per_second(self) -> float | None:
        """Committed tokens ÷ the rounds' time (`ReplyStats` adds the draft's prefill to it)."""
        return _ratio(self.tokens, self.seconds)

    @property
    def share_all_accepted(self) -> float | None:
        """The share of drafting rounds that kept all they drafted; None where nothing was drafted."""
        return self.all_accepted / self.drafting_rounds if self.drafting_rounds else None

    def predicted_speedup(self, costs: RoundCosts) -> float | None:
        """The measured tokens a round ÷ what these rounds should cost; None before the first round.

        Raises:
            ValueError: a round was longer than what ``costs`` knows.
        """
        return _ratio(self.tokens, cost_of_rounds(self.rounds_by_length, self.all_accepted, costs))


class ReplyStats:
    """The fold over a reply's events, or over those of several replies of a chat, one after the other.

    Attributes:
        total: all rounds so far.
        prefill_seconds, draft_prefill_seconds: how long the target and the draft took to read the prompt.
        plain: the speed of plain decoding, the last one known.
        finished: the last reply's end, once it is there.
    """

    def __init__(self) -> None:
        self.total = RoundTotals()
        self.prefill_seconds = 0.0
        self.draft_prefill_seconds = 0.0
        self.plain: PlainSpeed | None = None
        self.finished: Finished | None = None
        self._recent: deque[Round] = deque(maxlen=WINDOW)
        self._finished_seconds = 0.0
        self._running_seconds = 0.0

    def add(self, event: _AnyEvent) -> _AnyEvent:
        """Takes one event into account, and returns it."""
        match event:
            case Prefill(model="target"):
                self.prefill_seconds += event.seconds
                self.finished = None
            case Prefill():
                self.draft_prefill_seconds += event.seconds
                self._running_seconds += event.seconds
            case PlainSpeed():
                self.plain = event
            case Round():
                self.total.add(event)
                self._recent.append(event)
                self._running_seconds += event.seconds.total
            case Finished():
                self.finished = event
                self._finished_seconds += event.seconds
                self._running_seconds = 0.0
        return event

    @property
    def recent(self) -> Sequence[Round]:
        """The last `WINDOW` rounds, oldest first."""
        return tuple(self._recent)

    @property
    def window(self) -> RoundTotals:
        """The sums of the last `WINDOW` rounds."""
        return RoundTotals(self._recent)

    @property
    def seconds(self) -> float:
        """From the end of the target's prefill on, the draft's prefill and our own overhead included.

        While a reply streams it is the sum of what its events account for, afterwards what `Finished` says.
        """
        return self._finished_seconds + self._running_seconds

    @property
    def tokens_per_second(self) -> float | None:
        """Committed tokens ÷ `seconds`; None before the first token."""
        return _ratio(self.total.tokens, self.seconds)

    @property
    def speedup(self) -> float | None:
        """`tokens_per_second` ÷ that of plain decoding; None where either is not known."""
        return _speedup(self.tokens_per_second, self.plain)

    def finish(self, reason: FinishReason, seconds: float, tail: str = "") -> Finished:
        """The end of the reply that this fold has seen, and no other; it is added as well.

        Args:
            reason: why the reply ended.
            seconds: from the end of the target's prefill to the end of the reply, by the clock.
            tail: text that was held back and belongs to the reply after all.
        """
        speed = _ratio(self.total.tokens, seconds)
        return self.add(
            Finished(
                reason=reason,
                tokens=self.total.tokens,
                rounds=self.total.rounds,
                seconds=seconds,
                prefill_seconds=self.prefill_seconds,
                acceptance_rate=self.total.acceptance_rate,
                acceptance_by_position=self.total.acceptance_by_position,
                tokens_per_round=self.total.tokens_per_round,
                tokens_per_second=speed,
                plain_tokens_per_second=self.plain.tokens_per_second if self.plain else None,
                plain_source=self.plain.source if self.plain else None,
                speedup=_speedup(speed, self.plain),
                tail=tail,
            )
        )


def _ratio(amount: float, per: float) -> float | None:
    return amount / per if amount > 0 and per > 0 else None


def _speedup(tokens_per_second: float | None, plain: PlainSpeed | None) -> float | None:
    return _ratio(tokens_per_second or 0.0, plain.tokens_per_second if plain else 0.0)
