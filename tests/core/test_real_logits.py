"""The token rule on a real model's logits, position by position, without sampling noise.

What a round emits at a position is q·min(1, p/q) + (1 − Σ min(p, q))·residual, from the very arrays that the decoder
uses. It must be p as the plain definition gives it in float64.
"""

from pathlib import Path

import numpy as np
import pytest

from specchat.backends.base import PassInput
from specchat.backends.llama import load_model
from specchat.core import theory
from specchat.core.sampling import Distribution, SamplingParams, distribution, residual
from specchat.core.verification import TokenRule

NUM_POSITIONS = 500


@pytest.fixture(scope="module")
def logits(smollm2_path: Path) -> np.ndarray:
    """The target's rows after each of the first tokens of a text, ``[NUM_POSITIONS, n_vocab]``."""
    text = Path(theory.__file__).read_text(encoding="utf-8")
    with (
        load_model(smollm2_path) as model,
        model.context(n_ctx=NUM_POSITIONS, n_batch=NUM_POSITIONS, max_logits=NUM_POSITIONS, threads=1) as context,
    ):
        tokens = model.vocabulary.tokenize(text, parse_special=False)[:NUM_POSITIONS]
        return context.decode([PassInput(0, tokens, NUM_POSITIONS)])[0].copy()


@pytest.fixture(scope="module")
def orders(logits: np.ndarray) -> list[np.ndarray]:
    """The ids of each row, largest logit first."""
    return [np.argsort(-row, kind="stable") for row in logits]


def in_float64(logits: np.ndarray, order: np.ndarray, params: SamplingParams) -> np.ndarray:
    """p by its definition, ``[n_vocab]``."""
    values = logits.astype(np.float64)
    if params.top_k:
        order = order[: params.top_k]
    relative = values[order] - values[order[0]]
    if params.top_p < 1:
        cumulative = np.exp(relative).cumsum()
        order = order[: int(np.searchsorted(cumulative / cumulative[-1], params.top_p)) + 1]
    order = order[values[order] - values[order[0]] >= np.log(params.min_p)] if params.min_p else order
    p = np.zeros(values.size)
    if params.temperature == 0:
        p[order[0]] = 1
    else:
        p[order] = np.exp((values[order] - values[order[0]]) / params.temperature)
    return p / p.sum()


def emitted(p: Distribution, q: Distribution, n_vocab: int) -> np.ndarray:
    accepted = q.probs * np.minimum(1, p.probabilities(q.ids) / q.probs)
    law = np.zeros(n_vocab)
    law[q.ids] = accepted
    rest = residual(p, q) or p
    law[rest.ids] += (1 - accepted.sum()) * rest.probs
    return law


@pytest.mark.model
@pytest.mark.parametrize(
    "params",
    [
        SamplingParams(),
        SamplingParams(temperature=0),
        SamplingParams(temperature=1, top_k=0, top_p=1, min_p=0),
        SamplingParams(temperature=1.5, top_k=0, min_p=0, top_p=0.9),
        SamplingParams(temperature=0.6, top_k=0, top_p=1, min_p=0.1),
    ],
    ids=["default", "greedy", "untruncated", "top-p", "min-p"],
)
def test_what_a_round_emits_is_the_targets_distribution(
    logits: np.ndarray, orders: list[np.ndarray], params: SamplingParams
) -> None:
    accepted = []
    noise = np.random.default_rng(0).standard_normal(logits.shape[1], dtype=np.float32)
    for target, order in zip(logits, orders, strict=True):
        p = distribution(target, params)
        q = distribution(target + noise, params)  # a draft that is close to the target, and not the target
        expected = in_float64(target, order, params)
        assert np.abs(emitted(p, q, target.size) - expected).sum() / 2 < 1e-6
        likely = q.top(1)[0][0]
        threshold = TokenRule().thresholds([likely], [q], [p, p])[0]
        assert threshold == min(1, p.probability(likely) / q.probability(likely))
        accepted.append(float(np.minimum(p.probabilities(q.ids), q.probs).sum()))
    assert 0.3 < np.mean(accepted) < 0.99, "p and q must differ, or nothing was tested"
