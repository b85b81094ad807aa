"""Which token is being looked at, or which question, and where the arrow keys lead from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from specchat.tui.blocks import Block, Question
from specchat.tui.line_index import LineIndex
from specchat.tui.reply_block import Reply

WHOLE = -1
"""The token of a cursor that is on a question: questions are looked at as a whole."""


@dataclass(frozen=True, slots=True)
class TokenCursor:
    """A token of a reply of the transcript, or a question (then ``token`` is `WHOLE`)."""

    block: int
    token: int

    def lines(self, index: LineIndex) -> range:
        """The lines of the transcript on which the token stands."""
        start = index.start(self.block)
        if self.token == WHOLE:
            return range(start, start + index.blocks[self.block].height)
        first, last = _reply(index, self.block).lines_of(self.token)
        return range(start + first, start + last + 1)

    def beside(self, index: LineIndex, step: int) -> TokenCursor | None:
        """The next (``step`` 1) or previous (-1) token that is shown, also in another reply."""
        block, token = self.block, self.token + step
        if self.token == WHOLE:
            token = WHOLE
        while True:
            here = index.blocks[block]
            while isinstance(here, Reply) and 0 <= token < len(here.tokens):
                if here.is_visible(token):
                    return TokenCursor(block, token)
                token += step
            numbers = [number for number in _replies(index) if (number - block) * step > 0]
            if not numbers:
                return None
            block = min(numbers) if step > 0 else max(numbers)
            token = 0 if step > 0 else len(_reply(index, block).tokens) - 1

    def above_or_below(self, index: LineIndex, step: int, cell: int) -> TokenCursor | None:
        """What is at or beside a cell on the nearest line with tokens, or of a question, below (1) or above (-1)."""
        lines = self.lines(index)
        y = lines[-1] + 1 if step > 0 else lines[0] - 1
        while 0 <= y < index.height:
            if (found := cursor_at(index, y, cell, nearest=True)) is not None:
                return found
            y += step
        return None

    def question(self, index: LineIndex, step: int) -> TokenCursor | None:
        """The next (``step`` 1) or previous (-1) question."""
        numbers = [number for number in _questions(index) if (number - self.block) * step > 0]
        return TokenCursor(min(numbers) if step > 0 else max(numbers), WHOLE) if numbers else None


def last_cursor(index: LineIndex) -> TokenCursor | None:
    """The last token that is shown, or the last question where it has no answer."""
    for number in range(len(index.blocks) - 1, -1, -1):
        block = index.blocks[number]
        if is_sent(block):
            return TokenCursor(number, WHOLE)
        if isinstance(block, Reply):
            for token in range(len(block.tokens) - 1, -1, -1):
                if block.is_visible(token):
                    return TokenCursor(number, token)
    return None


def first_token(index: LineIndex, lines: Iterable[int]) -> TokenCursor | None:
    """The first token of a reply on those lines."""
    found = (cursor_at(index, y, 0, nearest=True) for y in lines)
    return next((cursor for cursor in found if cursor is not None and cursor.token != WHOLE), None)


def is_sent(block: Block) -> bool:
    """Whether that is a question, and one that does not wait any longer."""
    return isinstance(block, Question) and block.message_id is not None


def cursor_at(index: LineIndex, y: int, cell: int, nearest: bool = False) -> TokenCursor | None:
    """The token at a cell of a line; with ``nearest`` the one that is nearest to it on that line."""
    line = index.line(y)
    if line is None:
        return None
    number, _ = index.find(y)
    if is_sent(index.blocks[number]) and line.pieces:
        return TokenCursor(number, WHOLE)
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


def _questions(index: LineIndex) -> Iterator[int]:
    return (number for number, block in enumerate(index.blocks) if is_sent(block))


def _replies(index: LineIndex) -> Iterator[int]:
    return (number for number, block in enumerate(index.blocks) if isinstance(block, Reply) and block.tokens)


def _reply(index: LineIndex, number: int) -> Reply:
    block = index.blocks[number]
    assert isinstance(block, Reply)
    return block
