"""What a model takes in memory, from the numbers in its file: weights, cache, and what computing needs.

The arithmetic follows llama.cpp's own allocations, with its f16 cache, flash attention, and windows that keep only
what they see (``swa_full`` off). `llama.LlamaModel.context` uses the same sizes of passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from specchat.backends.gguf_description import GgufHeader, TensorInfo
from specchat.backends.gguf_tables import REPACKED_BY_FEATURE, SNAPSHOT_ARCHITECTURES
from specchat.backends.processor import features

_CPU_MICRO_BATCH, _GPU_MICRO_BATCH = 128, 512

MOST_SNAPSHOTS: Final = 8
"""How many earlier states of a recurrent layer are kept, so that drafted tokens can be taken back."""

DEFAULT_ROWS: Final = 33
"""Rows of logits that a pass can return unless told otherwise: γ = 32, and one.

Where text is copied word for word, so many pay: on a GPU, and on CPUs where 32 tokens cost twice what 8 do.
"""

_BLOCK = 256  # llama.cpp rounds the cells of a cache up to this
_HALF, _SINGLE = 2, 4  # bytes of an f16 and an f32
_LAYER = re.compile(r"blk\.(\d+)\.(.+)")
_RECURRENT = ("ssm_", "shortconv.", "time_mix_")


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on one device.

    Attributes:
        weights: the file's tensors.
        repacked: a second copy of some of them, in the order that the processor likes best. The first copy stays
            mapped but is not read again: the system takes it back when memory is short.
        kv_cache: keys and values, and the states of recurrent layers.
        compute: what a pass needs, and the rows of logits that it returns.
    """

    weights: int = 0
    repacked: int = 0
    kv_cache: int = 0
    compute: int = 0

    @property
    def total(self) -> int:
        """What llama.cpp says to have allocated."""
        return self.weights + self.repacked + self.kv_cache + self.compute

    @property
    def needed(self) -> int:
        """What must stay in memory."""
        return self.total - self.repacked

    def __add__(self, other: Memory) -> Memory:
        return Memory(
            self.weights + other.weights,
            self.repacked + other.repacked,
            self.kv_cache + other.kv_cache,
            self.compute + other.compute,
        )


@dataclass(frozen=True, slots=True)
class ModelMemory:
    """One model with a context: how many layers are on GPUs (the output layer counts as one), and what lies where."""

    gpu_layers: int
    gpu: Memory
    cpu: Memory

    @property
    def whole(self) -> Memory:
        """Everything, wherever it lies."""
        return self.gpu + self.cpu


def micro_batch(gpu_layers: int) -> int:
    """How many tokens are evaluated at a time within a pass; on the CPU more gain little and delay an interruption."""
    return _GPU_MICRO_BATCH if gpu_layers else _CPU_MICRO_BATCH


def repacked_types(system_info: str) -> frozenset[str]:
    """The types of tensors that llama.cpp keeps in a second order on this processor.

    Args:
        system_info: what llama.cpp says of the processor: ``… AVX2 = 1 | REPACK = 1 | …``.
    """
    built_for = features(system_info)
    found: set[str] = set()
    for feature, types in REPACKED_BY_FEATURE.items():
        if feature in built_for and ("REPACK" in built_for or feature == "AMX_INT8"):
            found |= types
    return frozenset(found)


