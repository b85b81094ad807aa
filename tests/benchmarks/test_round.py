"""What a whole round costs beside the models' passes: ``pytest tests/benchmarks/test_round.py --benchmark-only``.

The models are fakes whose passes hand out rows that were made before, so that everything measured is our own: the
draft's distributions and draws, the target's distributions, the verdict, texts, events and the loop itself, at γ = 4
with a vocabulary of 152,000 and a chat of 1,000 tokens. What to hold on the machine of the design's tables: 1 ms a
round with the default truncation, 0.3 ms at temperature 0, 6 ms untruncated. Reported, not asserted: a busy machine
is no error.
"""

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from specchat.backends.base import LanguageModel, PassInput
from specchat.backends.draft_model import ModelDrafter
from specchat.core.adaptive_length import AdaptiveLength
from specchat.core.draft_length import DraftLength, FixedLength
from specchat.core.events import Prefill, Round
from specchat.core.experience import Experience
from specchat.core.sampling import SamplingParams
from specchat.core.verification import rule_named
from specchat.decoding.decoder import generate
from specchat.decoding.rounds import RoundPlan
from specchat.engine.codec import decode_message, encode_message
from specchat.engine.interface import ReplyEvent

N_VOCAB = 152_000
GAMMA = 4
NUM_ROUNDS = 3
"""How many different rounds take turns, so that rows are not always in the nearest cache."""
SETTINGS = {
    "default": SamplingParams(),
    "greedy": SamplingParams(temperature=0),
    "untruncated": SamplingParams(temperature=1, top_k=0, top_p=1, min_p=0),
}
Benchmark = Callable[..., Any]


class Words:
    """A vocabulary of numbered words that never end a reply."""

    n_vocab = N_VOCAB
    control_texts: frozenset[str] = frozenset()
    bos = eos = chat_template = None
    add_bos = False

    def tokenize(self, text: str, *, parse_special: bool) -> list[int]:
        return [ord(letter) for letter in text]

    def piece(self, token: int) -> bytes:
        return b" word%d" % token

    def is_control(self, token: int) -> bool:
        return False

    def is_end(self, token: int) -> bool:
        return False


class FreeModel:
    """A model whose passes cost nothing: they hand out prepared rows in turn, ``[n, N_VOCAB]``."""

    n_ctx = 1 << 20
    max_batch = 512
    max_logits = 64

    def __init__(self, blocks: Sequence[np.ndarray]) -> None:
        self.vocabulary = Words()
        self._blocks = cycle(blocks)
        self._tokens: list[int] = []

    def tokens(self, sequence: int = 0) -> list[int]:
        return self._tokens

    def truncate(self, sequence: int, length: int) -> int:
        del self._tokens[length:]
        return length

    def decode(self, inputs: Sequence[PassInput]) -> list[np.ndarray]:
        [each] = inputs
        self._tokens.extend(each.tokens)
        return [next(self._blocks)[: each.num_logits] if each.num_logits else np.empty((0, N_VOCAB))]

    def interruptible(self, should_stop: Callable[[], bool] | None) -> None:
        pass


def rows() -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The target's blocks ``[γ + 1, N_VOCAB]``, one a round, and the draft's rows ``[1, N_VOCAB]``, γ a round.

    Shaped like a language model's: a bulk far below and a few likely tokens above; the draft is a little off.
    """
    rng = np.random.default_rng(0)
    target = rng.normal(0, 2.2, size=(NUM_ROUNDS, GAMMA + 1, N_VOCAB)).astype(np.float32)
    for row in target.reshape(-1, N_VOCAB):
        likely = rng.choice(N_VOCAB, 60, replace=False)
        row[likely] += rng.exponential(5, size=60).astype(np.float32)
        row[likely[:2]] += 12
    draft = target[:, :GAMMA] + rng.normal(0, 0.4, size=(NUM_ROUNDS, GAMMA, N_VOCAB)).astype(np.float32)
    return list(target), list(draft.reshape(-1, 1, N_VOCAB))


@pytest.fixture(scope="module")
def models() -> tuple[LanguageModel, LanguageModel]:
    target, draft = rows()
    return FreeModel(target), FreeModel(draft)


def endless_rounds(
    models: tuple[LanguageModel, LanguageModel],
    params: SamplingParams,
    rule: str,
    details: bool,
    length: DraftLength | None = None,
    num_prompt: int = 1000,
):
    """A reply that never ends, as `generate` writes it."""
    target, draft = models
    plan = RoundPlan(params, ModelDrafter(draft, N_VOCAB), length or FixedLength(GAMMA), rule_named(rule))
    prompt = list(range(num_prompt))
    for event in generate(target, prompt, plan, np.random.default_rng(1), details=details):
        if not isinstance(event, Prefill):
            yield event


@pytest.mark.parametrize("details", [False, True], ids=["", "details"])
@pytest.mark.parametrize("rule", ["token", "block"])
@pytest.mark.parametrize("name", SETTINGS)
def test_a_round(
    benchmark: Benchmark, models: tuple[LanguageModel, LanguageModel], name: str, rule: str, details: bool
) -> None:
    rounds = endless_rounds(models, SETTINGS[name], rule, details)
    found = benchmark.pedantic(next, args=(rounds,), rounds=300, warmup_rounds=20)
    assert isinstance(found, Round)
    assert len(found.drafted) == GAMMA
    assert (found.details is not None) == details


@pytest.mark.parametrize("name", ["default", "greedy"])
def test_a_round_from_which_the_length_rule_learns(
    benchmark: Benchmark, models: tuple[LanguageModel, LanguageModel], name: str
) -> None:
    """What engines use also where γ is fixed: it looks at each of the draft's rows once more."""
    length = AdaptiveLength(Experience(), floor=GAMMA, most=GAMMA)
    rounds = endless_rounds(models, SETTINGS[name], "block", False, length)
    assert len(benchmark.pedantic(next, args=(rounds,), rounds=300, warmup_rounds=20).drafted) == GAMMA


def test_a_round_late_in_a_long_chat(benchmark: Benchmark, models: tuple[LanguageModel, LanguageModel]) -> None:
    """It costs what it does early in a short one."""
    rounds = endless_rounds(models, SETTINGS["greedy"], "block", False, num_prompt=30_000)
    assert len(benchmark.pedantic(next, args=(rounds,), rounds=300, warmup_rounds=20).drafted) == GAMMA


@pytest.mark.parametrize("details", [False, True], ids=["", "details"])
def test_a_round_crosses_the_pipe(
    benchmark: Benchmark, models: tuple[LanguageModel, LanguageModel], details: bool
) -> None:
    """What the model process pays for it; reading it is the screen's business."""
    message = ReplyEvent(1, next(endless_rounds(models, SETTINGS["default"], "token", details)))
    line = benchmark.pedantic(encode_message, args=(message,), rounds=1000, warmup_rounds=20)
    assert decode_message(line) == message
