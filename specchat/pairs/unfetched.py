"""What the header of a file that is not here yet will say, so that one learns whether it fits before fetching it."""

from __future__ import annotations

from pathlib import Path

from specchat.backends.gguf_header import GgufHeader, TensorInfo
from specchat.backends.gguf_reader import ArrayReference
from specchat.pairs.network import Network

_STRING = 8
_UNKNOWN_SHARE = 1.2
"""Of a model of which nothing but its size is known: what its cache and its passes take on top, roughly."""


def header_of(network: Network | None, file: str, size: int) -> GgufHeader:
    """What the header of a file that is not here will say, as far as memory is concerned.

    Args:
        network: its sizes; None where nothing but ``size`` is known, and then a fifth is added to the weights for
            cache and passes.
        file: its name.
        size: its bytes.
    """
    path = Path(file)
    if network is None:
        weights = (TensorInfo("blk.0.weights", (), "?", int(size * _UNKNOWN_SHARE)),)
        return GgufHeader(path, 3, size, {"general.architecture": "?", "?.block_count": 1}, weights, (path,))
    share = size / network.n_params
    embedding, layer = int(share * network.n_outside), int(share * network.n_layer)
    tensors = [TensorInfo("token_embd.weight", (), "?", embedding)]
    tensors += [] if network.tied else [TensorInfo("output.weight", (), "?", embedding)]
    tensors += [TensorInfo(f"blk.{index}.weights", (), "?", layer) for index in range(network.layers)]
    return GgufHeader(path, 3, size, _metadata(network), tuple(tensors), (path,))


def _metadata(network: Network) -> dict[str, int | str | ArrayReference]:
    sizes = {
        "block_count": network.layers,
        "context_length": network.context,
        "embedding_length": network.width,
        "feed_forward_length": network.inner,
        "attention.head_count": network.heads,
        "attention.head_count_kv": network.kv_heads,
        "attention.key_length": network.head_size,
        "attention.value_length": network.head_size,
    }
    if network.window is not None:
        sizes["attention.sliding_window"] = network.window
    return {
        "general.architecture": network.architecture,
        "tokenizer.ggml.tokens": ArrayReference(_STRING, network.vocabulary, 0),
        **{f"{network.architecture}.{key}": value for key, value in sizes.items()},
    }
