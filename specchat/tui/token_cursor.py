"""Which token is being looked at, and where the arrow keys lead from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specchat.tui.blocks import Reply
from specchat.tui.line_index import LineIndex


@dataclass(frozen=True, slots=True)
class TokenCursor:
    """A token of a reply of the transcript."""

    block: int
    token: int

    def lines(self, index: LineIndex) -> range:
        """The lines of the transcript on which the token stands."""
        first, last = _reply(index, self.block).lines_of(self.token)
        start = index.start(self.block)
        return range(start + first, start + last + 1)

    def beside(self, index: LineIndex, step: int) -> TokenCursor | None:
        """The next (``step`` 1) or previous (-1) token that is shown, also in another reply."""
        block, token = self.block, self.token + step
        while True:
            reply = _reply(index, block)
            while 0 <= token < len(reply.tokens):
                if reply.is_visible(token):
                    return TokenCursor(block, token)
                token += step
            numbers = [number for number in _replies(index) if (number - block) * step > 0]
            if not numbers:
                return None
            block = min(numbers) if step > 0 else max(numbers)
            token = 0 if step > 0 else len(_reply(index, block).tokens) - 1

    def above_or_below(self, index: LineIndex, step: int, cell: int) -> TokenCursor | None:
        """The token at or beside a cell of the nearest line with tokens below (``step`` 1) or above (-1)."""
        lines = self.lines(index)
        y = lines[-1] + 1 if step > 0 else lines[0] - 1
        while 0 <= y < index.height:
            if (found := cursor_at(index, y, cell, nearest=True)) is not None:
                return found
            y += step
        return None


def last_cursor(index: LineIndex) -> TokenCursor | None:
    """The last token that is shown."""
    for number in reversed(list(_replies(index))):
        reply = _reply(index, number)
        for token in range(len(reply.tokens) - 1, -1, -1):
            if reply.is_visible(token):
                return TokenCursor(number, token)
    return None


def cursor_at(index: LineIndex, y: int, cell: int, nearest: bool = False) -> TokenCursor | None:
    """The token at a cell of a line; with ``nearest`` the one that is nearest to it on that line."""
    line = index.line(y)
    if line is None:
        return None
    number, _ = index.find(y)
    if not isinstance(index.blocks[number], Reply):
        return None
    found: TokenCursor | None = None
    for left, right, piece in line.spans():
        if piece.last < 0:
            continue
        if nearest or left <= cell < right:
            found = TokenCursor(number, piece.last)
        if cell < right:
            break
    return found


def _replies(index: LineIndex) -> Iterator[int]:
    return (number for number, block in enumerate(index.blocks) if isinstance(block, Reply) and block.tokens)


def _reply(index: LineIndex, number: int) -> Reply:
    block = index.blocks[number]
    assert isinstance(block, Reply)
    return block
