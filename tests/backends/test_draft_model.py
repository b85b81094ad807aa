"""The draft model: q is what was drawn from, the cache follows the chat, and it stops where it should."""

from collections import Counter

import numpy as np
import pytest

from specchat.backends.base import Interrupted, PassInput
from specchat.backends.draft_model import ModelDrafter
from specchat.backends.llama import load_model
from specchat.backends.markov import MarkovModel
from specchat.core.draft_length import FixedLength
from specchat.core.sampling import SamplingParams, distribution
from specchat.errors import DecodeError
from tests.gguf_writer import write_tiny_model

SAMPLING = SamplingParams(temperature=0.9, top_k=0, top_p=1.0, min_p=0.0)
PENALIZED = SamplingParams(temperature=0.9, top_k=20, repeat_penalty=1.6, frequency_penalty=0.3, penalty_last_n=6)
CONTEXT = [5, 80, 200, 5, 90, 300, 17, 80, 5]


@pytest.fixture(scope="module", params=["llama", "gemma3", "mamba", "lfm2"])
def model(request, tmp_path_factory):
    path = write_tiny_model(tmp_path_factory.mktemp("models") / "draft.gguf", request.param)
    with load_model(path, repack=False) as loaded:
        yield loaded


@pytest.fixture
def drafter(model):
    context = model.context(n_ctx=64, n_batch=16, max_logits=1, threads=1, exact=True)
    return ModelDrafter(context, model.vocabulary.n_vocab)


def expected_q(model, tokens, params, n_vocab):
    """The distribution after ``tokens`` in a context that holds nothing else."""
    with model.context(n_ctx=64, max_logits=1, threads=1, exact=True) as fresh:
        for start in range(0, len(tokens), 16):
            (logits,) = fresh.decode([PassInput(0, tokens[start : start + 16], 1)])
        return distribution(logits[0], params, tokens, n_vocab)


def propose(drafter, context, limit=4, params=SAMPLING, length=None, seed=0):
    return drafter.propose(context, length or FixedLength(limit), limit, params, np.random.default_rng(seed))


@pytest.mark.parametrize("params", [SAMPLING, PENALIZED, SamplingParams(temperature=0)])
def test_q_is_the_distribution_after_what_was_drawn(model, drafter, params):
    """Round after round, whatever was kept: q₁…q_γ are those of a fresh model that reads the same tokens."""
    rng = np.random.default_rng(4)
    context = list(CONTEXT)
    for accepted in (4, 0, 2, 4, 4, 1):
        draft = propose(drafter, context, params=params, seed=accepted)
        assert 0 < len(draft) <= 4
        for i, (token, q) in enumerate(zip(draft.tokens, draft.q, strict=True)):
            fresh = expected_q(model, [*context, *draft.tokens[:i]], params, model.vocabulary.n_vocab)
            np.testing.assert_array_equal(q.ids, fresh.ids)
            np.testing.assert_allclose(q.probs, fresh.probs, atol=0.05)
            assert q.probability(token) > 0
        accepted = min(accepted, len(draft))
        committed = [*draft.tokens[:accepted], int(rng.integers(0, 300))]
        drafter.observe(draft, accepted, committed)
        assert list(drafter.model.tokens()) == [*context, *draft.tokens[:accepted]][: len(drafter.model.tokens())]
        context += committed


def test_tokens_are_drawn_from_q():
    """5,000 first tokens against q, on a toy whose q is known: chi-square of 4 degrees below 30 (p ≈ 5·10⁻⁶)."""
    transitions = np.random.default_rng(1).dirichlet(np.ones(5), size=5)
    drafter = ModelDrafter(MarkovModel(transitions), 5)
    rng = np.random.default_rng(2)
    params = SamplingParams(temperature=1, top_k=0, top_p=1, min_p=0)
    drawn = Counter(drafter.propose([0, 3], FixedLength(1), 1, params, rng).tokens[0] for _ in range(5000))
    expected = 5000 * transitions[3]
    assert sum((drawn[token] - expected[token]) ** 2 / expected[token] for token in range(5)) < 30


def test_after_all_were_accepted_it_takes_two_tokens(model, drafter):
    draft = propose(drafter, CONTEXT)
    assert draft.evaluated == len(CONTEXT) + 3
    drafter.observe(draft, 4, [*draft.tokens, 7])
    following = propose(drafter, [*CONTEXT, *draft.tokens, 7])
    assert following.evaluated == 2 + 3


def test_a_chat_that_was_changed_is_compared_from_its_beginning(drafter):
    """A context that only grew is compared where it is new; another list is not taken for it."""
    context = list(CONTEXT)
    draft = propose(drafter, context)
    drafter.observe(draft, 2, [*draft.tokens[:2], 7])
    context += [*draft.tokens[:2], 7]
    held = len(drafter.model.tokens())
    assert drafter.behind(context) == len(context) - held
    drafter.model.truncate(0, 0)
    assert drafter.behind(context) == len(context)
    propose(drafter, context)
    changed = [context[0] + 1, *context[1:]]
    assert drafter.behind(changed) == len(changed)
    assert drafter.behind(context) == 1


