"""Passes: what is asked for comes back, what llama.cpp aborts on is refused, and stopping leaves no wrong cache."""

import numpy as np
import pytest

from specchat.backends.base import Interrupted, PassInput, bring_to
from specchat.backends.llama import load_model
from specchat.errors import DecodeError, UsageError
from tests.backends.walks import NOISE, Judge, feed
from tests.gguf_writer import write_tiny_model


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    names = ["llama", "gemma3", "mamba", "lfm2"]
    loaded = {name: load_model(write_tiny_model(folder / f"{name}.gguf", name, storage="f32")) for name in names}
    yield loaded
    for model in loaded.values():
        model.close()


@pytest.fixture
def model(models):
    with models["llama"].context(n_ctx=64, n_batch=32, n_ubatch=16, max_logits=5, n_sequences=2, threads=1) as context:
        yield context


def test_rows_are_those_of_the_last_tokens(model):
    (all_rows,) = model.decode([PassInput(0, [5, 6, 7, 8, 9], 5)])
    all_rows = all_rows.copy()
    model.truncate(0, 0)
    (last_rows,) = model.decode([PassInput(0, [5, 6, 7, 8, 9], 2)])
    assert all_rows.shape == (5, model.vocabulary.n_vocab)
    assert all_rows.dtype == np.float32
    np.testing.assert_allclose(last_rows, all_rows[-2:], atol=1e-4)
    assert np.abs(all_rows[0] - all_rows[1]).max() > 1


def test_rows_come_without_a_copy_and_cannot_be_changed(model):
    (rows,) = model.decode([PassInput(0, [5, 6], 2)])
    assert rows.base is not None
    with pytest.raises(ValueError, match="read-only"):
        rows[0, 0] = 1


def test_no_rows_where_none_are_wanted(model):
    (rows,) = model.decode([PassInput(0, [5, 6], 0)])
    assert rows.shape == (0, model.vocabulary.n_vocab)
    assert list(model.tokens()) == [5, 6]


@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_what_a_pass_has_read_is_told_while_it_goes_on(models, name):
    with models[name].context(n_ctx=64, n_batch=64, n_ubatch=8, threads=1) as model:
        seen = []

        def look():
            seen.append((model.num_read(), len(model.tokens())))
            return False

        bring_to(model, 0, [5] * 44, look)
        assert {held for _, held in seen} == {0}, "one pass"
        assert [read for read, _ in seen] == sorted(read for read, _ in seen)
        assert {read for read, _ in seen} >= {0, 8, 16, 24, 32}
        assert max(read for read, _ in seen) < 44
        assert model.num_read() == 44
        model.truncate(0, 40)
        assert model.num_read() == len(model.tokens())


@pytest.mark.parametrize("name", ["llama", "gemma3", "mamba", "lfm2"])
def test_sequences_share_a_pass(models, name):
    """Rows of several sequences of unequal length come back in the order of the inputs."""
    with models[name].context(n_ctx=128, max_logits=12, n_sequences=3, threads=1, n_ubatch=8) as model:
        inputs = [PassInput(2, [9, 8, 7, 6, 5], 3), PassInput(0, [4], 1), PassInput(1, [3, 2, 1], 0)]
        together = [rows.copy() for rows in model.decode(inputs)]
        again = [rows.copy() for rows in model.decode([PassInput(1, [50, 51], 2), PassInput(2, [52], 1)])]
    with models[name].context(n_ctx=128, max_logits=12, threads=1) as model:
        for tokens, rows in (
            ([9, 8, 7, 6, 5], together[0]),
            ([4], together[1]),
            ([3, 2, 1, 50, 51], again[0]),
            ([9, 8, 7, 6, 5, 52], again[1]),
        ):
            model.truncate(0, 0)
            (alone,) = model.decode([PassInput(0, tokens, len(rows))])
            np.testing.assert_allclose(rows, alone, atol=NOISE)
    assert together[2].shape == (0, 360)


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ([], "0 tokens"),
        ([PassInput(0, [], 0)], "0 tokens"),
        ([PassInput(0, [1] * 33, 1)], "33 tokens"),
        ([PassInput(0, [1] * 6, 6)], "6 rows"),
        ([PassInput(0, [1], 1), PassInput(0, [2], 1)], "twice"),
        ([PassInput(2, [1], 1)], "Sequence 2"),
        ([PassInput(-1, [1], 1)], "Sequence -1"),
        ([PassInput(0, [1], 2)], "2 rows"),
        ([PassInput(0, [1], -1)], "-1 rows"),
        ([PassInput(0, [1, -1], 1)], "no token -1"),
        ([PassInput(0, [360, 1], 1)], "no token 360"),
    ],
)
def test_guards(model, inputs, says):
    """Each of these is an abort of the process or a bare number in llama.cpp; the cache stays as it was."""
    feed(model, [7, 7])
    with pytest.raises(DecodeError, match=says):
        model.decode(inputs)
    assert list(model.tokens()) == [7, 7]
    model.decode([PassInput(0, [8], 1)])


