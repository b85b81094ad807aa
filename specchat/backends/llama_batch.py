"""The tokens of one pass, in the arrays that llama.cpp reads. One batch is made for a context and filled anew."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

from specchat.backends.base import PassInput
from specchat.backends.llama_library import llama_cpp

_Ids = ctypes.POINTER(ctypes.c_int32)


class Batch:
    """A `llama_batch` over arrays of ctypes: for a few tokens they are filled sooner than those of numpy.

    Attributes:
        struct: what `llama_decode` takes.
        first_wanted: the index of the first token whose logits are wanted.
        last_wanted: that of the last one.
    """

    def __init__(self, capacity: int) -> None:
        ids = ctypes.c_int32 * capacity
        self._tokens, self._positions, self._sequences = ids(), ids(), ids()
        self._wanted = (ctypes.c_int8 * capacity)()
        self._ones = ids(*(1,) * capacity)
        place, size = ctypes.addressof(self._sequences), ctypes.sizeof(ctypes.c_int32)
        self._places = (_Ids * capacity)(*(ctypes.cast(place + size * i, _Ids) for i in range(capacity)))
        self.first_wanted = self.last_wanted = 0
        self.struct = llama_cpp.llama_batch(
            n_tokens=0,
            token=self._tokens,
            embd=None,
            pos=self._positions,
            n_seq_id=self._ones,
            seq_id=self._places,
            logits=self._wanted,
        )

    def fill(self, inputs: Iterable[tuple[PassInput, int]]) -> None:
        """Puts in the tokens of each input, at the position that its sequence has reached."""
        begin, first = 0, None
        for each, position in inputs:
            count, wanted = len(each.tokens), each.num_logits
            end = begin + count
            self._tokens[begin:end] = list(each.tokens)
            self._positions[begin:end] = list(range(position, position + count))
            self._sequences[begin:end] = [each.sequence] * count
            self._wanted[begin:end] = [0] * count
            self._wanted[end - wanted : end] = [1] * wanted
            if wanted:
                self.last_wanted = end - 1
                first = end - wanted if first is None else first
            begin = end
        self.struct.n_tokens = begin
        self.first_wanted = first or 0
