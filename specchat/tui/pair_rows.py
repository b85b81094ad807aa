"""The rows of the pair picker: what is known of each pair, their order, the filter and the cursor. No widgets."""

from __future__ import annotations

from dataclasses import replace

from specchat.pairs.collection import Collection
from specchat.pairs.combining import references
from specchat.pairs.file_fit import emptied, once_unloaded
from specchat.pairs.memory import Fit, Machine
from specchat.pairs.rows import SORT_KEYS, PairRow, SortKey, matching_rows, recommend, sorted_rows
from specchat.tui.pair_looking import Discovered, Examined, Looking, News, Tried, Trouble

SORT_NAMES: dict[SortKey, str] = {"fit": "how well they fit", "speedup": "measured speedup", "size": "size"}


class PairRows:
    """Every pair, as far as it is known by now.

    Args:
        collection: the pairs.
        loaded: the key of the pair that is loaded; None where none is.

    Attributes:
        loaded: the same.
        looking: looks closer, in a thread.
        sort: how the rows are sorted.
        filter: the words that all rows shown have in them.
        highlighted: the key of the row that the cursor is on.
        tried: pairs that were compared for a choice of drafts, by `references`.
        trouble: what could not be looked at.
    """

    def __init__(self, collection: Collection, loaded: str | None) -> None:
        self.collection = collection
        self.loaded = loaded
        self.looking = Looking(collection, self._once_unloaded)
        self.sort: SortKey = "fit"
        self.filter = ""
        self.highlighted = loaded
        self.tried: dict[tuple[str, str], PairRow] = {}
        self.trouble = ""
        self._rows: dict[str, PairRow] = {}
        self._was_moved = loaded is not None
        self._was_busy = False
        self._held: Fit | None = None

    def begin(self) -> None:
        """Shows what can be seen at a glance, and begins to look closer."""
        self._rows = {key: self.collection.row(key) for key in self.collection.keys}
        self.looking.begin(tuple(self._rows))

    def take_news(self) -> bool:
        """Takes over what has been seen by now; False where that is nothing."""
        news, was_busy = self.looking.news(), self._was_busy
        for each in news:
            self._take(each)
        if news:
            self._recommend()
        self._was_busy = self.looking.is_busy
        return bool(news) or self._was_busy != was_busy

    def _take(self, news: News) -> None:
        match news:
            case Examined(row):
                if row.key in self.collection.keys:
                    known = self._rows.get(row.key)
                    self._rows[row.key] = replace(row, is_recommended=known is not None and known.is_recommended)
            case Tried(row):
                self.tried[references(row.pair)] = row
            case Discovered():
                keys = self.collection.keys
                self._rows = {key: self._rows.get(key) or self.collection.row(key) for key in keys}
            case Trouble(message):
                self.trouble = message

    def _recommend(self) -> None:
        rows = recommend(list(self._rows.values()))
        self._rows = {row.key: row for row in rows}
        best = next((row.key for row in rows if row.is_recommended), None)
        if not self._was_moved and best is not None:
            self.highlighted = best

    # --- what is shown --------------------------------------------------------------------------------------------

    def shown(self) -> list[PairRow]:
        """The rows that are shown, in their order."""
        return matching_rows(sorted_rows(self._rows.values(), self.sort), self.filter)

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return len(self._rows)

    def row(self, key: str | None) -> PairRow | None:
        """What is known of a pair."""
        return None if key is None else self._rows.get(key)

    def is_there(self, key: str) -> bool:
        """Whether the pair is still in the collection: files may have gone."""
        return key in self.collection.keys

    def move_to(self, key: str | None) -> None:
        """The person has moved the cursor."""
        if key is not None:
            self.highlighted, self._was_moved = key, True

    def sort_next(self) -> None:
        """Sorts in the next way."""
        self.sort = SORT_KEYS[(SORT_KEYS.index(self.sort) + 1) % len(SORT_KEYS)]

    # --- what changes ---------------------------------------------------------------------------------------------

    def take_in(self, key: str) -> None:
        """A pair has come to the collection: it is shown, whatever the filter is, and the cursor goes to it."""
        if key not in self._rows:
            self._rows[key] = self.collection.row(key)
            self.looking.examine([key])
        if not matching_rows([self._rows[key]], self.filter):
            self.filter = ""
        self.move_to(key)

    def drop(self, key: str) -> None:
        """A pair has left the collection."""
        self._rows.pop(key, None)
        self.highlighted = None
        self.looking.discover()

    def look_again(self, key: str) -> None:
        """What lies on the disk of a pair, and of those that share a model with it, has changed."""
        others = (other for other in self._rows if other != key and self._shares(other, key))
        keys = [each for each in (key, *others) if self.is_there(each)]
        for each in keys:
            seen = self.collection.row(each)
            self._rows[each] = replace(self._rows[each], target=seen.target, draft=seen.draft)
        self.looking.examine(keys)

    def _shares(self, one: str, other: str) -> bool:
        models = [state.model for state in self._rows[other].states]
        return any(state.model in models for state in self._rows[one].states)

    def _once_unloaded(self, machine: Machine) -> Machine:
        """The machine with what the loaded pair holds free again. Called by the thread that looks."""
        if self.loaded is None or self.loaded not in self.collection.keys:
            return machine
        if self._held is None:
            self._held = self.collection.examine(self.collection.row(self.loaded), emptied).fit
        return machine if self._held is None else once_unloaded(machine, self._held)
