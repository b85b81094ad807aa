"""What a reply has changed so far in the text that it copies, and where such a change is likely to come again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from specchat.backends.copy_text import Text

Key: TypeAlias = tuple[str, int, int]
"""What a place in the source has in common with others: the name of the kind of key, and two numbers."""


LEFT, AROUND, LINE = "left", "around", "line"
"""Kinds of keys: the two tokens before a place, those on both sides of it, the first word of the line before."""


@dataclass(slots=True)
class Edit:
    """A passage of the reply, from ``written`` on, that stands for another text in the source.

    ``until`` is where the copy went on; None while that is not known.
    """

    written: int
    until: int | None = None


@dataclass(slots=True)
class _Count:
    edits: int = 0
    passes: int = 0
    last: Edit | None = None

    @property
    def share(self) -> float:
        """How often a change began here, of all the times that the copy came by."""
        return self.edits / (self.edits + self.passes)


class Edits:
    """Counts, by what stands at a place of the source, how often the reply changed it and how often it copied on.

    A docstring after each line that begins with ``def``, a check at the head of each function, a type after each
    argument: the second time the place is known.
    """

    def __init__(self) -> None:
        self._counts: dict[Key, _Count] = {}
        self._ends: dict[tuple[int, int], list[int]] = {}
        self._open: Edit | None = None

    @staticmethod
    def keys(text: Text, at: int) -> tuple[Key, ...]:
        """What characterises the place before source token ``at``."""
        tokens = text.tokens
        before = tokens[at - 1] if at else -1
        keys: tuple[Key, ...] = (
            (LEFT, tokens[at - 2] if at > 1 else -1, before),
            (AROUND, before, tokens[at]),
        )
        head = text.head_before(at)
        return keys if head is None else (*keys, (LINE, *head))

    def count(self, key: Key) -> tuple[int, int]:
        """How often a change began at such a place, and how often none did."""
        count = self._counts.get(key)
        return (0, 0) if count is None else (count.edits, count.passes)

    def last(self, keys: tuple[Key, ...]) -> tuple[Key, Edit] | None:
        """The latest change at such a place, by the key at which changes are likeliest; the first of equal ones."""
        best, most = None, 0.0
        for key in keys:
            count = self._counts.get(key)
            if count is not None and count.last is not None and count.share > most:
                best, most = (key, count.last), count.share
        return best

    def passed(self, keys: tuple[Key, ...]) -> None:
        """The reply copied on at this place."""
        for key in keys:
            self._counts.setdefault(key, _Count()).passes += 1

    def begin(self, keys: tuple[Key, ...], written: int) -> None:
        """The reply went another way at this place, with its token ``written``."""
        self._open = Edit(written)
        for key in keys:
            count = self._counts.setdefault(key, _Count())
            count.edits += 1
            count.last = self._open

    def end(self, until: int | None) -> Edit | None:
        """The reply is copying again since its token ``until``; None where it has gone somewhere else altogether.

        Returns:
            The change that has ended.
        """
        edit, self._open = self._open, None
        if edit is not None:
            edit.until = until
        return edit

    def returned(self, last_two: tuple[int, int], is_back: bool) -> None:
        """After these tokens of an insertion the reply went back to the place where it left; or it did not."""
        self._ends.setdefault(last_two, [0, 0])[0 if is_back else 1] += 1

    def returns(self, last_two: tuple[int, int]) -> tuple[int, int]:
        """How often it went back after these tokens, and how often it did not."""
        back, on = self._ends.get(last_two, (0, 0))
        return back, on
