"""The chat as a drafter sees it: its tokens, what kind of text each one is, and where two in a row occurred before."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TypeAlias

from specchat.backends.base import Vocabulary, common_prefix

NEWLINE, SPACE, WORD, DIGIT, SIGN = range(5)
"""Kinds of tokens. A token that holds a line's end is a NEWLINE, whatever else is in it."""

Match: TypeAlias = tuple[int, int]
"""Where the text went on after what it ends with now, and how many tokens before that place agree."""

_FENCE = b"```"
_LONGEST_ROUND = 64
"""No round commits so many tokens: what comes at once is a prompt."""
_RECENT = 512
_LONGEST_MATCH = 32
_MOST_PLACES = 24
"""How many earlier places are compared. The latest ones: what was said last is the likeliest to be repeated."""


class Text:
    """Everything committed so far, indexed as it grows.

    Attributes:
        tokens: the ids. While a proposal is thought out, its tokens stand at the end and are taken off again.
        kinds: the kind of each of them.
        start: where the reply begins.
        has_fence: whether there is a fenced block before it, so that what stands outside is likely an instruction.
        fences: the ids seen so far that open or close a fenced block.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.tokens: list[int] = []
        self.kinds: list[int] = []
        self.start = 0
        self.has_fence = False
        self.fences: set[int] = set()
        self._vocabulary = vocabulary
        self._kinds: dict[int, int] = {}
        self._controls: set[int] = set()
        self._heads: list[int] = []
        self._fenced = bytearray()
        self._head = -1
        self._followers: defaultdict[tuple[int, int], list[int]] = defaultdict(list)

    def follow(self, context: Sequence[int]) -> tuple[bool, Sequence[int]]:
        """Brings the text to ``context``.

        Returns:
            Whether another reply begins, and the tokens of this reply that are new. Those are not yet added.
        """
        kept = self._common(context)
        is_cut = kept < len(self.tokens)
        if is_cut:
            self._cut(kept)
        new = context[kept:]
        if not (is_cut or len(new) > _LONGEST_ROUND or any(map(self.is_control, new))):
            return False, new
        for token in new:
            self.add(token)
        self.start = len(self.tokens)
        self.has_fence = any(self._fenced)
        return True, ()

    def _common(self, context: Sequence[int]) -> int:
        """How many tokens of the text ``context`` begins with.

        Where the latest agree, so do all: a chat that differs further back alone would cost a bad guess, no more.
        """
        known = len(self.tokens)
        recent = max(0, known - _RECENT)
        if known <= len(context) and list(context[recent:known]) == self.tokens[recent:]:
            return known
        return common_prefix(self.tokens, context)

    def add(self, token: int) -> None:
        """Adds one committed token."""
        tokens = self.tokens
        kind = self.kind(token)
        fenced = self._fenced[-1] if self._fenced and token not in self._controls else 0
        self._fenced.append(1 - fenced if token in self.fences else fenced)
        self._heads.append(self._head)
        if kind == NEWLINE:
            self._head = -1
        elif self._head < 0 and kind != SPACE:
            self._head = token
        tokens.append(token)
        self.kinds.append(kind)
        if len(tokens) > 2:
            self._followers[tokens[-3], tokens[-2]].append(len(tokens) - 1)

    def suppose(self, token: int) -> None:
        """Adds one token that is only thought of."""
        self.tokens.append(token)
        self.kinds.append(self.kind(token))

    def take_back(self, length: int) -> None:
        """Takes off what was thought of beyond so many tokens."""
        del self.tokens[length:], self.kinds[length:]

    def _cut(self, length: int) -> None:
        tokens = self.tokens
        while len(tokens) > length:
            if len(tokens) > 2:
                self._followers[tokens[-3], tokens[-2]].pop()
            tokens.pop()
        del self.kinds[length:], self._heads[length:], self._fenced[length:]
        self._head = -1

    def prompt(self, most: int) -> tuple[str, str]:
        """The last ``most`` tokens before the reply, in words: what stands outside of fences, and all of it."""
        first = max(0, self.start - most)
        pieces = [self._vocabulary.piece(token) for token in self.tokens[first : self.start]]
        outside = (piece for at, piece in enumerate(pieces, first) if not self._fenced[at])
        return b"".join(outside).decode("utf-8", "replace"), b"".join(pieces).decode("utf-8", "replace")

    def kind(self, token: int) -> int:
        """NEWLINE, SPACE, WORD, DIGIT or SIGN."""
        kind = self._kinds.get(token)
        return self._look_at(token) if kind is None else kind

    def _look_at(self, token: int) -> int:
        piece = self._vocabulary.piece(token)
        core = piece.strip()
        if b"\n" in piece:
            kind = NEWLINE
        elif not core:
            kind = SPACE
        elif _is_letter(core[0]) or _is_letter(core[-1]):
            kind = WORD
        else:
            kind = DIGIT if core.isdigit() else SIGN
        if _FENCE in piece:
            self.fences.add(token)
        if self._vocabulary.is_control(token):
            self._controls.add(token)
        self._kinds[token] = kind
        return kind

    def is_control(self, token: int) -> bool:
        """Whether it is a control token."""
        self.kind(token)
        return token in self._controls

    def ends_at_fence(self) -> bool:
        """Whether the text ends with the line of a fence."""
        return not self.fences.isdisjoint(self.tokens[-5:])

    def is_fenced(self, at: int) -> bool:
        """Whether the token stands in a fenced block."""
        return at < len(self._fenced) and self._fenced[at] > 0

    def head_before(self, at: int) -> tuple[int, int] | None:
        """Where a line begins at ``at``: the first word of the line before, and whether the line is indented."""
        kinds = self.kinds
        indent = 1 if at > 1 and kinds[at - 1] == SPACE else 0
        end = at - 1 - indent
        if not 0 <= end < len(self._heads) or kinds[end] != NEWLINE:
            return None
        return self._heads[end], indent

    def line_start(self) -> int | None:
        """NEWLINE where a line is about to begin, SPACE after its indentation, None in the middle of one."""
        kinds = self.kinds
        if not kinds or kinds[-1] == NEWLINE:
            return NEWLINE
        return SPACE if kinds[-1] == SPACE and len(kinds) > 1 and kinds[-2] == NEWLINE else None

    def occurrences(self) -> list[int]:
        """Where the text went on after the last two tokens, each time before; ascending."""
        tokens = self.tokens
        return self._followers.get((tokens[-2], tokens[-1]), []) if len(tokens) > 1 else []

    def rarity(self, token: int | None = None) -> float:
        """The logarithm of how often the last two tokens stand together, or the last one and ``token``."""
        tokens = self.tokens
        if token is None:
            return math.log(len(self.occurrences()) + 1)
        return math.log(len(self._followers.get((tokens[-1], token), ())) + 1) if tokens else 0.0

    def places_of(self, token: int, first: int, end: int) -> Iterator[int]:
        """Where ``token`` stands from ``first`` on and before ``end``."""
        index = self.tokens.index
        with suppress(ValueError):
            while True:
                first = index(token, first, end) + 1
                yield first - 1

    def agreement(self, at: int, most: int = _LONGEST_MATCH) -> int:
        """How many tokens before ``at`` agree with the end of the text, ``most`` at most."""
        tokens = self.tokens
        end = len(tokens)
        if at < most:
            most = at
        count = 0
        while count < most and tokens[at - 1 - count] == tokens[end - 1 - count]:
            count += 1
        return count

    def best_matches(self, skipped: Sequence[int], token: int | None = None) -> tuple[Match | None, Match | None]:
        """The longest earlier match of the end of the text before the reply, and the longest one in it.

        Args:
            skipped: places that do not count.
            token: what must follow there; None for anything.

        Returns:
            Both with at least two tokens of agreement, the latest of equal ones; None where there is none.
        """
        tokens, start = self.tokens, self.start
        given = own = 0
        most_given = most_own = 0
        for at in islice(reversed(self.occurrences()), _MOST_PLACES):
            if at in skipped or (token is not None and tokens[at] != token):
                continue
            count = self.agreement(at)
            if at < start:
                if count > most_given:
                    given, most_given = at, count
            elif count > most_own:
                own, most_own = at, count
        return (given, most_given) if most_given else None, (own, most_own) if most_own else None


def _is_letter(byte: int) -> bool:
    """Of a word, in any script: all bytes from 128 on count."""
    return byte >= 128 or chr(byte).isalpha() or byte == ord("_")
