"""The sizes of a network, as a catalogue states them (see `specchat.pairs.unfetched`)."""

from __future__ import annotations

from typing import Annotated

import msgspec

_Size = Annotated[int, msgspec.Meta(gt=0, lt=1 << 24)]
_Layers = Annotated[int, msgspec.Meta(gt=0, le=512)]


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A transformer's sizes, as its published configuration states them.

    ``architecture`` is llama.cpp's name for it; ``inner`` the width of the feed-forward network; ``window`` the sliding
    window that some of its layers have; ``tied`` whether its file has one matrix as embedding and as output.
    """

    architecture: str
    layers: _Layers
    width: _Size
    inner: _Size
    heads: _Size
    kv_heads: _Size
    head_size: _Size
    vocabulary: _Size
    context: _Size
    window: _Size | None = None
    tied: bool = False

    @property
    def n_params(self) -> int:
        """How many weights it has, norms and biases left out."""
        return self.n_outside * (1 if self.tied else 2) + self.layers * self.n_layer

    @property
    def n_outside(self) -> int:
        """The weights of the embedding; as many in the output."""
        return self.vocabulary * self.width

    @property
    def n_layer(self) -> int:
        """The weights of one layer."""
        attention = 2 * (self.heads + self.kv_heads) * self.head_size * self.width
        return attention + 3 * self.width * self.inner
