"""The pairs that one can chat with: what the screen needs of `specchat.pairs`, and a fetch that runs beside it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from specchat.errors import CancelledError, SpecchatError, UsageError

if TYPE_CHECKING:
    from specchat.pairs.catalog import ModelPair
    from specchat.pairs.fetching import FetchProgress


@dataclass(frozen=True, slots=True)
class PairChoice:
    """A pair as a list shows it. Sizes in bytes; ``missing`` is what would have to be fetched, None if not known."""

    key: str
    name: str
    note: str
    size: int | None
    missing: int | None

    @property
    def is_here(self) -> bool:
        """Whether nothing has to be fetched."""
        return self.missing == 0


@dataclass(frozen=True, slots=True)
class PairFiles:
    """A pair that is ready to load: its names, paths, and the files' hashes where the catalogue knows them."""

    key: str
    name: str
    target: str
    draft: str | None
    target_sha256: str | None = None
    draft_sha256: str | None = None


class PairShelf(Protocol):
    """Where pairs come from."""

    def choices(self) -> list[PairChoice]:
        """All pairs. Reads the disk, but neither hashes nor asks the network."""

    def name(self, key: str) -> str:
        """A pair's name as people read it.

        Raises:
            UsageError: there is no such pair; it names the nearest.
        """

    def files(self, key: str) -> PairFiles | None:
        """The pair's files; None where something must be fetched first."""

    def fetch(self, key: str, progress: Callable[[FetchProgress], None], cancelled: Callable[[], bool]) -> PairFiles:
        """Fetches what is missing."""


class CatalogShelf:
    """The pairs of the catalogue, and pairs of a person's own files.

    Args:
        pairs: every pair, by its key.
        folder: the models folder.
        offline: open no connection.
    """

    def __init__(self, pairs: Iterable[ModelPair], folder: Path, offline: bool = False) -> None:
        self._pairs = {pair.key: pair for pair in pairs}
        self._folder = folder
        self._offline = offline

    def choices(self) -> list[PairChoice]:
        """All pairs."""
        return [self._choice(pair) for pair in self._pairs.values()]

    def name(self, key: str) -> str:
        """A pair's name as people read it."""
        if key not in self._pairs:
            alike = get_close_matches(key, self._pairs, n=1, cutoff=0.4)
            hint = f"Did you mean {alike[0]}?" if alike else "/pair alone lists all pairs."
            raise UsageError(f'There is no pair called "{key}".', hint)
        return pair_name(self._pairs[key])

    def files(self, key: str) -> PairFiles | None:
        """The pair's files; None where something must be fetched first."""
        from specchat.pairs.sources import find

        pair = self._pairs[key]
        target = find(pair.target, self._folder)
        draft = None if pair.draft is None else find(pair.draft, self._folder)
        if target is None or (pair.draft is not None and draft is None):
            return None
        return _ready(pair, str(target), None if draft is None else str(draft))

    def fetch(self, key: str, progress: Callable[[FetchProgress], None], cancelled: Callable[[], bool]) -> PairFiles:
        """Fetches what is missing."""
        from specchat.pairs.sources import fetch

        pair = self._pairs[key]
        paths = {
            model.key: fetch(model, self._folder, offline=self._offline, progress=progress, cancelled=cancelled)
            for model in pair.models
        }
        draft = None if pair.draft is None else str(paths[pair.draft.key])
        return _ready(pair, str(paths[pair.target.key]), draft)

    def _choice(self, pair: ModelPair) -> PairChoice:
        from specchat.pairs.sources import find

        sizes = [model.size for model in pair.models]
        missing = [model.size for model in pair.models if find(model, self._folder) is None]
        return PairChoice(pair.key, pair_name(pair), pair.pair.note, _sum(sizes), _sum(missing))


def _ready(pair: ModelPair, target: str, draft: str | None) -> PairFiles:
    draft_sha256 = None if pair.draft is None else pair.draft.sha256
    return PairFiles(pair.key, pair_name(pair), target, draft, pair.target.sha256, draft_sha256)


def _sum(sizes: list[int | None]) -> int | None:
    return None if None in sizes else sum(size for size in sizes if size is not None)


def pair_name(pair: ModelPair) -> str:
    """Target ⟵ draft, without what both names share."""
    target = pair.target.name.removesuffix(" Instruct")
    if pair.draft is None:
        return target
    words, others = pair.draft.name.removesuffix(" Instruct").split(), target.split()
    while len(words) > 1 and others and words[0] == others[0]:
        words, others = words[1:], others[1:]
    return f"{target} ⟵ {' '.join(words)}"


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
        """Begins."""
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


def _stage(progress: FetchProgress) -> str:
    return f"{progress.model} {progress.source} {progress.what}"
