"""From the name of a pair to a loaded pair: what is missing is fetched first, and either step can be stopped."""

from __future__ import annotations

from dataclasses import replace

from specchat.engine.interface import Load
from specchat.errors import SpecchatError, UsageError
from specchat.tui.live_chat import LiveChat
from specchat.tui.pair_measuring import PairMeasuring
from specchat.tui.pair_shelf import Fetch, PairFiles, PairShelf


class PairOpening:
    """The pair that is being opened, or was opened last.

    Args:
        chat: loads it.
        shelf: has it, or fetches it.
        options: how to load; target, draft and exact mode are filled in.

    Attributes:
        name: the pair's name as people read it; empty before the first.
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

    @property
    def is_fetching(self) -> bool:
        """Whether files are on their way."""
        return self.fetch is not None and not self.fetch.is_over

    @property
    def loaded_key(self) -> str | None:
        """The pair that is loaded, or being loaded."""
        there = self._chat.loaded is not None or self._chat.is_busy
        return self.files.key if self.files is not None and there else None

    def open(self, key: str) -> None:
        """Fetches what is missing of a pair, and loads it.

        Raises:
            SpecchatError: there is no such pair, or one of its files cannot be used.
        """
        if self.measuring.is_going:
            raise UsageError("A measurement is being stopped.", "Try again in a moment.")
        self.name = self._chat.pair = self.shelf.name(key)
        self.cancel()
        self.fetch = None
        files = self.shelf.files(key)
        if files is not None:
            self._load(files)
        else:
            self._told = False
            self.fetch = Fetch(self.shelf, key)
            self.fetch.start()

    def again(self) -> None:
        """Goes on with a fetch that ended early, or loads the pair once more.

        Raises:
            SpecchatError: one of the files cannot be used.
        """
        if self._chat.is_busy or self.is_fetching:
            return
        if self.fetch is not None:
            self.open(self.fetch.key)
        else:
            self._chat.load_again()

    def hand_over(self) -> str | None:
        """Leaves a fetch that is going on to the pair picker: the pair's key."""
        if not self.is_fetching or self.fetch is None:
            return None
        self.fetch.cancel()
        self._told = True
        return self.fetch.key

    def cancel(self) -> bool:
        """Stops a fetch; False where none is going on."""
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
        fetch = self.fetch
        if fetch is None or not fetch.is_over:
            return None
        if fetch.files is not None:
            self.fetch = None
            self._load(fetch.files)
            return None
        told, self._told = self._told, True
        return None if told else fetch.error

    def _load(self, files: PairFiles) -> None:
        self.files = files
        self.measuring.displaced = False
        self.shelf.chosen(files)
        self._set_drafter(files.drafter)
        exact = self._chat.settings.mode == "exact"
        self._chat.load(replace(self._options, target=files.target, draft=files.draft, exact=exact))

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
