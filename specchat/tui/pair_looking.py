"""Looks at pairs in a thread, because headers, vocabularies and devices take seconds; the screen asks what is new."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from queue import Empty, SimpleQueue
from typing import TypeAlias

from specchat.errors import SpecchatError
from specchat.pairs.catalog import ModelPair
from specchat.pairs.collection import Collection
from specchat.pairs.memory import Machine
from specchat.pairs.rows import PairRow
from specchat.pairs.shelf import glance


@dataclass(frozen=True, slots=True)
class Examined:
    """A pair has been looked at."""

    row: PairRow


@dataclass(frozen=True, slots=True)
class Tried:
    """A pair that is not on the list has been looked at."""

    row: PairRow


@dataclass(frozen=True, slots=True)
class Discovered:
    """The models of other programs and of places that were added are known now."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something could not be looked at."""

    message: str


News: TypeAlias = Examined | Tried | Discovered | Trouble


class Looking:
    """A thread that examines pairs, one after the other.

    Args:
        collection: what it looks at.
        also_free: what would be free besides, once a pair that is loaded now is gone.
    """

    def __init__(
        self, collection: Collection, also_free: Callable[[Machine], Machine] = lambda machine: machine
    ) -> None:
        self._collection = collection
        self._also_free = also_free
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._news: SimpleQueue[News] = SimpleQueue()
        self._closed = threading.Event()
        self._free = threading.Event()
        self._free.set()
        self._left = 0
        self._is_working = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="pairs", daemon=True)

    def begin(self, keys: Sequence[str]) -> None:
        """Asks for the devices, examines these pairs, and looks for models of other programs."""
        self._add(self._look_around)
        self.examine(keys)
        self.discover()
        self._thread.start()

    def examine(self, keys: Sequence[str]) -> None:
        """Examines pairs of the collection anew."""
        for key in keys:
            self._add(partial(self._examine, key))

    def discover(self) -> None:
        """Looks for models anew."""
        self._add(self._discover)

    def compare(self, pairs: Sequence[ModelPair]) -> None:
        """Examines pairs that are not on the list."""
        for pair in pairs:
            self._add(partial(self._try, pair))

    @property
    def is_busy(self) -> bool:
        """Whether there is something left to look at."""
        return self._left > 0

    @property
    def is_still(self) -> bool:
        """Whether it does nothing just now: there is nothing left, or it is held."""
        return not self._is_working and (self._left == 0 or not self._free.is_set())

    def hold(self) -> None:
        """Looks at nothing more for now: something is being measured."""
        self._free.clear()

    def release(self) -> None:
        """Goes on."""
        self._free.set()

    def news(self) -> list[News]:
        """What is new since the last time."""
        found: list[News] = []
        while True:
            try:
                found.append(self._news.get_nowait())
            except Empty:
                return found

    def close(self) -> None:
        """Stops as soon as possible."""
        self._closed.set()
        self._free.set()
        self._tasks.put(None)

    def _add(self, task: Callable[[], None]) -> None:
        with self._lock:
            self._left += 1
        self._tasks.put(task)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._free.wait()
            if self._closed.is_set():
                return
            try:
                self._is_working = True
                task()
            except SpecchatError as error:
                self._news.put(Trouble(f"{error.message} {error.next_step}"))
            except Exception as problem:  # a thread's exception would go nowhere
                self._news.put(Trouble(f"Something could not be looked at: {type(problem).__name__}: {problem}"))
            finally:
                self._is_working = False
            with self._lock:
                self._left -= 1

    def _look_around(self) -> None:
        if problem := self._collection.look_around().problem:
            self._news.put(Trouble(f"Whether pairs fit is not known: {problem}"))

    def _examine(self, key: str) -> None:
        if key in self._collection.keys:
            self._news.put(Examined(self._collection.examine(self._collection.row(key), self._also_free)))

    def _discover(self) -> None:
        keys = self._collection.discover(self._closed.is_set)
        self._news.put(Discovered())
        for key in keys:
            if not self._closed.is_set():
                self._examine(key)

    def _try(self, pair: ModelPair) -> None:
        row = glance(pair, self._collection.folder)
        self._news.put(Tried(self._collection.examine(row, self._also_free)))
