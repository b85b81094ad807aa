"""Measuring what passes cost, on toy models with a simulated clock."""

import numpy as np
import pytest

from specchat.backends.base import Interrupted
from specchat.backends.markov import MarkovModel
from specchat.decoding.calibrate import CONTEXT_TOKENS, measure_draft_costs, measure_pass_seconds
from specchat.errors import DecodeError
from tests.decoding.toys import ForgetfulModel, cyclic


class CostlyModel(MarkovModel):
    """Each pass takes as long as a table says, by its number of tokens; the clock stands still otherwise."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.now = 0.0
        self.passes: list[tuple[int, int, int]] = []  # tokens before it, tokens, logits

    def cost(self, size):
        return {1: 1.0, 2: 1.5, 3: 2.0, 4: 9.0, 5: 2.5}.get(size, 50.0)

    def decode(self, inputs):
        [one] = inputs
        self.passes.append((len(self.tokens()), len(one.tokens), one.num_logits))
        self.now += self.cost(len(one.tokens))
        return super().decode(inputs)

    def clock(self):
        return self.now


def test_each_size_is_measured_as_it_is() -> None:
    model = CostlyModel(cyclic(5))
    assert measure_pass_seconds(model, (1, 2, 3, 4, 5), [0, 1], clock=model.clock) == {
        1: 1.0, 2: 1.5, 3: 2.0, 4: 9.0, 5: 2.5,
    }  # fmt: skip
    measured = [each for each in model.passes if each[0] == CONTEXT_TOKENS]
    assert [tokens for _, tokens, _ in measured] == [1, 2, 3, 4, 5] * 6, "sizes take turns, one turn to warm up"
    assert all(logits == tokens for _, tokens, logits in measured), "verification wants logits for all"


def test_what_comes_before_each_pass_is_done_and_not_counted() -> None:
    model, done = CostlyModel(cyclic(5)), []

    def target_pass() -> None:
        done.append(len(model.passes))
        model.now += 7.0

    costs = measure_draft_costs(model, [0, 1], repetitions=2, before_each=target_pass, clock=model.clock)
    assert (costs.step_seconds, costs.catch_up_seconds) == (1.0, 0.5)
    assert len(done) == 2 * 3, "two sizes, one turn to warm up"


def test_a_size_that_is_named_twice_is_measured_twice_as_often() -> None:
    model = CostlyModel(cyclic(5))
    seconds = measure_pass_seconds(model, (1, 2, 1, 3), [0], repetitions=2, clock=model.clock)
    assert list(seconds.items()) == [(1, 1.0), (2, 1.5), (3, 2.0)]
    measured = [tokens for before, tokens, _ in model.passes if before == CONTEXT_TOKENS]
    assert measured == [1, 2, 1, 3] * 3


def test_a_stall_does_not_count() -> None:
    model = CostlyModel(cyclic(5))
    calls = iter([100.0] + [0.0] * 2 + [70.0] + [0.0] * 99)
    normal = model.cost
    model.cost = lambda size: normal(size) + (next(calls) if size <= 5 else 0.0)
    assert measure_pass_seconds(model, (1,), [0], clock=model.clock) == {1: 1.0}


def test_patience_ends_the_repetitions_once_each_size_has_been_measured() -> None:
    model, told = CostlyModel(cyclic(5)), []
    seconds = measure_pass_seconds(model, (1, 2, 5), [0], patience=0.0, on_progress=told.append, clock=model.clock)
    assert seconds == {1: 1.0, 2: 1.5, 5: 2.5}
    measured = [tokens for before, tokens, _ in model.passes if before == CONTEXT_TOKENS]
    assert measured == [1, 2, 5] * 2
    assert told == pytest.approx([share / 18 for share in range(1, 7)])


def test_sizes_that_a_pass_cannot_take_are_left_out() -> None:
    model = CostlyModel(cyclic(5), max_batch=3)
    assert list(measure_pass_seconds(model, (0, 1, 3, 4), [0], clock=model.clock)) == [1, 3]
    tight = CostlyModel(cyclic(5), n_ctx=6)
    assert list(measure_pass_seconds(tight, (1, 5), [0], clock=tight.clock)) == [1, 5]


def test_draft_costs() -> None:
    model = CostlyModel(cyclic(5))
    costs = measure_draft_costs(model, [0, 1, 2], clock=model.clock)
    assert (costs.step_seconds, costs.catch_up_seconds) == (1.0, 0.5)
    assert {logits for before, _, logits in model.passes if before == CONTEXT_TOKENS} == {1}


@pytest.mark.parametrize("kind", [CostlyModel, ForgetfulModel])
@pytest.mark.parametrize("length", [0, 3, 200])
def test_the_cache_is_as_it_was(kind, length) -> None:
    model = kind(cyclic(5))
    held = [i % 5 for i in range(length)]
    _fill(model, held)
    measure_pass_seconds(model, (1, 4), [2])
    assert list(model.tokens()) == held


def test_the_cache_is_as_it_was_after_an_interruption_and_an_error() -> None:
    model = CostlyModel(cyclic(5))
    _fill(model, [0, 1, 2])
    with pytest.raises(Interrupted):
        measure_pass_seconds(model, (1, 2), [0], should_stop=lambda: len(model.passes) > 5)
    assert list(model.tokens()) == [0, 1, 2]

    class Failing(CostlyModel):
        def decode(self, inputs):
            if len(inputs[0].tokens) == 2:
                raise DecodeError("no", "")
            return super().decode(inputs)

    failing = Failing(cyclic(5))
    _fill(failing, [0, 1, 2])
    with pytest.raises(DecodeError):
        measure_pass_seconds(failing, (1, 2), [0])
    assert list(failing.tokens()) == [0, 1, 2]


def test_measuring_needs_tokens() -> None:
    with pytest.raises(ValueError):
        measure_pass_seconds(MarkovModel(np.eye(2)), (1,), [])


def _fill(model, tokens) -> None:
    from specchat.backends.base import bring_to

    bring_to(model, 0, tokens)
