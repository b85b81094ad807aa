"""The tokens of one pass, in the arrays that llama.cpp reads. One batch is made for a context and filled anew."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from specchat.backends.base import PassInput
from specchat.backends.llama_library import llama_cpp


class Batch:
    """A `llama_batch` over numpy arrays.

    Attributes:
        struct: what `llama_decode` takes.
        first_wanted: the index of the first token whose logits are wanted.
        last_wanted: that of the last one.
    """

    def __init__(self, capacity: int) -> None:
        self._tokens = np.zeros(capacity, np.int32)
        self._positions = np.zeros(capacity, np.int32)
        self._sequences = np.zeros(capacity, np.int32)
        self._wanted = np.zeros(capacity, np.int8)
        self._ones = np.ones(capacity, np.int32)
        self._sequence_pointers = self._sequences.ctypes.data + 4 * np.arange(capacity, dtype=np.uintp)
        self._steps = np.arange(capacity, dtype=np.int32)
        self.first_wanted = self.last_wanted = 0
        self.struct = llama_cpp.llama_batch(
            n_tokens=0,
            token=_pointer(self._tokens, ctypes.c_int32),
            embd=None,
            pos=_pointer(self._positions, ctypes.c_int32),
            n_seq_id=_pointer(self._ones, ctypes.c_int32),
            seq_id=_pointer(self._sequence_pointers, ctypes.POINTER(ctypes.c_int32)),
            logits=_pointer(self._wanted, ctypes.c_int8),
        )

    def fill(self, inputs: Iterable[tuple[PassInput, int]]) -> None:
        """Puts in the tokens of each input, at the position that its sequence has reached."""
        begin, first = 0, None
        for each, position in inputs:
            count = len(each.tokens)
            end = begin + count
            self._tokens[begin:end] = each.tokens
            self._positions[begin:end] = self._steps[:count] + position
            self._sequences[begin:end] = each.sequence
            self._wanted[begin:end] = 0
            if each.num_logits:
                self._wanted[end - each.num_logits : end] = 1
                self.last_wanted = end - 1
                first = end - each.num_logits if first is None else first
            begin = end
        self.struct.n_tokens = begin
        self.first_wanted = first or 0


def _pointer(array: NDArray[np.generic], kind: type) -> ctypes._Pointer:  # type: ignore[type-arg]
    return ctypes.cast(array.ctypes.data, ctypes.POINTER(kind))
