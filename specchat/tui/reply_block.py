"""A reply in the transcript.

It keeps its rounds and numbers its tokens, shown or not, in the order in which they happened; lines are made from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from specchat.core.events import CommittedToken, DraftedToken, Fate, Round
from specchat.core.fate_style import worst
from specchat.core.safe_text import safe_text
from specchat.tui.blocks import Block, decoration
from specchat.tui.typesetting import Piece, Typesetter, joins_previous, pieces_of

_MARKED_SPACES = {" ": "␣", "\n": "⏎"}
_UNMARKED = (Fate.ACCEPTED, Fate.PLAIN)


@dataclass(frozen=True, slots=True)
class TokenPlace:
    """Which token of a reply: its round, and its place among the round's drafted or committed tokens."""

    round: int
    place: int
    rejected: bool


class Reply(Block):
    """A reply, token by token, with its figures below it.

    ``before`` is text of the reply that no round wrote: an edited beginning that is being continued.
    """

    def __init__(self, before: str = "", show_rejected: bool = False) -> None:
        super().__init__()
        self.before = before
        self.rounds: list[Round] = []
        self.tokens: list[TokenPlace] = []
        self.tail = ""
        self.figures = ""
        self.show_rejected = show_rejected
        self._incomplete: tuple[int, Fate] | None = None  # a character that is not whole yet: first token, worst fate

    def add(self, event: Round) -> None:
        """Appends a round's tokens."""
        self.rounds.append(event)
        first = len(self.tokens)
        self.tokens += places_of(event, len(self.rounds) - 1)
        if self.width:
            for index in range(first, len(self.tokens)):
                self._add_token(index)

    def finish(self, content: str, figures: str) -> None:
        """The reply is over: its whole text, which may end with what was held back, and its figures in one line."""
        written = self.before + "".join(token.text for played in self.rounds for token in played.committed)
        self.tail = content[len(written) :] if content.startswith(written) else ""
        self.figures = figures
        if self.width:
            self._close()

    def reopen(self) -> None:
        """The reply goes on after all: a character that was cut off will be written whole."""
        self.tail, self.figures, self.width = "", "", 0

    def show(self, rejected: bool) -> None:
        """Shows or hides the rejected tokens in the text."""
        if rejected != self.show_rejected:
            self.show_rejected, self.width = rejected, 0

    def token(self, index: int) -> CommittedToken | DraftedToken:
        """The token of that number."""
        place = self.tokens[index]
        tokens = self.rounds[place.round].drafted if place.rejected else self.rounds[place.round].committed
        return tokens[place.place]

    def first_token(self, played: Round) -> int | None:
        """The first token of one of its rounds that is shown; None where there is none."""
        number = next((n for n, each in enumerate(self.rounds) if each is played), None)
        return next((i for i, place in enumerate(self.tokens) if place.round == number and self.is_visible(i)), None)

    def is_visible(self, index: int) -> bool:
        """Whether that token is among those that are shown."""
        return self.show_rejected or not self.tokens[index].rejected

    def lines_of(self, token: int) -> tuple[int, int]:
        """The first and the last line on which that token stands; the lines must be made."""
        low, high = 0, self._body.height
        while low < high:
            middle = (low + high) // 2
            last = self._last_token(middle)
            low, high = (middle + 1, high) if last < token else (low, middle)
        first = min(low, max(0, self._body.height - 1))
        end = first
        while end + 1 < self._body.height and (on := self._body.lines[end + 1].tokens) and on[0] <= token:
            end += 1
        return first, end

    def place_of(self, line: int) -> int:
        """Where a line begins: the token that it begins with."""
        return self._last_token(min(line, self._body.height) - 1) + 1

    def line_at(self, place: int) -> int:
        """The line on which that token is."""
        return self.lines_of(place)[0]

    def sharing(self, token: int) -> range:
        """The tokens that make one glyph together with this one; the token alone where there are none."""
        first, last = self.lines_of(token)
        for line in self._body.lines[first : last + 1]:
            for piece in line.pieces:
                if piece.first < piece.last and piece.first <= token <= piece.last:
                    return range(piece.first, piece.last + 1)
        return range(token, token + 1)

    def _last_token(self, line: int) -> int:
        while line >= 0:
            if tokens := self._body.lines[line].tokens:
                return tokens[1]
            line -= 1
        return -1

    # --- making lines -------------------------------------------------------------------------------------------------

    def _typeset(self) -> None:
        self._body = Typesetter(self.width)
        self._closing = []
        self._incomplete = None
        self._body.extend(pieces_of(self.before, Fate.PLAIN))
        for index in range(len(self.tokens)):
            self._add_token(index)
        self._close()

    def _close(self) -> None:
        if self.tail:
            self._add_text(self.tail, Fate.PLAIN, len(self.tokens) - 1)
        self._closing = []
        if figures := " · ".join(part for part in (self.versions_text, self.figures) if part):
            closing = Typesetter(self.width)
            closing.extend(decoration(_breaking_at_dots(figures), "figures"))
            self._closing = closing.lines

    def _add_token(self, index: int) -> None:
        token = self.token(index)
        if token.fate is Fate.REJECTED:
            if self.show_rejected:
                self._body.extend(_rejected_pieces(token, index))
        elif token.text:
            self._add_text(token.text, token.fate, index)
        elif token.bytes:
            first, fate = self._incomplete or (index, token.fate)
            self._incomplete = first, worst(fate, token.fate)

    def _add_text(self, text: str, fate: Fate, index: int) -> None:
        if fate not in _UNMARKED and (text == " " or not text.strip("\n")):
            for character in text:
                self._body.add(Piece(_MARKED_SPACES[character], 1, character, fate, index, index, whole=True))
            return
        first, look = self._incomplete or (index, fate)
        self._incomplete = None
        if joins_previous(text, self._body.last_shown) and (glyph := self._body.pop_glyph()) is not None:
            text, first, look = glyph.copy + text, glyph.first, worst(look, Fate(glyph.look))
        if fate is Fate.RESAMPLED and text[0] == " ":  # without colour the fate is underlined, the space before it not
            word = text.lstrip(" ")
            spaces = text[: len(text) - len(word)]
            self._body.add(Piece(spaces, len(spaces), spaces, Fate.PLAIN, index, index))
            text = word
        pieces = pieces_of(text, fate, index)
        if first != index and (shared := next(pieces, None)) is not None:
            self._body.add(shared._replace(first=first, look=worst(look, fate)))
        self._body.extend(pieces)


