"""What the pair picker knows and does, without a widget: pairs, their order, fetches, and which keys work now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from specchat.errors import SpecchatError
from specchat.pairs.catalog import Model
from specchat.pairs.combining import Free, reference
from specchat.pairs.fetching import size_text
from specchat.pairs.rows import PairRow
from specchat.tui.figures import seconds_text
from specchat.tui.pair_fetches import PairFetches
from specchat.tui.pair_measuring import PairMeasuring
from specchat.tui.pair_rows import PairRows
from specchat.tui.pair_shelf import PairShelf
from specchat.tui.pair_table import Entry


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence below the table, and what to do."""

    kind: Literal["info", "warning", "error"]
    message: str
    next_step: str = ""


class PairPicking(PairRows):
    """The picker's state. The screen calls `tick` some times a second and shows what has become of it.

    Args:
        shelf: the pairs.
        measuring: measures one.
        loaded: the key of the pair that is loaded; None where none is.

    Attributes:
        fetches: what is being fetched.
        notice: the last thing that had to be said.
        opening: the pair that is to be opened once it is here, also if its fetch is paused or fails on the way.
        chosen: the pair to chat with: the picker is done.
    """

    def __init__(self, shelf: PairShelf, measuring: PairMeasuring, loaded: str | None = None) -> None:
        super().__init__(shelf.collection, loaded)
        self.shelf = shelf
        self.measuring = measuring
        self.fetches = PairFetches(shelf)
        self.notice: Notice | None = None
        self.opening: str | None = None
        self.chosen: str | None = None
        self._seen_result: object = measuring.result
        self._told: SpecchatError | None = None

    def close(self) -> None:
        """Stops everything; what was fetched stays."""
        self.looking.close()
        self.fetches.pause_all()
        self.measuring.cancel()

    def tick(self) -> bool:
        """Takes over what has happened; False where that is nothing."""
        self._hold_still()
        was_going = self.fetches.is_fetching or self.measuring.is_going
        news = self.take_news()
        if self.trouble:
            self.say("warning", self.trouble)
            self.trouble = ""
        ended = self.fetches.tick()
        for key in ended.done:
            self._arrived(key)
        for key in ended.cancelled:
            self._discard(key)
        for key in ended.halted:
            self.look_again(key)
        self._look_at_failures()
        return self._take_measurement() or bool(ended.cancelled) or news or was_going

    def _hold_still(self) -> None:
        """Nothing is looked at while a pair is measured: it would take time from what is being timed."""
        if self.measuring.is_going:
            self.looking.hold()
        else:
            self.looking.release()

    def visible(self) -> list[Entry]:
        """The rows that are shown, in their order."""
        return [self.entry(row) for row in self.shown()]

    def entry(self, row: PairRow) -> Entry:
        """A pair as the table shows it."""
        measured_now = self.measuring.is_going and self.measuring.key == row.key
        is_loaded = row.key == self.loaded and not self.measuring.displaced
        return Entry(row, self.fetches.state(row.key), is_loaded, measured_now)

    def current(self) -> Entry | None:
        """The row that the cursor is on."""
        row = self.row(self.highlighted)
        return None if row is None else self.entry(row)

    def say(self, kind: Literal["info", "warning", "error"], message: str, next_step: str = "") -> None:
        """A sentence below the table."""
        self.notice = Notice(kind, message, next_step)

    def fail(self, error: SpecchatError) -> None:
        """An error below the table."""
        self.say("error", error.message, error.next_step)

    # --- opening and fetching -------------------------------------------------------------------------------------

    def open(self, key: str) -> None:
        """Chats with a pair, once what is missing of it has been fetched."""
        row = self._rows[key]
        if row.problems:
            self.say("error", row.problems[0])
        elif self.measuring.is_going:
            self.say("warning", "A pair is being measured.", "Esc stops that.")
        elif self.shelf.files(key) is not None:
            self.chosen = key
        else:
            self.opening = key
            self._fetch(row)

    def fetch(self, key: str) -> None:
        """Fetches what is missing of a pair, and stays here."""
        if self.opening == key:
            self.opening = None
        self.resume(key)

    def resume(self, key: str) -> None:
        """Goes on with a fetch; what was to happen then still is."""
        row = self._rows[key]
        if self.shelf.files(key) is not None:
            self.say("info", f"{row.pair.name} is on this disk.", "Enter opens it.")
        else:
            self._fetch(row)

    def _fetch(self, row: PairRow) -> None:
        if self.measuring.is_going:
            self.say("warning", "Fetching would disturb the measurement.", "Wait for it, or stop it with Esc.")
            return
        self.fetches.start(self.collection.row(row.key))
        then = "and opened then" if self.opening == row.key else "and stays on this disk"
        self.say("info", f"{row.pair.name} is fetched {then}.", "p pauses, c cancels.")

    def pause(self, key: str) -> None:
        """Stops a fetch and keeps what came."""
        self.fetches.pause(key)
        self.say("info", "Paused; what came is kept.", "p goes on from there.")

    def cancel(self, key: str) -> None:
        """Stops a fetch and throws away what came."""
        if self.opening == key:
            self.opening = None
        if self.fetches.state(key) is not None:
            self.fetches.cancel(key)
        else:
            self._discard(key)

    def _arrived(self, key: str) -> None:
        self.look_again(key)
        row = self._rows[key]
        if self.opening == key:
            self.chosen = key
        else:
            self.say("info", f"{row.pair.name} is on this disk now.", "Enter opens it, m measures it.")

    def _discard(self, key: str) -> None:
        try:
            removed = self.collection.discard(key)
        except SpecchatError as error:
            self.fail(error)
            return
        self.look_again(key)
        freed = f" and {size_text(removed.size)} are free again" if removed.size else ""
        self.say("info", f"The fetch was cancelled{freed}.")

    def _look_at_failures(self) -> None:
        key = self.opening
        state = None if key is None else self.fetches.state(key)
        error = None if state is None else state.error
        if error is not None and error is not self._told:
            self._told = error
            self.say("error", error.message, f"{error.next_step} Enter goes on from there.")

    # --- what works now -------------------------------------------------------------------------------------------

    def can(self, action: str, entry: Entry) -> bool:
        """Whether an action would do something with a pair now."""
        row, fetch = entry.row, entry.fetch
        if not self.is_there(row.key):
            return False
        under_way = fetch is not None and fetch.status in ("waiting", "fetching")
        begun = any(state.begun for state in row.states)
        match action:
            case "fetch" | "resume":
                stopped = fetch is not None or (begun and not row.is_here)
                is_missing = not under_way and not row.problems and self.shelf.files(row.key) is None
                return is_missing and (stopped or action == "fetch")
            case "pause":
                return under_way
            case "cancel":
                return under_way or (not row.is_here and (begun or fetch is not None))
            case "measure":
                return row.is_here and not row.problems
            case "remove":
                return any(state.stored for state in row.states) or bool(self.collection.put_there_by(row.key))
        return True

    def help_lines(self, entry: Entry | None) -> tuple[str, ...]:
        """Which keys would help with what is wrong with a pair."""
        if entry is None or entry.row.problems:
            return ()
        if entry.row.match == "differs":
            return ("This draft cannot draft for this target: d chooses another draft, n-gram, or none.",)
        if entry.row.fit is not None and entry.row.fit.verdict == "does not fit" and entry.row.draft is not None:
            return ("It does not fit: d chooses a smaller draft or none. Enter tries it all the same.",)
        return ()

    # --- measuring ------------------------------------------------------------------------------------------------

    def measure(self, key: str) -> None:
        """Measures a pair."""
        files = self.shelf.files(key)
        if files is None:
            self.say("warning", "A pair is measured once its files are here and checked.", "f sees to that.")
        elif self.fetches.is_fetching:
            self.say("warning", "A fetch would disturb the measurement.", "Wait for it, or pause it with p.")
        elif self.measuring.is_going:
            self.say("warning", "A pair is being measured.", "Esc stops that.")
        else:
            self.looking.hold()
            self.measuring.begin(key, files, is_ready=lambda: self.looking.is_still)

    def _take_measurement(self) -> bool:
        if self.measuring.result is self._seen_result:
            return False
        self._seen_result = result = self.measuring.result
        if isinstance(result, SpecchatError):
            self.fail(result)
        elif result is not None and self.measuring.key in self._rows:
            self.looking.examine([self.measuring.key])
            took = seconds_text(self.measuring.seconds)
            self.say("info", f"{self._rows[self.measuring.key].pair.name} was measured in {took}.")
        return True

    # --- removing and combining -------------------------------------------------------------------------------------

    def remove(self, key: str, what: str) -> None:
        """Removes files that specchat fetched, or takes a pair off the list.

        Args:
            key: the pair.
            what: "list", "all", or a model's `reference`.
        """
        if what == "list":
            self.collection.forget(key)
            self.drop(key)
            self.say("info", "It was taken off the list; no file was touched.")
            return
        row = self._rows[key]
        models = [state.model for state in row.states if what in ("all", reference(state.model))]
        loaded = None if self.measuring.displaced else self.row(self.loaded)
        if self.measuring.is_going or (loaded and any(state.model in models for state in loaded.states)):
            self.say("warning", "The engine uses that file now.", "Open another pair first.")
            return
        try:
            removed = self.collection.remove(models)
        except SpecchatError as error:
            self.fail(error)
            return
        self.look_again(key)
        self.say("info", f"{size_text(removed.size)} are free again.", " ".join(removed.notes))

    def combine(self, target: Model, draft: Model | Free) -> str:
        """Puts a pair together, and goes to it."""
        key = self.collection.combine(target, draft)
        self.take_in(key)
        self.say("info", f"{self._rows[key].pair.name} is on the list.", "Enter opens it, m measures it.")
        return key

    # --- adding ---------------------------------------------------------------------------------------------------

    def added(self, names: Sequence[str]) -> None:
        """Models were added: pairs are made of them."""
        self.looking.discover()
        some = ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
        self.say("info", f"{len(names)} model{'s' if len(names) > 1 else ''} added: {some}.")