def test_the_context_ends_where_it_was_said_to(model):
    """64 tokens fit, though llama.cpp itself rounds the context up to 256."""
    assert model.n_ctx == 64
    feed(model, list(range(60)))
    with pytest.raises(DecodeError, match="full"):
        model.decode([PassInput(0, [1] * 5, 1)])
    model.decode([PassInput(0, [1] * 4, 1)])
    with pytest.raises(DecodeError, match="full"):
        model.decode([PassInput(0, [1], 1)])
    assert len(model.tokens()) == 64
    assert model.truncate(0, 63) == 63
    model.decode([PassInput(0, [2], 1)])


@pytest.mark.parametrize("n_ctx", [64, 256])
def test_passes_at_the_end_of_the_context(models, n_ctx):
    """A round's pass fits or is refused, at every length near the end; llama.cpp never sees one that does not fit."""
    with models["gemma3"].context(n_ctx=n_ctx, max_logits=9, threads=1) as model:
        for length in range(n_ctx - 8 - 3, n_ctx + 1):
            model.truncate(0, 0)
            feed(model, [5] * length)
            if length + 9 <= n_ctx:
                model.decode([PassInput(0, [6] * 9, 9)])
                continue
            with pytest.raises(DecodeError, match="full"):
                model.decode([PassInput(0, [6] * 9, 9)])
            assert len(model.tokens()) == length


def test_what_was_asked_for_is_what_there_is(models):
    with models["llama"].context(n_ctx=40, n_batch=512, max_logits=100, threads=1) as model:
        assert (model.n_ctx, model.max_batch, model.max_logits, model.n_sequences) == (40, 40, 40, 1)


@pytest.mark.parametrize("size", ["n_ctx", "max_logits", "n_batch", "n_sequences"])
def test_sizes_must_be_positive(models, size):
    with pytest.raises(UsageError, match="at least one"):
        models["llama"].context(**{size: 0})


@pytest.mark.parametrize("name", ["llama", "gemma3"])
@pytest.mark.parametrize("calls", [0, 1, 30, 100, 300])
def test_stopped_half_way(models, name, calls):
    """Whole micro-batches are kept; going on from there gives the logits of an undisturbed reading."""
    tokens = np.random.default_rng(3).integers(0, 360, 500).tolist()
    with (
        models[name].context(n_ctx=700, n_ubatch=32, threads=1) as model,
        models[name].context(n_ctx=700, n_ubatch=32, threads=1) as fresh,
    ):
        feed(model, tokens[:50])
        count = iter(range(10**9))
        model.interruptible(lambda: next(count) >= calls)
        with pytest.raises(Interrupted):
            model.decode([PassInput(0, tokens[50:450], 1)])
        model.interruptible(None)
        kept = len(model.tokens())
        assert list(model.tokens()) == tokens[:kept]
        assert (kept - 50) % 32 == 0
        assert 50 <= kept < 450
        assert kept > 50 or calls < 300
        Judge(fresh, bit_identical=False).check(tokens, feed(model, tokens[kept:]))


