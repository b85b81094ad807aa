"""Caches after cuts: the logits are those of a context that never held anything else, or the cut says what is gone."""

import numpy as np
import pytest

from specchat.backends.base import PassInput
from specchat.backends.identical_passes import largest_identical_pass
from specchat.backends.llama import LlamaLanguageModel, LlamaModel, load_model
from specchat.backends.llama_library import llama_cpp
from tests.backends.walks import CHUNK, NOISE, Judge, Walk, feed
from tests.gguf_writer import write_tiny_model

ARCHITECTURES = ["llama", "qwen2", "gemma3", "mamba", "lfm2"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """One tiny model of each architecture, loaded."""
    folder = tmp_path_factory.mktemp("models")
    loaded = {name: load_model(write_tiny_model(folder / f"{name}.gguf", name), repack=False) for name in ARCHITECTURES}
    yield loaded
    for model in loaded.values():
        model.close()


@pytest.fixture(scope="module")
def windowed(tmp_path_factory):
    """A model with a window of 16 tokens, in f32: little noise where cells lie in another order."""
    path = tmp_path_factory.mktemp("models") / "windowed.gguf"
    with load_model(write_tiny_model(path, "gemma3", sliding_window=16, storage="f32"), repack=False) as model:
        yield model


def contexts(model: LlamaModel, **options) -> tuple[LlamaLanguageModel, Judge]:
    """A context to walk in and a judge with a fresh one."""
    settings = {"n_ctx": 700, "threads": 1, "exact": True, "n_ubatch": 32}
    fresh = model.context(**settings)
    judge = Judge(fresh, bit_identical=largest_identical_pass(fresh, CHUNK) >= CHUNK)
    return model.context(**settings | options), judge


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_walk(models, name):
    """Up to 240 tokens: so far a window's cache does not wrap around, and the logits are the same bits."""
    model, judge = contexts(models[name], n_ctx=240)
    walk = Walk(model, judge, np.random.default_rng(5))
    for _ in range(150):
        walk.step()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_one_wrong_token_would_be_seen(models, name):
    """The comparison of the walks can fail: one other token a little way back changes the logits by far more."""
    model, _ = contexts(models[name])
    tokens = np.random.default_rng(1).integers(0, 300, 40).tolist()
    right = feed(model, tokens)
    tokens[30] += 1
    model.truncate(0, 0)
    assert float(np.abs(feed(model, tokens) - right).max()) > 10 * NOISE


def grown(model: LlamaLanguageModel, judge: Judge, length: int, seed: int) -> Walk:
    """A walk that holds so many tokens already."""
    walk = Walk(model, judge, np.random.default_rng(seed))
    walk.wanted = walk.tokens(length)
    model.truncate(0, 0)
    feed(model, walk.wanted)
    return walk


def oldest(model: LlamaLanguageModel) -> int:
    """The lowest position that is in the cache of every layer."""
    return llama_cpp.llama_memory_seq_pos_min(model._memory, 0)


def test_walk_over_an_evicted_window(windowed):
    """The window's cache has 256 cells: beyond them old tokens are really gone."""
    model, judge = contexts(windowed)
    for seed in range(2):
        walk = grown(model, judge, 500, seed)
        for _ in range(12):
            walk.step()


@pytest.mark.parametrize("length", [200, 345, 360])
def test_a_deep_cut_of_a_sliding_window_keeps_nothing(windowed, length):
    model, judge = contexts(windowed)
    walk = grown(model, judge, 608, 7)
    assert walk.cut(length) == 0
    walk.extend(3)


def test_without_the_guard_such_a_cut_would_lie(windowed, monkeypatch):
    """llama.cpp says that it cut, and decodes; the logits are wrong by a hundred times the noise."""
    model, judge = contexts(windowed)
    monkeypatch.setattr(LlamaLanguageModel, "_window_reaches", lambda *_: True)
    walk = grown(model, judge, 608, 7)
    length = oldest(model) + 2
    assert walk.cut(length) == length
    with pytest.raises(AssertionError, match="tokens"):
        walk.extend(3)


def test_the_deepest_cut_that_the_guard_lets_through(windowed):
    model, judge = contexts(windowed)
    walk = grown(model, judge, 608, 8)
    deepest = oldest(model) + 16
    assert walk.cut(deepest - 1) == 0
    walk = grown(model, judge, 608, 8)
    assert walk.cut(deepest) == deepest
    walk.extend(2)


@pytest.mark.parametrize("name", ["mamba", "lfm2"])
def test_running_states_come_back_from_checkpoints(models, name):
    """A round's cut keeps what was there before the round; a deeper one by n tokens costs n more at most."""
    model, judge = contexts(models[name], max_logits=1)  # no snapshots within llama.cpp
    walk = Walk(model, judge, np.random.default_rng(9))
    for back in (4, 20, 50, 120):
        while len(walk.wanted) < 280:
            walk.extend(7)
        length = len(walk.wanted)
        assert length - 2 * back <= walk.cut(length - back) <= length - back
        walk.extend(3)


def test_snapshots_take_back_a_round_of_a_hybrid_model(models):
    model, judge = contexts(models["lfm2"])
    assert model._snapshots == 8
    walk = Walk(model, judge, np.random.default_rng(10))
    walk.extend(40)
    walk.wanted += walk.tokens(9)
    model.decode([PassInput(0, walk.wanted[40:], 1)])
    assert walk.cut(41) == 41  # eight back: all that snapshots reach
    walk.extend(1)
    assert list(model.tokens()) == walk.wanted


def test_a_snapshot_of_an_older_pass_is_not_trusted(models):
    """llama.cpp would go two tokens back after a pass of one, to a state that the pass before last left behind."""
    model, judge = contexts(models["lfm2"])
    walk = Walk(model, judge, np.random.default_rng(11))
    walk.extend(16)
    walk.extend(1)
    assert walk.cut(15) < 15
    walk.extend(1)


def test_cut_of_nothing_and_of_all(models):
    for model in (contexts(each)[0] for each in models.values()):
        feed(model, [1, 2, 3])
        assert model.truncate(0, 3) == 3
        assert model.truncate(0, 99) == 3
        assert model.truncate(0, 0) == 0
        assert list(model.tokens()) == []


def test_sequences_do_not_touch_each_other(models):
    """Walks on three sequences of one context, pass by pass, and what one of them copies from another."""
    for name in ARCHITECTURES:
        model, judge = contexts(models[name], n_sequences=3, max_logits=24)
        walks = [Walk(model, judge, np.random.default_rng(seed), sequence=seed) for seed in range(3)]
        for _ in range(12):
            for walk in walks:
                walk.step()
        model.copy(0, 2)
        walks[2].wanted = list(walks[0].wanted)
        for walk in walks:
            walk.extend(3)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_copy_of_a_sequence_that_was_just_cut(models, name):
    """The state of a hybrid model then lies in a snapshot, which a plain copy would miss."""
    model, judge = contexts(models[name], n_sequences=2, max_logits=9)
    walk, other = (Walk(model, judge, np.random.default_rng(12), sequence=number) for number in range(2))
    other.extend(5)
    walk.extend(20)
    walk.extend(9)
    walk.cut(26)
    model.copy(0, 1)
    assert list(model.tokens(1)) == list(model.tokens(0))
    other.wanted = list(walk.wanted)
    other.extend(2)
    walk.extend(4)
    model.copy(1, 1)
    assert list(model.tokens(1)) == other.wanted


@pytest.mark.model
def test_a_round_of_a_real_model_leaves_no_trace(smollm2_path):
    """Four tokens that are taken back: the logits after them are the bits of a cache that never held them."""
    with load_model(smollm2_path) as loaded, loaded.context(n_ctx=256, threads=1) as model:
        prompt = loaded.vocabulary.tokenize("Speculative decoding is", parse_special=False)
        after = loaded.vocabulary.tokenize(" fast", parse_special=False)
        model.decode([PassInput(0, prompt, 0)])
        (expected,) = [rows.copy() for rows in model.decode([PassInput(0, after, 1)])]
        assert model.truncate(0, len(prompt)) == len(prompt)
        model.decode([PassInput(0, [100, 200, 300, 400], 4)])
        assert model.truncate(0, len(prompt)) == len(prompt)
        (again,) = model.decode([PassInput(0, after, 1)])
        np.testing.assert_array_equal(again, expected)


def test_gemma_3_itself(gemma_path):
    """The case that was measured, window 512: a round's cut keeps all, and a cut by 900 tokens nothing."""
    with load_model(gemma_path) as loaded, loaded.context(n_ctx=1024, n_batch=512, threads=1) as model:
        assert loaded.sliding_window == 512
        tokens = np.random.default_rng(1).integers(300, 200_000, 1000).tolist()
        feed(model, tokens[:-8], chunk=512)
        (before,) = model.decode([PassInput(0, tokens[-8:], 8)])
        before = before.copy()
        assert model.truncate(0, 992) == 992
        (after,) = model.decode([PassInput(0, tokens[-8:], 8)])
        np.testing.assert_array_equal(after, before)
        assert oldest(model) > 100
        assert model.truncate(0, 100) == 0
