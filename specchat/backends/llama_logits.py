"""The rows of logits that a pass leaves in llama.cpp's buffer, as numpy views: nothing is copied."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specchat.backends.llama_library import llama_cpp


class LogitViews:
    """Views of a context's logits. llama.cpp mostly uses the same place again, and so can the view of it.

    Args:
        context: the pointer to the context.
        n_vocab: values in a row.
        max_rows: how many rows a pass can return.
    """

    def __init__(self, context: Any, n_vocab: int, max_rows: int) -> None:
        self._context = context
        self._n_vocab = n_vocab
        self._max_rows = max_rows
        self._known: dict[tuple[int, int], NDArray[np.float32]] = {}

    def read(self, first: int, last: int, rows: int) -> NDArray[np.float32] | None:
        """The rows of a pass whose tokens ``first`` to ``last`` have them, ``[rows, n_vocab]``. Waits for a GPU.

        None where llama.cpp has none, or not one after another.
        """
        pointer = llama_cpp.llama_get_logits_ith(self._context, first)
        end = pointer if rows == 1 else llama_cpp.llama_get_logits_ith(self._context, last)
        if not pointer or not end or _address(end) - _address(pointer) != (rows - 1) * self._n_vocab * 4:
            return None
        place = (_address(pointer), rows)
        view = self._known.get(place)
        if view is None:
            if len(self._known) >= self._max_rows:  # the buffer has moved
                self._known.clear()
            view = self._known[place] = np.ctypeslib.as_array(pointer, shape=(rows, self._n_vocab))
            view.flags.writeable = False
        return view


def _address(pointer: Any) -> int:
    return ctypes.addressof(pointer.contents)
