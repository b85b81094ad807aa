"""From the name of a pair to a loaded pair: what is missing is fetched first, and either step can be stopped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from specchat.engine.interface import Load
from specchat.errors import MemoryShortError, SpecchatError, UsageError
from specchat.tui.live_chat import LiveChat, Phase
from specchat.tui.memory_check import MemoryCheck
from specchat.tui.pair_measuring import PairMeasuring
from specchat.tui.pair_shelf import Fetch, PairFiles, PairShelf


class PairOpening:
    """The pair that is being opened, or was opened last.

    Args:
        chat: loads it.
        shelf: has it, or fetches it.
        options: how to load; target, draft and exact mode are filled in.

    Attributes:
        name: the name, as people read it, of what is or was loaded; before the first of what is fetched; or empty.
        files: what was loaded last.
        fetch: the fetch that is going on, or that failed.
        measuring: measures pairs with the chat's engine.
        is_picking: the pair picker is open, which decides what is loaded next.
    """

    def __init__(self, chat: LiveChat, shelf: PairShelf, options: Load) -> None:
        self.shelf = shelf
        self.name = ""
        self.files: PairFiles | None = None
        self.fetch: Fetch | None = None
        self.measuring = PairMeasuring(chat, options)
        self.is_picking = False
        self._chat = chat
        self._options = options
        self._told = False
        self._own_drafter: str | None = None  # what drafted before a pair without a draft model asked for n-gram
        self._next: tuple[PairFiles, bool] | None = None  # waits for the end of a reply; whether the person is warned
        self._check: MemoryCheck | None = None  # of what is about to be loaded

    @property
    def is_fetching(self) -> bool:
        """Whether files are on their way."""
        return self.fetch is not None and not self.fetch.is_over

    @property
    def is_checking(self) -> bool:
        """Whether it is being found out if the pair fits; then it is loaded."""
        return self._check is not None

    @property
    def loaded_key(self) -> str | None:
        """The pair that is loaded, or being loaded."""
        there = self._chat.loaded is not None or self._chat.is_busy
        return self.files.key if self.files is not None and there else None

    def open(self, key: str, *, is_warned: bool = False) -> None:
        """Fetches what is missing of a pair, and loads it.

        Args:
            key: the pair.
            is_warned: the person knows already whether it fits the memory.

        Raises:
            SpecchatError: there is no such pair, or one of its files cannot be used.
        """
        self._must_not_measure()
        name = self.shelf.name(key)
        self.cancel()
        self.fetch = self._next = None
        if self.files is None:
            self.name = name
        files = self.shelf.files(key)
        if files is not None:
            self._next = files, is_warned
            self._load_next()
        else:
            self._told = False
            self.fetch = Fetch(self.shelf, key)
            self.fetch.start()

    def again(self) -> None:
        """Goes on with a fetch that ended early, or loads the pair once more.

        Raises:
            SpecchatError: one of the files cannot be used, or there is nothing to load, or something else goes on.
        """
        self._must_not_measure()
        self._chat.must_be_idle()
        if self._chat.is_busy or self.is_fetching:
            raise UsageError("A pair is on its way already.", "Esc stops that.")
        if self.fetch is not None:
            self.open(self.fetch.key)
        elif self.files is not None:
            self._begin(self.files)
        else:
            raise UsageError("There is no pair yet that could be loaded.", "/pair chooses one.")

    def hand_over(self) -> str | None:
        """Leaves a fetch that is going on to the pair picker: the pair's key."""
        if not self.is_fetching or self.fetch is None:
            return None
        self.fetch.cancel()
        self._told = True
        return self.fetch.key

    def cancel(self) -> bool:
        """Stops a fetch, or what comes before loading; False where neither is going on."""
        if self._check is not None:
            self._check = None
            self._chat.will_not_load()
            return True
        if not self.is_fetching or self.fetch is None:
            return False
        self.fetch.cancel()
        return True

    def look(self) -> SpecchatError | None:
        """Loads the pair once it is here; why it did not come, once. Takes over what is being measured."""
        self.measuring.look()
        if self.measuring.displaced and not self.is_picking and not self.measuring.is_going:
            self.measuring.displaced = False
            self._chat.load_again()
        self._load_next()
        fetch = self.fetch
        if fetch is None or not fetch.is_over:
            return None
        if fetch.files is not None:
            self.fetch, self._next = None, (fetch.files, False)
            self._load_next()
            return None
        told, self._told = self._told, True
        return None if told else fetch.error

    def look_at_memory(self) -> MemoryShortError | None:
        """Begins to load as soon as it is known whether the pair fits; where it does not, says so a frame before."""
        check, phase = self._check, self._chat.phase
        if check is None:
            return None
        if phase is Phase.READY:  # what was being loaded before is there now
            self._chat.will_load(check.load)
        if phase is not Phase.EMPTY:  # else something has failed, and no answer may come
            if not check.look():
                return None
            if (warning := check.take_warning()) is not None:
                return warning
        self._check = None
        self._chat.load(check.load)
        return None

    def _must_not_measure(self) -> None:
        if self.measuring.is_going:
            raise UsageError("A measurement is being stopped.", "Try again in a moment.")

    def _load_next(self) -> None:
        """Loads what is to be loaded next, as soon as the pair that is there has written its reply."""
        if self._next is None or self._chat.is_replying:
            return
        (files, is_warned), self._next = self._next, None
        self.files = files
        self.name = self._chat.pair = files.name
        self.measuring.displaced = False
        self.shelf.chosen(files)
        self._set_drafter(files.drafter)
        self._begin(files, is_warned=is_warned)

    def _begin(self, files: PairFiles, *, is_warned: bool = False) -> None:
        exact = self._chat.settings.mode == "exact"
        load = replace(self._options, target=files.target, draft=files.draft, exact=exact)
        if not all(Path(path).exists() for path in (files.target, files.draft) if path is not None):
            self._chat.load(load)  # which says what is wrong
        elif is_warned:
            self._chat.ask_for_devices()
            self._chat.load(load)
        else:
            self._check = MemoryCheck(self._chat, load)
            self._chat.will_load(load)

    def _set_drafter(self, drafter: str) -> None:
        """A pair that drafts from the text so far turns that on; the next one with a draft model turns it off again."""
        settings = self._chat.settings
        if drafter == "ngram" and settings.drafter not in ("ngram", "auto"):
            self._own_drafter = settings.drafter
            self._chat.change(replace(settings, drafter="ngram"))
        elif drafter == "draft" and self._own_drafter is not None:
            if settings.drafter == "ngram":
                self._chat.change(replace(settings, drafter=self._own_drafter))
            self._own_drafter = None
