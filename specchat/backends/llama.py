"""Loads models with llama.cpp, through its low-level API.

    with load_model("model.gguf") as model, model.context(n_ctx=4096) as target:
        ids = model.vocabulary.tokenize("hello", parse_special=False)
        (logits,) = target.decode([PassInput(0, ids, 1)])

The high-level `Llama` class redirects file descriptors while it loads, allocates logits for every position and ignores
a cut that llama.cpp refused.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from specchat.backends.base import Interrupted
from specchat.backends.gguf_header import GgufHeader, check_can_chat, check_tokens, read_header
from specchat.backends.gguf_memory import DEFAULT_ROWS, MOST_SNAPSHOTS, micro_batch
from specchat.backends.llama_callbacks import ProgressCallback
from specchat.backends.llama_context import LlamaLanguageModel
from specchat.backends.llama_devices import BuildFacts, DeviceFacts, build, choose_devices, devices
from specchat.backends.llama_library import allocated_bytes, failure, llama_cpp, log, start
from specchat.backends.llama_vocabulary import LlamaVocabulary
from specchat.backends.placement import layers_that_fit, room_on
from specchat.backends.threads import default_threads
from specchat.errors import LoadError, UsageError

__all__ = [
    "BuildFacts",
    "DeviceFacts",
    "LlamaLanguageModel",
    "LlamaModel",
    "LlamaVocabulary",
    "ModelFacts",
    "build",
    "devices",
    "load_model",
]

_BF16 = 30  # GGML_TYPE_BF16, which llama_cpp has no name for
_ANOTHER_MODEL = "Update llama-cpp-python, or choose another model or another file of this one."


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What there is to say about a loaded model. ``memory_bytes`` is what its weights take, contexts not included."""

    name: str
    path: str
    architecture: str
    quantization: str
    n_params: int
    n_vocab: int
    n_layers: int
    gpu_layers: int
    n_ctx_train: int
    file_bytes: int
    memory_bytes: int
    device: str


def load_model(
    path: str | Path,
    *,
    gpu_layers: int | None = None,
    device: str | None = None,
    repack: bool = True,
    progress: Callable[[float], bool] | None = None,
    vocab_only: bool = False,
    n_ctx: int = 8192,
) -> LlamaModel:
    """Loads a model's weights.

    Args:
        path: a GGUF file, the first part where the model is split.
        gpu_layers: how many layers to put on the GPU, the output layer counted as one; -1 for all. None: all if they
            fit there with their cache, as many as fit if not, none where there is no GPU.
        device: the name of the one device to use (see `devices`); None for all GPUs.
        repack: whether weights may be rearranged for speed. Without it passes of more tokens give the same bits as
            single ones (see `specchat.backends.identical_passes`).
        progress: called with the part that is read, 0 to 1; returns whether to go on.
        vocab_only: loads the vocabulary and no weights.
        n_ctx: the context that will be made; it counts where ``gpu_layers`` is None.

    Raises:
        ModelFileError: the file is missing, malformed, or no model that can chat.
        UsageError: there is no such device.
        MemoryShortError: there is not enough memory.
        LoadError: llama.cpp refused; the message is its own.
        Interrupted: ``progress`` returned False.
    """
    header = read_header(path)
    check_can_chat(header)
    check_tokens(header)
    start()
    chosen = choose_devices(device)
    if vocab_only or not chosen:
        gpu_layers = 0
    elif gpu_layers is None:
        room = room_on([facts for facts, _ in chosen])
        gpu_layers = layers_that_fit(header, room, n_ctx, n_devices=len(chosen))
    params = llama_cpp.llama_model_default_params()
    params.n_gpu_layers = gpu_layers
    params.vocab_only = vocab_only
    params.use_extra_bufts = repack
    if device is not None or gpu_layers == 0:
        pointers = [handle for _, handle in chosen] if gpu_layers else []
        device_list = (ctypes.c_void_p * (len(pointers) + 1))(*pointers, None)
        params.devices = ctypes.cast(device_list, ctypes.c_void_p)
    watcher = ProgressCallback(progress)
    params.progress_callback = watcher.callback
    mark = log.mark()
    pointer = llama_cpp.llama_model_load_from_file(os.fsencode(header.path), params)
    watcher.raise_error()
    if not pointer:
        if watcher.cancelled:
            raise Interrupted
        raise failure(f"llama.cpp could not load {header.path.name}", mark, _ANOTHER_MODEL)
    n_offload = (header.n_layers or 0) + 1
    layers = n_offload if gpu_layers < 0 else min(gpu_layers, n_offload)
    used = ", ".join(facts.description for facts, _ in chosen) if layers else "CPU"
    return LlamaModel(
        pointer,
        header,
        gpu_layers=layers,
        device=used,
        memory_bytes=0 if vocab_only else allocated_bytes(mark) or header.tensor_bytes,
        vocab_only=vocab_only,
    )


