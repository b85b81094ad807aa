"""Which tokens may come next in a reply that copies what was said before, and what speaks for each of them.

The names of the features are those of `specchat.backends.copy_weights`. "source" is the place in what was said before
the reply, "own" the one in the reply itself.
"""

from __future__ import annotations

import math

from specchat.backends.copy_chances import Candidate, Chances, Feature
from specchat.backends.copy_edits import AROUND, LEFT, LINE, Edit, Key
from specchat.backends.copy_places import BEHIND, FENCE, HELD, MATCH, MOVED, REPEATED, SKIPPED, WINDOW, Place, Reading
from specchat.backends.copy_text import NEWLINE, SIGN, WORD

_MOST_NEAR = 3
_NEAR_AGREEMENT = 8
_LONGEST_RUN, _LONG_RUN, _SHORT_RUN = 64, 16, 8


class _Names:
    """The names of a place's features, put together once."""

    def __init__(self, place: str) -> None:
        self.agrees = place
        self.run = f"{place} run"
        self.record = f"{place} record"
        self.line = f"{place} line"
        self.indented = f"{place} indented line"
        self.newline = f"{place} newline"
        self.word = f"{place} word"
        self.fence = f"{place} fence"
        self.after_fence = f"{place} after fence"
        self.found = {how: f"{place} {how}" for how in (FENCE, MATCH, REPEATED, HELD, SKIPPED, MOVED)}
        self.early = {how: f"{place} early {how}" for how in self.found}
        self.by_word = f"{place} by word"
        self.rest = f"{place} rest"
        self.substitution = f"{place} substitution"
        self.substitution_odds = f"{place} substitution odds"
        self.kept = f"{place} kept"
        self.kept_odds = f"{place} kept odds"
        self.near = {where: _NearNames(place, where) for where in (HELD, SKIPPED, MOVED)}
        self.near_agreement = f"{place} near agreement"
        self.near_distance = f"{place} near distance"
        self.near_rarity = f"{place} near rarity"
        self.near_rival = f"{place} near rival"
        self.near_behind = f"{place} near behind"
        self.near_sign = f"{place} near sign"


class _NearNames:
    def __init__(self, place: str, where: str) -> None:
        self.kind = f"{place} near {where}"
        self.lost = f"{place} near {where} lost"
        self.record = f"{place} near {where} record"
        self.blind = f"{place} near {where} blind"
        self.line = f"{place} near {where} line"


_SOURCE, _OWN = _Names("source"), _Names("own")
_KEYS = {kind: (f"source {kind} clean", f"source {kind} changed") for kind in (LEFT, AROUND, LINE)}
_CHANGES = {kind: f"change {kind}" for kind in (LEFT, AROUND, LINE)}
_STATES = {
    (name, state): (f"{name} {state}", f"{name} {state} agreement")
    for name in ("given", "repeated")
    for state in ("unplaced", "placed", "lost")
}


