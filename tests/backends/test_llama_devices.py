"""Devices: how many layers fit, how many threads, and what is said of a GPU that lies idle."""

import os
from dataclasses import replace

import pytest

from specchat.backends.gguf_header import read_header
from specchat.backends.llama_devices import (
    DeviceFacts,
    default_threads,
    free_for_offload,
    layers_that_fit,
    unused_gpu_note,
)
from tests.gguf_writer import write_tiny_model

PLENTY = 2**40


@pytest.fixture
def header(tmp_path):
    return read_header(write_tiny_model(tmp_path / "x.gguf", n_layers=6, storage="f16"))


def needed(header, layers, n_ctx):
    """The free memory at which the output layer and so many others just fit: what is spared is on top."""
    sizes = {tensor.name: tensor.n_bytes for tensor in header.tensors}
    layer = sum(size for name, size in sizes.items() if name.startswith("blk.5.")) + header.cache_bytes(n_ctx) / 6
    output = sizes["output.weight"] + sizes["output_norm.weight"]
    return (output + layers * layer + 300 * 2**20) / 0.95


def test_all_some_or_none(header):
    """All and the output layer where there is plenty; as many as fit with less; none where nothing is free."""
    assert layers_that_fit(header, PLENTY, n_ctx=4096) == 7
    assert layers_that_fit(header, 0, n_ctx=4096) == 0
    for layers in range(7):
        assert layers_that_fit(header, int(needed(header, layers, 8192)) + 9, n_ctx=8192) == layers + 1
        assert layers_that_fit(header, int(needed(header, layers, 8192)) - 9, n_ctx=8192) == layers


def test_a_longer_context_and_a_reserve_leave_fewer(header):
    free = int(needed(header, 6, 4096)) + 9
    assert layers_that_fit(header, free, n_ctx=4096) == 7
    assert layers_that_fit(header, free, n_ctx=8192) < 6
    assert layers_that_fit(header, free, n_ctx=4096, reserved=200_000) < 7
    assert layers_that_fit(header, free, n_ctx=4096, reserved=2**40) == 0


def test_a_tied_output_counts_as_the_embedding(tmp_path):
    """Without a tensor of its own the output layer is a copy of the embedding."""
    whole = read_header(write_tiny_model(tmp_path / "x.gguf", n_layers=6))
    tied = replace(whole, tensors=tuple(tensor for tensor in whole.tensors if tensor.name != "output.weight"))
    for free in (int(needed(whole, 0, 256)) + 9, int(needed(whole, 0, 256)) - 9):
        assert layers_that_fit(tied, free, n_ctx=256) == layers_that_fit(whole, free, n_ctx=256)


def test_free_memory_is_that_of_what_llama_cpp_uses():
    cpu = DeviceFacts("CPU", "", "cpu", 100, 100)
    built_in = DeviceFacts("Vulkan0", "", "igpu", 20, 20)
    cards = [DeviceFacts(f"CUDA{number}", "", "gpu", 7, 8) for number in range(2)]
    assert free_for_offload([cpu]) == 0
    assert free_for_offload([cpu, built_in]) == 20
    assert free_for_offload([cpu, built_in, *cards]) == 14


def test_threads():
    assert 1 <= default_threads() <= (os.cpu_count() or 1)


@pytest.mark.parametrize(
    ("nvidia", "system", "machine", "says"),
    [
        (True, "Linux", "x86_64", "GGML_CUDA=on"),
        (True, "Windows", "AMD64", "GGML_CUDA=on"),
        (False, "Darwin", "arm64", "GGML_METAL=on"),
        (False, "Darwin", "x86_64", None),
        (False, "Linux", "x86_64", None),
    ],
)
def test_note_on_an_idle_gpu(nvidia, system, machine, says):
    note = unused_gpu_note(nvidia, system, machine)
    assert (note is None) if says is None else (says in note and "pip install" in note)