def estimate(
    header: GgufHeader,
    n_ctx: int,
    *,
    gpu_layers: int = 0,
    max_logits: int = DEFAULT_ROWS,
    n_sequences: int = 1,
    n_ubatch: int | None = None,
    repacked: frozenset[str] = frozenset(),
    has_own_weights: bool = True,
) -> ModelMemory:
    """What a model takes with a context of ``n_ctx`` tokens.

    Args:
        header: the model.
        n_ctx: tokens that a sequence can hold.
        gpu_layers: how many layers are on the GPU, the output layer counted as one: llama.cpp puts the output layer
            there first, then the last layer, and so on.
        max_logits: rows of logits that a pass can return.
        n_sequences: how many sequences the cache can hold.
        n_ubatch: tokens evaluated at a time; None for what `LlamaModel.context` takes.
        repacked: types of tensors that the processor keeps in a second order (see `repacked_types`). With a layer
            on a GPU llama.cpp keeps none.
        has_own_weights: False for a second context of a model that is loaded already.

    Returns:
        Within 10% of what llama.cpp allocates, for transformers and the usual recurrent and hybrid models. Caches of
        sparse-attention indexes are not counted.
    """
    n_layers = header.n_layers or 0
    gpu_layers = max(0, min(gpu_layers, n_layers + 1))
    first_on_gpu = n_layers + 1 - gpu_layers
    n_ubatch = min(n_ubatch or micro_batch(gpu_layers), max(n_ctx, 1))
    caches = _cache_by_layer(header, n_ctx, n_ubatch, n_sequences, max_logits)
    cpu, gpu = Memory(), Memory()
    if has_own_weights:
        weights = _weights_by_layer(header)
        tied = weights.tied if gpu_layers else 0  # the GPU needs the output for itself
        gpu = Memory(weights=sum(weights.layers[first_on_gpu:]) + tied)
        cpu = Memory(
            weights=weights.input + sum(weights.layers[:first_on_gpu]),
            repacked=0 if gpu_layers else _repacked_bytes(header, repacked),
        )
    mask = _mask_bytes(header, n_ctx, n_ubatch) if any(header.n_heads_kv) else 0
    layers = mask + _SINGLE * n_ubatch * _width(header)
    rows = _SINGLE * (max_logits * ((header.n_vocab or 0) + (header.n_embd or 0)) + n_ubatch * (header.n_embd or 0))
    inputs = mask + _SINGLE * n_ubatch * (header.n_embd or 0)
    returned = _SINGLE * max_logits * (header.n_vocab or 0)
    on_cpu = layers if first_on_gpu > 0 else inputs
    cpu += Memory(kv_cache=sum(caches[:first_on_gpu]), compute=returned + (on_cpu if gpu_layers else max(layers, rows)))
    if gpu_layers:
        gpu += Memory(kv_cache=sum(caches[first_on_gpu:]), compute=max(layers if gpu_layers > 1 else 0, rows))
    return ModelMemory(gpu_layers, gpu, cpu)


@dataclass(frozen=True, slots=True)
class _Weights:
    """Bytes of tensors. ``layers`` has the output layer at its end; ``tied`` is an embedding that serves as output."""

    input: int
    layers: list[int]
    tied: int


def _weights_by_layer(header: GgufHeader) -> _Weights:
    n_layers = header.n_layers or 0
    layers, rest, embedding = [0] * (n_layers + 1), 0, 0
    has_output = False
    for tensor in header.tensors:
        named = _LAYER.fullmatch(tensor.name)
        if named and int(named[1]) < n_layers:
            layers[int(named[1])] += tensor.n_bytes
        elif tensor.name.startswith("output"):
            layers[n_layers] += tensor.n_bytes
            has_output = has_output or tensor.name == "output.weight"
        else:
            rest += tensor.n_bytes
            embedding = tensor.n_bytes if tensor.name == "token_embd.weight" else embedding
    return _Weights(rest, layers, 0 if has_output else embedding)


def _repacked_bytes(header: GgufHeader, types: frozenset[str]) -> int:
    has_output = any(tensor.name == "output.weight" for tensor in header.tensors)

    def multiplies(tensor: TensorInfo) -> bool:
        return tensor.name.startswith(("blk.", "output.")) or (not has_output and tensor.name == "token_embd.weight")

    return sum(
        tensor.n_bytes
        for tensor in header.tensors
        if tensor.type in types and len(tensor.shape) > 1 and tensor.shape[1] % 8 == 0 and multiplies(tensor)
    )


