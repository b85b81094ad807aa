"""The estimate of memory against what llama.cpp says to have allocated."""

import re
import subprocess
import sys

import pytest

from specchat.backends.gguf_header import read_header
from specchat.backends.gguf_memory import DEFAULT_ROWS, Memory, estimate, repacked_types
from specchat.backends.llama import build, load_model
from specchat.backends.llama_library import log
from tests.gguf_writer import write_tiny_model

MIB = 2**20
THIS_PROCESSOR = repacked_types(build().system_info)


def allocated(model, context):
    """What llama.cpp says; its buffer for rows of logits begins with one row, and grows when more are asked for."""
    return model.facts.memory_bytes + context.memory_bytes + (DEFAULT_ROWS - 1) * model.vocabulary.n_vocab * 4


def check(path, contexts, *, repack=True):
    repacked = THIS_PROCESSOR if repack else frozenset()
    with load_model(path, gpu_layers=0, repack=repack) as model:
        for n_ctx in contexts:
            with model.context(n_ctx=n_ctx, threads=1) as context:
                expected = estimate(model.header, n_ctx, repacked=repacked).whole.total
                assert expected == pytest.approx(allocated(model, context), rel=0.03), (path.name, n_ctx)


@pytest.mark.model
def test_within_three_percent_on_a_real_model(smollm2_path):
    check(smollm2_path, (512, 2048, 4096, 8192))
    check(smollm2_path, (2048,), repack=False)


@pytest.mark.pair
def test_within_three_percent_on_the_real_pair(qwen_pair_paths):
    """The target's weights are kept twice on processors with AVX2 or ARM's dot product."""
    for path in qwen_pair_paths:
        check(path, (2048, 8192))


def test_within_three_percent_where_layers_have_windows(gemma_path):
    check(gemma_path, (2048, 8192, 16384))


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "gemma3", "mamba", "lfm2"])
def test_every_kind_of_cache(tmp_path, architecture):
    """Windows, recurrent states, and states of which earlier ones are kept."""
    path = write_tiny_model(tmp_path / "x.gguf", architecture, n_layers=4, n_embd=256, n_vocab=4000)
    with load_model(path, gpu_layers=0) as model:
        for n_ctx, options in (
            (3000, {}),
            (3000, {"n_sequences": 3}),
            (700, {"n_ubatch": 64}),
            (3000, {"max_logits": 4}),
        ):
            mark = log.mark()
            with model.context(n_ctx=n_ctx, threads=1, **options) as context:
                caches = re.findall(r"(?:KV|RS) buffer size =\s+([\d.]+)", "\n".join(log.since(mark)))
                found = estimate(model.header, n_ctx, **options).whole
                assert found.kv_cache / MIB == pytest.approx(sum(map(float, caches)), abs=0.02), options
                rows = max(options.get("max_logits", DEFAULT_ROWS), options.get("n_sequences", 1))
                grown = (rows - options.get("n_sequences", 1)) * 4000 * 4
                assert found.kv_cache + found.compute == pytest.approx(context.memory_bytes + grown, rel=0.1)


@pytest.mark.model
def test_the_process_grows_by_what_is_reckoned(smollm2_path):
    """A fresh process, after a pass that returns as many rows as it can; the vocabulary's own tables come on top."""
    code = (
        "import sys, psutil\n"
        "from specchat.backends.base import PassInput\n"
        "from specchat.backends.llama import load_model\n"
        "before = psutil.Process().memory_info().rss\n"
        "model = load_model(sys.argv[1], gpu_layers=0, repack=False)\n"
        "context = model.context(n_ctx=8192, threads=1)\n"
        "context.decode([PassInput(0, range(1, 18), 17)])\n"
        "print(psutil.Process().memory_info().rss - before)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, smollm2_path], capture_output=True, check=True, timeout=60)
    expected = estimate(read_header(smollm2_path), 8192).whole.total
    assert expected == pytest.approx(int(run.stdout), rel=0.15)


def test_layers_on_a_gpu_take_their_weights_and_caches_with_them(tmp_path):
    header = read_header(write_tiny_model(tmp_path / "x.gguf", n_layers=6, n_embd=128, n_vocab=2000))
    sizes = {tensor.name: tensor.n_bytes for tensor in header.tensors}
    layer = sum(size for name, size in sizes.items() if name.startswith("blk.0."))
    nothing = estimate(header, 4096)
    assert nothing.gpu == Memory()
    assert nothing.cpu.weights == header.tensor_bytes
    for layers in range(1, 8):
        found = estimate(header, 4096, gpu_layers=layers)
        assert found.gpu.weights == sizes["output.weight"] + sizes["output_norm.weight"] + (layers - 1) * layer
        assert found.gpu.weights + found.cpu.weights == header.tensor_bytes
        assert found.gpu.kv_cache == pytest.approx(nothing.cpu.kv_cache * (layers - 1) / 6)
        assert found.gpu.kv_cache + found.cpu.kv_cache == nothing.cpu.kv_cache
    assert estimate(header, 4096, gpu_layers=99).gpu_layers == 7


def test_an_embedding_that_serves_as_output_is_copied_to_the_gpu(smollm2_path):
    header = read_header(smollm2_path)
    embedding = next(tensor.n_bytes for tensor in header.tensors if tensor.name == "token_embd.weight")
    found = estimate(header, 2048, gpu_layers=31)
    assert found.gpu.weights + found.cpu.weights == header.tensor_bytes + embedding
    assert found.cpu.weights == embedding


def test_a_second_context_shares_the_weights(tmp_path):
    header = read_header(write_tiny_model(tmp_path / "x.gguf"))
    whole, second = estimate(header, 1024).whole, estimate(header, 1024, has_own_weights=False).whole
    assert second == Memory(0, 0, whole.kv_cache, whole.compute)


def test_which_tensors_are_kept_twice(tmp_path):
    """Matrices of the right types, but not the embedding, which is only looked up; on a GPU none."""
    header = read_header(write_tiny_model(tmp_path / "x.gguf", storage="q8_0"))
    matrices = sum(t.n_bytes for t in header.tensors if len(t.shape) > 1 and t.name != "token_embd.weight")
    assert estimate(header, 512, repacked=frozenset({"Q8_0"})).whole.repacked == matrices
    assert estimate(header, 512, repacked=frozenset({"Q4_K"})).whole.repacked == 0
    assert estimate(header, 512, gpu_layers=1, repacked=frozenset({"Q8_0"})).whole.repacked == 0
    assert Memory(10, 4, 2, 1).total == 17
    assert Memory(10, 4, 2, 1).needed == 13


def test_which_types_a_processor_keeps_twice():
    assert repacked_types("CPU : SSE3 = 1 | AVX2 = 1 | REPACK = 1 | ") == {"Q4_0", "Q4_K", "IQ4_NL", "MXFP4"}
    assert "Q2_K" in repacked_types("CPU : AVX2 = 1 | AVX512 = 1 | REPACK = 1 | ")
    assert "Q6_K" in repacked_types("CPU : NEON = 1 | DOTPROD = 1 | REPACK = 1 | ")
    assert repacked_types("CPU : AVX2 = 1 | ") == frozenset()
    assert repacked_types("CPU : AVX2 = 0 | AVX512 = 0 | REPACK = 1 | ") == frozenset()
