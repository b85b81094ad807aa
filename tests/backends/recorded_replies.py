"""Replies of a real target, and the part of its vocabulary that they need, from tests/data/replies.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "replies.json"


@dataclass(frozen=True)
class Reply:
    """A prompt and what was answered.

    Attributes:
        category: the kind of work, as in ``specchat bench``.
        name: "scripted …" where a script made the reply out of the prompt.
        temperature: what it was drawn at; 0 for the target's own greedy reply.
        is_for_fitting: whether the copy drafter's first weights were fitted to it.
    """

    category: str
    name: str
    temperature: float
    is_for_fitting: bool
    prompt: Sequence[int]
    tokens: Sequence[int]

    @property
    def is_scripted(self) -> bool:
        return self.name.startswith("scripted ")


class RecordedVocabulary:
    """The pieces of the tokens that occur, and how the texts that a drafter asked about were tokenised.

    Another text is taken apart from the left into the longest pieces there are.
    """

    bos = eos = chat_template = None
    add_bos = False
    control_texts: frozenset[str] = frozenset()
    n_vocab = 151936

    def __init__(self, pieces: dict[int, bytes], controls: frozenset[int], tokenized: dict[str, list[int]]) -> None:
        self._pieces = pieces
        self._controls = controls
        self._tokenized = tokenized
        self._ids = {piece: token for token, piece in pieces.items() if token not in controls}
        self._longest = max(map(len, self._ids))

    def tokenize(self, text: str, *, parse_special: bool) -> list[int]:
        known = self._tokenized.get(text)
        if known is not None:
            return list(known)
        left, ids = text.encode(), []
        while left:
            size = next((n for n in range(min(len(left), self._longest), 0, -1) if left[:n] in self._ids), 0)
            if size:
                ids.append(self._ids[left[:size]])
            left = left[max(size, 1) :]
        return ids

    def piece(self, token: int) -> bytes:
        return self._pieces[token]

    def is_control(self, token: int) -> bool:
        return token in self._controls

    def is_end(self, token: int) -> bool:
        return token in self._controls


@dataclass(frozen=True)
class Recorded:
    vocabulary: RecordedVocabulary
    replies: tuple[Reply, ...]

    def named(self, name: str) -> Reply:
        """The greedy or scripted reply of that name."""
        return next(reply for reply in self.replies if reply.name == name and not reply.temperature)


@cache
def recorded() -> Recorded:
    """All of them. A prompt that several replies share is written once."""
    data = json.loads(DATA.read_text(encoding="utf-8"))
    vocabulary = RecordedVocabulary(
        {int(token): piece.encode("latin-1") for token, piece in data["pieces"].items()},
        frozenset(data["controls"]),
        data["tokenized"],
    )
    replies = tuple(
        Reply(
            each["category"],
            each["name"],
            each["temperature"],
            each["for fitting"],
            data["prompts"][each["name"]],
            each["tokens"],
        )
        for each in data["replies"]
    )
    return Recorded(vocabulary, replies)
