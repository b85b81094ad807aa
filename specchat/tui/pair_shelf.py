"""The pairs that one can chat with: what the screen needs of `specchat.pairs`, and a fetch that runs beside it."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from specchat.errors import CancelledError, SpecchatError

if TYPE_CHECKING:
    from specchat.pairs.catalog import ModelPair
    from specchat.pairs.collection import Collection
    from specchat.pairs.fetching import FetchProgress

_LEAVING_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class PairFiles:
    """A pair that is ready to load: its names, paths, and the files' hashes where the catalogue knows them.

    ``drafter`` is what drafts: "draft" (the draft model), "ngram", or "none" where the pair has none.
    """

    key: str
    name: str
    target: str
    draft: str | None
    target_sha256: str | None = None
    draft_sha256: str | None = None
    drafter: str = "draft"


class PairShelf(Protocol):
    """Where pairs come from."""

    @property
    def collection(self) -> Collection:
        """Every pair, for the picker."""

    def name(self, key: str) -> str:
        """A pair's name as people read it.

        Raises:
            UsageError: there is no such pair; it names the nearest.
        """

    def files(self, key: str) -> PairFiles | None:
        """The pair's files; None where something must be fetched first."""

    def fetch(self, key: str, progress: Callable[[FetchProgress], None], cancelled: Callable[[], bool]) -> PairFiles:
        """Fetches what is missing."""

    def chosen(self, files: PairFiles) -> None:
        """Takes note that a pair is used now."""


class CollectionShelf:
    """The pairs of a collection: the catalogue's, and pairs of a person's own files.

    Args:
        make_collection: makes the collection when it is first asked for, which is after the first paint: what it
            knows about files and memory takes as long to import as a tenth of the screen.
    """

    def __init__(self, make_collection: Callable[[], Collection]) -> None:
        self._make_collection = make_collection
        self._collection: Collection | None = None
        self._making = threading.Lock()

    @property
    def collection(self) -> Collection:
        """Every pair."""
        with self._making:
            if self._collection is None:
                self._collection = self._make_collection()
            return self._collection

    def name(self, key: str) -> str:
        """A pair's name as people read it."""
        return self.collection.pair(key).name

    def files(self, key: str) -> PairFiles | None:
        """The pair's files; None where something must be fetched first."""
        from specchat.pairs.sources import find

        pair = self.collection.pair(key)
        target = find(pair.target, self.collection.folder)
        draft = None if pair.draft is None else find(pair.draft, self.collection.folder)
        if target is None or (pair.draft is not None and draft is None):
            return None
        return _ready(pair, str(target), None if draft is None else str(draft))

    def fetch(self, key: str, progress: Callable[[FetchProgress], None], cancelled: Callable[[], bool]) -> PairFiles:
        """Fetches what is missing."""
        target, draft = self.collection.fetch(key, progress, cancelled)
        return _ready(self.collection.pair(key), str(target), None if draft is None else str(draft))

    def chosen(self, files: PairFiles) -> None:
        """Takes note that a pair is used now."""


def _ready(pair: ModelPair, target: str, draft: str | None) -> PairFiles:
    draft_sha256 = None if pair.draft is None else pair.draft.sha256
    return PairFiles(pair.key, pair.name, target, draft, pair.target.sha256, draft_sha256, pair.drafter)


class Fetch:
    """A pair on its way, fetched by a thread of its own; the screen looks at it as often as it likes.

    Attributes:
        latest: the last progress that was reported.
        files: the pair's files, once they are here.
        error: what went wrong.
        is_told: whether the person has been told of it.
    """

    def __init__(self, shelf: PairShelf, key: str) -> None:
        self.key = key
        self.latest: FetchProgress | None = None
        self.files: PairFiles | None = None
        self.error: SpecchatError | None = None
        self.is_told = False
        self._shelf = shelf
        self._cancel = threading.Event()
        self._rate_from: tuple[str, int, float] | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begins. At the end of the program it is waited for a moment, so that programs which fetch end before it."""
        atexit.register(self._leave)
        self._thread.start()

    def cancel(self) -> None:
        """Stops as soon as possible; what is finished stays on the disk."""
        self._cancel.set()

    @property
    def is_over(self) -> bool:
        """Whether it is finished, with files or with an error."""
        return self.files is not None or self.error is not None

    def rate(self) -> float | None:
        """Bytes a second since this file began; None where that cannot be said yet."""
        latest = self.latest
        if latest is None or self._rate_from is None or self._rate_from[0] != _stage(latest):
            return None
        _, done, since = self._rate_from
        seconds = time.monotonic() - since
        return (latest.done - done) / seconds if seconds > 0.5 and latest.done > done else None

    def _leave(self) -> None:
        self.cancel()
        self._thread.join(_LEAVING_SECONDS)

    def _report(self, progress: FetchProgress) -> None:
        if self._rate_from is None or self._rate_from[0] != _stage(progress):
            self._rate_from = (_stage(progress), progress.done, time.monotonic())
        self.latest = progress

    def _run(self) -> None:
        try:
            self.files = self._shelf.fetch(self.key, self._report, self._cancel.is_set)
        except CancelledError:
            self.error = CancelledError("Fetching was stopped.", "Ctrl+R goes on with what is missing.")
        except SpecchatError as error:
            self.error = error
        except Exception as problem:  # a thread's exception would go nowhere, and the screen would wait for ever
            self.error = SpecchatError(f"Fetching failed: {problem}", "Try again with Ctrl+R.")
        finally:
            atexit.unregister(self._leave)


def _stage(progress: FetchProgress) -> str:
    return f"{progress.model} {progress.source} {progress.what}"
