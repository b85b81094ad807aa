"""A drafter that is a smaller language model: it draws x̂₁…x̂_γ, each from its own distribution after the ones before.

Its cache follows the chat: it is cut to what both have in common, and the rest is evaluated. So nothing is special
about a round after which all was accepted: the draft is then two tokens behind, and takes both in its first step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from specchat.backends.base import Draft, LanguageModel, PassInput, bring_to, common_prefix
from specchat.core.draft_length import DraftLength
from specchat.core.events import Prefill
from specchat.core.sampling import Distribution, SamplingParams, distribution
from specchat.errors import DecodeError


class ModelDrafter:
    """Drafts with a language model that has the target's vocabulary.

    Args:
        model: the draft model. Its sequence is the drafter's own.
        n_vocab: how many ids the target has. The draft's further ids (padding) are never drawn: masked in q.
        sequence: which of the model's sequences to use.
        clock: seconds.
    """

    name = "draft"

    def __init__(
        self,
        model: LanguageModel,
        n_vocab: int,
        *,
        sequence: int = 0,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.model = model
        self._n_target = n_vocab
        self._sequence = sequence
        self._clock = clock
        self._proposed_after = 0
        self._followed: Sequence[int] = ()
        self._agreed = 0

    def behind(self, context: Sequence[int]) -> int:
        """How many tokens of ``context`` its cache lacks, the last one always among them."""
        held = self.model.tokens(self._sequence)
        # A context only grows, and nobody else evaluates anything here: what agreed before need not be compared again.
        known = min(self._agreed, len(held), len(context)) if context is self._followed else 0
        self._followed, self._agreed = context, common_prefix(held, context, known)
        return len(context) - min(self._agreed, len(context) - 1)

    def prefill(self, prompt: Sequence[int], should_stop: Callable[[], bool]) -> Prefill | None:
        """Reads all of the prompt but its last token, which the first step of `propose` takes.

        None where nothing is to be read, or where the draft cannot follow this chat (`propose` says why).

        Raises:
            Interrupted: ``should_stop()`` was true; what was read is kept.
            DecodeError: the model failed.
        """
        if self._obstacle(prompt, self.behind(prompt)) is not None:
            return None
        began = self._clock()
        evaluated, reused = bring_to(self.model, self._sequence, prompt[:-1], should_stop)
        return Prefill("draft", evaluated, reused, self._clock() - began) if evaluated else None

    def propose(
        self,
        context: Sequence[int],
        length: DraftLength,
        limit: int,
        params: SamplingParams,
        rng: np.random.Generator,
    ) -> Draft:
        """Draws up to ``limit`` tokens: x̂ᵢ from qᵢ, the distribution after ``context``, x̂₁…x̂ᵢ₋₁.

        Raises:
            DecodeError: the model failed.
        """
        self._proposed_after = len(context)
        behind = self.behind(context)
        obstacle = self._obstacle(context, behind)
        if obstacle is not None or limit < 1 or not length.pays(behind):
            return Draft((), (), self.name, obstacle)
        limit = min(limit, self.model.n_ctx - len(context) + 1)
        logits, evaluated = self._catch_up(context, behind)
        history = params.recent(context)
        tokens: list[int] = []
        q: list[Distribution] = []
        while True:
            following = self._distribution(logits, params, history)
            if not length.more(len(tokens), following, logits):
                break
            token = following.sample(rng)
            tokens.append(token)
            q.append(following)
            if len(tokens) == limit or self.model.vocabulary.is_end(token):
                break
            if not length.go_on(len(tokens), following.probability(token)):
                break
            history.append(token)
            logits = self.model.decode([PassInput(self._sequence, (token,), 1, may_be_undone=True)])[0][0]
            evaluated += 1
        return Draft(tuple(tokens), tuple(q), self.name, evaluated=evaluated)

    def observe(self, draft: Draft, num_accepted: int, committed: Sequence[int]) -> None:
        """Forgets the tokens that were not kept."""
        self.model.truncate(self._sequence, self._proposed_after + num_accepted)

    def _obstacle(self, context: Sequence[int], behind: int) -> str | None:
        """Why the draft cannot follow this chat, in words for a person; None where it can.

        The last ``behind`` tokens are looked at: the others are in its cache.
        """
        if len(context) > self.model.n_ctx:
            return f"the draft's context of {self.model.n_ctx} tokens is full"
        n_vocab = self.model.vocabulary.n_vocab
        if n_vocab < self._n_target and max(context[-behind:], default=0) >= n_vocab:
            return "the chat holds tokens that the draft does not have"
        return None

    def _catch_up(self, context: Sequence[int], behind: int) -> tuple[NDArray[np.float32], int]:
        """Brings the cache to the context; returns the logits after it and how many tokens were evaluated.

        At least the last token is evaluated, for its logits.
        """
        held = self.model.tokens(self._sequence)
        keep = len(context) - behind
        if keep < len(held):
            keep = self.model.truncate(self._sequence, keep)
        behind = len(context) - keep
        last = (behind - 1) % self.model.max_batch + 1  # the final chunk is the only one whose logits are wanted
        if last < behind:
            bring_to(self.model, self._sequence, context[: len(context) - last])
        final = PassInput(self._sequence, context[len(context) - last :], 1)
        return self.model.decode([final])[0][0], behind

    def _distribution(self, logits: NDArray[np.float32], params: SamplingParams, history: list[int]) -> Distribution:
        try:
            return distribution(logits, params, history, self._n_target)
        except ValueError as problem:
            raise DecodeError(
                f"The draft's logits make no distribution: {problem}.",
                "Load the pair again; if it happens again, the file or the device is faulty.",
            ) from problem
