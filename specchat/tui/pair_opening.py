"""From the name of a pair to a loaded pair: what is missing is fetched first, and either step can be stopped."""

from __future__ import annotations

from dataclasses import replace

from specchat.engine.interface import Load
from specchat.errors import SpecchatError
from specchat.tui.live_chat import LiveChat
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
    """

    def __init__(self, chat: LiveChat, shelf: PairShelf, options: Load) -> None:
        self.shelf = shelf
        self.name = ""
        self.files: PairFiles | None = None
        self.fetch: Fetch | None = None
        self._chat = chat
        self._options = options
        self._told = False

    @property
    def is_fetching(self) -> bool:
        """Whether files are on their way."""
        return self.fetch is not None and not self.fetch.is_over

    def open(self, key: str) -> None:
        """Fetches what is missing of a pair, and loads it.

        Raises:
            SpecchatError: there is no such pair, or one of its files cannot be used.
        """
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

    def cancel(self) -> bool:
        """Stops a fetch; False where none is going on."""
        if not self.is_fetching or self.fetch is None:
            return False
        self.fetch.cancel()
        return True

    def look(self) -> SpecchatError | None:
        """Loads the pair once it is here; why it did not come, once."""
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
        exact = self._chat.settings.mode == "exact"
        self._chat.load(replace(self._options, target=files.target, draft=files.draft, exact=exact))
