"""From text to lines of terminal cells, a few characters at a time.

A *piece* is the largest run of cells that is styled, copied and broken as one; a *line* is a row of pieces; a
*typesetter* appends pieces and only ever touches the line that is still open, so that the cost of a token does not
depend on how much stands before it. Nothing here knows Textual.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from rich.cells import split_graphemes

from specchat.core.safe_text import safe_pieces

TAB_WIDTH = 4
_WORDS = re.compile(r" *[^ ]+| +")
_NO_LINE_START = frozenset("、。，．！？；：）」』】》〉〕｝”’…ー々")


class Piece(NamedTuple):
    """A run of cells: what is shown, how wide, what a copy of it gives, its look, and the tokens it belongs to.

    ``shown`` and ``copy`` differ for marks (␣ for a space), for a wrapped space (nothing shown) and for decoration
    (nothing copied). ``whole`` pieces are selected and wrapped as one, because their cells are not their characters.
    ``first`` and ``last`` number the tokens of the block; -1 where there is none.
    """

    shown: str
    width: int
    copy: str
    look: str
    first: int = -1
    last: int = -1
    whole: bool = False


class Line:
    """A row of pieces. ``strip`` is the place where the widget keeps what it made of it."""

    __slots__ = ("pieces", "strip", "width")

    def __init__(self, pieces: list[Piece] | None = None) -> None:
        self.pieces = pieces if pieces is not None else []
        self.width = sum(piece.width for piece in self.pieces)
        self.strip: Any = None

    def spans(self) -> Iterator[tuple[int, int, Piece]]:
        """The pieces with their first cell and the cell after their last one."""
        cell = 0
        for piece in self.pieces:
            yield cell, cell + piece.width, piece
            cell += piece.width

    @property
    def tokens(self) -> tuple[int, int] | None:
        """The first and the last token on this line."""
        numbered = [piece for piece in self.pieces if piece.last >= 0]
        return (numbered[0].first, numbered[-1].last) if numbered else None

    def copied(self, start: int = 0, end: int = -1) -> str:
        """What a copy of the cells from ``start`` to before ``end`` gives; -1 is the end of the line.

        A glyph that is partly inside counts as inside.
        """
        return "".join(_cut(piece, left, right, start, end) for left, right, piece in self.spans())


def _cut(piece: Piece, left: int, right: int, start: int, end: int) -> str:
    if end == -1:
        end = max(right, start) + 1
    if piece.width == 0:
        return piece.copy if start <= left < end else ""
    if right <= start or left >= end:
        return ""
    if piece.whole:
        return piece.copy
    return piece.copy[max(0, start - left) : end - left]


def pieces_of(text: str, look: str, token: int = -1) -> Iterator[Piece]:
    r"""The pieces of a text: words with the spaces before them, wide glyphs, marks, tabs, line ends.

    Everything unsafe is a visible mark. A line end is a piece that shows nothing and copies ``\n``.
    """
    if text.isascii() and text.isprintable():
        for word in _WORDS.findall(text):
            yield Piece(word, len(word), word, look, token, token)
        return
    characters = list(text)
    plain: list[str] = []
    for character, mark in zip(characters, safe_pieces(characters), strict=True):
        if mark == character and character not in "\n\t":
            plain.append(character)
            continue
        yield from _graphemes("".join(plain), look, token)
        plain.clear()
        if character == "\n":
            yield Piece("", 0, "\n", look, token, token, whole=True)
        elif character == "\t":
            yield Piece(" " * TAB_WIDTH, TAB_WIDTH, "\t", look, token, token, whole=True)
        elif mark:
            # a control character stays a mark in a copy, too: pasted into a shell it would be obeyed
            copy = mark if len(mark) == 1 or ord(character) < 0xA0 else character
            yield Piece(mark, len(mark), copy, look, token, token, whole=True)
    yield from _graphemes("".join(plain), look, token)


def _graphemes(text: str, look: str, token: int) -> Iterator[Piece]:
    """Narrow graphemes as words, everything else one piece each."""
    word = ""
    for start, end, width in split_graphemes(text)[0]:
        glyph = text[start:end]
        if width == 1 and len(glyph) == 1:
            if glyph == " " and word and not word.endswith(" "):
                yield Piece(word, len(word), word, look, token, token)
                word = ""
            word += glyph
            continue
        if word:
            yield Piece(word, len(word), word, look, token, token)
            word = ""
        yield Piece(glyph, width, glyph, look, token, token, whole=True)
    if word:
        yield Piece(word, len(word), word, look, token, token)


def joins_previous(text: str, previous: str) -> bool:
    """Whether the first character of ``text`` belongs to the glyph that ``previous`` ends with."""
    if not text or text.isascii() or not previous or previous.isspace():
        return False
    return len(split_graphemes(previous + text[0])[0]) == len(split_graphemes(previous)[0])


class Typesetter:
    """Breaks pieces into lines of at most ``width`` cells.

    Lines break after spaces and beside wide glyphs; a word longer than a line is cut. A space at a break hangs: it
    stands on the line, shows nothing, and is copied. ``lead`` begins the first line, ``indent`` every other one.
    """

    def __init__(self, width: int, lead: Piece | None = None, indent: Piece | None = None) -> None:
        self.width = max(1, width)
        self.lead = lead
        self.indent = indent if indent is not None and indent.width < width // 2 else None
        self.lines: list[Line] = [Line([] if lead is None else [lead])]
        self._break: int | None = None  # where in the open line a new line could begin
        self._broken: Line | None = None  # the line before the open one, unless it ended with a line end

    @property
    def height(self) -> int:
        """The number of lines; an open line with nothing on it does not count."""
        return len(self.lines) - (self._is_empty(self.lines[-1]) and len(self.lines) > 1)

    @property
    def last_shown(self) -> str:
        """What the last piece of the open line shows."""
        pieces = self.lines[-1].pieces
        return pieces[-1].shown if pieces else ""

    def extend(self, pieces: Iterable[Piece]) -> None:
        """Appends pieces."""
        for piece in pieces:
            self.add(piece)

    def add(self, piece: Piece) -> None:
        """Appends one piece, on several lines where it is longer than one."""
        rest: Piece | None = piece
        while rest is not None:
            rest = self._add_some(rest)

    def _add_some(self, piece: Piece) -> Piece | None:
        """Appends what the open line can take of a piece; what is left of it."""
        line = self.lines[-1]
        if self._broken is not None and piece.shown[:1] == " " and self._is_empty(line):
            left = self._hang(piece)
            if left is None:
                return None
            piece = left
        if line.pieces and self._may_break(line, piece):
            self._break = len(line.pieces)
        rest = None
        if line.width + piece.width <= self.width:
            line.pieces.append(piece)
            line.width += piece.width
            line.strip = None
        else:
            rest = self._overflow(line, piece)
        if rest is None and piece.copy.endswith("\n"):
            self._open_line(None)
        return rest

    def pop_glyph(self) -> Piece | None:
        """Takes the last glyph back off the open line, so that what follows can join it."""
        line = self.lines[-1]
        if not line.pieces or not line.pieces[-1].shown or line.pieces[-1] is self.indent:
            return None
        piece = line.pieces.pop()
        start, _, width = split_graphemes(piece.shown)[0][-1]
        if start and not piece.whole:
            line.pieces.append(
                piece._replace(shown=piece.shown[:start], copy=piece.copy[:start], width=piece.width - width)
            )
            piece = piece._replace(shown=piece.shown[start:], copy=piece.copy[start:], width=width)
        line.width -= piece.width
        line.strip = None
        if self._break is not None and self._break > len(line.pieces):
            self._break = None
        return piece

    def _may_break(self, line: Line, piece: Piece) -> bool:
        previous = line.pieces[-1]
        if previous is self.indent or previous is self.lead:
            return False
        if piece.shown[:1] == " " or previous.shown[-1:] in (" ", "␣"):
            # indentation is no place to break, nor is the mark before it
            return any(earlier.shown.strip() and earlier is not self.lead for earlier in line.pieces)
        if piece.shown in _NO_LINE_START:
            return False
        return _is_wide(piece) or _is_wide(previous)

    def _overflow(self, line: Line, piece: Piece) -> Piece | None:
        """Breaks the open line, or the piece where the line has no place to break; what is left of the piece."""
        if self._break is None:
            return self._cut(line, piece)
        moved = line.pieces[self._break :]
        del line.pieces[self._break :]
        line.width = sum(kept.width for kept in line.pieces)
        line.strip = None
        self._open_line(line)
        self.extend(moved)
        return piece

    def _hang(self, piece: Piece) -> Piece | None:
        """Lets the spaces of a piece that would begin a new line hang on the broken one; what is left of it."""
        assert self._broken is not None
        rest = "" if piece.whole else piece.shown.lstrip(" ")
        spaces = piece.copy[: len(piece.copy) - len(rest)]
        self._broken.pieces.append(piece._replace(shown="", width=0, copy=spaces))
        self._broken.strip = None
        return piece._replace(shown=rest, width=len(rest), copy=rest if piece.copy else "") if rest else None

    def _cut(self, line: Line, piece: Piece) -> Piece | None:
        """Cuts a piece that no line can hold, or puts it on a line of its own if it cannot be cut."""
        room = self.width - line.width
        if piece.whole or room <= 0:
            if not self._is_empty(line):
                self._open_line(line)
                return piece
            line.pieces.append(piece)
            line.width += piece.width
            return None
        line.pieces.append(piece._replace(shown=piece.shown[:room], width=room, copy=piece.copy[:room]))
        line.width += room
        line.strip = None
        self._open_line(line)
        return piece._replace(shown=piece.shown[room:], width=piece.width - room, copy=piece.copy[room:])

    def _is_empty(self, line: Line) -> bool:
        return not line.pieces or (len(line.pieces) == 1 and line.pieces[0] is self.indent)

    def _open_line(self, broken: Line | None) -> None:
        self._break = None
        self._broken = broken
        self.lines.append(Line([] if self.indent is None else [self.indent]))


def _is_wide(piece: Piece) -> bool:
    return piece.whole and piece.width == 2
