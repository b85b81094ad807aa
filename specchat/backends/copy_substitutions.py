"""Substitutions that a reply makes again and again: a renamed variable, other quotation marks, deeper indentation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from specchat.backends.base import Vocabulary
from specchat.backends.copy_text import NEWLINE, SPACE, WORD, Text

_LONGEST_OLD, _LONGEST_NEW = 6, 8
_LONGEST_INSERTION = 4
_MOST_VARIANTS = 4
_WORD = re.compile(rb"(\W*)(\w+)(\W*)")
_NAME = re.compile(rb"(\W*)(\w[\w.]*)(\W*)")
_OPEN, _CLOSE = "[\"'`“‘「]", "[\"'`”’」]"
_QUOTED = rf"{_OPEN}(\w[\w.-]{{0,60}}){_CLOSE}"
_BETWEEN = r"[^\"'`“‘「\n]{0,12}\w[^\"'`“‘「\n]{0,12}"
_TOLD = re.compile(_QUOTED + _BETWEEN + _QUOTED)
"""Two quoted words with few letters between them, in whatever language: "`a` to `b`"."""
_PREFIXES = ("", " ", "(", "[", "{", ".", "_", '"', "'", "`", "*", '("', "('")
"""What a word can share its first token with."""


@dataclass(slots=True)
class Tally:
    """How often the reply made a substitution, and how often it kept what stood there."""

    made: int = 1
    kept: int = 0


@dataclass(frozen=True, slots=True)
class Substitution:
    """Source tokens ``old`` that are written as ``new``. A word's are many, by what it shares a token with.

    They have one tally.
    """

    old: tuple[int, ...]
    new: tuple[int, ...]
    tally: Tally


class Substitutions:
    """What was learned so far in this reply."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._by_first: dict[int, list[Substitution]] = {}
        self._deeper = 0
        self._tally = Tally()
        self._indents: dict[int, Substitution] = {}

    def at(self, text: Text, place: int) -> Substitution | None:
        """What is likely written for the source tokens at ``place``; None where they are copied."""
        tokens = text.tokens
        for known in self._by_first.get(tokens[place], ()):
            if len(known.old) == 1 or tuple(tokens[place : place + len(known.old)]) == known.old:
                return known
        return self._indent(text, place) if self._deeper else None

    def expect(self, instruction: str, prompt: str) -> None:
        """Looks for what is to be written for what: two quoted words, of which only the first is used elsewhere.

        "Rename `data` to `samples`", in whatever language. It is a guess, which what the reply writes soon settles.
        """
        for old, new in _TOLD.findall(instruction):
            if prompt.count(old) > 1 and prompt.count(new) == 1:
                self._add_word(old, new, Tally(made=0))

    def learn(self, text: Text, old: Sequence[int], new: Sequence[int], following: int, *, begins_line: bool) -> None:
        """The reply wrote ``new`` where the source has ``old``.

        Args:
            text: tells what kinds of tokens these are.
            old: source tokens, none for an insertion.
            new: what was written, none for a deletion.
            following: the source token after ``old``, with which the copy went on.
            begins_line: whether this happened at the beginning of a line.
        """
        old, new = tuple(old), tuple(new)
        if not new or any(text.kind(token) == NEWLINE for token in (*old, *new)):
            return
        if not old:
            if len(new) <= _LONGEST_INSERTION and text.kind(following) == WORD:
                self._add((following,), (*new, following), Tally())
            return
        if len(old) > _LONGEST_OLD or len(new) > _LONGEST_NEW:
            return
        if begins_line and len(old) == len(new) == 1 and text.kind(old[0]) == text.kind(new[0]) == SPACE:
            self._deeper = len(self._piece(new)) - len(self._piece(old))
            self._indents.clear()
            self._tally = Tally()
        tally = Tally()
        self._add(old, new, tally)
        self._learn_word(self._piece(old), self._piece(new), tally)

    def _learn_word(self, old: bytes, new: bytes, tally: Tally) -> None:
        """The same word wherever else it stands."""
        before, after = _WORD.fullmatch(old), _NAME.fullmatch(new)
        if before is None or after is None or before[1] != after[1] or before[3] != after[3] or before[2] == after[2]:
            return
        try:
            pair = before[2].decode(), after[2].decode()
        except UnicodeDecodeError:
            return
        self._add_word(*pair, tally)

    def _add_word(self, old: str, new: str, tally: Tally) -> None:
        """With every prefix that a word can share a token with."""
        for prefix in _PREFIXES:
            self._add(self._tokens(prefix + old), self._tokens(prefix + new), tally)

    def _add(self, old: tuple[int, ...], new: tuple[int, ...], tally: Tally) -> None:
        if not old or not new:
            return
        known = self._by_first.setdefault(old[0], [])
        if all(other.old != old or other.new != new for other in known):
            known.insert(0, Substitution(old, new, tally))
            del known[_MOST_VARIANTS:]

    def _indent(self, text: Text, place: int) -> Substitution | None:
        """Lines that were indented otherwise have taught by how much; this one is indented likewise."""
        token = text.tokens[place]
        if text.kind(token) != SPACE or text.head_before(place) is None:
            return None
        if token not in self._indents:
            piece = self._piece((token,))
            width = len(piece) + self._deeper
            new = self._tokens((piece[:1] * width).decode("utf-8", "replace"))
            self._indents[token] = Substitution((token,), new, self._tally)
        known = self._indents[token]
        return known if len(known.new) == 1 else None

    def _tokens(self, text: str) -> tuple[int, ...]:
        return tuple(self._vocabulary.tokenize(text, parse_special=False))

    def _piece(self, tokens: Sequence[int]) -> bytes:
        return b"".join(self._vocabulary.piece(token) for token in tokens)
