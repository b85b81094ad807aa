"""Who proposes, and who is asked at all."""

import numpy as np
import pytest

from specchat.backends.base import Draft
from specchat.backends.combined import CombinedDrafter
from specchat.backends.draft_model import ModelDrafter
from specchat.backends.markov import MarkovModel
from specchat.core.adaptive_length import AdaptiveLength
from specchat.core.draft_length import FixedLength, RoundOutcome
from specchat.core.experience import Experience
from specchat.core.sampling import Distribution, SamplingParams
from tests.backends.prompt_lookup import PromptLookup

TEXT = [1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3]
NEW = [0, 1, 2, 3, 4]


class Countdown(MarkovModel):
    """Each state is followed by the one before it, and passes are counted."""

    passes = 0

    def __init__(self, n_vocab: int = 6) -> None:
        super().__init__(np.roll(np.eye(n_vocab), -1, axis=1))

    def decode(self, inputs):
        self.passes += 1
        return super().decode(inputs)


def combined(model: MarkovModel | None = None) -> CombinedDrafter:
    free = PromptLookup()
    return CombinedDrafter([free], None if model is None else ModelDrafter(model, 6))


def propose(drafter: CombinedDrafter, context, length, limit: int = 4) -> Draft:
    length.begin_round(limit)
    return drafter.propose(context, length, limit, SamplingParams(), np.random.default_rng(0))


def experience(step: float) -> Experience:
    known = Experience(token_share=0.0, draft_share=step)
    known.target.learn(dict.fromkeys(range(1, 18), 1.0))
    known.draft.learn({1: step, 2: step})
    return known


def test_what_repeats_itself_is_proposed_for_nothing() -> None:
    model = Countdown()
    draft = propose(combined(model), TEXT, FixedLength(4))
    assert (draft.drafter, draft.tokens[0]) == ("ngram", 4)
    assert model.passes == 0


def test_where_nothing_repeats_itself_the_model_drafts() -> None:
    draft = propose(combined(Countdown()), NEW, FixedLength(4))
    assert (draft.drafter, draft.tokens) == ("draft", (3, 2, 1, 0))


@pytest.mark.parametrize("context", [TEXT, NEW])
def test_without_a_model(context) -> None:
    drafter = combined()
    draft = propose(drafter, context, FixedLength(4))
    assert draft.drafter == ("ngram" if context is TEXT else "none")
    assert drafter.behind(context) == 0
    assert drafter.prefill(context, lambda: False) is None
    drafter.observe(draft, 0, [1])


def test_a_model_that_does_not_pay_is_never_evaluated() -> None:
    model = Countdown()
    drafter, length = combined(model), AdaptiveLength(experience(step=3.0))
    for _ in range(50):
        draft = propose(drafter, NEW, length)
        assert draft.tokens == ()
        length.observe(RoundOutcome(0, 0, 0.0, 1.0))
        drafter.observe(draft, 0, [1])
    assert model.passes == 0
    assert drafter.behind(NEW) == len(NEW)


def test_the_one_that_promises_most_proposes() -> None:
    """A match of three tokens is right half of the time; this draft model is always sure."""
    sure = AdaptiveLength(experience(step=0.01))
    for _ in range(40):
        propose(combined(Countdown()), NEW, sure)
        sure.observe(RoundOutcome(4, 4, 0.04, 1.0, "draft", 4))
    assert propose(combined(Countdown()), [1, 2, 3, 0, 1, 2, 3], sure).drafter == "draft"
    assert propose(combined(Countdown()), TEXT * 3, AdaptiveLength(experience(step=0.3))).drafter == "ngram"


def test_it_tells_the_proposer_what_was_kept() -> None:
    model = Countdown()
    drafter = combined(model)
    draft = propose(drafter, NEW, FixedLength(3))
    drafter.observe(draft, 1, [3, 5])
    assert list(model.tokens()) == [*NEW, 3], "what was rejected is forgotten"
    assert drafter.behind([*NEW, 3, 5]) == 1
    after = [*NEW, 3, 5]
    draft = propose(drafter, TEXT, FixedLength(3))
    assert draft.drafter == "ngram"
    drafter.observe(draft, 3, [4, 0, 1, 2])
    assert drafter.behind(after) == 1, "the model was not asked, so nothing of its cache is in doubt"


def test_the_model_reads_ahead() -> None:
    model = Countdown()
    drafter = combined(model)
    event = drafter.prefill(TEXT, lambda: False)
    assert event is not None
    assert (event.model, event.tokens) == ("draft", len(TEXT) - 1)
    assert drafter.behind(TEXT) == 1


def test_q_is_one_hot_for_a_free_proposal() -> None:
    draft = propose(combined(), TEXT, FixedLength(2))
    assert [q.ids.tolist() for q in draft.q] == [[token] for token in draft.tokens]
    assert isinstance(draft.q[0], Distribution)
