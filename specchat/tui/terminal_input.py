"""Bytes from the terminal that are no text must not end the program."""

from __future__ import annotations

import codecs
import contextlib
from functools import partial


def forgive_bytes() -> None:
    """Has bytes that are no UTF-8 read as �: a paste in another encoding, a key of a terminal in another one.

    Textual 8.2 reads strictly, and such a byte ends it with a traceback. It offers no setting for that.
    """
    with contextlib.suppress(ImportError):  # Windows reads keys, not bytes
        from textual.drivers import linux_driver

        linux_driver.getincrementaldecoder = _forgiving  # type: ignore[attr-defined, assignment]


def _forgiving(encoding: str) -> partial[codecs.IncrementalDecoder]:
    return partial(codecs.getincrementaldecoder(encoding), errors="replace")
