"""A vocabulary for tests that read like text: words, digits and signs are tokens, as newer tokenizers cut them.

A blank belongs to the word or the signs that follow, the end of a line to the signs before it.
"""

from __future__ import annotations

import re

CONTROLS = ("<end>", "<user>", "<reply>")
END, USER, REPLY = range(3)
_TOKENS = re.compile(r"<end>|<user>|<reply>|[^\S\n]?[^\W\d]+|\d| ?[^\w\s<]+\n*|<|\s*\n|\s+(?= \S)|\s+")


class WordVocabulary:
    """Ids are given in the order in which tokens first occur. A word after a sign is a token of its own."""

    bos = chat_template = None
    eos = END
    add_bos = False
    n_vocab = 10_000
    control_texts = frozenset(CONTROLS)

    def __init__(self) -> None:
        self._texts = list(CONTROLS)
        self._ids = {text: i for i, text in enumerate(CONTROLS)}

    def tokenize(self, text: str, *, parse_special: bool = True) -> list[int]:
        ids = []
        for piece in _TOKENS.findall(text):
            if piece not in self._ids:
                self._ids[piece] = len(self._texts)
                self._texts.append(piece)
            ids.append(self._ids[piece])
        return ids

    def piece(self, token: int) -> bytes:
        return self._texts[token].encode()

    def is_control(self, token: int) -> bool:
        return token < len(CONTROLS)

    def is_end(self, token: int) -> bool:
        return token == END
