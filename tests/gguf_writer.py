"""Writes GGUF files, among them tiny random models that llama.cpp loads and runs in milliseconds.

    path = write_tiny_model(tmp_path / "target.gguf", "llama", seed=1)
    draft = write_tiny_model(tmp_path / "draft.gguf", "llama", seed=1, perturb=0.2)     # resembles the target
    window = write_tiny_model(tmp_path / "window.gguf", "gemma3", sliding_window=16)
    broken = write_tiny_model(tmp_path / "x.gguf", metadata={"general.architecture": "nonsense"})

Architectures: "llama", "qwen2" (as llama, with biases), "gemma3" (sliding window), "mamba" (recurrent, cannot be
cut), "lfm2" (hybrid, can be cut by a few tokens). Their vocabularies (`tests.tiny_vocabulary`) do not depend on the
architecture, so any two of them make a pair. The same arguments give the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tests import tiny_vocabulary

Architecture: TypeAlias = Literal["llama", "qwen2", "gemma3", "mamba", "lfm2"]
Storage: TypeAlias = Literal["f32", "f16", "q8_0"]
Tensors: TypeAlias = dict[str, NDArray[np.float32]]

_TYPE_CODES = {"f32": 0, "f16": 1, "q8_0": 8}
_UINT16, _UINT32, _INT32, _FLOAT32, _BOOL, _STRING, _ARRAY, _UINT64 = 2, 4, 5, 6, 7, 8, 9, 10


def write_tiny_model(
    path: Path,
    architecture: Architecture = "llama",
    *,
    seed: int = 0,
    perturb: float = 0.0,
    n_vocab: int | None = None,
    n_layers: int = 2,
    n_embd: int = 64,
    n_ctx_train: int = 4096,
    sliding_window: int | None = None,
    tokenizer: Literal["bpe", "spm"] = "bpe",
    chat_template: str | None = tiny_vocabulary.CHATML,
    logit_scale: float = 3.0,
    storage: Storage = "q8_0",
    metadata: Mapping[str, Any] | None = None,
) -> Path:
    """Writes a model with random weights and returns its path.

    Args:
        path: where to write it.
        architecture: see above.
        seed: decides the weights. Two seeds give unrelated models.
        perturb: how much of other random weights is mixed in (0 none, 1 as much as of the seed's own): a draft with
            the target's seed and 0.1–0.5 resembles the target more or less.
        n_vocab: unused ids are added up to this number (the vocabulary itself has some 360).
        n_layers: how many layers.
        n_embd: the width, a multiple of 32. Heads are 16 wide; half as many key-value heads as heads.
        n_ctx_train: the context length that the file claims.
        sliding_window: for gemma3 and lfm2; gemma3 has 16 unless told otherwise. All layers but the last use it.
        tokenizer: "bpe" (as Qwen, GPT-2) or "spm" (as Llama 2, Gemma; a prompt begins with ``<s>``).
        chat_template: the Jinja template, ChatML unless told otherwise; None for none.
        logit_scale: the standard deviation of the logits: 3 gives peaked distributions, 0.5 nearly flat ones.
        storage: how matrices are stored; one-dimensional tensors are always f32. With "q8_0" passes of up to 16 tokens
            give the very bits of single ones (on the x86 processors tried), with "f32" and "f16" they do not.
        metadata: entries that replace or add to the file's; a value of None removes the entry.
    """
    make_vocabulary = tiny_vocabulary.bpe if tokenizer == "bpe" else tiny_vocabulary.spm
    vocabulary = make_vocabulary(n_vocab)
    window = 16 if sliding_window is None and architecture == "gemma3" else sliding_window
    tensors = _tensors(architecture, seed, len(vocabulary.tokens), n_layers, n_embd, logit_scale)
    if perturb:
        other = _tensors(architecture, seed + 7919, len(vocabulary.tokens), n_layers, n_embd, logit_scale)
        norm = np.sqrt(1 + perturb**2)
        tensors = {
            name: (value + perturb * other[name]) / norm if value.ndim > 1 and name[-5:] != "ssm_a" else value
            for name, value in tensors.items()
        }
    entries: dict[str, Any] = {
        "general.architecture": architecture,
        "general.name": f"Tiny {architecture}",
        "general.file_type": {"f32": 0, "f16": 1, "q8_0": 7}[storage],
        **_sizes(architecture, n_layers, n_embd, n_ctx_train, window),
        **vocabulary.metadata,
        "tokenizer.chat_template": chat_template,
    }
    entries |= dict(metadata or {})
    return write_gguf(path, {key: value for key, value in entries.items() if value is not None}, tensors, storage)


def write_gguf(
    path: Path,
    metadata: Mapping[str, Any],
    tensors: Mapping[str, NDArray[np.float32]],
    storage: Storage = "f32",
    *,
    version: int = 3,
    alignment: int = 32,
) -> Path:
    """Writes any GGUF file.

    Values: bool, int (uint32), float (float32), str, lists of str, int (int32), float or bool, and numpy's uint16 and
    int32. A tensor's last numpy axis is GGUF's first dimension.
    """
    data = [_encode(value, storage) for value in tensors.values()]
    kinds = [_TYPE_CODES[storage] if _packs(value) else 0 for value in tensors.values()]
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    head += b"".join(_text(key) + _value(value) for key, value in metadata.items())
    offset = 0
    for (name, tensor), kind, content in zip(tensors.items(), kinds, data, strict=True):
        head += _text(name) + struct.pack("<I", tensor.ndim)
        head += struct.pack(f"<{tensor.ndim}Q", *reversed(tensor.shape)) + struct.pack("<IQ", kind, offset)
        offset += len(content) + -len(content) % alignment
    body = b"".join(content + bytes(-len(content) % alignment) for content in data)
    path.write_bytes(head + bytes(-len(head) % alignment) + body)
    return path


def _packs(tensor: NDArray[np.float32]) -> bool:
    return tensor.ndim > 1 and tensor.shape[-1] % 32 == 0


def _encode(tensor: NDArray[np.float32], storage: Storage) -> bytes:
    if storage == "f32" or not _packs(tensor):
        return tensor.astype("<f4").tobytes()
    if storage == "f16":
        return tensor.astype("<f2").tobytes()
    blocks = tensor.reshape(-1, 32)
    scales = np.abs(blocks).max(axis=1, keepdims=True) / 127
    quanta = np.rint(blocks / np.maximum(scales, 1e-12)).astype(np.int8)
    return np.concatenate([scales.astype("<f2").view(np.uint8), quanta.view(np.uint8)], axis=1).tobytes()


def _text(text: str) -> bytes:
    content = text.encode()
    return struct.pack("<Q", len(content)) + content


def _value(value: Any) -> bytes:
    if isinstance(value, list):
        kind = _item(value[0] if value else 0, in_array=True)[0]
        encoded = b"".join(_item(item, in_array=True)[1] for item in value)
        return struct.pack("<IIQ", _ARRAY, kind, len(value)) + encoded
    kind, encoded = _item(value, in_array=False)
    return struct.pack("<I", kind) + encoded


def _item(value: Any, *, in_array: bool) -> tuple[int, bytes]:
    match value:
        case np.uint16():
            return _UINT16, struct.pack("<H", value)
        case np.int32():
            return _INT32, struct.pack("<i", value)
        case bool():
            return _BOOL, struct.pack("<?", value)
        case int() if in_array:
            return _INT32, struct.pack("<i", value)
        case int() if value < 2**32:
            return _UINT32, struct.pack("<I", value)
        case int():
            return _UINT64, struct.pack("<Q", value)
        case float():
            return _FLOAT32, struct.pack("<f", value)
        case str():
            return _STRING, _text(value)
    raise TypeError(f"cannot write {value!r}")


_HEAD = 16
_STATE, _CONV, _SHORT = 8, 4, 3


def _sizes(architecture: str, n_layers: int, n_embd: int, n_ctx: int, window: int | None) -> dict[str, Any]:
    n_heads = n_embd // _HEAD
    sizes: dict[str, Any] = {
        "block_count": n_layers,
        "context_length": n_ctx,
        "embedding_length": n_embd,
        "attention.layer_norm_rms_epsilon": 1e-5,
    }
    if architecture == "mamba":
        sizes |= {"ssm.conv_kernel": _CONV, "ssm.inner_size": 2 * n_embd, "ssm.state_size": _STATE}
        sizes |= {"ssm.time_step_rank": n_embd // 16, "feed_forward_length": 0, "attention.head_count": 0}
    else:
        sizes |= {"feed_forward_length": 2 * n_embd, "attention.head_count": n_heads}
        sizes |= {"attention.head_count_kv": n_heads // 2, "rope.dimension_count": _HEAD, "rope.freq_base": 10000.0}
        sizes |= {"attention.key_length": _HEAD, "attention.value_length": _HEAD}
    if architecture == "lfm2":  # layers without key-value heads are recurrent: all but the last
        sizes |= {"shortconv.l_cache": _SHORT}
        sizes |= {"attention.head_count_kv": [0] * (n_layers - 1) + [n_heads // 2]}
    if window is not None:
        sizes |= {"attention.sliding_window": window}
        sizes |= {"attention.sliding_window_pattern": n_layers} if architecture == "gemma3" else {}
    return {f"{architecture}.{key}": value for key, value in sizes.items()}


def _tensors(
    architecture: str, seed: int, n_vocab: int, n_layers: int, n_embd: int, logit_scale: float
) -> dict[str, NDArray[np.float32]]:
    rng = np.random.default_rng(seed)

    def matrix(n_out: int, n_in: int, gain: float = 1.0) -> NDArray[np.float32]:
        return (rng.standard_normal((n_out, n_in)) * gain / np.sqrt(n_in)).astype(np.float32)

    def ones(count: int) -> NDArray[np.float32]:
        return np.ones(count, np.float32)

    tensors = {"token_embd.weight": matrix(n_vocab, n_embd, np.sqrt(n_embd))}
    for layer in range(n_layers):
        parts = {"attn_norm.weight": ones(n_embd)}
        if architecture == "mamba":
            parts |= _mamba(matrix, ones, n_embd)
        elif architecture == "lfm2" and layer < n_layers - 1:
            parts |= {"shortconv.in_proj.weight": matrix(3 * n_embd, n_embd)}
            parts |= {
                "shortconv.conv.weight": matrix(n_embd, _SHORT),
                "shortconv.out_proj.weight": matrix(n_embd, n_embd),
            }
        else:
            parts |= _attention(architecture, matrix, ones, rng, n_embd)
        if architecture != "mamba":
            parts |= {"ffn_norm.weight": ones(n_embd), "ffn_gate.weight": matrix(2 * n_embd, n_embd)}
            parts |= {"ffn_up.weight": matrix(2 * n_embd, n_embd), "ffn_down.weight": matrix(n_embd, 2 * n_embd)}
        tensors |= {f"blk.{layer}.{name}": value for name, value in parts.items()}
    last = "token_embd_norm.weight" if architecture == "lfm2" else "output_norm.weight"
    return tensors | {last: ones(n_embd), "output.weight": matrix(n_vocab, n_embd, logit_scale)}


def _attention(
    architecture: str,
    matrix: Callable[..., NDArray[np.float32]],
    ones: Callable[[int], NDArray[np.float32]],
    rng: np.random.Generator,
    n_embd: int,
) -> Tensors:
    n_kv = n_embd // 2
    # twice as steep as usual: attention that looks at everything alike would hide a wrong cache
    parts = {"attn_q.weight": matrix(n_embd, n_embd, 2.0), "attn_k.weight": matrix(n_kv, n_embd, 2.0)}
    parts |= {"attn_v.weight": matrix(n_kv, n_embd), "attn_output.weight": matrix(n_embd, n_embd)}
    if architecture == "qwen2":
        for name, width in (("attn_q", n_embd), ("attn_k", n_kv), ("attn_v", n_kv)):
            parts[f"{name}.bias"] = rng.standard_normal(width).astype(np.float32) / 4
    if architecture in ("gemma3", "lfm2"):
        parts |= {"attn_q_norm.weight": 2 * ones(_HEAD), "attn_k_norm.weight": ones(_HEAD)}
    if architecture == "gemma3":
        parts |= {"post_attention_norm.weight": ones(n_embd), "post_ffw_norm.weight": ones(n_embd)}
    return parts


def _mamba(
    matrix: Callable[..., NDArray[np.float32]], ones: Callable[[int], NDArray[np.float32]], n_embd: int
) -> Tensors:
    inner, rank = 2 * n_embd, n_embd // 16
    return {
        "ssm_in.weight": matrix(2 * inner, n_embd),
        "ssm_conv1d.weight": matrix(inner, _CONV),
        "ssm_conv1d.bias": 0 * ones(inner),
        "ssm_x.weight": matrix(rank + 2 * _STATE, inner, 2.0),
        "ssm_dt.weight": matrix(inner, rank),
        "ssm_dt.bias": -1 * ones(inner),
        "ssm_a": -np.tile(np.arange(1, _STATE + 1, dtype=np.float32) / 8, (inner, 1)),
        "ssm_d": ones(inner),
        "ssm_out.weight": matrix(n_embd, inner),
    }