def places_of(event: Round, number: int) -> list[TokenPlace]:
    """The tokens of a round in the order in which they are shown: a rejected one before what replaced it."""
    rejected = [
        TokenPlace(number, place, rejected=True)
        for place, token in enumerate(event.drafted)
        if token.fate is Fate.REJECTED
    ]
    places: list[TokenPlace] = []
    for place, token in enumerate(event.committed):
        if token.fate is not Fate.ACCEPTED:
            places += rejected
            rejected = []
        places.append(TokenPlace(number, place, rejected=False))
    return places + rejected


def _rejected_pieces(token: CommittedToken | DraftedToken, index: int) -> Iterator[Piece]:
    """A refused token between its marks, on one line; no part of a copy."""
    text = safe_text(token.text, keep_newlines=False, keep_tabs=False)
    if not text.strip(" "):
        text = "␣" * len(text) or token.bytes.hex(" ").upper()
    word = text.lstrip(" ")
    if spaces := len(text) - len(word):
        yield Piece(" " * spaces, spaces, "", Fate.PLAIN, index, index)
    for piece in pieces_of(f"×{word}×", Fate.REJECTED, index):
        yield piece._replace(copy="")


def _breaking_at_dots(figures: str) -> str:
    """Figures whose line breaks only after its dots."""
    return "\u00a0· ".join(part.replace(" ", "\u00a0") for part in figures.split(" · "))
