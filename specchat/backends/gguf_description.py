"""What a GGUF file's header says of a model: the sizes of its network, its vocabulary, its weights."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from specchat.backends.gguf_reader import ArrayReference, Reader, Value
from specchat.backends.gguf_tables import FILE_TYPES, SLIDING_WINDOW_PATTERNS

Metadata: TypeAlias = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor: its dimensions (the contiguous one first), its type's name, and its size in bytes."""

    name: str
    shape: tuple[int, ...]
    type: str
    n_bytes: int

    @property
    def n_values(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class GgufHeader:
    """What a model file says of itself. Sizes are None where the file does not say.

    A model that is split over several files is described as a whole: ``tensors`` and ``file_bytes`` include those of
    the other ``parts``.
    """

    path: Path
    version: int
    file_bytes: int
    metadata: Metadata
    tensors: tuple[TensorInfo, ...]
    parts: tuple[Path, ...]
    """All files of the model, in order; just ``path`` where it is not split."""

    @property
    def architecture(self) -> str:
        """llama.cpp's name for the kind of network, such as "llama" or "qwen2"."""
        return self.text("general.architecture") or ""

    @property
    def name(self) -> str:
        """The model's own name, or the file's."""
        return self.text("general.name") or self.path.stem

    @cached_property
    def quantization(self) -> str:
        """How most of the weights are stored: "Q4_K_M"; of the most bytes where the file does not say."""
        named = FILE_TYPES.get(self.number("general.file_type") or 0) if self._has("general.file_type") else None
        if named or not self.tensors:
            return named or "?"
        sizes: dict[str, int] = {}
        for tensor in self.tensors:
            sizes[tensor.type] = sizes.get(tensor.type, 0) + tensor.n_bytes
        return max(sizes, key=lambda kind: sizes[kind])

    @property
    def n_layers(self) -> int | None:
        """How many layers the network has."""
        return self.size("block_count")

    @property
    def n_ctx_train(self) -> int | None:
        """How many tokens of context it was trained for."""
        return self.size("context_length")

    @property
    def n_embd(self) -> int | None:
        """The width of its inner state."""
        return self.size("embedding_length")

    @property
    def n_heads(self) -> tuple[int, ...]:
        """Attention heads, layer by layer."""
        return self._by_layer("attention.head_count", (0,) * (self.n_layers or 0))

    @property
    def n_heads_kv(self) -> tuple[int, ...]:
        """Key-value heads, layer by layer; 0 in a layer without attention."""
        return self._by_layer("attention.head_count_kv", self.n_heads)

    @property
    def head_size_k(self) -> int:
        """The width of one head's keys."""
        return self.size("attention.key_length") or (self.n_embd or 0) // max((*self.n_heads, 1))

    @property
    def head_size_v(self) -> int:
        """The width of one head's values."""
        return self.size("attention.value_length") or (self.n_embd or 0) // max((*self.n_heads, 1))

    def head_sizes(self, *, windowed: bool) -> tuple[int, int]:
        """The widths of one head's keys and values, in a layer with a sliding window or without."""
        if not windowed:
            return self.head_size_k, self.head_size_v
        size_k, size_v = self.size("attention.key_length_swa"), self.size("attention.value_length_swa")
        return size_k or self.head_size_k, size_v or self.head_size_v

    @property
    def sliding_window(self) -> int | None:
        """How many tokens back the layers with a window see; None where all see everything."""
        return self.size("attention.sliding_window") or None

    @property
    def has_window(self) -> tuple[bool, ...]:
        """Whether a layer has the sliding window, layer by layer. Where that is not known: no."""
        n_layers = self.n_layers or 0
        if self.sliding_window is None:
            return (False,) * n_layers
        pattern = self.metadata.get(f"{self.architecture}.attention.sliding_window_pattern")
        if isinstance(pattern, tuple):
            return (tuple(bool(entry) for entry in pattern) + (False,) * n_layers)[:n_layers]
        every = pattern if isinstance(pattern, int) else SLIDING_WINDOW_PATTERNS.get(self.architecture, 1)
        # of so many layers in a row the last has none; 0 means that all have it
        return tuple(every == 0 or layer % every < every - 1 for layer in range(n_layers))

    @property
    def n_vocab(self) -> int | None:
        """How many tokens the vocabulary has."""
        tokens = self.metadata.get("tokenizer.ggml.tokens")
        return tokens.count if isinstance(tokens, ArrayReference) and tokens.holds_strings else None

    @property
    def chat_template(self) -> str | None:
        """The Jinja template that turns messages into a prompt."""
        return self.text("tokenizer.chat_template")

    @property
    def tensor_bytes(self) -> int:
        """The size of all weights."""
        return sum(tensor.n_bytes for tensor in self.tensors)

    @property
    def n_params(self) -> int:
        """How many weights the model has."""
        return sum(tensor.n_values for tensor in self.tensors)

    @property
    def is_recurrent(self) -> bool:
        """Whether some layers keep a running state instead of keys and values, so that the cache cannot be cut."""
        return any(
            self._has(f"{self.architecture}.{key}") for key in ("ssm.state_size", "shortconv.l_cache", "wkv.head_size")
        )

    def tokens(self) -> list[bytes]:
        """The texts of the vocabulary as they stand in the file (not yet the bytes that they stand for)."""
        array = self.metadata.get("tokenizer.ggml.tokens")
        if not isinstance(array, ArrayReference) or not array.holds_strings:
            return []
        with Reader(self.path) as reader:
            return reader.strings(array)

    def token_types(self) -> tuple[int, ...]:
        """llama.cpp's type of each token (1 normal, 3 control, 5 unused, 6 byte); empty where the file has none."""
        array = self.metadata.get("tokenizer.ggml.token_type")
        if isinstance(array, tuple):
            return tuple(int(number) for number in array)
        if not isinstance(array, ArrayReference) or array.holds_strings:
            return ()
        with Reader(self.path) as reader:
            return tuple(int(number) for number in reader.numbers(array))

    def text(self, key: str) -> str | None:
        """A metadata text, None where there is none of that name."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else None

    def number(self, key: str) -> int | None:
        """A whole number of the metadata, None where there is none of that name."""
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def size(self, key: str) -> int | None:
        """A size of the network: the number under ``<architecture>.<key>``."""
        return self.number(f"{self.architecture}.{key}")

    def _has(self, key: str) -> bool:
        return key in self.metadata

    def _by_layer(self, key: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """A size that is one number for all layers, or an array with one a layer."""
        value = self.metadata.get(f"{self.architecture}.{key}")
        n_layers = self.n_layers or 0
        if isinstance(value, tuple):
            return (tuple(int(number) for number in value) + (0,) * n_layers)[:n_layers]
        return (value,) * n_layers if isinstance(value, int) else default
