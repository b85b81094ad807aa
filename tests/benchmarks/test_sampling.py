"""What sampling and verification cost, for a vocabulary of 151,936: ``pytest tests/benchmarks --benchmark-only``.

One round makes nine distributions (γ = 4: four q and five p), draws four tokens, judges them and draws one more.
The figures to hold on the machine of the design's tables: 1 ms with the default truncation, 0.3 ms at temperature 0,
6 ms without truncation. They are reported, not asserted: a busy machine is no error.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from specchat.core.sampling import Distribution, SamplingParams, distribution
from specchat.core.verification import rule_named

N_VOCAB = 151_936
SETTINGS = {
    "default": SamplingParams(),
    "greedy": SamplingParams(temperature=0),
    "untruncated": SamplingParams(temperature=1, top_k=0, top_p=1, min_p=0),
    "top-p only": SamplingParams(top_k=0, min_p=0),
    "min-p only": SamplingParams(top_k=0, top_p=1),
    "default, penalties": SamplingParams(repeat_penalty=1.1),
    "greedy, penalties": SamplingParams(temperature=0, repeat_penalty=1.1),
    "untruncated, penalties": SamplingParams(temperature=1, top_k=0, top_p=1, min_p=0, repeat_penalty=1.1),
}
Benchmark = Callable[..., Any]


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Nine rows ``[9, N_VOCAB]`` shaped like a language model's: a bulk far below, and a few likely tokens above."""
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2.2, size=(9, N_VOCAB))
    for row in logits:
        likely = rng.choice(N_VOCAB, 60, replace=False)
        row[likely] += rng.exponential(5, size=60)
        row[likely[0]] += 10
    return logits.astype(np.float32)


@pytest.fixture(scope="module")
def history() -> list[int]:
    return np.random.default_rng(1).integers(0, N_VOCAB, 200).tolist()


@pytest.mark.parametrize("name", SETTINGS)
def test_the_nine_distributions_of_a_round(
    benchmark: Benchmark, rows: np.ndarray, history: list[int], name: str
) -> None:
    params = SETTINGS[name]
    found = benchmark(lambda: [distribution(row, params, history) for row in rows])
    assert all(law.probs.sum() == pytest.approx(1) for law in found)


@pytest.mark.parametrize("name", ["default", "greedy", "untruncated"])
def test_the_draws_of_a_round(benchmark: Benchmark, rows: np.ndarray, name: str) -> None:
    rng = np.random.default_rng(2)
    laws = [distribution(row, SETTINGS[name]) for row in rows[:5]]
    benchmark(lambda: [law.sample(rng) for law in laws])


@pytest.mark.parametrize("name", ["default", "greedy", "untruncated"])
@pytest.mark.parametrize("rule", ["token", "block"])
def test_the_verdict_on_a_round(benchmark: Benchmark, rows: np.ndarray, rule: str, name: str) -> None:
    q = [distribution(row, SETTINGS[name]) for row in rows[:4]]
    p = [distribution(row + 0.1 * rows[i], SETTINGS[name]) for i, row in enumerate(rows[:5])]
    drafted = [law.top(1)[0][0] for law in q]
    judge, draws = rule_named(rule), np.full(4, 0.5)

    def verdict() -> Distribution:
        kept = judge.num_accepted(judge.thresholds(drafted, q, p), draws)
        return judge.next_distribution(min(kept, 3), drafted, q, p)

    assert len(benchmark(verdict)) > 0


@pytest.mark.parametrize("rule", ["token", "block"])
def test_the_verdict_on_a_long_ngram_draft(benchmark: Benchmark, rows: np.ndarray, rule: str) -> None:
    """64 one-hot q against truncated p."""
    p = [distribution(rows[i % 9], SETTINGS["default"]) for i in range(65)]
    drafted = [law.top(1)[0][0] for law in p[:64]]
    q = [Distribution.one_hot(token) for token in drafted]
    judge = rule_named(rule)
    assert benchmark(lambda: judge.thresholds(drafted, q, p)).size == 64
