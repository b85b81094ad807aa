"""The llama.cpp library: the one place that imports `llama_cpp`, and what llama.cpp says in its log.

llama.cpp writes to standard error unless a log callback is set; here it is set once, for the life of the process, and
the lines are kept in memory: the last ones are the reason where something fails. Nothing redirects file descriptors.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections import deque
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("GGML_NO_BACKTRACE", "1")  # an abort would print pages of debugger output

import llama_cpp

from specchat.backends.processor import TILED_SWITCH, has_slow_tiles
from specchat.errors import LoadError, MemoryShortError

__all__ = ["LogRing", "allocated_bytes", "failure", "ggml_function", "llama_cpp", "log", "start", "system_info"]

_MEMORY = re.compile(
    r"out of memory|failed to allocate|unable to allocate|cannot allocate|bad_alloc|insufficient memory"
    r"|OutOfDeviceMemory|OutOfHostMemory|malloc failed|failed to reserve|not enough (?:space|memory)",
    re.IGNORECASE,
)
_PREFIX = re.compile(r"^[\w:~<>]+: (?:(?:error loading model|failed to initialize the context): )?(?:[a-z_]+: )?")
_SAYS_NOTHING = re.compile(r"failed to load model$|failed to initialize (?:the )?context$|failed to decode, ret")
_DEBUG, _WARN, _ERROR, _CONTINUED = 1, 3, 4, 5  # ggml_log_level


class LogRing:
    """The last lines of llama.cpp's log, with a count that tells which lines are newer than a mark.

    Lines for llama.cpp's own developers are left out: there are thousands of them.

    Attributes:
        on_error: told of each error at once, where it is set: the process may be about to abort.
    """

    def __init__(self, size: int = 1000) -> None:
        self.on_error: Callable[[str], object] | None = None
        self._lines: deque[tuple[int, int, str]] = deque(maxlen=size)
        self._count = 0
        self._leaving_out = False

    def add(self, level: int, text: str) -> None:
        """Appends a line, or goes on with the last one where llama.cpp says so."""
        if level == _CONTINUED:
            if self._lines and not self._leaving_out:
                number, level, begun = self._lines.pop()
                self._lines.append((number, level, begun + text))
            return
        self._leaving_out = level == _DEBUG
        if self._leaving_out:
            return
        self._count += 1
        self._lines.append((self._count, level, text))
        if level == _ERROR and self.on_error is not None:
            self.on_error(text)

    def mark(self) -> int:
        """A mark: `since` gives the lines after it."""
        return self._count

    def since(self, mark: int = 0, *, lowest: int = 0) -> list[str]:
        """The lines after a mark whose level is at least ``lowest`` (3 warnings, 4 errors)."""
        return [text.rstrip() for number, level, text in self._lines if number > mark and level >= lowest]

    def reason(self, mark: int) -> str:
        """llama.cpp's own sentence on what went wrong after a mark; empty where it said nothing."""
        for lowest in (_ERROR, _WARN):
            lines = [_PREFIX.sub("", line).strip() for line in self.since(mark, lowest=lowest)]
            telling = [line for line in lines if line and not _SAYS_NOTHING.search(line)]
            if telling:
                return telling[0].rstrip(".")  # the first is the cause, the others say what failed because of it
        return ""


log = LogRing()


@llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
def _keep(level: int, text: bytes, _: Any) -> None:
    log.add(level, text.decode("utf-8", "replace"))


llama_cpp.llama_log_set(_keep, ctypes.c_void_p(0))


@cache
def start() -> None:
    """Looks for devices, and tells llama.cpp how to compute here; before a model is loaded or devices are listed."""
    llama_cpp.llama_backend_init()
    if has_slow_tiles(system_info()):
        os.environ.setdefault(TILED_SWITCH, "0")


def system_info() -> str:
    """The processor features that llama.cpp was built for, in its own line."""
    return str(llama_cpp.llama_print_system_info().decode("utf-8", "replace").strip())


def failure(what: str, mark: int, next_step: str) -> LoadError:
    """The error for something that llama.cpp would not load: memory is told apart from other reasons."""
    short = [line for line in log.since(mark, lowest=_ERROR) if _MEMORY.search(line)]
    if short:
        return MemoryShortError(
            f"{what}: {_PREFIX.sub('', short[0]).strip().rstrip('.')}.",
            "Choose a smaller model or quantisation, a shorter context (--ctx), or fewer layers on the GPU.",
        )
    reason = log.reason(mark)
    return LoadError(f"{what}: {reason}." if reason else f"{what}, and gave no reason.", next_step)


_BUFFER = re.compile(r"(\S+)\s+(?:model|KV|RS|compute|output) buffer size\s*=\s*([\d.]+) MiB")


def allocated_bytes(mark: int) -> int:
    """What llama.cpp says to have allocated after a mark, on all devices together."""
    lines = log.since(mark)
    return sum(int(float(found[2]) * 2**20) for line in lines if (found := _BUFFER.search(line)))


def ggml_function(name: str, result: Any, *arguments: Any) -> Any | None:
    """A function of ggml that llama_cpp does not bind; None where this build does not export it."""
    for library in _ggml_libraries():
        function = getattr(library, name, None)
        if function is not None:
            function.restype = result
            function.argtypes = list(arguments)
            return function
    return None


@cache
def _ggml_libraries() -> list[ctypes.CDLL]:
    """The libraries of ggml, which llama_cpp has loaded already from beside its own."""
    folder = Path(os.environ.get("LLAMA_CPP_LIB_PATH") or Path(llama_cpp.__file__).parent / "lib")
    names = (name for stem in ("ggml", "ggml-base") for name in (f"lib{stem}.so", f"lib{stem}.dylib", f"{stem}.dll"))
    return [ctypes.CDLL(str(folder / name)) for name in names if (folder / name).exists()]
