"""One round of decoding: draft, verify, correct."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from specchat.backends.base import NO_DRAFT, Draft, Drafter, LanguageModel, PassInput, bring_to
from specchat.core.draft_length import DraftLength, FixedLength, RoundOutcome
from specchat.core.events import CommittedToken, Fate, FinishReason, Round, RoundSeconds
from specchat.core.sampling import Distribution, SamplingParams, distribution
from specchat.core.verification import VerificationRule, rule_named
from specchat.decoding.detokenizer import TextStream
from specchat.decoding.round_record import TokenTexts, Verdict, drafted_tokens, position_details
from specchat.errors import DecodeError


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """What holds for the next round. It may be another one in each round: settings change while a reply is written.

    ``why`` is a sentence for a person, where drafting is limited or off for a reason that the settings give.
    """

    params: SamplingParams
    drafter: Drafter | None = None
    length: DraftLength = field(default_factory=lambda: FixedLength(0))
    rule: VerificationRule = field(default_factory=lambda: rule_named("token"))
    why: str | None = None

    @property
    def draft_params(self) -> SamplingParams:
        """What the drafter draws with. The match rule's draft proposes its most likely token: its q is one-hot."""
        return replace(self.params, temperature=0.0) if self.rule.name == "match" else self.params


class RoundPlayer:
    """The state of one reply between rounds, and the play of one round.

    Attributes:
        context: everything committed: the prompt and the reply so far. The target's cache holds all of it but the
            last token, which the next pass evaluates.
        num_committed: the tokens of the reply so far.
        ended: why the reply is over; None while it is not.
    """

    def __init__(
        self,
        target: LanguageModel,
        context: list[int],
        rng: np.random.Generator,
        *,
        stop: Sequence[str],
        sequence: int,
        details: bool,
        clock: Callable[[], float],
    ) -> None:
        self.context = context
        self.num_committed = 0
        self.ended: FinishReason | None = None
        self._target = target
        self._rng = rng
        self._sequence = sequence
        self._details = details
        self._clock = clock
        self._texts = TokenTexts(target.vocabulary)
        self._stream = TextStream(stop)
        self._index = 0
        self._began = self._mark = clock()
        self._started: float | None = None

    @property
    def room(self) -> int:
        """How many tokens the next pass can evaluate before the context is full."""
        return self._target.n_ctx - len(self.context) + 1

    @property
    def largest_pass(self) -> int:
        """How many tokens one pass can take and return logits for."""
        return min(self._target.max_batch, self._target.max_logits)

    @property
    def seconds(self) -> float:
        """The time since `start`; 0 before it."""
        return 0.0 if self._started is None else self._clock() - self._started

    def start(self) -> None:
        """The target has read the prompt: from here on time counts (product.md, "Time")."""
        self._started = self._mark = self._clock()

    def skip(self) -> None:
        """What happened since the last round has an event of its own and is no part of the next round's time."""
        self._mark = self._clock()

    def finish_text(self) -> str:
        """Text that was held back and belongs to the reply after all."""
        return self._stream.finish()

    def play(self, plan: RoundPlan, num_draft_tokens: int) -> Round:
        """Plays one round with at most ``num_draft_tokens`` drafted; 0 is plain decoding.

        Raises:
            DecodeError: the model failed. The context is as it was.
        """
        began = self._clock()
        draft = self._draft(plan, num_draft_tokens)
        drafted = self._clock()
        logits = self._verify(draft)
        verified = self._clock()
        p = self._target_distributions(logits, draft, plan.params)
        verdict = self._judge(draft, p, plan.rule)
        texts = self._texts.following(self._stream, draft.tokens)
        committed = self._commit(draft, p, verdict)
        sampled = self._clock()
        self._cut_cache()
        seconds = RoundSeconds(
            draft=drafted - began,
            verify=verified - drafted + self._clock() - sampled,
            sample=sampled - verified,
            other=0.0,
        )
        self._teach(plan, num_draft_tokens, draft, verdict, committed, seconds)
        judged = drafted_tokens(draft, p, verdict, texts, len(committed), self._texts)
        details = None
        if self._details:
            details = position_details(plan.rule, draft, p, verdict.thresholds, self._texts)
        self._index += 1
        now = self._clock()
        other = now - self._mark - seconds.total  # what is left of the wall clock is our own overhead
        self._mark = now
        return Round(
            index=self._index - 1,
            at=now - self._began,
            rule=plan.rule.name if len(draft) else "plain",
            num_draft_tokens=len(draft),
            drafted=judged,
            committed=committed,
            seconds=RoundSeconds(seconds.draft, seconds.verify, seconds.sample, max(0.0, other)),
            why=plan.why or plan.length.reason or draft.reason,
            details=details,
        )

    def _teach(
        self,
        plan: RoundPlan,
        num_draft_tokens: int,
        draft: Draft,
        verdict: Verdict,
        committed: Sequence[CommittedToken],
        seconds: RoundSeconds,
    ) -> None:
        """Tells the length rule and the drafter what became of the draft."""
        plan.length.observe(
            RoundOutcome(
                num_drafted=len(draft),
                num_accepted=verdict.num_accepted,
                draft_seconds=seconds.draft,
                verify_seconds=seconds.verify + seconds.sample,
                drafter=draft.drafter,
                evaluated=draft.evaluated,
            )
        )
        if plan.drafter is not None and num_draft_tokens > 0:
            plan.drafter.observe(draft, verdict.num_accepted, [token.id for token in committed])

    def _draft(self, plan: RoundPlan, num_draft_tokens: int) -> Draft:
        if plan.drafter is None or num_draft_tokens == 0:
            return NO_DRAFT
        draft = plan.drafter.propose(self.context, plan.length, num_draft_tokens, plan.draft_params, self._rng)
        if len(draft) > num_draft_tokens:
            raise DecodeError(f"The drafter {draft.drafter} proposed more than it was asked for.", "Choose another.")
        for i, token in enumerate(draft.tokens[:-1]):
            if self._target.vocabulary.is_end(token):  # what follows an end is never looked at: this changes no odds
                return replace(draft, tokens=draft.tokens[: i + 1], q=draft.q[: i + 1])
        return draft

    def _verify(self, draft: Draft) -> NDArray[np.float32]:
        """One pass over the last committed token and the drafted ones: logits ``[γ + 1, n_vocab]``."""
        if len(self._target.tokens(self._sequence)) != len(self.context) - 1:
            # The last round could not bring the cache to where it should be: evaluate again, never trust.
            bring_to(self._target, self._sequence, self.context[:-1])
        tokens = (self.context[-1], *draft.tokens)
        return self._target.decode([PassInput(self._sequence, tokens, len(tokens))])[0]

    def _target_distributions(
        self, logits: NDArray[np.float32], draft: Draft, params: SamplingParams
    ) -> list[Distribution]:
        """p₁…p_{γ+1}. Penalties at position i see the committed tokens and x̂₁…x̂_{i−1}."""
        recent = params.recent(self.context)
        history = [*recent, *draft.tokens]
        try:
            return [distribution(row, params, history[: len(recent) + i]) for i, row in enumerate(logits)]
        except ValueError as problem:
            raise DecodeError(
                f"The target's logits make no distribution: {problem}.",
                "Load the pair again; if it happens again, the file or the device is faulty.",
            ) from problem

    def _judge(self, draft: Draft, p: list[Distribution], rule: VerificationRule) -> Verdict:
        """Which drafted tokens are kept, and the token that is drawn after them."""
        thresholds = rule.thresholds(draft.tokens, draft.q, p)
        draws = self._rng.random(len(draft))
        kept = rule.num_accepted(thresholds, draws)
        ends = kept == len(draft) > 0 and self._target.vocabulary.is_end(draft.tokens[-1])
        following = None if ends else rule.next_distribution(kept, draft.tokens, draft.q, p).sample(self._rng)
        return Verdict(thresholds, draws, kept, following)

    def _commit(self, draft: Draft, p: list[Distribution], verdict: Verdict) -> tuple[CommittedToken, ...]:
        """Adds what the round brought to the context, up to the end of the reply if it is in it."""
        kept = verdict.num_accepted
        new = [(token, Fate.ACCEPTED) for token in draft.tokens[:kept]]
        if verdict.following is not None:
            drawn = Fate.PLAIN if not len(draft) else Fate.BONUS if kept == len(draft) else Fate.RESAMPLED
            new.append((verdict.following, drawn))
        committed: list[CommittedToken] = []
        for (token, fate), p_there in zip(new, p, strict=False):
            text = self._stream.push(self._texts.visible(token))
            committed.append(CommittedToken(token, self._texts.piece(token), text, fate, p_there.probability(token)))
            if self._target.vocabulary.is_end(token):
                self.ended = "end"
            elif self._stream.stopped:
                self.ended = "stop"
            if self.ended is not None:
                break
        self.context.extend(token.id for token in committed)
        self.num_committed += len(committed)
        return tuple(committed)

    def _cut_cache(self) -> None:
        """Forgets the drafted tokens that were not kept. The last committed token is evaluated by the next pass.

        A cache that cannot be cut there forgets more. What it lacks then is read again at once, so that this round pays
        for it; if that fails, the next round says so, and this one's tokens are not lost.
        """
        wanted = len(self.context) - 1
        if len(self._target.tokens(self._sequence)) > wanted:
            kept = self._target.truncate(self._sequence, wanted)
            if kept < wanted and self.ended is None:
                with suppress(DecodeError):
                    bring_to(self._target, self._sequence, self.context[:-1])