def test_after_a_rejection_it_takes_the_token_that_came_instead(drafter):
    draft = propose(drafter, CONTEXT)
    drafter.observe(draft, 1, [draft.tokens[0], 7])
    held = list(drafter.model.tokens())
    assert held == [*CONTEXT, draft.tokens[0]][: len(held)]
    following = propose(drafter, [*CONTEXT, draft.tokens[0], 7])
    assert following.evaluated == len(CONTEXT) + 2 - len(held) + 3
    keeps_running_state = drafter.model.model.keeps_running_state
    assert following.evaluated == (2 if keeps_running_state else 1) + 3, "it goes back to where drafting began"


def test_the_length_rule_is_asked_before_each_draw(drafter):
    asked = []

    class Rule(FixedLength):
        def more(self, num_drawn, q, logits=None):
            asked.append((num_drawn, q))
            return num_drawn < 2

    draft = propose(drafter, CONTEXT, limit=8, length=Rule(8))
    assert [count for count, _ in asked] == [0, 1, 2]
    assert len(draft) == 2
    assert [id(q) for q in draft.q] == [id(q) for _, q in asked[:2]]


def test_nothing_is_drawn_where_the_rule_says_so(drafter):
    class Never(FixedLength):
        def more(self, num_drawn, q, logits=None):
            return False

    draft = propose(drafter, CONTEXT, length=Never(4))
    assert (draft.tokens, draft.q, draft.evaluated) == ((), (), len(CONTEXT))
    assert propose(drafter, CONTEXT, limit=0).tokens == ()


def test_it_stops_after_an_end():
    transitions = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    drafter = ModelDrafter(MarkovModel(transitions, end=2), 3)
    assert propose(drafter, [0], limit=5).tokens == (1, 2)


def test_it_stops_at_the_end_of_its_own_context(drafter):
    near = [11] * 62
    draft = propose(drafter, near, limit=10)
    assert len(draft) == 3  # the last one need not be evaluated
    assert draft.reason is None
    assert len(propose(drafter, [11] * 64, limit=10)) == 1
    full = propose(drafter, [11] * 65)
    assert full.tokens == ()
    assert "64 tokens is full" in full.reason


def test_ids_that_only_the_draft_has_are_never_drawn(tmp_path):
    with load_model(write_tiny_model(tmp_path / "x.gguf", n_vocab=640, logit_scale=0.1)) as model:
        context = model.context(n_ctx=64, threads=1)
        drafter = ModelDrafter(context, 360)
        for seed in range(5):
            draft = propose(drafter, CONTEXT, limit=8, seed=seed)
            assert all(q.ids[-1] == 359 for q in draft.q)


def test_ids_that_only_the_target_has_stop_it(tmp_path):
    with load_model(write_tiny_model(tmp_path / "x.gguf")) as model:
        drafter = ModelDrafter(model.context(n_ctx=64, threads=1), 640)
        draft = propose(drafter, [1, 639])
        assert draft.tokens == ()
        assert "does not have" in draft.reason
        assert drafter.prefill([1, 639], lambda: False) is None
        assert len(propose(drafter, [1, 2])) == 4


def test_prefill_leaves_the_last_token(drafter):
    event = drafter.prefill(CONTEXT, lambda: False)
    assert (event.model, event.tokens, event.reused) == ("draft", len(CONTEXT) - 1, 0)
    assert event.seconds >= 0
    assert drafter.prefill(CONTEXT, lambda: False) is None
    assert propose(drafter, CONTEXT).evaluated == 1 + 3
    assert drafter.prefill([1], lambda: False) is None


def test_prefill_can_be_stopped_and_goes_on(drafter):
    count = iter(range(1000))
    with pytest.raises(Interrupted):
        drafter.prefill(list(range(50)), lambda: next(count) >= 3)
    held = len(drafter.model.tokens())
    assert held < 49
    assert drafter.prefill(list(range(50)), lambda: False).reused == held


def test_a_long_context_is_read_in_passes(drafter):
    """Of 49 tokens, 16 a pass; what was drawn is the same as after a prefill."""
    at_once = propose(drafter, list(range(49)))
    assert at_once.evaluated == 49 + 3
    drafter.model.truncate(0, 0)
    drafter.prefill(list(range(49)), lambda: False)
    assert propose(drafter, list(range(49))).tokens == at_once.tokens


def test_logits_that_make_no_distribution():
    model = MarkovModel(np.full((3, 3), 1 / 3))
    model._logits[:] = np.nan
    with pytest.raises(DecodeError, match="draft's logits"):
        propose(ModelDrafter(model, 3), [0])
