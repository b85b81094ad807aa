"""The fetches of the pair picker: one at a time, the others wait; each can be paused, cancelled and gone on with."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from specchat.errors import CancelledError, SpecchatError
from specchat.pairs.fetching import FetchProgress
from specchat.pairs.rows import PairRow
from specchat.tui.pair_shelf import Fetch, PairShelf

Status: TypeAlias = Literal["waiting", "fetching", "paused", "failed"]

_RATE_SECONDS = 8.0
_SILENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class FetchState:
    """How a fetch stands.

    Attributes:
        status: what it is doing.
        done: bytes of the pair that are here, as far as known.
        total: bytes of the pair.
        rate: bytes a second of the last seconds.
        what: what is going on, in words.
        error: why it failed.
    """

    status: Status
    done: int = 0
    total: int | None = None
    rate: float | None = None
    what: str = ""
    error: SpecchatError | None = None

    @property
    def share(self) -> float | None:
        """How much of the pair is here, 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else None

    @property
    def seconds_left(self) -> float | None:
        """How long it takes at this rate."""
        return None if not self.rate or not self.total else max(0, self.total - self.done) / self.rate


@dataclass(slots=True)
class Ended:
    """The keys of pairs whose fetch has ended: they are here; their pieces must go; what came is kept."""

    done: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    halted: list[str] = field(default_factory=list)


class PairFetches:
    """Fetches pairs, one after the other.

    Args:
        shelf: fetches.
    """

    def __init__(self, shelf: PairShelf) -> None:
        self._shelf = shelf
        self._states: dict[str, FetchState] = {}
        self._queue: deque[PairRow] = deque()
        self._fetch: Fetch | None = None
        self._row: PairRow | None = None
        self._rate = _Rate()
        self._stopping: Literal["", "pause", "cancel"] = ""

    @property
    def is_fetching(self) -> bool:
        """Whether bytes are on their way."""
        return self._fetch is not None

    @property
    def current(self) -> str | None:
        """The key of the pair that is on its way."""
        return None if self._row is None else self._row.key

    def state(self, key: str) -> FetchState | None:
        """How the fetch of a pair stands; None where nobody asked for it."""
        return self._states.get(key)

    def start(self, row: PairRow) -> None:
        """Fetches what is missing of a pair, or goes on with it."""
        state = self._states.get(row.key)
        if state is not None and state.status in ("waiting", "fetching"):
            return
        self._states[row.key] = FetchState("waiting", *_begun(row))
        self._queue.append(row)
        self._next()

    def pause(self, key: str) -> None:
        """Stops a fetch and keeps what came."""
        self._stop(key, "pause")

    def pause_all(self) -> None:
        """Stops everything and keeps what came."""
        for key, state in list(self._states.items()):
            if state.status in ("waiting", "fetching"):
                self.pause(key)

    def cancel(self, key: str) -> None:
        """Stops a fetch and throws away what came; `tick` tells when that is done."""
        self._stop(key, "cancel")

    def tick(self) -> Ended:
        """Takes over what has happened."""
        ended = Ended(cancelled=[key for key, state in self._states.items() if state.what == "cancelled"])
        if self._fetch is not None and self._row is not None:
            if not self._fetch.is_over:
                self._states[self._row.key] = self._progress(self._row, self._fetch.latest)
            else:
                self._end(self._row.key, self._fetch, ended)
        for key in ended.cancelled:
            self._states.pop(key, None)
        return ended

    def _end(self, key: str, fetch: Fetch, ended: Ended) -> None:
        stopping = self._stopping
        self._fetch, self._row, self._stopping = None, None, ""
        if fetch.files is not None:
            self._states.pop(key)
            ended.done.append(key)
        elif stopping == "cancel":
            ended.cancelled.append(key)
        else:
            paused = isinstance(fetch.error, CancelledError)
            kept = _begun(self._shelf.collection.row(key))  # not all that came: half a wheel is of no use
            self._states[key] = FetchState(
                "paused" if paused else "failed", *kept, error=None if paused else fetch.error
            )
            ended.halted.append(key)
        self._next()

    def _stop(self, key: str, how: Literal["pause", "cancel"]) -> None:
        if self._fetch is not None and self._row is not None and self._row.key == key:
            self._stopping = how
            self._fetch.cancel()
            return
        self._queue = deque(row for row in self._queue if row.key != key)
        if (state := self._states.get(key)) is not None:
            what = "cancelled" if how == "cancel" else ""
            self._states[key] = FetchState("paused", state.done, state.total, what=what)

    def _next(self) -> None:
        if self._fetch is None and self._queue:
            self._row = self._queue.popleft()
            self._rate = _Rate()
            self._fetch = Fetch(self._shelf, self._row.key)
            self._fetch.start()
            self._states[self._row.key] = FetchState("fetching", *_begun(self._row), what="asking where the files are")

    def _progress(self, row: PairRow, latest: FetchProgress | None) -> FetchState:
        if latest is None:
            return self._states[row.key]
        if latest.source == "disk":  # it is being checked, or somebody else fetches it
            self._rate = _Rate()
            share = f" {latest.done / latest.total:.0%}" if latest.total and latest.what == "checking" else ""
            before = self._states[row.key]
            return FetchState("fetching", before.done, before.total, what=f"{latest.what} {latest.model}{share}")
        done, total = pair_progress(row, latest)
        rate, silence = self._rate.of(done), self._rate.silence
        stalled = f"; nothing has arrived for {silence:.0f} seconds" if silence >= _SILENCE_SECONDS else ""
        return FetchState("fetching", done, total, rate, f"{latest.model}: {latest.what}{stalled}")


def pair_progress(row: PairRow, latest: FetchProgress) -> tuple[int, int | None]:
    """Bytes of a pair that are here and bytes in all, from the progress of one of its models.

    Args:
        row: the pair as it was when the fetch began. The target comes first.
        latest: the progress of the model that is on its way.
    """
    names = [state.model.name for state in row.states]
    index = names.index(latest.model) if latest.model in names else 0
    before = sum(state.size or 0 for state in row.states[:index])
    after = sum((state.size or 0) - (state.missing or 0) for state in row.states[index + 1 :])
    return before + latest.done + after, row.size if row.size is not None else latest.total


def _begun(row: PairRow) -> tuple[int, int | None]:
    return (0, None) if row.size is None or row.missing is None else (row.size - row.missing, row.size)


class _Rate:
    """Bytes a second over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()
        self._grown_at = time.monotonic()

    @property
    def silence(self) -> float:
        """Seconds since the last byte."""
        return time.monotonic() - self._grown_at

    def of(self, done: int) -> float | None:
        """The rate, now that so many bytes are here; None where that cannot be said yet."""
        now = time.monotonic()
        if self._seen and done < self._seen[-1][1]:
            self._seen.clear()
        if not self._seen or done > self._seen[-1][1]:
            self._grown_at = now
        self._seen.append((now, done))
        while now - self._seen[0][0] > _RATE_SECONDS:
            self._seen.popleft()
        seconds, bytes_ = now - self._seen[0][0], done - self._seen[0][1]
        return bytes_ / seconds if seconds >= 1 and bytes_ > 0 else None