def _cache_by_layer(header: GgufHeader, n_ctx: int, n_ubatch: int, n_sequences: int, max_logits: int) -> list[int]:
    """Bytes of each layer's cache; a last entry of 0 for the output layer."""
    rows, windowed = _cells(header, n_ctx, n_ubatch)
    n_layers = header.n_layers or 0
    used = n_layers - (header.size("nextn_predict_layers") or 0)
    with_cache = n_layers - (header.size("attention.shared_kv_layers") or 0)
    keys_only = header.size("attention.key_length_mla") is not None
    recurrent, both = _recurrent_layers(header)
    snapshots = 0
    if header.architecture in SNAPSHOT_ARCHITECTURES:
        snapshots = max(0, min(max_logits - 1, MOST_SNAPSHOTS, n_ubatch - 2))
    state = _state_bytes(header) * (1 + snapshots)
    caches = []
    for layer, (heads, has_window) in enumerate(zip(header.n_heads_kv, header.has_window, strict=True)):
        size_k, size_v = header.head_sizes(windowed=has_window)
        per_row = _HALF * heads * (size_k + (0 if keys_only else size_v))
        size = per_row * (windowed if has_window else rows) if layer < with_cache else 0
        if layer in recurrent:
            size = state + (size if layer in both else 0)
        caches.append(size * n_sequences if layer < used else 0)
    return [*caches, 0]


def _cells(header: GgufHeader, n_ctx: int, n_ubatch: int) -> tuple[int, int]:
    """How many tokens a layer's cache holds: one that sees everything, one with a window."""
    rows = _rounded(n_ctx)
    return rows, min(rows, _rounded((header.sliding_window or 0) + n_ubatch))


def _rounded(count: int) -> int:
    return -(-count // _BLOCK) * _BLOCK


def _recurrent_layers(header: GgufHeader) -> tuple[set[int], set[int]]:
    """The layers that keep a running state, and those of them that keep keys and values as well."""
    recurrent, attends = set(), set()
    for layer, part in _layer_tensors(header):
        if part.startswith(_RECURRENT):
            recurrent.add(layer)
        elif part.startswith("attn_k."):
            attends.add(layer)
    return recurrent, recurrent & attends


def _layer_tensors(header: GgufHeader) -> Iterator[tuple[int, str]]:
    return ((int(found[1]), found[2]) for tensor in header.tensors if (found := _LAYER.fullmatch(tensor.name)))


def _state_bytes(header: GgufHeader) -> int:
    """One recurrent layer's state of one sequence: 32-bit numbers."""
    n_embd = header.n_embd or 0
    if head := header.size("wkv.head_size"):
        return _SINGLE * n_embd * ((header.size("token_shift_count") or 2) + head)
    if kept := header.size("shortconv.l_cache"):
        return _SINGLE * n_embd * (kept - 1)
    inner, state = header.size("ssm.inner_size") or 0, header.size("ssm.state_size") or 0
    groups, kernel = header.size("ssm.group_count") or 0, header.size("ssm.conv_kernel") or 1
    return _SINGLE * ((kernel - 1) * (inner + 2 * groups * state) + inner * state)


def _mask_bytes(header: GgufHeader, n_ctx: int, n_ubatch: int) -> int:
    rows, windowed = _cells(header, n_ctx, n_ubatch)
    return _HALF * n_ubatch * (rows + (windowed if any(header.has_window) else 0))


def _width(header: GgufHeader) -> int:
    """How many numbers a token takes at the widest place of a layer.

    Found by measuring: the feed-forward network holds three of its inner vectors while inputs and a query wait.
    """
    n_embd = header.n_embd or 0
    heads = max(header.n_heads, default=0) * header.head_size_k
    attention = 3 * max(_inner_widths(header)) + 3 * n_embd + heads
    return max(attention, 6 * (header.size("ssm.inner_size") or 0) + n_embd)


def _inner_widths(header: GgufHeader) -> Iterator[int]:
    """Widths of the feed-forward network, layer by layer; of all the experts that a token is sent to, together."""
    sizes = header.metadata.get(f"{header.architecture}.feed_forward_length", 0)
    yield from (int(size) for size in (sizes if isinstance(sizes, tuple) else (sizes,)) if isinstance(size, int))
    experts = header.metadata.get(f"{header.architecture}.expert_used_count", 0)
    used = max((int(count) for count in experts), default=0) if isinstance(experts, tuple) else experts
    each = header.size("expert_feed_forward_length") or header.size("feed_forward_length") or 0
    yield (used if isinstance(used, int) else 0) * each + (header.size("expert_shared_feed_forward_length") or 0)
