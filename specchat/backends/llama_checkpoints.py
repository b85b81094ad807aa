"""Saved states of one sequence, for models whose cache cannot be cut: recurrent and hybrid ones.

A checkpoint is the running state after so many tokens. A cut goes back to the latest checkpoint before it, and what
lies between is evaluated again.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from specchat.backends.llama_library import llama_cpp

_WHOLE = llama_cpp.LLAMA_STATE_SEQ_FLAGS_NONE
_PARTIAL = llama_cpp.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY  # running states and windows, not all keys and values
_MOST_BYTES = 256 * 2**20
SPACING = 64
"""Where passes are seldom undone, as in plain decoding, a checkpoint is saved every so many tokens."""


@dataclass(frozen=True, slots=True)
class _Checkpoint:
    length: int
    state: Any

    @property
    def n_bytes(self) -> int:
        return ctypes.sizeof(self.state)


class Checkpoints:
    """The checkpoints of one sequence, spaced the wider the further back they are.

    So a cut by n tokens costs evaluating about n more at most, and a context of n tokens keeps about 2 log₂ n of them.
    """

    def __init__(self, context: Any, sequence: int) -> None:
        self._context = context
        self._sequence = sequence
        self._saved: list[_Checkpoint] = []

    @staticmethod
    def copy(context: Any, source: int, destination: int) -> bool:
        """Copies all that the cache holds of a sequence to another, empty one; whether that worked."""
        state = _read(context, source, _WHOLE)
        if state is None:
            return False
        return bool(llama_cpp.llama_state_seq_set_data_ext(context, state, ctypes.sizeof(state), destination, _WHOLE))

    def before(self, length: int, *, often_undone: bool) -> None:
        """Saves the state after ``length`` tokens, before a pass. Where it is seldom undone, only now and then."""
        latest = self._saved[-1].length if self._saved else 0
        if length == latest or (not often_undone and length - latest < SPACING):
            return
        state = _read(self._context, self._sequence, _PARTIAL)
        if state is not None:
            self._saved.append(_Checkpoint(length, state))
            self._thin(length)

    def restore(self, length: int) -> int:
        """Brings back the latest state of at most ``length`` tokens; returns how many tokens it stands for, 0 for none.

        What was saved after it is forgotten. With 0 the caller must empty the sequence.
        """
        while self._saved and self._saved[-1].length > length:
            self._saved.pop()
        if not self._saved:
            return 0
        saved = self._saved[-1]
        read = llama_cpp.llama_state_seq_set_data_ext(
            self._context, saved.state, saved.n_bytes, self._sequence, _PARTIAL
        )
        if read == 0:
            self._saved.clear()
            return 0
        return saved.length

    def forget_after(self, length: int) -> None:
        """Drops what was saved of tokens that are no more."""
        self._saved = [saved for saved in self._saved if saved.length <= length]

    def _thin(self, length: int) -> None:
        """Drops those whose neighbours are near enough: no gap may double the way back. Then what is over the limit."""
        saved, index = self._saved, 0
        while index < len(saved) - 1:
            before = saved[index - 1].length if index else 0
            if length - before + 1 <= 2 * (length - saved[index + 1].length + 1):
                del saved[index]
            else:
                index += 1
        while len(saved) > 1 and sum(each.n_bytes for each in saved) > _MOST_BYTES:
            del saved[0]


def _read(context: Any, sequence: int, flags: int) -> Any | None:
    """A copy of a sequence's state; None where llama.cpp gives none."""
    size = llama_cpp.llama_state_seq_get_size_ext(context, sequence, flags)
    state = (ctypes.c_uint8 * size)()
    read = llama_cpp.llama_state_seq_get_data_ext(context, state, size, sequence, flags) if size else 0
    return state if size and read == size else None
