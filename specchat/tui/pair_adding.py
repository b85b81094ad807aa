"""Looks through a file or a folder that a person names, in a thread: a large folder takes a while."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from specchat.errors import SpecchatError
from specchat.pairs.collection import Collection


class Adding:
    """One look.

    Attributes:
        names: the models that were added, once that is known.
        error: why nothing was.
    """

    def __init__(self, collection: Collection, text: str) -> None:
        self.names: Sequence[str] | None = None
        self.error: SpecchatError | None = None
        self._collection = collection
        self._path = Path(text)
        self._cancelled = threading.Event()
        threading.Thread(target=self._run, name="adding", daemon=True).start()

    def cancel(self) -> None:
        """Stops as soon as possible; nothing is added."""
        self._cancelled.set()

    def _run(self) -> None:
        try:
            models = self._collection.add(self._path, self._cancelled.is_set)
            self.names = [model.name for model in models]
        except SpecchatError as error:
            self.error = error
        except Exception as problem:  # a thread's exception would go nowhere
            self.error = SpecchatError(
                f"{self._path} cannot be looked at: {problem}.", "Check the path and its rights."
            )