@pytest.mark.parametrize("name", ["mamba", "lfm2"])
def test_running_states_are_not_stopped_half_way(models, name):
    """Half a state would be a wrong one: such models are asked before each pass, so prefill cuts it into small ones."""
    tokens = list(range(300))
    with models[name].context(n_ctx=700, n_batch=32, threads=1) as model:
        count = iter(range(10**9))
        with pytest.raises(Interrupted):
            bring_to(model, 0, tokens, lambda: next(count) >= 5)
        kept = len(model.tokens())
        assert kept % 32 == 0
        assert 0 < kept < 300
        rest = feed(model, tokens[kept:])
        with models[name].context(n_ctx=700, threads=1) as fresh:
            Judge(fresh, bit_identical=False).check(tokens, rest)


def test_an_exception_in_the_question_comes_out(model):
    """Ctrl-C arrives inside llama.cpp, which cannot pass it on."""

    def interrupted():
        raise KeyboardInterrupt

    model.interruptible(interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.decode([PassInput(0, [1, 2, 3], 1)])
    model.interruptible(None)
    model.decode([PassInput(0, [1, 2, 3], 1)])


def test_closing(models):
    model = models["llama"].context(n_ctx=64, threads=1)
    model.decode([PassInput(0, [1], 1)])
    model.close()
    model.close()
    for use in (
        lambda: model.decode([PassInput(0, [1], 1)]),
        lambda: model.truncate(0, 0),
        lambda: model.interruptible(None),
        lambda: model.copy(0, 0),
    ):
        with pytest.raises(DecodeError, match="closed"):
            use()


def test_a_failed_pass_is_found_out(model, monkeypatch):
    """After an error the bookkeeping asks llama.cpp what is left, and the message is llama.cpp's."""
    from specchat.backends.llama_library import llama_cpp, log

    feed(model, [1, 2, 3])
    real = llama_cpp.llama_decode

    def fails(pointer, batch):
        real(pointer, batch)  # the tokens arrive, and then something goes wrong
        llama_cpp.llama_memory_seq_rm(model._memory, 0, 5, -1)
        log.add(4, "decode: the device was lost\n")
        return -3

    monkeypatch.setattr(llama_cpp, "llama_decode", fails)
    with pytest.raises(DecodeError, match=r"failed \(code -3\): the device was lost"):
        model.decode([PassInput(0, [4, 5, 6, 7], 1)])
    assert list(model.tokens()) == [1, 2, 3, 4, 5]
    monkeypatch.setattr(llama_cpp, "llama_decode", lambda *_: 1)
    with pytest.raises(DecodeError, match="no room for 1 more"):
        model.decode([PassInput(0, [6], 1)])
    assert list(model.tokens()) == [1, 2, 3, 4, 5]
    monkeypatch.setattr(llama_cpp, "llama_decode", lambda *_: 0)
    monkeypatch.setattr(llama_cpp, "llama_get_logits_ith", lambda *_: None)
    with pytest.raises(DecodeError, match="no logits"):
        model.decode([PassInput(0, [6], 1)])


def test_a_running_state_is_not_kept_after_a_failure(models, monkeypatch):
    from specchat.backends.llama_library import llama_cpp

    tokens = list(range(40, 80))
    with models["mamba"].context(n_ctx=128, threads=1) as model, models["mamba"].context(n_ctx=128, threads=1) as fresh:
        feed(model, tokens)
        real = llama_cpp.llama_decode
        monkeypatch.setattr(llama_cpp, "llama_decode", lambda pointer, batch: real(pointer, batch) or -2)
        with pytest.raises(DecodeError):
            model.decode([PassInput(0, [1, 2, 3], 1)])
        monkeypatch.undo()
        assert list(model.tokens()) == tokens
        Judge(fresh, bit_identical=False).check([*tokens, 9], feed(model, [9]))