class Candidates:
    """Lists the candidates for the next token of a reading."""

    def __init__(self, reading: Reading, chances: Chances) -> None:
        self._reading = reading
        self._text = reading.text
        self._record = chances.record

    def __call__(self) -> list[Candidate]:
        """All there are, likely or not; none where nothing in the text points anywhere."""
        source, own = self._reading.source, self._reading.own
        found: list[Candidate] = []
        if source is not None:
            self._add_place(found, _SOURCE, source)
            if self._reading.is_sure:
                return found
        if own is not None:
            self._add_place(found, _OWN, own)
        self._add_matches(found, source, own)
        return found

    def _add_place(self, found: list[Candidate], names: _Names, place: Place) -> None:
        if place.lost:
            self._add_near(found, names, place)
        elif place.pending:
            found.append(Candidate(place.pending[0], names.rest, ((names.rest, 1.0),)))
        elif place.at < len(self._text.tokens) and place.at != place.until:
            self._add_copied(found, names, place)

    def _add_copied(self, found: list[Candidate], names: _Names, place: Place) -> None:
        """The token at a place that agrees, what it is replaced by, and the change that was made at such a place."""
        text = self._text
        features = self._of_agreement(names, place)
        change: tuple[Key, Edit] | None = None
        if place.is_own:
            features.append(("own agreement", math.log(text.agreement(place.at) + 1)))
            if place.until is None:
                features.append(("own unbounded", 1.0))
        else:
            change = self._add_keys(features, place)
        known = self._reading.substitutions.at(text, place.at)
        if known is not None:
            # Both are copies from a place that is as sure as it is; between them the tally decides.
            odds = _odds(known.tally.made, known.tally.kept)
            new = (*features, (names.substitution, 1.0), (names.substitution_odds, odds))
            found.append(Candidate(known.new[0], names.substitution, new))
            features += ((names.kept, 1.0), (names.kept_odds, odds))
        expected = text.tokens[place.at]
        found.append(Candidate(expected, names.agrees, tuple(features)))
        if change is not None:
            found.append(self._changed(*change, expected))

    def _of_agreement(self, names: _Names, place: Place) -> list[Feature]:
        text = self._text
        features: list[Feature] = [
            (names.agrees, 1.0),
            (names.run, math.log(min(place.run, _LONGEST_RUN) + 1)),
            (names.record, self._record(names.agrees)),
        ]
        beginning = text.line_start()
        if beginning is not None:
            features.append((names.line if beginning == NEWLINE else names.indented, 1.0))
        kind = text.kinds[place.at]
        if kind == NEWLINE:
            features.append((names.newline, 1.0))
        elif kind == WORD:
            features.append((names.word, 1.0))
        if text.fences:
            if text.tokens[place.at] in text.fences:
                features.append((names.fence, 1.0))
            if not text.fences.isdisjoint(text.tokens[-2:]):
                features.append((names.after_fence, 1.0))
        if place.run < _SHORT_RUN:
            self._add_finding(features, names, place)
        return features

    @staticmethod
    def _add_finding(features: list[Feature], names: _Names, place: Place) -> None:
        """How the place was found counts while little has agreed since."""
        share = 1 / place.run
        features.append((names.found[place.found], share))
        features.append((names.early[place.found], 1.0))
        if place.by_word:
            features.append((names.by_word, share))
        if place.found == MOVED and not place.is_own:
            features.append(("source moved rarity", share * place.rarity))
            features.append(("source moved distance", share * place.distance))

    def _add_keys(self, features: list[Feature], place: Place) -> tuple[Key, Edit] | None:
        """What the reply did so far at such places of the source.

        Where it changed one, nothing else counts: the features are replaced, and the last change is returned.
        """
        reading, edits = self._reading, self._reading.edits
        keys = edits.keys(self._text, place.at)
        changes: list[Feature] = []
        least = math.inf
        for key in keys:
            num_edits, passes = edits.count(key)
            clean, changed = _KEYS[key[0]]
            if num_edits:
                changes.append((changed, 1.0))
                least = min(least, _odds(passes, num_edits))
            elif passes:
                features.append((clean, math.log(min(passes, 8) + 1)))
        if changes:
            features[:] = (("source at change", 1.0), ("source at change odds", least), *changes)
            return edits.last(keys)
        if place.run >= _LONG_RUN:
            features.append(("source long run", 1.0))
        features += (
            ("source copied", math.log(min(reading.copied, 100) + 1)),
            ("source rate", math.log((reading.copied + 16) / (reading.num_edits + 1))),
        )
        if self._is_instruction(place.at):
            features.append(("source instruction", 1.0))
        return None

    def _changed(self, key: Key, edit: Edit, expected: int) -> Candidate:
        """What was written where the reply left the source at such a place."""
        token = self._text.tokens[edit.written]
        features: tuple[Feature, ...] = (
            (_CHANGES[key[0]], 1.0),
            ("change odds", _odds(*self._reading.edits.count(key))),
            ("change same" if token == expected else "change other", 1.0),
            ("change record", self._record("change")),
        )
        return Candidate(token, "change", features)

    def _is_instruction(self, at: int) -> bool:
        """Where there is a fenced block before the reply, what stands outside is seldom what is rewritten."""
        return self._text.has_fence and not self._text.is_fenced(at)

    def _add_near(self, found: list[Candidate], names: _Names, place: Place) -> None:
        """Where the copy may go on after the reply has left it: the likeliest places around."""
        text = self._text
        tokens, kinds, left, parallel = text.tokens, text.kinds, place.left, place.parallel
        length, last = len(tokens), tokens[-1]
        end = min(length - 1, left + WINDOW)
        if not place.is_own:
            end = min(end, text.start)
        before = text.places_of(last, max(0, left - BEHIND - 1), end)
        near = {at + 1: text.agreement(at + 1, _NEAR_AGREEMENT) for at in before}
        for at in (left, parallel):
            if at < length:
                near.setdefault(at, 0)
        bonus = {parallel: 0.5, left: 1.5}
        ranked = sorted(near, key=lambda at: (-near[at] - bonus.get(at, 0.0), abs(at - left)))
        at_line, lost = text.line_start() is not None, math.log(place.lost)
        for at in ranked[:_MOST_NEAR]:
            agreement = near[at]
            where = names.near[HELD if at == left else SKIPPED if at == parallel else MOVED]
            features: list[Feature] = [
                (where.kind, 1.0),
                (where.lost, lost),
                (where.record, self._record(where.kind)),
                (names.near_agreement, math.log(agreement + 1)),
            ]
            if at != left:
                features.append((names.near_distance, math.log(abs(at - left) + 1)))
                if at < left:
                    features.append((names.near_behind, 1.0))
            if at != ranked[0]:
                features.append((names.near_rival, 1.0))
            if not agreement:
                features.append((where.blind, 1.0))
            elif at_line:
                features.append((where.line, 1.0))
            if agreement > 1:
                features.append((names.near_rarity, text.rarity()))
            elif agreement and kinds[-1] == SIGN:
                features.append((names.near_sign, 1.0))
            if at == left and not place.is_own:
                self._add_return(features)
            found.append(Candidate(tokens[at], where.kind, tuple(features)))

    def _add_return(self, features: list[Feature]) -> None:
        """Whether an insertion is likely to be over: insertions before ended with the same tokens."""
        tokens, own = self._text.tokens, self._reading.own
        back, on = self._reading.edits.returns((tokens[-2], tokens[-1])) if len(tokens) > 1 else (0, 0)
        if back + on:
            features += (("return known", 1.0), ("return odds", _odds(back, on)))
        if own is not None and not own.lost and own.at == own.until:
            features.append(("return of change", 1.0))

    def _add_matches(self, found: list[Candidate], source: Place | None, own: Place | None) -> None:
        """What followed the same words before: in the prompt, and in the reply itself."""
        text = self._text
        skipped = [place.at for place in (source, own) if place is not None and not place.lost]
        given, repeated = text.best_matches(skipped)
        if given is None and repeated is None:
            return
        state = "unplaced" if source is None else "lost" if source.lost else "placed"
        at_line, rarity = text.line_start() is not None, text.rarity()
        if given is not None:
            at, agreement = given
            features = self._of_match("given", state, agreement, at_line, rarity)
            features.append(("given distance", math.log((text.start - at) / 16 + 1)))
            if self._is_instruction(at):
                features.append(("given instruction", 1.0))
            found.append(Candidate(text.tokens[at], "given", tuple(features)))
        if repeated is not None:
            features = self._of_match("repeated", state, repeated[1], at_line, rarity)
            found.append(Candidate(text.tokens[repeated[0]], "repeated", tuple(features)))

    def _of_match(self, name: str, state: str, agreement: int, at_line: bool, rarity: float) -> list[Feature]:
        here, how_long = _STATES[name, state]
        features: list[Feature] = [
            (here, 1.0),
            (how_long, math.log(agreement + 1)),
            (f"{name} record", self._record(name)),
            (f"{name} rarity", rarity),
        ]
        if at_line:
            features.append((f"{name} line", 1.0))
        return features


def _odds(right: float, wrong: float) -> float:
    """Log odds from counts."""
    return math.log((right + 0.3) / (wrong + 0.3))
