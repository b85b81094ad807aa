"""The decoding loop on llama.cpp: tiny random models of every architecture, and the real SmolLM2-135M."""

import itertools

import numpy as np
import pytest

from specchat.backends.base import PassInput
from specchat.backends.draft_model import ModelDrafter
from specchat.backends.identical_passes import largest_identical_pass
from specchat.backends.llama import load_model
from specchat.core.draft_length import FixedLength
from specchat.core.events import Finished, Round
from specchat.core.sampling import SamplingParams
from specchat.core.verification import rule_named
from specchat.decoding.decoder import generate
from specchat.decoding.rounds import RoundPlan
from tests.decoding.toys import reply_tokens
from tests.gguf_writer import write_tiny_model

GREEDY = SamplingParams(temperature=0)
NOISE = 1.0
"""How far apart the two largest logits of a quantised model may lie where a pass of another size flips them."""


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "gemma3", "mamba", "lfm2"])
@pytest.mark.parametrize("rule", ["token", "block", "match"])
def test_after_every_round_the_cache_is_as_if_never_drafted(tmp_path, architecture, rule):
    """Rounds of all kinds (all kept, some, none): what follows is what a fresh context says of the same tokens.

    The tiny models are stored so that passes of several tokens give the bits of single ones; the tolerance covers
    processors on which they do not. A cache that is wrong by one token differs by about 1.
    """
    target_file = write_tiny_model(tmp_path / "target.gguf", architecture, seed=1, logit_scale=1.5)
    draft_file = write_tiny_model(tmp_path / "draft.gguf", architecture, seed=1, perturb=0.3, logit_scale=1.5)
    with load_model(target_file) as target_model, load_model(draft_file) as draft_model:
        settings = {"n_ctx": 256, "max_logits": 6, "threads": 1}
        target, fresh = target_model.context(**settings), target_model.context(**settings)
        drafter = ModelDrafter(draft_model.context(**settings), target.vocabulary.n_vocab)
        prompt = target.vocabulary.tokenize("the quick brown fox", parse_special=False)
        plan = RoundPlan(SamplingParams(), drafter, FixedLength(4), rule_named(rule))
        events = generate(target, prompt, plan, np.random.default_rng(3), max_tokens=60)
        kinds, reply = set(), []
        for event in events:
            if not isinstance(event, Round):
                continue
            reply += [token.id for token in event.committed]
            kinds.add(min(event.num_accepted, 1) + (event.num_accepted == event.num_draft_tokens))
            context = [*prompt, *reply]
            assert list(target.tokens()) == context[: len(target.tokens())]
            fresh.truncate(0, 0)
            for token in context:
                expected = fresh.decode([PassInput(0, [token], 1)])[0][0].copy()
            missing = context[len(target.tokens()) :]
            found = target.decode([PassInput(0, missing, 1)])[0][0].copy()
            np.testing.assert_allclose(found, expected, atol=0.25)
            target.truncate(0, len(context) - 1)
        assert len(kinds) > 1


@pytest.fixture(scope="module")
def smollm2(smollm2_path):
    with load_model(smollm2_path, repack=False) as model:
        yield model


def write(target, drafter, prompt, gamma):
    plan = RoundPlan(GREEDY, drafter, FixedLength(gamma), rule_named("token"))
    return list(generate(target, prompt, plan, np.random.default_rng(0), max_tokens=48))


def test_a_real_model_that_drafts_for_itself(smollm2):
    """Greedy: the reply is plain decoding's, and all that is drafted is kept, up to numerics.

    Where passes of γ + 1 tokens are bit-identical to single ones (the self-test says so) that holds exactly. Elsewhere
    replies may part at a near-tie, and only there: the two largest logits differ by less than `NOISE`.
    """
    settings = {"n_ctx": 256, "max_logits": 5, "threads": 1, "exact": True}
    target, own = smollm2.context(**settings), smollm2.context(**settings)
    prompt = target.vocabulary.tokenize("The capital of France is Paris. The capital of Spain is", parse_special=False)
    plain = reply_tokens(write(target, None, prompt, 0))
    target.truncate(0, 0)
    events = write(target, ModelDrafter(own, target.vocabulary.n_vocab), prompt, 4)
    drafted = reply_tokens(events)
    [finished] = [event for event in events if isinstance(event, Finished)]
    if largest_identical_pass(smollm2.context(**settings), 5) >= 5:
        assert drafted == plain
        assert finished.acceptance_rate == 1
        return
    assert finished.acceptance_rate >= 0.9
    parted = next((i for i, (a, b) in enumerate(itertools.zip_longest(plain, drafted)) if a != b), None)
    if parted is not None:
        judge = smollm2.context(**settings)
        judge.decode([PassInput(0, [*prompt, *plain[:parted]][:-1], 0)])
        logits = judge.decode([PassInput(0, [*prompt, *plain[:parted]][-1:], 1)])[0][0]
        second, first = np.sort(logits)[-2:]
        assert first - second < NOISE
