"""Python functions that llama.cpp calls. C code cannot pass an exception on, so each is kept and raised afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specchat.backends.llama_library import llama_cpp


class StopCallback:
    """A function that may stop a pass, as llama.cpp wants it.

    Attributes:
        should_stop: the function; None for none.
        callback: what llama.cpp calls.
        none: what stands for no callback.
    """

    def __init__(self) -> None:
        self.should_stop: Callable[[], bool] | None = None
        self._error: BaseException | None = None
        self.callback = llama_cpp.ggml_abort_callback(lambda _: self.asked())
        self.none = llama_cpp.ggml_abort_callback()

    def asked(self) -> bool:
        """Whether to stop. An exception, such as Ctrl-C, stops too."""
        try:
            return self._error is not None or (self.should_stop is not None and self.should_stop())
        except BaseException as error:
            self._error = error
            return True

    def raise_error(self) -> None:
        """Raises what the function raised, if it did."""
        error, self._error = self._error, None
        if error is not None:
            raise error


class ProgressCallback:
    """A function that is told how much of a file is read, as llama.cpp wants it.

    Attributes:
        cancelled: whether it said not to go on.
        callback: what llama.cpp calls.
    """

    def __init__(self, progress: Callable[[float], bool] | None) -> None:
        self.cancelled = False
        self._progress = progress
        self._error: BaseException | None = None
        self.callback = llama_cpp.llama_progress_callback(self._report)

    def raise_error(self) -> None:
        """Raises what the function raised, if it did."""
        if self._error is not None:
            raise self._error

    def _report(self, fraction: float, _: Any) -> bool:
        try:
            self.cancelled = self._progress is not None and not self._progress(fraction)
        except BaseException as error:
            self._error = error
            self.cancelled = True
        return not self.cancelled
