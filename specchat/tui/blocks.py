"""What the transcript consists of: questions, notices, and replies (`specchat.tui.reply_block`).

Each knows its source and typesets itself; lines can be made again for another width.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from specchat.tui.typesetting import Line, Piece, Typesetter, pieces_of

QUESTION_MARK = Piece("> ", 2, "", "question-mark")
_INDENT = Piece("  ", 2, "", "question")
_LONGEST_QUESTION = 20_000  # characters


class Block:
    """A part of the transcript that stands on lines of its own.

    Attributes:
        message_id: the message that it shows; None where it shows none, or one that is not sent yet.
        version: which of the message's versions it shows, and how many there are.
    """

    def __init__(self) -> None:
        self.width = 0
        self.message_id: int | None = None
        self.version = (1, 1)
        self._body = Typesetter(1)
        self._closing: list[Line] = []

    def stands_for(self, message_id: int, version: tuple[int, int]) -> None:
        """Which message it shows, which of its versions that is, and how many there are."""
        self.message_id = message_id
        if version != self.version:
            self.version, self.width = version, 0

    @property
    def versions_text(self) -> str:
        """‹2/3›; empty where there is one version only."""
        number, count = self.version
        return f"‹{number}/{count}›" if count > 1 else ""

    @property
    def height(self) -> int:
        """How many lines it takes."""
        return self._body.height + len(self._closing)

    def line(self, index: int) -> Line:
        """One of its lines."""
        body = self._body.height
        return self._body.lines[index] if index < body else self._closing[index - body]

    def typeset(self, width: int) -> None:
        """Makes the lines for a width, if they are not there yet."""
        if width != self.width:
            self.width = width
            self._typeset()

    def place_of(self, line: int) -> int:
        """Where a line begins, as a number that does not depend on the width: a count of characters."""
        return sum(len(each.copied()) for each in self._body.lines[:line])

    def line_at(self, place: int) -> int:
        """The line on which that place is."""
        for index, each in enumerate(self._body.lines):
            place -= len(each.copied())
            if place < 0:
                return index
        return max(0, self.height - 1)

    def _typeset(self) -> None:
        raise NotImplementedError


class Question(Block):
    """What a person said. ``waiting`` is a word on why it has not been answered yet, empty otherwise.

    Of a very long text only the beginning is shown.
    """

    def __init__(self, text: str, waiting: str = "") -> None:
        super().__init__()
        self.text = text
        self.waiting = waiting

    def _typeset(self) -> None:
        self._body = Typesetter(self.width, self._mark(), _INDENT)
        self._body.extend(pieces_of(self.text[:_LONGEST_QUESTION], "question"))
        left_out = len(self.text) - _LONGEST_QUESTION
        remarks = [f"… and {left_out:,} characters more"] if left_out > 0 else []
        remarks += [self.waiting] if self.waiting else []
        self._closing = []
        for remark in remarks:
            closing = Typesetter(self.width, _INDENT, _INDENT)
            closing.extend(decoration(remark, "dim"))
            self._closing += closing.lines

    def _mark(self) -> Piece:
        if not self.versions_text:
            return QUESTION_MARK
        mark = f"> {self.versions_text} "
        return Piece(mark, len(mark), "", "question-mark")

    def answer(self) -> None:
        """It does not wait any longer."""
        self.waiting, self.width = "", 0


class Notice(Block):
    """A message of specchat itself: what happened, and what to do."""

    def __init__(self, kind: Literal["info", "warning", "error"], message: str, next_step: str = "") -> None:
        super().__init__()
        self.kind = kind
        self.message = message
        self.next_step = next_step

    def _typeset(self) -> None:
        self._body = Typesetter(self.width, Piece("! " if self.kind == "error" else "· ", 2, "", self.kind), _INDENT)
        self._body.extend(pieces_of(self.message, self.kind))
        self._closing = []
        if self.next_step:
            closing = Typesetter(self.width, Piece("→ ", 2, "", self.kind), _INDENT)
            closing.extend(pieces_of(self.next_step, "next-step"))
            self._closing = closing.lines


def decoration(text: str, look: str) -> Iterator[Piece]:
    """Pieces that are shown but are no part of what was said: they are not copied with it."""
    for piece in pieces_of(text, look):
        yield piece._replace(copy="")
