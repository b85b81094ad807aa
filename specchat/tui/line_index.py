"""All blocks of a transcript under one numbering of lines, with an empty line between two blocks.

Appending to the last block costs the same however much stands above it. After a change of width, blocks are typeset
when they are looked at, and the others bit by bit (`typeset_some`): until then their old height stands for the new.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from time import perf_counter

from specchat.tui.blocks import Block
from specchat.tui.typesetting import Line

GAP = Line()


class LineIndex:
    """The lines of all blocks."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.width = 0
        self._starts: list[int] = []
        self._valid = 0  # how many entries of _starts hold

    @property
    def height(self) -> int:
        """The number of lines, gaps included."""
        return self.start(len(self.blocks) - 1) + self.blocks[-1].height if self.blocks else 0

    def insert(self, block: Block, before: Block | None = None) -> None:
        """Adds a block, at the end or before another one."""
        block.typeset(self.width or 80)
        number = len(self.blocks) if before is None else self.blocks.index(before)
        self.blocks.insert(number, block)
        self._starts.insert(number, 0)
        self._valid = min(self._valid, number)

    def remove(self, block: Block) -> None:
        """Takes a block out."""
        number = self.blocks.index(block)
        del self.blocks[number]
        del self._starts[number]
        self._valid = min(self._valid, number)

    def clear(self) -> None:
        """Removes all blocks."""
        self.blocks.clear()
        self._starts.clear()
        self._valid = 0

    def changed(self, block: Block) -> None:
        """A block that is not the last one has other lines now."""
        self._valid = min(self._valid, self.blocks.index(block) + 1)

    def start(self, number: int) -> int:
        """The line on which a block begins."""
        while self._valid <= number:
            previous = self._valid - 1
            self._starts[self._valid] = (
                self._starts[previous] + self.blocks[previous].height + 1 if previous >= 0 else 0
            )
            self._valid += 1
        return self._starts[number]

    def find(self, y: int) -> tuple[int, int]:
        """The block at line ``y``, and the number of the line in it; the gap below a block belongs to it."""
        if not self.blocks:
            return 0, 0
        self.start(len(self.blocks) - 1)
        number = max(0, bisect_right(self._starts, y) - 1)
        return number, y - self._starts[number]

    def line(self, y: int) -> Line | None:
        """The line at ``y``: None where there is none."""
        if not 0 <= y < self.height:
            return None
        number, index = self.find(y)
        block = self.blocks[number]
        return block.line(index) if index < block.height else GAP

    def copied(self, spans: Iterable[tuple[int, int, int]]) -> str:
        """What a copy of these cells gives, as (line, first cell, cell after the last or -1): what was said.

        Where only decoration is selected, such as the figures below a reply, that is copied.
        """
        said, shown = [], []
        for y, start, end in spans:
            if (line := self.line(y)) is None:
                continue
            said.append(line.copied(start, end) if line.pieces else "\n")
            inside = [piece for left, right, piece in line.spans() if right > start and (end == -1 or left < end)]
            shown.append("".join(piece.shown for piece in inside))
        text = "".join(said).strip("\n")
        return text if text.strip() else "".join(shown).replace("\u00a0", " ")

    def set_width(self, width: int) -> None:
        """All lines are to be made for another width."""
        self.width = max(1, width)

    def typeset_block(self, number: int) -> None:
        """Makes the lines of a block for the present width."""
        block = self.blocks[number]
        if block.width != self.width:
            block.typeset(self.width)
            self._valid = min(self._valid, number + 1)

    def typeset_up_from(self, number: int, height: int) -> None:
        """Makes the lines of a block and of those above it, until ``height`` lines are there."""
        while number >= 0 and height > 0:
            self.typeset_block(number)
            height -= self.blocks[number].height + 1
            number -= 1

    def typeset_down_from(self, number: int, height: int) -> None:
        """Makes the lines of a block and of those below it, until ``height`` lines are there."""
        while number < len(self.blocks) and height > 0:
            self.typeset_block(number)
            height -= self.blocks[number].height + 1
            number += 1

    def typeset_some(self, seconds: float) -> bool:
        """Makes lines that are still missing, newest first, for about so long. Whether any are still missing."""
        until = perf_counter() + seconds
        missing = [number for number, block in enumerate(self.blocks) if block.width != self.width]
        while missing:
            self.typeset_block(missing.pop())
            if perf_counter() > until:
                break
        return bool(missing)