class LlamaModel:
    """A loaded model. Its contexts (`context`) share the weights.

    Attributes:
        header: what the file says of itself.
        vocabulary: its tokens.
        facts: what there is to say about it.
        sliding_window: how many tokens back its layers with a window see; 0 where there are none.
        keeps_running_state: whether it is recurrent or hybrid, so that its cache cannot be cut anywhere.
        vocab_only: whether it was loaded without its weights.
    """

    def __init__(
        self,
        pointer: Any,
        header: GgufHeader,
        *,
        gpu_layers: int,
        device: str,
        memory_bytes: int,
        vocab_only: bool,
    ) -> None:
        self.vocab_only = vocab_only
        self.header = header
        self._pointer = pointer
        self._free = weakref.finalize(self, llama_cpp.llama_model_free, pointer)
        self._contexts: weakref.WeakSet[LlamaLanguageModel] = weakref.WeakSet()
        vocabulary = llama_cpp.llama_model_get_vocab(pointer)
        alive = self._free
        self.vocabulary = LlamaVocabulary(lambda: _alive(alive, vocabulary), header.chat_template)
        self.sliding_window: int = llama_cpp.llama_model_n_swa(pointer)
        self.keeps_running_state: bool = llama_cpp.llama_model_is_recurrent(pointer) or llama_cpp.llama_model_is_hybrid(
            pointer
        )
        self.facts = ModelFacts(
            name=header.name,
            path=str(header.path),
            architecture=header.architecture,
            quantization=header.quantization,
            n_params=header.n_params,
            n_vocab=self.vocabulary.n_vocab,
            n_layers=header.n_layers or 0,
            gpu_layers=gpu_layers,
            n_ctx_train=header.n_ctx_train or 0,
            file_bytes=header.file_bytes,
            memory_bytes=memory_bytes,
            device=device,
        )

    def context(
        self,
        *,
        n_ctx: int = 4096,
        max_logits: int = DEFAULT_ROWS,
        n_batch: int = 512,
        n_ubatch: int | None = None,
        n_sequences: int = 1,
        threads: int | None = None,
        exact: bool = False,
    ) -> LlamaLanguageModel:
        """Makes a cache and what is needed to evaluate tokens.

        Args:
            n_ctx: tokens that a sequence can hold.
            max_logits: rows of logits that a pass can return: the largest γ, plus one, for each sequence.
            n_batch: tokens that a pass can take.
            n_ubatch: tokens that are evaluated at a time within a pass; a pass is interrupted between them. None: 128
                on the CPU, where more gain little, and 512 elsewhere.
            n_sequences: how many sequences it can hold.
            threads: how many threads compute on the CPU; None for one a fast core.
            exact: flash attention on rather than where llama.cpp wants it, and on the CPU values kept as bf16: passes
                of several tokens then give the same bits as single ones as far as they can (load with
                ``repack=False``).

        Raises:
            UsageError: a size is zero or negative.
            MemoryShortError: there is not enough memory for a context of this size.
            LoadError: llama.cpp refused; the message is its own.
        """
        if n_ctx < 1 or max_logits < 1 or n_batch < 1 or n_sequences < 1:
            raise UsageError("Context, pass and sequences must hold at least one token.", "Choose larger numbers.")
        if self.vocab_only:
            raise LoadError(f"{self.header.path.name} was loaded without its weights.", "Load it whole.")
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = n_ctx * n_sequences
        params.n_batch = max(1, min(n_batch, n_ctx))
        params.n_ubatch = min(params.n_batch, n_ubatch or micro_batch(self.facts.gpu_layers))
        params.n_seq_max = n_sequences
        params.n_outputs_max = max(max_logits, n_sequences)
        if self.keeps_running_state:
            # llama.cpp asserts that a micro-batch is larger than the snapshots and one
            params.n_rs_seq = max(0, min(max_logits - 1, MOST_SNAPSHOTS, params.n_ubatch - 2))
        params.n_threads = params.n_threads_batch = threads or default_threads()
        params.flash_attn_type = (
            llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED if exact else llama_cpp.LLAMA_FLASH_ATTN_TYPE_AUTO
        )
        if exact and not self.facts.gpu_layers:
            # From 257 tokens on a single token's attention is shared out among threads and summed in another order than
            # that of several, but only where keys and values have the same type.
            params.type_v = _BF16
        params.swa_full = False
        params.kv_unified = False
        params.no_perf = True
        mark = log.mark()
        pointer = llama_cpp.llama_init_from_model(_alive(self._free, self._pointer), params)
        if not pointer:
            raise failure(
                f"llama.cpp could not make a context of {n_ctx} tokens for {self.header.path.name}",
                mark,
                "Choose a shorter context (--ctx) or another model.",
            )
        made = LlamaLanguageModel(
            self,
            pointer,
            n_ctx=n_ctx,
            max_logits=max_logits,
            n_sequences=n_sequences,
            memory_bytes=allocated_bytes(mark),
            close=llama_cpp.llama_free,
        )
        self._contexts.add(made)
        return made

    def close(self) -> None:
        """Frees the contexts and the weights. Safe to call twice; nothing else may be called after it."""
        for context in list(self._contexts):
            context.close()
        self._free()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _alive(free: weakref.finalize[Any, Any], pointer: Any) -> Any:
    if not free.alive:
        raise LoadError("The model is closed.", "Load the pair again.")
    return pointer
