"""The vocabulary of a loaded model."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property
from typing import Any

from specchat.backends.llama_library import llama_cpp
from specchat.errors import DecodeError

_NORMAL, _CONTROL, _UNKNOWN = (
    llama_cpp.LLAMA_TOKEN_ATTR_NORMAL,
    llama_cpp.LLAMA_TOKEN_ATTR_CONTROL,
    llama_cpp.LLAMA_TOKEN_ATTR_UNKNOWN,
)
_LONGEST_TEXT = 2**30


class LlamaVocabulary:
    """The tokens of a model, as llama.cpp has them.

    llama.cpp marks every token whose text looks like an end (``</s>``, ``<|im_end|>``, …) as control, whatever the
    file says. Where the file says that it is ordinary text, as Qwen2.5's ``</s>``, it is text here.

    Args:
        handle: gives llama.cpp's pointer to the vocabulary; raises once the model is closed.
        chat_template: the template that the file carries.
    """

    def __init__(self, handle: Callable[[], Any], chat_template: str | None) -> None:
        self._handle = handle
        self.chat_template = chat_template
        self.n_vocab: int = llama_cpp.llama_vocab_n_tokens(handle())
        self.bos = self._special(llama_cpp.llama_vocab_bos)
        self.eos = self._special(llama_cpp.llama_vocab_eos)
        self.eot = self._special(llama_cpp.llama_vocab_eot)
        self.add_bos: bool = llama_cpp.llama_vocab_get_add_bos(handle())
        self._pieces: dict[int, bytes] = {}
        self._buffer = ctypes.create_string_buffer(256)

    def tokenize(self, text: str, *, parse_special: bool) -> list[int]:
        """The ids of ``text``; no bos or eos is added. Characters that cannot be encoded count as question marks.

        Raises:
            DecodeError: the text is longer than llama.cpp can take.
        """
        content = text.encode("utf-8", "replace")
        size = len(content) // 2 + 16
        while len(content) < _LONGEST_TEXT:
            ids = (llama_cpp.llama_token * size)()
            count = llama_cpp.llama_tokenize(
                self._handle(), content, len(content), ids, size, False, parse_special
            )  # add_special, parse_special
            if count >= 0:
                return ids[:count]
            if -count <= size:
                break
            size = -count
        raise DecodeError("The text is too long for llama.cpp.", "Shorten it.")

    def piece(self, token: int) -> bytes:
        """The bytes that a token stands for; none for a padding id."""
        known = self._pieces.get(token)
        if known is None:
            known = self._pieces[token] = self._read_piece(token)
        return known

    def is_control(self, token: int) -> bool:
        """Whether the token is a control token: marked so by the file, or one that ends a reply."""
        attributes = self._attributes(token)
        if attributes & (_CONTROL | _UNKNOWN) and not attributes & _NORMAL:
            return True
        return self.is_end(token)

    def is_end(self, token: int) -> bool:
        """Whether the token ends a reply: eos, eot, and ends of generation that are not ordinary text."""
        if token in self._ends:
            return True
        self._check(token)
        return False

    @cached_property
    def control_texts(self) -> frozenset[str]:
        """Every text that is one special token with ``parse_special`` and ordinary text without."""
        special = _CONTROL | _UNKNOWN
        attributes, handle = llama_cpp.llama_vocab_get_attr, self._handle()
        ids = [token for token in range(self.n_vocab) if attributes(handle, token) & special]
        return frozenset(self.piece(token).decode("utf-8", "replace") for token in ids)

    @cached_property
    def _ends(self) -> frozenset[int]:
        ends = {token for token in (self.eos, self.eot) if token is not None}
        is_end, handle = llama_cpp.llama_vocab_is_eog, self._handle()
        for token in range(self.n_vocab):
            if is_end(handle, token) and not self._attributes(token) & _NORMAL:
                ends.add(token)
        return frozenset(ends)

    def _special(self, function: Callable[[Any], int]) -> int | None:
        token = function(self._handle())
        return token if 0 <= token < self.n_vocab else None

    def _attributes(self, token: int) -> int:
        self._check(token)
        attributes: int = llama_cpp.llama_vocab_get_attr(self._handle(), token)
        return attributes

    def _check(self, token: int) -> None:
        """llama.cpp throws through C code, which ends the process, on an id that does not exist."""
        if not 0 <= token < self.n_vocab:
            raise DecodeError(f"There is no token {token}; ids run from 0 to {self.n_vocab - 1}.", "Load another pair.")

    def _read_piece(self, token: int) -> bytes:
        self._check(token)
        while True:
            size = len(self._buffer)
            count = llama_cpp.llama_token_to_piece(self._handle(), token, self._buffer, size, 0, True)
            if count >= 0:
                return self._buffer.raw[:count]
            self._buffer = ctypes.create_string_buffer(-count)
