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
        logit_indices: which tokens of the batch have logits, ascending.
    """

    def __init__(self, capacity: int) -> None:
        self._tokens = np.zeros(capacity, np.int32)
        self._positions = np.zeros(capacity, np.int32)
        self._sequences = np.zeros(capacity, np.int32)
        self._wanted = np.zeros(capacity, np.int8)
        self._ones = np.ones(capacity, np.int32)
        addresses = self._sequences.ctypes.data + 4 * np.arange(capacity, dtype=np.uintp)
        self._sequence_pointers = addresses.astype(np.uintp)
        self.logit_indices: NDArray[np.intp] = np.zeros(0, np.intp)
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
        begin = 0
        for each, position in inputs:
            count = len(each.tokens)
            end = begin + count
            self._tokens[begin:end] = each.tokens
            self._positions[begin:end] = np.arange(position, position + count, dtype=np.int32)
            self._sequences[begin:end] = each.sequence
            self._wanted[begin:end] = 0
            self._wanted[end - each.num_logits : end] = 1
            begin = end
        self.struct.n_tokens = begin
        self.logit_indices = np.flatnonzero(self._wanted[:begin])


def _pointer(array: NDArray[np.generic], kind: type) -> ctypes._Pointer:  # type: ignore[type-arg]
    return ctypes.cast(array.ctypes.data, ctypes.POINTER(kind))
