"""The self-test of exact mode finds the size from which passes differ, and its finding holds."""

import numpy as np
import pytest

from specchat.backends.base import PassInput
from specchat.backends.identical_passes import largest_identical_pass
from specchat.backends.llama import load_model
from specchat.backends.markov import MarkovModel
from tests.gguf_writer import write_tiny_model


class Unequal(MarkovModel):
    """A model whose larger passes are off by a bit, in the logits or in what later passes read."""

    def __init__(self, first_wrong: int, *, only_later: bool = False) -> None:
        super().__init__(np.full((6, 6), 1 / 6), max_batch=64)
        self.first_wrong = first_wrong
        self.only_later = only_later
        self.spoiled = False

    def truncate(self, sequence, length):
        self.spoiled = False
        return super().truncate(sequence, length)

    def decode(self, inputs):
        rows = super().decode(inputs)
        wrong = len(inputs[0].tokens) >= self.first_wrong and inputs[0].num_logits > 0
        if (wrong and not self.only_later) or self.spoiled:
            rows = [np.nextafter(row, np.float32(9)) for row in rows]
        self.spoiled |= wrong
        return rows


@pytest.mark.parametrize("first_wrong", [2, 3, 8, 20])
@pytest.mark.parametrize("only_later", [False, True])
def test_finds_the_first_that_differs(first_wrong, only_later):
    model = Unequal(first_wrong, only_later=only_later)
    assert largest_identical_pass(model, 12) == min(first_wrong - 1, 12)
    assert list(model.tokens()) == []


def test_stays_within_the_model(tmp_path):
    with load_model(write_tiny_model(tmp_path / "x.gguf")) as model:
        assert largest_identical_pass(model.context(n_ctx=64, max_logits=3, threads=1, exact=True), 99) <= 3
        assert largest_identical_pass(model.context(n_ctx=8, max_logits=9, threads=1, exact=True), 99) == 1
        assert largest_identical_pass(model.context(n_ctx=64, n_batch=2, threads=1, exact=True), 99) <= 2
        assert largest_identical_pass(model.context(n_ctx=64, max_logits=1, threads=1, exact=True), 99) == 1


@pytest.mark.parametrize("architecture", ["llama", "mamba"])
def test_greedy_text_is_the_same_up_to_the_limit(tmp_path, architecture):
    """Token by token and in passes of the found size, the most likely tokens are the same 200 ones."""
    path = write_tiny_model(tmp_path / "x.gguf", architecture, storage="q8_0")
    with load_model(path, repack=False) as model:
        context = model.context(n_ctx=512, max_logits=16, threads=1, exact=True)
        size = largest_identical_pass(context, 16)
        assert size > 1, "else this compares single passes with themselves"
        tokens = [1, 2, 3]
        context.decode([PassInput(0, tokens[:-1], 0)])
        rows = []
        for _ in range(200):
            rows.append(context.decode([PassInput(0, tokens[-1:], 1)])[0][0].copy())
            tokens.append(int(rows[-1].argmax()))
        context.truncate(0, 0)
        context.decode([PassInput(0, tokens[:2], 0)])
        together = []
        for start in range(2, 202, size):
            chunk = tokens[start : min(start + size, 202)]
            together += list(context.decode([PassInput(0, chunk, len(chunk))])[0].copy())
        np.testing.assert_array_equal(np.array(together), np.array(rows))


class UnequalLater(MarkovModel):
    """A model whose passes of some sizes are off by a bit after so many tokens."""

    def __init__(self, after: int, sizes=range(2, 99)) -> None:
        super().__init__(np.full((6, 6), 1 / 6), max_batch=64)
        self.after = after
        self.sizes = sizes

    def decode(self, inputs):
        several = len(inputs[0].tokens) in self.sizes and len(self.tokens()) >= self.after
        rows = super().decode(inputs)
        return [np.nextafter(row, np.float32(9)) for row in rows] if several else rows


@pytest.mark.parametrize(("after", "found"), [(0, 1), (257, 1), (1000, 12)])
def test_a_longer_text_is_tried_as_well(after, found):
    assert largest_identical_pass(UnequalLater(after), 12) == found


def test_each_size_is_tried_after_the_longer_text():
    assert largest_identical_pass(UnequalLater(257, sizes=[5]), 12) == 4


@pytest.mark.model
def test_attention_over_a_longer_text_is_shared_out_among_threads_and_stays_the_same(smollm2_path):
    with load_model(smollm2_path, repack=False) as model:
        assert largest_identical_pass(model.context(n_ctx=512, max_logits=6, threads=2, exact=True), 5) == 5
