"""Where in the text a reply is being copied from, and how that place is kept across a change."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from itertools import accumulate

from specchat.backends.copy_edits import Edit, Edits
from specchat.backends.copy_substitutions import Substitution, Substitutions
from specchat.backends.copy_text import DIGIT, NEWLINE, SIGN, SPACE, WORD, Text

WINDOW = 64
"""How far from where the copy was left it is looked for."""
BEHIND = 8
"""How far back of it."""
_ENOUGH = 2.0
"""From which evidence on a place is taken up again."""
_WORTH = {NEWLINE: 0.7, SPACE: 0.7, SIGN: 1.0, DIGIT: 2.0, WORD: 2.0}
"""What it is worth that a token agrees: the ends and beginnings of lines do everywhere."""
_LONGEST_AGREEMENT = 16
_SURE = 8
"""How many tokens in a row are."""

HELD, SKIPPED, MOVED = "held", "skipped", "moved"
"""How a place was found again: where it was left (an insertion), as far on as was written since (a substitution of the
same length), elsewhere near (a deletion, or another length)."""
FENCE, MATCH, REPEATED = "fence", "match", "repeated"
"""How it was found first: at the beginning of a fenced block, by the words before it, as a change made before."""


@dataclass(slots=True)
class Place:
    """A place in the text, and how surely the reply is copied from it.

    Attributes:
        at: the token that is expected next.
        run: how many tokens have agreed since the place was found, those it was found by included.
        found: how it was found.
        is_own: whether it lies in the reply itself.
        until: where the change ends that is being repeated, if it is one.
        lost: how many tokens ago the reply went another way; 0 while it agrees.
        left: the token at which it did.
        pending: what is still to come of a substitution.
        substitution: the last one.
        rarity, distance, by_word: of the tokens it was found again by: the logarithm of how often they occur and of
            how far away they are; whether a word is the last of them.
    """

    at: int
    run: int
    found: str
    is_own: bool
    until: int | None = None
    lost: int = 0
    left: int = 0
    pending: tuple[int, ...] = ()
    substitution: Substitution | None = None
    rarity: float = 0.0
    distance: float = 0.0
    by_word: bool = False

    @property
    def parallel(self) -> int:
        """As far on from where it was left as was written since."""
        return self.left + self.lost


class Reading:
    """What is known of the reply while it is written: the text, the places it is copied from, its changes so far.

    Attributes:
        source: the place in what was said before the reply; None until one is found.
        own: the place in the reply itself that is being repeated.
        copied: how many tokens were copied from the source.
        num_edits: how often the reply has left it.
    """

    def __init__(self, text: Text, edits: Edits, substitutions: Substitutions) -> None:
        self.text = text
        self.edits = edits
        self.substitutions = substitutions
        self.source: Place | None = None
        self.own: Place | None = None
        self.copied = 0
        self.num_edits = 0
        self._is_thought = False
        self._kept: tuple[Place | None, Place | None, int] = (None, None, 0)

    def think(self) -> None:
        """From here on tokens are only thought of: nothing is learned, and `forget` takes them back."""
        self._kept = (copy(self.source), copy(self.own), len(self.text.tokens))
        self._is_thought = True

    def forget(self) -> None:
        """Takes back what was thought of since `think`."""
        self.source, self.own, length = self._kept
        self.text.take_back(length)
        self._is_thought = False

    @property
    def is_sure(self) -> bool:
        """Whether so much has agreed at the source that nothing else needs to be looked at."""
        return self.source is not None and not self.source.lost and self.source.run >= _SURE

    def advance(self, token: int) -> None:
        """The reply goes on with ``token``."""
        text, source = self.text, self.source
        repeated = self._repeated_edit(token)
        given = own = None
        if self.is_sure:
            self.own = None
        elif source is None or source.lost or self.own is None or self.own.lost:
            given, own = text.best_matches((), token)
        at_fence = given is not None and text.ends_at_fence()
        if source is not None:
            self._note_return(source, token)
            self._step(source, token)
        if self.own is not None:
            self._step(self.own, token)
        if self._is_thought:
            text.suppose(token)
        else:
            text.add(token)
        if given is not None and self._takes_up(given[1]):
            self.source = Place(given[0] + 1, given[1] + 1, FENCE if at_fence else MATCH, is_own=False)
            if not self._is_thought:
                self.edits.end(None)
        if repeated is not None:
            self.own = Place(repeated.written + 1, 1, REPEATED, is_own=True, until=repeated.until)
        elif own is not None and (self.own is None or self.own.lost):
            self.own = Place(own[0] + 1, own[1] + 1, MATCH, is_own=True)

    def _takes_up(self, agreement: int) -> bool:
        """Whether so much agreement elsewhere is enough to copy from there."""
        if self.source is None:
            return True
        if not self.source.lost:
            return False
        return agreement > 3 or (agreement == 3 and (self.source.lost > WINDOW or self.copied < 8))

    def _repeated_edit(self, token: int) -> Edit | None:
        """The earlier change at such a place, where the reply leaves the source as it did then."""
        source, tokens = self.source, self.text.tokens
        if source is None or source.lost or source.pending or source.at >= len(tokens) or tokens[source.at] == token:
            return None
        last = self.edits.last(self.edits.keys(self.text, source.at))
        if last is None or last[1].written >= len(tokens) or tokens[last[1].written] != token:
            return None
        return last[1]

    def _note_return(self, source: Place, token: int) -> None:
        tokens = self.text.tokens
        if source.lost and not self._is_thought and len(tokens) > 1 and source.left < len(tokens):
            self.edits.returned((tokens[-2], tokens[-1]), token == tokens[source.left])

    def _step(self, place: Place, token: int) -> None:
        """One token on, at one place."""
        if place.lost:
            place.lost += 1
            self._find_again(place, token)
        elif place.pending:
            self._write_substitution(place, token)
        elif place.at >= len(self.text.tokens) or place.at == place.until:
            place.lost, place.left = 1, place.at
        else:
            self._compare(place, token)

    def _compare(self, place: Place, token: int) -> None:
        text = self.text
        expected = text.tokens[place.at]
        known = self.substitutions.at(text, place.at)
        if known is not None and known.new[0] == token and (expected != token or len(known.new) > 1):
            place.substitution = known
            place.left = place.at
            place.at += len(known.old)
            place.pending = known.new
            self._write_substitution(place, token)
            return
        if expected != token:
            self._leave(place)
            return
        if not self._is_thought:
            if known is not None:
                known.tally.kept += 1
            if not place.is_own:
                self.edits.passed(self.edits.keys(text, place.at))
                self.copied += 1
        place.at += 1
        place.run += 1

    def _write_substitution(self, place: Place, token: int) -> None:
        """The next token of a substitution, or the end of the belief in it."""
        known = place.substitution
        assert known is not None
        if place.pending[0] != token:
            place.at, place.pending = place.left, ()
            if not self._is_thought:
                known.tally.kept += 1
            self._leave(place)
            return
        place.pending = place.pending[1:]
        place.run += 1
        if not place.pending and not self._is_thought:
            known.tally.made += 1
            self.copied += not place.is_own

    def _leave(self, place: Place) -> None:
        place.lost, place.left = 1, place.at
        if not place.is_own and not self._is_thought:
            self.num_edits += 1
            self.edits.begin(self.edits.keys(self.text, place.left), len(self.text.tokens))

    def _find_again(self, place: Place, token: int) -> None:
        """Takes the place up again where the text around it agrees well enough with the last tokens."""
        text = self.text
        left, length = place.left, len(text.tokens)
        worth = [_WORTH[text.kind(token)]]  # of so many tokens that agree, this one included
        worth += accumulate((_WORTH[kind] for kind in reversed(text.kinds[1 - _LONGEST_AGREEMENT :])), initial=worth[0])
        end = min(length if place.is_own else text.start, left + WINDOW)
        best, most, agreement = -1, 0.0, 0
        for at in text.places_of(token, max(0, left - BEHIND), end):
            count = 1 + text.agreement(at, _LONGEST_AGREEMENT - 1)
            evidence = worth[count] - abs(at - left) / WINDOW
            if at == left:
                evidence += 0.8
            elif at < left:
                evidence -= 1.0
            if at == place.parallel - 1:
                evidence += 0.6
            if best < 0 or evidence > most:
                best, most, agreement = at, evidence, count
        if best < 0 or most < _ENOUGH:
            return
        agreement = min(agreement, place.lost)
        place.found = HELD if best == left else SKIPPED if best == place.parallel - 1 else MOVED
        place.rarity = text.rarity(token)
        place.distance = math.log(abs(best - left) + 1)
        place.by_word = text.kind(token) == WORD
        if not place.is_own and not self._is_thought:
            self._learn(left, best + 1 - agreement, length + 1 - agreement)
        place.at, place.run, place.lost = best + 1, agreement, 0

    def _learn(self, left: int, back: int, written: int) -> None:
        """The source from ``left`` to ``back`` was written as the reply up to ``written``."""
        edit = self.edits.end(written)
        if edit is None or back < left:
            return
        tokens = self.text.tokens
        begins_line = self.text.head_before(left) is not None
        self.substitutions.learn(
            self.text, tokens[left:back], tokens[edit.written : written], tokens[back], begins_line=begins_line
        )
